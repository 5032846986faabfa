//! Do later layers override earlier ones, and does every fault name its source?

use std::ffi::OsString;
use std::path::Path;

use engine::arbiter::admission::RateLimits;

use super::{Config, ConfigFaults, Layers, SettingRow, Source, rows};

const FILE: &str = "signalbox.toml";

/// A token of the operator that is just long enough.
const TOKEN: &str = "a-s3cret-of-exactly-32-character";

#[test]
fn the_documented_names_are_settings() {
    let known: Vec<String> = rows().map(SettingRow::variable).collect();
    let names = [
        "HTTP",
        "COAP",
        "COAPS",
        "UDP",
        "DATA_DIR",
        "STORE",
        "OPERATOR_TOKEN",
        "PLATFORM",
        "ALLOW_PRIVATE_DESTINATIONS",
        "COAP_ACK_TIMEOUT_MS",
        "COAP_MAX_RETRANSMIT",
        "COAP_ANSWER_BYTES_MAX",
        "COAP_BLOCK_BYTES",
        "DATA_BYTES_MAX",
        "UDP_PAYLOAD_BYTES_MAX",
        "SCHEDULED_MAX",
        "DELIVERY_RETRY_MS",
        "SMS_RETRY_MS",
        "RATE_LIMIT",
        "TLS_CERT",
        "TLS_KEY",
        "TRUST_ENDPOINT_NAMES",
        "BOOTSTRAP_NOSEC",
        "PUBLIC_COAP",
        "PUBLIC_COAPS",
        "OIDC_ISSUER",
        "OIDC_CLIENT_ID",
        "OIDC_CLIENT_SECRET_FILE",
    ];
    for name in names {
        assert!(known.contains(&format!("SIGNALBOX_{name}")), "{name}");
    }
    let data_dir = rows().find(|row| row.name == "data_dir").unwrap();
    assert_eq!(data_dir.flag(), "data-dir");
}

#[test]
fn every_default_is_valid() {
    let config = Config::of(&Layers::of_defaults()).unwrap();
    assert_eq!(config.http, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(config.json_body_bytes_max, 2 * 1024 * 1024);
    assert_eq!(config.limits(), engine::limits::Limits::default());
    assert_eq!(config.arbiter_limits().rates, RateLimits::default());
    assert_eq!(config.tls(), None);
}

#[test]
fn a_later_layer_wins_and_every_value_has_its_source() {
    let mut layers = Layers::of_defaults();
    layers.add_preset(&[("platform", "preset"), ("coap", "0.0.0.0:1")]);
    let file = "platform = 'file'\nscheduled_max = 1\ncoap_max_retransmit = 1\nwaiting_max = 1";
    layers.add_file_text(Path::new(FILE), file);
    layers.add_environment(variables(&[
        ("SIGNALBOX_SCHEDULED_MAX", "2"),
        ("SIGNALBOX_WAITING_MAX", "2"),
        ("SIGNALBOX_COAP_MAX_RETRANSMIT", ""),
    ]));
    layers.add_flags(vec![("waiting_max", "3".to_owned())]);
    let config = Config::of(&layers).unwrap();
    assert_eq!(config.coap, "0.0.0.0:1".parse().unwrap());
    assert_eq!(config.platform, "file");
    assert_eq!(
        (
            config.coap_max_retransmit,
            config.scheduled_max,
            config.waiting_max
        ),
        (1, 2, 3)
    );
    let sources = ["http", "coap", "platform", "scheduled_max", "waiting_max"]
        .map(|name| layers.of(name).source.clone());
    let file = Source::File(FILE.into());
    let expected = [
        Source::Default,
        Source::Preset,
        file,
        Source::Environment,
        Source::Flag,
    ];
    assert_eq!(sources, expected);
}

#[test]
fn every_fault_names_its_source_and_its_key() {
    const FAULTY: &str = "colour = 'red'\nhttp = 1.5\nudp = 'x'";
    let mut layers = Layers::of_defaults();
    layers.add_file_text(Path::new(FILE), FAULTY);
    layers.add_environment(variables(&[("SIGNALBOX_COAP", "here")]));
    layers.add_flags(vec![("scheduled_max", "0".to_owned())]);
    let faults = Config::of(&layers).unwrap_err().to_string();
    let expected = "invalid configuration\
        \n  file signalbox.toml, key http: must be a string, an integer, true, false or a list \
        of them\
        \n  file signalbox.toml, key colour: unknown setting\
        \n  environment SIGNALBOX_COAP: must be an address and port such as 127.0.0.1:8080, not \
        \"here\"\
        \n  file signalbox.toml, key udp: must be an address and port such as 127.0.0.1:8080, not \
        \"x\"\
        \n  flag --scheduled-max: must be an integer from 1 to 10000, not \"0\"";
    assert_eq!(faults, expected);
}

#[test]
fn a_table_of_a_file_has_the_settings_that_begin_with_its_name() {
    let mut layers = Layers::of_defaults();
    let file = "[smpp]\nurl = ['smpp://a:1', 'smpps://[::1]:2']\nsystem_id = 'me'\n\
                password = 'secret08'\nwindow = 7";
    layers.add_file_text(Path::new(FILE), file);
    let config = Config::of(&layers).unwrap();
    let servers: Vec<String> = config.smpp_url.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["a:1", "::1:2"]);
    assert_eq!(config.smpp_url.iter().filter(|it| it.is_tls).count(), 1);
    assert_eq!((&*config.smpp_system_id, config.smpp_window), ("me", 7));
    let mut faulty = Layers::of_defaults();
    faulty.add_file_text(Path::new(FILE), "[smpp]\ncolour = 1\n[colour]\nred = 1");
    let faults = Config::of(&faulty).unwrap_err().to_string();
    let expected = "key smpp_colour: unknown setting";
    assert!(faults.contains(expected), "{faults}");
    assert!(faults.contains("key colour: must be"), "{faults}");
}

