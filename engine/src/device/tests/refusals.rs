//! What a device cannot be asked.

use protocol::coap::code::Code;

use super::vocabulary::{Bench, HOUR, Lines, S, read};
use crate::device::queue::SubmitRefusal::{NotRegistered, QueueFull};

#[test]
fn a_device_without_registration_cannot_be_asked_now() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.submit(read("/3/0/9")),
        (Err(NotRegistered), Lines::new())
    );
    assert!(bench.submit(read("/3/0/9").when_active()).0.is_ok());

    bench.register();
    bench.at(S).deregister();
    assert_eq!(
        bench.submit(read("/3/0/9")),
        (Err(NotRegistered), Lines::new())
    );
}

#[test]
fn a_device_whose_registration_just_lapsed_cannot_be_asked_now() {
    let mut bench = Bench::registered();
    bench.at(24 * HOUR);
    let refused = bench.submit(read("/3/0/9"));
    assert_eq!(
        refused,
        (Err(NotRegistered), Lines::new()),
        "the wake-up comes late"
    );
}

#[test]
fn ten_requests_may_be_scheduled_for_a_device() {
    let mut bench = Bench::registered();
    for _ in 0..10 {
        assert!(bench.submit(read("/3/0/9").when_active()).0.is_ok());
    }
    let refused = bench.submit(read("/3/0/9").when_active());
    assert_eq!(refused, (Err(QueueFull { max: 10 }), Lines::new()));
    assert!(
        bench.submit(read("/3/0/9")).0.is_ok(),
        "each mode has its own bound"
    );
}

#[test]
fn a_request_that_is_in_progress_makes_room_for_a_scheduled_one() {
    let mut bench = Bench::registered();
    for _ in 0..10 {
        bench.ask(read("/3/0/9").when_active());
    }
    bench.update();
    assert!(bench.submit(read("/3/0/9").when_active()).0.is_ok());
    assert!(bench.submit(read("/3/0/9").when_active()).0.is_err());
}

#[test]
fn ten_requests_to_be_sent_now_may_wait_for_a_device() {
    let mut bench = Bench::registered();
    for _ in 0..11 {
        assert!(
            bench.submit(read("/3/0/9")).0.is_ok(),
            "the one in flight does not wait"
        );
    }
    let refused = bench.submit(read("/3/0/9"));
    assert_eq!(refused, (Err(QueueFull { max: 10 }), Lines::new()));
    bench.answer(Code::CONTENT, "87");
    assert!(bench.submit(read("/3/0/9")).0.is_ok());
    assert!(bench.submit(read("/3/0/9").when_active()).0.is_ok());
}

#[test]
fn ten_requests_to_be_sent_now_may_wait_for_a_device_that_sleeps() {
    let mut bench = Bench::registered_for_queue_mode();
    bench.at(93 * S);
    for _ in 0..10 {
        assert!(bench.submit(read("/3/0/9")).0.is_ok());
    }
    let refused = bench.submit(read("/3/0/9"));
    assert_eq!(refused, (Err(QueueFull { max: 10 }), Lines::new()));
}

#[test]
fn a_retired_device_is_removed_and_not_reached_any_more() {
    let mut bench = Bench::registered();
    bench.ask(read("/3/0/9").when_active());
    let effects = bench.retire();
    let expected = [
        "expect device",
        "remove device",
        "count devices -1",
        "rebind 10.0.0.1:5683 -> nowhere",
    ];
    assert_eq!(effects, expected);
    assert_eq!(bench.deadline(), None);
    assert!(bench.device().is_idle());
}
