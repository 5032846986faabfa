//! What makes decisions durable on one machine: an embedded sled tree behind one committer.
//!
//! ```text
//!  commit(batch) -> plan: rows and checks made on the caller's thread
//!        -> bounded queue -> committer thread: check, apply a group as one sled batch, flush,
//!                            fsync -> every receipt of the group
//!  a question    -> bounded queue -> reader threads -> answer
//! ```
//!
//! Every write goes through the committer and is fsynced before it is acknowledged. sled's own
//! flush does not survive a power cut (it ends in `sync_file_range`), so its file is fsynced
//! through a handle of ours; its background flusher is off and `flush_async` is never called. A
//! query may see a batch after it is applied and before it is durable, never half of a row; an
//! answer that is shown to a caller waits until what it saw is durable. A list is not a snapshot.

mod answers;
mod apply;
mod ask;
mod backup;
mod block_cache;
mod check;
mod committer;
mod counting;
mod customers_having;
mod definitions;
mod destinations;
mod device_counts;
mod device_log;
mod disk;
mod epochs;
mod fault;
mod jobs;
mod key;
mod known_devices;
mod kv;
mod last_group;
mod ledger;
mod listing;
mod log_entries;
mod migration;
mod names;
mod open;
mod overlay;
mod plan;
mod readers;
mod rekey;
mod reserve_file;
mod sms;
mod sweep;
#[cfg(test)]
mod tests;
mod token_cache;

pub use self::backup::format::BackupFault;
pub use self::backup::restore::RestoreError;
pub use self::check::{CheckReport, Finding, OfflineStore, Problem};
pub(crate) use self::migration::{SledTarget, WholeStore};
pub use self::open::{OpenError, Options};

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use ::sled::Db;
use engine::change::Batch;
use engine::sealed::Sealed;
use tokio::sync::oneshot;

use self::backup::KeptWrites;
use self::block_cache::BlockCache;
use self::committer::{BatchTicket, Committer, Job, QueuedBatch, Reply};
use self::device_counts::DeviceCounts;
use self::disk::{Disk, FreeBytes};
use self::ledger::SharedHeads;
use self::open::Opened;
use self::plan::Plan;
use self::readers::Readers;
use self::reserve_file::ReserveFile;
use self::sweep::SweepRequest;
use self::token_cache::TokenCache;
use crate::activity::created_requests;
use crate::commit_state::CommitState;
use crate::meters::BatchContents;
use crate::{
    Commit, CommitError, Loss, Maintenance, Pressure, ReadAnswer, Receipt, Retention, SweepReport,
    Unavailable,
};

/// The embedded store.
///
/// Dropping it commits what is queued, waits for its threads and closes its files.
pub struct SledStore {
    queue: Option<SyncSender<Job>>,
    committer: Option<JoinHandle<()>>,
    readers: Readers,
    state: Arc<CommitState>,
    /// The newest events of devices.
    heads: SharedHeads,
    /// The blocks of events in memory.
    blocks: Arc<BlockCache>,
    /// The access tokens in memory.
    tokens: Arc<TokenCache>,
    kept_writes: KeptWrites,
    /// The tree, to be read as a whole.
    db: Db,
    lost: Option<Loss>,
    /// Held until everything else is closed.
    _lock: File,
}

