//! Does `signalbox load` generate load, count and judge? The real load against the real service.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/vocabulary.rs"]
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use vocabulary::caller::{API, Caller};
use vocabulary::program::Program;
use vocabulary::service::{Service, signalbox};

/// The devices of a load: enough to fill every batch.
const DEVICES: u64 = 2_000;

/// A service that accepts a known name from any address.
const SETTINGS: [(&str, &str); 1] = [("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")];

/// Webhooks may be at private addresses.
const PRIVATE: (&str, &str) = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");

/// The pre-shared key of the devices.
const PSK: &str = "00112233445566778899aabbccddeeff";

/// A tenth of all datagrams is lost, and devices repeat them quickly and often, so that every
/// request gets through.
const LOSSY: [&str; 6] = [
    "--loss",
    "10",
    "--ack-timeout-ms",
    "50",
    "--max-retransmit",
    "9",
];

#[test]
fn a_load_imports_registers_updates_sends_and_requests() {
    let setup = TestService::open();
    let registered = setup.load(&["--scenario", "register", "--import"]).passed();
    assert_eq!(registered["import"]["known"], DEVICES);
    assert_eq!(registered["registered"], DEVICES);
    assert_eq!(registered["registration"], Value::Null);
    check(&registered, DEVICES);

    let window = ["--scenario", "update", "--window", "64", "--duration", "1s"];
    let updated = setup.load(&window).passed();
    assert_eq!(updated["registered"], DEVICES);
    assert_eq!(updated["registration"]["answered"], DEVICES);
    let sent = updated["measurement"]["sent"].as_u64().unwrap();
    assert!(sent >= 64, "a window of 64 is filled at once: {sent}");
    check(&updated, sent);

    let rounds = ["--duration", "200ms", "--rounds", "2"];
    let rounds = setup.load(&[&["--scenario", "update"], &rounds[..]].concat());
    let rounds = rounds.passed();
    assert_eq!(rounds.as_array().map(Vec::len), Some(2));
    for round in rounds.as_array().unwrap() {
        check(round, round["measurement"]["sent"].as_u64().unwrap());
    }

    let rate = ["--scenario", "update", "--rate", "400", "--duration", "1s"];
    let rate = [&rate[..], &["--workers", "2"], &LOSSY].concat();
    let updated = setup.load(&rate).passed();
    check(&updated, 400);
    for count in ["retransmissions", "dropped"] {
        let found = updated["measurement"][count].as_u64().unwrap();
        assert!(found > 40, "{count}: {found} of 400 requests at 10 %");
    }

    let rate = ["--scenario", "send", "--rate", "400", "--duration", "1s"];
    let sent = setup.load(&rate).passed();
    check(&sent, 400);

    for mode in ["now", "when-active"] {
        let rate = ["--rate", "100", "--duration", "1s", "--request-mode", mode];
        let actions = setup.load(&[&["--scenario", "actions"], &rate[..]].concat());
        let actions = actions.passed();
        check(&actions, 100);
        assert_eq!(actions["actions"]["accepted"], 100);
        assert_eq!(actions["actions"]["succeeded"], 100);
        assert!(actions["actions"]["seenFinalMs"]["count"].as_u64().unwrap() > 0);
        let received = actions["measurement"]["requestsOfServer"].as_u64().unwrap();
        assert!(
            received >= 100,
            "a server may repeat itself, no more: {received}"
        );
    }
}

#[test]
fn devices_over_dtls_keep_their_sessions_and_their_books() {
    let setup = TestService::with(&[]);
    let coaps = format!("coaps://{}", setup.service.coaps);
    let coaps = ["--target", &coaps, "--psk", PSK, "--devices", "300"];
    let load = |options: &[&str]| setup.load(&[&coaps[..], options].concat()).passed();
    let registered = load(&["--scenario", "register", "--import", "--workers", "2"]);
    check(&registered, 300);
    assert_eq!(registered["import"]["known"], 300);
    assert_eq!(registered["measurement"]["handshakes"], 300);
    assert_eq!(registered["options"]["target"], coaps[1]);
    assert!(!registered.to_string().contains(PSK), "{registered:#}");

    let send = ["--scenario", "send", "--rate", "400", "--duration", "1s"];
    let sent = load(&[&send[..], &LOSSY].concat());
    check(&sent, 400);
    assert_eq!(sent["registration"]["handshakes"], 300, "{sent:#}");
    assert_eq!(sent["measurement"]["handshakes"], 0, "{sent:#}");
    assert_eq!(sent["books"]["acknowledged"], 400, "{sent:#}");
    assert_eq!(sent["books"]["history"]["found"], 400, "{sent:#}");

    let actions = ["--scenario", "actions", "--rate", "100", "--duration", "1s"];
    let actions = load(&actions);
    check(&actions, 100);
    assert_eq!(actions["actions"]["succeeded"], 100, "{actions:#}");

    let rate = ["--rate", "200", "--duration", "1s"];
    let handshakes = load(&[&["--scenario", "handshake"], &rate[..]].concat());
    check(&handshakes, 200);
    assert_eq!(handshakes["measurement"]["handshakes"], 200);

    // A Connection ID names the session of a device at its new port.
    let storm = load(&["--scenario", "storm"]);
    check(&storm, 300);
    assert_eq!(storm["storm"]["back"], 300);
    assert_eq!(storm["measurement"]["handshakes"], 0, "{storm:#}");
}

