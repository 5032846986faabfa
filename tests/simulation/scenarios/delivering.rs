//! Which events destinations receive, in which order, and what delays them.

use engine::delivery::backlog::{ProgressUpdate, QueuedEvent, Sequence};
use engine::delivery::command::DestinationCommand;
use engine::delivery::destination::{DestinationState, EventTypes};
use engine::ids::DestinationId;
use harness::device::SimulatedDevice;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::payload::Sample;

use super::{HOUR, MINUTE, S, TEMPERATURE, World, registered, spread};
use crate::endpoints::EndpointBehaviour;
use crate::laws::delivering;
use crate::world::customers::customer;

/// Longer than all waits between the tries of an event.
const ALL_TRIES: i64 = 35 * MINUTE;

#[test]
fn what_is_acknowledged_is_delivered() {
    let mut world = registered();
    let dead = world.add_destination(EndpointBehaviour::Dead);
    let healthy = world.add_destination(EndpointBehaviour::Healthy);
    world.sends_one(0);
    world.pass(S);
    assert_eq!((world.backlog(healthy), world.backlog(dead)), (0, 1));

    // Whatever the service loses in crashes, no event is lost.
    for _ in 0..3 {
        world.crash_after(0);
        world.pass(MINUTE);
        world.sends_one(0);
        world.pass(S);
    }
    world.pass(ALL_TRIES);
    assert_eq!(world.state(dead), DestinationState::Failed);
    assert_eq!((world.backlog(dead), world.dead_letters(dead)), (0, 4));
    assert_eq!(world.dead_letters(healthy), 0);

    world.is_cured();
    assert_eq!(world.dead_letters(dead), 0);
}

#[test]
fn a_cursor_that_is_too_far_is_detected() {
    let mut world = registered();
    let id = world.add_destination(EndpointBehaviour::Dead);
    world.sends_one(0);
    world.pass(S);
    let waiting = world.waits(0);
    let steps_past = |reached: Vec<Sequence>, released: Vec<Sequence>| ProgressUpdate {
        reached: reached
            .into_iter()
            .map(|at| (waiting.partition(), at))
            .collect(),
        released,
        ..ProgressUpdate::none(customer(), id)
    };
    let (ledgers, durable) = (&world.laws.ledgers, &world.disk.durable);
    let judge = |progress: ProgressUpdate| {
        delivering::passed_events_are_settled(ledgers, &progress, durable)
    };
    assert!(
        judge(steps_past(vec![waiting.sequence], vec![])).is_ok(),
        "it is an exception"
    );
    assert!(
        judge(steps_past(vec![], vec![waiting.sequence])).is_err(),
        "and stays one"
    );
}

#[test]
fn events_of_a_device_keep_their_order() {
    let mut world = registered();
    let id = world.add_destination(EndpointBehaviour::Flapping {
        every_ms: 7 * MINUTE,
    });
    for _ in 0..200 {
        world.sends_one(0);
        world.pass(10 * S);
        if world.state(id) == DestinationState::Failed {
            world.ask_destination(id, DestinationCommand::Restart);
        }
    }
    world.is_cured();
    assert_eq!(world.dead_letters(id), 0);

    let (ledgers, durable) = (&world.laws.ledgers, &world.disk.durable);
    assert!(delivering::replayed_dead_letters_are_delivered(ledgers, durable).is_ok());
}

#[test]
fn an_event_is_delivered_again_after_a_lost_answer() {
    let mut world = registered();
    let id = world.add_destination(EndpointBehaviour::Forgetful);
    for _ in 0..10 {
        world.sends_one(0);
        world.pass(ALL_TRIES);
    }
    assert_eq!(world.backlog(id), 0);
    assert!(world.census.answers_lost() > 0);
    world.is_cured();
    assert_eq!(world.dead_letters(id), 0);
}

#[test]
fn no_destination_delays_another() {
    let mut world = spread(2, 4);
    let healthy = world.add_destination(EndpointBehaviour::Healthy);
    for behaviour in [EndpointBehaviour::Dead, EndpointBehaviour::Slow] {
        world.add_destination(behaviour);
    }
    for round in 0..40 {
        world.sends_one(round % 4);
        world.pass(2 * S);
        assert_eq!(world.backlog(healthy), 0, "in round {round}");
    }
    assert!(
        world
            .disk
            .durable
            .outbox()
            .destinations()
            .any(|record| !record.held.is_empty())
    );
}

