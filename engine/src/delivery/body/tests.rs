//! Is each type of event serialised as documented?

use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::{ObjectLink, Value};
use serde_json::json;

use super::*;
use crate::action::{PayloadType, Protocol, Status};
use crate::event::{Cause, EventType};
use crate::ids::{ActionId, CustomerId, DeviceId, DeviceKey, EntryId, Iccid, Imsi};
use crate::topic::Topic;

const ID: &str = "0198c0de-0000-7000-8000-000000000001";
const ABOUT: &str = "0198c0de-0000-7000-8000-000000000002";

#[test]
fn values_are_typed_and_keyed_by_path() {
    let link = ObjectLink {
        object: 3,
        instance: 0,
    };
    let values = [
        (Path::resource(3303, 0, 5700), Value::Float(21.5)),
        (Path::resource(3303, 0, 5701), Value::String("Cel".into())),
        (Path::resource(3303, 1, 5700), Value::Float(-0.1)),
        (Path::resource(3303, 2, 5700), Value::Float(f64::NAN)),
        (Path::resource(3, 0, 9), Value::Integer(i64::MIN)),
        (
            Path::resource_instance(3, 0, 6, 1),
            Value::Integer(9_007_199_254_740_993),
        ),
        (Path::resource(3, 0, 13), Value::Time(1_763_726_400)),
        (Path::resource(4, 0, 8), Value::UnsignedInteger(u64::MAX)),
        (Path::resource(5, 0, 0), Value::Opaque(vec![1, 2, 255])),
        (Path::resource(31024, 0, 1), Value::Boolean(true)),
        (Path::resource(31024, 0, 2), Value::ObjectLink(link)),
        (
            Path::resource(31024, 0, 3),
            Value::CoreLink("</3/0>".into()),
        ),
        (
            Path::resource(31024, 0, 4),
            Value::String("\"\n\u{1f600}".into()),
        ),
    ];
    check(
        EventContent::Telemetry(telemetry(&values, None)),
        concat!(
            r#"{"id":"0198c0de-0000-7000-8000-000000000001","type":"TELEMETRY_DATA","#,
            r#""received":"1763726400999","version":"1.0.0","device":{"#,
            r#""deviceId":"meter-1","#,
            r#""iccid":"8988228066600000001","imsi":"001010000000001","ip":"10.64.0.7"},"#,
            r#""source":"LWM2M","payload":{"type":"JSON","value":{"#,
            r#""/3/0/13":"2025-11-21T12:00:00Z","#,
            r#""/3/0/6/1":9007199254740993,"/3/0/9":-9223372036854775808,"#,
            r#""/31024/0/1":true,"/31024/0/2":"3:0","/31024/0/3":"</3/0>","#,
            r#""/31024/0/4":"\"\n😀","#,
            r#""/3303/0/5700":21.5,"/3303/0/5701":"Cel","/3303/1/5700":-0.1,"#,
            r#""/3303/2/5700":null,"/4/0/8":18446744073709551615,"/5/0/0":"AQL/"}}}"#,
        ),
    );
}

#[test]
fn a_sample_with_a_time_of_its_own_has_it() {
    let values = [(Path::resource(3303, 0, 5700), Value::Float(21.0))];
    let measured_at = Some(Timestamp::from_ms(1_763_700_000_000));
    check(
        EventContent::Telemetry(telemetry(&values, measured_at)),
        concat!(
            r#"{"id":"0198c0de-0000-7000-8000-000000000001","type":"TELEMETRY_DATA","#,
            r#""received":"1763726400999","version":"1.0.0","measured":"1763700000000","#,
            r#""device":{"deviceId":"meter-1","iccid":"8988228066600000001","#,
            r#""imsi":"001010000000001","ip":"10.64.0.7"},"#,
            r#""source":"LWM2M","payload":{"type":"JSON","#,
            r#""value":{"/3303/0/5700":21.0}}}"#,
        ),
    );
}

#[test]
fn data_is_sent_unchanged_in_base64() {
    for (source, topic, word) in [
        (Protocol::Coap, Some("a/b"), "COAP"),
        (Protocol::Udp, None, "UDP"),
    ] {
        let body = body_of(&event(data(source, topic, b"\xff{")));
        assert_eq!(body["type"], "TELEMETRY_DATA");
        assert_eq!(body["source"], word);
        let mut payload = json!({"type": "STRING", "value": "/3s=", "encoding": "base64"});
        if let Some(topic) = topic {
            payload["topic"] = topic.into();
        }
        assert_eq!(body["payload"], payload);
    }
}

