//! Are events delivered to Eclipse Mosquitto, and commands of it performed, whatever happens to the
//! broker or the service?

mod commands;
mod tls;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use protocol::coap::code::Code;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::plain::{coap, data};
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::DeviceSocket;

/// Five tries in a fraction of a second.
pub(crate) const QUICK: (&str, &str) = ("SIGNALBOX_DELIVERY_RETRY_MS", "50,50,50,50");

/// So many tries that no test reaches the last one.
pub(crate) const STEADY: (&str, &str) = (
    "SIGNALBOX_DELIVERY_RETRY_MS",
    "100,200,400,800,1600,3200,3200,3200,3200,3200,3200,3200,3200,3200,3200,3200",
);

/// A message may take half a second.
const BRIEF: (&str, &str) = ("SIGNALBOX_DELIVERY_TIMEOUT_MS", "500");

#[test]
fn events_arrive_in_order_at_the_topics_of_their_device() {
    for version in [5, 3] {
        let setup = MqttService::with(&[]);
        let broker = Mosquitto::start("allow_anonymous true");
        let mut subscriber = broker.subscriber("acme/#", &[]);
        let made = setup.create(&broker, &json!({ "version": version }));
        let tested = setup.ask(&made, "test", 200);
        assert_eq!(tested["delivered"], true, "{tested}");
        let test = subscriber.next("acme/test");
        assert_eq!(test["type"], "TEST_MESSAGE");
        let mut meter = setup.meter("urn:dev+1", "127.77.1.1");
        for value in 1..=50 {
            meter.send(value);
        }
        let events = subscriber.values("acme/urn:dev%2B1/telemetry", 50);
        assert_eq!(events, Vec::from_iter(1..=50));
        let shown = setup.once_in(&made, "INTEGRATION_ACTIVE");
        assert_eq!(shown["version"], version);
        assert_eq!(shown.get("failureReason"), None);
        until("an empty backlog", || {
            let shown = setup.caller.request("GET", &made).expect(200);
            (shown["backlog"]["waiting"] == 0).then_some(())
        });
    }
}

#[test]
fn events_of_every_type_have_topics_of_their_own() {
    let brief = ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "500");
    let setup = MqttService::with(&[brief, ("SIGNALBOX_COAP_MAX_RETRANSMIT", "1")]);
    let broker = Mosquitto::start("allow_anonymous true");
    let mut subscriber = broker.subscriber("acme/#", &[]);
    let types = ["TELEMETRY_DATA", "LIFECYCLE", "ERROR", "ACTION_RESULT"];
    let types: Vec<Value> = types.iter().map(|it| json!({ "type": it })).collect();
    setup.create(&broker, &json!({ "eventTypes": types }));
    setup.caller.create_device("lamp", "127.77.1.9");
    let wire = DeviceSocket::from("127.77.1.9", &setup.service);
    wire.register("lamp", 1);
    let event = subscriber.next("acme/lamp/lifecycle");
    assert_eq!(event["lifecycle"]["type"], "FIRST_CONTACT");
    let event = subscriber.next("acme/lamp/lifecycle");
    assert_eq!(event["lifecycle"]["type"], "REGISTERED");
    assert_eq!(event["device"]["iccid"], "lamp");
    let mut request = coap("GET", "/", 9);
    request["expiresIn"] = json!(1);
    let path = format!("{API}/integrate/devices/lamp/actions/COAP");
    let created = setup.caller.post(&path, &request).expect(202);
    let event = subscriber.next("acme/lamp/action");
    assert_eq!(event["action"]["requestId"], created["id"]);
    let event = subscriber.next("acme/lamp/error");
    assert_eq!(event["type"], "ERROR");
}

#[test]
fn events_wait_for_a_broker_that_is_away() {
    let setup = MqttService::with(&[STEADY]);
    let mut broker = Mosquitto::start("allow_anonymous true");
    broker.stop();
    let made = setup.create(&broker, &json!({}));
    let mut meter = setup.meter("meter-1", "127.77.1.2");
    for value in 1..=5 {
        meter.send(value);
    }
    broker.start_again();
    let mut subscriber = broker.subscriber("acme/#", &[]);
    let events = subscriber.values("acme/meter-1/telemetry", 5);
    assert_eq!(events, Vec::from_iter(1..=5));
    setup.once_in(&made, "INTEGRATION_ACTIVE");
}

