//! Which forwarder is restored, when, and what is logged?

use super::{CommandRoute, DestinationUnreadable, ForwarderExit, Forwarders, SupervisorEffect};
use crate::delivery::command::DestinationCommand;
use crate::ids::{CustomerId, DestinationId, Partition};
use crate::limits::{PANICS_MAX, STORE_RETRY_MS};
use crate::moment::Timestamp;
use crate::supervision::Unserved;
use crate::supervision::{ActorFailure, Generation};

#[test]
fn a_removed_destination_is_unknown_and_an_unreadable_one_is_read_again_later() {
    let mut fixture = Fixture::new();
    fixture.forwarders.restore(id(), acme());
    assert_eq!(
        fixture.restored(Err(DestinationUnreadable)),
        Some(retry_at(STORE_RETRY_MS))
    );
    assert_eq!(
        fixture.command(&DestinationCommand::Restart),
        Err(Unserved::Busy)
    );
    assert_eq!(fixture.forwarders.handle_timeout(id()), Some(acme()));
    assert_eq!(fixture.restored(Ok(None)), None);
    assert_eq!(
        fixture.command(&DestinationCommand::Restart),
        Err(Unserved::Unknown)
    );
    assert_eq!(fixture.forwarders.handle_timeout(id()), None);
}

#[test]
fn a_forwarder_that_failed_is_restored_after_a_pause() {
    for failure in [ActorFailure::Unsaved, ActorFailure::Panicked] {
        let mut fixture = Fixture::new();
        let generation = fixture.run();
        assert_eq!(fixture.command(&DestinationCommand::Remove), Ok("handle"));
        let effects = fixture.end(generation, ForwarderExit::Failed(failure));
        let log = SupervisorEffect::LogRestore(failure);
        assert_eq!(effects, [log, retry_at(STORE_RETRY_MS)]);
        assert_eq!(
            fixture.command(&DestinationCommand::Remove),
            Err(Unserved::Busy)
        );
        // A second report of its end is ignored.
        assert_eq!(fixture.end(generation, ForwarderExit::Removed), []);
        assert_eq!(fixture.forwarders.handle_timeout(id()), Some(acme()));
    }
}

#[test]
fn the_report_of_an_earlier_forwarder_is_ignored() {
    let mut fixture = Fixture::new();
    let early = fixture.run();
    fixture.end(early, ForwarderExit::Failed(ActorFailure::Unsaved));
    fixture.spawn();
    assert_eq!(fixture.end(early, ForwarderExit::Removed), []);
    assert_eq!(fixture.forwarders.handle_timeout(id()), None, "it runs");
    assert_eq!(fixture.command(&DestinationCommand::Test), Ok("handle"));
}

#[test]
fn a_forwarder_that_keeps_panicking_is_parked_and_can_only_be_removed() {
    let mut fixture = Fixture::new();
    let mut generation = fixture.run();
    let panicked = ForwarderExit::Failed(ActorFailure::Panicked);
    for _ in 0..PANICS_MAX {
        fixture.end(generation, panicked);
        fixture.now_ms += STORE_RETRY_MS;
        generation = fixture.spawn();
    }
    let effects = fixture.end(generation, panicked);
    assert_eq!(effects, [SupervisorEffect::LogParked]);
    assert_eq!(fixture.forwarders.handle_timeout(id()), None);
    assert_eq!(
        fixture.command(&DestinationCommand::Replay),
        Err(Unserved::Busy)
    );
    let removed = fixture.forwarders.route(id(), &DestinationCommand::Remove);
    assert!(matches!(removed, CommandRoute::Remove(batch) if batch.changes.len() == 1));
    fixture.forwarders.handle_removed(id());
    assert_eq!(
        fixture.command(&DestinationCommand::Remove),
        Err(Unserved::Unknown)
    );
}

#[test]
fn removing_a_customer_ends_its_forwarders_and_no_others() {
    let mut fixture = Fixture::new();
    fixture.run();
    let other = CustomerId::parse("other").unwrap();
    let [others, made] = [[6; 16], [7; 16]].map(DestinationId::from_bytes);
    fixture.forwarders.restore(others, other.clone());
    fixture.forwarders.restore(made, acme());
    assert_eq!(fixture.forwarders.forget_customer(&acme()), ["handle"]);
    // The result of a read in progress comes too late.
    let found = Ok(Some("read"));
    let forwarders = &mut fixture.forwarders;
    assert_eq!(forwarders.handle_restored(at(0), made, found), None);
    assert_eq!(forwarders.handle_timeout(others), Some(other));
    assert_eq!(
        fixture.command(&DestinationCommand::Remove),
        Err(Unserved::Unknown)
    );
}

#[test]
fn a_partition_that_another_node_delivers_to_has_no_forwarders_here() {
    let mut fixture = Fixture::new();
    fixture.run();
    let another = DestinationId::from_bytes([6; 16]);
    fixture.forwarders.restore(another, acme());
    assert_ne!(another.partition(), id().partition());
    let forwarders = &mut fixture.forwarders;
    assert_eq!(forwarders.forget_partition(Partition(15)), [""; 0]);
    assert_eq!(forwarders.forget_partition(id().partition()), ["handle"]);
    assert!(!forwarders.has(id()) && forwarders.has(another));
    assert_eq!(
        fixture.command(&DestinationCommand::Restart),
        Err(Unserved::Unknown)
    );
}

// The vocabulary of these tests.

type Effect = SupervisorEffect<&'static str>;

struct Fixture {
    forwarders: Forwarders<&'static str>,
    now_ms: i64,
}

impl Fixture {
    fn new() -> Self {
        Self {
            forwarders: Forwarders::default(),
            now_ms: 0,
        }
    }

    fn restored(
        &mut self,
        found: Result<Option<&'static str>, DestinationUnreadable>,
    ) -> Option<Effect> {
        let now = at(self.now_ms);
        self.forwarders.handle_restored(now, id(), found)
    }

    /// The destination is found and its forwarder runs.
    fn spawn(&mut self) -> Generation {
        match self.restored(Ok(Some("read"))) {
            Some(SupervisorEffect::Spawn(generation, "read")) => {
                self.forwarders.handle_spawned(id(), generation, "handle");
                generation
            }
            other => panic!("{other:?}"),
        }
    }

    fn run(&mut self) -> Generation {
        self.forwarders.restore(id(), acme());
        self.spawn()
    }

    fn end(&mut self, generation: Generation, end: ForwarderExit) -> Vec<Effect> {
        let now = at(self.now_ms);
        self.forwarders.handle_ended(now, (id(), generation), end)
    }

    fn command(&self, command: &DestinationCommand) -> Result<&'static str, Unserved> {
        match self.forwarders.route(id(), command) {
            CommandRoute::Deliver(handle) => Ok(handle),
            CommandRoute::Refuse(why) => Err(why),
            CommandRoute::Remove(batch) => panic!("{batch:?}"),
        }
    }
}

fn retry_at(ms: i64) -> Effect {
    SupervisorEffect::RestoreAt(at(ms))
}

fn id() -> DestinationId {
    DestinationId::from_bytes([5; 16])
}

fn acme() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}
