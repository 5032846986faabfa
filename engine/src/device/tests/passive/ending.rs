//! What ends a round before every object was read.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::super::vocabulary::{
    DeviceFixture, HOME, Lines, MINUTE, REPORTING, S, all, reads, reported, updated,
};
use crate::limits::Limits;
use crate::setting::SettingState;
use crate::step_event::{ExchangeOutcome, ExchangePurpose, StepEventKind};

#[test]
fn a_new_registration_begins_a_new_round() {
    let mut fixture = first_requested();
    fixture.answer(Code::NOT_FOUND, "");
    let late = fixture.piggybacked(Code::NOT_FOUND);
    let effects = fixture.at(S).offer(REPORTING);
    assert!(effects.ends_with(&reads("/6", "m3")), "{effects:?}");
    let ended = [
        StepEventKind::Ended(ExchangeOutcome::DeviceGone),
        StepEventKind::Begun(ExchangePurpose::Report),
    ];
    assert_eq!(fixture.step_events(), ended);
    assert_eq!(
        fixture.receives(HOME, &late),
        Lines::new(),
        "no exchange awaits it"
    );
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), reads("/7", "m4"));
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), Lines::new());
}

#[test]
fn a_deregistration_ends_the_round() {
    let mut fixture = first_requested();
    let answer = fixture.piggybacked(Code::NOT_FOUND);
    let effects = fixture.at(S).deregister();
    assert!(effects.last().unwrap().contains("2.02"), "{effects:?}");
    assert_eq!(fixture.receives(HOME, &answer), Lines::new());
    fixture.next_deadline();
    assert!(fixture.device().busy.is_none());
}

#[test]
fn an_expired_registration_ends_the_round() {
    let mut fixture = DeviceFixture::reporting();
    fixture.register_with(&["lwm2m=1.1", "lt=3", "b=U"], REPORTING);
    let effects = fixture.at(4 * S).timeout();
    assert!(
        effects.iter().all(|line| !line.contains("GET")),
        "{effects:?}"
    );
    assert!(fixture.device().busy.is_none());
}

#[test]
fn the_rest_of_a_round_is_dropped_when_the_device_falls_asleep() {
    let mut fixture = DeviceFixture::reporting();
    fixture.register_with(&["lwm2m=1.1", "lt=86400", "b=U", "Q"], REPORTING);
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.receives(HOME, &acknowledgement);
    let late = fixture.at(93 * S).timeout();
    assert!(late.iter().all(|line| !line.contains("GET")), "{late:?}");
    assert!(fixture.device().busy.is_none());
    let expected = all([updated(102), reads("/7", "m2")]);
    assert_eq!(
        fixture.at(10 * MINUTE).update(),
        expected,
        "the silent one is last"
    );
}

#[test]
fn an_answer_is_not_published_after_passive_reporting_was_disabled() {
    let mut fixture = first_requested();
    fixture.switch_reporting(SettingState::Disabled);
    assert_eq!(fixture.answer_values("/6", &[("/6/0/5", 1)]), Lines::new());
    assert!(fixture.device().busy.is_none());
    assert_eq!(fixture.at(MINUTE).update(), updated(102));
    fixture.switch_reporting(SettingState::Enabled);
    assert_eq!(
        fixture.timeout(),
        Lines::new(),
        "not before the next update"
    );
    let expected = all([updated(103), reads("/6", "m2")]);
    assert_eq!(fixture.update(), expected);
}

#[test]
fn a_failure_is_not_logged_after_passive_reporting_was_disabled() {
    let mut fixture = first_requested();
    fixture.switch_reporting(SettingState::Disabled);
    assert_eq!(
        fixture.answer(Code::INTERNAL_SERVER_ERROR, ""),
        Lines::new()
    );
    assert!(fixture.device().busy.is_none());
}

#[test]
fn a_restart_of_the_service_drops_the_round() {
    let mut fixture = first_requested();
    let answer = fixture.piggybacked(Code::CONTENT);
    fixture.restart();
    assert!(fixture.device().busy.is_none());
    assert_eq!(fixture.receives(HOME, &answer), Lines::new());
    let effects = fixture.at(MINUTE).update();
    assert!(effects.ends_with(&reads("/6", "m2")), "{effects:?}");
}

#[test]
fn values_above_the_rate_end_the_round() {
    let mut fixture = first_requested();
    let values: Vec<(String, i64)> = (0..500).map(|id| (format!("/6/{id}/5"), 1)).collect();
    let values: Vec<(&str, i64)> = values.iter().map(|(at, it)| (at.as_str(), *it)).collect();
    let mut published = 0;
    loop {
        let effects = fixture.answer_values("/6", &values);
        if effects.is_empty() {
            break;
        }
        assert!(
            effects[0].starts_with("publish /6/0/5="),
            "{}",
            &effects[0][..200]
        );
        published += 1;
        fixture.answer(Code::NOT_FOUND, "");
        fixture.update();
    }
    assert_eq!(
        published,
        usize::from(Limits::default().values_max).div_ceil(values.len())
    );
    assert!(fixture.device().busy.is_none(), "nothing else is requested");
    fixture.at(2 * MINUTE).update();
    let effects = fixture.answer_values("/6", &[("/6/0/5", 1)]);
    assert_eq!(effects[..1], reported("/6/0/5=1970-01-01T00:00:01Z"));
}

/// A device that registered, with a read of its first object in flight.
fn first_requested() -> DeviceFixture {
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer(REPORTING);
    assert!(effects.ends_with(&reads("/6", "m1")), "{effects:?}");
    fixture
}
