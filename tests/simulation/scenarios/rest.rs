//! Once the faults end, everything comes to rest.

use engine::action::Status;
use harness::device::resource::AnswerMode as Manner;

use super::{HOUR, MINUTE, TEMPERATURE, World, ZONE, attempts, read, registered, write};
use crate::laws::rest;

#[test]
fn after_the_faults_everything_becomes_final() {
    let mut world = registered();
    world.answers(TEMPERATURE, Manner::Silent);
    let unanswered = world.create(attempts(2, read(TEMPERATURE)));
    let waiting = world.create(write(ZONE, "+01:00"));
    world.uplink();
    world.switch_off(0);
    world.pass(HOUR);
    world.fill_the_disk_for(MINUTE);
    assert!(rest::after_the_faults_everything_becomes_final(&world).is_err());
    world.heal();
    assert_eq!(world.status(unanswered), Status::Succeeded);
    assert_eq!(world.status(waiting), Status::Succeeded);
}

#[test]
fn time_passes() {
    let mut world = registered();
    world.create(read(TEMPERATURE));
    world.switch_off(0);
    let before = world.trace.events();
    world.pass(49 * HOUR);
    assert!(world.disk.durable.record(0).registration.is_none());
    assert_eq!(world.disk.durable.pending(0).count(), 0);
    let events = world.trace.events() - before;
    assert!(events < 20, "two deadlines took {events} events");
}

#[test]
fn a_location_leads_to_its_device_wherever_that_is() {
    let mut world = World::still(2);
    for who in 0..2 {
        world.switch_on(who);
    }
    world.pass(MINUTE);
    for _ in 0..20 {
        world.roam(0);
        world.roam(1);
        world.crash_after(0);
        world.pass(MINUTE);
        let id = world.create(read(ZONE));
        world.uplink();
        assert_eq!(
            world.status(id),
            Status::Succeeded,
            "at {:?}",
            world.fleet.member(0).address
        );
    }
}
