//! Does the service keep its promises on PostgreSQL, whichever of both is killed, and does it say
//! what it cannot do there?
//!
//! `TEST_STORE=postgres cargo test --test service` runs the other tests of the service there.

use std::collections::HashSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::http::{Request, Response};
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::poll::until;
use crate::vocabulary::postgres::PostgresServer;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::{Service, signalbox};
use crate::vocabulary::wire::{DeviceSocket, request, update};

const ID: &str = "meter-1";

/// A device that says nothing while requests wait for it.
const SLEEPER: &str = "meter-2";
const SLEEPER_IP: &str = "127.78.1.2";

/// Allows deliveries to the endpoint, and tries often.
const SETTINGS: [(&str, &str); 2] = [
    ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
    (
        "SIGNALBOX_DELIVERY_RETRY_MS",
        "50,100,200,400,800,1600,3200,6400,6400,6400,6400,6400,6400,6400,6400,6400",
    ),
];

#[test]
fn what_was_acknowledged_outlives_kills_of_the_service_and_of_the_database() {
    let mut server = PostgresServer::start();
    let mut service = Service::start_on(&server.create_database(), &SETTINGS);
    service.may_fail();
    let mut caller = Caller::of_new_customer(&service, "Acme");
    let endpoint = Endpoint::new();
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let webhook = json!({ "name": "Values", "url": endpoint.url("/in"), "eventTypes": types });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    caller.post(&webhooks, &webhook).expect(201);
    caller.create_device(ID, DEVICE_IP);
    caller.create_device(SLEEPER, SLEEPER_IP);
    let wire = DeviceSocket::to(&service);
    wire.register(ID, 1);
    let sleeper = DeviceSocket::from(SLEEPER_IP, &service);
    let location = sleeper.register(SLEEPER, 1);
    let action = caller.create_action(SLEEPER, &when_active(read("/3/0/0")));
    assert_eq!(wire.ask(&send(1)).code, Code::CHANGED);
    for round in 2..=3_u16 {
        server.kill();
        let refused = caller.try_action(SLEEPER, &when_active(read("/3/0/1")));
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert!(refused.header("retry-after").is_some());
        until("that it is not ready", || {
            (ready(&service) == 503).then_some(())
        });
        assert_eq!(health(service.http, "/livez").status, 200);
        server.start_again();
        until("that it is ready", || {
            (ready(&service) == 200).then_some(())
        });
        assert_eq!(wire.ask_until_answered(&send(round)).code, Code::CHANGED);
        assert_eq!(caller.action(&action)["status"], "SCHEDULED");
    }
    service.kill();
    service.start_again();
    caller.follow(&service);
    // Its answer may have been lost with the service.
    assert_eq!(wire.ask_until_answered(&send(3)).code, Code::CHANGED);
    assert_eq!(caller.action(&action)["status"], "SCHEDULED");
    sleeper.send(&update(&location, 2).encode());
    until("the request", || {
        sleeper
            .received()
            .into_iter()
            .find(|it| it.code == Code::GET)
    });
    assert_eq!(values_of(&endpoint.once(3)), [1, 2, 3]);
    let messages = format!("{API}/devices/{ID}/messages?type=TELEMETRY_DATA");
    let stored = caller.request("GET", &messages).expect(200);
    assert_eq!(stored["items"].as_array().unwrap().len(), 3);
    let first_contact = "Lifecycle[DeviceFirstTimeRegistered]";
    assert_eq!(caller.log_messages(), [first_contact; 2]);
    assert!(service.stop().success());
}

#[test]
fn a_start_waits_for_the_database_and_says_so() {
    let mut server = PostgresServer::start();
    let database = server.create_database();
    server.stop();
    let folder = TempDir::new().unwrap();
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let http = free.local_addr().unwrap();
    drop(free);
    let mut command = served(&folder, &database);
    let mut service = Program::start(command.args(["--http", &http.to_string()]));
    service.wait_for("that it waits", |line| {
        line.contains("waiting for the server of the store")
            .then_some(())
    });
    let alive = until("its health", || {
        Request::new("GET", "/livez").try_send(http).ok()
    });
    assert_eq!(alive.status, 200);
    for path in ["/readyz", "/management-api/v1/devices"] {
        let refused = health(http, path);
        assert_eq!(refused.status, 503, "{path}");
        assert_eq!(refused.header("retry-after"), Some("5"));
        assert!(
            refused
                .text()
                .contains("the PostgreSQL server cannot be reached")
        );
    }
    server.start_again();
    service.wait_for("where it listens", |line| {
        line.starts_with("listening udp=").then_some(())
    });
    assert_eq!(health(http, "/readyz").status, 200);
    service.terminate();
    assert!(service.ended().success());
}