#[test]
fn devices_with_another_key_fail_in_their_handshakes() {
    let setup = TestService::with(&[]);
    let coaps = format!("coaps://{}", setup.service.coaps);
    let load = |options: &[&str]| {
        let all = [
            "--target",
            &coaps,
            "--devices",
            "3",
            "--scenario",
            "register",
        ];
        setup.load(&[&all[..], options].concat())
    };
    load(&["--psk", PSK, "--import"]).passed();
    let output = load(&["--psk", "00"]).output;
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    let words = "registered none of the devices: handshake 3";
    assert!(error.contains(words), "{error}");
}

#[test]
fn the_books_of_a_mix_agree_in_the_history_and_at_a_webhook() {
    let setup = TestService::with(&[SETTINGS[0], PRIVATE]);
    setup.load(&["--scenario", "register", "--import"]).passed();
    let mixed = ["--scenario", "mixed", "--rate", "600", "--duration", "2s"];
    let shares = [
        "--shares",
        "register=1,update=2,send=2,actions=1",
        "--webhook",
    ];
    // Without loss: a server's request is lost once in a while, in spite of its retransmissions.
    let options = [&mixed[..], &shares, &["--workers", "2", "--seed", "1"]].concat();
    let report = setup.load(&options).passed();
    assert_eq!(report["errorCount"], 0, "{report:#}");
    assert_eq!(report["measurement"]["answered"], 1_200, "{report:#}");
    assert_eq!(report["actions"]["succeeded"], 200, "{report:#}");
    let count = |request: &str| {
        let answered = &report["measurement"]["byRequest"][request]["count"];
        answered.as_u64().unwrap_or_else(|| panic!("{report:#}"))
    };
    let (register, update, send) = (count("register"), count("update"), count("send"));
    assert_eq!(register + update + send, 1_000);
    assert!(register > 100 && update > 300 && send > 300, "{report:#}");
    let books = &report["books"];
    assert_eq!(books["acknowledged"], send);
    for place in ["history", "webhook"] {
        assert_eq!(books[place]["found"], send, "{books:#}");
        for fault in ["missing", "doubled", "unacknowledged"] {
            assert_eq!(books[place][fault], 0, "{fault} in {books:#}");
        }
    }
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    let left = setup.caller.request("GET", &webhooks).expect(200);
    assert_eq!(left["items"].as_array().map(Vec::len), Some(0), "{left}");
}

#[test]
fn an_acknowledged_send_that_is_not_in_the_history_ends_with_status_1() {
    let setup = TestService::open();
    let few = [
        "--scenario",
        "send",
        "--devices",
        "20",
        "--import",
        "--progress",
    ];
    let time = ["--rate", "200", "--duration", "1h"];
    let (mut load, report) = setup.start_load(&[&few[..], &time].concat());
    load.wait_for("its progress", sending);
    // The history of a device is deleted with it.
    let device = format!("{API}/devices/{:019}", 7);
    assert_eq!(setup.caller.request("DELETE", &device).status, 204);
    load.interrupt();
    assert_eq!(load.ended().code(), Some(1), "{:?}", load.printed());
    let report = read(&report);
    let books = &report["books"];
    let missing = books["history"]["missing"].as_u64().unwrap();
    assert!(missing > 0, "{books:#}");
    let first = &books["history"]["firstMissing"][0]["device"];
    assert_eq!(first, &format!("{:019}", 7), "{books:#}");
    let words = format!("{missing} acknowledged Sends are missing in the history");
    let fault = report["missedBounds"][0].as_str().unwrap();
    assert!(fault.starts_with(&words), "{fault}");
    let printed = load.printed().join("\n");
    assert!(printed.contains(&words), "{printed}");
}

