//! Does the service behave exactly as its OpenAPI document says?
//!
//! Schemathesis reads the document, makes valid and invalid calls, chains them, and checks the
//! status, headers and body of every answer against the document. It is configured in
//! `schemathesis.toml`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::device::configuration::Configuration;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use serde_json::{Value, json};

use crate::vocabulary::caller::{Caller, text};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::{observe_start, read, when_active, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::DeviceSocket;

const TEXT: ContentFormat = ContentFormat::TEXT;

/// The configuration of Schemathesis.
const CONFIGURATION: &str = "schemathesis.toml";

/// The paths that only the operator may call.
const OPERATOR_API: &str = "^/operator-api/";

#[test]
fn calls_of_a_customer_are_answered_as_documented() {
    let setup = TestService::new();
    setup.hold(&["--exclude-path-regex", OPERATOR_API]);
}

#[test]
fn calls_of_the_operator_are_answered_as_documented() {
    let setup = TestService::new();
    setup.hold(&["--include-path-regex", OPERATOR_API]);
}

/// A service with a customer whose devices are in several states.
struct TestService {
    service: Service,
    client: ApiClient,
    caller: Caller,
    /// Holds the configuration and the document for Schemathesis.
    folder: tempfile::TempDir,
    _device: Device,
}

impl TestService {
    fn new() -> Self {
        let service = Service::start();
        let client = ApiClient::of_new_customer(&service, "Lived-in");
        let caller = client.caller(&service);
        let devices = ["awake", "quiet-1", "quiet-2", "quiet-3", "quiet-4"];
        for (id, ip) in devices
            .iter()
            .zip([DEVICE_IP, "::1", "127.0.0.71", "127.0.0.72"])
        {
            caller.create_device(id, ip);
        }
        let device = Device::registered(&service, Configuration::new("awake"));
        let mut requests = vec![
            caller.create_action("awake", &read("/3/0/0")),
            caller.create_action("awake", &write("/3/0/0", "cannot be written")),
        ];
        for quiet in ["quiet-1", "quiet-2", "quiet-3"] {
            let queued = [read("/3/0/0"), write("/3/0/15", "Asia/Tokyo")].map(when_active);
            requests.extend(queued.iter().map(|body| caller.create_action(quiet, body)));
        }
        for id in requests.iter().take(2) {
            caller.final_action(id);
        }
        let folder = tempfile::tempdir().unwrap();
        let keep = |name: &str, lines: &[String]| {
            let lines: Vec<_> = lines.iter().map(|line| format!("{line:?}")).collect();
            std::fs::write(folder.path().join(name), lines.join("\n")).unwrap();
        };
        keep("customers.txt", std::slice::from_ref(&client.customer));
        let spare = ["spare-1", "spare-2", "spare-3"].map(|name| {
            let body = json!({ "name": name });
            ApiClient::make(&service, &client.customer, &body).id
        });
        keep("clients.txt", &spare);
        keep("devices.txt", &devices.map(str::to_owned));
        let sims = ["awake", "quiet-1", "quiet-2"].map(|id| {
            let path = format!("/management-api/v1/devices/{id}");
            text(&caller.request("GET", &path).expect(200)["iccid"])
        });
        keep("sims.txt", &sims);
        let webhooks = ["one", "two", "three"].map(|name| {
            let body = json!({ "name": name, "url": "https://signalbox.invalid/" });
            let path = "/management-api/v1/integrate/clouds/webhooks";
            text(&caller.post(path, &body).expect(201)["id"])
        });
        keep("webhooks.txt", &webhooks);
        let brokers = ["one", "two"].map(|name| {
            let url = "mqtts://signalbox.invalid";
            let body = json!({ "name": name, "url": url, "topicPrefix": name });
            let path = "/management-api/v1/integrate/clouds/mqtt";
            text(&caller.post(path, &body).expect(201)["id"])
        });
        keep("brokers.txt", &brokers);
        let plugin = json!({ "serverDomain": "signalbox.invalid", "webhookKey": "7b0cf" });
        let path = "/management-api/v1/partners/gateway/plugins";
        let plugin = text(&caller.post(path, &plugin).expect(201)["id"]);
        keep("plugins.txt", &[plugin]);
        let schedules = ["one", "two", "three"].map(|name| {
            let request = json!({
                "protocol": "LWM2M", "action": "read", "resourceAddress": "/3/0/0", "filter": {},
            });
            let body = json!({ "name": name, "every": 86_400, "request": request });
            let path = "/management-api/v1/schedules";
            text(&caller.post(path, &body).expect(201)["id"])
        });
        keep("schedules.txt", &schedules);
        keep("requests.txt", &requests);
        keep("entries.txt", &[unreadable(&service, &caller)]);
        Self {
            service,
            client,
            caller,
            folder,
            _device: device,
        }
    }

    /// Tests the part of the API that these options select.
    fn hold(&self, options: &[&str]) {
        let document = self.strict_document();
        let path = self.folder.path().join("openapi.json");
        std::fs::write(&path, document.to_string()).unwrap();
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
        for file in [CONFIGURATION, "schemathesis_hooks.py"] {
            std::fs::copy(tests.join(file), self.folder.path().join(file)).unwrap();
        }
        let mut schemathesis = Command::new(schemathesis());
        schemathesis
            .current_dir(self.folder.path())
            .env("OPERATOR_TOKEN", self.service.operator_token())
            .env("ACCESS_TOKEN", self.caller.token())
            .env("CLIENT_ID", &self.client.id)
            .env("CLIENT_SECRET", &self.client.secret)
            .args(["--config-file", CONFIGURATION, "run"])
            .arg(&path)
            .args(["--url", &format!("http://{}", self.service.http)])
            .arg("--no-color")
            .args(options);
        let output = schemathesis.output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
    }

    /// The document with every undescribed property forbidden. Callers are told to expect more
    /// properties, but here none may appear.
    fn strict_document(&self) -> Value {
        let document = Request::new("GET", "/openapi.json").send(self.service.http);
        let mut document = document.expect(200);
        forbid_others(&mut document["paths"]);
        forbid_others(&mut document["components"]["schemas"]);
        document
    }
}

/// The log entry about an unreadable payload of a device.
fn unreadable(service: &Service, caller: &Caller) -> String {
    let (id, ip) = ("garbled", "127.0.0.73");
    caller.create_device(id, ip);
    let wire = DeviceSocket::from(ip, service);
    wire.register(id, 1);
    let begin = caller.create_action(id, &observe_start("/3303/0/5700"));
    let request = wire.receive_request();
    let answer = Message::response_to(&request, Code::CONTENT, MessageId(0));
    let answer = answer.with_observe(1).with_content_format(TEXT);
    wire.send(&answer.with_payload("21.5").encode());
    caller.final_action(&begin);
    let kind = MessageKind::Confirmable;
    let warm = Message::separate(kind, Code::CONTENT, MessageId(50), request.token);
    let warm = warm.with_observe(2).with_content_format(TEXT);
    wire.send(&warm.with_payload("warm").encode());
    until("the entry about it", || {
        let mut entries = caller.log_entries().into_iter();
        let entry = entries.find(|entry| entry["payloadReference"].is_string())?;
        Some(text(&entry["id"]))
    })
}

fn forbid_others(node: &mut Value) {
    if let Some(items) = node.as_array_mut() {
        items.iter_mut().for_each(forbid_others);
    }
    let is_closed = node.get("additionalProperties").is_some();
    // A part of an object does not describe the properties of the other parts.
    let is_whole = node["type"] == "object";
    let names = node["properties"].as_object().map(serde_json::Map::len);
    let Some(node) = node.as_object_mut() else {
        return;
    };
    if is_whole && !is_closed && names.is_some_and(|names| names > 0) {
        node.insert("additionalProperties".to_owned(), json!(false));
    }
    node.values_mut().for_each(forbid_others);
}

fn schemathesis() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = root.join("target/interop/venv/bin/schemathesis");
    assert!(
        program.exists(),
        "no {}: run `cargo xtask prepare`",
        program.display()
    );
    program
}

fn printed(output: &Output) -> String {
    let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}\n{}\n{}",
        output.status,
        printed(&output.stdout),
        printed(&output.stderr)
    )
}
