//! Taking a request back: what was not sent is never sent, and what was sent cannot be unsent.

use super::vocabulary::{Bench, HOUR, Lines, S, all, created, moved, read, updated};
use crate::action::Status::{Cancelled, InProgress, Scheduled};
use crate::device::queue::CancelRefusal::{NotPending, NotScheduled};
use crate::ids::ActionId;

#[test]
fn a_cancelled_request_is_never_sent() {
    let mut bench = Bench::new();
    let id = bench.ask(read("/3/0/9").when_active().attempts(5));
    bench.cancel(id).0.unwrap();
    let registration = bench.register();
    assert!(
        registration.iter().all(|line| !line.contains("GET")),
        "{registration:?}"
    );
    bench.restart();
    assert_eq!(bench.timeout(), Lines::new());
    assert_eq!(bench.at(S).update(), updated(102));
    assert_eq!(bench.at(48 * HOUR).kept(id).status, Cancelled);
}

#[test]
fn a_request_whose_turn_has_not_come_can_still_be_cancelled() {
    let mut bench = Bench::registered();
    bench.ask(read("/3/0/9").when_active());
    let second = bench.ask(read("/3/0/13").when_active());
    bench.update();
    let (cancelled, effects) = bench.cancel(second);
    assert_eq!(cancelled, Ok(()));
    assert_eq!(effects, moved("#2", Scheduled, Cancelled, "0/1"));
    let after = bench.answer(protocol::coap::code::Code::CONTENT, "87");
    assert!(after.iter().all(|line| !line.contains("GET")), "{after:?}");
}

#[test]
fn a_request_that_was_sent_cannot_be_cancelled() {
    let mut bench = Bench::registered();
    let id = bench.ask(read("/3/0/9").when_active().attempts(2));
    bench.update();
    assert_eq!(bench.cancel(id), (Err(NotScheduled), Lines::new()));
    bench.answer(protocol::coap::code::Code::SERVICE_UNAVAILABLE, "");
    assert_eq!(
        bench.cancel(id),
        (Err(NotScheduled), Lines::new()),
        "nor between two attempts"
    );
    bench.restart();
    assert_eq!(
        bench.cancel(id),
        (Err(NotScheduled), Lines::new()),
        "nor after a restart"
    );
}

#[test]
fn a_request_to_be_sent_now_cannot_be_cancelled_while_it_waits() {
    let mut bench = Bench::registered();
    bench.ask(read("/3/0/9"));
    let second = bench.ask(read("/3/0/13"));
    assert_eq!(bench.cancel(second), (Err(NotScheduled), Lines::new()));
    assert_eq!(bench.kept(second).status, InProgress);
}

#[test]
fn a_request_that_is_final_or_unknown_cannot_be_cancelled() {
    let mut bench = Bench::registered();
    let id = bench.ask(read("/3/0/9").when_active());
    bench.cancel(id).0.unwrap();
    assert_eq!(bench.cancel(id), (Err(NotPending), Lines::new()));
    let unknown = ActionId::from_bytes([1; 16]);
    assert_eq!(bench.cancel(unknown), (Err(NotPending), Lines::new()));
}

#[test]
fn all_requests_of_a_device_are_cancelled_but_those_in_progress() {
    let mut bench = Bench::registered();
    let (_, first) = bench.submit(read("/3/0/9"));
    let second = bench.ask(read("/3/0/13").when_active());
    let third = bench.ask(read("/3/0/14").when_active());
    assert!(first.starts_with(&created("#1", InProgress, "0/1")));
    let (cancelled, effects) = bench.cancel_all();
    assert_eq!(cancelled, [second, third]);
    let expected = all([
        moved("#2", Scheduled, Cancelled, "0/1"),
        moved("#3", Scheduled, Cancelled, "0/1"),
    ]);
    assert_eq!(effects, expected);
    assert_eq!(bench.cancel_all(), (Vec::new(), Lines::new()));
}

#[test]
fn cancelling_makes_room_for_another_request() {
    let mut bench = Bench::new();
    let ids: Vec<ActionId> = (0..10)
        .map(|_| bench.ask(read("/3/0/9").when_active()))
        .collect();
    assert!(bench.submit(read("/3/0/9").when_active()).0.is_err());
    bench.cancel(ids[3]).0.unwrap();
    assert!(bench.submit(read("/3/0/9").when_active()).0.is_ok());
}
