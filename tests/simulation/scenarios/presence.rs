//! What waits until a device is heard, and what depends on time only.

use engine::action::Status;
use engine::delivery::destination::EventTypes;
use engine::event::{EventType, Lifecycle};
use harness::device::SimulatedDevice;
use harness::device::resource::AnswerMode as Manner;
use protocol::coap::code::Code;

use super::{HOUR, MINUTE, S, TEMPERATURE, TRIGGER, World, ZONE};
use super::{attempts, execute, now, read, registered};
use crate::endpoints::EndpointBehaviour;
use crate::settings::WorldSettings;

#[test]
fn a_sleeping_device_gets_no_request() {
    let mut world = World::with(WorldSettings {
        queue_mode_percent: 100,
        ..WorldSettings::still(1)
    });
    world.switch_on(0);
    world.pass(S);
    let awake = world.create(now(read(ZONE)));
    world.pass(S);
    assert_eq!(world.status(awake), Status::Succeeded);

    world.pass(HOUR);
    let asleep = world.create(now(read(ZONE)));
    world.pass(HOUR);
    assert_eq!(world.laws.attempts_sent(asleep), 0);
    world.uplink();
    assert_eq!(world.status(asleep), Status::Succeeded);
}

#[test]
fn a_retry_waits_for_an_uplink() {
    let mut world = registered();
    world.answers(TRIGGER, Manner::Code(Code::SERVICE_UNAVAILABLE));
    let id = world.create(attempts(2, now(execute(TRIGGER))));
    world.pass(HOUR);
    world.crash_after(0);
    world.pass(HOUR);
    assert_eq!(world.laws.attempts_sent(id), 1);
    world.answers(TRIGGER, Manner::Piggybacked);
    world.uplink();
    assert_eq!(world.laws.attempts_sent(id), 2);
    assert_eq!(world.status(id), Status::Succeeded);
}

#[test]
fn a_repeated_register_gets_the_same_location() {
    let mut world = World::still(1);
    world.faults.repeated_percent = 100;
    world.switch_on(0);
    world.pass(MINUTE);
    let believed = world
        .fleet
        .member(0)
        .machine
        .location()
        .map(ToString::to_string);
    world.faults.repeated_percent = 0;
    let id = world.create(read(ZONE));
    world.uplink();
    assert_eq!(world.status(id), Status::Succeeded);
    let location = world.fleet.member(0).machine.location();
    assert_eq!(location.map(ToString::to_string), believed);
}

#[test]
fn each_lifecycle_event_is_published_once() {
    use Lifecycle::{
        Asleep, Awake, Back, Deregistered, Expired, FirstContact, Offline, Registered,
    };
    let mut world = World::with(WorldSettings {
        queue_mode_percent: 100,
        ..WorldSettings::still(1)
    });
    let every: EventTypes = [EventType::Lifecycle].into_iter().collect();
    let every = every.with_kinds(Some(Lifecycle::ALL.into_iter().collect()));
    world.create_destination(EndpointBehaviour::Healthy, every);
    world.pass(S);
    world.switch_on(0);
    world.pass(S);
    world.restart();
    world.pass(HOUR);
    world.restart();
    world.uplink();
    world.switch_off(0);
    world.pass(HOUR);
    world.restart();
    // The registration expires, and the device is offline, while the service is down or later.
    world.pass(30 * HOUR);
    world.restart();
    world.pass(HOUR);
    world.switch_on(0);
    world.pass(S);
    world.does(0, "deregisters", SimulatedDevice::deregister);
    world.pass(S);
    world.restart();
    world.pass(30 * HOUR);
    let told = &world.disk.durable.history(0).presence().told;
    let expected = [
        FirstContact,
        Awake,
        Registered,
        Asleep,
        Awake,
        Asleep,
        Expired,
        Offline,
        Back,
        Awake,
        Registered,
        Deregistered,
    ];
    assert_eq!(*told, expected);
}

#[test]
fn an_expired_request_fails_in_time() {
    let mut world = registered();
    world.answers(TEMPERATURE, Manner::Code(Code::SERVICE_UNAVAILABLE));
    let tried = world.create(attempts(5, now(read(TEMPERATURE))));
    world.switch_off(0);
    let untried = world.create(read(TEMPERATURE));
    world.pass(47 * HOUR);
    assert_eq!(world.status(tried), Status::InProgress);
    assert_eq!(world.status(untried), Status::Scheduled);
    world.pass(HOUR + MINUTE);
    assert!(
        world.shown(tried).contains("expired"),
        "{}",
        world.shown(tried)
    );
    assert!(
        world.shown(untried).contains("expired"),
        "{}",
        world.shown(untried)
    );
}
