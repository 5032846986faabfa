//! Requests to a device that are refused.

use protocol::coap::code::Code;

use super::vocabulary::{DeviceFixture, HOUR, Lines, S, read, sent, write};
use crate::action::Mode::{self, SendNow, SendWhenActive};
use crate::action::Status::Scheduled;
use crate::device::refusal::SubmitRefusal::{self, DataFull, NotRegistered, QueueFull};
use crate::limits::Limits;

#[test]
fn a_request_cannot_be_sent_now_to_a_device_without_registration() {
    let mut fixture = DeviceFixture::new();
    assert_eq!(
        fixture.submit(read("/3/0/9")),
        (Err(NotRegistered), Lines::new())
    );
    assert!(fixture.submit(read("/3/0/9").when_active()).0.is_ok());

    fixture.register();
    fixture.at(S).deregister();
    assert_eq!(
        fixture.submit(read("/3/0/9")),
        (Err(NotRegistered), Lines::new())
    );
}

#[test]
fn a_request_cannot_be_sent_now_to_a_device_whose_registration_just_expired() {
    let mut fixture = DeviceFixture::registered();
    fixture.at(24 * HOUR);
    let refused = fixture.submit(read("/3/0/9"));
    assert_eq!(
        refused,
        (Err(NotRegistered), Lines::new()),
        "the wake-up comes late"
    );
}

#[test]
fn ten_requests_may_be_scheduled_for_a_device() {
    let mut fixture = DeviceFixture::registered();
    for _ in 0..10 {
        assert!(fixture.submit(read("/3/0/9").when_active()).0.is_ok());
    }
    let refused = fixture.submit(read("/3/0/9").when_active());
    assert_eq!(refused, (Err(full(SendWhenActive)), Lines::new()));
    assert!(
        fixture.submit(read("/3/0/9")).0.is_ok(),
        "each mode has its own bound"
    );
}

#[test]
fn a_request_that_is_in_progress_makes_room_for_a_scheduled_one() {
    let mut fixture = DeviceFixture::registered();
    for _ in 0..10 {
        fixture.ask(read("/3/0/9").when_active());
    }
    fixture.update();
    assert!(fixture.submit(read("/3/0/9").when_active()).0.is_ok());
    assert!(fixture.submit(read("/3/0/9").when_active()).0.is_err());
}

#[test]
fn ten_requests_to_be_sent_now_may_wait_for_a_device() {
    let mut fixture = DeviceFixture::registered();
    for _ in 0..11 {
        assert!(
            fixture.submit(read("/3/0/9")).0.is_ok(),
            "the one in flight does not wait"
        );
    }
    let refused = fixture.submit(read("/3/0/9"));
    assert_eq!(refused, (Err(full(SendNow)), Lines::new()));
    fixture.answer(Code::CONTENT, "87");
    assert!(fixture.submit(read("/3/0/9")).0.is_ok());
    assert!(fixture.submit(read("/3/0/9").when_active()).0.is_ok());
}

#[test]
fn ten_requests_to_be_sent_now_may_wait_for_a_device_that_sleeps() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.at(93 * S);
    for _ in 0..10 {
        assert!(fixture.submit(read("/3/0/9")).0.is_ok());
    }
    let refused = fixture.submit(read("/3/0/9"));
    assert_eq!(refused, (Err(full(SendNow)), Lines::new()));
}

#[test]
fn a_refusal_counts_the_requests_that_wait_for_their_next_attempt() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").attempts(2));
    for _ in 0..10 {
        fixture.ask(read("/3/0/9"));
    }
    while fixture.next_deadline() == sent("CON GET /3/0/9 accept 0 m1") {}
    let (mode, waiting, max) = (SendNow, 11, 10);
    let refused = QueueFull { mode, waiting, max };
    assert_eq!(fixture.submit(read("/3/0/9")), (Err(refused), Lines::new()));
}

#[test]
fn the_data_of_waiting_requests_is_bounded() {
    let max = 4_096;
    let mut fixture = DeviceFixture::within(Limits {
        waiting_bytes_max: max,
        ..Limits::default()
    });
    fixture.register();
    let long = "x".repeat(max / 4);
    for _ in 0..4 {
        let id = fixture.ask(write("/3/0/15", &long).when_active());
        assert_eq!(fixture.saved(id).status, Scheduled);
    }
    for new in [write("/3/0/15", "x"), write("/3/0/15", "x").when_active()] {
        let (more, total) = (1, max + 1);
        let refused = DataFull { more, total, max };
        assert_eq!(fixture.submit(new), (Err(refused), Lines::new()));
    }
    assert!(fixture.submit(read("/3/0/9")).0.is_ok(), "it has none");
}

#[test]
fn a_retired_device_is_removed_and_loses_its_binding() {
    let mut fixture = DeviceFixture::registered();
    let effects = fixture.retire();
    let expected = [
        "expect device",
        "remove device",
        "count devices -1",
        "rebind 10.0.0.1:5683 -> nowhere",
    ];
    assert_eq!(effects, expected);
    assert_eq!(fixture.deadline(), None);
    assert!(fixture.device().is_idle());
}

fn full(mode: Mode) -> SubmitRefusal {
    QueueFull {
        mode,
        waiting: 10,
        max: 10,
    }
}
