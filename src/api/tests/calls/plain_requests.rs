//! Which requests over plain CoAP and UDP are refused? A table of bodies and their faults; the
//! black-box tests cover accepted requests.

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use crate::api::tests::test_service::{TestCredentials, TestService};

/// The default of the setting `action_data_bytes_max`.
const ACTION_DATA_BYTES_MAX: usize = 1_500_000;

const ACTIONS: &str = "/management-api/v1/integrate/devices/meter/actions";
const ACTIONS_OF_MANY: &str = "/management-api/v1/integrate/devices/actions";

/// Codes of faults and their properties, in the order of the response.
type Faults = &'static [(&'static str, &'static str)];

#[actix_web::test]
async fn every_fault_of_a_datagram_is_reported_with_its_property() {
    let whole = json!({ "payload": "on", "payloadType": "STRING", "port": 4445 });
    let base64_of_509_bytes = format!("{}AAA=", "AAAA".repeat(169));
    let long_text = json!({ "payload": "x".repeat(509) });
    let long_bytes = json!({ "payload": base64_of_509_bytes, "payloadType": "BASE64" });
    let not_base64 = json!({ "payload": "on!", "payloadType": "BASE64" });
    let payload = &[("INVALID_VALUE", "payload")];
    let form = &[("INVALID_VALUE", "payloadType")];
    let port = &[("OUT_OF_RANGE", "port")];
    let no_port = &[("WRONG_TYPE", "port")];
    let attempts = &[("UNKNOWN_PROPERTY", "sendAttempts")];
    let cases: [(Value, Faults); 14] = [
        (json!({ "payload": "" }), payload),
        (json!({ "payload": 7 }), &[("WRONG_TYPE", "payload")]),
        (not_base64, payload),
        (long_text, payload),
        (long_bytes, payload),
        (json!({ "payloadType": "TEXT" }), form),
        (json!({ "payloadType": "string" }), form),
        (json!({ "port": 0 }), port),
        (json!({ "port": 65536 }), port),
        (json!({ "port": -1 }), port),
        (json!({ "port": "4445" }), no_port),
        (json!({ "port": 4445.5 }), no_port),
        (json!({ "sendAttempts": 1 }), attempts),
        (json!({ "sendAttempts": "no" }), attempts),
    ];
    check("UDP", &whole, &cases).await;
}

#[actix_web::test]
async fn every_fault_of_a_datagram_is_reported_at_once() {
    let whole = json!({ "payload": "on", "payloadType": "STRING", "port": 4445 });
    let cases: [(Value, Faults); 4] = [
        (
            json!({ "payload": null, "payloadType": null, "port": null }),
            &[
                ("REQUIRED", "payload"),
                ("REQUIRED", "payloadType"),
                ("REQUIRED", "port"),
            ],
        ),
        (
            json!({ "path": "/a", "requestType": "GET", "action": "read" }),
            &[
                ("UNKNOWN_PROPERTY", "action"),
                ("UNKNOWN_PROPERTY", "path"),
                ("UNKNOWN_PROPERTY", "requestType"),
            ],
        ),
        (
            json!({ "requestMode": "NOW", "expiresIn": 0 }),
            &[
                ("INVALID_VALUE", "requestMode"),
                ("OUT_OF_RANGE", "expiresIn"),
            ],
        ),
        (
            json!({ "payload": "", "payloadType": "X", "port": 0, "sendAttempts": 9 }),
            &[
                ("INVALID_VALUE", "payloadType"),
                ("OUT_OF_RANGE", "port"),
                ("INVALID_VALUE", "payload"),
                ("UNKNOWN_PROPERTY", "sendAttempts"),
            ],
        ),
    ];
    check("UDP", &whole, &cases).await;
}

#[actix_web::test]
async fn every_fault_of_a_coap_request_is_reported_with_its_property() {
    let whole = json!({ "port": 5683, "path": "/led", "requestType": "PUT" });
    let long_path = json!({ "path": format!("/{}", "x".repeat(255)) });
    let long = "x".repeat(ACTION_DATA_BYTES_MAX + 1);
    let long_payload = json!({ "payload": long, "payloadType": "STRING" });
    let not_base64 = json!({ "payload": "on!", "payloadType": "BASE64" });
    let path = &[("INVALID_VALUE", "path")];
    let payload = &[("INVALID_VALUE", "payload")];
    let form = &[("INVALID_VALUE", "payloadType")];
    let method = &[("INVALID_VALUE", "requestType")];
    let attempts = &[("OUT_OF_RANGE", "sendAttempts")];
    let cases: [(Value, Faults); 18] = [
        (json!({ "path": "led" }), path),
        (json!({ "path": "" }), path),
        (json!({ "path": "/a b" }), path),
        (json!({ "path": "/a#b" }), path),
        (json!({ "path": "/%zz" }), path),
        (json!({ "path": "coap://10.0.0.7/led" }), path),
        (long_path, path),
        (json!({ "path": ["led"] }), &[("WRONG_TYPE", "path")]),
        (json!({ "requestType": "get" }), method),
        (json!({ "requestType": "FETCH" }), method),
        (json!({ "payload": "on" }), &[("REQUIRED", "payloadType")]),
        (json!({ "payloadType": "STRING" }), form),
        (not_base64, payload),
        (long_payload, payload),
        (json!({ "port": 0 }), &[("OUT_OF_RANGE", "port")]),
        (json!({ "port": 65536 }), &[("OUT_OF_RANGE", "port")]),
        (json!({ "sendAttempts": 6 }), attempts),
        (json!({ "sendAttempts": 0 }), attempts),
    ];
    check("COAP", &whole, &cases).await;
}

