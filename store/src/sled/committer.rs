//! Which thread writes? One, group by group: check, apply as one, flush, fsync, answer.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use engine::ids::CustomerId;
use engine::sealed::Sealed;
use sled::{Batch, Db};
use tokio::sync::oneshot;

use super::apply;
use super::backup::KeptWrites;
use super::device_counts::DeviceCounts;
use super::disk::Disk;
use super::epochs::Epochs;
use super::fault::Fault;
use super::key;
use super::known_devices;
use super::last_group::LastGroup;
use super::ledger::Ledger;
use super::overlay::Overlay;
use super::plan::Plan;
use super::sweep::{self, SweepRequest, SweepTargets};
use super::token_cache::{self, TokenCache};
use crate::commit_state::CommitState;
use crate::meters::BatchContents;
use crate::record::server_key::{read_server_key, write_server_key};
use crate::{CommitError, Retention, SweepReport, Unavailable};

/// The most batches in a group: far more than there are writers, and few enough that the first of
/// them does not wait long for the last.
const GROUP_BATCHES_MAX: usize = 1_024;

/// The most bytes in a group, so that one sled batch stays a few segments long.
const GROUP_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// How many rows need one flush of the epoch collector: a flush frees 512 things, and a row
/// replaces two or three.
const ROWS_FREED: usize = 128;

/// How often the disk is checked while no job arrives.
const DISK_RECHECK: Duration = Duration::from_secs(1);

/// A job for the committer.
pub(super) enum Job {
    /// Make a batch durable.
    Commit(Box<QueuedBatch>),
    /// Remove what is too old.
    Sweep(SweepRequest),
    /// Begin an epoch.
    TakeOver(oneshot::Sender<Result<u64, Unavailable>>),
    /// Store the key of the service, unless there is one.
    ServerKey(Sealed, oneshot::Sender<Result<Sealed, Unavailable>>),
}

/// The only writer of the tree.
pub(super) struct Committer {
    db: Db,
    file: File,
    disk: Disk,
    state: Arc<CommitState>,
    jobs: Receiver<Job>,
    epochs: Epochs,
    ledger: Ledger,
    last_group: LastGroup,
    kept_writes: KeptWrites,
    tokens: Arc<TokenCache>,
    /// The rows that commits wrote since the last sweep, if that sweep left something to be swept.
    written: Option<usize>,
}

/// What a committer knows of its store, and keeps for its readers.
type KnownOfStore = (Epochs, Ledger, LastGroup, KeptWrites, Arc<TokenCache>);

/// A batch, and who waits for it.
pub(super) struct QueuedBatch {
    /// The batch as rows.
    pub(super) plan: Plan,
    /// Who waits.
    pub(super) caller: BatchTicket,
}

/// Who waits for the verdict on a batch.
pub(super) struct BatchTicket {
    /// The room the batch takes in the queue.
    pub(super) bytes: usize,
    /// What the batch contains.
    pub(super) contents: BatchContents,
    /// The requests that it creates, of one customer.
    pub(super) requests: Option<(CustomerId, u64)>,
    /// When it was queued.
    pub(super) handed_over_at: Instant,
    /// Where the verdict goes.
    pub(super) reply: Reply,
}

/// The result of a batch.
pub(super) type CommitVerdict = Result<(), CommitError>;

/// Where the verdict on a batch goes.
pub(super) type Reply = oneshot::Sender<CommitVerdict>;

impl Committer {
    /// The committer of a tree whose bytes are in this file.
    pub(super) fn new(
        db: Db,
        file: File,
        disk: Disk,
        state: Arc<CommitState>,
        jobs: Receiver<Job>,
        (epochs, ledger, last_group, kept_writes, tokens): KnownOfStore,
    ) -> Self {
        state.reach(ledger.newest());
        Self {
            db,
            file,
            disk,
            state,
            jobs,
            epochs,
            ledger,
            last_group,
            kept_writes,
            tokens,
            written: None,
        }
    }

    /// Works until all senders are gone and every queued job is done.
    pub(super) fn run(mut self) {
        let _tell = PanicGuard(Arc::clone(&self.state));
        self.check_disk();
        while let Some(first) = self.wait() {
            let mut next = Some(first);
            while let Some(job) = next.take() {
                match job {
                    Job::Commit(first) => next = self.commit(*first),
                    Job::Sweep(wanted) => self.sweep(wanted),
                    Job::TakeOver(reply) => self.take_over(reply),
                    Job::ServerKey(new, reply) => drop(reply.send(self.server_key(&new))),
                }
            }
        }
    }

