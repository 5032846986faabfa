//! Does the official library of Standard Webhooks verify delivered events, and refuse those signed
//! with another secret?
//!
//! The endpoint is `webhook.py`: it answers 204 to verified requests and 400 to others.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::aiocoap::{ID, TestService};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::lwm2m::{outcome, read, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Another secret: its last bytes differ.
const TAMPERED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx";

/// Five tries in a fraction of a second.
const QUICK: (&str, &str) = ("SIGNALBOX_DELIVERY_RETRY_MS", "50,50,50,50");

#[test]
fn events_of_every_type_arrive_verified() {
    let setup = setup("127.0.9.110");
    let mut endpoint = Endpoint::start();
    let types = ["TELEMETRY_DATA", "LIFECYCLE", "ERROR", "ACTION_RESULT"];
    let webhook = webhook_to(&setup, &endpoint, &types);
    let mut device = setup.registered();
    let first = endpoint.verified("LIFECYCLE");
    assert_eq!(first["lifecycle"]["type"], "FIRST_CONTACT");
    let registered = endpoint.verified("LIFECYCLE");
    assert_eq!(registered["lifecycle"]["type"], "REGISTERED");
    assert_eq!(registered["device"]["iccid"], ID);

    device.command("send 22.25");
    assert_eq!(device.wait_for("sent")["code"], "2.04");
    let event = endpoint.verified("TELEMETRY_DATA");
    let values = json!({ "/3303/0/5700": 22.25, "/3303/0/5701": "Cel" });
    assert_eq!(event["payload"]["value"], values);

    let action = setup.caller.perform(ID, &write("/3/0/0", "Other Works"));
    assert_eq!(outcome(&action), ("FAILED", "405"), "{action}");
    let error = endpoint.verified("ERROR");
    let failed = "DeviceController[ActionRequestFailed]";
    assert_eq!(error["error"]["message"], failed);
    let result = endpoint.verified("ACTION_RESULT");
    assert_eq!(result["action"]["requestId"], action["id"]);
    assert_eq!(result["action"]["status"], "FAILED");

    let path = format!("{webhook}/test");
    let tested = setup.caller.request("POST", &path).expect(200);
    assert_eq!(tested["statusCode"], 204, "{tested}");
    endpoint.verified("TEST_MESSAGE");
    assert_eq!(endpoint.refused(), 0);
}

#[test]
fn deliveries_with_a_wrong_secret_are_refused_and_replayed_with_the_right_one() {
    let setup = setup("127.0.9.111");
    let mut endpoint = Endpoint::start();
    let webhook = webhook_to(&setup, &endpoint, &["ACTION_RESULT"]);
    let _device = setup.registered();
    setup.caller.perform(ID, &read("/3303/0/5700"));
    endpoint.verified("ACTION_RESULT");

    sign_with(&setup, &webhook, TAMPERED);
    let lost = setup.caller.perform(ID, &read("/3303/0/5701"));
    once_in(&setup, &webhook, "INTEGRATION_FAILED");
    assert_eq!(endpoint.refused(), 5, "each try is refused");
    let entries = setup.caller.log_entries();
    let disabled = "CloudIntegrator[IntegrationDisabled]";
    let entry = entries.iter().find(|entry| entry["message"] == disabled);
    let why = text(&entry.unwrap()["description"]);
    assert!(why.contains("400"), "{why}");

    sign_with(&setup, &webhook, SECRET);
    for call in ["restart", "deadletters/replay"] {
        let path = format!("{webhook}/{call}");
        let answer = setup.caller.request("POST", &path);
        assert!(
            (200..300).contains(&answer.status),
            "{call}: {}",
            answer.text()
        );
    }
    let made_up = endpoint.verified("ACTION_RESULT");
    assert_eq!(made_up["action"]["requestId"], lost["id"]);
    assert_eq!(endpoint.refused(), 5);
}

/// A service whose deliveries to test endpoints are allowed, and one device it knows.
fn setup(address: &str) -> TestService {
    let private = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");
    TestService::of(Service::start_with(&[private, QUICK]), address)
}

/// Creates a webhook for these types with a signing secret, and returns its path.
fn webhook_to(setup: &TestService, endpoint: &Endpoint, types: &[&str]) -> String {
    let types: Vec<Value> = types.iter().map(|it| json!({ "type": it })).collect();
    let url = format!("http://127.0.0.1:{}/in", endpoint.port);
    let body = json!({ "name": "Ours", "url": url, "eventTypes": types, "secret": SECRET });
    let all = format!("{API}/integrate/clouds/webhooks");
    let made = setup.caller.post(&all, &body).expect(201);
    format!("{all}/{}", text(&made["id"]))
}

fn sign_with(setup: &TestService, webhook: &str, secret: &str) {
    let body = json!({ "secret": secret });
    let answer = setup.caller.try_send("PATCH", webhook, &body).unwrap();
    answer.expect(200);
}

fn once_in(setup: &TestService, webhook: &str, state: &str) {
    until(state, || {
        let shown = setup.caller.request("GET", webhook).expect(200);
        (shown["state"] == state).then_some(())
    });
}

/// A running `webhook.py`.
struct Endpoint {
    program: Program,
    port: u16,
    /// How many events of each type were returned so far.
    returned: BTreeMap<String, usize>,
}

impl Endpoint {
    fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("target/interop/venv/bin/python");
        assert!(
            python.exists(),
            "`cargo xtask prepare` makes {}",
            python.display()
        );
        let mut command = Command::new(python);
        command.arg(root.join("tests/interop/webhook.py"));
        command.args(["--secret", SECRET]);
        let mut program = Program::start(&mut command);
        let port = program.wait_for("where it listens", |line| {
            let printed: Value = serde_json::from_str(line).ok()?;
            printed["port"].as_u64()
        });
        Self {
            program,
            port: port.try_into().unwrap(),
            returned: BTreeMap::new(),
        }
    }

    /// The next verified event of a type.
    fn verified(&mut self, event_type: &str) -> Value {
        let returned = self.returned.get(event_type).copied().unwrap_or_default();
        self.returned.insert(event_type.to_owned(), returned + 1);
        until(event_type, || {
            let events = self.logged(204).into_iter().map(|line| {
                assert_eq!(
                    line["body"]["id"], line["id"],
                    "the signed id is the event's"
                );
                line["body"].clone()
            });
            events
                .filter(|event| event["type"] == event_type)
                .nth(returned)
        })
    }

    /// How many deliveries the endpoint has refused so far.
    fn refused(&mut self) -> usize {
        self.logged(400).len()
    }

    /// The printed lines about deliveries with this status.
    fn logged(&mut self, status: u16) -> Vec<Value> {
        let lines = self.program.printed().iter();
        let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["status"] == status).collect()
    }
}
