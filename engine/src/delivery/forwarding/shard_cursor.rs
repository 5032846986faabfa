//! Where does a destination stand in a shard?

use std::collections::BTreeSet;

use crate::delivery::backlog::Sequence;

/// The place of a destination in a shard.
#[derive(Debug)]
pub(super) struct ShardCursor {
    /// Up to where it was read.
    read: Sequence,
    /// Up to where it is known to be done with.
    saved: Sequence,
    /// What was read and is neither done with nor an exception.
    open: BTreeSet<Sequence>,
    /// What is done with and lies behind something open.
    ahead: BTreeSet<Sequence>,
    /// Whether there may be something behind what was read.
    more: More,
    /// How much was asked for, while the shard is being read.
    requested: Option<u32>,
    /// Whether it waits for its turn to be read.
    queued: Queued,
}

/// Whether a shard waits for its turn to be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Queued {
    No,
    Yes,
}

/// Whether there may be something to read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum More {
    No,
    Maybe,
}

/// Whether an exception is counted by itself. One ahead of the place is not: it is counted when
/// the place moves past it, once, even if the service falls and it is read again meanwhile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Counted {
    No,
    Yes,
}

impl ShardCursor {
    /// A place where all up to a number is done with.
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

    /// Something new waits.
    pub(super) fn note_more(&mut self) {
        self.more = More::Maybe;
    }

    /// How much may be read now: nothing while it is being read, or nothing more is there, or more
    /// than half of what may be open is.
    pub(super) fn room(&self, open_max: usize) -> usize {
        if self.requested.is_some() || self.more == More::No || self.open.len() > open_max / 2 {
            return 0;
        }
        open_max - self.open.len()
    }

    /// Begins to wait for its turn; says whether it did not already.
    pub(super) fn begin_queueing(&mut self) -> bool {
        std::mem::replace(&mut self.queued, Queued::Yes) == Queued::No
    }

    /// Its turn has come.
    pub(super) fn end_queueing(&mut self) {
        self.queued = Queued::No;
    }

    /// Begins to read so much; says behind which number.
    pub(super) fn begin_read(&mut self, max: u32) -> Sequence {
        self.more = More::No;
        self.requested = Some(max);
        self.read
    }

    /// So much was read, up to a number; says how much was asked for.
    pub(super) fn note_read(&mut self, last: Option<Sequence>, rows: usize) -> u32 {
        let asked = self.requested.take().unwrap_or_default();
        if u32::try_from(rows).unwrap_or(u32::MAX) >= asked {
            self.more = More::Maybe;
        }
        self.read = self.read.max(last.unwrap_or_default());
        asked
    }

    /// An event that was read is to be tried.
    pub(super) fn open(&mut self, sequence: Sequence) {
        self.open.insert(sequence);
    }

    /// An event is an exception, which does not keep the place where it is.
    pub(super) fn exclude(&mut self, sequence: Sequence) {
        self.open.remove(&sequence);
    }

    /// An event is done with.
    pub(super) fn pass(&mut self, sequence: Sequence) {
        self.open.remove(&sequence);
        self.ahead.insert(sequence);
    }

    /// An exception is done with.
    pub(super) fn release(&mut self, sequence: Sequence) -> Counted {
        let counted = self.counted(sequence);
        if counted == Counted::No {
            self.ahead.insert(sequence);
        }
        counted
    }

    /// What was done with is an exception again.
    pub(super) fn requeue(&mut self, sequence: Sequence) -> Counted {
        self.ahead.remove(&sequence);
        self.counted(sequence)
    }

    /// Whether an event is done with that lies ahead of where it was read to: it was an exception.
    pub(super) fn is_done_with(&self, sequence: Sequence) -> bool {
        self.ahead.contains(&sequence)
    }

    fn counted(&self, sequence: Sequence) -> Counted {
        match sequence <= self.saved {
            true => Counted::Yes,
            false => Counted::No,
        }
    }

    /// What is open, in order.
    pub(super) fn all_open(&self) -> Vec<Sequence> {
        self.open.iter().copied().collect()
    }

    /// Up to where it is done with, if that is further than was said before, and with how many
    /// events more.
    pub(super) fn take_reached(&mut self) -> Option<(Sequence, i64)> {
        let reached = match self.open.first() {
            Some(Sequence(first)) => Sequence(first - 1),
            None => self.read,
        };
        if reached <= self.saved {
            return None;
        }
        self.saved = reached;
        let left = self.ahead.split_off(&Sequence(reached.0.saturating_add(1)));
        let passed = std::mem::replace(&mut self.ahead, left);
        Some((reached, i64::try_from(passed.len()).unwrap_or(i64::MAX)))
    }
}
