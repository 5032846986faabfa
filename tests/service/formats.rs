//! Do values of every type reach the device and come back in every format a device may insist on?

use harness::device::configuration::Configuration;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::value::DataType;
use protocol::lwm2m::version::EnablerVersion;
use serde_json::json;

use crate::test_service::{ID, TestService, start};
use crate::values::{Case, OBJECT, cases, every_type};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::lwm2m::{outcome, read, write};

/// A format that may be a device's only one, and the first LwM2M version that has it.
const ONLY: [(ContentFormat, EnablerVersion); 7] = [
    (ContentFormat::TEXT, EnablerVersion::V1_0),
    (ContentFormat::LWM2M_TLV, EnablerVersion::V1_0),
    (ContentFormat::LWM2M_JSON, EnablerVersion::V1_0),
    (ContentFormat::CBOR, EnablerVersion::V1_1),
    (ContentFormat::SENML_JSON, EnablerVersion::V1_1),
    (ContentFormat::SENML_CBOR, EnablerVersion::V1_1),
    (ContentFormat::LWM2M_CBOR, EnablerVersion::V1_2),
];

#[test]
fn values_of_every_type_are_exchanged_in_the_format_a_device_announces() {
    let (service, caller) = start(&[]);
    for (number, (format, version)) in ONLY.into_iter().enumerate() {
        let name = format!("speaks-{number}");
        caller.create_device(&name, DEVICE_IP);
        let device = Device::registered(&service, speaking(&name, format, version));
        exchange(&caller, &name, &device, cases());
    }
}

#[test]
fn values_of_every_type_are_exchanged_in_a_format_a_device_does_not_announce() {
    let (service, caller) = start(&[]);
    for (number, (format, version)) in ONLY.into_iter().enumerate() {
        let name = format!("silent-{number}");
        caller.create_device(&name, DEVICE_IP);
        let configuration = Configuration {
            announced: Vec::new(),
            ..speaking(&name, format, version)
        };
        let device = Device::registered(&service, configuration);
        exchange(&caller, &name, &device, cases());
    }
}

#[test]
fn opaque_values_are_exchanged_as_bytes() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let format = ContentFormat::OCTET_STREAM;
    let device = Device::registered(&service, speaking(ID, format, EnablerVersion::V1_0));
    let mut bytes = cases();
    bytes.retain(|case| case.held.0.data_type() == DataType::Opaque);
    assert_eq!(bytes.len(), 1);
    exchange(&caller, ID, &device, bytes);
}

#[test]
fn an_instance_is_read_with_types_in_every_format_that_can_hold_one() {
    let (service, caller) = start(&[]);
    let holds_one = |format| !matches!(format, ContentFormat::TEXT | ContentFormat::CBOR);
    for (number, (format, version)) in ONLY.into_iter().enumerate() {
        if !holds_one(format) {
            continue;
        }
        let name = format!("whole-{number}");
        caller.create_device(&name, DEVICE_IP);
        let _device = Device::registered(&service, speaking(&name, format, version));
        let action = caller.perform(&name, &read(&format!("/{OBJECT}/0")));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        let payload = action["resultData"]["payload"].as_str().unwrap();
        let values: serde_json::Value = serde_json::from_str(payload).unwrap();
        let expected = json!({
            "/3442/0/110": "Grüße",
            "/3442/0/120": -7,
            "/3442/0/125": 7,
            "/3442/0/130": 21.5,
            "/3442/0/140": false,
            "/3442/0/150": "AAH/",
            "/3442/0/160": "2026-01-01T00:00:00Z",
            "/3442/0/170": "3:0",
        });
        assert_eq!(values, expected, "{format:?}");
    }
}

#[test]
fn a_refused_format_and_the_next_are_in_the_timeline() {
    let only = speaking(ID, ContentFormat::SENML_CBOR, EnablerVersion::V1_1);
    let setup = TestService::with(
        &[],
        Configuration {
            announced: Vec::new(),
            ..only
        },
    );
    let action = setup.caller.perform(ID, &read(&format!("/{OBJECT}/0")));
    let action = setup.caller.action(action["id"].as_str().unwrap());
    let happened = action["timeline"].as_array().unwrap().iter();
    let happened: Vec<_> = happened
        .map(|it| (it["event"].as_str().unwrap(), it["code"].as_str()))
        .collect();
    let expected = [
        ("ATTEMPT_BEGUN", None),
        ("DATAGRAM_SENT", None),
        ("ANSWERED", Some("406")),
        ("DATAGRAM_SENT", None),
        ("ANSWERED", Some("205")),
    ];
    assert_eq!(happened, expected, "{action}");
    assert_eq!(action["sendAttempts"], 1, "{action}");
}

/// Reads the value a device holds, then writes and reads back each value of its type.
fn exchange(caller: &Caller, name: &str, device: &Device, cases: Vec<Case>) {
    for case in cases {
        assert_eq!(read_back(caller, name, &case), case.held.1, "{name}");
        for (text, value, shown) in &case.written {
            let action = caller.perform(name, &write(&case.address(), text));
            assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{name}: {action}");
            assert_eq!(device.value(case.path()), *value, "{name}: {text}");
            assert_eq!(read_back(caller, name, &case), *shown, "{name}");
        }
    }
}

fn read_back(caller: &Caller, name: &str, case: &Case) -> String {
    let action = caller.perform(name, &read(&case.address()));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{name}: {action}");
    action["resultData"]["payload"].as_str().unwrap().to_owned()
}

/// A device that has a resource of every type, and one format.
fn speaking(name: &str, format: ContentFormat, version: EnablerVersion) -> Configuration {
    every_type(Configuration {
        version,
        ..Configuration::new(name).speaking(&[format])
    })
}
