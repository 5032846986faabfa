//! Nothing is sent or replied before what it depends on is durable.

use super::{S, TRIGGER, World, execute, read, registered};
use crate::callers::Answer;
use crate::scenarios::TEMPERATURE;
use crate::service::InjectedPanic;
use engine::action::Status;
use engine::arbiter::input::DeviceCommand;

#[test]
fn nothing_is_sent_before_it_is_saved() {
    let mut world = World::still(1);
    world.stall_the_disk_for(10 * S);
    world.switch_on(0);
    world.pass(9 * S);
    assert!(!world.is_registered(), "the registration is not saved");
    world.pass(2 * S);
    assert!(world.is_registered());

    world.stall_the_disk_for(10 * S);
    let call = world.ask(0, DeviceCommand::Submit(read(TEMPERATURE)));
    world.pass(9 * S);
    assert_eq!(world.callers.answer(call), None, "the request is not saved");
    world.pass(2 * S);
    let Some(Answer::Accepted(id)) = world.callers.answer(call) else {
        panic!("the request is accepted");
    };
    assert_eq!(world.status(id), Status::Scheduled);
}

#[test]
fn what_was_not_saved_did_not_happen() {
    let mut world = registered();
    world.stall_the_disk_for(10 * S);
    let call = world.ask(0, DeviceCommand::Submit(read(TEMPERATURE)));
    world.pass(S);
    world.crash_after(0);
    world.pass(60 * S);
    assert_eq!(world.callers.answer(call), None);
    assert_eq!(world.disk.durable.actions(0).count(), 0);

    world.fill_the_disk_for(10 * S);
    let call = world.ask(0, DeviceCommand::Submit(read(TEMPERATURE)));
    world.pass(S);
    assert_eq!(world.callers.answer(call), Some(Answer::Unserved));
    world.pass(60 * S);
    assert_eq!(world.disk.durable.actions(0).count(), 0);
    world.create(read(TEMPERATURE));
}

#[test]
fn an_attempt_is_saved_before_it_is_sent() {
    let mut world = registered();
    let id = world.create(execute(TRIGGER));
    world.stall_the_disk_for(10 * S);
    world.uplink();
    world.pass(8 * S);
    assert_eq!((world.laws.attempts_sent(id), world.deeds()), (0, 0));
    world.pass(2 * S);
    assert_eq!((world.laws.attempts_sent(id), world.deeds()), (1, 1));
    assert_eq!(world.status(id), Status::Succeeded);
}

#[test]
fn decisions_of_a_panicked_actor_did_not_happen() {
    for (injected_panic, requests) in [(InjectedPanic::Deciding, 0), (InjectedPanic::Speaking, 1)] {
        let mut world = registered();
        world.inject_panic(0, injected_panic, 0);
        let call = world.ask(0, DeviceCommand::Submit(read(TEMPERATURE)));
        world.pass(S);
        assert_eq!(
            world.callers.answer(call),
            Some(Answer::Unserved),
            "{injected_panic:?}"
        );
        assert_eq!(
            world.disk.durable.actions(0).count(),
            requests,
            "{injected_panic:?}"
        );
        world.uplink();
        world.pass(S);
        assert_eq!(
            world.disk.durable.pending(0).count(),
            0,
            "{injected_panic:?}"
        );
    }
}
