//! Is the body of an action request parsed into the request that the device receives?

use serde_json::{Value, json};

use engine::action::parse::udp::UdpDraft as Datagram;
use engine::action::{
    CoapRequest, Content, ContentEncoding, Lwm2mRequest, Method, Mode, NewAction, Operation,
    Protocol, Request,
};
use engine::ids::{CustomerId, TraceId};
use engine::moment::Timestamp;

use super::{ActionParser, BulkDevices, NonZeroU16};
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::fields::Fields;

/// The time of the calls.
const NOW: Timestamp = Timestamp::from_ms(1_700_000_000_000);

#[test]
fn a_datagram_is_sent_once_and_now_by_default() {
    let body = json!({ "payload": "on", "payloadType": "STRING", "port": 4445 });
    let request = datagram("on", ContentEncoding::String);
    assert_eq!(parsed(Protocol::Udp, body).unwrap(), new(request.clone()));
    let body = json!({
        "payload": "b24=", "payloadType": "BASE64", "port": 4445, "requestMode": "SEND_WHEN_ACTIVE",
        "expiresIn": 600, "sendAttempts": null,
    });
    let later = NewAction {
        mode: Mode::SendWhenActive,
        expires_in_s: Some(600),
        ..new(datagram("b24=", ContentEncoding::Base64))
    };
    assert_eq!(parsed(Protocol::Udp, body).unwrap(), later);
}

#[test]
fn a_request_waits_until_a_time_before_its_expiry() {
    let at = |text: &str| Timestamp::parse_iso(text).unwrap();
    let read = |more: &Value| {
        let mut body = json!({ "payload": "on", "payloadType": "STRING", "port": 4445 });
        let all = body.as_object_mut().unwrap();
        all.extend(more.as_object().unwrap().clone());
        parsed(Protocol::Udp, body)
    };
    // The calls are made at 2023-11-14T22:13:20Z.
    for (time, more) in [
        ("2023-11-16T22:13:19.999Z", json!({})),
        ("2023-11-16T22:13:19", json!({})),
        ("2023-11-18T00:00:00.000", json!({ "expiresIn": 600_000 })),
        ("1999-12-31T23:59:59.000Z", json!({})),
    ] {
        let mut more = more;
        more["notBefore"] = json!(time);
        assert_eq!(read(&more).unwrap().not_before, Some(at(time)), "{more}");
    }
    for (time, more, code) in [
        ("2023-11-16T22:13:20.000Z", json!({}), "OUT_OF_RANGE"),
        (
            "2023-11-14T22:23:20.000Z",
            json!({ "expiresIn": 600 }),
            "OUT_OF_RANGE",
        ),
        ("2023-11-15", json!({}), "INVALID_VALUE"),
        ("2023-11-15 12:00:00.000", json!({}), "INVALID_VALUE"),
        ("2023-11-15T12:00:00+01:00", json!({}), "INVALID_VALUE"),
    ] {
        let mut more = more;
        more["notBefore"] = json!(time);
        let refused = read(&more).unwrap_err();
        let fault = &refused.faults()[0];
        assert_eq!(fault.code, code, "{more}");
        assert_eq!(fault.field.as_deref(), Some("notBefore"), "{more}");
    }
    assert!(read(&json!({ "notBefore": 1_700_000_000 })).is_err());
    assert_eq!(
        read(&json!({ "notBefore": null })).unwrap().not_before,
        None
    );
}

#[test]
fn a_coap_request_has_a_method_a_port_a_path_and_an_optional_payload() {
    let body = json!({ "port": 5683, "path": "/a/b?c=d", "requestType": "GET" });
    let bare = new(coap(Method::Get, None));
    assert_eq!(parsed(Protocol::Coap, body).unwrap(), bare);
    let body = json!({
        "port": 5683, "path": "/a/b?c=d", "requestType": "PATCH", "payload": "",
        "payloadType": "STRING", "sendAttempts": 5, "requestMode": "SEND_NOW",
    });
    let content = Content::parse(ContentEncoding::String, "").unwrap();
    let with_payload = NewAction {
        attempts_permitted: 5,
        ..new(coap(Method::Patch, Some(content)))
    };
    assert_eq!(parsed(Protocol::Coap, body).unwrap(), with_payload);
    let body = json!({
        "port": 5683, "path": "/a/b?c=d", "requestType": "GET", "payload": null,
        "payloadType": null, "sendAttempts": null,
    });
    assert_eq!(parsed(Protocol::Coap, body).unwrap(), bare);
}

