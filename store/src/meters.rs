//! What are the metrics of the committer?

use std::sync::OnceLock;
use std::time::Duration;

use engine::change::{Batch, Change};
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use crate::{CommitError, Loss};

const COMMITS: &str = "signalbox_store_commits_total";
const CHANGES: &str = "signalbox_store_changes_total";
const GROUPS: &str = "signalbox_store_groups_total";
const SECONDS: &str = "signalbox_store_commit_seconds";
const QUEUE: &str = "signalbox_store_queue_batches";
const QUEUE_BYTES: &str = "signalbox_store_queue_bytes";
const GATHERED: &str = "signalbox_store_group_batches";
const FSYNC: &str = "signalbox_store_fsync_seconds";
const READERS: &str = "signalbox_store_queries_waiting";
const ENTRIES: &str = "signalbox_log_entries_written_total";
const EVENTS: &str = "signalbox_events_written_total";
const KNOWN: &str = "signalbox_devices_known";
const FREE: &str = "signalbox_store_disk_free_bytes";
const FILE: &str = "signalbox_store_file_bytes";
const LOST: &str = "signalbox_store_lost_groups";

/// The metrics of a store.
pub(crate) struct StoreMeters {
    durable: Counter,
    conflict: Counter,
    fenced: Counter,
    full: Counter,
    unavailable: Counter,
    changes: Counter,
    groups: Counter,
    seconds: Histogram,
    queue: Gauge,
    queue_bytes: Gauge,
    gathered: Histogram,
    fsync: Histogram,
    entries: Counter,
    events: Counter,
    registered: Gauge,
    unregistered: Gauge,
    lost: Gauge,
    /// How full the disk is: absent where it is not ours.
    disk: OnceLock<(Gauge, Gauge)>,
}

impl StoreMeters {
    /// The metrics of a store, all at zero.
    pub(crate) fn new() -> Self {
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
            queue_bytes: gauge!(QUEUE_BYTES),
            gathered: histogram!(GATHERED),
            fsync: histogram!(FSYNC),
            entries: counter!(ENTRIES),
            events: counter!(EVENTS),
            registered: gauge!(KNOWN, "registration" => "registered"),
            unregistered: gauge!(KNOWN, "registration" => "unregistered"),
            lost: gauge!(LOST),
            disk: OnceLock::new(),
        };
        let levels = [
            &meters.queue,
            &meters.queue_bytes,
            &meters.registered,
            &meters.unregistered,
        ];
        levels.into_iter().for_each(|level| level.set(0.0));
        meters
    }

    /// Counts a batch that is queued for the committer.
    pub(crate) fn enter(&self, bytes: usize) {
        self.queue.increment(1.0);
        self.queue_bytes.increment(bytes as f64);
    }

    /// Counts a batch that left the queue.
    pub(crate) fn leave(&self, bytes: usize) {
        self.queue.decrement(1.0);
        self.queue_bytes.decrement(bytes as f64);
    }

    /// Records the size of a group that is about to be written.
    pub(crate) fn gathered(&self, batches: usize) {
        self.gathered.record(batches as f64);
    }

    /// Records the duration of a group's fsync.
    pub(crate) fn synced(&self, took: Duration) {
        self.fsync.record(took);
    }

    /// Adds to the numbers of known devices.
    pub(crate) fn known(&self, registered: i64, unregistered: i64) {
        self.registered.increment(registered as f64);
        self.unregistered.increment(unregistered as f64);
    }

    /// Records how full the disk is.
    pub(crate) fn disk(&self, free_bytes: u64, file_bytes: u64) {
        let (free, file) = self.disk.get_or_init(|| (gauge!(FREE), gauge!(FILE)));
        free.set(free_bytes as f64);
        file.set(file_bytes as f64);
    }

    /// Records what was lost from the end of the store.
    pub(crate) fn lost(&self, loss: Option<Loss>) {
        self.lost.set(loss.map_or(0.0, |loss| loss.groups as f64));
    }

    /// Counts a group that was written and synced as one.
    pub(crate) fn group(&self) {
        self.groups.increment(1);
    }

    /// Records the verdict on a batch of a group, and the time since it was queued.
    pub(crate) fn judged(
        &self,
        contents: BatchContents,
        took: Duration,
        verdict: Result<(), CommitError>,
    ) {
        match verdict {
            Ok(()) => {
                self.durable.increment(1);
                self.changes.increment(contents.changes);
                self.entries.increment(contents.entries);
                self.events.increment(contents.events);
                self.seconds.record(took);
            }
            Err(refusal) => self.refused(refusal),
        }
    }

    /// Counts a refused batch.
    pub(crate) fn refused(&self, refusal: CommitError) {
        match refusal {
            CommitError::Conflict => self.conflict.increment(1),
            CommitError::Fenced => self.fenced.increment(1),
            CommitError::Full => self.full.increment(1),
            CommitError::Unavailable => self.unavailable.increment(1),
        }
    }
}

