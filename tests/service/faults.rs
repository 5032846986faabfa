//! Is every fault of a body or a query reported at once, each with its field?

use serde_json::{Value, json};

use crate::errors::check;
use crate::test_service::{ID, silent_device, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::lwm2m::{read, when_active, write};

const ACTIONS: &str = "/management-api/v1/integrate/devices/meter-1/actions/LWM2M";
const REQUESTS: &str = "/management-api/v1/integrate/devices/actions/requests";
const SETTING: &str = "/management-api/v1/settings/signalbox/LWM2M_PASSIVE_REPORTING";

/// Error codes with their fields.
type Faults = &'static [(&'static str, &'static str)];

/// A property of an otherwise valid body, a wrong value, and the error code.
const PROPERTIES: [(&str, &str, &str); 17] = [
    ("action", "\"reboot\"", "INVALID_VALUE"),
    ("action", "1", "WRONG_TYPE"),
    ("data", "\"x\"", "INVALID_VALUE"),
    ("data", "1", "WRONG_TYPE"),
    ("resourceAddress", "\"3/0/0\"", "INVALID_VALUE"),
    ("resourceAddress", "\"/3/0/65536\"", "INVALID_VALUE"),
    ("resourceAddress", "\"/3/0/-1\"", "INVALID_VALUE"),
    ("resourceAddress", "\"/3/0/0/0/0\"", "INVALID_VALUE"),
    ("resourceAddress", "\"/\"", "INVALID_VALUE"),
    ("requestMode", "\"SEND_LATER\"", "INVALID_VALUE"),
    ("requestMode", "\"send_now\"", "INVALID_VALUE"),
    ("sendAttempts", "0", "OUT_OF_RANGE"),
    ("sendAttempts", "6", "OUT_OF_RANGE"),
    ("sendAttempts", "\"1\"", "WRONG_TYPE"),
    ("sendAttempts", "1.5", "WRONG_TYPE"),
    ("expiresIn", "0", "OUT_OF_RANGE"),
    ("payload", "\"x\"", "UNKNOWN_PROPERTY"),
];

#[test]
fn a_wrong_property_of_an_action_request_is_named() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    for (name, value, code) in PROPERTIES {
        let mut body = when_active(read("/3/0/0"));
        body[name] = value.parse().unwrap();
        check(&caller.post(ACTIONS, &body), 400, &[(code, name)]);
    }
    let list = caller.request("GET", REQUESTS).expect(200);
    assert_eq!(list["items"], json!([]), "nothing was kept");
}

#[test]
fn a_value_that_is_too_long_is_refused() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let ask = |bytes: usize| {
        let body = write("/3/0/15", &"x".repeat(bytes));
        caller.post(ACTIONS, &when_active(body))
    };
    check(&ask(1_500_001), 400, &[("INVALID_VALUE", "data")]);
    ask(1_500_000).expect(202);
    ask(1_500_000).expect(202);
    // Waiting requests are in memory: a third one of this length exceeds the limit of the device.
    check(&ask(1_500_000), 409, &[("QUEUE_FULL", "")]);
    ask(1_024).expect(202);
}

#[test]
fn every_fault_of_an_action_request_is_reported_at_once() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let cases: [(Value, Faults); 7] = [
        (
            json!({}),
            &[("REQUIRED", "action"), ("REQUIRED", "resourceAddress")],
        ),
        (
            json!({ "action": "jump", "resourceAddress": "3/0/0" }),
            &[
                ("INVALID_VALUE", "action"),
                ("INVALID_VALUE", "resourceAddress"),
            ],
        ),
        (
            json!({ "action": "write", "expiresIn": 604_801 }),
            &[
                ("OUT_OF_RANGE", "expiresIn"),
                ("REQUIRED", "data"),
                ("REQUIRED", "resourceAddress"),
            ],
        ),
        (
            json!({ "action": "write", "resourceAddress": "/3/0/15" }),
            &[("REQUIRED", "data")],
        ),
        (
            json!({ "action": "execute", "resourceAddress": "/3/0" }),
            &[("INVALID_VALUE", "resourceAddress")],
        ),
        (
            json!({ "action": "write", "resourceAddress": "/3" }),
            &[("INVALID_VALUE", "resourceAddress"), ("REQUIRED", "data")],
        ),
        (
            json!({ "action": "jump", "sendAttempts": 9, "colour": "red" }),
            &[
                ("INVALID_VALUE", "action"),
                ("OUT_OF_RANGE", "sendAttempts"),
                ("REQUIRED", "resourceAddress"),
                ("UNKNOWN_PROPERTY", "colour"),
            ],
        ),
    ];
    for (body, faults) in cases {
        check(&caller.post(ACTIONS, &body), 400, faults);
    }
}

