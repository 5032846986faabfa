//! Does a device on aiocoap register, answer, wait and perform requests?
//!
//! The device is `aiocoap_device.py`: it prints each request it receives as a line of JSON.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::vocabulary::caller::{Caller, text};
use crate::vocabulary::lwm2m::{execute, outcome, read, when_active, write};
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

#[test]
fn values_are_read_in_the_type_of_their_resource() {
    let setup = TestService::new("127.0.9.1");
    let _device = setup.registered();
    for (address, payload) in [
        ("/3/0/0", "Lamp Works"),
        ("/3303/0/5700", "21.5"),
        ("/3/0/15", "Europe/Berlin"),
    ] {
        let action = setup.caller.perform(ID, &read(address));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        assert_eq!(action["resultData"]["payload"], payload, "{action}");
    }
    let time = setup.caller.perform(ID, &read("/3/0/13"));
    let payload = text(&time["resultData"]["payload"]);
    assert!(payload.starts_with("2013-05-02T10:40:15"), "{time}");
}

#[test]
fn a_written_value_reaches_the_device_and_is_read_back() {
    let setup = TestService::new("127.0.9.2");
    let mut device = setup.registered();
    let action = setup.caller.perform(ID, &write("/3/0/15", "Asia/Tokyo"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    let received = device.wait_for("received");
    assert_eq!(received["method"], "PUT");
    assert_eq!(received["path"], "/3/0/15");
    assert_eq!(received["payload"], "Asia/Tokyo");
    assert_eq!(received["contentFormat"], 0, "text/plain");
    let action = setup.caller.perform(ID, &read("/3/0/15"));
    assert_eq!(action["resultData"]["payload"], "Asia/Tokyo");
}

#[test]
fn an_executed_resource_runs_once() {
    let setup = TestService::new("127.0.9.3");
    let mut device = setup.registered();
    let action = setup.caller.perform(ID, &execute("/3/0/4"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(device.wait_for("executed")["times"], 1);
}

#[test]
fn a_separate_response_is_the_answer() {
    let setup = TestService::new("127.0.9.4");
    let _device = setup.registered();
    let action = setup.caller.perform(ID, &read("/3303/0/5701"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(action["resultData"]["payload"], "Cel");
}

#[test]
fn a_refused_request_fails_with_its_code() {
    let setup = TestService::new("127.0.9.5");
    let _device = setup.registered();
    let action = setup.caller.perform(ID, &write("/3/0/0", "Other Works"));
    assert_eq!(outcome(&action), ("FAILED", "405"), "{action}");
    assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
    let messages = setup.caller.log_messages();
    let failed = "DeviceController[ActionRequestFailed]";
    assert!(
        messages.iter().any(|message| message == failed),
        "{messages:?}"
    );
}

#[test]
fn scheduled_requests_wait_for_the_device_and_are_sent_oldest_first() {
    let setup = TestService::new("127.0.9.6");
    let mut device = setup.registered();
    let zones = ["Asia/Tokyo", "Asia/Seoul", "Asia/Dhaka"];
    let ids = zones.map(|zone| {
        let body = when_active(write("/3/0/15", zone));
        setup.caller.create_action(ID, &body)
    });
    for id in &ids {
        assert_eq!(setup.caller.action(id)["status"], "SCHEDULED");
    }
    assert_eq!(
        device.received("PUT"),
        0,
        "nothing is sent before the device speaks"
    );
    device.command("update");
    for (id, zone) in ids.iter().zip(zones) {
        let action = setup.caller.final_action(id);
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
        assert_eq!(device.wait_for("received")["payload"], zone);
    }
}

#[test]
fn values_of_a_send_are_stored_under_their_full_paths() {
    let setup = TestService::new("127.0.9.9");
    let mut device = setup.registered();
    device.command("send 22.25");
    assert_eq!(device.wait_for("sent")["code"], "2.04");
    let shown = setup.caller.inspect(ID);
    for (path, known) in [
        ("/3303/0/5700", json!(22.25)),
        ("/3303/0/5701", json!("Cel")),
    ] {
        let mut values = shown["values"].as_array().unwrap().iter();
        let found = values.find(|value| value["path"] == path);
        assert_eq!(found.unwrap()["value"], known, "{shown}");
    }
}

#[test]
fn every_version_registers_and_announces_queue_mode() {
    for (address, arguments) in [
        ("127.0.9.10", ["--version", "1.0"].as_slice()),
        ("127.0.9.11", &["--version", "1.1", "--queue-mode"]),
        ("127.0.9.12", &["--version", "1.2", "--queue-mode"]),
    ] {
        let setup = TestService::new(address);
        let mut device = setup.device(ID, address, arguments);
        let registered = device.wait_for("registered");
        assert_eq!(registered["code"], "2.01", "{arguments:?} {registered}");
        assert_eq!(registered["location"][0], "rd");
        let action = setup.caller.perform(ID, &read("/3/0/0"));
        assert_eq!(
            outcome(&action),
            ("SUCCEEDED", "205"),
            "{arguments:?} {action}"
        );
    }
}

pub(crate) const ID: &str = "8944000000000000001";

/// A service, a caller of its API and one device it knows.
pub(crate) struct TestService {
    service: Service,
    pub(crate) caller: Caller,
    address: String,
}

impl TestService {
    fn new(address: &str) -> Self {
        Self::of(Service::start(), address)
    }

    pub(crate) fn of(service: Service, address: &str) -> Self {
        let caller = Caller::of_new_customer(&service, "Lamp Works");
        caller.create_device(ID, address);
        Self {
            service,
            caller,
            address: address.to_owned(),
        }
    }

    /// The known device, once it is registered.
    pub(crate) fn registered(&self) -> Device {
        let mut device = self.device(ID, &self.address, &[]);
        let registered = device.wait_for("registered");
        assert_eq!(registered["code"], "2.01", "{registered}");
        device
    }

    fn device(&self, endpoint: &str, address: &str, arguments: &[&str]) -> Device {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("target/interop/venv/bin/python");
        assert!(
            python.exists(),
            "`cargo xtask prepare` makes {}",
            python.display()
        );
        let mut command = Command::new(python);
        command.arg(root.join("tests/interop/aiocoap_device.py"));
        command.args(["--endpoint", endpoint, "--bind", address]);
        command
            .arg("--server")
            .arg(format!("coap://{}", self.service.coap))
            .args(arguments);
        Device {
            program: Program::start(&mut command),
        }
    }
}

/// A running `aiocoap_device.py`.
pub(crate) struct Device {
    program: Program,
}

impl Device {
    pub(crate) fn command(&mut self, command: &str) {
        self.program.write_line(command);
    }

    /// The next event of this name; others are skipped.
    pub(crate) fn wait_for(&mut self, event: &str) -> Value {
        self.program.wait_for(event, |line| {
            let printed: Value = serde_json::from_str(line).ok()?;
            (printed["event"] == event).then_some(printed)
        })
    }

    /// How many requests with this method the device has received since it started.
    fn received(&mut self, method: &str) -> usize {
        let events = self.program.printed().iter();
        let events = events.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events
            .filter(|event| event["event"] == "received" && event["method"] == method)
            .count()
    }
}