#[test]
fn an_interrupted_load_prints_its_report() {
    let setup = TestService::open();
    let few = [
        "--scenario",
        "send",
        "--devices",
        "50",
        "--import",
        "--progress",
    ];
    let time = ["--window", "8", "--duration", "1h"];
    let (mut load, report) = setup.start_load(&[&few[..], &time].concat());
    load.wait_for("its progress", sending);
    load.interrupt();
    assert_eq!(load.ended().code(), Some(0), "{:?}", load.printed());
    let report = read(&report);
    assert_eq!(report["interrupted"], true, "{report:#}");
    let sent = report["measurement"]["sent"].as_u64().unwrap();
    assert!(sent > 0, "{report:#}");
    check(&report, sent);
    assert_eq!(report["books"]["acknowledged"], sent);
    assert_eq!(report["books"]["history"]["found"], sent);
    assert!(report["measurement"]["seconds"].as_f64().unwrap() < 3_600.0);
    let printed = load.printed().join("\n");
    assert!(
        printed.contains("send: 50 devices, 50 registered"),
        "{printed}"
    );
    assert!(printed.contains("interrupted"), "{printed}");
}

#[test]
fn all_devices_return_at_once_after_an_outage() {
    let setup = TestService::open();
    let storm = ["--scenario", "storm", "--import", "--workers", "2"];
    let report = setup.load(&[&storm[..], &LOSSY].concat()).passed();
    check(&report, DEVICES);
    assert_eq!(report["registration"]["answered"], DEVICES);
    assert_eq!(report["storm"]["back"], DEVICES);
    let until_back = &report["storm"]["secondsUntilAllBack"];
    assert_eq!(until_back, &report["measurement"]["seconds"]);
    assert!(until_back.as_f64().unwrap() > 0.0, "{report:#}");
}

#[test]
fn sleeping_devices_take_their_actions_when_they_wake() {
    let setup = TestService::open();
    let devices = ["--devices", "100", "--import"];
    let sleep = ["--sleep", "400ms", "--awake", "100ms", "--duration", "2s"];
    let update = [&["--scenario", "update"][..], &devices, &sleep].concat();
    let updated = setup.load(&update).passed();
    let updates = updated["measurement"]["answered"].as_u64().unwrap();
    assert!(updates > 100, "each wakes more than once: {updated:#}");
    check(&updated, updates);

    let actions = ["--scenario", "actions", "--rate", "50"];
    let actions = setup
        .load(&[&actions[..], &devices, &sleep].concat())
        .passed();
    check(&actions, 100);
    assert_eq!(actions["options"]["requestMode"], "SEND_WHEN_ACTIVE");
    assert_eq!(actions["actions"]["succeeded"], 100, "{actions:#}");
}

#[test]
fn an_html_report_has_its_charts_and_the_json_report_beside_it() {
    let setup = TestService::open();
    let html = setup.reports.path().join("report.html");
    let name = html.to_str().unwrap();
    let send = ["--scenario", "send", "--devices", "100", "--import"];
    let rounds = ["--rate", "500", "--duration", "1s", "--rounds", "2"];
    let load = setup.load(&[&send[..], &rounds, &LOSSY, &["--report", name]].concat());
    let reports = load.passed();
    let [first, second] = reports.as_array().unwrap().as_slice() else {
        panic!("{reports:#}");
    };
    check(first, 500);
    assert_eq!(second["books"]["history"]["found"], 1_000, "{second:#}");
    assert_eq!(second["books"]["history"]["doubled"], 0, "{second:#}");
    let timeline = &second["measurement"]["timeline"];
    let answered = timeline["answered"].as_array().unwrap();
    assert_eq!(answered.iter().filter_map(Value::as_u64).sum::<u64>(), 500);
    let page = fs::read_to_string(&html).unwrap();
    assert_eq!(
        page.matches("<svg").count(),
        6,
        "three charts of each round"
    );
    for words in [
        "Load test: send, round 2",
        "All 1,000 acknowledged Sends are in the history.",
        "aria-label=\"Latency by percentile, ms\"",
    ] {
        assert!(page.contains(words), "{words} in {page}");
    }
    for foreign in ["http://", "https://", "src=", "@import", "<script"] {
        let places = page.matches(foreign).count();
        let of_options = page.matches("<td>http://127.").count();
        let allowed = if foreign == "http://" { of_options } else { 0 };
        assert_eq!(places, allowed, "{foreign}");
    }
}

