//! Observations: notified, stored, established again, and never ended silently.

use engine::action::Status;
use engine::action::timeline::TimelineEvent;
use engine::device::record::{Observation, ObservationState};
use engine::event::Lifecycle;
use harness::device::SimulatedDevice;
use harness::device::resource::AnswerMode as Manner;
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use super::{HOUR, MINUTE, S, TEMPERATURE, World, ZONE};
use super::{attempts, end_observing, now, observe, read, registered};

#[test]
fn what_is_acknowledged_is_stored() {
    let mut world = observed();
    world.warms_to(22.5);
    world.pass(S);
    assert!(world.knows("22.5"), "it is published");

    // Nothing is acknowledged before it is durable, and the device repeats it after the crash.
    world.stall_the_disk_for(20 * S);
    world.warms_to(23.5);
    world.pass(S);
    world.crash_after(0);
    assert!(!world.knows("23.5"));
    world.pass(MINUTE);
    assert!(world.knows("23.5"), "it is published after all");

    world.fill_the_disk_for(10 * S);
    world.warms_to(24.5);
    world.pass(5 * S);
    assert!(!world.knows("24.5"));
    world.pass(MINUTE);
    assert!(world.knows("24.5"), "it is published when there is room");
}

#[test]
fn notifications_that_are_lost_or_overtaken_leave_the_newest_value() {
    let mut world = observed();
    world.faults.lost_percent = 30;
    world.faults.repeated_percent = 30;
    world.faults.late_percent = 20;
    for number in 0..40 {
        world.warms_to(f64::from(number));
        world.pass(2 * S);
    }
    (world.faults.lost_percent, world.faults.late_percent) = (0, 0);
    world.pass(10 * MINUTE);
    world.warms_to(99.0);
    world.pass(MINUTE);
    let id = world.create(now(read(TEMPERATURE)));
    world.pass(MINUTE);
    assert_eq!(world.shown(id), "99");
}

#[test]
fn an_observation_requested_again_was_lost() {
    let mut world = observed();
    world.does(0, "is rebooted", SimulatedDevice::reboot);
    world.pass(MINUTE);
    assert_eq!(
        world.observations(),
        [(TEMPERATURE, ObservationState::Held)]
    );
    world.warms_to(22.5);
    world.pass(S);
    assert!(world.knows("22.5"), "it tells again");
}

#[test]
fn a_renewed_observation_waits_for_an_uplink() {
    let mut world = observed();
    world.answers(TEMPERATURE, Manner::Code(Code::SERVICE_UNAVAILABLE));
    world.does(0, "is rebooted", SimulatedDevice::reboot);
    world.pass(MINUTE);
    world.restart();
    world.pass(MINUTE);
    assert_eq!(
        world.observations(),
        [(TEMPERATURE, ObservationState::Owed)]
    );
    world.answers(TEMPERATURE, Manner::Piggybacked);
    world.pass(MINUTE);
    assert_eq!(
        world.observations(),
        [(TEMPERATURE, ObservationState::Owed)]
    );
    world.uplink();
    assert_eq!(
        world.observations(),
        [(TEMPERATURE, ObservationState::Held)]
    );
}

#[test]
fn no_observation_ends_silently() {
    let mut world = observed();
    for _ in 0..3 {
        world.crash_after(0);
        world.pass(MINUTE);
        world.does(0, "is rebooted", SimulatedDevice::reboot);
        world.pass(MINUTE);
        world.does(0, "deregisters", SimulatedDevice::deregister);
        world.pass(MINUTE);
        assert_eq!(
            world.observations(),
            [(TEMPERATURE, ObservationState::Owed)]
        );
        world.switch_on(0);
        world.pass(MINUTE);
        assert_eq!(
            world.observations(),
            [(TEMPERATURE, ObservationState::Held)]
        );
    }
    world.answers(TEMPERATURE, Manner::Code(Code::INTERNAL_SERVER_ERROR));
    world.does(0, "is rebooted", SimulatedDevice::reboot);
    world.pass(MINUTE);
    assert_eq!(world.observations(), []);
    assert_eq!(world.census.observations_lost, 1, "and an entry is logged");
}

#[test]
fn a_registration_or_deregistration_loses_observations() {
    let mut world = observed();
    // The device answers slowly when the observation is requested again.
    let owes = [(TEMPERATURE, ObservationState::Owed)];
    world.answers(
        TEMPERATURE,
        Manner::SeparateConfirmable { after_ms: 30_000 },
    );
    world.does(0, "is rebooted", SimulatedDevice::reboot);
    world.pass(10 * S);
    assert_eq!(world.observations(), owes);
    world.pass(MINUTE);
    assert_eq!(
        world.observations(),
        [(TEMPERATURE, ObservationState::Held)]
    );
    world.switch_off(0);
    world.pass(25 * HOUR);
    assert_eq!(world.observations(), owes);
}

