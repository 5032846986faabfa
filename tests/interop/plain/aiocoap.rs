//! Is data that a device on aiocoap posts stored, and does it receive and answer requests?
//!
//! The device is `aiocoap_plain_device.py`: it sends and serves from one socket.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{LARGE_BYTES, TestService, large, text_of};
use crate::vocabulary::lwm2m::outcome;
use crate::vocabulary::plain::{ReportedData, carrying, carrying_bytes, coap};
use crate::vocabulary::program::Program;

#[test]
fn data_of_any_length_from_aiocoap_is_stored() {
    let setup = TestService::new("127.0.10.40");
    let mut device = Device::start(&setup);
    let mut expected = Vec::new();
    for length in [1, 1_024, 1_025, 5_000, LARGE_BYTES] {
        device.command(&format!("post meter/{length} {length}"));
        assert_eq!(device.wait_for("posted")["code"], "2.04");
        let topic = format!("meter/{length}");
        expected.push(ReportedData::over_coap(
            &topic,
            &large().as_bytes()[..length],
        ));
    }
    setup.expect_reported(&expected);
}

#[test]
fn aiocoap_receives_requests_with_every_method() {
    let setup = TestService::new("127.0.10.41");
    let mut device = Device::start(&setup);
    for (method, payload, code, answer) in [
        ("GET", None, "404", None),
        ("PUT", Some("eco"), "201", None),
        ("PUT", Some("boost"), "204", None),
        ("PATCH", Some("ed"), "204", None),
        ("GET", None, "205", Some("boosted")),
        ("POST", Some("abc"), "204", Some("cba")),
        ("DELETE", None, "202", None),
        ("GET", None, "404", None),
    ] {
        let body = device.request(method, "/kept");
        let body = match payload {
            Some(payload) => carrying(body, payload),
            None => body,
        };
        let action = setup.perform(&body);
        let status = if code.starts_with('2') {
            "SUCCEEDED"
        } else {
            "FAILED"
        };
        assert_eq!(outcome(&action), (status, code), "{action}");
        let event = device.wait_for("received");
        assert_eq!(event["method"], method, "{event}");
        assert_eq!(event["payload"], payload.unwrap_or_default(), "{event}");
        if let Some(answer) = answer {
            assert_eq!(text_of(&action), answer);
        }
    }
}

#[test]
fn a_response_of_aiocoap_is_text_if_its_format_is_text_and_bytes_otherwise() {
    let setup = TestService::new("127.0.10.42");
    let device = Device::start(&setup);
    let bytes: Vec<u8> = (0..=255).collect();
    let bytes = carrying_bytes(json!({}), &bytes)["payload"].clone();
    for (path, payload, kind) in [
        ("/name", json!("Meter Works"), "TEXT"),
        ("/slow", json!("at last"), "TEXT"),
        ("/bytes", bytes, "BASE64"),
        ("/bare", json!("YmFyZQ=="), "BASE64"),
    ] {
        let action = setup.perform(&device.request("GET", path));
        let expected = json!({ "code": "205", "payload": payload, "payloadType": kind });
        assert_eq!(action["resultData"], expected, "{path}");
    }
}

#[test]
fn bytes_reach_aiocoap_unchanged() {
    let setup = TestService::new("127.0.10.43");
    let mut device = Device::start(&setup);
    let put = carrying_bytes(device.request("PUT", "/kept"), "grün".as_bytes());
    let action = setup.perform(&put);
    assert_eq!(outcome(&action), ("SUCCEEDED", "201"), "{action}");
    assert_eq!(device.wait_for("received")["payload"], "grün");
}

#[test]
fn a_large_body_reaches_aiocoap_and_comes_back() {
    let setup = TestService::new("127.0.10.44");
    let mut device = Device::start(&setup);
    let put = carrying(device.request("PUT", "/kept"), &large());
    let action = setup.perform(&put);
    assert_eq!(outcome(&action), ("SUCCEEDED", "201"), "{action}");
    assert_eq!(device.wait_for("received")["payload"], large());
    let action = setup.perform(&device.request("GET", "/kept"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(text_of(&action), large());
}

#[test]
fn a_request_and_its_response_go_in_blocks_with_aiocoap() {
    let setup = TestService::new("127.0.10.45");
    let device = Device::start(&setup);
    let action = setup.perform(&carrying(device.request("POST", "/kept"), &large()));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    let turned: String = large().chars().rev().collect();
    assert_eq!(text_of(&action), turned);
}

/// A running `aiocoap_plain_device.py`.
struct Device {
    port: u16,
    program: Program,
}

impl Device {
    fn start(setup: &TestService) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("target/interop/venv/bin/python");
        assert!(
            python.exists(),
            "`cargo xtask prepare` makes {}",
            python.display()
        );
        let port = setup.free_port();
        let mut command = Command::new(python);
        command.arg(root.join("tests/interop/aiocoap_plain_device.py"));
        command.args(["--bind", &setup.ip, "--port", &port.to_string()]);
        command
            .arg("--server")
            .arg(format!("coap://{}", setup.service.coap));
        let program = Program::start(&mut command);
        let mut device = Self { port, program };
        device.wait_for("serving");
        device
    }

    fn request(&self, method: &str, path: &str) -> Value {
        coap(method, path, self.port)
    }

    fn command(&mut self, command: &str) {
        self.program.write_line(command);
    }

    /// The next event of this name; others are skipped.
    fn wait_for(&mut self, event: &str) -> Value {
        self.program.wait_for(event, |line| {
            let printed: Value = serde_json::from_str(line).ok()?;
            (printed["event"] == event).then_some(printed)
        })
    }
}
