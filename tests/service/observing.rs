//! Does a customer receive the changes of an observed value until the observation is ended?

use harness::device::configuration::{Configuration, Reachability};
use harness::device::event::Operation;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::json;

use crate::test_service::{ID, NEVER_AWAKE, TestService};
use crate::vocabulary::caller::API;
use crate::vocabulary::lwm2m::{observe_end, observe_start, outcome, read, when_active};
use crate::vocabulary::poll::until;

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
const ADDRESS: &str = "/3303/0/5700";

#[test]
fn an_observation_begins_with_the_current_value() {
    let setup = TestService::new();
    let action = setup.caller.perform(ID, &observe_start(ADDRESS));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(action["resultData"]["payload"], "21.5", "{action}");
    let inspector = setup.caller.inspect(ID);
    let observation = &inspector["observations"][0];
    assert_eq!(observation["path"], ADDRESS, "{inspector}");
    assert_eq!(observation["state"], "HELD", "{inspector}");
    assert_eq!(observation["requestId"], action["id"], "{inspector}");
    assert_eq!(inspector["values"][0]["path"], ADDRESS, "{inspector}");
    assert_eq!(inspector["values"][0]["value"], 21.5, "{inspector}");
}

#[test]
fn each_change_is_in_the_messages_and_becomes_the_last_known_value() {
    let setup = observed(Configuration::new(ID));
    for (times, degrees) in [(1, 22.0), (2, 22.5), (3, -3.25)] {
        setup.device.set(TEMPERATURE, Value::Float(degrees));
        let notified = setup.caller.once_notified(ID, ADDRESS, times);
        assert_eq!(
            notified.last(),
            Some(&json!({ ADDRESS: degrees })),
            "{notified:?}"
        );
        let known = setup.caller.known_value(ID, ADDRESS).unwrap();
        assert_eq!(
            (&known["value"], &known["type"]),
            (&json!(degrees), &json!("FLOAT"))
        );
    }
    let newest = setup.caller.messages(ID).remove(0);
    assert_eq!(newest["type"], "TELEMETRY_DATA", "{newest}");
    assert_eq!(newest["source"], "LWM2M", "{newest}");
    let recent = &setup.caller.inspect(ID)["recentMessages"][0];
    assert_eq!(*recent, newest);
}

#[test]
fn a_value_that_the_service_writes_is_notified_as_well() {
    let setup = TestService::new();
    let begun = setup.caller.perform(ID, &observe_start("/3/0/14"));
    assert_eq!(begun["status"], "SUCCEEDED", "{begun}");
    let write = json!({ "action": "write", "resourceAddress": "/3/0/14", "data": "+02:00" });
    let written = setup.caller.perform(ID, &write);
    assert_eq!(outcome(&written), ("SUCCEEDED", "204"), "{written}");
    let notified = setup.caller.once_notified(ID, "/3/0/14", 1);
    assert_eq!(notified, [json!({ "/3/0/14": "+02:00" })]);
}

#[test]
fn an_ended_observation_is_not_notified() {
    let mut setup = observed(Configuration::new(ID));
    let action = setup.caller.perform(ID, &observe_end(ADDRESS));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(setup.caller.observation(ID, ADDRESS), None);
    setup.device.set(TEMPERATURE, Value::Float(30.0));
    // A notification would have been received before the update.
    setup.device.update();
    assert!(setup.caller.notified(ID, ADDRESS).is_empty());
    let again = setup.caller.perform(ID, &observe_end(ADDRESS));
    assert_eq!(again["status"], "FAILED", "{again}");
}

#[test]
fn an_observation_is_requested_again_after_a_new_registration() {
    let mut setup = observed(Configuration::new(ID));
    for round in 1..=2 {
        setup.device.reboot();
        setup
            .device
            .wait_observe_request(Operation::Observe, TEMPERATURE);
        until("the observation", || {
            let state = setup.caller.observation(ID, ADDRESS);
            (state.as_deref() == Some("HELD")).then_some(())
        });
        let before = setup.caller.notified(ID, ADDRESS).len();
        let degrees = 22.0 + f64::from(round);
        setup.device.set(TEMPERATURE, Value::Float(degrees));
        let notified = setup.caller.once_notified(ID, ADDRESS, before + 1);
        assert_eq!(
            notified.last(),
            Some(&json!({ ADDRESS: degrees })),
            "{notified:?}"
        );
    }
}

#[test]
fn an_observation_survives_a_crash_without_a_new_request() {
    let mut setup = observed(Configuration::new(ID));
    setup.crash();
    setup.device.set(TEMPERATURE, Value::Float(30.0));
    let notified = setup.caller.once_notified(ID, ADDRESS, 1);
    assert_eq!(notified, [json!({ ADDRESS: 30.0 })]);
    assert_eq!(setup.device.times_observed(TEMPERATURE), 1);
    let ended = setup.caller.perform(ID, &observe_end(ADDRESS));
    assert_eq!(outcome(&ended), ("SUCCEEDED", "205"), "{ended}");
}

#[test]
fn an_observation_is_requested_again_after_a_registration_that_follows_a_crash() {
    let mut setup = observed(Configuration::new(ID));
    setup.service.kill();
    setup.device.with(|device| device.power_off());
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    setup.device.reboot();
    setup
        .device
        .wait_observe_request(Operation::Observe, TEMPERATURE);
    let before = until("the first value", || {
        let held = setup.caller.observation(ID, ADDRESS).as_deref() == Some("HELD");
        held.then(|| setup.caller.notified(ID, ADDRESS).len())
    });
    setup.device.set(TEMPERATURE, Value::Float(30.0));
    let notified = setup.caller.once_notified(ID, ADDRESS, before + 1);
    assert_eq!(notified.last(), Some(&json!({ ADDRESS: 30.0 })));
}

#[test]
fn a_notification_of_a_deleted_device_is_rejected() {
    let mut setup = observed(Configuration::new(ID));
    let path = format!("{API}/devices/{ID}");
    assert_eq!(setup.caller.request("DELETE", &path).status, 204);
    setup.device.set(TEMPERATURE, Value::Float(30.0));
    setup.device.wait_observation_ended(TEMPERATURE);
}

#[test]
fn a_notification_of_a_sleeping_device_releases_its_queue() {
    let reachability = Reachability::Queue {
        awake_window_ms: 60_000,
    };
    let configuration = Configuration {
        reachability,
        ..Configuration::new(ID)
    };
    let mut setup = TestService::with(&[NEVER_AWAKE], configuration);
    let observed = setup
        .caller
        .create_action(ID, &when_active(observe_start(ADDRESS)));
    setup.device.update();
    assert_eq!(setup.caller.final_action(&observed)["status"], "SUCCEEDED");
    let waiting = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    assert_eq!(setup.caller.action(&waiting)["status"], "SCHEDULED");
    setup.device.sleep();
    setup.device.set(TEMPERATURE, Value::Float(30.0));
    let action = setup.caller.final_action(&waiting);
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(
        setup.caller.once_notified(ID, ADDRESS, 1),
        [json!({ ADDRESS: 30.0 })]
    );
}

/// A device with an observed temperature.
fn observed(configuration: Configuration) -> TestService {
    let setup = TestService::with(&[], configuration);
    let begun = setup.caller.perform(ID, &observe_start(ADDRESS));
    assert_eq!(begun["status"], "SUCCEEDED", "{begun}");
    setup
}
