//! Can one call send a request to many devices, with a result for each of them?

use serde_json::{Value, json};

use crate::errors::check;
use crate::test_service::{ID, TestService, keys, page, silent_device, start, with};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{outcome, read, when_active, write};

const MANY: &str = "/management-api/v1/integrate/devices/actions/LWM2M";
const REQUESTS: &str = "/integrate/devices/actions/requests";

/// Error codes with their fields.
type Faults = &'static [(&'static str, &'static str)];

#[test]
fn each_device_of_a_call_gets_a_request_or_a_reason() {
    let setup = TestService::new();
    silent_device(&setup.caller, "silent");
    let stranger = Caller::of_new_customer(&setup.service, "Umbrella");
    silent_device(&stranger, "theirs");
    let devices = ["nobody", ID, "silent", "theirs"];
    let answer = post_many(&setup.caller, read("/3/0/0"), &devices).expect(202);
    let shape = [
        "acceptedRequests",
        "message",
        "rejectedDevices",
        "rejectedReasons",
    ];
    assert_eq!(keys(&answer), shape);
    let id = &accepted(&answer, &[ID])[0];
    assert_eq!(
        outcome(&setup.caller.final_action(id)),
        ("SUCCEEDED", "205")
    );
    let refused = [
        ("nobody", "NOT_FOUND"),
        ("silent", "DEVICE_NOT_REGISTERED"),
        ("theirs", "NOT_FOUND"),
    ];
    check_rejected(&answer, &refused);
    assert!(!text(&answer["message"]).is_empty());
}

#[test]
fn a_call_that_every_device_rejects_is_accepted() {
    let (_service, caller) = start(&[("SIGNALBOX_SCHEDULED_MAX", "1")]);
    silent_device(&caller, ID);
    let body = when_active(read("/3/0/0"));
    let first = post_many(&caller, body.clone(), &[ID]).expect(202);
    accepted(&first, &[ID]);
    check_rejected(&first, &[]);
    let second = post_many(&caller, body, &[ID, "nobody"]).expect(202);
    accepted(&second, &[]);
    check_rejected(&second, &[(ID, "QUEUE_FULL"), ("nobody", "NOT_FOUND")]);
}

#[test]
fn a_request_of_a_bulk_call_is_like_any_other() {
    let (_service, caller) = start(&[]);
    for device in ["one", "other"] {
        silent_device(&caller, device);
    }
    let body = with(
        when_active(write("/3/0/15", "Asia/Tokyo")),
        "sendAttempts",
        3,
    );
    let body = with(body, "expiresIn", 3_600);
    let answer = post_many(&caller, body.clone(), &["other", "one"]).expect(202);
    for (id, device) in accepted(&answer, &["other", "one"])
        .iter()
        .zip(["other", "one"])
    {
        let action = caller.action(id);
        assert_eq!(action["deviceId"], device);
        assert_eq!(action["status"], "SCHEDULED");
        for name in keys(&body) {
            assert_eq!(action["requestData"][name], body[name], "{name}");
        }
        assert_eq!(action["requestData"].get("deviceIds"), None);
    }
}

#[test]
fn requests_to_a_hundred_devices_keep_their_order_and_survive_a_crash() {
    let (mut service, mut caller) = start(&[]);
    let devices: Vec<String> = (0..100)
        .map(|number| format!("meter-{}", (number * 37) % 100))
        .collect();
    for device in &devices {
        silent_device(&caller, device);
    }
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    let answer = post_many(&caller, when_active(read("/3/0/0")), &devices).expect(202);
    service.kill();
    service.start_again();
    caller.follow(&service);
    for (id, device) in accepted(&answer, &devices).iter().zip(&devices) {
        let action = caller.action(id);
        assert_eq!(action["deviceId"], *device);
        assert_eq!(action["status"], "SCHEDULED");
    }
    let (listed, _) = page(&caller, &format!("{REQUESTS}?pageSize=100"));
    assert_eq!(listed.len(), 100, "no device has two requests");
}