#[test]
fn what_stays_refused_ends_the_start_at_once_and_is_named() {
    let server = PostgresServer::start();
    let absent = server.create_database();
    let database = absent.rsplit('/').next().unwrap();
    server.run("postgres", &format!("DROP DATABASE {database}"));
    let folder = TempDir::new().unwrap();
    fails(
        &folder,
        &absent,
        1,
        &[&format!("database \"{database}\" does not exist")],
    );
    let with_tls = format!("{absent}?sslmode=require");
    fails(&folder, &with_tls, 1, &["server does not support TLS"]);
    let with_password = absent.replace("signalbox@", "signalbox:s3cret@");
    fails(&folder, &with_password, 1, &["does not exist"]);

    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap();
    let mut service = Service::start_on(&url, &[]);
    assert!(service.stop().success());
    // Another data directory has no key for what is in the database.
    fails(&folder, &url, 1, &["the file master-key is missing"]);
    assert!(!folder.path().join("master-key").exists());
    let key = folder.path().join("master-key");
    fs::write(&key, "11".repeat(32)).unwrap();
    fails(&folder, &url, 1, &["the master key of this node is not"]);
    fs::remove_file(&key).unwrap();
    let newer = "INSERT INTO schema_history SELECT 999, 'later', applied_on, checksum \
                 FROM schema_history LIMIT 1";
    server.run(database, newer);
    fails(&folder, &url, 1, &["written by a newer version", "999"]);
}

#[test]
fn the_database_is_used_over_tls_with_a_certificate_that_is_trusted() {
    let files = TempDir::new().unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = files.path().join("server.crt");
    fs::write(&certificate, certified.cert.pem()).unwrap();
    let key = certified.signing_key.serialize_pem();
    fs::write(files.path().join("server.key"), key).unwrap();
    let server = PostgresServer::start_with_tls(files.path());
    let of_another_name = server.create_database() + "?sslmode=verify-full";
    let url = of_another_name.replace("127.0.0.1", "localhost");
    let trusted = ("SIGNALBOX_STORE_CA_FILE", certificate.to_str().unwrap());
    let mut service = Service::start_on(&url, &[trusted]);
    let caller = Caller::of_new_customer(&service, "Acme");
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    wire.register(ID, 1);
    assert_eq!(wire.ask(&send(1)).code, Code::CHANGED);
    let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE application_name = 'signalbox' AND NOT ssl";
    assert_eq!(server.run("postgres", plain), "0\n");
    assert!(service.stop().success());
    // Nobody vouches for the server, or it has another name.
    let folder = TempDir::new().unwrap();
    fails(
        &folder,
        &url,
        1,
        &["invalid peer certificate: UnknownIssuer"],
    );
    let mut command = served(&folder, &of_another_name);
    command.env(trusted.0, trusted.1);
    ends(&mut command, 1, &["certificate not valid for name"]);
}

#[test]
fn a_pooler_in_session_mode_stands_between_the_service_and_its_database() {
    let server = PostgresServer::start();
    let direct = server.create_database();
    let mut pooler = Pooler::start(&server);
    let url = direct.replace(&server.port().to_string(), &pooler.port.to_string());
    let mut service = Service::start_on(&url, &[]);
    service.may_fail();
    let mut caller = Caller::of_new_customer(&service, "Acme");
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    wire.register(ID, 1);
    assert_eq!(wire.ask(&send(1)).code, Code::CHANGED);
    pooler.kill();
    until("that it is not ready", || {
        (ready(&service) == 503).then_some(())
    });
    pooler.start_again();
    until("that it is ready", || {
        (ready(&service) == 200).then_some(())
    });
    assert_eq!(wire.ask_until_answered(&send(2)).code, Code::CHANGED);
    service.kill();
    service.start_again();
    caller.follow(&service);
    assert_eq!(wire.ask_until_answered(&send(3)).code, Code::CHANGED);
    assert_eq!(stored_values(&caller), [1, 2, 3]);
}