#[test]
fn a_list_of_tables_of_a_file_is_json_elsewhere() {
    let file = "[oidc]\nissuer = 'https://id.example'\nclient_id = 'me'\n\
                [[oidc.groups]]\ngroup = 'a'\noperator = true\n\
                [[oidc.groups]]\ngroup = 'b'\ncustomer = 'acme'\nscopes = ['logs:read']";
    let mut layers = Layers::of_defaults();
    layers.add_file_text(Path::new(FILE), file);
    let config = Config::of(&layers).unwrap();
    let groups = config.oidc_groups.iter().map(|rule| &*rule.group);
    assert_eq!(groups.collect::<Vec<_>>(), ["a", "b"]);
    let printed = layers.of("oidc_groups").text.clone();
    let mut again = Layers::of_defaults();
    again.add_environment(variables(&[("SIGNALBOX_OIDC_GROUPS", &printed)]));
    assert_eq!(Config::of(&again).unwrap().oidc_groups, config.oidc_groups);
}

#[test]
fn an_identity_provider_needs_a_confidential_issuer_a_client_and_rules() {
    let faults_of = |given: &[(&str, &str)]| {
        let mut layers = Layers::of_defaults();
        layers.add_environment(variables(given));
        Config::of(&layers).map_or_else(|faults| faults.to_string(), |_| String::new())
    };
    let faults = faults_of(&[("SIGNALBOX_OIDC_ISSUER", "https://id.example/realms/a")]);
    assert!(faults.contains("requires oidc_client_id"), "{faults}");
    assert!(faults.contains("requires oidc_groups"), "{faults}");
    for (issuer, is_fit) in [
        ("https://id.example", true),
        ("http://localhost:8080", true),
        ("http://[::1]:8080/a", true),
        ("http://127.0.0.1", true),
        ("http://id.example", false),
        ("http://localhost.example", false),
        ("https://me@id.example", false),
        ("https://id.example/?a", false),
        ("https://id.example/#a", false),
        ("id.example", false),
    ] {
        let faults = faults_of(&[("SIGNALBOX_OIDC_ISSUER", issuer)]);
        assert_eq!(
            !faults.contains("must be an https"),
            is_fit,
            "{issuer}: {faults}"
        );
    }
    let faults = faults_of(&[("SIGNALBOX_OIDC_SCOPE", "profile")]);
    assert!(faults.contains("must contain `openid`"), "{faults}");
}

#[test]
fn a_file_that_is_not_toml_is_a_fault_with_its_line() {
    let mut layers = Layers::of_defaults();
    layers.add_file_text(Path::new(FILE), "http = \n");
    let ConfigFaults(faults) = Config::of(&layers).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].at, "file signalbox.toml");
    assert!(faults[0].why.contains("line 1"), "{}", faults[0].why);
}

#[test]
fn a_fault_of_a_file_does_not_quote_a_secret() {
    let mut layers = Layers::of_defaults();
    let text = "http = '127.0.0.1:80'\noperator_token = \"hunter2-hunter2\n";
    layers.add_file_text(Path::new(FILE), text);
    let faults = Config::of(&layers).unwrap_err().to_string();
    assert!(
        faults.contains("line 2") && !faults.contains("hunter2"),
        "{faults}"
    );
}

