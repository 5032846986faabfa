//! What does the result of a request contain, and is each failure logged once?

use harness::device::configuration::Configuration;
use harness::device::resource::{AnswerMode, Resource};
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value as Lwm2mValue;
use serde_json::{Value, json};

use crate::test_service::{ID, TestService, keys, silent_device, start, with};
use crate::vocabulary::caller::{Caller, text};
use crate::vocabulary::lwm2m::{execute, observe_end, observe_start, read, when_active, write};

const ZONE: Path = Path::resource(3, 0, 15);
const TEMPERATURE: Path = Path::resource(3303, 0, 5700);

/// A service that sends each message once and soon stops waiting for a response.
const HASTY: [(&str, &str); 3] = [
    ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "500"),
    ("SIGNALBOX_COAP_MAX_RETRANSMIT", "0"),
    ("SIGNALBOX_COAP_RESPONSE_TIMEOUT_MS", "200"),
];

const FAILED: &str = "DeviceController[ActionRequestFailed]";
const INVALID: &str = "DeviceController[InvalidDataType]";
const EXPIRED: &str = "DeviceController[ActionRequestExpired]";

#[test]
fn the_result_of_each_action_is_its_code_and_the_value_where_there_is_one() {
    let setup = TestService::new();
    let value = json!({ "code": "205", "payload": "21.5" });
    let nothing_to_tell = json!({ "code": "204" });
    let cases = [
        (read("/3303/0/5700"), value.clone()),
        (write("/3/0/15", "Asia/Tokyo"), nothing_to_tell.clone()),
        (execute("/1/0/8"), nothing_to_tell),
        (observe_start("/3303/0/5700"), value.clone()),
        (observe_end("/3303/0/5700"), value),
    ];
    for (body, expected) in cases {
        let action = setup.caller.perform(ID, &body);
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
        assert_eq!(action["resultData"], expected, "{action}");
    }
}

#[test]
fn a_boolean_is_read_as_text() {
    let mut configuration = Configuration::new(ID);
    let switch = Path::resource(3306, 0, 5850);
    let off = Lwm2mValue::Boolean(false);
    configuration.resources.push(Resource::holding(switch, off));
    let setup = TestService::with(&[], configuration);
    for (data, word) in [("true", "true"), ("0", "false")] {
        let written = setup.caller.perform(ID, &write("/3306/0/5850", data));
        assert_eq!(written["status"], "SUCCEEDED", "{written}");
        let action = setup.caller.perform(ID, &read("/3306/0/5850"));
        let expected = json!({ "code": "205", "payload": word });
        assert_eq!(action["resultData"], expected, "{action}");
    }
}

#[test]
fn there_is_no_result_before_the_end_nor_of_a_cancelled_request() {
    let setup = TestService::new();
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let in_flight = setup.caller.create_action(ID, &read("/3/0/15"));
    let bodies = [read("/3/0/0"), read("/3/0/0")];
    let [scheduled, cancelled] =
        bodies.map(|body| setup.caller.create_action(ID, &when_active(body)));
    setup.caller.cancel_action(&cancelled).expect(200);
    let states = [
        (in_flight, "IN_PROGRESS"),
        (scheduled, "SCHEDULED"),
        (cancelled, "CANCELLED"),
    ];
    for (id, status) in states {
        let action = setup.caller.action(&id);
        assert_eq!(action["status"], status);
        assert_eq!(action.get("resultData"), None, "{action}");
    }
    let messages = setup.caller.log_messages();
    let first_contact = "Lifecycle[DeviceFirstTimeRegistered]";
    assert_eq!(messages, [first_contact], "only failures are logged");
}

#[test]
fn a_failure_answered_by_the_device_has_its_code_and_is_logged_once() {
    let setup = TestService::with(&[], confused());
    let unavailable = AnswerMode::Code(Code::SERVICE_UNAVAILABLE);
    setup.device.answer_with(ZONE, unavailable);
    let cases = [
        (write("/3/0/0", "x"), "405"),
        (read("/3/0/99"), "404"),
        (execute("/3/0/0"), "405"),
        (observe_start("/3/0/99"), "404"),
        // The device may accept it later, but no attempt is left.
        (read("/3/0/15"), "503"),
        // The device answers with success, but its payload cannot be read.
        (read("/3303/0/5700"), "205"),
    ];
    for (body, code) in cases {
        let failed = setup.caller.perform(ID, &body);
        check(&setup.caller, &failed, FAILED, Some(code));
    }
}

#[test]
fn a_failure_without_an_answer_has_no_code_and_is_logged_once() {
    let setup = TestService::with(&HASTY, Configuration::new(ID));
    for way in [
        AnswerMode::Silent,
        AnswerMode::Reset,
        AnswerMode::AcknowledgeOnly,
    ] {
        setup.device.answer_with(ZONE, way);
        let failed = setup.caller.perform(ID, &read("/3/0/15"));
        check(&setup.caller, &failed, FAILED, None);
    }
    let unfit = write("/3303/0/5700", "warm");
    let failed = setup.caller.perform(ID, &unfit);
    check(&setup.caller, &failed, INVALID, None);
    let failed = setup.caller.perform(ID, &observe_end("/3303/0/5700"));
    check(&setup.caller, &failed, FAILED, None);
}

#[test]
fn a_failure_without_a_device_is_logged_once() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let soon = with(when_active(read("/3/0/0")), "expiresIn", 1);
    let failed = caller.perform(ID, &soon);
    check(&caller, &failed, EXPIRED, None);
    let unfit = when_active(write("/3303/0/5700", "warm"));
    let failed = caller.perform(ID, &unfit);
    check(&caller, &failed, INVALID, None);
}

#[test]
fn a_failure_by_a_deregistration_or_a_crash_is_logged_once() {
    let mut setup = TestService::new();
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let interrupted = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    setup.crash();
    let failed = setup.caller.final_action(&interrupted);
    check(&setup.caller, &failed, FAILED, None);
    setup.device.update();
    let left = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    setup.device.deregister();
    let failed = setup.caller.final_action(&left);
    check(&setup.caller, &failed, FAILED, None);
}

/// A device with a wrong type in one of its resources.
fn confused() -> Configuration {
    let mut configuration = Configuration::new(ID);
    let warm = Lwm2mValue::String("warm".into());
    configuration
        .resources
        .push(Resource::holding(TEMPERATURE, warm));
    configuration
}

/// Checks that the request failed with this message, and that exactly one log entry says so.
fn check(caller: &Caller, failed: &Value, message: &str, code: Option<&str>) {
    assert_eq!(failed["status"], "FAILED", "{failed}");
    let result = &failed["resultData"];
    let expected = match code {
        Some(_) => &["code", "errorMessage"][..],
        None => &["errorMessage"],
    };
    assert_eq!(keys(result), expected, "{failed}");
    assert_eq!(result["code"].as_str(), code, "{failed}");
    assert!(!text(&result["errorMessage"]).is_empty(), "{failed}");
    let id = text(&failed["id"]);
    let entries = caller.log_entries().into_iter();
    let about = |entry: &Value| text(&entry["description"]).contains(&id);
    let logged: Vec<Value> = entries.filter(about).collect();
    assert_eq!(logged.len(), 1, "{logged:?}");
    let entry = &logged[0];
    assert_eq!(entry["message"], message, "{entry}");
    assert_eq!(entry["category"], "error", "{entry}");
    assert_eq!(entry["type"], "DEVICE", "{entry}");
    assert_eq!(entry["iccid"], ID, "{entry}");
    assert_eq!(entry["traceId"], failed["requestData"]["traceId"]);
}
