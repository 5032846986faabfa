//! What happens to the values a device sends by itself?

use harness::device::event::DeviceEvent;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample};
use protocol::lwm2m::value::Value;
use serde_json::{Value as Json, json};

use crate::test_service::{ID, TestService};

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);

#[test]
fn values_sent_in_any_format_are_published_and_become_last_known_values() {
    let mut setup = TestService::new();
    let formats = [
        ContentFormat::SENML_JSON,
        ContentFormat::SENML_CBOR,
        ContentFormat::LWM2M_CBOR,
    ];
    for (number, format) in formats.into_iter().enumerate() {
        let degrees = [20.5, 21.25, -3.75][number];
        let samples = vec![
            now(TEMPERATURE, Value::Float(degrees)),
            now(Path::resource(3303, 0, 5701), Value::String("Cel".into())),
            now(Path::resource(3, 0, 9), Value::Integer(80)),
        ];
        assert_eq!(setup.device.send(format, samples), DeviceEvent::Sent);
        let messages = setup.caller.messages(ID).remove(0);
        let value = json!({
            "/3/0/9": 80, "/3303/0/5700": degrees, "/3303/0/5701": "Cel",
        });
        assert_eq!(
            messages["payload"]["value"], value,
            "{format:?}: {messages}"
        );
        assert_eq!(messages["cause"]["type"], "SEND", "{messages}");
        let known = setup.caller.known_value(ID, "/3303/0/5700").unwrap();
        assert_eq!(known["value"], degrees, "{known}");
    }
}

#[test]
fn samples_of_several_times_are_published_with_their_own_times() {
    let mut setup = TestService::new();
    let at = |second: i64, degrees| Sample {
        path: TEMPERATURE,
        value: Value::Float(degrees),
        measured: Some(Measured::Absolute(second * 1_000)),
    };
    let samples = vec![at(1_763_726_460, 2.5), at(1_763_726_400, 1.5)];
    assert_eq!(
        setup.device.send(ContentFormat::SENML_CBOR, samples),
        DeviceEvent::Sent
    );
    let messages: Vec<(Json, Json)> = setup
        .caller
        .messages(ID)
        .into_iter()
        .take(2)
        .map(|it| {
            (
                it["payload"]["value"]["/3303/0/5700"].clone(),
                it["measured"].clone(),
            )
        })
        .collect();
    let expected = [
        (json!(2.5), json!("1763726460000")),
        (json!(1.5), json!("1763726400000")),
    ];
    assert_eq!(messages, expected, "the latest first");
}

#[test]
fn acknowledged_values_survive_a_crash() {
    let mut setup = TestService::new();
    let samples = vec![now(TEMPERATURE, Value::Float(-12.5))];
    assert_eq!(
        setup.device.send(ContentFormat::SENML_JSON, samples),
        DeviceEvent::Sent
    );
    setup.crash();
    let messages = setup.caller.messages(ID).remove(0);
    assert_eq!(
        messages["payload"]["value"],
        json!({ "/3303/0/5700": -12.5 })
    );
    let known = setup.caller.known_value(ID, "/3303/0/5700").unwrap();
    assert_eq!(known["value"], -12.5, "{known}");
}

#[test]
fn an_unreadable_value_does_not_refuse_the_send() {
    let mut setup = TestService::new();
    let samples = vec![
        now(TEMPERATURE, Value::Float(f64::NAN)),
        now(Path::resource(3303, 0, 5701), Value::String("Cel".into())),
        now(Path::resource(3, 0, 9), Value::String("full".into())),
    ];
    let format = ContentFormat::SENML_CBOR;
    assert_eq!(setup.device.send(format, samples), DeviceEvent::Sent);
    // The newest is the event of the log entry.
    let message = setup.caller.messages(ID).remove(1);
    let value = json!({ "/3303/0/5701": "Cel" });
    assert_eq!(message["payload"]["value"], value, "{message}");
    let entry = setup.caller.log_entries().remove(0);
    assert_eq!(entry["message"], "Translator[UserPayloadError]", "{entry}");
    let description = entry["description"].as_str().unwrap();
    for reason in [
        "the value of /3303/0/5700 is not a finite number",
        "the value of /3/0/9 is not of type INTEGER",
    ] {
        assert!(description.contains(reason), "{entry}");
    }
    assert!(entry["payloadReference"].is_string(), "{entry}");
}

/// A value without a time of its own.
fn now(path: Path, value: Value) -> Sample {
    Sample {
        path,
        value,
        measured: None,
    }
}
