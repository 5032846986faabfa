//! Can a caller read and write several paths of a device in one request?

use harness::device::configuration::{CompositeRead, Configuration};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;
use serde_json::{Value as Json, json};

use crate::errors::check;
use crate::managing::payload;
use crate::test_service::{ID, TestService};
use crate::vocabulary::lwm2m::outcome;

const FORMATS: [ContentFormat; 3] = [
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
];

#[test]
fn several_paths_are_read_at_once_without_those_that_do_not_exist() {
    for format in FORMATS {
        let setup = TestService::with(&[], speaking(&[format]));
        let paths = ["/3303/0/5700", "/6/0", "/3303/9", "/3/0/99"];
        let action = setup.perform(&read_composite(&paths));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{format} {action}");
        let expected = json!({ "/3303/0/5700": 21.5, "/6/0/0": 52.52, "/6/0/1": 13.405 });
        assert_eq!(payload(&action), expected, "{format}");
        let known = setup.caller.known_value(ID, "/6/0/1").unwrap();
        assert_eq!(known["value"], 13.405, "{known}");
        assert_eq!(action["requestData"]["resourceAddresses"], json!(paths));
    }
}

#[test]
fn everything_is_read_at_the_root() {
    let setup = TestService::with(&[], speaking(&[ContentFormat::SENML_CBOR]));
    let action = setup.perform(&read_composite(&["/"]));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    let values = payload(&action);
    assert_eq!(values["/3/0/14"], "+00:00", "{values}");
    assert_eq!(values["/3303/0/5700"], 21.5, "{values}");
    assert_eq!(action["requestData"]["resourceAddresses"], json!(["/"]));
}

#[test]
fn several_paths_are_written_at_once_or_not_at_all() {
    for format in FORMATS {
        let setup = TestService::with(&[], speaking(&[format]));
        let values =
            json!({ "/1/0/1": 600, "/3/0/14": "+02:00", "/3/0/13": "2026-03-01T12:00:00Z" });
        let action = setup.perform(&write_composite(values));
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{format} {action}");
        assert_eq!(
            setup.device.value(Path::resource(1, 0, 1)),
            Value::Integer(600)
        );
        assert_eq!(
            setup.device.value(Path::resource(3, 0, 13)),
            Value::Time(1_772_366_400)
        );
        let offset = Path::resource(3, 0, 14);
        assert_eq!(setup.device.value(offset), Value::String("+02:00".into()));
        // The model number cannot be written.
        let values = json!({ "/3/0/1": "other", "/3/0/14": "+03:00" });
        let action = setup.perform(&write_composite(values));
        assert_eq!(outcome(&action), ("FAILED", "405"), "{format} {action}");
        assert_eq!(setup.device.value(offset), Value::String("+02:00".into()));
    }
}

#[test]
fn the_next_format_is_tried_if_the_device_refuses_one() {
    let mut configuration = speaking(&[ContentFormat::SENML_JSON]);
    configuration.announced = vec![ContentFormat::SENML_CBOR, ContentFormat::SENML_JSON];
    let setup = TestService::with(&[], configuration);
    let action = setup.perform(&write_composite(json!({ "/3/0/14": "+02:00" })));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    let action = setup.perform(&read_composite(&["/3/0/14"]));
    assert_eq!(payload(&action), json!({ "/3/0/14": "+02:00" }), "{action}");
}

#[test]
fn a_device_that_cannot_fails_with_the_reason() {
    let mut old = Configuration::new(ID);
    old.version = EnablerVersion::V1_0;
    let setup = TestService::with(&[], old);
    let action = setup.perform(&read_composite(&["/3/0/14"]));
    assert_eq!(action["status"], "FAILED", "{action}");
    let why = action["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("LwM2M 1.0"), "{why}");
    let setup = TestService::new();
    let action = setup.perform(&read_composite(&["/3/0/14"]));
    let why = action["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("no format"), "{why}");
    assert!(setup.device.performed().is_empty());
    let mut refusing = speaking(&[ContentFormat::SENML_CBOR]);
    refusing.composite = CompositeRead::Refused(Code::METHOD_NOT_ALLOWED);
    let setup = TestService::with(&[], refusing);
    let action = setup.perform(&read_composite(&["/3/0/14"]));
    assert_eq!(outcome(&action), ("FAILED", "405"), "{action}");
}

#[test]
fn every_value_that_does_not_fit_is_named() {
    let setup = TestService::with(&[], speaking(&[ContentFormat::SENML_CBOR]));
    let action = setup.perform(&write_composite(
        json!({ "/1/0/1": "soon", "/3/0/13": "noon" }),
    ));
    assert_eq!(action["status"], "FAILED", "{action}");
    let why = action["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("/1/0/1") && why.contains("/3/0/13"), "{why}");
    assert!(setup.device.performed().is_empty());
}

#[test]
fn every_fault_of_a_body_is_named() {
    let setup = TestService::new();
    let many: Vec<String> = (0..101).map(|id| format!("/3303/{id}")).collect();
    let cases: [(Json, &[(&str, &str)]); 5] = [
        (
            json!({ "action": "read-composite", "resourceAddress": "/3",
                    "resourceAddresses": ["/3", "x", "/3", "/"] }),
            &[
                ("INVALID_VALUE", "resourceAddress"),
                ("INVALID_VALUE", "resourceAddresses[1]"),
                ("REPEATED", "resourceAddresses[2]"),
                ("INVALID_VALUE", "resourceAddresses[3]"),
            ],
        ),
        (
            json!({ "action": "read-composite" }),
            &[("REQUIRED", "resourceAddresses")],
        ),
        (
            json!({ "action": "read-composite", "resourceAddresses": many }),
            &[("OUT_OF_RANGE", "resourceAddresses")],
        ),
        (
            json!({ "action": "write-composite", "data": { "5700": 1, "/3/0": 2 } }),
            &[
                ("INVALID_VALUE", "data./3/0"),
                ("INVALID_VALUE", "data.5700"),
            ],
        ),
        (
            json!({ "action": "write-composite", "data": "1" }),
            &[("WRONG_TYPE", "data")],
        ),
    ];
    for (body, faults) in cases {
        check(&setup.caller.try_action(ID, &body), 400, faults);
    }
}

pub(crate) fn read_composite(paths: &[&str]) -> Json {
    json!({ "action": "read-composite", "resourceAddresses": paths })
}

fn write_composite(data: Json) -> Json {
    json!({ "action": "write-composite", "data": data })
}

/// A device of LwM2M 1.2 with these formats.
pub(crate) fn speaking(formats: &[ContentFormat]) -> Configuration {
    Configuration {
        version: EnablerVersion::V1_2,
        ..Configuration::new(ID).speaking(formats)
    }
}
