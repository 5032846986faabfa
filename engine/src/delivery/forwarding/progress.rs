//! What a destination still has to save, and when.
//!
//! Failures and dead letters are saved in the step that decides them. Accepted events are saved
//! from time to time: if the service crashes before, they are delivered again under the same id.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Change;
use crate::delivery::backlog::{DeadLetter, PendingRetry, ProgressUpdate, QueuedEvent, Sequence};
use crate::delivery::destination::Destination;
use crate::delivery::forwarding::shard_cursor::{Counted, ShardCursor};
use crate::delivery::forwarding::task::ForwarderOutput;
use crate::ids::Shard;
use crate::moment::Timestamp;

/// Events that may be done before that is saved. Nothing begins during a save, so a low number
/// would slow down a fast destination; with a high one many events are delivered again after a
/// crash.
const PASSED_MAX: usize = 2_048;

/// How long done events may stay unsaved.
const UNSAVED_MS: i64 = 500;

/// The unsaved progress.
#[derive(Debug)]
pub(super) struct Unsaved {
    progress: ProgressUpdate,
    /// Shards whose cursor may have moved.
    moved: BTreeSet<Shard>,
    /// Events that are done.
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

/// Whether the stored destination itself is out of date.
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

    /// Notes that an event of a shard is done.
    pub(super) fn pass(&mut self, now: Timestamp, shard: Shard) {
        self.passed += 1;
        self.note_moved(now, shard);
    }

    /// Notes that the cursor of a shard may have moved.
    pub(super) fn note_moved(&mut self, now: Timestamp, shard: Shard) {
        self.moved.insert(shard);
        self.since.get_or_insert(now);
    }

    /// Notes that an event is a retry.
    pub(super) fn retry(&mut self, retry: PendingRetry) {
        self.moved.insert(retry.queued.shard());
        self.progress.retrying.push(retry);
        self.urgency = Urgency::Now;
    }

    /// Notes that a retry is done.
    pub(super) fn release(&mut self, now: Timestamp, queued: &QueuedEvent, counted: Counted) {
        self.progress.released.push(queued.sequence);
        match counted {
            Counted::Yes => self.progress.passed += 1,
            Counted::No => {}
        }
        self.moved.insert(queued.shard());
        self.passed += 1;
        self.since.get_or_insert(now);
    }

    /// Notes a dead letter.
    pub(super) fn dead_letter(&mut self, dead_letter: DeadLetter) {
        self.progress.dead_lettered.push(dead_letter);
        self.urgency = Urgency::Now;
    }

    /// Notes that a dead letter is queued again.
    pub(super) fn requeue(&mut self, sequence: Sequence, counted: Counted) {
        self.progress.requeued.push(sequence);
        match counted {
            Counted::Yes => self.progress.passed -= 1,
            Counted::No => {}
        }
        self.urgency = Urgency::Now;
    }

    /// Notes that a dead letter is deleted: it stays done.
    pub(super) fn discard(&mut self, sequence: Sequence) {
        self.progress.requeued.push(sequence);
        self.urgency = Urgency::Now;
    }

    /// Notes that the destination itself changed.
    pub(super) fn put_destination(&mut self) {
        self.destination = Stale::Yes;
        self.urgency = Urgency::Now;
    }

    /// When it must be saved at the latest.
    pub(super) fn due_at(&self) -> Option<Timestamp> {
        self.since.map(|since| since.plus_ms(UNSAVED_MS))
    }

    /// Saves the progress, if it is due.
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
