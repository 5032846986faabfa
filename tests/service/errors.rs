//! Does every error have the same shape, whatever is wrong with the call?

use serde_json::json;

use crate::test_service::{ID, error_codes, keys, silent_device, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::http::{Request, Response};
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::service::Service;

const OPERATOR: &str = "/operator-api/v1";
const ACTIONS: &str = "/management-api/v1/integrate/devices/meter-1/actions/LWM2M";
const REQUESTS: &str = "/management-api/v1/integrate/devices/actions/requests";
const SETTING: &str = "/management-api/v1/settings/signalbox/LWM2M_PASSIVE_REPORTING";

#[test]
fn unknown_objects_are_not_found() {
    let (service, caller) = start(&[]);
    let operator = Caller::operator(&service);
    let unknown = [
        "/nothing",
        "/management-api",
        "/management-api/v1",
        "/management-api/v2/devices",
        "/management-api/v1/devices/nobody",
        "/management-api/v1/devices/",
        "//livez",
        "/management-api/v1/integrate/devices/actions/requests/17",
        "/management-api/v1/settings/other",
        "/management-api/v1/devices/a%2Fb",
        "/management-api/v1/devices/%FF",
    ];
    for path in unknown {
        check(&caller.request("GET", path), 404, &[("NOT_FOUND", "")]);
    }
    let patch = json!({ "state": "ENABLED" });
    for name in ["LWM2M_ACTIVE_REPORTING", "lwm2m_passive_reporting"] {
        let path = format!("{API}/settings/signalbox/{name}");
        check(
            &caller.try_send("PATCH", &path, &patch).unwrap(),
            404,
            &[("NOT_FOUND", "")],
        );
    }
    let other = format!("{API}/settings/other/LWM2M_PASSIVE_REPORTING");
    check(
        &caller.try_send("PATCH", &other, &patch).unwrap(),
        404,
        &[("NOT_FOUND", "")],
    );
    let action = json!({ "action": "read", "resourceAddress": "/3/0/0" });
    let smtp = format!("{API}/integrate/devices/{ID}/actions/SMTP");
    for path in [ACTIONS, smtp.as_str()] {
        check(&caller.post(path, &action), 404, &[("NOT_FOUND", "")]);
    }
    let client = format!("{OPERATOR}/customers/nobody");
    check(
        &operator.request("DELETE", &client),
        404,
        &[("NOT_FOUND", "")],
    );
}

#[test]
fn an_unsupported_method_is_answered_with_the_supported_ones() {
    let (_service, caller) = start(&[]);
    let cases = [
        ("DELETE", format!("{API}/devices"), "GET, POST"),
        ("PUT", format!("{API}/devices/{ID}"), "DELETE, GET, PATCH"),
        ("POST", REQUESTS.to_owned(), "GET"),
        ("GET", ACTIONS.to_owned(), "POST"),
        ("DELETE", SETTING.to_owned(), "GET, PATCH"),
        ("POST", format!("{API}/administrationLogs"), "GET"),
        ("GET", "/oauth/token".to_owned(), "POST"),
        ("POST", "/livez".to_owned(), "GET"),
        ("BREW", "/readyz".to_owned(), "GET"),
    ];
    for (method, path, allowed) in cases {
        let answer = caller.request(method, &path);
        check(&answer, 405, &[("METHOD_NOT_ALLOWED", "")]);
        let methods = answer.header("allow").unwrap_or_default();
        let mut methods: Vec<&str> = methods
            .split(',')
            .map(str::trim)
            .filter(|it| *it != "HEAD")
            .collect();
        methods.sort_unstable();
        assert_eq!(methods.join(", "), allowed, "{method} {path}");
    }
}

#[test]
fn a_body_that_is_no_json_object_is_malformed() {
    let (service, caller) = start(&[]);
    silent_device(&caller, ID);
    let deep = format!("{{\"action\":{}", "[".repeat(50_000));
    let bodies = [
        "",
        "{",
        "[]",
        "null",
        "7",
        "\"read\"",
        "{\"action\":}",
        "{'action':'read'}",
        "{\"action\":\"read\"} x",
        deep.as_str(),
    ];
    for body in bodies {
        let answer = post_text(&service, &caller, ACTIONS, "application/json", body);
        check(&answer, 400, &[("MALFORMED_BODY", "")]);
    }
}

#[test]
fn a_body_of_another_content_type_is_refused() {
    let (service, caller) = start(&[]);
    silent_device(&caller, ID);
    let body = json!({ "action": "read", "resourceAddress": "/3/0/0" }).to_string();
    for kind in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "",
    ] {
        let answer = post_text(&service, &caller, ACTIONS, kind, &body);
        check(&answer, 415, &[("UNSUPPORTED_MEDIA_TYPE", "")]);
    }
    for kind in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
    ] {
        let answer = post_text(&service, &caller, ACTIONS, kind, &body);
        assert_eq!(
            error_codes(&answer.expect(409)),
            ["DEVICE_NOT_REGISTERED"],
            "it was read"
        );
    }
}

#[test]
fn a_body_longer_than_allowed_is_refused() {
    let (service, caller) = start(&[("SIGNALBOX_JSON_BODY_BYTES_MAX", "4096")]);
    silent_device(&caller, ID);
    let long =
        json!({ "action": "write", "resourceAddress": "/3/0/15", "data": "x".repeat(4_096) });
    let answer = post_text(
        &service,
        &caller,
        ACTIONS,
        "application/json",
        &long.to_string(),
    );
    check(&answer, 413, &[("BODY_TOO_LARGE", "")]);
    let padded = format!("{}{}", " ".repeat(4_000), json!({ "action": "read" }));
    let answer = post_text(&service, &caller, ACTIONS, "application/json", &padded);
    check(&answer, 400, &[("REQUIRED", "resourceAddress")]);
}

