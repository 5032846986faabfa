//! Counters, log entries and limits.

use engine::action::{Mode, Protocol, Status};
use engine::arbiter::input::DeviceCommand;
use engine::change::Counter;
use engine::device::refusal::SubmitRefusal;
use harness::device::SimulatedDevice;
use harness::device::resource::AnswerMode as Manner;

use super::{HOUR, MINUTE, S, TEMPERATURE, World, ZONE};
use super::{now, read, registered, write};
use crate::callers::Answer;

#[test]
fn first_contact_is_logged_exactly_once() {
    let mut world = World::still(1);
    world.stall_the_disk_for(10 * S);
    world.switch_on(0);
    world.pass(S);
    world.crash_after(0);
    assert_eq!(
        world.disk.durable.first_contacts(0),
        0,
        "not saved, not logged"
    );
    world.pass(S);
    world.stall_the_disk_for(10 * S);
    world.pass(5 * S);
    world.crash_after(1);
    assert_eq!(
        world.disk.durable.first_contacts(0),
        1,
        "saved without a receipt"
    );
    for _ in 0..3 {
        world.pass(MINUTE);
        world.does(0, "is rebooted", SimulatedDevice::reboot);
        world.pass(MINUTE);
        world.does(0, "deregisters", SimulatedDevice::deregister);
        world.pass(MINUTE);
        world.switch_on(0);
        world.crash_after(0);
    }
    world.pass(MINUTE);
    assert!(world.is_registered());
    assert_eq!(world.disk.durable.first_contacts(0), 1);
}

#[test]
fn counters_equal_a_recount() {
    let mut world = registered();
    world.create(now(read(TEMPERATURE)));
    world.create(now(write(TEMPERATURE, "1")));
    world.create(now(write(ZONE, "+01:00")));
    world.create(read(TEMPERATURE));
    let id = world.create(read(ZONE));
    world.ask(0, DeviceCommand::Cancel(id));
    world.pass(S);
    world.stall_the_disk_for(10 * S);
    world.uplink();
    world.crash_after(0);
    // The device repeats its unanswered message.
    world.pass(MINUTE);
    world.create(read(ZONE));
    let counted = Status::ALL.map(|status| {
        let customer = world.disk.durable.profile(0).customer.clone();
        let protocol = Protocol::Lwm2m;
        world.disk.durable.count(&Counter::CustomerActions {
            customer,
            protocol,
            status,
        })
    });
    // Scheduled, in progress, succeeded, failed, cancelled.
    assert_eq!(counted, [1, 0, 3, 1, 1]);
}

#[test]
fn a_failure_is_logged_once() {
    let mut world = registered();
    world.answers(TEMPERATURE, Manner::Reset);
    let id = world.create(now(read(TEMPERATURE)));
    world.pass(S);
    assert_eq!(world.status(id), Status::Failed);
    let unfit = world.create(now(write(TEMPERATURE, "warm")));
    assert_eq!(world.status(unfit), Status::Failed);
    world.crash_after(0);
    world.pass(MINUTE);
    assert_eq!(world.disk.durable.failures_logged(0), 2);
}

#[test]
fn queues_keep_their_bounds() {
    let mut world = registered();
    for _ in 0..10 {
        world.create(read(TEMPERATURE));
    }
    for _ in 0..2 {
        let call = world.ask(0, DeviceCommand::Submit(read(TEMPERATURE)));
        world.pass(S);
        let full = Answer::Refused(SubmitRefusal::QueueFull {
            mode: Mode::SendWhenActive,
            waiting: 10,
            max: 10,
        });
        assert_eq!(world.callers.answer(call), Some(full));
        world.crash_after(0);
        world.pass(MINUTE);
    }
}

#[test]
fn removed_requests_are_not_counted() {
    let mut world = registered();
    let done = world.create(now(read(ZONE)));
    let waiting = world.create(read(ZONE));
    world.pass(47 * HOUR);
    world.sweep();
    assert!(world.disk.durable.action(0, done).is_some());
    world.pass(6 * 24 * HOUR);
    world.sweep();
    assert!(world.disk.durable.action(0, done).is_none());
    assert!(world.disk.durable.action(0, waiting).is_none());
    world.create(read(ZONE));
    world.ask(0, DeviceCommand::Retire);
    world.pass(8 * 24 * HOUR);
    world.sweep();
    for status in Status::ALL {
        let customer = world.disk.durable.profile(0).customer.clone();
        let protocol = Protocol::Lwm2m;
        let count = world.disk.durable.count(&Counter::CustomerActions {
            customer,
            protocol,
            status,
        });
        assert_eq!(count, 0, "{status:?}");
    }
}