/// The parts of a batch that are counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchContents {
    /// Its changes.
    pub(crate) changes: u64,
    /// Those that add an entry to the administration log.
    pub(crate) entries: u64,
    /// Those that add an event to the history of a device.
    pub(crate) events: u64,
}

impl BatchContents {
    /// The contents of a batch.
    pub(crate) fn of(batch: &Batch) -> Self {
        let mut contents = Self::default();
        for change in &batch.changes {
            contents.changes += 1;
            match change {
                Change::AppendEntry(_) => contents.entries += 1,
                Change::AppendEvent(_) => contents.events += 1,
                Change::PutCustomer(_)
                | Change::RemoveCustomer(_)
                | Change::RemoveActions(_)
                | Change::PutClient(_)
                | Change::RemoveClient(_)
                | Change::PutToken(_)
                | Change::PutSetting(_)
                | Change::PutDevice { .. }
                | Change::RemoveDevice(_)
                | Change::PutRecord { .. }
                | Change::PutAction { .. }
                | Change::PutIdempotencyRecord(_)
                | Change::PutDestination(_)
                | Change::RemoveDestination { .. }
                | Change::PutProgress(_)
                | Change::PutDefinition(_)
                | Change::RemoveDefinition(_)
                | Change::PutJob(_)
                | Change::PutJobRequest { .. }
                | Change::PutJobPart { .. }
                | Change::RemoveJob(_)
                | Change::PutSchedule(_)
                | Change::PutScheduleContents { .. }
                | Change::RemoveSchedule { .. }
                | Change::PutSms { .. }
                | Change::PutBootstrapConfig { .. }
                | Change::RemoveBootstrapConfig(_)
                | Change::PutBootstrap { .. }
                | Change::PutImage(_)
                | Change::RemoveImage { .. }
                | Change::PutCampaign(_)
                | Change::PutCampaignDevice { .. }
                | Change::RemoveCampaignDevices(_)
                | Change::RemoveCampaign { .. } => {}
            }
        }
        contents
    }
}

/// A query in the queue: counted until it is dropped.
pub(crate) struct QueueWait(Gauge);

impl QueueWait {
    /// Counts one more query in the queue.
    pub(crate) fn among(waiting: &Gauge) -> Self {
        waiting.increment(1.0);
        Self(waiting.clone())
    }
}

impl Drop for QueueWait {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The gauge of the queries queued in a pool.
pub(crate) fn waiting_in(pool: &'static str) -> Gauge {
    describe_gauge!(
        READERS,
        "Queries waiting for a reader thread of the store, by pool."
    );
    let waiting = gauge!(READERS, "pool" => pool);
    waiting.set(0.0);
    waiting
}

fn describe() {
    describe_counter!(COMMITS, "Batches committed to the store, by result.");
    describe_counter!(CHANGES, "Changes in durable batches.");
    describe_counter!(
        GROUPS,
        "Groups of batches written with one fsync, including parts of a sweep."
    );
    describe_histogram!(
        SECONDS,
        "Time from submitting a batch until it was durable, in seconds."
    );
    describe_gauge!(QUEUE, "Batches waiting for the committer or being written.");
    describe_gauge!(
        QUEUE_BYTES,
        "Bytes of the batches waiting for the committer or being written."
    );
    describe_histogram!(GATHERED, "Batches per group written with one fsync.");
    describe_histogram!(FSYNC, "Duration of the fsync of a group, in seconds.");
    describe_counter!(ENTRIES, "Administration log entries written.");
    describe_counter!(EVENTS, "Device events written.");
    describe_gauge!(KNOWN, "Devices of all customers, by registration state.");
    describe_gauge!(FREE, "Free bytes of the file system of the store.");
    describe_gauge!(
        FILE,
        "Size of the file with the rows of the store, in bytes."
    );
    describe_gauge!(
        LOST,
        "Groups of commits that were lost from the end of the store before it was opened."
    );
}