#[test]
fn a_broker_that_stays_away_fails_its_integration_and_gets_the_events_after_a_replay() {
    let setup = MqttService::with(&[QUICK, BRIEF]);
    let mut broker = Mosquitto::start("allow_anonymous true");
    broker.stop();
    let made = setup.create(&broker, &json!({}));
    let mut meter = setup.meter("meter-1", "127.77.1.3");
    meter.send(1);
    let failed = setup.once_in(&made, "INTEGRATION_FAILED");
    assert_eq!(
        failed["failureReason"],
        "the host does not accept connections"
    );
    meter.send(2);
    broker.start_again();
    let mut subscriber = broker.subscriber("acme/#", &[]);
    setup.ask(&made, "deadletters/replay", 202);
    setup.ask(&made, "restart", 200);
    meter.send(3);
    let events = subscriber.values("acme/meter-1/telemetry", 3);
    assert_eq!(events, [1, 2, 3]);
}

#[test]
fn a_broker_that_restarts_in_the_middle_loses_nothing() {
    for version in [5, 3] {
        let setup = MqttService::with(&[STEADY]);
        let mut broker = Mosquitto::start("allow_anonymous true");
        let mut subscriber = broker.subscriber("acme/#", &[]);
        setup.create(&broker, &json!({ "version": version }));
        let mut meters = [
            setup.meter("meter-1", "127.77.1.4"),
            setup.meter("meter-2", "127.77.1.5"),
        ];
        for value in 1..=60 {
            for meter in &mut meters {
                meter.send(value);
            }
            if value % 20 == 10 {
                broker.stop();
                broker.start_again();
            }
        }
        for name in ["meter-1", "meter-2"] {
            let topic = format!("acme/{name}/telemetry");
            let events = subscriber.values(&topic, 60);
            assert_eq!(events, Vec::from_iter(1..=60), "{name}");
        }
    }
}

#[test]
fn an_event_is_published_again_if_a_slow_broker_does_not_acknowledge_it() {
    let setup = MqttService::with(&[STEADY, BRIEF]);
    let broker = Mosquitto::start("allow_anonymous true");
    let mut subscriber = broker.subscriber("acme/#", &[]);
    let made = setup.create(&broker, &json!({}));
    let mut meter = setup.meter("meter-1", "127.77.1.6");
    meter.send(1);
    assert_eq!(subscriber.values("acme/meter-1/telemetry", 1), [1]);
    broker.program.pause();
    meter.send(2);
    // What is given up is counted as a failed delivery.
    until("a failed delivery", || {
        let metrics = setup.caller.request("GET", "/metrics");
        let metrics = metrics.text();
        let failed = metrics.lines().find_map(|line| {
            line.strip_prefix("signalbox_deliveries_total{result=\"not_accepted\"} ")
        });
        failed.filter(|count| *count != "0").map(|_| ())
    });
    broker.program.resume();
    meter.send(3);
    let events = subscriber.values("acme/meter-1/telemetry", 3);
    assert_eq!(events, [1, 2, 3]);
    setup.once_in(&made, "INTEGRATION_ACTIVE");
}

#[test]
fn a_broker_that_refuses_the_login_is_named_until_the_password_is_right() {
    for version in [5, 3] {
        let setup = MqttService::with(&[QUICK]);
        let broker = Mosquitto::with_password("meters", "open sesame");
        let login = ["-u", "meters", "-P", "open sesame"];
        let mut subscriber = broker.subscriber("acme/#", &login);
        let wrong = json!({ "version": version, "username": "meters", "password": "sesame" });
        let made = setup.create(&broker, &wrong);
        let mut meter = setup.meter("meter-1", "127.77.1.7");
        meter.send(1);
        let failed = setup.once_in(&made, "INTEGRATION_FAILED");
        assert_eq!(failed["password"], "***");
        let reason = "the broker refused the connection: not authorized";
        assert_eq!(failed["failureReason"], reason);
        let entries = setup.caller.log_entries();
        let disabled = "CloudIntegrator[IntegrationDisabled]";
        let entry = entries.iter().find(|entry| entry["message"] == disabled);
        let why = text(&entry.unwrap()["description"]);
        assert!(why.contains(reason), "{why}");
        assert!(!why.contains("sesame"), "{why}");
        let right = json!({ "password": "open sesame" });
        let amended = setup.caller.try_send("PATCH", &made, &right);
        amended.unwrap().expect(200);
        setup.ask(&made, "deadletters/replay", 202);
        setup.ask(&made, "restart", 200);
        assert_eq!(subscriber.values("acme/meter-1/telemetry", 1), [1]);
        setup.once_in(&made, "INTEGRATION_ACTIVE");
    }
}