#[test]
fn an_operation_has_an_address_and_optional_data() {
    let body = json!({ "action": "write", "resourceAddress": "/3303/0/5700", "data": "21.5" });
    let write = Lwm2mRequest::parse(Operation::Write, "/3303/0/5700", Some("21.5")).unwrap();
    let write = new(Request::Lwm2m(write));
    assert_eq!(parsed(Protocol::Lwm2m, body).unwrap(), write);
}

#[test]
fn the_operator_sets_the_longest_datagram() {
    let body = |length| {
        let payload = "x".repeat(length);
        json!({ "payload": payload, "payloadType": "STRING", "port": 4445 })
    };
    let desk = ActionParser {
        udp_payload_bytes_max: 3,
        ..desk(Protocol::Udp)
    };
    assert!(desk.parse_one(call(), fields(&body(3))).is_ok());
    let refused = desk.parse_one(call(), fields(&body(4))).unwrap_err();
    let fault = &refused.faults()[0];
    assert_eq!(
        fault.message,
        "must not be longer than 3 bytes when decoded"
    );
    assert_eq!(fault.field.as_deref(), Some("payload"));
}

#[test]
fn the_operator_sets_the_longest_data_and_payload() {
    let written = |data| json!({ "action": "write", "resourceAddress": "/3/0/14", "data": data });
    let sent = |payload| {
        json!({
            "port": 5683, "path": "/a", "requestType": "PUT", "payload": payload,
            "payloadType": "STRING",
        })
    };
    let refusal = |protocol, body: Value| {
        let desk = ActionParser {
            data_bytes_max: 3,
            ..desk(protocol)
        };
        let refused = desk.parse_one(call(), fields(&body)).err()?;
        let fault = &refused.faults()[0];
        Some((fault.message.clone(), fault.field.clone()))
    };
    let too_long = |field: &str| {
        let message = "must not be longer than 3 bytes".to_owned();
        Some((message, Some(field.to_owned())))
    };
    assert_eq!(refusal(Protocol::Lwm2m, written("+60")), None);
    assert_eq!(refusal(Protocol::Lwm2m, written("+600")), too_long("data"));
    assert_eq!(refusal(Protocol::Coap, sent("off")), None);
    assert_eq!(refusal(Protocol::Coap, sent("open")), too_long("payload"));
}

#[test]
fn each_device_of_a_bulk_call_gets_the_same_request() {
    let body = json!({
        "payload": "on", "payloadType": "STRING", "port": 4445, "deviceIds": ["a", "b"],
    });
    let desk = desk(Protocol::Udp);
    let acme = CustomerId::parse("acme").unwrap();
    let (action, devices) = desk.parse_many(call(), acme, fields(&body)).unwrap();
    assert_eq!(action, new(datagram("on", ContentEncoding::String)));
    let BulkDevices::Named(devices) = devices else {
        panic!("the devices are named");
    };
    let devices: Vec<_> = devices.iter().map(ToString::to_string).collect();
    assert_eq!(devices, ["a", "b"]);
}

fn parsed(protocol: Protocol, body: Value) -> Result<NewAction, ApiError> {
    desk(protocol).parse_one(call(), fields(&body))
}

fn desk(protocol: Protocol) -> ActionParser {
    ActionParser {
        protocol,
        udp_payload_bytes_max: 508,
        data_bytes_max: 1_000,
        devices_max: 100,
        now: NOW,
        expiry_ms: 172_800_000,
    }
}

fn call() -> Call {
    let trace = TraceId::parse("01935c5a-0000-7000-8000-000000000002").unwrap();
    Call { trace }
}

fn fields(body: &Value) -> Fields {
    Fields::of_json(body.to_string().as_bytes()).unwrap()
}

/// A request with the default values.
fn new(request: Request) -> NewAction {
    NewAction {
        request,
        mode: Mode::SendNow,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: call().trace,
        idempotent_call: None,
    }
}

fn datagram(payload: &str, form: ContentEncoding) -> Request {
    let draft = Datagram {
        payload: Some(payload),
        form: Some(form),
        port: NonZeroU16::new(4_445),
    };
    Request::Udp(draft.read(508).unwrap().unwrap())
}

fn coap(method: Method, content: Option<Content>) -> Request {
    Request::Coap(CoapRequest {
        method,
        port: NonZeroU16::new(5_683).unwrap(),
        target: engine::PathAndQuery::parse("/a/b?c=d").unwrap(),
        content,
    })
}