#[test]
fn a_device_that_is_refused_does_not_delay_others() {
    let mut world = spread(2, 4);
    let id = world.add_destination(EndpointBehaviour::Picky { who: 0 });
    for round in 0..40 {
        world.sends_one(round % 4);
        world.pass(2 * S);
        let held = world.disk.durable.outbox().destination(id);
        let held = held.map_or(0, |record| record.held.len() as u64);
        assert_eq!(world.backlog(id), held, "in round {round}");
    }
    let (ledgers, durable) = (&world.laws.ledgers, &world.disk.durable);
    assert!(delivering::no_destination_delays_another(ledgers, durable).is_ok());
}

#[test]
fn a_destination_whose_endpoint_is_down_for_an_hour_fails_and_is_replayed() {
    let mut world = registered();
    let id = world.add_destination(EndpointBehaviour::Flapping { every_ms: HOUR });
    world.pass(3 * HOUR);
    let mut states = Vec::new();
    for _ in 0..120 {
        world.sends_one(0);
        world.pass(MINUTE);
        states.push(world.state(id));
    }
    assert!(states.contains(&DestinationState::Failed));
    world.is_cured();
    assert_eq!((world.backlog(id), world.dead_letters(id)), (0, 0));
}

#[test]
fn a_new_destination_receives_no_earlier_events() {
    let mut world = registered();
    let first = world.add_destination(EndpointBehaviour::Healthy);
    world.sends_one(0);
    world.pass(S);
    let later = world.add_destination(EndpointBehaviour::Dead);
    world.remove_destination(first);
    world.pass(S);
    assert_eq!(world.backlog(later), 0);
    world.sends_one(0);
    world.pass(S);
    assert_eq!(world.backlog(later), 1);
    assert!(world.disk.durable.outbox().destination(first).is_none());
}

#[test]
fn a_full_disk_drops_a_destination_and_loses_nothing() {
    let mut world = registered();
    let id = world.add_destination(EndpointBehaviour::Erratic);
    for _ in 0..20 {
        world.sends_one(0);
        world.pass(S / 2);
        // The result of a retry cannot be saved meanwhile.
        world.fill_the_disk_for(3 * MINUTE);
        world.pass(4 * MINUTE);
    }
    world.is_cured();
    assert_eq!((world.backlog(id), world.dead_letters(id)), (0, 0));
    assert!(world.census.forwarders_dropped > 0);
}

impl World {
    /// Adds a destination that receives events from now on.
    fn add_destination(&mut self, behaviour: EndpointBehaviour) -> DestinationId {
        let id = self.create_destination(behaviour, EventTypes::usual());
        self.pass(S);
        id
    }

    /// Makes all endpoints healthy and replays their dead letters.
    fn is_cured(&mut self) {
        self.endpoints.cure();
        self.pass(MINUTE);
        self.deliver_all_again();
    }

    /// A device sends one value.
    pub(super) fn sends_one(&mut self, who: usize) {
        let sample = Sample {
            path: TEMPERATURE,
            value: self.measurement(),
            measured: None,
        };
        self.does(who, "wakes", SimulatedDevice::wake);
        self.sends(who, ContentFormat::SENML_CBOR, vec![sample]);
    }

    /// The last queued event of a device.
    fn waits(&self, who: usize) -> QueuedEvent {
        let partition = self.disk.durable.key(who).partition();
        let waiting = self
            .disk
            .durable
            .outbox()
            .waiting(partition, Sequence::default());
        *waiting.last().expect("something waits")
    }

    fn backlog(&self, id: DestinationId) -> u64 {
        self.disk.durable.outbox().backlog(id)
    }

    fn dead_letters(&self, id: DestinationId) -> usize {
        let record = self.disk.durable.outbox().destination(id);
        record.expect("it is there").dead.len()
    }

    fn state(&self, id: DestinationId) -> DestinationState {
        let record = self.disk.durable.outbox().destination(id);
        record.expect("it is there").destination.state
    }
}
