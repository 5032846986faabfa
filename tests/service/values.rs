//! Does each type of value reach the device and come back as its caller wrote it?

use harness::device::configuration::Configuration;
use harness::device::resource::{AnswerMode, Resource};
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::{ObjectLink, Value};

use crate::test_service::{ID, TestService};
use crate::vocabulary::lwm2m::{outcome, read, write};

/// The OMA's test object has a resource of every type.
pub(crate) const OBJECT: u16 = 3442;

/// A resource of one type.
pub(crate) struct Case {
    resource: u16,
    /// The value the device holds at first, and its text in the API.
    pub(crate) held: (Value, &'static str),
    /// The text a caller writes, the value the device then holds, and its text in the API.
    pub(crate) written: Vec<(&'static str, Value, &'static str)>,
    /// Texts that are no value of the type.
    unfit: &'static [&'static str],
}

#[test]
fn a_value_that_does_not_fit_its_resource_fails_and_is_never_sent() {
    let setup = TestService::with(&[], every_type(Configuration::new(ID)));
    let mut wrong = 0;
    for case in cases() {
        for text in case.unfit {
            let id = setup
                .caller
                .create_action(ID, &write(&case.address(), text));
            let action = setup.caller.final_action(&id);
            assert_eq!(action["status"], "FAILED", "{text}: {action}");
            assert!(
                action["resultData"]["code"].is_null(),
                "the device did not answer: {action}"
            );
            let why = action["resultData"]["errorMessage"]
                .as_str()
                .unwrap_or_default();
            assert!(!why.is_empty(), "{action}");
            let entry = setup.caller.log_entries().remove(0);
            assert_eq!(
                entry["message"], "DeviceController[InvalidDataType]",
                "{entry}"
            );
            assert_eq!(
                (&entry["type"], &entry["category"]),
                (&"DEVICE".into(), &"error".into())
            );
            assert!(
                entry["description"].as_str().unwrap().contains(&id),
                "{entry}"
            );
            wrong += 1;
        }
    }
    assert!(wrong >= 12, "{wrong}");
    assert!(setup.device.performed().is_empty());
}

#[test]
fn an_answer_without_a_payload_is_a_result_of_its_code() {
    let setup = TestService::with(&[], every_type(Configuration::new(ID)));
    let path = Path::resource(OBJECT, 0, 110);
    setup
        .device
        .answer_with(path, AnswerMode::Code(Code::CONTENT));
    let action = setup.caller.perform(ID, &read("/3442/0/110"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(action["resultData"]["payload"], "");
}

impl Case {
    pub(crate) fn path(&self) -> Path {
        Path::resource(OBJECT, 0, self.resource)
    }

    pub(crate) fn address(&self) -> String {
        format!("/{OBJECT}/0/{}", self.resource)
    }
}

/// A device that has a resource of each type.
pub(crate) fn every_type(mut configuration: Configuration) -> Configuration {
    let resources = cases().into_iter().map(|case| {
        let path = case.path();
        Resource::holding(path, case.held.0)
    });
    configuration.resources.extend(resources);
    configuration
}

/// A resource of each type, with values at the ends of its range.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = numbers();
    cases.extend(other_types());
    cases
}

fn numbers() -> Vec<Case> {
    let most = Value::UnsignedInteger(u64::MAX);
    vec![
        case(
            120,
            (Value::Integer(-7), "-7"),
            &[
                whole("9007199254740993", 9_007_199_254_740_993),
                whole("-9223372036854775808", i64::MIN),
                whole("9223372036854775807", i64::MAX),
            ],
            &["1.5", "seven", "", "9223372036854775808"],
        ),
        case(
            125,
            (Value::UnsignedInteger(7), "7"),
            &[
                ("0", Value::UnsignedInteger(0), "0"),
                ("18446744073709551615", most, "18446744073709551615"),
            ],
            &["-1", "1.5", "18446744073709551616"],
        ),
        case(
            130,
            (Value::Float(21.5), "21.5"),
            &[
                ("-0.25", Value::Float(-0.25), "-0.25"),
                ("3", Value::Float(3.0), "3"),
                ("0.1", Value::Float(0.1), "0.1"),
            ],
            &["warm", "1,5", "NaN", "-inf", "Infinity", "1e999"],
        ),
    ]
}

fn other_types() -> Vec<Case> {
    let text = |text: &str| Value::String(text.to_owned());
    let link = |object, instance| Value::ObjectLink(ObjectLink { object, instance });
    let noon = Value::Time(1_772_366_400);
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    vec![
        case(110, (text("Grüße"), "Grüße"), &[("", text(""), "")], &[]),
        case(
            140,
            (no.clone(), "false"),
            &[
                ("true", yes.clone(), "true"),
                ("0", no.clone(), "false"),
                ("1", yes, "true"),
                ("false", no, "false"),
            ],
            &["yes", "2"],
        ),
        case(
            150,
            (Value::Opaque(vec![0, 1, 255]), "AAH/"),
            &[
                (
                    "3q2+7w==",
                    Value::Opaque(vec![0xDE, 0xAD, 0xBE, 0xEF]),
                    "3q2+7w==",
                ),
                ("", Value::Opaque(vec![]), ""),
            ],
            &["***", "3q2+7w="],
        ),
        case(
            160,
            (Value::Time(1_767_225_600), "2026-01-01T00:00:00Z"),
            &[
                ("2026-03-01T12:00:00Z", noon.clone(), "2026-03-01T12:00:00Z"),
                ("1772366400", noon.clone(), "2026-03-01T12:00:00Z"),
                ("2026-03-01T13:00:00+01:00", noon, "2026-03-01T12:00:00Z"),
                ("0", Value::Time(0), "1970-01-01T00:00:00Z"),
                ("-1", Value::Time(-1), "1969-12-31T23:59:59Z"),
            ],
            &["noon", "2026-13-01T00:00:00Z"],
        ),
        case(
            170,
            (link(3, 0), "3:0"),
            &[
                ("65535:65535", link(65_535, 65_535), "65535:65535"),
                ("0:0", link(0, 0), "0:0"),
            ],
            &["3", "3:65536"],
        ),
    ]
}

/// A whole number that is read as it was written.
fn whole(text: &'static str, number: i64) -> (&'static str, Value, &'static str) {
    (text, Value::Integer(number), text)
}

fn case(
    resource: u16,
    held: (Value, &'static str),
    written: &[(&'static str, Value, &'static str)],
    unfit: &'static [&'static str],
) -> Case {
    let written = written.to_vec();
    Case {
        resource,
        held,
        written,
        unfit,
    }
}
