//! Does a caller's request reach the device, and does the caller learn its outcome?

use std::time::{SystemTime, UNIX_EPOCH};

use harness::device::configuration::{Configuration, Reachability};
use harness::device::resource::{AnswerMode, Resource};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value as Lwm2mValue;
use protocol::lwm2m::version::EnablerVersion;
use serde_json::{Value, json};

use crate::test_service::{ID, NEVER_AWAKE, TestService, error_codes, keys, start, with};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::lwm2m::{execute, outcome, read, when_active, write};
use crate::vocabulary::poll::another_millisecond;
use crate::vocabulary::service::Service;

const ZONE: Path = Path::resource(3, 0, 15);
const TRIGGER: Path = Path::resource(1, 0, 8);

#[test]
fn a_value_is_read_from_the_device() {
    let setup = TestService::new();
    let created = setup.caller.try_action(ID, &read("/3/0/0")).expect(202);
    assert_eq!(keys(&created), ["id", "message"]);
    assert!(
        !created["message"].as_str().unwrap().is_empty(),
        "{created}"
    );
    let action = setup.caller.final_action(created["id"].as_str().unwrap());
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    let result = json!({ "code": "205", "payload": "Signalbox" });
    assert_eq!(action["resultData"], result);
    assert_eq!(
        (&action["sendAttempts"], &action["sendAttemptsLeft"]),
        (&json!(1), &json!(0))
    );
}

#[test]
fn a_write_changes_the_device() {
    let setup = TestService::new();
    let action = setup.caller.perform(ID, &write("/3/0/15", "Asia/Tokyo"));
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    assert_eq!(action["resultData"], json!({ "code": "204" }));
    assert_eq!(
        setup.device.value(ZONE),
        Lwm2mValue::String("Asia/Tokyo".into())
    );
    let action = setup.caller.perform(ID, &read("/3/0/15"));
    assert_eq!(action["resultData"]["payload"], "Asia/Tokyo");
}

