//! What makes decisions durable on a PostgreSQL server: rows of typed columns behind one committer.
//!
//! ```text
//!  commit(batch) -> plan: rows and checks made on the caller's thread
//!        -> bounded queue -> committer task: check and write a group as one transaction
//!                         -> every receipt of the group
//!  a question    -> a connection of a pool -> answer
//! ```
//!
//! The connections live on a runtime of the store's own, so its futures work on any runtime and on
//! none. A query sees only what is durable. Decision 0127 has the reasons of the layout.

mod cell;
mod committer;
mod fault;
mod fence;
mod group;
mod known;
mod migration;
mod nodes;
mod open;
mod partitions;
mod pipeline;
mod plan;
mod readers;
mod reads;
mod rekey;
mod removal;
mod sql_types;
mod sweep;
mod table;
mod url;
mod writes;

#[cfg(test)]
pub(crate) use self::migration::records_of;
pub(crate) use self::migration::{PageRows, PostgresSource, PostgresTarget};
pub use self::nodes::{FoundStore, NewNode, NodeDatabase, PostgresNodes};
pub use self::open::{PostgresOpenError, PostgresOptions};
pub use self::url::{InvalidPostgresUrl, PostgresUrl};

use std::sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc};
use std::time::Instant;

use engine::change::Batch;
use engine::delivery::backlog::Sequence;
use engine::sealed::Sealed;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;

use self::committer::{CommitterJob, PostgresCommitter, QueuedRows};
use self::group::GroupId;
use self::open::{Server, migrate};
use self::plan::{Numbers, RowPlan};
use self::readers::ReaderPools;
use self::sql_types::SqlId;
use crate::activity::created_requests;
use crate::commit_state::CommitState;
use crate::meters::BatchContents;
use crate::{
    Backup, BackupRefused, BackupStream, Commit, CommitError, Maintenance, Pressure, ReadAnswer,
    Receipt, Retention, SweepReport, Unavailable,
};

/// The threads of the connections: they move bytes, the work is the server's.
const THREADS: usize = 2;

/// How many counts there are of each kind: a process adds to those of its slot, so that processes
/// rarely wait for each other.
const SLOTS: u8 = 16;

/// The store on a PostgreSQL server.
///
/// Dropping it commits what is queued.
pub struct PostgresStore {
    queue: Option<Sender<CommitterJob>>,
    /// Answered when the committer has ended.
    ended: Mutex<std_mpsc::Receiver<()>>,
    numbers: Numbers,
    readers: ReaderPools,
    state: Arc<CommitState>,
    is_new: bool,
    runtime: Option<Runtime>,
}

