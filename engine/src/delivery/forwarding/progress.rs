//! What a destination decided and has yet to save, and when it does.
//!
//! What must not be forgotten is saved in the step that decides it: failures, and what is set
//! aside. That events were taken is saved now and then: if the service falls before, they are
//! delivered again under the same id.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Change;
use crate::delivery::backlog::{DeadLetter, PendingRetry, ProgressUpdate, QueuedEvent, Sequence};
use crate::delivery::destination::Destination;
use crate::delivery::forwarding::shard_cursor::{Counted, ShardCursor};
use crate::delivery::forwarding::task::ForwarderOutput;
use crate::ids::Shard;
use crate::moment::Timestamp;

/// Events that are passed before that is saved: nothing is begun while a save is under way, so few
/// would cost a fast destination much of its time, and many may come again after a fall.
const PASSED_MAX: usize = 2_048;

/// How long passed events may go unsaved.
const UNSAVED_MS: i64 = 500;

/// What is yet to be saved.
#[derive(Debug)]
pub(super) struct Unsaved {
    progress: ProgressUpdate,
    /// Shards whose place may have moved.
    moved: BTreeSet<Shard>,
    /// Events that were passed.
    passed: usize,
    since: Option<Timestamp>,
    urgency: Urgency,
    destination: Stale,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Urgency {
    None,
    Now,
}

/// Whether what is kept of the destination itself is out of date.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stale {
    No,
    Yes,
}

impl Unsaved {
    pub(super) fn of(destination: &Destination) -> Self {
        Self {
            progress: ProgressUpdate::none(destination.customer.clone(), destination.id),
            moved: BTreeSet::new(),
            passed: 0,
            since: None,
            urgency: Urgency::None,
            destination: Stale::No,
        }
    }

    /// An event of a shard is done with.
    pub(super) fn pass(&mut self, now: Timestamp, shard: Shard) {
        self.passed += 1;
        self.note_moved(now, shard);
    }

    /// The place of a shard may have moved.
    pub(super) fn note_moved(&mut self, now: Timestamp, shard: Shard) {
        self.moved.insert(shard);
        self.since.get_or_insert(now);
    }

    /// An event is an exception.
    pub(super) fn retry(&mut self, retry: PendingRetry) {
        self.moved.insert(retry.queued.shard());
        self.progress.retrying.push(retry);
        self.urgency = Urgency::Now;
    }

    /// An event is no exception any more: it is done with.
    pub(super) fn release(&mut self, now: Timestamp, waiting: &QueuedEvent, counted: Counted) {
        self.progress.released.push(waiting.sequence);
        match counted {
            Counted::Yes => self.progress.passed += 1,
            Counted::No => {}
        }
        self.moved.insert(waiting.shard());
        self.passed += 1;
        self.since.get_or_insert(now);
    }

    /// An event is set aside.
    pub(super) fn dead_letter(&mut self, dead_letter: DeadLetter) {
        self.progress.dead_lettered.push(dead_letter);
        self.urgency = Urgency::Now;
    }

    /// An event is not set aside any more.
    pub(super) fn requeue(&mut self, sequence: Sequence, counted: Counted) {
        self.progress.requeued.push(sequence);
        match counted {
            Counted::Yes => self.progress.passed -= 1,
            Counted::No => {}
        }
        self.urgency = Urgency::Now;
    }

    /// An event is not set aside any more, and not to be tried either: it stays passed.
    pub(super) fn discard(&mut self, sequence: Sequence) {
        self.progress.requeued.push(sequence);
        self.urgency = Urgency::Now;
    }

    /// The destination itself changed.
    pub(super) fn put_destination(&mut self) {
        self.destination = Stale::Yes;
        self.urgency = Urgency::Now;
    }

    /// When it is to be saved at the latest.
    pub(super) fn due_at(&self) -> Option<Timestamp> {
        self.since.map(|since| since.plus_ms(UNSAVED_MS))
    }

    /// Saves what there is, if it is time.
    pub(super) fn save(
        &mut self,
        now: Timestamp,
        destination: &Destination,
        cursors: &mut BTreeMap<Shard, ShardCursor>,
        out: &mut ForwarderOutput,
    ) {
        let is_due = self.due_at().is_some_and(|due_at| due_at <= now);
        if self.urgency == Urgency::None && !is_due && self.passed < PASSED_MAX {
            return;
        }
        if self.destination == Stale::Yes {
            out.change(Change::PutDestination(Box::new(destination.clone())));
        }
        for shard in &self.moved {
            let cursor = cursors.get_mut(shard);
            if let Some((reached, passed)) = cursor.and_then(ShardCursor::take_reached) {
                self.progress.reached.push((*shard, reached));
                self.progress.passed += passed;
            }
        }
        let progress = std::mem::replace(self, Self::of(destination)).progress;
        if !progress.is_empty() {
            out.change(Change::PutProgress(Box::new(progress)));
        }
    }
}