#[test]
fn a_broker_that_refuses_a_topic_is_named() {
    let setup = MqttService::with(&[QUICK]);
    let broker = Mosquitto::with_files(
        "allow_anonymous true\nacl_file {folder}/acl",
        &[("acl", "topic read #\ntopic write other/#\n")],
    );
    let made = setup.create(&broker, &json!({}));
    setup.meter("meter-1", "127.77.1.8").send(1);
    let failed = setup.once_in(&made, "INTEGRATION_FAILED");
    let reason = "the broker refused the event: not authorized";
    assert_eq!(failed["failureReason"], reason);
    let tested = setup.ask(&made, "test", 200);
    assert_eq!(tested["message"], reason);
}

#[test]
fn a_lost_connection_is_shown_while_events_wait_for_the_broker() {
    let setup = MqttService::with(&[STEADY, BRIEF]);
    let mut broker = Mosquitto::start("allow_anonymous true");
    let made = setup.create(&broker, &json!({}));
    let shown = setup.caller.request("GET", &made).expect(200);
    assert_eq!(shown["connected"], false, "there is nothing to publish");
    assert_eq!(shown.get("lastError"), None);
    let mut meter = setup.meter("meter-1", "127.77.1.11");
    meter.send(1);
    let connected = |is_connected: bool| {
        until("the connection", || {
            let shown = setup.caller.request("GET", &made).expect(200);
            (shown["connected"] == is_connected).then_some(shown)
        })
    };
    setup.once_in(&made, "INTEGRATION_ACTIVE");
    assert_eq!(connected(true).get("lastError"), None);
    broker.stop();
    assert_ne!(connected(false).get("lastError"), None);
    meter.send(2);
    let refused = until("the reason of the next connection", || {
        let shown = setup.caller.request("GET", &made).expect(200);
        (shown["lastError"] == "the host does not accept connections").then_some(shown)
    });
    assert_eq!(refused["state"], "INTEGRATION_ACTIVE", "{refused}");
    broker.start_again();
    until("an event on a later connection", || {
        let shown = setup.caller.request("GET", &made).expect(200);
        (shown["connected"] == true && shown.get("lastError").is_none()).then_some(())
    });
}

#[test]
fn a_removed_integration_leaves_no_session_at_its_broker() {
    for (version, is_away) in [(5, false), (3, false), (5, true), (3, true)] {
        let setup = MqttService::with(&[]);
        let mut broker = Mosquitto::start("allow_anonymous true\nsys_interval 1");
        let clients = "$SYS/broker/clients/total";
        let mut watcher = broker.subscriber_of(clients, "watcher", &[]);
        let made = setup.create(&broker, &json!({ "version": version, "commands": true }));
        watcher.counts(2);
        if is_away {
            broker.stop();
        }
        assert_eq!(setup.caller.request("DELETE", &made).status, 204);
        if is_away {
            broker.start_again();
            watcher = broker.subscriber_of(clients, "watcher", &[]);
        }
        watcher.counts(1);
    }
}

#[test]
fn acknowledged_values_reach_the_broker_after_kills_of_the_service() {
    let mut setup = MqttService::with(&[STEADY]);
    let broker = Mosquitto::start("allow_anonymous true");
    let mut subscriber = broker.subscriber("acme/#", &[]);
    setup.create(&broker, &json!({}));
    for round in 0..4 {
        let mut meter = match round {
            0 => setup.meter("meter-1", "127.77.1.10"),
            _ => setup.known_meter("127.77.1.10", 1_000 * round),
        };
        for value in 1..=25 {
            meter.send(u32::from(round) * 25 + value);
        }
        setup.service.kill();
        setup.service.start_again();
        setup.caller.follow(&setup.service);
    }
    let events = subscriber.values("acme/meter-1/telemetry", 100);
    assert_eq!(events, Vec::from_iter(1..=100));
}

