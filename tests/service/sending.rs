//! What becomes of what a device sends without being asked?

use harness::device::event::Event;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample};
use protocol::lwm2m::value::Value;
use serde_json::{Value as Json, json};

use crate::scene::{ID, Scene};
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::wire::{Wire, request};

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);

#[test]
fn values_are_known_and_told_whatever_format_they_are_sent_in() {
    let mut scene = Scene::new();
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
        assert_eq!(scene.device.send(format, samples), Event::Sent);
        let told = scene.caller.messages(ID).remove(0);
        let value = json!({
            "/3/0/9": 80, "/3303/0/5700": degrees, "/3303/0/5701": "Cel",
        });
        assert_eq!(told["payload"]["value"], value, "{format:?}: {told}");
        assert_eq!(told["cause"]["type"], "SEND", "{told}");
        let known = scene.caller.known_value(ID, "/3303/0/5700").unwrap();
        assert_eq!(known["value"], degrees, "{known}");
    }
}

#[test]
fn samples_of_several_times_are_each_told_with_their_own() {
    let mut scene = Scene::new();
    let at = |second: i64, degrees| Sample {
        path: TEMPERATURE,
        value: Value::Float(degrees),
        measured: Some(Measured::Absolute(second * 1_000)),
    };
    let samples = vec![at(1_763_726_460, 2.5), at(1_763_726_400, 1.5)];
    assert_eq!(
        scene.device.send(ContentFormat::SENML_CBOR, samples),
        Event::Sent
    );
    let told: Vec<(Json, Json)> = scene
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
    assert_eq!(told, expected, "the latest first");
}

#[test]
fn what_a_stranger_sends_is_refused() {
    let scene = Scene::new();
    let stranger = Wire::to(&scene.service);
    let pack = r#"[{"n":"/3303/0/5700","v":99}]"#;
    let message = request(Code::POST, 1)
        .with_uri_path(["dp"])
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(pack);
    assert_eq!(stranger.ask(&message).code, Code::NOT_FOUND);
    assert_eq!(told_values(&scene), Vec::<Json>::new());
    assert!(scene.caller.known_value(ID, "/3303/0/5700").is_none());
}

#[test]
fn what_is_sent_of_unknown_objects_is_kept_and_the_log_says_so_once() {
    let mut scene = Scene::new();
    for number in [1, 2] {
        let path = Path::resource(42_769, 7, 1);
        let samples = vec![now(path, Value::Integer(number))];
        assert_eq!(
            scene.device.send(ContentFormat::SENML_CBOR, samples),
            Event::Sent
        );
        let told = told_values(&scene).remove(0);
        assert_eq!(told, json!({ "/42769/7/1": number }));
    }
    let entries = scene.caller.log_entries();
    let errors: Vec<&Json> = entries
        .iter()
        .filter(|entry| entry["category"] == "error")
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn what_waits_for_a_device_goes_out_when_it_sends() {
    let mut scene = Scene::new();
    let id = scene
        .caller
        .create_action(ID, &when_active(read("/3303/0/5700")));
    assert_eq!(scene.caller.action(&id)["status"], "SCHEDULED");
    let samples = vec![now(TEMPERATURE, Value::Float(21.5))];
    assert_eq!(
        scene.device.send(ContentFormat::SENML_CBOR, samples),
        Event::Sent
    );
    let action = scene.caller.final_action(&id);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
}

#[test]
fn what_a_device_was_thanked_for_survives_a_crash() {
    let mut scene = Scene::new();
    let samples = vec![now(TEMPERATURE, Value::Float(-12.5))];
    assert_eq!(
        scene.device.send(ContentFormat::SENML_JSON, samples),
        Event::Sent
    );
    scene.crash();
    let told = scene.caller.messages(ID).remove(0);
    assert_eq!(told["payload"]["value"], json!({ "/3303/0/5700": -12.5 }));
    let known = scene.caller.known_value(ID, "/3303/0/5700").unwrap();
    assert_eq!(known["value"], -12.5, "{known}");
}

/// The values the device told, the latest first.
fn told_values(scene: &Scene) -> Vec<Json> {
    let messages = scene.caller.messages(ID).into_iter();
    let values = messages.filter(|message| message["type"] == "TELEMETRY_DATA");
    values
        .map(|message| message["payload"]["value"].clone())
        .collect()
}

/// A value of now.
fn now(path: Path, value: Value) -> Sample {
    Sample {
        path,
        value,
        measured: None,
    }
}
