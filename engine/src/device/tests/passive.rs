//! Passive reporting: which objects are read, in what order, and when it ends (seed 1.2 and 1.3).

mod composing;
mod ending;
mod failing;

use protocol::coap::code::Code;

use super::vocabulary::{
    DeviceFixture, HOME, Lines, MINUTE, REPORTING, S, all, definition, moved, published, read,
    reads, recorded, reported, sent, updated,
};
use crate::action::Status::{InProgress, Scheduled};
use crate::limits::Limits;
use crate::setting::SettingState;
use crate::step_event::{ExchangeOutcome, ExchangePurpose, StepEventKind};

#[test]
fn each_object_is_read_once_when_the_device_registers() {
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer(REPORTING);
    let (registered, requested) = effects.split_at(effects.len() - 1);
    assert_eq!(registered, without_reporting());
    assert_eq!(requested, reads("/6", "m1"));
    assert_eq!(fixture.timeout(), Lines::new(), "one exchange is in flight");
    let expected = all([reported("/6/0/5=1970-01-01T00:00:01Z"), reads("/7", "m2")]);
    assert_eq!(fixture.answer_values("/6", &[("/6/0/5", 1)]), expected);
    let values = [("/7/0/2", 5), ("/7/0/3", 6)];
    assert_eq!(
        fixture.answer_values("/7", &values),
        reported("/7/0/2=5 /7/0/3=6")
    );
    assert!(fixture.device().busy.is_none(), "nothing is left of it");
}

#[test]
fn an_update_begins_another_round_and_nothing_is_saved_before() {
    let mut fixture = reported_once();
    let expected = all([updated(102), reads("/6", "m3")]);
    assert_eq!(fixture.at(MINUTE).update(), expected);
    assert_eq!(
        fixture.answer(Code::CONTENT, ""),
        reads("/7", "m4"),
        "it says nothing"
    );
    assert_eq!(
        fixture.answer_values("/7", &[("/7/0/2", 6)]),
        reported("/7/0/2=6")
    );
    assert_eq!(fixture.timeout(), Lines::new());
}

#[test]
fn nothing_is_read_unless_passive_reporting_is_enabled() {
    let mut fixture = DeviceFixture::new();
    assert_eq!(fixture.offer(REPORTING), without_reporting());
    assert_eq!(fixture.at(MINUTE).update(), updated(102));
    assert!(fixture.device().busy.is_none());
}

#[test]
fn security_server_and_device_objects_are_never_read() {
    let objects = "</0/0>,</1/0>,</2/0>,</3/0>,</21/0>,</21/1>";
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer(objects);
    assert!(effects.last().unwrap().contains("ACK 2.01"), "{effects:?}");
    assert!(fixture.device().busy.is_none());

    // Nor if the customer defines them as readable.
    let mut fixture = DeviceFixture::new();
    let defined = [0, 1, 2, 3, 21].map(|id| definition(id, "9.9", "R", "Integer"));
    fixture.define(&defined.each_ref().map(String::as_str));
    fixture.switch_reporting(SettingState::Enabled);
    let offered = [0, 1, 2, 3, 21].map(|id| format!("</{id}>;ver=9.9,</{id}/0>"));
    let effects = fixture.offer(&offered.join(","));
    assert!(effects.last().unwrap().contains("ACK 2.01"), "{effects:?}");
    assert!(fixture.device().busy.is_none());
}

#[test]
fn an_object_without_instance_is_read_where_the_list_names_no_instances() {
    let read = |objects: &str| {
        let mut fixture = DeviceFixture::reporting();
        let effects = fixture.offer(objects);
        fixture.requested_objects(effects)
    };
    assert_eq!(read("</1/0>,</3/0>,</6>,</7/0>,</10>;ver=1.1"), ["/7"]);
    assert_eq!(read("</1>,</3>,</6>,</7>"), ["/6", "/7"]);
    assert_eq!(read(""), [""; 0]);
}

#[test]
fn an_object_is_read_unless_the_model_says_that_it_has_nothing_to_read() {
    let mut fixture = DeviceFixture::reporting();
    // Object 23 has only resources to execute and to write; 32769 is unknown.
    let effects = fixture.offer("</1/0>,</7/0>,</23/0>,</32769/0>");
    assert_eq!(fixture.requested_objects(effects), ["/7", "/32769"]);
}