#[test]
fn a_missed_bound_is_reported_and_ends_with_status_1() {
    let setup = TestService::open();
    // The second half of the devices was not created.
    let half = setup.load(&["--scenario", "register", "--import", "--devices", "1000"]);
    assert_eq!(half.passed()["registered"], 1_000);
    let bounds = [
        "--max-errors",
        "999",
        "--min-rate",
        "1e9",
        "--max-p99-ms",
        "0",
    ];
    let scenario = ["--scenario", "register", "--window", "500"];
    let missed = setup.load(&[&scenario[..], &bounds].concat());
    assert_eq!(missed.output.status.code(), Some(1));
    let report = missed.report();
    assert_eq!(report["registered"], 1_000);
    assert_eq!(report["measurement"]["errors"]["4.03"], 1_000);
    assert_eq!(report["errorCount"], 1_000);
    let error = String::from_utf8(missed.output.stderr.clone()).unwrap();
    for (place, bound) in [
        "--max-p99-ms 0",
        "--min-rate 1000000000",
        "--max-errors 999",
    ]
    .into_iter()
    .enumerate()
    {
        let words = format!("{bound} is missed");
        assert!(error.contains(&words), "{error}");
        let listed = report["missedBounds"][place].as_str().unwrap();
        assert!(listed.starts_with(&words), "{report}");
    }
    let met = ["--max-errors", "1000", "--min-rate", "1"];
    setup.load(&[&scenario[..], &met].concat()).passed();
}

#[test]
fn a_load_without_any_answer_ends_with_status_1() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = format!("coap://{}", silent.local_addr().unwrap());
    let words = ["load", "--target", &target, "--devices", "3"];
    let impatient = ["--ack-timeout-ms", "10", "--max-retransmit", "1"];
    let mut load = signalbox();
    load.args(words)
        .args(["--scenario", "update"])
        .args(impatient);
    let output = load.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("registered none of the devices: timeout 3"),
        "{error}"
    );
}

#[test]
fn a_command_line_that_makes_no_sense_ends_with_status_2() {
    for words in [
        &["load"][..],
        &[
            "load",
            "--target",
            "coap://127.0.0.1:1",
            "--devices",
            "1",
            "--scenario",
            "everything",
        ],
        &[
            "load",
            "--target",
            "127.0.0.1:1",
            "--devices",
            "1",
            "--scenario",
            "update",
        ],
    ] {
        let output = signalbox().args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
    let help = signalbox().args(["load", "--help"]).output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(
        !String::from_utf8(help.stdout)
            .unwrap()
            .contains("--data-dir")
    );
}

/// A service, and a caller of its API.
struct TestService {
    service: Service,
    caller: Caller,
    reports: TempDir,
}

/// A load that has ended.
struct Load {
    output: Output,
    report: PathBuf,
}

impl TestService {
    fn open() -> Self {
        Self::with(&SETTINGS)
    }

    fn with(settings: &[(&str, &str)]) -> Self {
        let service = Service::start_with(settings);
        let caller = Caller::of_new_customer(&service, "Acme");
        let reports = TempDir::new().unwrap();
        Self {
            service,
            caller,
            reports,
        }
    }

    /// Loads the service; later options take precedence.
    fn load(&self, options: &[&str]) -> Load {
        let (mut load, report) = self.command(options);
        let output = load.output().unwrap();
        Load { output, report }
    }

    /// Starts to load the service; returns the file of the report, too.
    fn start_load(&self, options: &[&str]) -> (Program, PathBuf) {
        let (mut load, report) = self.command(options);
        (Program::start(&mut load), report)
    }

    fn command(&self, options: &[&str]) -> (Command, PathBuf) {
        let report = self.reports.path().join("report.json");
        let devices = match options.contains(&"--devices") {
            true => vec![],
            false => vec!["--devices".to_owned(), DEVICES.to_string()],
        };
        let target = match options.contains(&"--target") {
            true => vec![],
            false => vec![
                "--target".to_owned(),
                format!("coap://{}", self.service.coap),
            ],
        };
        let mut load = signalbox();
        load.arg("load")
            .args(target)
            .args(["--api", &format!("http://{}", self.service.http)])
            .args(["--token", self.caller.token()])
            .args(devices)
            .args(options);
        if !options.contains(&"--report") {
            load.arg("--report").arg(&report);
        }
        (load, report)
    }
}

impl Load {
    fn report(&self) -> Value {
        read(&self.report)
    }

    /// The report of a load that missed no bound.
    fn passed(&self) -> Value {
        let error = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.output.status.code(), Some(0), "{error}");
        self.report()
    }
}

fn read(report: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap()
}

/// Whether a line of progress says that Sends have been answered.
fn sending(line: &str) -> Option<()> {
    let answered = line.strip_prefix("sending ")?.split_once(": ")?.1;
    let answered: u64 = answered.split(' ').next()?.parse().ok()?;
    (answered > 0).then_some(())
}

/// Checks that each of this many requests was answered.
fn check(report: &Value, requests: u64) {
    let measured = &report["measurement"];
    assert_eq!(report["errorCount"], 0, "{report:#}");
    assert_eq!(measured["sent"], requests, "{report:#}");
    assert_eq!(measured["answered"], requests, "{report:#}");
    assert_eq!(measured["latencyMs"]["count"], requests, "{report:#}");
}
