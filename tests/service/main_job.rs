//! Does a caller's request reach the device, and does the caller learn what became of it?

use harness::device::configuration::{Configuration, Reachability};
use harness::device::resource::{Answer, Resource};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value as Lwm2mValue;
use serde_json::json;

use crate::scene::{ID, NEVER_AWAKE, Scene, keys, start};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::lwm2m::{execute, outcome, read, when_active, write};
use crate::vocabulary::poll::another_millisecond;
use crate::vocabulary::service::Service;

const ZONE: Path = Path::resource(3, 0, 15);
const TRIGGER: Path = Path::resource(1, 0, 8);

#[test]
fn a_value_is_read_from_the_device() {
    let scene = Scene::new();
    let created = scene.caller.try_action(ID, &read("/3/0/0")).expect(202);
    assert_eq!(keys(&created), ["id", "message"]);
    assert!(
        !created["message"].as_str().unwrap().is_empty(),
        "{created}"
    );
    let action = scene.caller.final_action(created["id"].as_str().unwrap());
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
    let scene = Scene::new();
    let action = scene.caller.perform(ID, &write("/3/0/15", "Asia/Tokyo"));
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    assert_eq!(action["resultData"], json!({ "code": "204" }));
    assert_eq!(
        scene.device.value(ZONE),
        Lwm2mValue::String("Asia/Tokyo".into())
    );
    let action = scene.caller.perform(ID, &read("/3/0/15"));
    assert_eq!(action["resultData"]["payload"], "Asia/Tokyo");
}

#[test]
fn an_execute_is_done_once_with_its_arguments() {
    let scene = Scene::new();
    let mut body = execute("/1/0/8");
    body["data"] = json!("0='7'");
    let action = scene.caller.perform(ID, &body);
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(scene.device.payloads(TRIGGER), ["0='7'"]);
    let action = scene.caller.perform(ID, &execute("/1/0/8"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(scene.device.payloads(TRIGGER), ["0='7'", ""]);
}

#[test]
fn a_scheduled_request_waits_until_the_device_is_heard() {
    let mut scene = Scene::with(&[], sleepy());
    scene.device.sleep();
    let id = scene.caller.create_action(ID, &when_active(read("/3/0/0")));
    // Another device's whole exchange takes place meanwhile.
    let _other = awake(&scene.service, &scene.caller, "other");
    assert_eq!(
        outcome(&scene.caller.perform("other", &read("/3/0/0"))).0,
        "SUCCEEDED"
    );
    let action = scene.caller.action(&id);
    assert_eq!(action["status"], "SCHEDULED");
    assert_eq!(action["sendAttemptsLeft"], 1);
    assert!(action.get("resultData").is_none(), "{action}");
    assert!(scene.device.performed().is_empty());
    scene.device.update();
    let action = scene.caller.final_action(&id);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(scene.device.performed().len(), 1);
}

#[test]
fn scheduled_requests_go_out_oldest_first() {
    let mut scene = Scene::with(&[], sleepy());
    scene.device.sleep();
    let zones: Vec<String> = (0..8).map(|number| format!("Etc/GMT+{number}")).collect();
    let ids = zones.iter().map(|zone| {
        scene
            .caller
            .create_action(ID, &when_active(write("/3/0/15", zone)))
    });
    let ids: Vec<String> = ids.collect();
    scene.device.update();
    for id in &ids {
        let action = scene.caller.final_action(id);
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    }
    assert_eq!(scene.device.payloads(ZONE), zones);
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
fn a_request_for_now_waits_in_progress_while_the_device_sleeps() {
    let mut scene = Scene::with(&[NEVER_AWAKE], sleepy());
    scene.device.sleep();
    another_millisecond();
    let ids = ["A", "B", "C"].map(|data| scene.caller.create_action(ID, &write("/3/0/15", data)));
    for id in &ids {
        let action = scene.caller.action(id);
        assert_eq!(action["status"], "IN_PROGRESS");
        assert_eq!(
            action["sendAttemptsLeft"], 1,
            "nothing was sent yet: {action}"
        );
    }
    scene.device.update();
    for id in &ids {
        assert_eq!(
            outcome(&scene.caller.final_action(id)),
            ("SUCCEEDED", "204")
        );
    }
    assert_eq!(scene.device.payloads(ZONE), ["A", "B", "C"]);
}

#[test]
fn an_answer_apart_from_its_acknowledgement_is_the_answer() {
    let scene = Scene::new();
    let ways = [
        Answer::SeparateConfirmable { after_ms: 20 },
        Answer::SeparateNonConfirmable { after_ms: 20 },
        Answer::NonConfirmable,
    ];
    for way in ways {
        scene.device.answer_with(ZONE, way);
        let action = scene.caller.perform(ID, &read("/3/0/15"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{way:?}: {action}");
        assert_eq!(action["resultData"]["payload"], "Etc/UTC");
    }
    assert_eq!(scene.device.payloads(ZONE).len(), ways.len());
}

#[test]
fn a_silent_device_does_not_hold_up_another() {
    let mut scene = Scene::new();
    scene.device.answer_with(ZONE, Answer::Silent);
    let held_up = scene.caller.create_action(ID, &read("/3/0/15"));
    scene.device.hear_unanswered(ZONE);
    let other = awake(&scene.service, &scene.caller, "other");
    for _ in 0..5 {
        let action = scene.caller.perform("other", &read("/3/0/15"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    }
    assert_eq!(other.performed().len(), 5);
    assert_eq!(scene.caller.action(&held_up)["status"], "IN_PROGRESS");
}

#[test]
fn a_request_finds_the_device_at_its_new_port() {
    let mut scene = Scene::new();
    scene.device.move_to_another_port();
    scene.device.update();
    let action = scene.caller.perform(ID, &read("/3/0/0"));
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
    let scene = Scene::with(&[], configuration);
    let action = scene.caller.perform(ID, &write("/3442/0/1110/2", "zwei"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    let action = scene.caller.perform(ID, &read("/3442/0/1110/2"));
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
    let scene = Scene::with(&[], configuration);
    let action = scene.caller.perform(ID, &write("/3442/0/1110", "null"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
    assert_eq!(
        scene.device.value(address),
        Lwm2mValue::String("null".into())
    );
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