#[test]
fn a_broker_at_a_private_address_is_not_called_unless_the_operator_allows_it() {
    let mut setup = MqttService::with(&[QUICK]);
    let broker = Mosquitto::start("allow_anonymous true");
    let made = setup.create(&broker, &json!({}));
    setup.service.kill();
    setup.service.start_again_with(&[QUICK]);
    setup.caller.follow(&setup.service);
    let tested = setup.ask(&made, "test", 200);
    assert_eq!(tested["delivered"], false, "{tested}");
    let body = json!({ "name": "Private", "url": "mqtts://127.0.0.1", "topicPrefix": "acme" });
    let refused = setup.caller.post(BROKERS, &body).expect(400);
    assert_eq!(refused["errors"][0]["field"], "url", "{refused}");
}

const BROKERS: &str = "/management-api/v1/integrate/clouds/mqtt";

/// A service whose deliveries to brokers of tests are allowed, and a customer.
pub(crate) struct MqttService {
    service: Service,
    pub(crate) caller: Caller,
}

/// A device that sends numbers over CoAP.
pub(crate) struct Meter {
    wire: DeviceSocket,
    next_id: u16,
}

impl MqttService {
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        let private = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");
        let service = Service::start_with(&[&[private], settings].concat());
        let caller = Caller::of_new_customer(&service, "Lamp Works");
        Self { service, caller }
    }

    /// Creates the integration of a broker and returns its path.
    fn create(&self, broker: &Mosquitto, with: &Value) -> String {
        self.create_at(&format!("mqtt://{}", broker.address), with)
    }

    pub(crate) fn create_at(&self, url: &str, with: &Value) -> String {
        let mut body = json!({
            "name": "Ours", "url": url, "topicPrefix": "acme", "jsonPayloadEnabled": true,
        });
        for (name, value) in with.as_object().unwrap() {
            body[name] = value.clone();
        }
        let made = self.caller.post(BROKERS, &body).expect(201);
        format!("{BROKERS}/{}", text(&made["id"]))
    }

    pub(crate) fn once_in(&self, made: &str, state: &str) -> Value {
        until(state, || {
            let shown = self.caller.request("GET", made).expect(200);
            (shown["state"] == state).then_some(shown)
        })
    }

    /// Makes a call about an integration that needs no body.
    pub(crate) fn ask(&self, made: &str, what: &str, status: u16) -> Value {
        let answer = self.caller.request("POST", &format!("{made}/{what}"));
        answer.expect(status)
    }

    pub(crate) fn meter(&self, name: &str, ip: &str) -> Meter {
        self.caller.create_device(name, ip);
        self.known_meter(ip, 0)
    }

    /// A meter that exists; its message ids follow this one.
    fn known_meter(&self, ip: &str, id: u16) -> Meter {
        Meter {
            wire: DeviceSocket::from(ip, &self.service),
            next_id: id,
        }
    }
}

impl Meter {
    /// Sends a value, which is durable when this returns.
    pub(crate) fn send(&mut self, value: u32) {
        self.next_id += 1;
        let message = data("level", value.to_string(), self.next_id);
        let answer = self.wire.ask_until_answered(&message);
        assert_eq!(answer.code, Code::CHANGED, "{value}: {answer:?}");
    }
}

/// A Mosquitto with a configuration and a port of its own. It keeps its sessions when it is
/// stopped.
struct Mosquitto {
    program: Program,
    folder: TempDir,
    address: SocketAddr,
}

impl Mosquitto {
    /// Starts a broker with these lines in its configuration.
    fn start(configuration: &str) -> Self {
        Self::with_files(configuration, &[])
    }

    fn with_password(name: &str, password: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let passwords = folder.path().join("passwords");
        let mut make = Command::new("mosquitto_passwd");
        make.args(["-b", "-c"])
            .arg(&passwords)
            .args([name, password]);
        Program::start(&mut make).finish();
        let made = std::fs::read_to_string(passwords).unwrap();
        Self::with_files(
            "allow_anonymous false\npassword_file {folder}/passwords",
            &[("passwords", &made)],
        )
    }

    /// Starts a broker that has these files in its folder.
    fn with_files(configuration: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let path = folder.path().to_str().unwrap();
        let configuration = format!(
            "listener {} {}\n{configuration}\nuser root\npersistence true\n\
             persistence_location {path}/\nlog_dest stderr\nlog_type all\n\
             max_queued_messages 0\n",
            address.port(),
            address.ip(),
        );
        let configuration = configuration.replace("{folder}", path);
        std::fs::write(folder.path().join("mosquitto.conf"), configuration).unwrap();
        Self {
            program: run(folder.path()),
            folder,
            address,
        }
    }