#[test]
fn every_fault_of_a_device_or_its_key_is_reported_with_its_field() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let devices: [(Value, Faults); 7] = [
        (json!({}), &[("REQUIRED", "deviceId")]),
        (
            json!({ "deviceId": ".." }),
            &[("INVALID_VALUE", "deviceId")],
        ),
        (
            json!({ "deviceId": "import" }),
            &[("INVALID_VALUE", "deviceId")],
        ),
        (json!({ "iccid": "import" }), &[("INVALID_VALUE", "iccid")]),
        (json!({ "deviceId": "" }), &[("INVALID_VALUE", "deviceId")]),
        (json!({ "deviceId": 7 }), &[("WRONG_TYPE", "deviceId")]),
        (
            json!({ "deviceId": "a/b", "imsi": "x", "ip": "10.0.0", "msisdn": "+1", "e": 1 }),
            &[
                ("INVALID_VALUE", "deviceId"),
                ("INVALID_VALUE", "imsi"),
                ("INVALID_VALUE", "ip"),
                ("INVALID_VALUE", "msisdn"),
                ("UNKNOWN_PROPERTY", "e"),
            ],
        ),
    ];
    for (body, faults) in devices {
        check(&caller.post(&format!("{API}/devices"), &body), 400, faults);
    }
    let keys: [(Value, Faults); 4] = [
        (
            json!({}),
            &[("REQUIRED", "format"), ("REQUIRED", "secretKey")],
        ),
        (
            json!({ "secretKey": "short", "format": "STRING" }),
            &[("INVALID_VALUE", "secretKey")],
        ),
        (
            json!({ "secretKey": "0123456x", "format": "HEX" }),
            &[("INVALID_VALUE", "secretKey")],
        ),
        (
            json!({ "secretKey": "0123456789", "format": "BASE64" }),
            &[("INVALID_VALUE", "format")],
        ),
    ];
    for (body, faults) in keys {
        let path = format!("{API}/devices/{ID}/psk");
        check(&caller.post(&path, &body), 400, faults);
    }
}

#[test]
fn every_fault_of_a_setting_or_a_customer_is_reported_with_its_field() {
    let (service, caller) = start(&[]);
    let settings: [(Value, Faults); 4] = [
        (json!({}), &[("REQUIRED", "state")]),
        (json!({ "state": "ON" }), &[("INVALID_VALUE", "state")]),
        (json!({ "state": "enabled" }), &[("INVALID_VALUE", "state")]),
        (json!({ "state": true }), &[("WRONG_TYPE", "state")]),
    ];
    for (body, faults) in settings {
        let answer = caller.try_send("PATCH", SETTING, &body).unwrap();
        check(&answer, 400, faults);
    }
    let operator = Caller::operator(&service);
    let customer = json!({ "id": "a b", "nam": "x" });
    let faults = [
        ("INVALID_VALUE", "id"),
        ("REQUIRED", "name"),
        ("UNKNOWN_PROPERTY", "nam"),
    ];
    check(
        &operator.post("/operator-api/v1/customers", &customer),
        400,
        &faults,
    );
}

#[test]
fn every_fault_of_a_query_is_reported_with_its_parameter() {
    let (_service, caller) = start(&[]);
    let logs = format!("{API}/administrationLogs");
    let cases: [(&str, &str, Faults); 17] = [
        (REQUESTS, "page=0", &[("OUT_OF_RANGE", "page")]),
        (REQUESTS, "page=x", &[("WRONG_TYPE", "page")]),
        (REQUESTS, "pageSize=101", &[("OUT_OF_RANGE", "pageSize")]),
        (REQUESTS, "page=1&page=2", &[("REPEATED", "page")]),
        (REQUESTS, "status=DONE", &[("INVALID_VALUE", "status")]),
        (
            REQUESTS,
            "statuses=FAILED",
            &[("UNKNOWN_PARAMETER", "statuses")],
        ),
        (&logs, "pageSize=0", &[("OUT_OF_RANGE", "pageSize")]),
        (&logs, "pageSize=26", &[("OUT_OF_RANGE", "pageSize")]),
        (&logs, "page=0", &[("OUT_OF_RANGE", "page")]),
        (
            &logs,
            "startDateTime=yesterday",
            &[("INVALID_VALUE", "startDateTime")],
        ),
        (
            &logs,
            "startDateTime=2026-02-30T00:00:00.000",
            &[("INVALID_VALUE", "startDateTime")],
        ),
        (
            &logs,
            "endDateTime=2026-11-21",
            &[("INVALID_VALUE", "endDateTime")],
        ),
        (
            &logs,
            "endDateTime=1795260873",
            &[("INVALID_VALUE", "endDateTime")],
        ),
        (
            &logs,
            "startDateTime=2026-02-02T00:00:00.001&endDateTime=2026-02-02T00:00:00.000",
            &[("INVALID_VALUE", "startDateTime")],
        ),
        (&logs, "category=warning", &[("INVALID_VALUE", "category")]),
        (&logs, "type=device", &[("INVALID_VALUE", "type")]),
        (
            &logs,
            "page=0&pageSize=26&category=x&endDateTime=x",
            &[
                ("OUT_OF_RANGE", "page"),
                ("OUT_OF_RANGE", "pageSize"),
                ("INVALID_VALUE", "category"),
                ("INVALID_VALUE", "endDateTime"),
            ],
        ),
    ];
    for (path, query, faults) in cases {
        check(
            &caller.request("GET", &format!("{path}?{query}")),
            400,
            faults,
        );
    }
}
