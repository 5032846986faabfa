//! What is told of the committer to whoever measures the service?

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use super::committer::{Caller, Verdict};
use crate::CommitError;

const COMMITS: &str = "signalbox_store_commits_total";
const CHANGES: &str = "signalbox_store_changes_total";
const GROUPS: &str = "signalbox_store_groups_total";
const SECONDS: &str = "signalbox_store_commit_seconds";
const QUEUE: &str = "signalbox_store_queue_batches";

/// The meters of a store.
pub(super) struct Meters {
    durable: Counter,
    conflict: Counter,
    fenced: Counter,
    full: Counter,
    unavailable: Counter,
    changes: Counter,
    groups: Counter,
    seconds: Histogram,
    queue: Gauge,
}

impl Meters {
    /// The meters of a store, all at nothing.
    pub(super) fn new() -> Self {
        describe();
        let commits = |outcome: &'static str| counter!(COMMITS, "outcome" => outcome);
        let meters = Self {
            durable: commits("durable"),
            conflict: commits("conflict"),
            fenced: commits("fenced"),
            full: commits("full"),
            unavailable: commits("unavailable"),
            changes: counter!(CHANGES),
            groups: counter!(GROUPS),
            seconds: histogram!(SECONDS),
            queue: gauge!(QUEUE),
        };
        meters.queue.set(0.0);
        meters
    }

    /// A batch waits for the committer.
    pub(super) fn enter(&self) {
        self.queue.increment(1.0);
    }

    /// A batch does not wait any more.
    pub(super) fn leave(&self) {
        self.queue.decrement(1.0);
    }

    /// A group of batches was written and synced as one.
    pub(super) fn group(&self) {
        self.groups.increment(1);
    }

    /// There is a verdict on a batch of a group.
    pub(super) fn judged(&self, caller: &Caller, verdict: Verdict) {
        match verdict {
            Ok(()) => {
                self.durable.increment(1);
                self.changes.increment(caller.changes as u64);
                self.seconds.record(caller.handed_over_at.elapsed());
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    /// A batch was refused.
    pub(super) fn refused(&self, refusal: CommitError) {
        match refusal {
            CommitError::Conflict => self.conflict.increment(1),
            CommitError::Fenced => self.fenced.increment(1),
            CommitError::Full => self.full.increment(1),
            CommitError::Unavailable => self.unavailable.increment(1),
        }
    }
}

fn describe() {
    describe_counter!(
        COMMITS,
        "Batches handed to the store, by what came of them."
    );
    describe_counter!(CHANGES, "Changes in the batches that became durable.");
    describe_counter!(
        GROUPS,
        "Groups written and fsynced as one: batches that queued together, or a part of a sweep."
    );
    describe_histogram!(
        SECONDS,
        "Time from handing a batch over until it was durable, in seconds."
    );
    describe_gauge!(
        QUEUE,
        "Batches that wait for the committer or are being written."
    );
}