#[test]
fn observations_are_those_that_were_requested() {
    let mut world = observed();
    let ended = world.create(now(end_observing(TEMPERATURE)));
    world.pass(S);
    assert_eq!(world.status(ended), Status::Succeeded);
    assert_eq!(world.observations(), []);
    let in_vain = world.create(now(end_observing(TEMPERATURE)));
    assert_eq!(world.shown(in_vain), "/3303/0/5700 is not observed");

    world.answers(ZONE, Manner::Code(Code::METHOD_NOT_ALLOWED));
    let refused = world.create(now(observe(ZONE)));
    world.pass(S);
    assert_eq!(world.shown(refused), "the device answered 4.05");
    assert_eq!(world.observations(), []);

    let instance = Path::instance(3303, 0);
    let begun = world.create(now(observe(instance)));
    world.pass(S);
    assert_eq!(world.status(begun), Status::Succeeded);
    assert_eq!(world.observations(), [(instance, ObservationState::Held)]);
    world.warms_to(25.5);
    world.pass(S);
    assert!(world.knows("25.5"), "also as a part of an instance");
}

#[test]
fn a_healed_world_has_its_observations() {
    let mut world = observed();
    world.answers(TEMPERATURE, Manner::Silent);
    world.does(0, "is rebooted", SimulatedDevice::reboot);
    world.pass(10 * MINUTE);
    assert_eq!(
        world.observations(),
        [(TEMPERATURE, ObservationState::Owed)]
    );
    world.heal();
    assert_eq!(
        world.observations(),
        [(TEMPERATURE, ObservationState::Held)]
    );
}

#[test]
fn a_history_ends_with_the_state_of_the_registration() {
    let mut world = registered();
    let last = |world: &World| world.disk.durable.history(0).presence().registration();
    assert_eq!(last(&world), Some(Lifecycle::Registered));
    world.does(0, "deregisters", SimulatedDevice::deregister);
    world.pass(S);
    assert_eq!(last(&world), Some(Lifecycle::Deregistered));
    world.switch_on(0);
    world.pass(S);
    assert_eq!(last(&world), Some(Lifecycle::Registered));
    world.switch_off(0);
    world.pass(25 * HOUR);
    assert_eq!(last(&world), Some(Lifecycle::Expired));
}

#[test]
fn a_timeline_has_every_attempt() {
    let mut world = registered();
    world.answers(TEMPERATURE, Manner::Reset);
    let id = world.create(attempts(3, now(read(TEMPERATURE))));
    world.pass(S);
    world.restart();
    world.pass(S);
    world.answers(TEMPERATURE, Manner::Silent);
    world.uplink();
    world.pass(5 * MINUTE);
    world.answers(TEMPERATURE, Manner::Piggybacked);
    world.uplink();
    let action = world.disk.durable.action(0, id).expect("it is kept");
    let happened = action.timeline.as_slice().iter().map(|entry| entry.what);
    let repeated = [TimelineEvent::DatagramRepeated; 4];
    let expected = [
        &[
            TimelineEvent::AttemptBegun(1),
            TimelineEvent::DatagramSent,
            TimelineEvent::Rejected,
        ][..],
        &[TimelineEvent::AttemptBegun(2), TimelineEvent::DatagramSent],
        &repeated,
        &[
            TimelineEvent::GaveUp,
            TimelineEvent::AttemptBegun(3),
            TimelineEvent::DatagramSent,
        ],
        &[TimelineEvent::Answered(Code::CONTENT)],
    ];
    assert_eq!(happened.collect::<Vec<_>>(), expected.concat());
}

/// A still world with a registered device whose temperature is observed.
fn observed() -> World {
    let mut world = registered();
    let id = world.create(now(observe(TEMPERATURE)));
    world.pass(S);
    assert_eq!(world.status(id), Status::Succeeded);
    world
}

impl World {
    /// The device measures another temperature.
    fn warms_to(&mut self, value: f64) {
        self.measures(0, TEMPERATURE, Value::Float(value));
    }

    /// Whether this is the last known temperature.
    fn knows(&self, text: &str) -> bool {
        let last = self.disk.durable.history(0).last_in(TEMPERATURE);
        last.is_some_and(|last| last.to_text() == text)
    }

    fn observations(&self) -> Vec<(Path, ObservationState)> {
        let observations = self.disk.durable.record(0).observations.iter();
        let state_of = |observed: &Observation| {
            let path = observed.target.path().expect("it is of one path");
            (path, observed.state)
        };
        observations.map(state_of).collect()
    }
}
