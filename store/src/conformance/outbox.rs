//! The vocabulary of tests about the outbox and the progress of destinations.

use engine::change::Change;
use engine::delivery::backlog::{DeadLetter, PendingRetry, ProgressUpdate, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, Partition};
use engine::profile::Profile;

use super::samples::{at, batch, event};
use super::{commit, put, wait};
use crate::{Retention, Store};

/// Creates a destination.
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

/// Commits an event of a device at a second, and returns the event.
pub(super) fn say(store: &dyn Store, device: &Profile, second: i64) -> Event {
    let event = event(device, second, device.number);
    put(store, vec![append(&event)]);
    event
}

/// The change that appends an event.
pub(super) fn append(event: &Event) -> Change {
    Change::AppendEvent(Box::new(event.clone()))
}

/// Commits a progress update of a destination.
pub(super) fn progress(store: &dyn Store, progress: ProgressUpdate) {
    let change = Change::PutProgress(Box::new(progress));
    assert_eq!(commit(store, batch(vec![change])), Ok(()));
}

/// The destination is done with these events and all before them.
pub(super) fn past(destination: &Destination, waiting: &[QueuedEvent]) -> ProgressUpdate {
    ProgressUpdate {
        reached: waiting
            .iter()
            .map(|waiting| (waiting.partition(), waiting.sequence))
            .collect(),
        ..nothing(destination)
    }
}

/// A progress update without changes.
pub(super) fn nothing(destination: &Destination) -> ProgressUpdate {
    ProgressUpdate::none(destination.customer.clone(), destination.id)
}

/// An event that is to be retried.
pub(super) fn held(waiting: QueuedEvent, tries: u8) -> PendingRetry {
    PendingRetry {
        queued: waiting,
        tries,
        due_at: at(i64::from(tries)),
    }
}

/// An event that became a dead letter at a second.
pub(super) fn dead(waiting: QueuedEvent, second: i64) -> DeadLetter {
    DeadLetter {
        queued: waiting,
        tries: 5,
        at: at(second),
        why: format!("503 Service Unavailable, as at {second}").into(),
    }
}

/// All stored events of a customer, partition by partition.
pub(super) fn all_waiting(store: &dyn Store, customer: &CustomerId) -> Vec<QueuedEvent> {
    let waiting = Partition::all().flat_map(|partition| waiting_in(store, customer, partition));
    waiting.collect()
}

/// The events that wait behind the cursors of a destination.
pub(super) fn waiting_for(store: &dyn Store, destination: &Destination) -> Vec<QueuedEvent> {
    let progress = wait(store.progress_of(destination.id)).expect("an answer");
    let past = |partition| {
        let mut reached = progress.reached.iter();
        let reached = reached.find(|(of, _)| *of == partition);
        reached.map_or(progress.since, |(_, at)| *at)
    };
    let waiting = Partition::all().flat_map(|partition| {
        let customer = destination.customer.clone();
        let waiting = store.waiting(customer, partition, past(partition), u32::MAX);
        wait(waiting).expect("an answer")
    });
    waiting.collect()
}

/// The stored events of a partition.
pub(super) fn waiting_in(
    store: &dyn Store,
    customer: &CustomerId,
    partition: Partition,
) -> Vec<QueuedEvent> {
    let waiting = store.waiting(customer.clone(), partition, Sequence::default(), u32::MAX);
    wait(waiting).expect("an answer")
}

/// How many events wait for a destination, and how many dead letters it has.
pub(super) fn counts(store: &dyn Store, destination: &Destination) -> (u64, u64) {
    let backlog = wait(store.backlog(destination.id)).expect("an answer");
    (backlog.waiting, backlog.dead)
}

/// All dead letters of a destination.
pub(super) fn dead_of(store: &dyn Store, destination: DestinationId) -> Vec<DeadLetter> {
    wait(store.dead_letters(destination, None, u32::MAX)).expect("an answer")
}

/// Sweeps in steps of `max` until nothing is left, and returns how much was removed.
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