#[test]
fn a_certificate_without_its_key_is_a_fault() {
    let mut layers = Layers::of_defaults();
    layers.add_flags(vec![("tls_cert", "chain.pem".to_owned())]);
    let faults = Config::of(&layers).unwrap_err().to_string();
    assert!(
        faults.contains("flag --tls-cert: requires tls_key"),
        "{faults}"
    );
    let mut layers = Layers::of_defaults();
    layers.add_flags(vec![("coaps_cert", "chain.pem".to_owned())]);
    let faults = Config::of(&layers).unwrap_err().to_string();
    assert!(
        faults.contains("flag --coaps-cert: requires coaps_key"),
        "{faults}"
    );
}

#[test]
fn a_secret_is_neither_printed_nor_quoted_in_a_fault() {
    let mut layers = Layers::of_defaults();
    layers.add_environment(variables(&[("SIGNALBOX_OPERATOR_TOKEN", TOKEN)]));
    let masked = "operator_token = \"********\"  # environment SIGNALBOX_OPERATOR_TOKEN\n";
    assert!(layers.to_string().contains(masked));
    let config = Config::of(&layers).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
    for refused in [&TOKEN[1..], "s3cret of forty characters, with spaces!"] {
        layers.add_flags(vec![("operator_token", refused.to_owned())]);
        let faults = Config::of(&layers).unwrap_err().to_string();
        let expected = "flag --operator-token: must consist of at least 32 letters";
        assert!(
            faults.contains(expected) && !faults.contains("s3cret"),
            "{faults}"
        );
    }
}

#[test]
fn a_password_in_a_url_is_neither_printed_nor_quoted() {
    let mut layers = Layers::of_defaults();
    let url = "postgres://me:s3cret@db.example,db2.example/signalbox?sslmode=require";
    layers.add_environment(variables(&[("SIGNALBOX_STORE", url)]));
    let masked = "store = \"postgres://me:********@db.example,db2.example/signalbox?\
                  sslmode=require\"  # environment SIGNALBOX_STORE\n";
    assert!(layers.to_string().contains(masked), "{layers}");
    let config = Config::of(&layers).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
    for (refused, why) in [
        (
            "mysql://me:s3cret@db",
            "must be `embedded` or postgres://user@host/database",
        ),
        (
            "postgres://me:s3cret@db:x",
            "invalid value for option `port`",
        ),
        (
            "postgres://db/a?password=s3cret",
            "a password must be before the host",
        ),
        ("http_proxy", "must be `embedded`"),
    ] {
        layers.add_flags(vec![("store", refused.to_owned())]);
        let faults = Config::of(&layers).unwrap_err().to_string();
        let expected = format!("flag --store: {why}");
        assert!(faults.contains(&expected), "{faults}");
        assert!(!faults.contains("s3cret"), "{faults}");
    }
}

#[test]
fn files_for_postgres_require_its_url_and_one_password_is_enough() {
    let faults_of = |given: &[(&str, &str)]| {
        let mut layers = Layers::of_defaults();
        layers.add_environment(variables(given));
        Config::of(&layers).map_or_else(|faults| faults.to_string(), |_| String::new())
    };
    let file = ("SIGNALBOX_STORE_PASSWORD_FILE", "/run/secrets/password");
    let authorities = ("SIGNALBOX_STORE_CA_FILE", "/etc/ssl/ours.pem");
    let faults = faults_of(&[file, authorities]);
    for name in ["STORE_PASSWORD_FILE", "STORE_CA_FILE"] {
        let expected = format!("SIGNALBOX_{name}: requires store to be the URL");
        assert!(faults.contains(&expected), "{faults}");
    }
    let url = ("SIGNALBOX_STORE", "postgres://me@db.example/signalbox");
    assert_eq!(faults_of(&[url, file, authorities]), "");
    let with_password = (
        "SIGNALBOX_STORE",
        "postgres://me:s3cret@db.example/signalbox",
    );
    let faults = faults_of(&[with_password, file]);
    assert!(faults.contains("because store has a password"), "{faults}");
    assert!(!faults.contains("s3cret"), "{faults}");
}

#[test]
fn a_printed_configuration_can_be_parsed() {
    let mut layers = Layers::of_defaults();
    layers.add_flags(vec![("data_dir", "a \"quoted\" \\ path".to_owned())]);
    let mut again = Layers::of_defaults();
    again.add_file_text(Path::new(FILE), &layers.to_string());
    for row in rows() {
        assert_eq!(again.of(row.name).text, layers.of(row.name).text);
    }
    assert!(Config::of(&again).is_ok());
}