#[test]
fn a_database_that_is_restored_to_a_time_is_gone_on_with() {
    let mut server = PostgresServer::start_with_archive();
    let url = server.create_database();
    let mut service = Service::start_on(&url, &SETTINGS);
    let mut caller = Caller::of_new_customer(&service, "Acme");
    let endpoint = Endpoint::new();
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let webhook = json!({ "name": "Values", "url": endpoint.url("/in"), "eventTypes": types });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    caller.post(&webhooks, &webhook).expect(201);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = wire.register(ID, 1);
    assert_eq!(wire.ask(&send(1)).code, Code::CHANGED);
    server.save();
    assert_eq!(wire.ask(&send(2)).code, Code::CHANGED);
    let kept = caller.create_action(ID, &when_active(read("/3/0/0")));
    endpoint.once(2);
    let time = server.run("postgres", "SELECT clock_timestamp()");
    // What happens from here on is given up.
    assert_eq!(wire.ask(&send(3)).code, Code::CHANGED);
    let lost = caller.create_action(ID, &when_active(read("/3/0/1")));
    caller.create_device("late", SLEEPER_IP);
    endpoint.once(3);
    assert!(service.stop().success());
    server.restore(time.trim());

    service.start_again();
    caller.follow(&service);
    assert_eq!(stored_values(&caller), [1, 2]);
    assert_eq!(caller.action(&kept)["status"], "SCHEDULED");
    let lost = format!("{API}/integrate/devices/actions/requests/{lost}");
    assert_eq!(caller.request("GET", &lost).status, 404);
    // A device says what it said, with the location that it has, and more.
    for message in [send(3), send(4), update(&location, 5)] {
        assert_eq!(wire.ask_among_others(&message).code, Code::CHANGED);
    }
    assert_eq!(wire.receive_request().code, Code::GET);
    assert_eq!(stored_values(&caller), [1, 2, 3, 4]);
    let is_last = |posted: &[ReceivedPost]| values_of(posted).contains(&4);
    let posted = values_of(&endpoint.once_so("the last value", is_last));
    assert!(posted.ends_with(&[3, 4]), "{posted:?}");
    caller.create_device("late", SLEEPER_IP);
    assert!(service.stop().success());
}

#[test]
fn commands_for_the_embedded_store_say_what_to_use_instead() {
    let server = PostgresServer::start();
    let database = server.create_database();
    let service = Service::start_on(&database, &[]);
    let file = service.data_dir().join("file");
    let file = file.to_str().unwrap();
    for (arguments, status, instead) in [
        (&["check"][..], 2, "pg_amcheck"),
        (&["backup", "--to", file], 1, "pg_dump"),
        (&["restore", "--from", file], 1, "pg_restore"),
    ] {
        let mut command = signalbox();
        command.args(arguments).env("SIGNALBOX_STORE", &database);
        let output = command
            .arg("--data-dir")
            .arg(service.data_dir())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(
            error.contains("the store is on PostgreSQL") && error.contains(instead),
            "{error}"
        );
    }
    let operator = Caller::operator(&service);
    let refused = operator
        .request("GET", "/operator-api/v1/backup")
        .expect(409);
    assert_eq!(refused["errors"][0]["code"], "BACKUP_OF_DATABASE");
    assert!(text(&refused["errors"][0]["message"]).contains("pg_dump"));
    let metrics = health(service.http, "/metrics");
    let metrics = metrics.text();
    assert!(metrics.contains("signalbox_store_commits_total"));
    assert!(
        !metrics.contains("signalbox_store_disk_free_bytes"),
        "the disk is not ours"
    );
}

#[test]
fn a_service_goes_on_with_a_changed_master_key() {
    let server = PostgresServer::start();
    let database = server.create_database();
    let mut service = Service::start_on(&database, &[]);
    let mut caller = Caller::of_new_customer(&service, "Acme");
    caller.create_device(ID, DEVICE_IP);
    let generate = format!("{API}/devices/{ID}/psk/generate");
    let generate = caller.authorized("POST", &generate);
    let generate = generate.header("idempotency-key", "one").json(&json!({}));
    let key = generate.send(caller.address()).expect(201);
    assert!(service.stop().success());
    let old = std::fs::read(service.data_dir().join("master-key")).unwrap();
    let mut rekey = signalbox();
    rekey.arg("rekey").env("SIGNALBOX_STORE", &database);
    rekey.arg("--data-dir").arg(service.data_dir());
    // The key of the service, that of the device, and the response with it.
    let printed = Program::start(&mut rekey).finish().join("\n");
    assert!(printed.starts_with("3 secrets encrypted"), "{printed}");
    assert_ne!(
        std::fs::read(service.data_dir().join("master-key")).unwrap(),
        old
    );
    service.start_again();
    caller.follow(&service);
    assert_eq!(generate.send(caller.address()).expect(201), key);
}

