//! Requests that must not be sent before a time.

use protocol::coap::code::Code;

use super::vocabulary::{
    DeviceFixture, HOUR, Lines, MINUTE, S, all, answered, coap, created, datagram, moved, read,
    sent, updated,
};
use crate::action::Method;
use crate::action::Status::{Cancelled, InProgress, Scheduled};
use crate::action::timeline::{TimelineEvent, WaitReason};
use crate::ids::ActionId;

#[test]
fn a_request_to_be_sent_now_is_sent_at_its_time_whatever_the_device_does() {
    let mut fixture = DeviceFixture::registered();
    let (accepted, effects) = fixture.submit(read("/3/0/9").not_before(10 * MINUTE));
    assert_eq!(accepted.unwrap().status, Scheduled);
    assert_eq!(effects, created("#1", Scheduled, "0/1"));
    assert_eq!(fixture.deadline(), Some(10 * MINUTE));
    assert_eq!(fixture.at(5 * MINUTE).update(), updated(102));
    assert_eq!(fixture.at(10 * MINUTE - 1).timeout(), Lines::new());
    assert_eq!(fixture.next_deadline(), begun());
    assert_eq!(fixture.since_start_now(), 10 * MINUTE);
}

#[test]
fn a_request_for_the_next_uplink_waits_for_the_first_one_after_its_time() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active().not_before(10 * MINUTE));
    assert_eq!(fixture.deadline(), Some(24 * HOUR), "of the registration");
    assert_eq!(fixture.at(5 * MINUTE).update(), updated(102));
    assert_eq!(fixture.at(10 * MINUTE).timeout(), Lines::new());
    let expected = all([updated(103), begun()]);
    assert_eq!(fixture.at(10 * MINUTE).update(), expected);
}

#[test]
fn a_request_for_later_lets_others_go_first() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").not_before(HOUR));
    fixture.ask(read("/3/0/13"));
    assert_eq!(fixture.last_request().uri_path().last(), Some("13"));
    fixture.answer(Code::CONTENT, "0");
    fixture.ask(read("/3/0/14").when_active());
    fixture.at(MINUTE).update();
    assert_eq!(fixture.last_request().uri_path().last(), Some("14"));
    fixture.answer(Code::CONTENT, "+00:00");
    fixture.at(HOUR).timeout();
    assert_eq!(fixture.last_request().uri_path().last(), Some("9"));
}

#[test]
fn a_request_whose_time_comes_during_an_exchange_follows_it() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").not_before(S));
    fixture.ask(read("/3/0/13"));
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert_eq!(
        fixture.deadline(),
        Some(2 * S),
        "the deadline is the exchange's"
    );
    let effects = fixture.at(S).answer(Code::CONTENT, "0");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/9 accept 0 m2")),
        "{effects:?}"
    );
}

#[test]
fn a_request_whose_time_comes_while_the_device_sleeps_waits_for_an_uplink() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let id = fixture.ask(read("/3/0/9").not_before(10 * MINUTE));
    assert_eq!(fixture.at(10 * MINUTE).timeout(), Lines::new());
    assert_eq!(waits_for(&fixture, id), Some(WaitReason::Asleep));
    assert_eq!(fixture.deadline(), Some(24 * HOUR), "of the registration");
    let expected = all([updated(102), begun()]);
    assert_eq!(fixture.at(HOUR - S).update(), expected);
}

#[test]
fn an_uplink_after_its_time_sends_a_request_though_the_timeout_is_late() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").not_before(10 * MINUTE));
    let expected = all([updated(102), begun()]);
    assert_eq!(fixture.at(11 * MINUTE).update(), expected);
    let expected = answered("#1", "/3/0/9=87", r#"1/1 "205" "87""#);
    assert_eq!(fixture.answer(Code::CONTENT, "87"), expected);
    assert_eq!(fixture.timeout(), Lines::new());
}

#[test]
fn a_request_keeps_its_time_over_a_restart() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").not_before(10 * MINUTE));
    fixture.at(MINUTE).restart();
    assert_eq!(fixture.timeout(), Lines::new());
    assert_eq!(fixture.deadline(), Some(10 * MINUTE));
    fixture.at(11 * MINUTE).restart();
    assert_eq!(fixture.timeout(), begun());
}

#[test]
fn a_request_for_later_can_be_cancelled() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").not_before(10 * MINUTE));
    let (cancelled, effects) = fixture.cancel(id);
    assert_eq!(cancelled, Ok(()));
    assert_eq!(effects, moved("#1", Scheduled, Cancelled, "0/1"));
    assert_eq!(fixture.at(10 * MINUTE).timeout(), Lines::new());
}

#[test]
fn a_request_for_later_needs_no_registration_before_its_time() {
    let mut fixture = DeviceFixture::new();
    let first = fixture.ask(read("/3/0/9").not_before(HOUR));
    fixture.register();
    let second = fixture.ask(read("/3/0/9").not_before(HOUR));
    fixture.at(S).deregister();
    for id in [first, second] {
        assert_eq!(fixture.saved(id).status, Scheduled);
    }
    assert_eq!(fixture.at(HOUR).timeout(), Lines::new());
    assert_eq!(waits_for(&fixture, first), Some(WaitReason::Unregistered));
    let effects = fixture.at(HOUR + S).register();
    let request = sent("CON GET /3/0/9 accept 0 m1");
    assert!(effects.ends_with(&request), "{effects:?}");
}

#[test]
fn a_request_for_later_needs_no_address_before_its_time() {
    let mut fixture = DeviceFixture::roaming();
    for new in [coap(Method::Get, "/a", ""), datagram("on")] {
        assert!(fixture.submit(new.clone()).0.is_err());
        assert!(fixture.submit(new.not_before(HOUR)).0.is_ok());
    }
}

#[test]
fn a_time_in_the_past_is_no_wait() {
    let mut fixture = DeviceFixture::registered();
    let (accepted, effects) = fixture.submit(read("/3/0/9").not_before(0));
    assert_eq!(accepted.unwrap().status, InProgress);
    assert!(effects.ends_with(&sent("CON GET /3/0/9 accept 0 m1")));
}

#[test]
fn a_request_for_later_says_what_it_waits_for() {
    let mut fixture = DeviceFixture::registered();
    let now = fixture.ask(read("/3/0/9").not_before(HOUR));
    let active = fixture.ask(read("/3/0/9").when_active().not_before(HOUR));
    for id in [now, active] {
        assert_eq!(waits_for(&fixture, id), Some(WaitReason::NotBefore));
    }
    let timeline = fixture.saved(now).timeline.as_slice();
    let waiting = TimelineEvent::Waiting(WaitReason::NotBefore);
    assert_eq!(timeline.first().map(|entry| entry.what), Some(waiting));
}

/// The first request begins.
fn begun() -> Lines {
    all([
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ])
}

fn waits_for(fixture: &DeviceFixture, id: ActionId) -> Option<WaitReason> {
    let pending = fixture.snapshot().pending;
    let found = pending.iter().find(|it| it.action.id == id);
    found.expect("it is pending").waits_for
}
