//! What is sent, how often, and in which order.

use engine::action::Status;
use harness::device::resource::AnswerMode as Manner;

use super::{MINUTE, S, TEMPERATURE, TRIGGER, ZONE};
use super::{attempts, execute, now, read, registered, write};

#[test]
fn attempts_never_exceed_what_was_permitted() {
    let mut world = registered();
    world.answers(TRIGGER, Manner::Silent);
    let id = world.create(attempts(3, execute(TRIGGER)));
    for round in 1..=6 {
        world.uplink();
        let sent = world.laws.attempts_sent(id);
        assert_eq!(sent, round.min(3), "in round {round}");
        world.crash_after(0);
        world.pass(MINUTE);
    }
    assert_eq!(world.status(id), Status::Failed);
    assert!(
        world.shown(id).contains("the service stopped"),
        "{}",
        world.shown(id)
    );
}

#[test]
fn an_attempt_that_was_counted_and_never_sent_is_spent() {
    let mut world = registered();
    let id = world.create(attempts(2, execute(TRIGGER)));
    world.stall_the_disk_for(20 * S);
    world.uplink();
    // The disk applied the batch, but no receipt was sent; the device repeats its update.
    world.crash_after(1);
    assert_eq!(
        (world.laws.attempts_sent(id), world.status(id)),
        (0, Status::InProgress)
    );
    world.pass(MINUTE);
    assert_eq!(
        (world.laws.attempts_sent(id), world.status(id)),
        (1, Status::Succeeded)
    );
    let made = world
        .disk
        .durable
        .action(0, id)
        .map(|action| action.attempts_made);
    assert_eq!(made, Some(2));
}

#[test]
fn one_exchange_is_in_flight_oldest_first() {
    let mut world = registered();
    world.answers(ZONE, Manner::SeparateConfirmable { after_ms: 5_000 });
    let slow = world.create(write(ZONE, "+01:00"));
    world.pass(S);
    let next = world.create(read(TEMPERATURE));
    world.pass(S);
    let last = world.create(read(ZONE));
    world.uplink();
    let sent = |world: &super::World| [slow, next, last].map(|id| world.laws.attempts_sent(id));
    assert_eq!(sent(&world), [1, 0, 0]);
    world.pass(3 * S);
    assert_eq!(sent(&world), [1, 0, 0]);
    world.pass(3 * S);
    assert_eq!(world.status(slow), Status::Succeeded);
    assert_eq!(sent(&world), [1, 1, 1]);
    assert_eq!(world.status(next), Status::Succeeded);
    assert_eq!(world.status(last), Status::InProgress);
    world.pass(6 * S);
    assert_eq!(world.shown(last), "+01:00");
}

#[test]
fn an_attempt_is_performed_at_most_once() {
    let mut world = registered();
    world.faults.repeated_percent = 100;
    world.faults.lost_percent = 30;
    let ids: Vec<_> = (0..5)
        .map(|_| world.create(attempts(5, now(execute(TRIGGER)))))
        .collect();
    for _ in 0..10 {
        world.pass(3 * MINUTE);
        world.uplink();
    }
    let sent: usize = ids.iter().map(|id| world.laws.attempts_sent(*id)).sum();
    assert!(
        world.deeds() <= sent as u64,
        "{} deeds in {sent} attempts",
        world.deeds()
    );
    assert!(ids.iter().all(|id| !world.status(*id).is_pending()));
}
