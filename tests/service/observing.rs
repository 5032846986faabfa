//! Is a customer told what changes at a device, for as long as it was asked for?

use harness::device::configuration::{Configuration, Notify, Reachability};
use harness::device::event::Operation;
use harness::device::resource::{Answer, Resource};
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::json;

use crate::scene::{ID, NEVER_AWAKE, Scene};
use crate::vocabulary::caller::API;
use crate::vocabulary::lwm2m::{observe_end, observe_start, outcome, read, when_active};
use crate::vocabulary::poll::until;

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
const ADDRESS: &str = "/3303/0/5700";

/// How many paths of one device may be observed.
const OBSERVATIONS_MAX: u16 = 64;

#[test]
fn an_observation_begins_with_the_value_there_is() {
    let scene = Scene::new();
    let action = scene.caller.perform(ID, &observe_start(ADDRESS));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(action["resultData"]["payload"], "21.5", "{action}");
    let inspector = scene.caller.inspect(ID);
    let observation = &inspector["observations"][0];
    assert_eq!(observation["path"], ADDRESS, "{inspector}");
    assert_eq!(observation["state"], "HELD", "{inspector}");
    assert_eq!(observation["requestId"], action["id"], "{inspector}");
    assert_eq!(inspector["values"][0]["path"], ADDRESS, "{inspector}");
    assert_eq!(inspector["values"][0]["value"], 21.5, "{inspector}");
}

#[test]
fn each_change_is_told_in_the_messages_and_known_from_then_on() {
    let scene = observed(Configuration::new(ID));
    for (times, degrees) in [(1, 22.0), (2, 22.5), (3, -3.25)] {
        scene.device.set(TEMPERATURE, Value::Float(degrees));
        let told = scene.caller.once_notified(ID, ADDRESS, times);
        assert_eq!(told.last(), Some(&json!({ ADDRESS: degrees })), "{told:?}");
        let known = scene.caller.known_value(ID, ADDRESS).unwrap();
        assert_eq!(
            (&known["value"], &known["type"]),
            (&json!(degrees), &json!("FLOAT"))
        );
    }
    let newest = scene.caller.messages(ID).remove(0);
    assert_eq!(newest["type"], "TELEMETRY_DATA", "{newest}");
    assert_eq!(newest["source"], "LWM2M", "{newest}");
    let recent = &scene.caller.inspect(ID)["recentMessages"][0];
    assert_eq!(*recent, newest);
}

#[test]
fn what_the_service_writes_itself_is_told_as_well() {
    let scene = Scene::new();
    let begun = scene.caller.perform(ID, &observe_start("/3/0/14"));
    assert_eq!(begun["status"], "SUCCEEDED", "{begun}");
    let write = json!({ "action": "write", "resourceAddress": "/3/0/14", "data": "+02:00" });
    let written = scene.caller.perform(ID, &write);
    assert_eq!(outcome(&written), ("SUCCEEDED", "204"), "{written}");
    let told = scene.caller.once_notified(ID, "/3/0/14", 1);
    assert_eq!(told, [json!({ "/3/0/14": "+02:00" })]);
}

#[test]
fn an_instance_is_observed_with_all_that_is_in_it() {
    let scene = Scene::new();
    let action = scene.caller.perform(ID, &observe_start("/3303/0"));
    let begun = json!({ ADDRESS: 21.5, "/3303/0/5701": "Cel" });
    let payload = action["resultData"]["payload"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(payload).unwrap(),
        begun
    );
    scene.device.set(TEMPERATURE, Value::Float(40.0));
    let told = scene.caller.once_notified(ID, "/3303/0", 1);
    assert_eq!(told, [json!({ ADDRESS: 40.0, "/3303/0/5701": "Cel" })]);
}

#[test]
fn an_observation_that_was_ended_is_told_of_no_more() {
    let mut scene = observed(Configuration::new(ID));
    let action = scene.caller.perform(ID, &observe_end(ADDRESS));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(scene.caller.observation(ID, ADDRESS), None);
    scene.device.set(TEMPERATURE, Value::Float(30.0));
    // The device would have said so before it updates.
    scene.device.update();
    assert!(scene.caller.notified(ID, ADDRESS).is_empty());
    let again = scene.caller.perform(ID, &observe_end(ADDRESS));
    assert_eq!(again["status"], "FAILED", "{again}");
}