impl SledStore {
    /// Opens the store in a directory, and creates it if it does not exist.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let opened = open::open(&options)?;
        Self::start(opened, &options, disk::free_bytes())
    }

    fn start(opened: Opened, options: &Options, free: FreeBytes) -> Result<Self, OpenError> {
        let refused = |source| OpenError::Io {
            path: options.path.clone(),
            source,
        };
        let Opened {
            db,
            file,
            lock,
            epochs,
            ledger,
            last_group,
            lost,
        } = opened;
        let state = Arc::new(CommitState::new(options.queue_max, options.now));
        state.meters.lost(lost);
        match DeviceCounts::load(&db) {
            Ok(known) => state.meters.known(known.registered, known.unregistered),
            Err(fault) => tracing::error!(%fault, "the number of devices cannot be read"),
        }
        let reserve_file = ReserveFile::of(&options.path, options.reserve_file_bytes);
        let reserve = (options.disk_reserve_bytes, reserve_file);
        let disk = Disk::new(&options.path, reserve, free);
        let (queue, jobs) = sync_channel(options.queue_max.max(1));
        let (heads, blocks) = (ledger.heads(), ledger.cache());
        let tokens = Arc::<TokenCache>::default();
        let kept_writes = KeptWrites::of(&options.path);
        let known = (
            epochs,
            ledger,
            last_group,
            kept_writes.clone(),
            Arc::clone(&tokens),
        );
        let committer = Committer::new(db.clone(), file, disk, Arc::clone(&state), jobs, known);
        let committer = Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || committer.run())
            .map_err(refused)?;
        let readers = Readers::start(&db, &state).map_err(refused)?;
        let known_devices = Arc::clone(&state.known_devices);
        // Answered in the background; until then every sender may be a device.
        drop(readers.prepare(move |db| known_devices::load(db, &known_devices)));
        Ok(Self {
            queue: Some(queue),
            committer: Some(committer),
            readers,
            state,
            heads,
            blocks,
            tokens,
            kept_writes,
            db,
            lost,
            _lock: lock,
        })
    }

    /// What was lost from its end before it was opened, if the operator accepted that.
    pub fn accepted_loss(&self) -> Option<Loss> {
        self.lost
    }

    /// Queues a batch for the committer, or refuses it at once.
    fn enqueue(&self, batch: &Batch, reply: Reply) -> Result<(), CommitError> {
        if self.state.failed() {
            return Err(CommitError::Unavailable);
        }
        let plan = Plan::of(batch);
        let bytes = plan.bytes();
        if !self.state.enter(bytes) {
            return Err(CommitError::Full);
        }
        let caller = BatchTicket {
            bytes,
            contents: BatchContents::of(batch),
            requests: created_requests(batch),
            handed_over_at: Instant::now(),
            reply,
        };
        let waiting = QueuedBatch { plan, caller };
        self.send(Job::Commit(Box::new(waiting)))
            .inspect_err(|_| self.state.leave(bytes))
    }

    /// Queues a job for the committer and waits for its answer.
    fn answer_of<T: Send + 'static>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, Unavailable>>,
    ) -> ReadAnswer<T> {
        if self.state.failed() || self.send(job).is_err() {
            return Box::pin(std::future::ready(Err(Unavailable)));
        }
        Box::pin(async move { answer.await.unwrap_or(Err(Unavailable)) })
    }

    fn send(&self, job: Job) -> Result<(), CommitError> {
        let queue = self.queue.as_ref().ok_or(CommitError::Unavailable)?;
        queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => CommitError::Full,
            TrySendError::Disconnected(_) => CommitError::Unavailable,
        })
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        self.readers.stop();
        self.queue = None;
        if let Some(committer) = self.committer.take() {
            // A committer that panicked has logged it and refused everything since.
            let _ = committer.join();
        }
    }
}

impl Commit for SledStore {
    fn commit(&self, batch: Batch) -> Receipt {
        let (reply, verdict) = oneshot::channel();
        self.state.receipt(self.enqueue(&batch, reply), verdict)
    }

    fn pressure(&self) -> Pressure {
        self.state.pressure()
    }
}

impl Maintenance for SledStore {
    fn take_over(&self) -> ReadAnswer<u64> {
        let (reply, begun) = oneshot::channel();
        self.answer_of(Job::TakeOver(reply), begun)
    }

    fn server_key(&self, new: Sealed) -> ReadAnswer<Sealed> {
        let (reply, stored) = oneshot::channel();
        self.answer_of(Job::ServerKey(new, reply), stored)
    }

    fn sweep(&self, retention: Retention, max: u32) -> ReadAnswer<SweepReport> {
        let (reply, swept) = oneshot::channel();
        self.answer_of(
            Job::Sweep(SweepRequest {
                retention,
                max,
                reply,
            }),
            swept,
        )
    }
}
