//! The events that wait for delivery, and the progress of each destination.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use engine::delivery::backlog::{
    DeadLetter, DestinationProgress, PendingRetry, ProgressUpdate, QueuedEvent, Sequence,
};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, EventId, Partition};

/// How many rows one sweep removes at most: few, so that there are several sweeps.
const SWEEP_MAX: usize = 50;

/// What is stored for deliveries.
#[derive(Default)]
pub(crate) struct Outbox {
    newest: u64,
    waiting: BTreeMap<Partition, BTreeMap<Sequence, QueuedEvent>>,
    destinations: BTreeMap<DestinationId, DestinationRecord>,
    removed: BTreeSet<DestinationId>,
    /// The device of each stored event.
    device_of: HashMap<EventId, usize>,
}

/// What is stored of a destination.
pub(crate) struct DestinationRecord {
    pub(crate) destination: Destination,
    pub(crate) since: Sequence,
    pub(crate) reached: BTreeMap<Partition, Sequence>,
    pub(crate) held: BTreeMap<Sequence, PendingRetry>,
    pub(crate) dead: BTreeMap<Sequence, DeadLetter>,
}

impl Outbox {
    /// Stores an event, which is queued under the next number if the customer has destinations.
    pub(super) fn append(&mut self, who: usize, event: &Event) -> Option<QueuedEvent> {
        self.device_of.insert(event.id, who);
        if self.destinations.is_empty() {
            return None;
        }
        // Some numbers are skipped.
        self.newest += 1 + u64::from(event.id.as_bytes()[15] % 3);
        let waiting = QueuedEvent::of(Sequence(self.newest), event);
        let partition = self.waiting.entry(waiting.partition()).or_default();
        partition.insert(waiting.sequence, waiting);
        Some(waiting)
    }

    /// Deletes the events of a removed device. Those that are queued are found missing.
    pub(super) fn forget(&mut self, who: usize) {
        self.device_of.retain(|_, by| *by != who);
    }

    /// Puts a destination. A new one begins after all existing events; a removed one stays removed.
    pub(super) fn put(&mut self, destination: Destination) {
        let id = destination.id;
        if let Some(record) = self.destinations.get_mut(&id) {
            record.destination = destination;
        } else if !self.removed.contains(&id) {
            let record = DestinationRecord {
                destination,
                since: Sequence(self.newest),
                reached: BTreeMap::new(),
                held: BTreeMap::new(),
                dead: BTreeMap::new(),
            };
            self.destinations.insert(id, record);
        }
    }

    pub(super) fn remove(&mut self, id: DestinationId) {
        self.destinations.remove(&id);
        self.removed.insert(id);
    }

    /// Applies the progress of a destination, unless the destination was removed.
    pub(super) fn advance(&mut self, progress: ProgressUpdate) {
        let Some(record) = self.destinations.get_mut(&progress.destination) else {
            return;
        };
        for (partition, sequence) in progress.reached {
            let reached = record.reached.entry(partition).or_default();
            *reached = sequence.max(*reached);
        }
        for sequence in progress.released {
            record.held.remove(&sequence);
        }
        for held in progress.retrying {
            record.held.insert(held.queued.sequence, held);
        }
        for sequence in progress.requeued {
            record.dead.remove(&sequence);
        }
        for letter in progress.dead_lettered {
            record.dead.insert(letter.queued.sequence, letter);
        }
    }

    /// Removes some of the rows that every destination has passed.
    pub(super) fn sweep(&mut self) {
        let mut left = SWEEP_MAX;
        for (partition, rows) in &mut self.waiting {
            let places = self
                .destinations
                .values()
                .map(|record| record.place_in(*partition));
            let past = places.min().unwrap_or(Sequence(u64::MAX));
            while left > 0
                && let Some(first) = rows.first_entry()
                && *first.key() <= past
            {
                first.remove();
                left -= 1;
            }
        }
        self.waiting.retain(|_, rows| !rows.is_empty());
    }

    pub(crate) fn destinations(&self) -> impl Iterator<Item = &DestinationRecord> {
        self.destinations.values()
    }

    pub(crate) fn destination(&self, id: DestinationId) -> Option<&DestinationRecord> {
        self.destinations.get(&id)
    }

    /// The queued events of a partition after a number.
    pub(crate) fn waiting(
        &self,
        partition: Partition,
        after: Sequence,
    ) -> impl Iterator<Item = &QueuedEvent> {
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let rows = self.waiting.get(&partition);
        rows.into_iter()
            .flat_map(move |rows| rows.range(behind))
            .map(|(_, row)| row)
    }

    /// The partitions with queued events for a destination, retries not counted.
    pub(crate) fn partitions_waiting(&self, id: DestinationId) -> Vec<Partition> {
        let Some(record) = self.destinations.get(&id) else {
            return Vec::new();
        };
        let partitions = self.waiting.keys().copied();
        partitions
            .filter(|partition| {
                self.waiting(*partition, record.place_in(*partition))
                    .next()
                    .is_some()
            })
            .collect()
    }

    /// How many events a destination is not done with.
    pub(crate) fn backlog(&self, id: DestinationId) -> u64 {
        let Some(record) = self.destinations.get(&id) else {
            return 0;
        };
        let is_passed =
            |held: &&PendingRetry| held.queued.sequence <= record.place_in(held.queued.partition());
        let ahead = self.waiting.keys().map(|partition| {
            let past = record.place_in(*partition);
            self.waiting(*partition, past).count()
        });
        (record.held.values().filter(is_passed).count() + ahead.sum::<usize>()) as u64
    }

    /// The device of an event, while the event is stored.
    pub(crate) fn device_of(&self, event: EventId) -> Option<usize> {
        self.device_of.get(&event).copied()
    }

    /// The destinations of a customer.
    pub(super) fn chosen(&self, customer: &CustomerId) -> Vec<Destination> {
        let all = self.destinations.values().map(|record| &record.destination);
        let own = all.filter(|destination| destination.customer == *customer);
        own.cloned().collect()
    }
}

impl DestinationRecord {
    /// The cursor of the destination in a partition.
    pub(crate) fn place_in(&self, partition: Partition) -> Sequence {
        self.reached.get(&partition).copied().unwrap_or(self.since)
    }

    pub(crate) fn standing(&self) -> DestinationProgress {
        DestinationProgress {
            since: self.since,
            reached: self.reached.clone().into_iter().collect(),
            retrying: self.held.values().copied().collect(),
        }
    }

    /// Its dead letters after a number.
    pub(crate) fn dead_behind(&self, after: Option<Sequence>, max: u32) -> Vec<DeadLetter> {
        let dead = self.dead.values();
        let behind = dead.filter(|letter| Some(letter.queued.sequence) > after);
        behind.take(max as usize).cloned().collect()
    }
}
