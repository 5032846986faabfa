//! Is a CoAP request sent as its caller specified, and is its response reported as documented?

mod attempts;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::MessageKind;
use serde_json::{Value, json};

use super::{ELSEWHERE, ID, PlainService};
use crate::errors::check;
use crate::test_service::{error_codes, keys, silent_device, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{answer, carrying, carrying_bytes, coap};

/// Error codes with their fields.
type Faults = &'static [(&'static str, &'static str)];

/// A body, the method it requests, path segments and queries, and the payload.
type SpecifiedRequest = (
    Value,
    Code,
    &'static [&'static str],
    &'static [&'static str],
    Vec<u8>,
);

#[test]
fn a_request_arrives_as_specified_and_from_the_service_s_own_port() {
    let setup = PlainService::new();
    for (body, code, segments, arguments, payload) in requests(setup.coap.port()) {
        let id = setup.create_coap(&body);
        // The socket receives only datagrams from the port the service listens on.
        let request = setup.coap.receive_request();
        assert_eq!(
            (request.kind, request.code),
            (MessageKind::Confirmable, code),
            "{body}"
        );
        assert!(
            request.uri_path().eq(segments.iter().copied()),
            "{body}: {request:?}"
        );
        assert!(
            request.uri_query().eq(arguments.iter().copied()),
            "{body}: {request:?}"
        );
        assert_eq!(request.payload, payload, "{body}");
        assert_eq!(request.content_format(), None, "a caller cannot say one");
        setup.coap.send(&answer(&request, Code::CHANGED).encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
        assert_eq!(action["protocol"], "COAP", "{action}");
        for name in keys(&body) {
            assert_eq!(action["requestData"][name], body[name], "{name}");
        }
    }
}

#[test]
fn a_response_is_reported_with_its_code_and_its_payload() {
    let setup = PlainService::new();
    for (code, format, payload, expected) in answers() {
        let id = setup.create_coap(&coap("GET", "/value", setup.coap.port()));
        let request = setup.coap.receive_request();
        let response = answer(&request, code).with_payload(payload);
        let response = match format {
            Some(format) => response.with_content_format(ContentFormat(format)),
            None => response,
        };
        setup.coap.send(&response.encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
        assert_eq!(action["resultData"], expected, "{format:?} {payload:?}");
    }
}

#[test]
fn every_fault_of_a_body_is_reported_at_once_and_nothing_is_stored() {
    let setup = PlainService::new();
    let good = || coap("GET", "/a", 5_683);
    for (property, value, code) in wrong_properties() {
        let body = with(good(), property, value);
        let refused = setup.caller.try_over("COAP", ID, &body);
        check(&refused, 400, &[(code, property)]);
    }
    let several: [(Value, Faults); 5] = [
        (
            json!({}),
            &[
                ("REQUIRED", "path"),
                ("REQUIRED", "port"),
                ("REQUIRED", "requestType"),
            ],
        ),
        (with(good(), "payload", "x"), &[("REQUIRED", "payloadType")]),
        (
            with(carrying(good(), "x"), "payloadType", "HEX"),
            &[("INVALID_VALUE", "payloadType")],
        ),
        (
            with(carrying(good(), "%%%"), "payloadType", "BASE64"),
            &[("INVALID_VALUE", "payload")],
        ),
        (
            with(with(good(), "port", 0), "path", "a"),
            &[("INVALID_VALUE", "path"), ("OUT_OF_RANGE", "port")],
        ),
    ];
    for (body, faults) in several {
        check(&setup.caller.try_over("COAP", ID, &body), 400, faults);
    }
    let long = with(good(), "path", format!("/{}", "x".repeat(255)));
    let refused = setup.caller.try_over("COAP", ID, &long).expect(400);
    assert_eq!(refused["errors"][0]["field"], "path");
    let listed = format!("{API}/integrate/devices/actions/requests");
    let listed = setup.caller.request("GET", &listed).expect(200);
    assert_eq!(listed["items"], json!([]));
}

#[test]
fn a_request_to_a_device_without_an_address_may_only_be_scheduled() {
    let setup = PlainService::new();
    silent_device(&setup.caller, "nowhere");
    let body = coap("GET", "/a", 5_683);
    let refused = setup.caller.try_over("COAP", "nowhere", &body).expect(409);
    assert_eq!(error_codes(&refused), ["DEVICE_HAS_NO_ADDRESS"]);
    let id = setup
        .caller
        .create_over("COAP", "nowhere", &when_active(body));
    assert_eq!(setup.caller.action(&id)["status"], "SCHEDULED");
    let unknown = setup
        .caller
        .try_over("COAP", "nobody", &coap("GET", "/a", 5_683));
    check(&unknown, 404, &[("NOT_FOUND", "")]);
}

#[test]
fn one_call_sends_a_request_to_several_devices() {
    let setup = PlainService::new();
    silent_device(&setup.caller, "nowhere");
    setup.caller.create_device("other", ELSEWHERE);
    let port = setup.coap.port();
    let body = carrying(coap("PUT", "/lamp?now", port), "on");
    let body = with(body, "deviceIds", json!([ID, "nobody", "nowhere"]));
    let bulk = format!("{API}/integrate/devices/actions/COAP");
    let response = setup.caller.post(&bulk, &body).expect(202);
    assert_eq!(response["rejectedDevices"], json!(["nobody", "nowhere"]));
    let reasons = response["rejectedReasons"].as_array().unwrap();
    let codes: Vec<_> = reasons.iter().map(|it| text(&it["code"])).collect();
    assert_eq!(codes, ["NOT_FOUND", "DEVICE_HAS_NO_ADDRESS"]);
    let request = setup.answer_next(Code::CHANGED, "");
    assert_eq!(request.payload, b"on");
    let accepted = &response["acceptedRequests"][0];
    assert_eq!(accepted["deviceId"], ID, "{response}");
    let action = setup.caller.final_action(&text(&accepted["requestId"]));
    assert_eq!(action["status"], "SUCCEEDED", "{action}");

    let body = with(
        when_active(coap("GET", "/a", port)),
        "deviceIds",
        json!(["other", ID]),
    );
    let response = setup.caller.post(&bulk, &body).expect(202);
    assert_eq!(accepted_devices(&response), ["other", ID]);
    check(
        &setup
            .caller
            .post(&bulk, &with(coap("GET", "a", 1), "deviceIds", json!([]))),
        400,
        &[("INVALID_VALUE", "path"), ("OUT_OF_RANGE", "deviceIds")],
    );
}

#[test]
fn a_waiting_request_can_be_cancelled_and_is_never_sent() {
    let mut setup = PlainService::new();
    let body = |path: &str| when_active(coap("GET", path, setup.coap.port()));
    let [waiting, cancelled] = ["/kept", "/cancelled"].map(|path| setup.create_coap(&body(path)));
    let answered = setup.caller.cancel_action(&cancelled).expect(200);
    assert_eq!(answered, json!({ "id": cancelled, "status": "CANCELLED" }));
    let refused = Caller::of_new_customer(&setup.service, "Umbrella").cancel_action(&waiting);
    check(&refused, 404, &[("NOT_FOUND", "")]);
    setup.post("awake");
    let request = setup.answer_next(Code::CONTENT, "1");
    assert!(request.uri_path().eq(["kept"]), "{request:?}");
    assert_eq!(setup.caller.final_action(&waiting)["status"], "SUCCEEDED");
    assert_eq!(setup.coap.received(), []);

    let all = ["/a", "/b"].map(|path| {
        let port = setup.coap.port();
        setup.create_coap(&when_active(coap("GET", path, port)))
    });
    let path = format!("{API}/integrate/devices/{ID}/actions/requests");
    let response = setup.caller.request("DELETE", &path).expect(200);
    let expected = all.map(|id| json!({ "id": id, "status": "CANCELLED" }));
    assert_eq!(response, json!(expected));
    setup.post("awake");
    assert_eq!(setup.coap.received(), []);
}

fn accepted_devices(response: &Value) -> Vec<String> {
    let accepted = response["acceptedRequests"].as_array().unwrap();
    accepted.iter().map(|it| text(&it["deviceId"])).collect()
}

/// Wrong properties of a request, and the error codes.
fn wrong_properties() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("port", json!(0), "OUT_OF_RANGE"),
        ("port", json!(65_536), "OUT_OF_RANGE"),
        ("port", json!(-1), "OUT_OF_RANGE"),
        ("port", json!("5683"), "WRONG_TYPE"),
        ("path", json!("a"), "INVALID_VALUE"),
        ("path", json!(""), "INVALID_VALUE"),
        ("path", json!("coap://h/a"), "INVALID_VALUE"),
        ("path", json!("/a b"), "INVALID_VALUE"),
        ("path", json!("/a#b"), "INVALID_VALUE"),
        ("path", json!("/%zz"), "INVALID_VALUE"),
        ("requestType", json!("get"), "INVALID_VALUE"),
        ("requestType", json!("FETCH"), "INVALID_VALUE"),
        ("payloadType", json!("STRING"), "INVALID_VALUE"),
        ("sendAttempts", json!(0), "OUT_OF_RANGE"),
        ("sendAttempts", json!(6), "OUT_OF_RANGE"),
        ("requestMode", json!("LATER"), "INVALID_VALUE"),
        ("data", json!("x"), "UNKNOWN_PROPERTY"),
    ]
}