#[test]
fn json_is_sent_byte_for_byte_where_that_is_wanted() {
    let deep = "[".repeat(50) + &"]".repeat(50);
    for text in [
        r#"{"b":1,"a":1,"a":2}"#,
        r#"{"t" : 21.50, "n":9007199254740993}"#,
        r#"["\u00fc","ü"]"#,
        "21.50",
        "true",
        "null",
        r#""on""#,
        &deep,
    ] {
        let event = event(data(Protocol::Udp, None, text.as_bytes()));
        let as_json = format!(r#""payload":{{"type":"JSON","value":{text}}}}}"#);
        let written = String::from_utf8(render(&event, JsonPayload::Parsed)).unwrap();
        assert!(written.ends_with(&as_json), "{written}");
        let bytes = String::from_utf8(render(&event, JsonPayload::AsText)).unwrap();
        let in_base64 = format!(r#""value":"{}""#, base64_text::encode(text.as_bytes()));
        assert!(bytes.contains(&in_base64), "{bytes}");
    }
}

#[test]
fn white_space_around_json_is_left_out() {
    let event = event(data(Protocol::Udp, None, b" \r\n\t{\"on\":true}\n "));
    let written = String::from_utf8(render(&event, JsonPayload::Parsed)).unwrap();
    assert!(written.ends_with(r#""value":{"on":true}}}"#), "{written}");
}

#[test]
fn data_that_is_not_json_is_sent_in_base64_whatever_is_wanted() {
    let too_deep = "[".repeat(200) + &"]".repeat(200);
    let cases: [&[u8]; 11] = [
        b"on",
        b"",
        b"1],[2",
        b"1e400",
        b"{",
        b"{}{}",
        b"[1,]",
        b"NaN",
        b"\"\xff\"",
        b"\xef\xbb\xbf{}",
        too_deep.as_bytes(),
    ];
    for bytes in cases {
        let event = event(data(Protocol::Coap, Some("t"), bytes));
        let body: Json = serde_json::from_slice(&render(&event, JsonPayload::Parsed)).unwrap();
        let expected = json!({
            "type": "STRING",
            "value": base64_text::encode(bytes),
            "encoding": "base64",
            "topic": "t",
        });
        assert_eq!(body["payload"], expected);
    }
}

#[test]
fn an_event_with_deep_json_can_be_parsed() {
    for depth in 100..140 {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        let event = event(data(Protocol::Udp, None, text.as_bytes()));
        let body = render(&event, JsonPayload::Parsed);
        let read = serde_json::from_slice::<Json>(&body);
        assert!(read.is_ok(), "{depth}: {read:?}");
    }
}

#[test]
fn a_lifecycle_event_has_a_type_and_a_sentence() {
    for (what, kind, message) in [
        (
            Lifecycle::Registered,
            "REGISTERED",
            "The device registered.",
        ),
        (
            Lifecycle::Deregistered,
            "DEREGISTERED",
            "The device deregistered.",
        ),
        (
            Lifecycle::Expired,
            "EXPIRED",
            "The registration of the device expired.",
        ),
    ] {
        let body = body_of(&event(EventContent::Lifecycle(what)));
        assert_eq!(body["type"], "LIFECYCLE");
        assert_eq!(body["lifecycle"], json!({"type": kind, "message": message}));
    }
}

#[test]
fn an_error_names_its_entry_and_whether_a_payload_is_stored() {
    for (payload, exists) in [(PayloadKept::Yes, true), (PayloadKept::No, false)] {
        let failure = ErrorReport {
            entry: EntryId::parse(ABOUT).unwrap(),
            message: "Translator[UserPayloadError]".into(),
            description: "The payload cannot be read: it ends early.".into(),
            payload,
        };
        let body = body_of(&event(EventContent::Error(Box::new(failure))));
        assert_eq!(body["type"], "ERROR");
        assert_eq!(
            body["error"],
            json!({
                "id": ABOUT,
                "type": "DEVICE",
                "message": "Translator[UserPayloadError]",
                "description": "The payload cannot be read: it ends early.",
                "payloadExists": exists,
            })
        );
    }
}

#[test]
fn a_final_request_has_its_result() {
    let values = [(Path::resource(3, 0, 9), Value::Integer(87))];
    let outcome = Outcome {
        code: Some("205".into()),
        payload: Some(ResultPayload::Values(values.into())),
        ..Outcome::default()
    };
    let payload = r#"{"/3/0/9":87}"#;
    let result = json!({"code": "205", "payload": payload});
    check_result(Status::Succeeded, Some(outcome), Some(result));
    let outcome = Outcome {
        code: Some("404".into()),
        payload: Some("AQL/".into()),
        payload_type: Some(PayloadType::Base64),
        error: Some("The device has no such resource.".into()),
    };
    let result = json!({
        "code": "404",
        "payload": "AQL/",
        "payloadType": "BASE64",
        "errorMessage": "The device has no such resource.",
    });
    check_result(Status::Failed, Some(outcome), Some(result));
    check_result(Status::Cancelled, None, None);
}

#[test]
fn unknown_fields_of_a_device_are_left_out() {
    let mut event = event(EventContent::Lifecycle(Lifecycle::Registered));
    event.device_info.imsi = None;
    event.device_info.ip = None;
    assert_eq!(
        body_of(&event)["device"],
        json!({"deviceId": "meter-1", "iccid": "8988228066600000001"})
    );
}

#[test]
fn a_test_event_has_no_device() {
    let id = EventId::parse(ID).unwrap();
    let written = render_test(&id, Timestamp::from_ms(1_763_726_400_999));
    assert_eq!(
        String::from_utf8(written).unwrap(),
        concat!(
            r#"{"id":"0198c0de-0000-7000-8000-000000000001","type":"TEST_MESSAGE","#,
            r#""received":"1763726400999","version":"1.0.0","device":{},"#,
            r#""test":{"message":"This is a test of the integration."}}"#,
        )
    );
}

#[test]
fn every_type_of_event_has_its_word() {
    let words = EventType::ALL.map(words::event_type);
    assert_eq!(
        words,
        [
            "TELEMETRY_DATA",
            "LIFECYCLE",
            "ERROR",
            "ACTION_RESULT",
            "SMS_RECEIVED",
            "SMS_REPORT"
        ]
    );
}

#[test]
fn the_events_of_the_documentation_are_as_they_are_sent() {
    let values = [
        (Path::resource(3303, 0, 5700), Value::Float(21.5)),
        (Path::resource(3303, 0, 5701), Value::String("Cel".into())),
    ];
    let measured_at = Some(Timestamp::from_ms(1_763_700_000_000));
    let battery = [(Path::resource(3, 0, 9), Value::Integer(87))];
    let contents = [
        EventContent::Telemetry(telemetry(&values, measured_at)),
        EventContent::Lifecycle(Lifecycle::Registered),
        EventContent::Error(Box::new(ErrorReport {
            entry: EntryId::parse(ABOUT).unwrap(),
            message: "Translator[UserPayloadError]".into(),
            description: "The payload cannot be read: it ends early.".into(),
            payload: PayloadKept::Yes,
        })),
        EventContent::ActionResult(Box::new(ActionResult {
            action: ActionId::parse(ABOUT).unwrap(),
            protocol: Protocol::Lwm2m,
            status: Status::Succeeded,
            outcome: Some(Outcome {
                code: Some("205".into()),
                payload: Some(ResultPayload::Values(battery.into())),
                ..Outcome::default()
            }),
        })),
    ];
    let mut sent: Vec<Json> = contents
        .into_iter()
        .map(|content| body_of(&event(content)))
        .collect();
    let at = Timestamp::from_ms(1_763_726_400_999);
    let test = render_test(&EventId::parse(ID).unwrap(), at);
    sent.push(serde_json::from_slice(&test).unwrap());
    let data = event(EventContent::Data(Box::new(Data {
        source: Protocol::Coap,
        topic: Some(Topic::parse("meters/temperature").unwrap()),
        bytes: br#"{"t":21.50}"#.as_slice().into(),
    })));
    let as_json = render(&data, JsonPayload::Parsed);
    sent.insert(1, body_of(&data));
    sent.insert(2, serde_json::from_slice(&as_json).unwrap());
    let document = include_str!("../../../../docs/events.md");
    let blocks = document.split("```json\n").skip(1);
    let documented: Vec<Json> = blocks
        .map(|block| serde_json::from_str(block.split("```").next().unwrap()).unwrap())
        .collect();
    assert_eq!(documented, sent);
}

fn check(content: EventContent, expected: &str) {
    let event = event(content);
    let written = String::from_utf8(render(&event, JsonPayload::AsText)).unwrap();
    assert_eq!(written, expected);
    assert_eq!(
        render(&event, JsonPayload::AsText),
        written.as_bytes(),
        "it is always written alike"
    );
}

fn check_result(status: Status, outcome: Option<Outcome>, result: Option<Json>) {
    let conclusion = ActionResult {
        action: ActionId::parse(ABOUT).unwrap(),
        protocol: Protocol::Lwm2m,
        status,
        outcome,
    };
    let body = body_of(&event(EventContent::ActionResult(Box::new(conclusion))));
    assert_eq!(body["type"], "ACTION_RESULT");
    let mut expected = json!({
        "requestId": ABOUT,
        "status": words::status(status),
        "protocol": "LWM2M",
    });
    if let Some(result) = result {
        expected["resultData"] = result;
    }
    assert_eq!(body["action"], expected);
}

fn body_of(event: &Event) -> Json {
    serde_json::from_slice(&render(event, JsonPayload::AsText)).unwrap()
}

fn telemetry(values: &[(Path, Value)], measured_at: Option<Timestamp>) -> Telemetry {
    Telemetry {
        source: Protocol::Lwm2m,
        cause: Cause::Send,
        measured_at,
        values: values.into(),
    }
}

fn data(source: Protocol, topic: Option<&str>, bytes: &[u8]) -> EventContent {
    EventContent::Data(Box::new(Data {
        source,
        topic: topic.map(|topic| Topic::parse(topic).unwrap()),
        bytes: bytes.into(),
    }))
}

fn event(content: EventContent) -> Event {
    let customer = CustomerId::parse("acme").unwrap();
    let device = DeviceId::parse("meter-1").unwrap();
    Event {
        id: EventId::parse(ID).unwrap(),
        device: DeviceKey::of(&customer, &device),
        customer,
        device_info: DeviceInfo {
            device,
            iccid: Iccid::parse("8988228066600000001").unwrap(),
            imsi: Some(Imsi::parse("001010000000001").unwrap()),
            ip: Some("10.64.0.7".parse().unwrap()),
        },
        at: Timestamp::from_ms(1_763_726_400_999),
        content,
    }
}