#[test]
fn no_call_breaks_the_service() {
    let (service, caller) = start(&[]);
    silent_device(&caller, ID);
    let long = "x".repeat(5_000);
    let paths = [
        format!("{API}/devices/{long}"),
        format!("{API}/devices/%00"),
        format!("{API}/devices/%F0%9F%9A%A6"),
        format!("{API}/devices/..%2F..%2Fetc"),
        format!("{API}/devices?page=%FF"),
        format!("{API}/devices?page=%zz&=&&"),
        format!("{API}/devices?{long}={long}"),
        format!("{REQUESTS}/00000000-0000-0000-0000-000000000000"),
        format!("{REQUESTS}?deviceId=%00"),
        format!("{API}/administrationLogs?startDateTime=-262143-01-01T00:00:00.000"),
        format!("{API}/administrationLogs?endDateTime=%2B262142-12-31T23:59:59.999"),
        format!("{API}/administrationLogs?page=4294967295"),
    ];
    for path in &paths {
        let answer = caller.request("GET", path);
        assert!(answer.status < 500, "{path}: {}", answer.text());
    }
    let bodies = [
        r#"{"action":"read","action":"write","resourceAddress":"/3/0/0"}"#,
        r#"{"action":"read","resourceAddress":"/3/0/0","sendAttempts":1e999}"#,
        r#"{"action":"read","resourceAddress":"/3/0/0","sendAttempts":99999999999999999999}"#,
        r#"{"action":"\ud800","resourceAddress":"/3/0/0"}"#,
        r#"{"action":"read","resourceAddress":"/3/0/\u0000"}"#,
        r#"{"action":"write","resourceAddress":"/3/0/15","data":"\u0000"}"#,
        r#"{"action":null,"resourceAddress":null}"#,
        r#"{"":""}"#,
    ];
    for body in bodies {
        let answer = post_text(&service, &caller, ACTIONS, "application/json", body);
        assert!(answer.status < 500, "{body}: {}", answer.text());
    }
    assert_eq!(
        Request::new("GET", "/readyz").send(service.http).status,
        200
    );
}

#[test]
fn protocols_are_named_in_upper_case_only() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let ask = |protocol: &str| caller.post(&ACTIONS.replace("LWM2M", protocol), &json!({}));
    let required: [(&str, &[&str]); 3] = [
        ("UDP", &["payload", "payloadType", "port"]),
        ("COAP", &["path", "port", "requestType"]),
        ("LWM2M", &["action", "resourceAddress"]),
    ];
    for (protocol, fields) in required {
        let faults: Vec<_> = fields.iter().map(|field| ("REQUIRED", *field)).collect();
        check(&ask(protocol), 400, &faults);
    }
    for protocol in ["SMTP", "lwm2m", "udp", "CoAP", "LWM2M%20"] {
        check(&ask(protocol), 404, &[("NOT_FOUND", "")]);
    }
    let listed = caller.request("GET", REQUESTS).expect(200);
    assert_eq!(listed["items"], json!([]), "nothing was kept");
}

#[test]
fn an_answer_is_json_whatever_the_caller_accepts() {
    let (service, caller) = start(&[]);
    silent_device(&caller, ID);
    let body = when_active(read("/3/0/0"));
    for accepted in ["application/json", "*/*", "text/html", ""] {
        let created = caller.authorized("POST", ACTIONS).json(&body);
        let listed = caller.authorized("GET", REQUESTS);
        let unknown = caller.authorized("GET", "/nothing");
        for (request, status) in [(created, 202), (listed, 200), (unknown, 404)] {
            let answer = request.header("accept", accepted).send(service.http);
            answer.expect(status);
            let kind = answer.header("content-type").unwrap_or_default();
            assert!(kind.starts_with("application/json"), "{accepted}: {kind}");
        }
    }
}

#[test]
fn an_error_of_an_unauthenticated_call_has_the_same_shape() {
    let service = Service::start();
    for path in ["/management-api/v1/devices", "/operator-api/v1/customers"] {
        check(
            &Request::new("GET", path).send(service.http),
            401,
            &[("UNAUTHORIZED", "")],
        );
    }
}

fn post_text(service: &Service, caller: &Caller, path: &str, kind: &str, body: &str) -> Response {
    caller
        .authorized("POST", path)
        .text(kind, body)
        .send(service.http)
}

/// Checks that the answer is an error of the common shape with exactly these faults; an empty field
/// stands for none.
pub(crate) fn check(answer: &Response, status: u16, faults: &[(&str, &str)]) {
    assert!(
        answer
            .header("content-type")
            .is_some_and(|it| it.starts_with("application/json")),
        "{}",
        answer.text()
    );
    let body = answer.expect(status);
    assert_eq!(
        keys(&body),
        ["errors", "statusCode", "statusText", "traceId"]
    );
    assert_eq!(body["statusCode"], status);
    assert!(
        body["statusText"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{body}"
    );
    assert!(
        body["traceId"]
            .as_str()
            .is_some_and(|trace| trace.len() >= 32),
        "{body}"
    );
    let mut found: Vec<(&str, &str)> = Vec::new();
    for error in body["errors"].as_array().expect("a list of errors") {
        let has_message = error["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty());
        assert!(has_message, "{body}");
        let allowed = ["code", "field", "message"];
        assert!(
            keys(error).iter().all(|key| allowed.contains(key)),
            "{body}"
        );
        let field = error["field"].as_str().unwrap_or_default();
        found.push((error["code"].as_str().expect("a code"), field));
    }
    let mut expected = faults.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{body}");
}