/// Request bodies, and the messages they become.
fn requests(port: u16) -> Vec<SpecifiedRequest> {
    let large = "x".repeat(1_000);
    vec![
        (coap("GET", "/a", port), Code::GET, &["a"], &[], vec![]),
        (coap("GET", "/", port), Code::GET, &[], &[], vec![]),
        (
            coap("DELETE", "/a/b", port),
            Code::DELETE,
            &["a", "b"],
            &[],
            vec![],
        ),
        (
            coap("GET", "/a?b=c&d", port),
            Code::GET,
            &["a"],
            &["b=c", "d"],
            vec![],
        ),
        (
            coap("GET", "/a%2Fb/%C3%BC?x%26y=%20", port),
            Code::GET,
            &["a/b", "\u{fc}"],
            &["x&y= "],
            vec![],
        ),
        (
            carrying(coap("POST", "/log", port), "gr\u{fc}n"),
            Code::POST,
            &["log"],
            &[],
            "gr\u{fc}n".into(),
        ),
        (
            carrying_bytes(coap("PUT", "/raw", port), &[0, 255, 128]),
            Code::PUT,
            &["raw"],
            &[],
            vec![0, 255, 128],
        ),
        (
            carrying(coap("PATCH", "/p", port), "{}"),
            Code::PATCH,
            &["p"],
            &[],
            "{}".into(),
        ),
        (
            carrying(coap("POST", "/large", port), &large),
            Code::POST,
            &["large"],
            &[],
            large.into_bytes(),
        ),
        (
            carrying(coap("GET", "/odd", port), "a payload"),
            Code::GET,
            &["odd"],
            &[],
            "a payload".into(),
        ),
    ]
}

