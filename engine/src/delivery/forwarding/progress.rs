//! What a destination still has to save, and when.
//!
//! Failures and dead letters are saved in the step that decides them. Accepted events are saved
//! from time to time: if the service crashes before, they are delivered again under the same id.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Change;
use crate::delivery::backlog::{DeadLetter, PendingRetry, ProgressUpdate, QueuedEvent, Sequence};
use crate::delivery::destination::Destination;
use crate::delivery::forwarding::partition_cursor::PartitionCursor;
use crate::delivery::forwarding::task::ForwarderOutput;
use crate::ids::Partition;
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
    /// Partitions whose cursor may have moved.
    moved: BTreeSet<Partition>,
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

    /// Notes that an event of a partition is done.
    pub(super) fn pass(&mut self, now: Timestamp, partition: Partition) {
        self.passed += 1;
        self.note_moved(now, partition);
    }

    /// Notes that the cursor of a partition may have moved.
    pub(super) fn note_moved(&mut self, now: Timestamp, partition: Partition) {
        self.moved.insert(partition);
        self.since.get_or_insert(now);
    }

    /// Notes that an event is a retry.
    pub(super) fn retry(&mut self, retry: PendingRetry) {
        self.moved.insert(retry.queued.partition());
        self.progress.retrying.push(retry);
        self.urgency = Urgency::Now;
    }

    /// Notes that a retry is done.
    pub(super) fn release(&mut self, now: Timestamp, queued: &QueuedEvent) {
        self.progress.released.push(queued.sequence);
        self.moved.insert(queued.partition());
        self.passed += 1;
        self.since.get_or_insert(now);
    }

    /// Notes a dead letter.
    pub(super) fn dead_letter(&mut self, dead_letter: DeadLetter) {
        self.progress.dead_lettered.push(dead_letter);
        self.urgency = Urgency::Now;
    }

    /// Notes that a dead letter is queued again.
    pub(super) fn requeue(&mut self, sequence: Sequence) {
        self.progress.requeued.push(sequence);
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
        cursors: &mut BTreeMap<Partition, PartitionCursor>,
        out: &mut ForwarderOutput,
    ) {
        let is_due = self.due_at().is_some_and(|due_at| due_at <= now);
        if self.urgency == Urgency::None && !is_due && self.passed < PASSED_MAX {
            return;
        }
        if self.destination == Stale::Yes {
            out.change(Change::PutDestination(Box::new(destination.clone())));
        }
        for partition in &self.moved {
            let cursor = cursors.get_mut(partition);
            if let Some(reached) = cursor.and_then(PartitionCursor::take_reached) {
                self.progress.reached.push((*partition, reached));
            }
        }
        let progress = std::mem::replace(self, Self::of(destination)).progress;
        if !progress.is_empty() {
            out.change(Change::PutProgress(Box::new(progress)));
        }
    }
}