impl PostgresStore {
    /// Opens the store, and brings its schema up to date.
    pub fn open(options: PostgresOptions) -> Result<Self, PostgresOpenError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(PostgresOpenError::Threads)?;
        let server = Server::of(&options);
        let readers = ReaderPools {
            runtime: runtime.handle().clone(),
            single: server.pool(options.readers),
            lists: server.pool(options.readers),
        };
        let mut id = [0; 16];
        getrandom::fill(&mut id).expect("the operating system has random bytes once it runs");
        let numbers = Numbers {
            slot: id[0] % SLOTS,
            values_max: options.last_values_max,
        };
        let group = GroupId {
            committer: SqlId(id),
            number: 0,
            slot: numbers.slot,
        };
        let state = Arc::new(CommitState::new(options.queue_max, options.now));
        let (queue, jobs) = channel(options.queue_max.max(1));
        let pool = server.pool(1);
        let committer = PostgresCommitter::new(pool, group, Arc::clone(&state), options.now, jobs);
        let opening = open(readers.clone(), Arc::clone(&state), committer);
        // Whoever opens the store may be on a runtime, which cannot wait for another one.
        let (reply, opened) = std_mpsc::channel();
        runtime.spawn(async move { reply.send(opening.await) });
        let (committer, is_new) = opened.recv().expect("the runtime answers")?;
        let (end, ended) = std_mpsc::channel();
        runtime.spawn(async move {
            committer.run().await;
            drop(end);
        });
        Ok(Self {
            queue: Some(queue),
            ended: Mutex::new(ended),
            numbers,
            readers,
            state,
            is_new,
            runtime: Some(runtime),
        })
    }

    /// Whether no process has taken it over: then nothing in it is sealed.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Queues a batch for the committer, or refuses it at once.
    fn enqueue(
        &self,
        batch: &Batch,
        reply: oneshot::Sender<Result<(), CommitError>>,
    ) -> Result<(), CommitError> {
        if self.state.failed() {
            return Err(CommitError::Unavailable);
        }
        let plan = RowPlan::of(batch, self.numbers);
        let bytes = plan.bytes();
        if !self.state.enter(bytes) {
            return Err(CommitError::Full);
        }
        let waiting = QueuedRows {
            plan,
            contents: BatchContents::of(batch),
            requests: created_requests(batch),
            handed_over_at: Instant::now(),
            reply,
        };
        self.send(CommitterJob::Commit(Box::new(waiting)))
            .inspect_err(|_| self.state.leave(bytes))
    }

    /// Queues a job for the committer and waits for its answer.
    fn answer_of<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, Unavailable>>) -> CommitterJob,
    ) -> ReadAnswer<T> {
        let (reply, answer) = oneshot::channel();
        if self.state.failed() || self.send(job(reply)).is_err() {
            return Box::pin(std::future::ready(Err(Unavailable)));
        }
        Box::pin(async move { answer.await.unwrap_or(Err(Unavailable)) })
    }

    /// Reads which devices there are: from now on this process alone puts new ones. Until all are
    /// read, and in a process that does not, every sender may be a device.
    fn learn_devices(&self) {
        let (lists, known) = (
            self.readers.lists.clone(),
            Arc::clone(&self.state.known_devices),
        );
        self.readers.runtime.spawn(async move {
            if let Err(fault) = known::load(&lists, &known).await {
                tracing::error!(%fault, "the names of devices cannot be read");
            }
        });
    }

    fn send(&self, job: CommitterJob) -> Result<(), CommitError> {
        let queue = self.queue.as_ref().ok_or(CommitError::Unavailable)?;
        queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => CommitError::Full,
            TrySendError::Closed(_) => CommitError::Unavailable,
        })
    }
}

/// Prepares the schema and what is known of it in memory; says whether the store is new.
async fn open(
    readers: ReaderPools,
    state: Arc<CommitState>,
    mut committer: PostgresCommitter,
) -> Result<(PostgresCommitter, bool), PostgresOpenError> {
    migrate(&readers.single).await?;
    let unreadable = |why: tokio_postgres::Error| PostgresOpenError::Unreadable(why.to_string());
    let connection = readers.single.get().await.map_err(open::no_connection)?;
    open::refuse_unfinished(&connection).await?;
    let known = "SELECT newest, epoch FROM event_sequence, store_state";
    let known = connection.query_one(known, &[]).await.map_err(unreadable)?;
    let (newest, epoch): (i64, i64) = (known.get(0), known.get(1));
    state.reach(Sequence(newest.cast_unsigned()));
    let prepared = committer.prepare().await;
    prepared.map_err(|fault| PostgresOpenError::Unreadable(fault.to_string()))?;
    tokio::spawn(known::count(readers.lists.clone(), Arc::clone(&state)));
    Ok((committer, epoch == 0))
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queue = None;
        // Without an answer: the sender is dropped at the end.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv();
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped on another runtime, which must not wait.
            runtime.shutdown_background();
        }
    }
}

impl Commit for PostgresStore {
    fn commit(&self, batch: Batch) -> Receipt {
        let (reply, verdict) = oneshot::channel();
        self.state.receipt(self.enqueue(&batch, reply), verdict)
    }

    fn pressure(&self) -> Pressure {
        self.state.pressure()
    }
}

impl Backup for PostgresStore {
    fn backup(&self) -> Result<BackupStream, BackupRefused> {
        Err(BackupRefused::OfDatabase)
    }
}

impl Maintenance for PostgresStore {
    fn take_over(&self) -> ReadAnswer<u64> {
        self.learn_devices();
        self.answer_of(|reply| CommitterJob::TakeOver(None, reply))
    }

    fn take_over_by_lease(&self, epoch: u64) -> ReadAnswer<u64> {
        self.learn_devices();
        self.answer_of(|reply| CommitterJob::TakeOver(Some(epoch), reply))
    }

    fn server_key(&self, new: Sealed) -> ReadAnswer<Sealed> {
        self.answer_of(|reply| CommitterJob::ServerKey(new, reply))
    }

    fn sweep(&self, retention: Retention, max: u32) -> ReadAnswer<SweepReport> {
        self.answer_of(|reply| CommitterJob::Sweep(retention, max, reply))
    }
}
