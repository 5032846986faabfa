//! What ends the reading of a device before all of it was read.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::super::vocabulary::{
    Bench, HOME, Lines, MINUTE, REPORTING, S, all, reads, reported, updated,
};
use crate::limits::PACE_MAX;
use crate::occurrence::{Ending, Purpose, What};
use crate::setting::SettingState;

#[test]
fn a_device_that_registers_anew_is_read_anew() {
    let mut bench = asked_first();
    bench.answer(Code::NOT_FOUND, "");
    let late = bench.piggybacked(Code::NOT_FOUND);
    let effects = bench.at(S).offer(REPORTING);
    assert!(effects.ends_with(&reads("/6", "m3")), "{effects:?}");
    let ended = [
        What::Ended(Ending::DeviceGone),
        What::Begun(Purpose::Report),
    ];
    assert_eq!(bench.occurred(), ended);
    assert_eq!(
        bench.hears(HOME, &late),
        Lines::new(),
        "nobody waits for it"
    );
    assert_eq!(bench.answer(Code::NOT_FOUND, ""), reads("/7", "m4"));
    assert_eq!(bench.answer(Code::NOT_FOUND, ""), Lines::new());
}

#[test]
fn a_device_that_leaves_is_not_read() {
    let mut bench = asked_first();
    let answer = bench.piggybacked(Code::NOT_FOUND);
    let effects = bench.at(S).deregister();
    assert!(effects.last().unwrap().contains("2.02"), "{effects:?}");
    assert_eq!(bench.hears(HOME, &answer), Lines::new());
    bench.next_deadline();
    assert!(bench.device().busy.is_none());
}

#[test]
fn a_device_whose_registration_lapsed_is_not_read() {
    let mut bench = Bench::reporting();
    bench.register_with(&["lwm2m=1.1", "lt=3", "b=U"], REPORTING);
    let effects = bench.at(4 * S).timeout();
    assert!(
        effects.iter().all(|line| !line.contains("GET")),
        "{effects:?}"
    );
    assert!(bench.device().busy.is_none());
}

#[test]
fn what_is_left_when_a_device_falls_asleep_is_dropped() {
    let mut bench = Bench::reporting();
    bench.register_with(&["lwm2m=1.1", "lt=86400", "b=U", "Q"], REPORTING);
    let acknowledgement = Message::acknowledgement(bench.asked().message_id);
    bench.hears(HOME, &acknowledgement);
    let late = bench.at(93 * S).timeout();
    assert!(late.iter().all(|line| !line.contains("GET")), "{late:?}");
    assert!(bench.device().busy.is_none());
    let expected = all([updated(102), reads("/7", "m2")]);
    assert_eq!(
        bench.at(10 * MINUTE).update(),
        expected,
        "the silent one is last"
    );
}

#[test]
fn a_customer_that_wants_no_more_is_told_no_more() {
    let mut bench = asked_first();
    bench.switch_reporting(SettingState::Disabled);
    assert_eq!(bench.tell("/6", &[("/6/0/5", 1)]), Lines::new());
    assert!(bench.device().busy.is_none());
    assert_eq!(bench.at(MINUTE).update(), updated(102));
    bench.switch_reporting(SettingState::Enabled);
    assert_eq!(bench.timeout(), Lines::new(), "not before the next update");
    let expected = all([updated(103), reads("/6", "m2")]);
    assert_eq!(bench.update(), expected);
}

#[test]
fn what_fails_after_the_customer_wants_no_more_is_not_told() {
    let mut bench = asked_first();
    bench.switch_reporting(SettingState::Disabled);
    assert_eq!(bench.answer(Code::INTERNAL_SERVER_ERROR, ""), Lines::new());
    assert!(bench.device().busy.is_none());
}

#[test]
fn a_restart_of_the_service_drops_what_was_to_be_read() {
    let mut bench = asked_first();
    let answer = bench.piggybacked(Code::CONTENT);
    bench.restart();
    assert!(bench.device().busy.is_none());
    assert_eq!(bench.hears(HOME, &answer), Lines::new());
    let effects = bench.at(MINUTE).update();
    assert!(effects.ends_with(&reads("/6", "m2")), "{effects:?}");
}

#[test]
fn more_values_than_are_taken_in_a_minute_end_it() {
    let mut bench = asked_first();
    let values: Vec<(String, i64)> = (0..500).map(|id| (format!("/6/{id}/5"), 1)).collect();
    let values: Vec<(&str, i64)> = values.iter().map(|(at, it)| (at.as_str(), *it)).collect();
    let mut told = 0;
    loop {
        let effects = bench.tell("/6", &values);
        if effects.is_empty() {
            break;
        }
        assert!(
            effects[0].starts_with("tell /6/0/5="),
            "{}",
            &effects[0][..200]
        );
        told += 1;
        bench.answer(Code::NOT_FOUND, "");
        bench.update();
    }
    assert_eq!(told, usize::from(PACE_MAX).div_ceil(values.len()));
    assert!(bench.device().busy.is_none(), "nothing else is asked for");
    bench.at(2 * MINUTE).update();
    let effects = bench.tell("/6", &[("/6/0/5", 1)]);
    assert_eq!(effects[..1], reported("/6/0/5=1970-01-01T00:00:01Z"));
}

/// A device that registered and is asked for the first of its objects.
fn asked_first() -> Bench {
    let mut bench = Bench::reporting();
    let effects = bench.offer(REPORTING);
    assert!(effects.ends_with(&reads("/6", "m1")), "{effects:?}");
    bench
}
