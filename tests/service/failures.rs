//! What does a caller see when the device refuses, is silent or does not exist?

use harness::device::configuration::Configuration;
use harness::device::resource::AnswerMode;
use protocol::lwm2m::path::Path;
use serde_json::{Value, json};

use crate::test_service::{ID, IMPATIENT, TestService, error_codes, silent_device, start, with};
use crate::vocabulary::caller::API;
use crate::vocabulary::lwm2m::{execute, outcome, read, when_active, write};
use crate::vocabulary::poll::until;

const ZONE: Path = Path::resource(3, 0, 15);

#[test]
fn a_refused_request_fails_with_its_code_and_is_logged() {
    let setup = TestService::new();
    let cases = [
        (write("/3/0/0", "Other Works"), "405"),
        (execute("/3/0/0"), "405"),
        (read("/3/0/4"), "405"),
        (read("/3/0/999"), "404"),
        (read("/9/9/9"), "404"),
    ];
    for (body, code) in cases {
        let id = setup.caller.create_action(ID, &body);
        let action = setup.caller.final_action(&id);
        assert_eq!(outcome(&action), ("FAILED", code), "{action}");
        assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
        assert!(action["resultData"].get("payload").is_none(), "{action}");
        let entry = setup.caller.log_entries().remove(0);
        assert_eq!(
            entry["message"], "DeviceController[ActionRequestFailed]",
            "{entry}"
        );
        assert_eq!(
            (&entry["type"], &entry["category"]),
            (&json!("DEVICE"), &json!("error"))
        );
        assert!(
            entry["description"].as_str().unwrap().contains(&id),
            "{entry}"
        );
    }
    assert!(setup.device.performed().is_empty());
}

#[test]
fn a_silent_device_fails_the_request_after_its_attempts() {
    let mut setup = impatient();
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let body = with(read("/3/0/15"), "sendAttempts", 3);
    let id = setup.caller.create_action(ID, &body);
    for left in [2, 1] {
        setup.device.wait_unanswered(ZONE);
        let waiting = attempts_left(&setup, &id, left);
        assert_eq!(waiting["status"], "IN_PROGRESS", "{waiting}");
        next_attempt(&mut setup, &id, left);
    }
    let action = setup.caller.final_action(&id);
    assert_eq!(action["status"], "FAILED", "{action}");
    assert_eq!(action["sendAttemptsLeft"], 0);
    assert!(
        action["resultData"]["code"].is_null(),
        "nobody answered: {action}"
    );
    assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
    let failed = "DeviceController[ActionRequestFailed]";
    assert_eq!(
        setup.caller.log_messages().first().map(String::as_str),
        Some(failed)
    );
}

#[test]
fn a_request_to_a_deregistered_device_fails_or_waits() {
    let mut setup = TestService::new();
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let in_flight = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    let scheduled = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    setup.device.deregister();
    let action = setup.caller.final_action(&in_flight);
    assert_eq!(action["status"], "FAILED", "{action}");
    assert_eq!(setup.caller.action(&scheduled)["status"], "SCHEDULED");
    setup.device.reboot();
    assert_eq!(
        outcome(&setup.caller.final_action(&scheduled)),
        ("SUCCEEDED", "205")
    );
}

#[test]
fn a_request_for_now_to_an_unregistered_device_is_refused_and_not_stored() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let refused = caller.try_action(ID, &read("/3/0/0")).expect(409);
    assert_eq!(error_codes(&refused), ["DEVICE_NOT_REGISTERED"]);
    let list = caller.request("GET", &format!("{API}/integrate/devices/actions/requests"));
    assert_eq!(list.expect(200)["items"], json!([]));
}

#[test]
fn the_number_of_scheduled_requests_per_device_is_limited() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    silent_device(&caller, "other");
    let body = when_active(read("/3/0/0"));
    let ids: Vec<String> = (0..10).map(|_| caller.create_action(ID, &body)).collect();
    let refused = caller.try_action(ID, &body).expect(409);
    assert_eq!(error_codes(&refused), ["QUEUE_FULL"]);
    let message = "10 requests of this mode wait for the device, and at most 10 may \
                   (SEND_WHEN_ACTIVE, SIGNALBOX_SCHEDULED_MAX)";
    assert_eq!(refused["errors"][0]["message"], message);
    caller.create_action("other", &body);
    caller.cancel_action(&ids[4]).expect(200);
    caller.create_action(ID, &body);
    assert_eq!(
        error_codes(&caller.try_action(ID, &body).expect(409)),
        ["QUEUE_FULL"]
    );
}

#[test]
fn a_request_that_is_not_done_in_time_fails() {
    let patient = when_active(read("/3/0/0"));
    let cases = [
        (vec![], with(patient.clone(), "expiresIn", 1)),
        (vec![("SIGNALBOX_ACTION_EXPIRY_S", "1")], patient),
    ];
    for (settings, body) in cases {
        let (_service, caller) = start(&settings);
        silent_device(&caller, ID);
        let action = caller.perform(ID, &body);
        assert_eq!(action["status"], "FAILED", "{action}");
        let why = action["resultData"]["errorMessage"].as_str();
        assert!(why.is_some_and(|why| why.contains("expired")), "{action}");
        assert_eq!(
            caller.log_messages(),
            ["DeviceController[ActionRequestExpired]"]
        );
    }
}

fn impatient() -> TestService {
    TestService::with(&IMPATIENT, configuration())
}

fn configuration() -> Configuration {
    Configuration::new(ID)
}

/// The request, once this many attempts are left and none is in flight.
fn attempts_left(setup: &TestService, id: &str, left: u8) -> Value {
    until("a recorded attempt", || {
        let action = setup.caller.action(id);
        (action["sendAttemptsLeft"] == left).then_some(action)
    })
}

/// Updates until the previous attempt has ended and another one begins, because an update during an
/// attempt does not begin the next one.
fn next_attempt(setup: &mut TestService, id: &str, left: u8) {
    until("another attempt", || {
        setup.device.update();
        (setup.caller.action(id)["sendAttemptsLeft"] != left).then_some(())
    });
}