#[test]
fn what_is_observed_already_is_observed_once() {
    let mut scene = observed(Configuration::new(ID));
    let again = scene.caller.perform(ID, &observe_start(ADDRESS));
    assert_eq!(outcome(&again), ("SUCCEEDED", "205"), "{again}");
    let observations = &scene.caller.inspect(ID)["observations"];
    assert_eq!(observations.as_array().unwrap().len(), 1, "{observations}");
    assert_eq!(observations[0]["requestId"], again["id"]);
    scene.device.set(TEMPERATURE, Value::Float(30.0));
    scene.caller.once_notified(ID, ADDRESS, 1);
    // The device would have said more before it updates.
    scene.device.update();
    let told = scene.caller.notified(ID, ADDRESS);
    assert_eq!(told, [json!({ ADDRESS: 30.0 })]);
}

#[test]
fn an_end_may_wait_behind_the_start_it_is_of() {
    let mut scene = Scene::new();
    let asked = [observe_start(ADDRESS), observe_end(ADDRESS)];
    let ids = asked.map(|body| scene.caller.create_action(ID, &when_active(body)));
    scene.device.update();
    for id in ids {
        let action = scene.caller.final_action(&id);
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    }
    assert_eq!(scene.caller.observation(ID, ADDRESS), None);
}

#[test]
fn only_so_many_paths_of_a_device_are_observed() {
    let mut configuration = Configuration::new(ID);
    for instance in 0..=OBSERVATIONS_MAX {
        let path = Path::resource(3300, instance, 5700);
        let sensor = Resource::holding(path, Value::Float(1.0));
        configuration.resources.push(sensor);
    }
    let scene = Scene::with(&[], configuration);
    for instance in 0..=OBSERVATIONS_MAX {
        let address = format!("/3300/{instance}/5700");
        let action = scene.caller.perform(ID, &observe_start(&address));
        let is_one_too_many = instance == OBSERVATIONS_MAX;
        assert_eq!(action["status"] == "FAILED", is_one_too_many, "{action}");
    }
    let path = Path::resource(3300, OBSERVATIONS_MAX, 5700);
    assert_eq!(
        scene.device.times_observed(path),
        0,
        "it was asked all the same"
    );
    let entry = scene.caller.log_entries().remove(0);
    let description = entry["description"].as_str().unwrap();
    assert!(
        description.contains("64 paths of the device are observed"),
        "{entry}"
    );
}