#[test]
fn an_execute_is_performed_once_with_its_arguments() {
    let setup = TestService::new();
    let mut body = execute("/1/0/8");
    body["data"] = json!("0='7'");
    let action = setup.caller.perform(ID, &body);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(setup.device.payloads(TRIGGER), ["0='7'"]);
    let action = setup.caller.perform(ID, &execute("/1/0/8"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(setup.device.payloads(TRIGGER), ["0='7'", ""]);
}

#[test]
fn a_scheduled_request_waits_for_the_next_uplink() {
    let mut setup = TestService::with(&[], sleepy());
    setup.device.sleep();
    let id = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    // A whole exchange with another device takes place meanwhile.
    let _other = awake(&setup.service, &setup.caller, "other");
    assert_eq!(
        outcome(&setup.caller.perform("other", &read("/3/0/0"))).0,
        "SUCCEEDED"
    );
    let action = setup.caller.action(&id);
    assert_eq!(action["status"], "SCHEDULED");
    assert_eq!(action["sendAttemptsLeft"], 1);
    assert!(action.get("resultData").is_none(), "{action}");
    assert!(setup.device.performed().is_empty());
    setup.device.update();
    let action = setup.caller.final_action(&id);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(setup.device.performed().len(), 1);
}

#[test]
fn scheduled_requests_are_sent_oldest_first() {
    let mut setup = TestService::with(&[], sleepy());
    setup.device.sleep();
    let zones: Vec<String> = (0..8).map(|number| format!("Etc/GMT+{number}")).collect();
    let ids = zones.iter().map(|zone| {
        setup
            .caller
            .create_action(ID, &when_active(write("/3/0/15", zone)))
    });
    let ids: Vec<String> = ids.collect();
    setup.device.update();
    for id in &ids {
        let action = setup.caller.final_action(id);
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    }
    assert_eq!(setup.device.payloads(ZONE), zones);
}

#[test]
fn a_scheduled_request_waits_for_a_device_that_never_registered() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let id = caller.create_action(ID, &when_active(read("/3/0/0")));
    assert_eq!(caller.action(&id)["status"], "SCHEDULED");
    let _device = Device::registered(&service, Configuration::new(ID));
    assert_eq!(outcome(&caller.final_action(&id)), ("SUCCEEDED", "205"));
}

#[test]
fn a_request_for_now_is_scheduled_while_the_device_sleeps() {
    let mut setup = TestService::with(&[NEVER_AWAKE], sleepy());
    setup.device.sleep();
    another_millisecond();
    let ids = ["A", "B", "C"].map(|data| setup.caller.create_action(ID, &write("/3/0/15", data)));
    for id in &ids {
        let action = setup.caller.action(id);
        assert_eq!(action["status"], "SCHEDULED");
        assert_eq!(
            action["sendAttemptsLeft"], 1,
            "nothing was sent yet: {action}"
        );
    }
    setup.device.update();
    for id in &ids {
        assert_eq!(
            outcome(&setup.caller.final_action(id)),
            ("SUCCEEDED", "204")
        );
    }
    assert_eq!(setup.device.payloads(ZONE), ["A", "B", "C"]);
}

#[test]
fn a_separate_response_is_the_answer() {
    let setup = TestService::new();
    let ways = [
        AnswerMode::SeparateConfirmable { after_ms: 20 },
        AnswerMode::SeparateNonConfirmable { after_ms: 20 },
        AnswerMode::NonConfirmable,
    ];
    for way in ways {
        setup.device.answer_with(ZONE, way);
        let action = setup.caller.perform(ID, &read("/3/0/15"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{way:?}: {action}");
        assert_eq!(action["resultData"]["payload"], "Etc/UTC");
    }
    assert_eq!(setup.device.payloads(ZONE).len(), ways.len());
}

#[test]
fn a_silent_device_does_not_delay_another() {
    let mut setup = TestService::new();
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let held_up = setup.caller.create_action(ID, &read("/3/0/15"));
    setup.device.wait_unanswered(ZONE);
    let other = awake(&setup.service, &setup.caller, "other");
    for _ in 0..5 {
        let action = setup.caller.perform("other", &read("/3/0/15"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    }
    assert_eq!(other.performed().len(), 5);
    assert_eq!(setup.caller.action(&held_up)["status"], "IN_PROGRESS");
}

#[test]
fn a_request_reaches_the_device_at_its_new_port() {
    let mut setup = TestService::new();
    setup.device.move_to_another_port();
    setup.device.update();
    let action = setup.caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
}

#[test]
fn a_resource_instance_is_read_and_written_by_its_own_address() {
    let address = Path::resource_instance(3442, 0, 1110, 2);
    let mut configuration = Configuration::new(ID);
    let value = Lwm2mValue::String("two".into());
    configuration
        .resources
        .push(Resource::holding(address, value));
    let setup = TestService::with(&[], configuration);
    let action = setup.caller.perform(ID, &write("/3442/0/1110/2", "zwei"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    let action = setup.caller.perform(ID, &read("/3442/0/1110/2"));
    assert_eq!(action["resultData"]["payload"], "zwei", "{action}");
}

#[test]
fn a_write_to_a_multiple_resource_writes_its_instance_0() {
    let address = Path::resource_instance(3442, 0, 1110, 0);
    let mut configuration = Configuration::new(ID);
    let value = Lwm2mValue::String("zero".into());
    configuration
        .resources
        .push(Resource::holding(address, value));
    let setup = TestService::with(&[], configuration);
    let action = setup.caller.perform(ID, &write("/3442/0/1110", "null"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(
        setup.device.value(address),
        Lwm2mValue::String("null".into())
    );
}

#[test]
fn a_write_to_one_instance_leaves_the_other_instances_and_creates_an_absent_one() {
    let zero = Path::resource_instance(3442, 0, 1110, 0);
    let three = Path::resource_instance(3442, 0, 1110, 3);
    for version in [EnablerVersion::V1_0, EnablerVersion::V1_1] {
        let mut configuration = Configuration {
            version,
            ..Configuration::new(ID)
        };
        let value = Lwm2mValue::String("zero".into());
        configuration.resources.push(Resource::holding(zero, value));
        let setup = TestService::with(&[], configuration);
        for (address, text) in [("/3442/0/1110/3", "drei"), ("/3442/0/1110", "null")] {
            let action = setup.caller.perform(ID, &write(address, text));
            assert_eq!(
                outcome(&action),
                ("SUCCEEDED", "204"),
                "{version:?}: {action}"
            );
        }
        let text = |text: &str| Lwm2mValue::String(text.into());
        assert_eq!(setup.device.value(zero), text("null"));
        assert_eq!(setup.device.value(three), text("drei"));
    }
}

fn sleepy() -> Configuration {
    let awake_window_ms = 60_000;
    let reachability = Reachability::Queue { awake_window_ms };
    Configuration {
        reachability,
        ..Configuration::new(ID)
    }
}

fn awake(service: &Service, caller: &Caller, id: &str) -> Device {
    caller.create_device(id, DEVICE_IP);
    Device::registered(service, Configuration::new(id))
}

#[test]
fn a_request_for_later_is_not_sent_before_its_time() {
    let setup = TestService::new();
    let (soon, tomorrow) = (after_s(2), after_s(86_400));
    let later = |at: &str| with(read("/3/0/15"), "notBefore", at);
    let ids = [&soon, &tomorrow].map(|at| setup.caller.create_action(ID, &later(at)));
    let first = setup.caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&first), ("SUCCEEDED", "205"), "{first}");
    let done = setup.caller.final_action(&ids[0]);
    assert_eq!(outcome(&done), ("SUCCEEDED", "205"), "{done}");
    let events = done["timeline"].as_array().unwrap();
    let is_attempt = |event: &&Value| event["event"] == "ATTEMPT_BEGUN";
    let begun = events.iter().find(is_attempt).unwrap()["time"].as_str();
    let begun = begun.unwrap().replace(' ', "T");
    assert!(*begun >= *soon.trim_end_matches('Z'), "{done}");
    let waiting = setup.caller.action(&ids[1]);
    assert_eq!(waiting["status"], "SCHEDULED", "{waiting}");
    let shown = tomorrow.replace('Z', ".000Z");
    assert_eq!(waiting["requestData"]["notBefore"], shown, "{waiting}");
    let too_late = setup.caller.try_action(ID, &later(&after_s(172_900)));
    assert_eq!(error_codes(&too_late.expect(400)), ["OUT_OF_RANGE"]);
}

/// The time so many seconds from now, as LwM2M writes it.
pub(crate) fn after_s(seconds: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_s = i64::try_from(now.as_secs()).unwrap();
    Lwm2mValue::Time(now_s + seconds).to_text()
}
