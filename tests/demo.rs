//! Does the demo show the main job, print commands that work, and leave nothing behind?

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/vocabulary.rs"]
mod vocabulary;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use vocabulary::http::{Request, Response};
use vocabulary::program::Program;
use vocabulary::service::signalbox;

/// The end of the last line before the demo waits.
const LAST_LINE: &str = "Stop with Ctrl-C";

#[test]
fn the_demo_shows_the_main_job_and_prints_commands_that_work() {
    let temporary = TempDir::new().unwrap();
    let mut demo = start(temporary.path(), &[]);
    wait_for_words(&mut demo, LAST_LINE);
    let printed = demo.printed().to_vec();
    for words in [
        "street-lamp     registered at /rd/",
        "tracker         registered at /rd/",
        "SUCCEEDED: read /3311/0/5851 of street-lamp, code 205, value 60",
        "SUCCEEDED: observe-start /3303/0/5700 of street-lamp, code 205, value 41.5",
        "street-lamp     sent a notification for /3303/0/5700",
        "has the notified value: /3303/0/5700 of street-lamp is 42",
        "FAILED: write /3311/0/5851 rather bright of street-lamp",
        "DeviceController[InvalidDataType]",
        "CANCELLED: read /6/0/0 of tracker",
        "street-lamp     answered several paths with 2.05",
        "tracker         sent data",
        "of tracker, measured 120 s earlier: /6/0/0 is 53.546, /6/0/1 is 9.9666",
        "of tracker, measured 60 s earlier: /6/0/0 is 53.5461, /6/0/1 is 9.9668",
        "endpoint        received, signature valid: TELEMETRY_DATA",
        "leak-sensor     received 5 bytes over UDP",
        "SUCCEEDED: datagram \"blink\" to leak-sensor",
        "leak-sensor     answered /alarm with 2.04",
        "SUCCEEDED: PUT /alarm 8 at leak-sensor, code 204",
        "TELEMETRY_DATA of leak-sensor over UDP: d2V0 (base64)",
        "leak-sensor     sent data",
        "TELEMETRY_DATA of leak-sensor over COAP, topic cellar/water: {\"mm\":3}",
    ] {
        assert!(printed.iter().any(|line| line.contains(words)), "{words}");
    }
    let mut lines = printed.iter();
    for words in [
        "water-meter     registered at /rd/",
        "water-meter     fell asleep for ",
        "SCHEDULED: read /3424/0/1 of water-meter, waits",
        "water-meter     woke up",
        "water-meter     answered read /3424/0/1 with 2.05",
        "SUCCEEDED: read /3424/0/1 of water-meter, code 205, value ",
        "SCHEDULED: datagram \"blink\" to leak-sensor, waits for the device",
        "SCHEDULED: PUT /alarm 8 at leak-sensor, waits for the device",
        "leak-sensor     sent a UDP datagram, \"wet\"",
        "leak-sensor     sent {\"mm\":3} over CoAP, topic cellar/water",
        "network         hands in an SMS of 882285100004711: parcel 4711 is on board",
        "endpoint        received an SMS of Tracker, parcel 4711: parcel 4711 is on board",
        "caller          sends the SMS ",
        "network         takes the SMS ",
        "endpoint        received a delivery report: the SMS ",
        "caller          installs the plugin gateway",
        "partner         received: TELEMETRY_DATA of street-lamp: /3303/0/5700 is ",
    ] {
        assert!(
            lines.any(|line| line.contains(words)),
            "in its turn: {words}"
        );
    }
    let is_plain = !printed.concat().contains('\x1b');
    assert!(is_plain, "colours without a terminal");

    sign_in_by_link(&printed);
    run_commands(&mut demo, &printed);

    demo.terminate();
    assert!(demo.ended().success());
    assert_eq!(left_in(temporary.path()), 0);
}

#[test]
fn a_demo_stopped_early_ends_well_and_leaves_nothing_behind() {
    let temporary = TempDir::new().unwrap();
    let mut demo = start(temporary.path(), &[]);
    wait_for_words(&mut demo, "listening: API http://127.0.0.1:");
    assert_eq!(left_in(temporary.path()), 1);
    demo.terminate();
    assert!(demo.ended().success());
    assert_eq!(left_in(temporary.path()), 0);
}