#[test]
fn the_delays_between_delivery_attempts_are_bounded_and_may_be_none() {
    let waits = |text: &str| {
        let mut layers = Layers::of_defaults();
        layers.add_flags(vec![("delivery_retry_ms", text.to_owned())]);
        let config = Config::of(&layers);
        config.ok().map(|config| config.delivery_retry_ms)
    };
    assert_eq!(waits(""), Some(vec![]));
    assert_eq!(waits("100, 0,604800000"), Some(vec![100, 0, 604_800_000]));
    assert_eq!(waits(&["1"; 16].join(",")), Some(vec![1; 16]));
    for refused in ["x", "1,", "-1", "604800001", "1.5", &["1"; 17].join(",")] {
        assert_eq!(waits(refused), None, "{refused}");
    }
    let usual = Config::of_defaults().delivery_retry_ms;
    assert_eq!(usual, [150_000, 180_000, 420_000, 1_020_000]);
}

#[test]
fn the_sizes_of_bodies_are_bounded_and_block_sizes_are_those_of_rfc_7959() {
    let given = |name: &'static str, text: &str| {
        let mut layers = Layers::of_defaults();
        layers.add_flags(vec![(name, text.to_owned())]);
        Config::of(&layers).ok()
    };
    let cases = [
        ("data_bytes_max", "1", "16777216", "16777217"),
        ("coap_answer_bytes_max", "1", "16777216", "16777217"),
        ("udp_payload_bytes_max", "1", "65507", "65508"),
        ("action_data_bytes_max", "1", "1073741824", "1073741825"),
        ("device_values_max", "1", "60000", "60001"),
        ("device_registrations_max", "1", "60000", "60001"),
        ("passive_objects_max", "1", "1000", "1001"),
        ("last_values_max", "1", "1000000", "1000001"),
        ("coap_block_bytes", "16", "1024", "2048"),
    ];
    for (name, least, most, beyond) in cases {
        assert!(given(name, least).is_some(), "{name} {least}");
        assert!(given(name, most).is_some(), "{name} {most}");
        for refused in ["0", "-1", "", beyond] {
            assert!(given(name, refused).is_none(), "{name} {refused:?}");
        }
    }
    let limits = given("waiting_bytes_max", "1024").unwrap().limits();
    assert_eq!(limits.waiting_bytes_max, 1_024);
    let uneven = given("coap_block_bytes", "48");
    assert!(uneven.is_none(), "a block is a power of two");
    let limits = given("data_bytes_max", "7").unwrap().limits();
    assert_eq!(limits.data_bytes_max, 7);
    let limits = given("coap_answer_bytes_max", "7").unwrap().limits();
    assert_eq!(limits.answer_bytes_max, 7);
    let limits = given("udp_payload_bytes_max", "7").unwrap().limits();
    assert_eq!(limits.udp_payload_bytes_max, 7);
    let limits = given("device_values_max", "7").unwrap().limits();
    assert_eq!((limits.values_max, limits.registration_weight()), (7, 1));
    let limits = given("device_registrations_max", "7").unwrap().limits();
    assert_eq!(limits.registration_weight(), 1_715);
    let limits = given("passive_objects_max", "7").unwrap().limits();
    assert_eq!(limits.passive_objects_max, 7);
    let limits = given("log_payload_bytes_per_day", "0").unwrap().limits();
    assert_eq!(limits.log_payload_bytes_per_day, 0, "no bytes are stored");
    assert!(given("log_payload_bytes_per_day", "16776960").is_some());
    assert!(given("log_payload_bytes_per_day", "16776961").is_none());
    let limits = given("coap_block_bytes", "64").unwrap().limits();
    assert_eq!(limits.block.bytes(), 64);
}

#[test]
fn a_variable_with_our_prefix_that_is_no_setting_is_reported_and_not_refused() {
    let mut layers = Layers::of_defaults();
    layers.add_environment(variables(&[("SIGNALBOX_SERVICE_HOST", "10.0.0.1")]));
    assert!(Config::of(&layers).is_ok());
    assert_eq!(layers.strangers(), ["SIGNALBOX_SERVICE_HOST"]);
    let shown = layers.to_string();
    assert!(shown.ends_with("# environment SIGNALBOX_SERVICE_HOST: unknown setting\n"));
}

fn variables(given: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    given
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect()
}