#[test]
fn the_end_of_what_is_not_observed_fails_and_is_logged_and_never_sent() {
    let scene = Scene::new();
    let action = scene.caller.perform(ID, &observe_end(ADDRESS));
    assert_eq!(outcome(&action), ("FAILED", ""), "{action}");
    let why = action["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("/3303/0/5700 is not observed"), "{why}");
    let entry = scene.caller.log_entries().remove(0);
    assert_eq!(entry["message"], "DeviceController[ActionRequestFailed]");
    let id = action["id"].as_str().unwrap();
    assert!(
        entry["description"].as_str().unwrap().contains(id),
        "{entry}"
    );
    assert!(scene.device.performed().is_empty());
}

#[test]
fn what_the_device_refuses_to_observe_fails_with_its_code() {
    let scene = Scene::new();
    let action = scene.caller.perform(ID, &observe_start("/3/0/99"));
    assert_eq!(outcome(&action), ("FAILED", "404"), "{action}");
    assert_eq!(scene.caller.observation(ID, "/3/0/99"), None);
}

#[test]
fn a_device_that_tells_the_value_and_observes_nothing_fails_the_request() {
    let scene = Scene::new();
    scene
        .device
        .answer_with(TEMPERATURE, Answer::Code(Code::CONTENT));
    let action = scene.caller.perform(ID, &observe_start(ADDRESS));
    assert_eq!(action["status"], "FAILED", "{action}");
    let why = action["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("does not observe"), "{why}");
    assert_eq!(scene.caller.observation(ID, ADDRESS), None);
}

#[test]
fn a_device_that_registers_anew_is_asked_again() {
    let mut scene = observed(Configuration::new(ID));
    for round in 1..=2 {
        scene.device.reboot();
        scene.device.hear_observed(Operation::Observe, TEMPERATURE);
        until("the observation", || {
            let state = scene.caller.observation(ID, ADDRESS);
            (state.as_deref() == Some("HELD")).then_some(())
        });
        let before = scene.caller.notified(ID, ADDRESS).len();
        let degrees = 22.0 + f64::from(round);
        scene.device.set(TEMPERATURE, Value::Float(degrees));
        let told = scene.caller.once_notified(ID, ADDRESS, before + 1);
        assert_eq!(told.last(), Some(&json!({ ADDRESS: degrees })), "{told:?}");
    }
}

#[test]
fn a_device_that_left_is_asked_again_when_it_comes_back() {
    let mut scene = observed(Configuration::new(ID));
    scene.device.deregister();
    assert_eq!(
        scene.caller.observation(ID, ADDRESS).as_deref(),
        Some("OWED")
    );
    scene.device.reboot();
    scene.device.hear_observed(Operation::Observe, TEMPERATURE);
    until("the observation", || {
        let state = scene.caller.observation(ID, ADDRESS);
        (state.as_deref() == Some("HELD")).then_some(())
    });
}

#[test]
fn an_observation_survives_a_crash_and_the_device_is_not_asked_again() {
    let mut scene = observed(Configuration::new(ID));
    scene.crash();
    scene.device.set(TEMPERATURE, Value::Float(30.0));
    let told = scene.caller.once_notified(ID, ADDRESS, 1);
    assert_eq!(told, [json!({ ADDRESS: 30.0 })]);
    assert_eq!(scene.device.times_observed(TEMPERATURE), 1);
    let ended = scene.caller.perform(ID, &observe_end(ADDRESS));
    assert_eq!(outcome(&ended), ("SUCCEEDED", "205"), "{ended}");
}

#[test]
fn a_device_that_registers_anew_while_the_service_is_down_is_asked_again() {
    let mut scene = observed(Configuration::new(ID));
    scene.service.kill();
    scene.device.with(|device| device.power_off());
    scene.service.start_again();
    scene.caller.follow(&scene.service);
    scene.device.reboot();
    scene.device.hear_observed(Operation::Observe, TEMPERATURE);
    let before = until("the first value", || {
        let held = scene.caller.observation(ID, ADDRESS).as_deref() == Some("HELD");
        held.then(|| scene.caller.notified(ID, ADDRESS).len())
    });
    scene.device.set(TEMPERATURE, Value::Float(30.0));
    let told = scene.caller.once_notified(ID, ADDRESS, before + 1);
    assert_eq!(told.last(), Some(&json!({ ADDRESS: 30.0 })));
}

#[test]
fn a_device_nobody_knows_any_more_is_told_to_stop() {
    let mut scene = observed(Configuration::new(ID));
    let path = format!("{API}/devices/{ID}");
    assert_eq!(scene.caller.request("DELETE", &path).status, 204);
    scene.device.set(TEMPERATURE, Value::Float(30.0));
    scene.device.hear_unwanted(TEMPERATURE);
}

#[test]
fn a_notification_that_wants_an_acknowledgement_gets_one() {
    let mut configuration = Configuration::new(ID);
    configuration.notify = Notify::Confirmable;
    // It repeats nothing within the test, and tells nothing new before the acknowledgement.
    configuration.transmission.ack_timeout_ms = 600_000;
    let scene = observed(configuration);
    for (times, degrees) in [(1, 22.0), (2, 23.0), (3, 24.0)] {
        scene.device.set(TEMPERATURE, Value::Float(degrees));
        let told = scene.caller.once_notified(ID, ADDRESS, times);
        assert_eq!(told.last(), Some(&json!({ ADDRESS: degrees })), "{told:?}");
    }
}

#[test]
fn a_notification_of_a_sleeping_device_lets_go_what_waits_for_it() {
    let reachability = Reachability::Queue {
        awake_window_ms: 60_000,
    };
    let configuration = Configuration {
        reachability,
        ..Configuration::new(ID)
    };
    let mut scene = Scene::with(&[NEVER_AWAKE], configuration);
    let observed = scene
        .caller
        .create_action(ID, &when_active(observe_start(ADDRESS)));
    scene.device.update();
    assert_eq!(scene.caller.final_action(&observed)["status"], "SUCCEEDED");
    let waiting = scene.caller.create_action(ID, &when_active(read("/3/0/0")));
    assert_eq!(scene.caller.action(&waiting)["status"], "SCHEDULED");
    scene.device.sleep();
    scene.device.set(TEMPERATURE, Value::Float(30.0));
    let action = scene.caller.final_action(&waiting);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(
        scene.caller.once_notified(ID, ADDRESS, 1),
        [json!({ ADDRESS: 30.0 })]
    );
}

/// A device whose temperature is observed.
fn observed(configuration: Configuration) -> Scene {
    let scene = Scene::with(&[], configuration);
    let begun = scene.caller.perform(ID, &observe_start(ADDRESS));
    assert_eq!(begun["status"], "SUCCEEDED", "{begun}");
    scene
}