#[test]
fn a_step_that_fails_is_named_and_nothing_is_left_behind() {
    let temporary = TempDir::new().unwrap();
    // The meter sleeps longer than its request may wait.
    let mut demo = start(temporary.path(), &["--action-expiry-s", "1"]);
    let step = "the demo failed while waiting for the meter to wake and answer: expected \
                SUCCEEDED, found FAILED";
    wait_for_words(&mut demo, step);
    assert_eq!(demo.ended().code(), Some(1));
    assert_eq!(left_in(temporary.path()), 0);
}

#[test]
fn a_chosen_address_is_not_replaced() {
    let temporary = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut demo = start(temporary.path(), &["--http", &address]);
    wait_for_words(&mut demo, &format!("cannot listen for HTTP on {address}"));
    assert_eq!(demo.ended().code(), Some(1));
    assert_eq!(left_in(temporary.path()), 0);
    let panicked = demo.printed().iter().any(|line| line.contains("panicked"));
    assert!(!panicked);
}

#[test]
fn a_chosen_store_stays_and_can_be_shown_again() {
    let temporary = TempDir::new().unwrap();
    let data = TempDir::new().unwrap();
    let data_dir = data.path().to_str().unwrap();
    for _ in 0..2 {
        let mut demo = start(temporary.path(), &["--data-dir", data_dir]);
        wait_for_words(&mut demo, "SUCCEEDED: read /3311/0/5851 of street-lamp");
        demo.terminate();
        assert!(demo.ended().success());
        assert_eq!(left_in(temporary.path()), 0);
        assert!(left_in(data.path()) > 0);
    }
}

/// Follows the link to the console as its page does; a build without Node prints none.
fn sign_in_by_link(printed: &[String]) {
    let parts = |line: &str| {
        let (base, code) = line.trim().split_once("/console#code=")?;
        Some((base.strip_prefix("http://")?.to_owned(), code.to_owned()))
    };
    let Some((address, code)) = printed.iter().find_map(|line| parts(line)) else {
        let words = "not part of this build";
        assert!(printed.iter().any(|line| line.contains(words)), "no link");
        return;
    };
    let request = Request::to_host(&address, "POST", "/console/session");
    let request = request.json(&json!({ "code": code }));
    let answer = request.send(address.parse().unwrap());
    assert_eq!(answer.expect(200)["customerId"], "demo");
}

/// Runs what the demo prints for a shell, and waits until the demo shows the result.
fn run_commands(demo: &mut Program, printed: &[String]) {
    let handout = Handout::read(printed);
    let shown = handout.perform("Get the result of a request").expect(200);
    let value = shown["resultData"]["payload"].as_str().unwrap();
    let expected = format!("SUCCEEDED: read /3424/0/1 of water-meter, code 205, value {value}");
    assert!(
        printed.iter().any(|line| line.ends_with(&expected)),
        "{shown}"
    );
    handout
        .perform("Read the brightness of the lamp")
        .expect(202);
    wait_for_words(demo, "SUCCEEDED: read /3311/0/5851 of street-lamp");
    handout
        .perform("Queue a read of the meter until it wakes up")
        .expect(202);
    wait_for_words(demo, "SCHEDULED: read /3424/0/1 of water-meter");
    let lamp = handout.perform("Inspect the lamp");
    assert_eq!(lamp.expect(200)["observations"][0]["path"], "/3303/0/5700");
    let messages = handout.perform("List the messages of the lamp").expect(200);
    let listed = messages["items"].as_array().unwrap().iter();
    let temperature = listed.filter(|message| message["cause"]["type"] == "OBSERVATION");
    assert!(temperature.count() >= 1, "{messages}");
    let devices = handout.perform("List the devices").expect(200);
    assert_eq!(devices["items"].as_array().unwrap().len(), 4);
    let requests = handout.perform("List all requests").expect(200);
    assert_eq!(requests["items"].as_array().unwrap().len(), 9);
    let sms = handout.perform("List the SMS of the tracker, in both directions");
    let sms = sms.expect(200);
    assert_eq!(sms["items"][0]["status"]["status"], "DELIVERED");
    assert_eq!(sms["items"][1]["payload"], "parcel 4711 is on board");
    handout.perform("List the administration log").expect(200);
    let webhook = handout.perform("Show the webhook and its backlog");
    assert_eq!(webhook.expect(200)["state"], "INTEGRATION_ACTIVE");
    let tested = handout.perform("Send a test event to the webhook");
    assert_eq!(tested.expect(200)["statusCode"], 204);
    wait_for_words(
        demo,
        "endpoint        received, signature valid: TEST_MESSAGE",
    );
    act_as_the_sensor(demo, &handout);
}