/// Codes, formats and payloads of responses, and the results they become.
fn answers() -> Vec<(Code, Option<u16>, &'static [u8], Value)> {
    let texts = [0, 40, 41, 50, 110].map(|format| {
        let result = json!({ "code": "205", "payload": "21.5", "payloadType": "TEXT" });
        (Code::CONTENT, Some(format), &b"21.5"[..], result)
    });
    let bytes = [
        None,
        Some(42),
        Some(60),
        Some(112),
        Some(11_542),
        Some(65_000),
    ]
    .map(|format| {
        let result = json!({ "code": "205", "payload": "MjEuNQ==", "payloadType": "BASE64" });
        (Code::CONTENT, format, &b"21.5"[..], result)
    });
    let empty = [
        (Code::CREATED, "201"),
        (Code::DELETED, "202"),
        (Code::VALID, "203"),
        (Code::CHANGED, "204"),
        (Code::CONTENT, "205"),
    ];
    let empty = empty.map(|(code, digits)| (code, None, &b""[..], json!({ "code": digits })));
    let not_utf8 = json!({ "code": "205", "payload": "/w==", "payloadType": "BASE64" });
    let changed = json!({ "code": "204", "payload": "ok", "payloadType": "TEXT" });
    let odd = [
        (Code::CONTENT, Some(0), &b"\xff"[..], not_utf8),
        (Code::CHANGED, Some(0), &b"ok"[..], changed),
    ];
    texts
        .into_iter()
        .chain(bytes)
        .chain(empty)
        .chain(odd)
        .collect()
}