#[actix_web::test]
async fn every_fault_of_a_coap_request_is_reported_at_once() {
    let whole = json!({ "port": 5683, "path": "/led", "requestType": "PUT" });
    let cases: [(Value, Faults); 3] = [
        (
            json!({ "port": null, "path": null, "requestType": null }),
            &[
                ("REQUIRED", "port"),
                ("REQUIRED", "path"),
                ("REQUIRED", "requestType"),
            ],
        ),
        (
            json!({ "data": "on", "resourceAddress": "/3/0/0" }),
            &[
                ("UNKNOWN_PROPERTY", "data"),
                ("UNKNOWN_PROPERTY", "resourceAddress"),
            ],
        ),
        (
            json!({
                "payload": 7, "port": "x", "path": "led", "requestType": "X", "sendAttempts": 0,
                "colour": "red",
            }),
            &[
                ("WRONG_TYPE", "payload"),
                ("WRONG_TYPE", "port"),
                ("INVALID_VALUE", "requestType"),
                ("INVALID_VALUE", "path"),
                ("REQUIRED", "payloadType"),
                ("OUT_OF_RANGE", "sendAttempts"),
                ("UNKNOWN_PROPERTY", "colour"),
            ],
        ),
    ];
    check("COAP", &whole, &cases).await;
}

#[actix_web::test]
async fn a_bulk_call_must_name_its_devices() {
    let (setup, acme) = setup().await;
    let bodies = [
        (
            "UDP",
            json!({ "payload": "on", "payloadType": "STRING", "port": 4445 }),
        ),
        (
            "COAP",
            json!({ "port": 5683, "path": "/led", "requestType": "PUT" }),
        ),
    ];
    for (protocol, body) in bodies {
        let path = format!("{ACTIONS_OF_MANY}/{protocol}");
        let answer = setup.post(&path, &acme.bearer, body.clone()).await;
        assert_eq!(answer.faults(), owned(&[("REQUIRED", "deviceIds")]));
        let named = with(&body, &json!({ "deviceIds": ["a", "a", "/"] }));
        let answer = setup.post(&path, &acme.bearer, named).await;
        let expected = [("REPEATED", "deviceIds"), ("INVALID_VALUE", "deviceIds")];
        assert_eq!(answer.faults(), owned(&expected), "{protocol}");
        let alone = with(&body, &json!({ "deviceIds": ["a"] }));
        let path = format!("{ACTIONS}/{protocol}");
        let answer = setup.post(&path, &acme.bearer, alone).await;
        assert_eq!(answer.faults(), owned(&[("UNKNOWN_PROPERTY", "deviceIds")]));
    }
}

#[actix_web::test]
async fn an_unknown_protocol_is_not_found() {
    let (setup, acme) = setup().await;
    for protocol in ["SMTP", "udp", "Coap", "LWM2M%20"] {
        for of in [ACTIONS, ACTIONS_OF_MANY] {
            let path = format!("{of}/{protocol}");
            let answer = setup.post(&path, &acme.bearer, json!({})).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        }
    }
}

/// Checks the faults of bodies: each is the whole body with some properties replaced, for one
/// device and for several.
async fn check(protocol: &str, whole: &Value, cases: &[(Value, Faults)]) {
    let (setup, acme) = setup().await;
    let one = format!("{ACTIONS}/{protocol}");
    let many = format!("{ACTIONS_OF_MANY}/{protocol}");
    for (changes, faults) in cases {
        let body = with(whole, changes);
        let of_many = with(&body, &json!({ "deviceIds": ["meter"] }));
        for (path, body) in [(&one, body), (&many, of_many)] {
            let answer = setup.post(path, &acme.bearer, body).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {faults:?}");
            assert_eq!(answer.faults(), owned(faults), "{path}");
        }
    }
}

async fn setup() -> (TestService, TestCredentials) {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    (setup, acme)
}

/// The body with these properties in place of its own.
fn with(body: &Value, changes: &Value) -> Value {
    let mut body = body.as_object().unwrap().clone();
    body.extend(changes.as_object().unwrap().clone());
    Value::Object(body)
}

fn owned(faults: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(code, field): &(&str, &str)| ((*code).to_owned(), (*field).to_owned());
    faults.iter().map(owned).collect()
}