#[test]
fn every_error_of_a_bulk_call_is_reported_at_once() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let too_many: Vec<String> = (0..101).map(|number| format!("meter-{number}")).collect();
    let devices = json!([ID]);
    let cases: [(Value, Faults); 8] = [
        (
            json!({}),
            &[
                ("REQUIRED", "action"),
                ("REQUIRED", "deviceIds"),
                ("REQUIRED", "resourceAddress"),
            ],
        ),
        (
            with(read("/3/0/0"), "deviceIds", json!([])),
            &[("OUT_OF_RANGE", "deviceIds")],
        ),
        (
            with(read("/3/0/0"), "deviceIds", json!(too_many)),
            &[("OUT_OF_RANGE", "deviceIds")],
        ),
        (
            with(read("/3/0/0"), "deviceIds", ID),
            &[("WRONG_TYPE", "deviceIds")],
        ),
        (
            with(read("/3/0/0"), "deviceIds", json!([ID, 7])),
            &[("WRONG_TYPE", "deviceIds")],
        ),
        (
            with(read("/3/0/0"), "deviceIds", json!([ID, "a/b", "", ID])),
            &[
                ("INVALID_VALUE", "deviceIds"),
                ("INVALID_VALUE", "deviceIds"),
                ("REPEATED", "deviceIds"),
            ],
        ),
        (
            json!({ "action": "jump", "resourceAddress": "3", "deviceIds": devices, "e": 1 }),
            &[
                ("INVALID_VALUE", "action"),
                ("INVALID_VALUE", "resourceAddress"),
                ("UNKNOWN_PROPERTY", "e"),
            ],
        ),
        (
            json!({ "action": "write", "resourceAddress": "/3", "deviceIds": devices }),
            &[("INVALID_VALUE", "resourceAddress"), ("REQUIRED", "data")],
        ),
    ];
    for (body, faults) in cases {
        check(&caller.post(MANY, &body), 400, faults);
    }
    let (listed, _) = page(&caller, REQUESTS);
    assert_eq!(listed, Vec::<String>::new(), "nothing was kept");
}

#[test]
fn the_operator_sets_how_many_devices_one_call_may_address() {
    let (_service, caller) = start(&[("SIGNALBOX_BULK_DEVICES_MAX", "2")]);
    let body = || when_active(read("/3/0/0"));
    check_rejected(
        &post_many(&caller, body(), &["a", "b"]).expect(202),
        &[("a", "NOT_FOUND"), ("b", "NOT_FOUND")],
    );
    let refused = post_many(&caller, body(), &["a", "b", "c"]);
    check(&refused, 400, &[("OUT_OF_RANGE", "deviceIds")]);
}

#[test]
fn bulk_calls_exist_for_every_protocol() {
    let (_service, caller) = start(&[]);
    let body = json!({ "deviceIds": [ID], "port": 4_445 });
    let required: [(&str, &[&str]); 3] = [
        ("UDP", &["payload", "payloadType"]),
        ("COAP", &["path", "requestType"]),
        ("LWM2M", &["action", "resourceAddress"]),
    ];
    for (protocol, fields) in required {
        let path = format!("{API}/integrate/devices/actions/{protocol}");
        let mut faults: Vec<_> = fields.iter().map(|field| ("REQUIRED", *field)).collect();
        if protocol == "LWM2M" {
            faults.push(("UNKNOWN_PROPERTY", "port"));
        }
        check(&caller.post(&path, &body), 400, &faults);
    }
    let smtp = format!("{API}/integrate/devices/actions/SMTP");
    check(&caller.post(&smtp, &body), 404, &[("NOT_FOUND", "")]);
    let refused = caller.request("GET", MANY);
    check(&refused, 405, &[("METHOD_NOT_ALLOWED", "")]);
    assert_eq!(refused.header("allow"), Some("POST"));
}

/// Sends the same request to these devices.
fn post_many(caller: &Caller, body: Value, devices: &[&str]) -> Response {
    caller.post(MANY, &with(body, "deviceIds", json!(devices)))
}

/// Checks that exactly these devices accepted a request, in this order; returns the ids of the
/// requests.
fn accepted(answer: &Value, devices: &[&str]) -> Vec<String> {
    let requests = answer["acceptedRequests"].as_array().expect("an array");
    let ids: Vec<&Value> = requests.iter().map(|it| &it["deviceId"]).collect();
    assert_eq!(ids, devices, "{answer}");
    let ids = requests.iter().map(|request| {
        assert_eq!(keys(request), ["deviceId", "requestId"]);
        text(&request["requestId"])
    });
    ids.collect()
}

/// Checks that exactly these devices rejected the request, in this order, for these reasons.
fn check_rejected(answer: &Value, expected: &[(&str, &str)]) {
    let devices: Vec<&str> = expected.iter().map(|(device, _)| *device).collect();
    assert_eq!(answer["rejectedDevices"], json!(devices), "{answer}");
    let reasons = answer["rejectedReasons"].as_array().expect("an array");
    let rejected = reasons.iter().map(|reason| {
        assert_eq!(keys(reason), ["code", "deviceId", "message"]);
        assert!(!text(&reason["message"]).is_empty());
        (text(&reason["deviceId"]), text(&reason["code"]))
    });
    let expected: Vec<_> = expected
        .iter()
        .map(|(device, code)| ((*device).to_owned(), (*code).to_owned()))
        .collect();
    assert_eq!(rejected.collect::<Vec<_>>(), expected, "{answer}");
}
