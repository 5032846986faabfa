//! What waits to be delivered, and how far each destination has come with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use engine::delivery::backlog::{
    DeadLetter, DestinationProgress, PendingRetry, ProgressUpdate, QueuedEvent, Sequence,
};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, DestinationId, EventId, Shard};

/// Rows that one sweep removes at most: few, so that there are several sweeps.
const SWEEP_MAX: usize = 50;

/// What is kept for deliveries.
#[derive(Default)]
pub(crate) struct Outbox {
    newest: u64,
    /// How many events were ever given a number.
    numbered: i64,
    waiting: BTreeMap<Shard, BTreeMap<Sequence, QueuedEvent>>,
    destinations: BTreeMap<DestinationId, DestinationRecord>,
    removed: BTreeSet<DestinationId>,
    /// Which device said what is kept.
    said_by: HashMap<EventId, usize>,
}

/// What is kept of a destination.
pub(crate) struct DestinationRecord {
    pub(crate) destination: Destination,
    pub(crate) since: Sequence,
    pub(crate) reached: BTreeMap<Shard, Sequence>,
    pub(crate) held: BTreeMap<Sequence, PendingRetry>,
    pub(crate) dead: BTreeMap<Sequence, DeadLetter>,
    passed: i64,
    /// How many events had a number when it was made.
    numbered_before: i64,
}

impl Outbox {
    /// Keeps an event; it waits under the next number if anybody is told of it.
    pub(super) fn append(&mut self, who: usize, event: &Event) -> Option<QueuedEvent> {
        self.said_by.insert(event.id, who);
        if self.destinations.is_empty() {
            return None;
        }
        // Some numbers are nobody's.
        self.newest += 1 + u64::from(event.id.as_bytes()[15] % 3);
        self.numbered += 1;
        let waiting = QueuedEvent {
            sequence: Sequence(self.newest),
            device: event.device,
            event: event.id,
            event_type: event.content.event_type(),
        };
        let shard = self.waiting.entry(waiting.shard()).or_default();
        shard.insert(waiting.sequence, waiting);
        Some(waiting)
    }

    /// Forgets what a device said, which was removed; what waits of it is not there any more.
    pub(super) fn forget(&mut self, who: usize) {
        self.said_by.retain(|_, by| *by != who);
    }

    /// Puts a destination. A new one begins behind every event there is; one that was removed does
    /// not come back.
    pub(super) fn put(&mut self, destination: Destination) {
        let id = destination.id;
        if let Some(kept) = self.destinations.get_mut(&id) {
            kept.destination = destination;
        } else if !self.removed.contains(&id) {
            let kept = DestinationRecord {
                destination,
                since: Sequence(self.newest),
                reached: BTreeMap::new(),
                held: BTreeMap::new(),
                dead: BTreeMap::new(),
                passed: 0,
                numbered_before: self.numbered,
            };
            self.destinations.insert(id, kept);
        }
    }

    pub(super) fn remove(&mut self, id: DestinationId) {
        self.destinations.remove(&id);
        self.removed.insert(id);
    }

    /// Takes a step of a destination. One of a destination that was removed leaves nothing.
    pub(super) fn advance(&mut self, progress: ProgressUpdate) {
        let Some(kept) = self.destinations.get_mut(&progress.destination) else {
            return;
        };
        for (shard, sequence) in progress.reached {
            let reached = kept.reached.entry(shard).or_default();
            *reached = sequence.max(*reached);
        }
        for sequence in progress.released {
            kept.held.remove(&sequence);
        }
        for held in progress.retrying {
            kept.held.insert(held.queued.sequence, held);
        }
        for sequence in progress.requeued {
            kept.dead.remove(&sequence);
        }
        for letter in progress.dead_lettered {
            kept.dead.insert(letter.queued.sequence, letter);
        }
        kept.passed += progress.passed;
    }

    /// Removes rows that every destination is past, some at a time.
    pub(super) fn sweep(&mut self) {
        let mut left = SWEEP_MAX;
        for (shard, rows) in &mut self.waiting {
            let places = self.destinations.values().map(|kept| kept.place_in(*shard));
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

    /// What waits in a shard behind a number.
    pub(crate) fn waiting(
        &self,
        shard: Shard,
        after: Sequence,
    ) -> impl Iterator<Item = &QueuedEvent> {
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let rows = self.waiting.get(&shard);
        rows.into_iter()
            .flat_map(move |rows| rows.range(behind))
            .map(|(_, row)| row)
    }

    /// The shards in which something waits for a destination, exceptions apart.
    pub(crate) fn shards_waiting(&self, id: DestinationId) -> Vec<Shard> {
        let Some(kept) = self.destinations.get(&id) else {
            return Vec::new();
        };
        let shards = self.waiting.keys().copied();
        shards
            .filter(|shard| self.waiting(*shard, kept.place_in(*shard)).next().is_some())
            .collect()
    }

    /// How many events a destination is not done with.
    pub(crate) fn backlog(&self, id: DestinationId) -> u64 {
        let left = |kept: &DestinationRecord| self.numbered - kept.numbered_before - kept.passed;
        let left = self.destinations.get(&id).map_or(0, left);
        u64::try_from(left).expect("nothing is passed twice")
    }

    /// Which device said it, while it is kept.
    pub(crate) fn said_by(&self, event: EventId) -> Option<usize> {
        self.said_by.get(&event).copied()
    }

    /// The customers' choices of where to be told.
    pub(super) fn chosen(&self, customer: &CustomerId) -> Vec<Destination> {
        let all = self.destinations.values().map(|kept| &kept.destination);
        let own = all.filter(|destination| destination.customer == *customer);
        own.cloned().collect()
    }
}

impl DestinationRecord {
    /// Up to where it is done with a shard.
    pub(crate) fn place_in(&self, shard: Shard) -> Sequence {
        self.reached.get(&shard).copied().unwrap_or(self.since)
    }

    pub(crate) fn standing(&self) -> DestinationProgress {
        DestinationProgress {
            since: self.since,
            reached: self.reached.clone().into_iter().collect(),
            retrying: self.held.values().copied().collect(),
        }
    }

    /// Its dead letters behind a number.
    pub(crate) fn dead_behind(&self, after: Option<Sequence>, max: u32) -> Vec<DeadLetter> {
        let dead = self.dead.values();
        let behind = dead.filter(|letter| Some(letter.queued.sequence) > after);
        behind.take(max as usize).cloned().collect()
    }
}
