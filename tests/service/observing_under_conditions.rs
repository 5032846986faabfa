//! Does an observation have the attributes that its caller gave, in the way of the device's
//! release?

use harness::device::configuration::Configuration;
use harness::device::event::Operation;
use harness::device::resource::AnswerMode;
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;
use serde_json::{Value as Json, json};

use crate::errors::check;
use crate::managing::{discover, payload};
use crate::test_service::{ID, TestService, with};
use crate::vocabulary::lwm2m::{observe_end, observe_start, outcome};
use crate::vocabulary::poll::until;

const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
const ADDRESS: &str = "/3303/0/5700";

#[test]
fn before_1_2_the_attributes_are_written_first_and_the_timeline_shows_it() {
    let setup = TestService::with(&[], of(EnablerVersion::V1_1));
    let action = setup.perform(&observe(json!({ "pmin": 0, "gt": 25 })));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(action["resultData"]["payload"], "21.5", "{action}");
    let events = events_of(&action);
    let expected = [
        "ATTEMPT_BEGUN",
        "DATAGRAM_SENT",
        "ATTRIBUTES_WRITTEN",
        "DATAGRAM_SENT",
        "ANSWERED",
    ];
    assert_eq!(events, expected, "{action}");
    let operations = setup.device.performed().into_iter();
    let operations: Vec<Operation> = operations.map(|done| done.operation).collect();
    assert_eq!(operations, [Operation::WriteAttributes, Operation::Observe]);
    let listed = payload(&setup.perform(&discover(ADDRESS)));
    assert_eq!(listed, json!({ ADDRESS: { "pmin": 0, "gt": 25 } }));
    only_crossings_are_notified(&setup);
}

#[test]
fn since_1_2_the_attributes_are_in_the_observe() {
    let setup = TestService::with(&[], of(EnablerVersion::V1_2));
    let action = setup.perform(&observe(json!({ "pmin": 0, "gt": 25 })));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(
        events_of(&action),
        ["ATTEMPT_BEGUN", "DATAGRAM_SENT", "ANSWERED"]
    );
    let listed = payload(&setup.perform(&discover(ADDRESS)));
    assert_eq!(
        listed,
        json!({ ADDRESS: {} }),
        "they are the observation's own"
    );
    only_crossings_are_notified(&setup);
    let ended = setup.perform(&observe_end(ADDRESS));
    assert_eq!(outcome(&ended), ("SUCCEEDED", "205"), "{ended}");
}

#[test]
fn a_value_is_notified_each_longest_period_though_it_does_not_change() {
    for version in [EnablerVersion::V1_1, EnablerVersion::V1_2] {
        let setup = TestService::with(&[], of(version));
        setup.perform(&observe(json!({ "pmin": 0, "pmax": 1 })));
        let notified = setup.caller.once_notified(ID, ADDRESS, 2);
        let same = json!({ ADDRESS: 21.5 });
        assert!(
            notified.iter().all(|values| *values == same),
            "{notified:?}"
        );
    }
}

#[test]
fn attributes_are_requested_again_after_a_new_registration_and_a_crash() {
    for version in [EnablerVersion::V1_1, EnablerVersion::V1_2] {
        let mut setup = TestService::with(&[], of(version));
        setup.perform(&observe(json!({ "gt": 25 })));
        let shown = &setup.caller.inspect(ID)["observations"][0];
        assert_eq!(shown["attributes"], json!({ "gt": "25" }), "{shown}");
        setup.crash();
        setup.device.reboot();
        setup
            .device
            .wait_observe_request(Operation::Observe, TEMPERATURE);
        until("the observation", || {
            let state = setup.caller.observation(ID, ADDRESS);
            (state.as_deref() == Some("HELD")).then_some(())
        });
        let written = |done: &&harness::device::operation_log::PerformedOperation| {
            done.operation == Operation::WriteAttributes
        };
        let written = setup.device.performed().iter().filter(written).count();
        let expected = if version == EnablerVersion::V1_1 {
            2
        } else {
            0
        };
        assert_eq!(written, expected, "{version}");
    }
}

#[test]
fn a_refused_attribute_begins_no_observation_and_ends_none() {
    let setup = TestService::with(&[], of(EnablerVersion::V1_1));
    let begun = setup.perform(&observe_start(ADDRESS));
    assert_eq!(outcome(&begun), ("SUCCEEDED", "205"), "{begun}");
    let refusing = AnswerMode::Code(Code::BAD_REQUEST);
    setup.device.answer_with(TEMPERATURE, refusing);
    let failed = setup.perform(&observe(json!({ "pmin": 5 })));
    assert_eq!(outcome(&failed), ("FAILED", "400"), "{failed}");
    let why = failed["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.starts_with("the attributes were not written"), "{why}");
    assert_eq!(
        setup.caller.observation(ID, ADDRESS).as_deref(),
        Some("HELD")
    );
}

#[test]
fn an_attribute_that_the_release_or_the_resource_cannot_have_fails() {
    let setup = TestService::with(&[], of(EnablerVersion::V1_0));
    let failed = setup.perform(&observe(json!({ "epmin": 5, "con": 1, "pmin": 1 })));
    let why = failed["resultData"]["errorMessage"].as_str().unwrap();
    assert!(
        why.contains("epmin, con") && !why.contains(" pmin"),
        "{why}"
    );
    let body = with(observe_start("/3/0/14"), "attributes", json!({ "lt": 5 }));
    let failed = setup.perform(&body);
    let why = failed["resultData"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("STRING"), "{why}");
    assert!(setup.device.performed().is_empty());
    let body = with(observe_end(ADDRESS), "attributes", json!({ "lt": 5 }));
    let faults = &[("INVALID_VALUE", "attributes")];
    check(&setup.caller.try_action(ID, &body), 400, faults);
}

/// The value crosses 25 twice; other changes are not notified.
fn only_crossings_are_notified(setup: &TestService) {
    for degrees in [22.0, 26.0] {
        setup.device.set(TEMPERATURE, Value::Float(degrees));
    }
    let notified = setup.caller.once_notified(ID, ADDRESS, 1);
    assert_eq!(notified, [json!({ ADDRESS: 26.0 })]);
    for degrees in [27.0, 24.0] {
        setup.device.set(TEMPERATURE, Value::Float(degrees));
    }
    let notified = setup.caller.once_notified(ID, ADDRESS, 2);
    assert_eq!(notified.last(), Some(&json!({ ADDRESS: 24.0 })));
    assert_eq!(notified.len(), 2, "{notified:?}");
}

fn observe(attributes: Json) -> Json {
    with(observe_start(ADDRESS), "attributes", attributes)
}

fn events_of(action: &Json) -> Vec<&str> {
    let events = action["timeline"].as_array().unwrap().iter();
    events
        .map(|entry| entry["event"].as_str().unwrap())
        .collect()
}

fn of(version: EnablerVersion) -> Configuration {
    Configuration {
        version,
        ..Configuration::new(ID)
    }
}
