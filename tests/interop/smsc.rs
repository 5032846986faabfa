//! Does the link work with SMS centres on node-smpp and jSMPP, whatever ends in the middle?
//!
//! The programs are `smpp/smsc.js` and `jsmpp/src/Smsc.java`: they do as they are told by lines of
//! words, and print lines of JSON.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

/// Devices of a test; each has at most 100 SMS without a final status.
const DEVICES: usize = 50;

/// SMS of the tests with many, in each direction.
const MANY: usize = 5_000;

/// SMS to devices of the tests in which a process is killed; four times as many come from devices.
const SOME: usize = 500;

#[test]
fn node_smpp_carries_sms_both_ways() {
    carries_sms_both_ways(node);
}

#[test]
fn jsmpp_carries_sms_both_ways() {
    carries_sms_both_ways(java);
}

#[test]
fn node_smpp_carries_ten_thousand_sms_and_none_is_lost_or_doubled() {
    carries_ten_thousand(node);
}

#[test]
fn jsmpp_carries_ten_thousand_sms_and_none_is_lost_or_doubled() {
    carries_ten_thousand(java);
}

#[test]
fn an_end_of_node_smpp_or_of_the_service_loses_and_doubles_nothing() {
    survives_ends(node);
}

#[test]
fn an_end_of_jsmpp_or_of_the_service_loses_and_doubles_nothing() {
    survives_ends(java);
}

/// A running SMS centre.
struct Centre {
    program: Program,
    start: fn(u16) -> Command,
    port: u16,
    /// Its output before it was killed.
    before: Vec<String>,
}

/// A service with a link to one, and devices.
struct LinkedService {
    service: Service,
    caller: Caller,
    centre: Centre,
}

fn carries_sms_both_ways(start: fn(u16) -> Command) {
    let mut setup = LinkedService::new(start);
    let id = setup.send(0, "1234", "open € gate");
    setup.once_in(0, &id, "DELIVERED");
    let long = setup.send(0, "1234", &"ж".repeat(140));
    setup.once_in(0, &long, "DELIVERED");
    assert_eq!(setup.centre.accepted().len(), 4);
    setup.centre.tell("throttle 3");
    let throttled = setup.send(1, "1234", "again");
    setup.once_in(1, &throttled, "DELIVERED");
    setup.centre.deliver(3, 1, 2..4);
    let of_device = setup.texts_of_device(2);
    assert_eq!(of_device, ["message 2", "message 0"]);
    assert_eq!(setup.texts_of_device(3), ["message 1"]);
    assert!(setup.service.stop().success());
}

fn carries_ten_thousand(start: fn(u16) -> Command) {
    let mut setup = LinkedService::new(start);
    setup.centre.tell_to_deliver(MANY, 50, 0..DEVICES);
    for number in 0..MANY {
        setup.send(number % DEVICES, "1234", &format!("text {number}"));
    }
    setup.centre.delivered(MANY);
    let mut texts = Vec::new();
    for device in 0..DEVICES {
        until("every SMS is delivered", || {
            let sent = setup.sms(device, "MT");
            let mut all = sent.iter();
            all.all(|sms| sms["status"]["status"] == "DELIVERED")
                .then_some(())
        });
        texts.extend(setup.texts_of_device(device));
    }
    assert_eq!(distinct(setup.centre.accepted()), MANY);
    assert_eq!(texts.len(), MANY);
    assert_eq!(distinct(texts), MANY);
}

fn survives_ends(start: fn(u16) -> Command) {
    let mut setup = LinkedService::new(start);
    setup.centre.tell_to_deliver(4 * SOME, 10, 0..DEVICES);
    for number in 0..SOME {
        setup.send(number % DEVICES, "1234", &format!("text {number}"));
        match number {
            100 => setup.centre.tell("break"),
            200 => {
                setup.service.kill();
                setup.service.start_again();
                setup.caller.follow(&setup.service);
            }
            300 => setup.centre.delivered(4 * SOME),
            350 => setup.centre.kill_and_start_again(),
            _ => {}
        }
    }
    // What was on the air when something ended stays without an outcome.
    let mut counts = [0; 2];
    for device in 0..DEVICES {
        until("no SMS waits", || {
            let sent = setup.sms(device, "MT");
            let has = |status: &str| {
                let in_status = sent.iter().filter(|it| it["status"]["status"] == status);
                in_status.count()
            };
            let (waiting, open) = (has("PENDING"), has("IN PROGRESS"));
            (waiting == 0).then_some(())?;
            counts = [counts[0] + open, counts[1] + sent.len() - open];
            Some(())
        });
    }
    let accepted = setup.centre.accepted();
    let all = accepted.len();
    assert_eq!(distinct(accepted), all, "none was accepted twice");
    assert!(all > SOME - 3 * 32 && all <= SOME, "{all} were accepted");
    assert_eq!(counts[0] + counts[1], SOME);
    let texts = (0..DEVICES).flat_map(|device| setup.texts_of_device(device));
    assert_eq!(distinct(texts.collect()), 4 * SOME, "none is lost");
}