/// Sends a request to the device without LwM2M, and then sends data in its place.
fn act_as_the_sensor(demo: &mut Program, handout: &Handout) {
    handout
        .perform("Read the alarm level of the leak sensor over CoAP")
        .expect(202);
    wait_for_words(
        demo,
        "SUCCEEDED: GET /alarm at leak-sensor, code 205, value 8",
    );
    handout
        .perform("Queue a UDP datagram for the leak sensor")
        .expect(202);
    wait_for_words(demo, "SCHEDULED: datagram \"blink\" to leak-sensor");
    handout.throw("Send a UDP datagram from the address of the leak sensor");
    let mut awaited = vec![
        "SUCCEEDED: datagram \"blink\" to leak-sensor",
        "TELEMETRY_DATA of leak-sensor over UDP: d2V0 (base64)",
    ];
    while !awaited.is_empty() {
        let place = |line: &str| awaited.iter().position(|words| line.contains(words));
        let place = demo.wait_for(&awaited.join(", "), place);
        awaited.remove(place);
    }
}

/// The commands that the demo prints for a shell.
struct Handout {
    token: String,
    /// Each with its purpose.
    commands: Vec<(String, String)>,
}

impl Handout {
    fn read(printed: &[String]) -> Self {
        let token = printed
            .iter()
            .find_map(|line| line.strip_prefix("export TOKEN="));
        let mut commands: Vec<(String, String)> = Vec::new();
        let mut lines = printed.iter().map(String::as_str);
        while let Some(line) = lines.next() {
            if let Some(purpose) = line
                .strip_prefix("  ")
                .and_then(|line| line.strip_suffix(':'))
            {
                let mut command = String::new();
                for part in lines.by_ref() {
                    let (part, goes_on) = match part.strip_suffix('\\') {
                        Some(part) => (part, true),
                        None => (part, false),
                    };
                    command.push_str(part);
                    if !goes_on {
                        break;
                    }
                }
                commands.push((purpose.to_owned(), command));
            }
        }
        Self {
            token: token.unwrap().to_owned(),
            commands,
        }
    }

    fn command(&self, purpose: &str) -> &str {
        let mut commands = self.commands.iter();
        let (_, command) = commands.find(|(found, _)| found == purpose).unwrap();
        command
    }

    /// Sends the datagram that the command for a purpose would send.
    fn throw(&self, purpose: &str) {
        let words: Vec<_> = self.command(purpose).split(' ').collect();
        let [
            "printf",
            bytes,
            "|",
            "nc",
            "-u",
            "-w",
            "1",
            "-s",
            ip,
            to,
            port,
        ] = words[..]
        else {
            panic!("{words:?}");
        };
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket
            .send_to(bytes.as_bytes(), format!("{to}:{port}"))
            .unwrap();
    }

    /// Makes the HTTP call that the command for a purpose would make.
    fn perform(&self, purpose: &str) -> Response {
        let command = self.command(purpose);
        assert!(command.starts_with("curl "), "{command}");
        assert!(
            command.contains("-H \"authorization: Bearer $TOKEN\""),
            "{command}"
        );
        let (_, url) = command.split_once("http://").unwrap();
        let (address, path) = url.split_once('/').unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let path = format!("/{path}");
        let bearer = format!("Bearer {}", self.token);
        let body = command
            .split_once("-d '")
            .map(|(_, rest)| rest.split_once('\'').unwrap().0);
        let request = match body {
            Some(body) => {
                assert!(
                    command.contains("-H 'content-type: application/json'"),
                    "{command}"
                );
                let body: Value = serde_json::from_str(body).unwrap();
                Request::new("POST", &path).json(&body)
            }
            None if command.contains(" -X POST ") => Request::new("POST", &path),
            None => Request::new("GET", &path),
        };
        request.header("authorization", &bearer).send(address)
    }
}

fn start(temporary: &Path, arguments: &[&str]) -> Program {
    let mut command = signalbox();
    command.arg("demo").env("TMPDIR", temporary);
    let is_given = |flag: &&str| arguments.contains(flag);
    for flag in ["--http", "--coap", "--coaps", "--udp"]
        .into_iter()
        .filter(|flag| !is_given(flag))
    {
        command.args([flag, "127.0.0.1:0"]);
    }
    Program::start(command.args(arguments))
}

fn wait_for_words(demo: &mut Program, words: &str) {
    demo.wait_for(words, |line| line.contains(words).then_some(()));
}

fn left_in(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}
