//! What was answered to a caller holds, whatever happens afterwards.

use engine::action::Status;
use engine::arbiter::input::DeviceCommand;
use harness::device::resource::AnswerMode as Manner;

use super::{HOUR, MINUTE, S, TEMPERATURE, TRIGGER, ZONE};
use super::{attempts, execute, now, read, registered, write};

#[test]
fn a_202_survives_a_crash() {
    let mut world = registered();
    let id = world.create(write(ZONE, "+01:00"));
    for _ in 0..3 {
        world.crash_after(0);
        world.pass(10 * S);
        assert_eq!(world.status(id), Status::Scheduled);
    }
    world.uplink();
    assert_eq!(world.status(id), Status::Succeeded);
    assert_eq!(world.laws.attempts_sent(id), 1);
    assert_eq!(world.deeds(), 1);
}

#[test]
fn cancelled_action_is_never_sent() {
    let mut world = registered();
    let (first, second) = (
        world.create(execute(TRIGGER)),
        world.create(execute(TRIGGER)),
    );
    world.ask(0, DeviceCommand::Cancel(first));
    world.pass(S);
    world.crash_after(0);
    world.pass(10 * S);
    for _ in 0..3 {
        world.uplink();
        world.pass(MINUTE);
    }
    assert_eq!(world.status(first), Status::Cancelled);
    assert_eq!(world.laws.attempts_sent(first), 0);
    assert_eq!(world.status(second), Status::Succeeded);
    assert_eq!(world.deeds(), 1);
}

#[test]
fn requests_outlive_their_device() {
    let mut world = registered();
    let done = world.create(now(read(ZONE)));
    world.answers(TEMPERATURE, Manner::AcknowledgeOnly);
    let in_flight = world.create(now(read(TEMPERATURE)));
    let waiting = world.create(read(ZONE));
    assert_eq!(world.status(in_flight), Status::InProgress);
    world.stall_the_disk_for(5 * S);
    world.ask(0, DeviceCommand::Retire);
    world.crash_after(1);
    world.pass(MINUTE);
    assert!(!world.disk.durable.exists(0));
    world.add(0);
    world.switch_on(0);
    world.pass(10 * MINUTE);
    assert!(world.is_registered());
    assert_eq!(world.status(done), Status::Succeeded);
    assert_eq!(world.status(in_flight), Status::Failed);
    assert_eq!(world.shown(in_flight), "the device was removed");
    assert_eq!(world.status(waiting), Status::Cancelled);
    assert_eq!(world.laws.attempts_sent(waiting), 0);
}

#[test]
fn a_cancellation_during_an_uplink_is_applied_or_refused() {
    for cancel_first in [true, false] {
        let mut world = registered();
        let id = world.create(execute(TRIGGER));
        world.stall_the_disk_for(5 * S);
        if cancel_first {
            world.ask(0, DeviceCommand::CancelAll);
            world.uplink();
        } else {
            world.uplink();
            world.ask(0, DeviceCommand::CancelAll);
        }
        world.pass(MINUTE);
        let (status, deeds) = (world.status(id), world.deeds());
        if cancel_first {
            assert_eq!((status, deeds), (Status::Cancelled, 0));
        } else {
            assert_eq!((status, deeds), (Status::Succeeded, 1));
        }
    }
}

#[test]
fn a_final_status_never_changes() {
    let mut world = registered();
    // The response arrives when the exchange is over.
    world.answers(
        TEMPERATURE,
        Manner::SeparateConfirmable { after_ms: 200_000 },
    );
    let late = world.create(now(read(TEMPERATURE)));
    world.pass(150 * S);
    assert_eq!(world.status(late), Status::Failed);
    let done = world.create(now(read(ZONE)));
    world.uplink();
    assert_eq!(world.status(done), Status::Succeeded);
    for _ in 0..3 {
        world.pass(MINUTE);
        world.ask(0, DeviceCommand::CancelAll);
        world.ask(0, DeviceCommand::Cancel(late));
        world.uplink();
        world.crash_after(0);
    }
    world.pass(49 * HOUR);
    assert_eq!(world.status(late), Status::Failed);
    assert_eq!(world.status(done), Status::Succeeded);
}

#[test]
fn a_status_follows_the_table() {
    let mut world = registered();
    world.answers(
        TEMPERATURE,
        Manner::Code(protocol::coap::code::Code::SERVICE_UNAVAILABLE),
    );
    let id = world.create(attempts(2, read(TEMPERATURE)));
    assert_eq!(world.status(id), Status::Scheduled);
    world.uplink();
    assert_eq!(world.status(id), Status::InProgress);
    world.pass(MINUTE);
    world.uplink();
    assert_eq!(world.status(id), Status::Failed);
    assert_eq!(world.shown(id), "the device answered 5.03");
}

#[test]
fn an_owner_never_conflicts_with_itself() {
    let mut world = registered();
    let unfit = world.create(now(write(TEMPERATURE, "warm")));
    let taken_back = world.create(read(ZONE));
    // All commands arrive while nothing is durable yet.
    world.stall_the_disk_for(5 * S);
    world.ask(0, DeviceCommand::Cancel(taken_back));
    world.ask(0, DeviceCommand::Cancel(taken_back));
    world.ask(0, DeviceCommand::CancelAll);
    let submitted = world.ask(0, DeviceCommand::Submit(write(TEMPERATURE, "warm")));
    world.uplink();
    world.pass(MINUTE);
    assert!(world.callers.answer(submitted).is_some());
    assert_eq!(world.status(unfit), Status::Failed);
    assert_eq!(world.status(taken_back), Status::Cancelled);
}

#[test]
fn a_success_is_what_the_device_did() {
    let mut world = registered();
    let read_before = world.create(now(read(ZONE)));
    let written = world.create(now(write(ZONE, "+05:30")));
    let read_after = world.create(now(read(ZONE)));
    world.pass(MINUTE);
    assert_eq!(world.shown(read_before), "+00:00");
    assert_eq!(world.status(written), Status::Succeeded);
    assert_eq!(world.shown(read_after), "+05:30");

    world.answers(ZONE, Manner::AcknowledgeOnly);
    let unanswered = world.create(now(write(ZONE, "-03:00")));
    world.pass(5 * MINUTE);
    assert_eq!(
        world.status(unanswered),
        Status::Failed,
        "nobody knows that it was done"
    );
}