impl LinkedService {
    fn new(start: fn(u16) -> Command) -> Self {
        let mut centre = Centre::new(start);
        let url = format!("smpp://127.0.0.1:{}", centre.port);
        let service = Service::start_with(&[
            ("SIGNALBOX_SMPP_URL", &url),
            ("SIGNALBOX_SMPP_SYSTEM_ID", "signalbox"),
            ("SIGNALBOX_SMPP_PASSWORD", "secret08"),
        ]);
        let caller = Caller::of_new_customer(&service, "Acme");
        for device in 0..DEVICES {
            let body = json!({
                "deviceId": format!("device-{device}"),
                "iccid": iccid(device),
                "msisdn": msisdn(device),
            });
            caller.post(&format!("{API}/devices"), &body).expect(201);
        }
        centre.bound();
        Self {
            service,
            caller,
            centre,
        }
    }

    fn send(&self, device: usize, source: &str, text: &str) -> Value {
        let body = json!({ "source_address": source, "payload": text });
        let path = format!("{API}/sims/{}/sms", iccid(device));
        self.caller.post(&path, &body).expect(201)["id"].clone()
    }

    fn once_in(&self, device: usize, id: &Value, status: &str) {
        let path = format!("{API}/sims/{}/sms/{id}", iccid(device));
        until(status, || {
            let shown = self.caller.request("GET", &path).expect(200);
            (shown["status"]["status"] == status).then_some(())
        });
    }

    /// The SMS of a device in a direction, newest first.
    fn sms(&self, device: usize, way: &str) -> Vec<Value> {
        let mut all = Vec::new();
        for page in 1.. {
            let path = format!("{API}/sims/{}/sms?pageSize=100&page={page}", iccid(device));
            let page = self.caller.request("GET", &path).expect(200);
            let items = page["items"].as_array().unwrap();
            all.extend(items.iter().cloned());
            if items.len() < 100 {
                break;
            }
        }
        all.retain(|sms| sms["sms_type"]["description"] == way);
        all
    }

    fn texts_of_device(&self, device: usize) -> Vec<String> {
        let texts = self.sms(device, "MO");
        let texts = texts.iter().map(|sms| sms["payload"].as_str().unwrap());
        texts.map(str::to_owned).collect()
    }
}

impl Centre {
    fn new(start: fn(u16) -> Command) -> Self {
        let (program, port) = run(start, 0);
        Self {
            program,
            start,
            port,
            before: Vec::new(),
        }
    }

    fn kill_and_start_again(&mut self) {
        self.program.kill();
        // Its output is complete only now.
        let start = self.start;
        self.before.extend(self.program.printed().to_vec());
        self.program = run(start, self.port).0;
        self.bound();
    }

    /// Waits until a session was bound.
    fn bound(&mut self) {
        self.printed("bound", |_| true);
    }

    /// Waits until a line has a property with a value, which it may have printed before.
    fn printed(&mut self, name: &str, is_it: impl Fn(&Value) -> bool) {
        until(name, || {
            let mut lines = self.program.printed().iter();
            let has = |line: &String| {
                let printed: Option<Value> = serde_json::from_str(line).ok();
                printed.is_some_and(|it| it.get(name).is_some_and(&is_it))
            };
            lines.any(has).then_some(())
        });
    }

    fn tell(&mut self, line: &str) {
        self.program.write_line(line);
    }

    fn tell_to_deliver(&mut self, count: usize, window: usize, devices: std::ops::Range<usize>) {
        let numbers: Vec<String> = devices.map(msisdn).collect();
        self.tell(&format!("deliver {count} {window} {}", numbers.join(" ")));
    }

    fn delivered(&mut self, count: usize) {
        self.printed("delivered", |delivered| delivered == count);
    }

    fn deliver(&mut self, count: usize, window: usize, devices: std::ops::Range<usize>) {
        self.tell_to_deliver(count, window, devices);
        self.delivered(count);
    }

    /// What was accepted so far, in the words of the program.
    fn accepted(&mut self) -> Vec<String> {
        let lines = self.before.iter().chain(self.program.printed());
        let accepted = lines.filter_map(|line| {
            let printed: Value = serde_json::from_str(line).ok()?;
            Some(printed.get("accepted")?.as_str()?.to_owned())
        });
        accepted.collect()
    }
}

fn run(start: fn(u16) -> Command, port: u16) -> (Program, u16) {
    let mut program = Program::start(&mut start(port));
    let port = program.wait_for("where it listens", |line| {
        let printed: Value = serde_json::from_str(line).ok()?;
        printed["port"].as_u64()
    });
    (program, port.try_into().unwrap())
}

fn node(port: u16) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules = root.join("target/interop/smpp/node_modules");
    assert!(
        modules.exists(),
        "`cargo xtask prepare` makes {}",
        modules.display()
    );
    let mut command = Command::new("node");
    command.env("NODE_PATH", modules);
    command.arg(root.join("tests/interop/smpp/smsc.js"));
    command.arg(port.to_string());
    command
}

fn java(port: u16) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/interop/jsmpp");
    assert!(
        folder.exists(),
        "`cargo xtask prepare` makes {}",
        folder.display()
    );
    let folder = folder.display();
    let mut command = Command::new("java");
    command.args([
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Djava.net.preferIPv4Stack=true",
        "-cp",
        &format!("{folder}/classes:{folder}/lib/*"),
        "Smsc",
    ]);
    if port != 0 {
        command.arg(port.to_string());
    }
    command
}

fn distinct(mut texts: Vec<String>) -> usize {
    texts.sort_unstable();
    texts.dedup();
    texts.len()
}

fn iccid(device: usize) -> String {
    format!("89882806660000{device:05}")
}

fn msisdn(device: usize) -> String {
    format!("8822851000{device:05}")
}