    /// Stops the broker, which keeps its sessions. It forgets a signal that comes before its main
    /// loop begins, which takes connections.
    fn stop(&mut self) {
        drop(TcpStream::connect(self.address).unwrap());
        self.program.wait_for("that it takes connections", |line| {
            line.contains("New connection from").then_some(())
        });
        self.program.terminate();
        self.program.ended();
    }

    /// Starts the stopped broker again on its port.
    fn start_again(&mut self) {
        let mut program = run(self.folder.path());
        program.follow_up(&mut self.program);
        self.program = program;
    }

    /// A client that receives what is published, and has begun.
    fn subscriber(&self, filter: &str, more: &[&str]) -> Subscriber {
        let mut subscriber = self.subscriber_of(filter, "subscriber", more);
        // A retained message arrives as soon as there is a subscription.
        self.publish("acme/ready", "{}", &[&["-r"], more].concat());
        subscriber.next("acme/ready");
        subscriber
    }

    /// A client with this identifier, whose session the broker keeps.
    fn subscriber_of(&self, filter: &str, id: &str, more: &[&str]) -> Subscriber {
        let mut command = self.client("mosquitto_sub", more);
        command.args(["-q", "1", "-c", "-i", id, "-x", "3600", "-t", filter]);
        command.args(["-F", "%t|%D|%p"]);
        Subscriber {
            program: Program::start(&mut command),
        }
    }

    fn publish(&self, topic: &str, payload: &str, more: &[&str]) {
        let mut command = self.client("mosquitto_pub", more);
        command.args(["-q", "1", "-t", topic, "-m", payload]);
        Program::start(&mut command).finish();
    }

    fn client(&self, name: &str, more: &[&str]) -> Command {
        let mut command = Command::new(name);
        command.args(["-h", &self.address.ip().to_string()]);
        command.args(["-p", &self.address.port().to_string()]);
        command.args(["-V", "mqttv5"]).args(more);
        command
    }
}

fn run(folder: &Path) -> Program {
    let mut command = Command::new("mosquitto");
    let path = std::env::var("PATH").unwrap_or_default();
    // Debian installs it where only root looks.
    command.env("PATH", format!("{path}:/usr/sbin"));
    command.arg("-c").arg(folder.join("mosquitto.conf"));
    let mut program = Program::start(&mut command);
    program.wait_for("that it runs", |line| {
        line.ends_with(" running").then_some(())
    });
    program
}

/// A client of the broker that prints what it receives.
struct Subscriber {
    program: Program,
}

impl Subscriber {
    /// The next message at a topic; messages at others are skipped.
    fn next(&mut self, topic: &str) -> Value {
        self.next_with_correlation(topic).1
    }

    /// The same with its correlation data.
    fn next_with_correlation(&mut self, topic: &str) -> (String, Value) {
        let (correlation, payload) = self.program.wait_for(topic, |line| {
            let mut parts = line.splitn(3, '|');
            let is_it = parts.next() == Some(topic);
            let correlation = parts.next()?.to_owned();
            let payload = parts.next()?.to_owned();
            is_it.then_some((correlation, payload))
        });
        let payload = serde_json::from_str(&payload).unwrap();
        (correlation, payload)
    }

    /// Waits until the last message is this number.
    fn counts(&mut self, number: u32) {
        until("the number of clients", || {
            let last = self.program.printed().last()?.to_string();
            last.ends_with(&format!("|{number}")).then_some(())
        });
    }

    /// The values at a topic, in the order of their first deliveries, once there are this many.
    fn values(&mut self, topic: &str, amount: usize) -> Vec<u64> {
        until("every value", || {
            let values = self.values_so_far(topic);
            (values.len() >= amount).then_some(values)
        })
    }

    fn values_so_far(&mut self, topic: &str) -> Vec<u64> {
        let mut ids = Vec::new();
        let mut values = Vec::new();
        for line in self.program.printed() {
            let Some((at, rest)) = line.split_once('|') else {
                continue;
            };
            let Some((_, payload)) = rest.split_once('|').filter(|_| at == topic) else {
                continue;
            };
            let event: Value = serde_json::from_str(payload).unwrap();
            let id = text(&event["id"]);
            if !ids.contains(&id) {
                ids.push(id);
                values.push(event["payload"]["value"].as_u64().unwrap());
            }
        }
        values
    }
}