    /// The next job. While there is none, the disk is checked at intervals.
    fn wait(&mut self) -> Option<Job> {
        loop {
            let due = self.last_group.sync_due();
            let due = due.filter(|_| !self.state.disk_full());
            match self.jobs.recv_timeout(due.unwrap_or(DISK_RECHECK)) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Timeout) if due.is_some() => self.last_group.sync(),
                Err(RecvTimeoutError::Timeout) if self.state.failed() => {}
                Err(RecvTimeoutError::Timeout) => self.check_disk(),
                Err(RecvTimeoutError::Disconnected) => {
                    if due.is_some() {
                        self.last_group.sync();
                    }
                    return None;
                }
            }
        }
    }

    /// Finds out whether there is room on the disk.
    fn check_disk(&mut self) {
        let has_room = self.disk.has_room();
        let seen = self.disk.seen();
        self.state.meters.disk(seen.free_bytes, seen.rows_bytes);
        if has_room {
            self.state.free_disk();
            return;
        }
        if !self.state.disk_full() {
            tracing::warn!("free disk space is below the reserve: commits are refused");
        }
        self.state.fill_disk();
    }

    /// Commits a batch together with all that are queued behind it; returns the first job that is
    /// no commit.
    fn commit(&mut self, first: QueuedBatch) -> Option<Job> {
        let (group, next) = self.gather(first);
        let count = group.len();
        let (plans, callers): (Vec<_>, Vec<_>) = group
            .into_iter()
            .map(|QueuedBatch { plan, caller }| (plan, caller))
            .unzip();
        let verdicts = match self.refusal() {
            Some(refusal) => vec![Err(refusal); count],
            None => {
                self.state.meters.gathered(count);
                self.decide(plans)
            }
        };
        for (caller, verdict) in callers.into_iter().zip(verdicts) {
            self.state.leave(caller.bytes);
            let took = caller.handed_over_at.elapsed();
            self.state.meters.judged(caller.contents, took, verdict);
            if let (Ok(()), Some((customer, count))) = (verdict, &caller.requests) {
                self.state.activity.count_requests(customer, *count);
            }
            // The caller may have stopped waiting.
            let _ = caller.reply.send(verdict);
        }
        next
    }

    fn gather(&self, first: QueuedBatch) -> (Vec<QueuedBatch>, Option<Job>) {
        let mut bytes = first.plan.bytes();
        let mut group = vec![first];
        while group.len() < GROUP_BATCHES_MAX && bytes < GROUP_BYTES_MAX {
            match self.jobs.try_recv() {
                Ok(Job::Commit(waiting)) => {
                    bytes += waiting.plan.bytes();
                    group.push(*waiting);
                }
                Ok(other @ (Job::Sweep(_) | Job::TakeOver(_) | Job::ServerKey(..))) => {
                    return (group, Some(other));
                }
                Err(_) => break,
            }
        }
        (group, None)
    }

    /// Why nothing can be written now.
    fn refusal(&mut self) -> Option<CommitError> {
        if self.state.failed() {
            return Some(CommitError::Unavailable);
        }
        self.check_disk();
        self.state.disk_full().then_some(CommitError::Full)
    }

    /// Decides each batch of a group. Verdicts are given only once everything is durable: even a
    /// conflict may be with something that is not durable yet.
    fn decide(&mut self, plans: Vec<Plan>) -> Vec<CommitVerdict> {
        let count = plans.len();
        self.write(plans).unwrap_or_else(|fault| {
            self.fail(&fault);
            vec![Err(CommitError::Unavailable); count]
        })
    }

    fn write(&mut self, plans: Vec<Plan>) -> Result<Vec<CommitVerdict>, Fault> {
        let db = self.db.clone();
        let mut rows = Overlay::new(&db);
        let verdicts = plans
            .into_iter()
            .map(|plan| {
                let span = plan.span.clone();
                let (epochs, ledger) = (&mut self.epochs, &mut self.ledger);
                span.in_scope(|| apply::apply(plan, epochs, ledger, &mut rows))
            })
            .collect::<Result<_, _>>()?;
        self.ledger.end_group(&mut rows)?;
        if let Some(written) = &mut self.written {
            *written = written.saturating_add(rows.len());
        }
        self.persist(rows)?;
        Ok(verdicts)
    }

    fn sweep(&mut self, wanted: SweepRequest) {
        let SweepRequest {
            retention,
            max,
            reply,
        } = wanted;
        let swept = self.remove_old(&retention, max);
        let _ = reply.send(swept);
    }

    fn take_over(&mut self, reply: oneshot::Sender<Result<u64, Unavailable>>) {
        let begun = if self.may_tidy() {
            self.begin_epoch()
        } else {
            Err(Unavailable)
        };
        let _ = reply.send(begun);
    }

    fn server_key(&mut self, new: &Sealed) -> Result<Sealed, Unavailable> {
        if !self.may_tidy() {
            return Err(Unavailable);
        }
        self.stored_server_key(new).map_err(|fault| {
            self.fail(&fault);
            Unavailable
        })
    }

    fn stored_server_key(&mut self, new: &Sealed) -> Result<Sealed, Fault> {
        let db = self.db.clone();
        if let Some(stored) = db.get(key::server_key())? {
            return Ok(read_server_key(&stored)?);
        }
        let mut rows = Overlay::new(&db);
        rows.put(
            key::server_key().into(),
            write_server_key(new).as_slice().into(),
        );
        self.persist(rows)?;
        Ok(new.clone())
    }

    /// Whether jobs that need no more room may be written: a service can start with a full disk and
    /// remove what is old.
    fn may_tidy(&mut self) -> bool {
        !self.state.failed() && self.disk.has_room_to_tidy()
    }

    fn begin_epoch(&mut self) -> Result<u64, Unavailable> {
        let db = self.db.clone();
        let mut rows = Overlay::new(&db);
        let begun = self.epochs.begin(&mut rows);
        self.persist(rows).map(|()| begun).map_err(|fault| {
            self.fail(&fault);
            Unavailable
        })
    }

    fn remove_old(&mut self, retention: &Retention, max: u32) -> Result<SweepReport, Unavailable> {
        if !self.may_tidy() {
            return Err(Unavailable);
        }
        let db = self.db.clone();
        let mut rows = Overlay::new(&db);
        let written = self.written.take().unwrap_or_default();
        let mut due = SweepTargets {
            retention: *retention,
            ledger: &mut self.ledger,
        };
        let swept = sweep::sweep(&mut due, max, written, &mut rows)
            .and_then(|swept| self.persist(rows).map(|()| swept));
        if swept.as_ref().is_ok_and(|swept| swept.more) {
            self.written = Some(0);
        }
        swept.map_err(|fault| {
            self.fail(&fault);
            Unavailable
        })
    }

    /// Makes rows durable. sled's flush passes everything to the kernel and waits only for
    /// `sync_file_range`; the fsync after it is what survives a power cut.
    fn persist(&mut self, mut rows: Overlay<'_>) -> Result<(), Fault> {
        if rows.is_empty() {
            return Ok(());
        }
        self.last_group.number(&mut rows);
        self.state.begin_group();
        let changed = rows.len();
        let moved = DeviceCounts::moved_by(&rows)?;
        known_devices::add(&rows, &self.state.known_devices)?;
        let changes_tokens = token_cache::is_changed_by(&rows);
        let mut keeping = self.kept_writes.hold();
        let encoded = keeping.encoded(&rows);
        self.write_durably(rows.into_batch())
            .inspect_err(|_| keeping.miss())?;
        if let Some(encoded) = encoded {
            keeping.keep(&encoded);
        }
        drop(keeping);
        if changes_tokens {
            self.tokens.forget();
        }
        self.last_group.note();
        self.state
            .activity
            .count_events(self.ledger.events_written());
        let begun = self.ledger.settle();
        self.state.reach(self.ledger.newest());
        self.state.end_group();
        self.state.notifiers.notify(begun);
        self.state
            .meters
            .known(moved.registered, moved.unregistered);
        free_replaced(changed);
        Ok(())
    }

    fn write_durably(&self, batch: Batch) -> Result<(), Fault> {
        self.state.apply(|| self.db.apply_batch(batch))?;
        self.db.flush()?;
        let written_at = Instant::now();
        self.file.sync_data().map_err(Fault::Sync)?;
        self.state.meters.synced(written_at.elapsed());
        Ok(())
    }

    fn fail(&self, fault: &Fault) {
        tracing::error!(%fault, "the store cannot be written; all further calls fail");
        self.state.fail();
    }
}

/// Frees the memory that the rows of a group replaced.
///
/// sled leaves that to crossbeam-epoch, which frees a few hundred things for every 128 accesses to
/// the tree. A group accesses the tree once and replaces a page for each of its rows, so without
/// help the memory of a fill grows with the fill.
pub(super) fn free_replaced(rows: usize) {
    for _ in 0..=rows / ROWS_FREED {
        crossbeam_epoch::pin().flush();
    }
}

/// Records that no commit can succeed any more when the thread panics.
pub(super) struct PanicGuard(pub(super) Arc<CommitState>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!(
                "a thread of the store panicked, probably because its files were changed: nothing \
                 is written or read any more until the service is restarted"
            );
            self.0.fail();
        }
    }
}
