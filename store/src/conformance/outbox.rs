//! With which words is told what waits, and what a destination does with it?

use engine::change::Change;
use engine::delivery::backlog::{DeadLetter, PendingRetry, ProgressUpdate, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, Shard};
use engine::limits::SHARDS;
use engine::profile::Profile;

use super::samples::{at, batch, event};
use super::{commit, put, wait};
use crate::{Retention, Store};

/// Makes a destination.
pub(super) fn make(store: &dyn Store, destination: &Destination) {
    let change = Change::PutDestination(Box::new(destination.clone()));
    put(store, vec![change]);
}

/// Removes a destination.
pub(super) fn unmake(store: &dyn Store, destination: &Destination) {
    put(store, vec![removal(destination)]);
}

/// The change that removes a destination.
pub(super) fn removal(destination: &Destination) -> Change {
    Change::RemoveDestination {
        customer: destination.customer.clone(),
        destination: destination.id,
    }
}

/// Has a device say something at a second, and gives back what it said.
pub(super) fn say(store: &dyn Store, device: &Profile, second: i64) -> Event {
    let said = event(device, second, device.number);
    put(store, vec![append(&said)]);
    said
}

/// The change that appends an event.
pub(super) fn append(event: &Event) -> Change {
    Change::AppendEvent(Box::new(event.clone()))
}

/// Says how far a destination has come.
pub(super) fn progress(store: &dyn Store, progress: ProgressUpdate) {
    let change = Change::PutProgress(Box::new(progress));
    assert_eq!(commit(store, batch(vec![change])), Ok(()));
}

/// A destination is done with what is there, up to each of these.
pub(super) fn past(destination: &Destination, waiting: &[QueuedEvent]) -> ProgressUpdate {
    ProgressUpdate {
        reached: waiting
            .iter()
            .map(|waiting| (waiting.shard(), waiting.sequence))
            .collect(),
        ..nothing(destination)
    }
}

/// A step of a destination that says nothing.
pub(super) fn nothing(destination: &Destination) -> ProgressUpdate {
    ProgressUpdate::none(destination.customer.clone(), destination.id)
}

/// An event that is to be tried again.
pub(super) fn held(waiting: QueuedEvent, tries: u8) -> PendingRetry {
    PendingRetry {
        queued: waiting,
        tries,
        due_at: at(i64::from(tries)),
    }
}

/// An event that was set aside at a second.
pub(super) fn dead(waiting: QueuedEvent, second: i64) -> DeadLetter {
    DeadLetter {
        queued: waiting,
        tries: 5,
        at: at(second),
        why: format!("503 Service Unavailable, as at {second}").into(),
    }
}

/// All that waits for a customer's destinations, shard by shard.
pub(super) fn all_waiting(store: &dyn Store, customer: &CustomerId) -> Vec<QueuedEvent> {
    let shards = (0..SHARDS).map(Shard);
    let waiting = shards.flat_map(|shard| waiting_in(store, customer, shard));
    waiting.collect()
}

/// What waits in a shard.
pub(super) fn waiting_in(
    store: &dyn Store,
    customer: &CustomerId,
    shard: Shard,
) -> Vec<QueuedEvent> {
    let waiting = store.waiting(customer.clone(), shard, Sequence::default(), u32::MAX);
    wait(waiting).expect("an answer")
}

/// How much waits for a destination, and how many dead letters it has.
pub(super) fn counts(store: &dyn Store, destination: &Destination) -> (u64, u64) {
    let backlog = wait(store.backlog(destination.id)).expect("an answer");
    (backlog.waiting, backlog.dead)
}

/// The numbers of all dead letters of a destination.
pub(super) fn dead_of(store: &dyn Store, destination: DestinationId) -> Vec<DeadLetter> {
    wait(store.dead_letters(destination, None, u32::MAX)).expect("an answer")
}

/// Sweeps until nothing is left, so much at a time, and says how much there was.
pub(super) fn sweep_all(store: &dyn Store, retention: Retention, max: u32) -> u64 {
    let mut removed = 0;
    loop {
        let swept = wait(store.sweep(retention, max)).expect("a sweep");
        assert!(swept.removed <= u64::from(max));
        removed += swept.removed;
        if !swept.more {
            return removed;
        }
    }
}