#[test]
fn a_defined_object_is_read_by_its_definition() {
    let mut fixture = DeviceFixture::new();
    fixture.define(&[
        &definition(33_000, "1.0", "W", "Integer"),
        &definition(33_001, "1.0", "R", "Integer"),
    ]);
    fixture.switch_reporting(SettingState::Enabled);
    let effects = fixture.offer("</1/0>,</33000/0>,</33001/0>");
    assert!(effects.ends_with(&reads("/33001", "m1")), "{effects:?}");
    let effects = fixture.answer_values("/33001", &[("/33001/0/0", 5)]);
    assert_eq!(effects, reported("/33001/0/0=5"));
}

#[test]
fn the_objects_of_the_latest_update_are_read() {
    let mut fixture = reported_once();
    let update = fixture.updating(&[], "</1/0>,</3303/0>");
    let effects = fixture.at(MINUTE).receives(HOME, &update);
    assert_eq!(fixture.requested_objects(effects), ["/3303"]);
}

#[test]
fn objects_above_the_maximum_are_read_in_the_next_rounds() {
    let objects: Vec<String> = (1_000..1_100).map(|id| format!("</{id}/0>")).collect();
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer(&objects.join(","));
    let first = fixture.requested_objects(effects);
    let max = Limits::default().passive_objects_max;
    assert_eq!(first.len(), max);
    assert_eq!(first[..2], ["/1000", "/1001"]);
    let effects = fixture.at(MINUTE).update();
    let second = fixture.requested_objects(effects);
    assert_eq!(second.len(), max);
    assert_eq!(second[..2], ["/1064", "/1065"]);
    assert_eq!(second[35..37], ["/1099", "/1000"]);
    // A registration that ends does not begin anew with the first object.
    fixture.at(2 * MINUTE).deregister();
    let effects = fixture.offer(&objects.join(","));
    let third = fixture.requested_objects(effects);
    assert_eq!(third[..2], ["/1028", "/1029"]);
}

#[test]
fn requests_of_callers_go_first() {
    let mut fixture = reported_once();
    fixture.ask(read("/3/0/9").when_active());
    let expected = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m3"),
    ]);
    assert_eq!(fixture.at(MINUTE).update(), expected);
    let effects = fixture.answer(Code::CONTENT, "87");
    assert!(effects.ends_with(&reads("/6", "m4")), "{effects:?}");
    fixture.ask(read("/3/0/13"));
    let effects = fixture.answer(Code::NOT_FOUND, "");
    let next = sent("CON GET /3/0/13 accept 0 m5");
    assert!(effects.ends_with(&next), "{effects:?}");
    let effects = fixture.answer(Code::CONTENT, "1700000000");
    assert!(effects.ends_with(&reads("/7", "m6")), "{effects:?}");
}

#[test]
fn owed_observations_go_first() {
    let mut fixture = DeviceFixture::observed();
    fixture.switch_reporting(SettingState::Enabled);
    let effects = fixture.at(MINUTE).offer(REPORTING);
    let again = sent("CON GET /3/0/9 observe 0 accept 0 m2");
    assert!(effects.ends_with(&again), "{effects:?}");
    let effects = fixture.agree(1, "86");
    assert!(effects.ends_with(&reads("/6", "m3")), "{effects:?}");
}

#[test]
fn updates_during_a_round_begin_one_more_round() {
    let mut fixture = DeviceFixture::reporting();
    fixture.offer(REPORTING);
    for message_id in [102, 103, 104] {
        assert_eq!(
            fixture.at(S).update(),
            updated(message_id),
            "nothing is doubled"
        );
    }
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), reads("/7", "m2"));
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), reads("/6", "m3"));
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), reads("/7", "m4"));
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), Lines::new());
    assert!(fixture.device().busy.is_none());
}

#[test]
fn reads_are_reported_as_step_events() {
    let mut fixture = DeviceFixture::reporting();
    fixture.offer("</1/0>,</7/0>");
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Begun(ExchangePurpose::Report)]
    );
    fixture.answer_values("/7", &[("/7/0/2", 5)]);
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Ended(ExchangeOutcome::Success)]
    );
    assert_eq!(fixture.traces(), [None]);
}

/// A device that registered at the start and was read then.
fn reported_once() -> DeviceFixture {
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer(REPORTING);
    assert_eq!(fixture.requested_objects(effects), ["/6", "/7"]);
    fixture
}

/// The effects of a first registration without passive reporting.
fn without_reporting() -> Lines {
    all([
        published("FirstContact"),
        recorded("registered until 86400000, seen at 0 from 10.0.0.1:5683"),
        published("Registered"),
        vec![
            "log Lifecycle[DeviceFirstTimeRegistered] Info: The device registered for the first \
             time as meter."
                .to_owned(),
            format!("rebind {HOME} -> {HOME}"),
        ],
        sent("ACK 2.01 L1 to 101"),
    ])
}
