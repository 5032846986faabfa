//! How far is a destination in a partition?

use std::collections::BTreeSet;

use crate::delivery::backlog::Sequence;

/// The cursor of a destination in a partition.
#[derive(Debug)]
pub(super) struct PartitionCursor {
    /// Up to which number the partition was read.
    read: Sequence,
    /// Up to which number it is saved as done.
    saved: Sequence,
    /// Events that were read and are neither done nor retries.
    open: BTreeSet<Sequence>,
    /// Retries that are done and were not read yet.
    ahead: BTreeSet<Sequence>,
    /// Whether there may be events after those read.
    more: More,
    /// How many events were requested, while the partition is being read.
    requested: Option<u32>,
    /// Whether it waits for its turn to be read.
    queued: Queued,
}

/// Whether a partition waits for its turn to be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Queued {
    No,
    Yes,
}

/// Whether there may be events to read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum More {
    No,
    Maybe,
}

impl PartitionCursor {
    /// A cursor: all events up to a number are done.
    pub(super) fn at(reached: Sequence) -> Self {
        Self {
            read: reached,
            saved: reached,
            open: BTreeSet::new(),
            ahead: BTreeSet::new(),
            more: More::No,
            requested: None,
            queued: Queued::No,
        }
    }

    /// Notes that there are new events.
    pub(super) fn note_more(&mut self) {
        self.more = More::Maybe;
    }

    /// How many events may be read now: none while the partition is being read, has no more, or has
    /// more than half of `open_max` open.
    pub(super) fn room(&self, open_max: usize) -> usize {
        if self.requested.is_some() || self.more == More::No || self.open.len() > open_max / 2 {
            return 0;
        }
        open_max - self.open.len()
    }

    /// Begins to wait for its turn; returns whether it did not wait already.
    pub(super) fn begin_queueing(&mut self) -> bool {
        std::mem::replace(&mut self.queued, Queued::Yes) == Queued::No
    }

    /// Ends to wait: its turn has come.
    pub(super) fn end_queueing(&mut self) {
        self.queued = Queued::No;
    }

    /// Begins to read `max` events; returns after which number.
    pub(super) fn begin_read(&mut self, max: u32) -> Sequence {
        self.more = More::No;
        self.requested = Some(max);
        self.read
    }

    /// Notes how many events were read, and up to which number; returns how many were requested.
    pub(super) fn note_read(&mut self, last: Option<Sequence>, rows: usize) -> u32 {
        let requested = self.requested.take().unwrap_or_default();
        if u32::try_from(rows).unwrap_or(u32::MAX) >= requested {
            self.more = More::Maybe;
        }
        self.read = self.read.max(last.unwrap_or_default());
        requested
    }

    /// Notes that an event that was read is open.
    pub(super) fn open(&mut self, sequence: Sequence) {
        self.open.insert(sequence);
    }

    /// Notes that an event is a retry, which does not hold back the cursor.
    pub(super) fn exclude(&mut self, sequence: Sequence) {
        self.open.remove(&sequence);
    }

    /// Notes that an event is done.
    pub(super) fn pass(&mut self, sequence: Sequence) {
        self.open.remove(&sequence);
    }

    /// Notes that a retry is done.
    pub(super) fn release(&mut self, sequence: Sequence) {
        if sequence > self.read {
            self.ahead.insert(sequence);
        }
    }

    /// Notes that a done event is a retry again.
    pub(super) fn requeue(&mut self, sequence: Sequence) {
        self.ahead.remove(&sequence);
    }

    /// Whether an event ahead of the cursor is done.
    pub(super) fn is_done_with(&self, sequence: Sequence) -> bool {
        self.ahead.contains(&sequence)
    }

    /// The open events, in order.
    pub(super) fn all_open(&self) -> Vec<Sequence> {
        self.open.iter().copied().collect()
    }

    /// Moves the saved cursor: returns up to which number all is done, if that is further than
    /// before.
    pub(super) fn take_reached(&mut self) -> Option<Sequence> {
        let reached = match self.open.first() {
            Some(Sequence(first)) => Sequence(first - 1),
            None => self.read,
        };
        if reached <= self.saved {
            return None;
        }
        self.saved = reached;
        self.ahead = self.ahead.split_off(&Sequence(reached.0.saturating_add(1)));
        Some(reached)
    }
}
