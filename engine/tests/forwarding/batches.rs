//! Which events does a destination receive together, and when?

use engine::delivery::destination::DestinationState;
use engine::delivery::forwarding::DeliveryOutcome;

use crate::fixture::{DELAYS_MS, ForwardingFixture, PARALLEL_MAX, refused};

#[test]
fn a_full_batch_leaves_at_once_and_another_one_when_its_wait_is_over() {
    let mut fixture = ForwardingFixture::of_batches(3, 500);
    fixture.emit(1, 2);
    assert!(fixture.in_flight().is_empty());
    fixture.emit(2, 1);
    assert_eq!(fixture.deliveries(), ["1/1 1/2 2/1"]);
    fixture.emit(3, 1);
    fixture.pass_time(499);
    assert_eq!(fixture.deliveries(), ["1/1 1/2 2/1"]);
    fixture.pass_time(1);
    assert_eq!(fixture.deliveries(), ["1/1 1/2 2/1", "3/1"]);
}

#[test]
fn without_a_wait_a_batch_has_what_is_there() {
    let mut fixture = ForwardingFixture::of_batches(3, 0);
    fixture.emit(1, 1);
    assert_eq!(fixture.deliveries(), ["1/1"]);
    fixture.emit(1, 4);
    assert_eq!(
        fixture.deliveries(),
        ["1/1"],
        "events of a device are in one delivery"
    );
    fixture.end("1/1", DeliveryOutcome::Delivered);
    assert_eq!(fixture.deliveries(), ["1/2 1/3 1/4"]);
    fixture.end_all(&DeliveryOutcome::Delivered);
    assert_eq!(fixture.accepted(), ["1/1", "1/2", "1/3", "1/4", "1/5"]);
}

#[test]
fn a_failed_batch_is_repeated_as_it_was_and_what_follows_waits() {
    let mut fixture = ForwardingFixture::of_batches(3, 0);
    fixture.emit(1, 1);
    fixture.end_all(&DeliveryOutcome::Delivered);
    fixture.emit(2, 1);
    fixture.emit(1, 2);
    fixture.emit(3, 1);
    fixture.end("2/1", DeliveryOutcome::Delivered);
    fixture.end("1/2", DeliveryOutcome::Delivered);
    assert_eq!(fixture.deliveries(), ["1/3", "3/1"]);
    fixture.emit(1, 1);
    fixture.emit(2, 2);
    fixture.end("1/3", refused());
    fixture.end("2/2", refused());
    assert_eq!(fixture.deliveries(), ["3/1"]);
    fixture.pass_time(DELAYS_MS[0] - 1);
    assert_eq!(fixture.deliveries(), ["3/1"]);
    fixture.pass_time(1);
    assert_eq!(fixture.deliveries(), ["1/3", "3/1", "2/2"]);
}

#[test]
fn a_batch_is_retried_with_the_tries_of_its_events() {
    let mut fixture = ForwardingFixture::of_batches(2, 100);
    fixture.emit(1, 1);
    fixture.emit(2, 1);
    for delay_ms in DELAYS_MS {
        assert_eq!(fixture.deliveries(), ["1/1 2/1"]);
        fixture.end("1/1", refused());
        fixture.emit(1, 1);
        assert!(fixture.in_flight().is_empty());
        fixture.pass_time(delay_ms);
    }
    fixture.end("2/1", refused());
    assert_eq!(fixture.state(), DestinationState::Failed);
    assert_eq!(fixture.dead()[..2], ["1/1 after 5", "2/1 after 5"]);
}

#[test]
fn an_older_replayed_event_leaves_before_a_failed_batch_of_its_device() {
    let mut fixture = ForwardingFixture::of_batches(3, 100);
    fixture.fail();
    fixture.restart();
    fixture.emit(1, 1);
    fixture.emit(2, 2);
    assert_eq!(fixture.deliveries(), ["1/2 2/1 2/2"]);
    fixture.end("2/1", refused());
    fixture.replay();
    fixture.pass_time(DELAYS_MS[0]);
    assert_eq!(fixture.deliveries(), ["1/1", "2/1 2/2"]);
    fixture.heal();
    fixture.assert_complete();
}

#[test]
fn a_bounded_number_of_batches_is_in_flight() {
    let mut fixture = ForwardingFixture::of_batches(2, 0);
    for device in 0..100 {
        fixture.emit(device, 1);
    }
    assert_eq!(fixture.deliveries().len(), PARALLEL_MAX);
    fixture.heal();
    fixture.assert_complete();
    assert!(fixture.tries < 60, "{}", fixture.tries);
}