/// A Send of a value.
pub(super) fn send(value: u16) -> Message {
    let send = request(Code::POST, value + 10).with_uri_path(["dp"]);
    let send = send.with_content_format(ContentFormat::SENML_JSON);
    send.with_payload(format!(r#"[{{"n":"/3/0/9","v":{value}}}]"#))
}

/// The values of the events of some posts. An event is posted again with its id after a restart.
pub(super) fn values_of(posted: &[ReceivedPost]) -> Vec<u64> {
    let mut seen = HashSet::new();
    let mut events: Vec<Value> = posted.iter().map(ReceivedPost::json).collect();
    events.retain(|event| seen.insert(text(&event["id"])));
    let values = events.iter().map(|it| &it["payload"]["value"]["/3/0/9"]);
    values.map(|value| value.as_u64().unwrap()).collect()
}

/// PgBouncer in front of a server.
struct Pooler {
    files: TempDir,
    program: Program,
    port: u16,
}

impl Pooler {
    fn start(server: &PostgresServer) -> Self {
        let files = TempDir::new().unwrap();
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let users = files.path().join("users");
        fs::write(&users, "\"signalbox\" \"\"\n").unwrap();
        let options = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = session\n",
            server.port(),
            users.display()
        );
        fs::write(files.path().join("pgbouncer.ini"), options).unwrap();
        let program = Self::run(&files);
        Self {
            files,
            program,
            port,
        }
    }

    fn run(files: &TempDir) -> Program {
        let options = files.path().join("pgbouncer.ini");
        // It refuses to run as root.
        let mut command = Command::new("sh");
        let script = "[ $(id -u) != 0 ] || { chown -R postgres \"$1\"; as='-u postgres'; }; \
                      PATH=$PATH:/usr/sbin exec pgbouncer $as \"$2\"";
        command.args(["-c", script, "pgbouncer"]);
        let mut program = Program::start(command.arg(files.path()).arg(options));
        program.wait_for("that it runs", |line| {
            line.contains("process up").then_some(())
        });
        program
    }

    fn kill(&mut self) {
        self.program.kill();
    }

    fn start_again(&mut self) {
        self.program = Self::run(&self.files);
    }
}

/// The values of the device that are stored, the oldest first.
fn stored_values(caller: &Caller) -> Vec<u64> {
    let messages = format!("{API}/devices/{ID}/messages?type=TELEMETRY_DATA");
    let stored = caller.request("GET", &messages).expect(200);
    let stored = stored["items"].as_array().unwrap().iter().rev();
    stored.map(value_of).collect()
}

/// The value in a stored message.
pub(super) fn value_of(message: &Value) -> u64 {
    message["payload"]["value"]["/3/0/9"].as_u64().unwrap()
}

fn health(http: SocketAddr, path: &str) -> Response {
    Request::new("GET", path).send(http)
}

fn ready(service: &Service) -> u16 {
    health(service.http, "/readyz").status
}

/// A service on a database, at ports of its own.
fn served(folder: &TempDir, database: &str) -> Command {
    let mut command = signalbox();
    command.args(["serve", "--coap", "127.0.0.1:0", "--coaps", "127.0.0.1:0"]);
    command
        .args(["--udp", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path());
    command.env("SIGNALBOX_STORE", database);
    command
}

/// The start ends by itself, and says why, without a password.
fn fails(folder: &TempDir, database: &str, status: i32, why: &[&str]) {
    ends(&mut served(folder, database), status, why);
}

fn ends(command: &mut Command, status: i32, why: &[&str]) {
    let output: Output = command.args(["--http", "127.0.0.1:0"]).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert_eq!(output.status.code(), Some(status), "{printed}");
    for part in why {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(
        !printed.contains("waiting for") && !printed.contains("s3cret"),
        "{printed}"
    );
}
