//! Cancelling requests: what was not sent is never sent, and what was sent cannot be cancelled.

use protocol::coap::code::Code;

use super::vocabulary::{
    DeviceFixture, HOUR, Lines, S, all, created, ended, logged, moved, read, updated,
};
use crate::action::Status::{Cancelled, Failed, InProgress, Scheduled};
use crate::action::timeline::{Timeline, TimelineEvent};
use crate::device::queue::CancelRefusal::{NotPending, NotScheduled};
use crate::ids::ActionId;

#[test]
fn a_cancelled_request_is_never_sent() {
    let mut fixture = DeviceFixture::new();
    let id = fixture.ask(read("/3/0/9").when_active().attempts(5));
    fixture.cancel(id).0.unwrap();
    let registration = fixture.register();
    assert!(
        registration.iter().all(|line| !line.contains("GET")),
        "{registration:?}"
    );
    fixture.restart();
    assert_eq!(fixture.timeout(), Lines::new());
    assert_eq!(fixture.at(S).update(), updated(102));
    assert_eq!(fixture.at(48 * HOUR).saved(id).status, Cancelled);
}

#[test]
fn a_request_whose_turn_has_not_come_can_still_be_cancelled() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active());
    let second = fixture.ask(read("/3/0/13").when_active());
    fixture.update();
    let (cancelled, effects) = fixture.cancel(second);
    assert_eq!(cancelled, Ok(()));
    assert_eq!(effects, moved("#2", Scheduled, Cancelled, "0/1"));
    let after = fixture.answer(protocol::coap::code::Code::CONTENT, "87");
    assert!(after.iter().all(|line| !line.contains("GET")), "{after:?}");
}

#[test]
fn a_request_that_was_sent_cannot_be_cancelled() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").when_active().attempts(2));
    fixture.update();
    assert_eq!(fixture.cancel(id), (Err(NotScheduled), Lines::new()));
    fixture.answer(protocol::coap::code::Code::SERVICE_UNAVAILABLE, "");
    assert_eq!(
        fixture.cancel(id),
        (Err(NotScheduled), Lines::new()),
        "nor between two attempts"
    );
    fixture.restart();
    assert_eq!(
        fixture.cancel(id),
        (Err(NotScheduled), Lines::new()),
        "nor after a restart"
    );
}

#[test]
fn a_request_to_be_sent_now_can_be_cancelled_until_its_first_attempt_begins() {
    let mut fixture = DeviceFixture::registered();
    let first = fixture.ask(read("/3/0/9"));
    let second = fixture.ask(read("/3/0/13"));
    let third = fixture.ask(read("/3/0/14"));
    assert_eq!(fixture.cancel(first), (Err(NotScheduled), Lines::new()));
    let (cancelled, effects) = fixture.cancel(second);
    assert_eq!(cancelled, Ok(()));
    assert_eq!(effects, moved("#2", Scheduled, Cancelled, "0/1"));
    let after = fixture.answer(protocol::coap::code::Code::CONTENT, "87");
    let next = "send 10.0.0.1:5683: CON GET /3/0/14 accept 0 m2".to_owned();
    assert_eq!(
        after.last(),
        Some(&next),
        "the cancelled one is passed over"
    );
    assert_eq!(fixture.cancel(third), (Err(NotScheduled), Lines::new()));
}

#[test]
fn a_request_to_be_sent_now_to_a_sleeping_device_can_be_cancelled_after_a_restart() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let id = fixture.at(93 * S).ask(read("/3/0/9"));
    fixture.restart();
    let (cancelled, effects) = fixture.cancel(id);
    assert_eq!(cancelled, Ok(()));
    assert_eq!(effects, moved("#1", Scheduled, Cancelled, "0/1"));
    assert_eq!(fixture.at(94 * S).update(), updated(102));
}

#[test]
fn a_request_that_is_final_or_unknown_cannot_be_cancelled() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").when_active());
    fixture.cancel(id).0.unwrap();
    assert_eq!(fixture.cancel(id), (Err(NotPending), Lines::new()));
    let unknown = ActionId::from_bytes([1; 16]);
    assert_eq!(fixture.cancel(unknown), (Err(NotPending), Lines::new()));
}

#[test]
fn all_requests_of_a_device_are_cancelled_but_those_in_progress() {
    let mut fixture = DeviceFixture::registered();
    let (_, first) = fixture.submit(read("/3/0/9"));
    let second = fixture.ask(read("/3/0/13").when_active());
    let third = fixture.ask(read("/3/0/14").when_active());
    let waiting = fixture.ask(read("/3/0/15"));
    assert!(first.starts_with(&created("#1", InProgress, "0/1")));
    let (cancelled, effects) = fixture.cancel_all();
    assert_eq!(cancelled, [second, third, waiting]);
    let expected = all([
        moved("#2", Scheduled, Cancelled, "0/1"),
        moved("#3", Scheduled, Cancelled, "0/1"),
        moved("#4", Scheduled, Cancelled, "0/1"),
    ]);
    assert_eq!(effects, expected);
    assert_eq!(fixture.cancel_all(), (Vec::new(), Lines::new()));
}

#[test]
fn removing_a_device_cancels_what_was_not_sent_and_fails_the_rest() {
    let mut fixture = DeviceFixture::registered();
    let answered = fixture.ask(read("/3/0/9").when_active().attempts(2));
    fixture.update();
    fixture.answer(Code::SERVICE_UNAVAILABLE, "");
    let in_flight = fixture.ask(read("/3/0/13"));
    fixture.ask(read("/3/0/14").when_active());
    fixture.ask(read("/3/0/15"));
    let why = "the device was removed";
    let failed = |name: &str, progress: &str| {
        let entry = format!("Action request {name} failed: {why}.");
        all([
            ended(name, Failed, &format!("{progress} {why:?}")),
            logged(&format!(
                "DeviceController[ActionRequestFailed] Error: {entry}"
            )),
        ])
    };
    let expected = all([
        vec!["expect device".to_owned()],
        moved("#3", Scheduled, Cancelled, "0/1"),
        moved("#4", Scheduled, Cancelled, "0/1"),
        failed("#1", "1/2"),
        failed("#2", "1/1"),
        vec!["remove device".to_owned(), "count devices -1".to_owned()],
        vec!["rebind 10.0.0.1:5683 -> nowhere".to_owned()],
    ]);
    assert_eq!(fixture.retire(), expected);
    let [answered, in_flight] = [answered, in_flight].map(|id| fixture.saved(id).timeline.clone());
    let last = |timeline: &Timeline| timeline.as_slice().last().map(|entry| entry.what);
    assert_eq!(last(&in_flight), Some(TimelineEvent::GaveUp));
    let unavailable = TimelineEvent::Answered(Code::SERVICE_UNAVAILABLE);
    assert_eq!(last(&answered), Some(unavailable));
    assert!(fixture.device().is_idle());
}

#[test]
fn cancelling_makes_room_for_another_request() {
    let mut fixture = DeviceFixture::new();
    let ids: Vec<ActionId> = (0..10)
        .map(|_| fixture.ask(read("/3/0/9").when_active()))
        .collect();
    assert!(fixture.submit(read("/3/0/9").when_active()).0.is_err());
    fixture.cancel(ids[3]).0.unwrap();
    assert!(fixture.submit(read("/3/0/9").when_active()).0.is_ok());
}
