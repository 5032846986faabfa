//! Which forwarder is restored, when, and who is told?

use super::{ForwarderEnd, Forwarders, Routed, SupervisorEffect, Unread};
use crate::delivery::question::Question;
use crate::ids::{CustomerId, DestinationId};
use crate::limits::{PANICS_MAX, STORE_RETRY_MS};
use crate::moment::Timestamp;
use crate::supervision::Unserved;
use crate::supervision::{Failure, Generation};

#[test]
fn a_destination_that_is_gone_is_unknown_and_one_that_cannot_be_read_is_asked_for_later() {
    let mut scene = Scene::new();
    scene.forwarders.restore(id(), acme());
    assert_eq!(scene.restored(Err(Unread)), Some(retry_at(STORE_RETRY_MS)));
    assert_eq!(scene.ask(&Question::Restart), Err(Unserved::Busy));
    assert_eq!(scene.forwarders.handle_timeout(id()), Some(acme()));
    assert_eq!(scene.restored(Ok(None)), None);
    assert_eq!(scene.ask(&Question::Restart), Err(Unserved::Unknown));
    assert_eq!(scene.forwarders.handle_timeout(id()), None);
}

#[test]
fn a_forwarder_that_failed_is_restored_after_a_pause() {
    for failure in [Failure::Unsaved, Failure::Panicked] {
        let mut scene = Scene::new();
        let generation = scene.run();
        assert_eq!(scene.ask(&Question::Remove), Ok("handle"));
        let effects = scene.end(generation, ForwarderEnd::Failed(failure));
        let log = SupervisorEffect::LogRestore(failure);
        assert_eq!(effects, [log, retry_at(STORE_RETRY_MS)]);
        assert_eq!(scene.ask(&Question::Remove), Err(Unserved::Busy));
        // It is known to have ended.
        assert_eq!(scene.end(generation, ForwarderEnd::Removed), []);
        assert_eq!(scene.forwarders.handle_timeout(id()), Some(acme()));
    }
}

#[test]
fn the_report_of_an_earlier_forwarder_is_out_of_date() {
    let mut scene = Scene::new();
    let early = scene.run();
    scene.end(early, ForwarderEnd::Failed(Failure::Unsaved));
    scene.spawn();
    assert_eq!(scene.end(early, ForwarderEnd::Removed), []);
    assert_eq!(scene.forwarders.handle_timeout(id()), None, "it runs");
    assert_eq!(scene.ask(&Question::Test), Ok("handle"));
}

#[test]
fn a_forwarder_that_keeps_panicking_is_parked_and_can_be_removed_and_nothing_else() {
    let mut scene = Scene::new();
    let mut generation = scene.run();
    let panicked = ForwarderEnd::Failed(Failure::Panicked);
    for _ in 0..PANICS_MAX {
        scene.end(generation, panicked);
        scene.now_ms += STORE_RETRY_MS;
        generation = scene.spawn();
    }
    let effects = scene.end(generation, panicked);
    assert_eq!(effects, [SupervisorEffect::LogParked]);
    assert_eq!(scene.forwarders.handle_timeout(id()), None);
    assert_eq!(scene.ask(&Question::Replay), Err(Unserved::Busy));
    let removed = scene.forwarders.route(id(), &Question::Remove);
    assert!(matches!(removed, Routed::Remove(batch) if batch.changes.len() == 1));
    scene.forwarders.handle_removed(id());
    assert_eq!(scene.ask(&Question::Remove), Err(Unserved::Unknown));
}

#[test]
fn a_customer_that_goes_takes_its_forwarders_along_and_no_others() {
    let mut scene = Scene::new();
    scene.run();
    let other = CustomerId::parse("other").unwrap();
    let [others, made] = [[6; 16], [7; 16]].map(DestinationId::from_bytes);
    scene.forwarders.restore(others, other.clone());
    scene.forwarders.restore(made, acme());
    assert_eq!(scene.forwarders.forget_customer(&acme()), ["handle"]);
    // What was being read of it comes too late.
    let found = Ok(Some("read"));
    let forwarders = &mut scene.forwarders;
    assert_eq!(forwarders.handle_restored(at(0), made, found), None);
    assert_eq!(forwarders.handle_timeout(others), Some(other));
    assert_eq!(scene.ask(&Question::Remove), Err(Unserved::Unknown));
}

// The vocabulary of these tests.

type Effect = SupervisorEffect<&'static str>;

struct Scene {
    forwarders: Forwarders<&'static str>,
    now_ms: i64,
}

impl Scene {
    fn new() -> Self {
        Self {
            forwarders: Forwarders::default(),
            now_ms: 0,
        }
    }

    fn restored(&mut self, found: Result<Option<&'static str>, Unread>) -> Option<Effect> {
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

    fn end(&mut self, generation: Generation, end: ForwarderEnd) -> Vec<Effect> {
        let now = at(self.now_ms);
        self.forwarders.handle_ended(now, (id(), generation), end)
    }

    fn ask(&self, question: &Question) -> Result<&'static str, Unserved> {
        match self.forwarders.route(id(), question) {
            Routed::Deliver(handle) => Ok(handle),
            Routed::Refuse(why) => Err(why),
            Routed::Remove(batch) => panic!("{batch:?}"),
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
