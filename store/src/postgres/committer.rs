//! Who writes? One task, which commits everything that is queued as one transaction.
//!
//! A group whose connection is lost may be durable or not. The committer finds out before it
//! answers: the transaction wrote the number of the group first, and its row is locked until the
//! transaction has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};
use engine::ids::CustomerId;
use engine::known_devices::DeviceMark;
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio_postgres::error::SqlState;

use super::fault::PostgresFault;
use super::group::{Decided, GroupId, GroupTransaction};
use super::partitions::Partitions;
use super::plan::RowPlan;
use super::sweep::{sweep, tidy_partitions};
use crate::commit_state::CommitState;
use crate::meters::BatchContents;
use crate::record::server_key::{read_server_key, write_server_key};
use crate::{CommitError, Retention, SweepReport, Unavailable};

/// The most batches in a group: far more than there are writers, and few enough that the first of
/// them does not wait long for the last.
const GROUP_BATCHES_MAX: usize = 1_024;

/// The most bytes in a group, so that a transaction takes milliseconds.
const GROUP_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// How often a group is tried whose transaction the server gave up: a deadlock with another
/// process, or a row that another process put at the same time.
const TRIES_MAX: u32 = 4;

/// The times between two attempts to connect.
const BACK_OFF: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// How long a batch may wait while there is no connection.
const OUTAGE_MAX: Duration = Duration::from_secs(5);

/// How often a full disk, or a server that is away, is tried while no job arrives.
const RECHECK: Duration = Duration::from_secs(1);

/// A job for the committer.
pub(super) enum CommitterJob {
    /// Make a batch durable.
    Commit(Box<QueuedRows>),
    /// Remove what is too old: at most so many things.
    Sweep(Retention, u32, Answer<SweepReport>),
    /// Begin an epoch, or that of a lease.
    TakeOver(Option<u64>, Answer<u64>),
    /// Store the key of the service, unless there is one.
    ServerKey(Sealed, Answer<Sealed>),
}

/// Where an answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Unavailable>>;

/// A batch, and who waits for it.
pub(super) struct QueuedRows {
    /// The batch as rows.
    pub(super) plan: RowPlan,
    /// What the batch contains.
    pub(super) contents: BatchContents,
    /// The requests that it creates, of one customer.
    pub(super) requests: Option<(CustomerId, u64)>,
    /// When it was queued.
    pub(super) handed_over_at: Instant,
    /// Where the verdict goes.
    pub(super) reply: oneshot::Sender<Result<(), CommitError>>,
}

/// The only writer of this process.
pub(super) struct PostgresCommitter {
    pool: Pool,
    connection: Option<Object>,
    group: GroupId,
    /// The epoch of the lease of the active node, if this is it.
    lease: Option<u64>,
    /// The epoch that this process took the store over in, by the lease or without one; 0 before.
    epoch: u64,
    partitions: Partitions,
    state: Arc<CommitState>,
    now: fn() -> Timestamp,
    jobs: Receiver<CommitterJob>,
}

/// Why a transaction did not succeed.
enum Failure {
    /// The connection was lost: whether it is durable is unknown.
    Lost,
    /// The server gave it up for a reason that may be gone: try again.
    Again,
    /// The disk of the server is full.
    DiskFull,
    /// The server refuses it.
    Refused,
    /// It was sent, and whether it is durable cannot be found out.
    Unknown,
    /// There is no connection: nothing was sent.
    Away,
}

impl PostgresCommitter {
    /// A committer that writes over the one connection of a pool.
    pub(super) fn new(
        pool: Pool,
        group: GroupId,
        state: Arc<CommitState>,
        now: fn() -> Timestamp,
        jobs: Receiver<CommitterJob>,
    ) -> Self {
        Self {
            pool,
            connection: None,
            group,
            lease: None,
            epoch: 0,
            partitions: Partitions::default(),
            state,
            now,
            jobs,
        }
    }

    /// Makes the partitions of the next days.
    pub(super) async fn prepare(&mut self) -> Result<(), PostgresFault> {
        let connection = self.pool.get().await?;
        self.partitions.load(&connection).await?;
        let now = (self.now)();
        self.partitions.make_ahead(now, &connection).await?;
        self.connection = Some(connection);
        Ok(())
    }

    /// Works until all senders are gone and every queued job is done.
    pub(super) async fn run(mut self) {
        let _tell = PanicGuard(Arc::clone(&self.state));
        while let Some(first) = self.wait().await {
            let mut next = Some(first);
            while let Some(job) = next.take() {
                match job {
                    CommitterJob::Commit(first) => next = self.commit(*first).await,
                    CommitterJob::Sweep(retention, max, reply) => {
                        let _ = reply.send(self.sweep(&retention, max).await);
                    }
                    CommitterJob::TakeOver(lease, reply) => {
                        self.lease = lease;
                        let _ = reply.send(self.take_over().await);
                    }
                    CommitterJob::ServerKey(new, reply) => {
                        drop(reply.send(self.server_key(&new).await))
                    }
                }
            }
        }
    }

    /// The next job. While there is none, and new work is refused because the disk is full or the
    /// server away, writing is tried at intervals.
    async fn wait(&mut self) -> Option<CommitterJob> {
        loop {
            match tokio::time::timeout(RECHECK, self.jobs.recv()).await {
                Ok(job) => return job,
                Err(_) if self.state.disk_full() || self.state.is_server_lost() => {
                    self.try_writing().await;
                }
                Err(_) => {}
            }
        }
    }

    async fn try_writing(&mut self) {
        let committer = self.group.committer;
        let Ok(connection) = self.connection().await else {
            return;
        };
        let written = connection
            .execute(
                "UPDATE committer SET last_group = last_group WHERE id = $1",
                &[&committer],
            )
            .await;
        match written {
            Ok(_) => self.state.free_disk(),
            Err(error) => drop(self.failure(&error.into())),
        }
    }

    /// Commits a batch together with all that are queued behind it; returns the first job that is
    /// no commit.
    async fn commit(&mut self, first: QueuedRows) -> Option<CommitterJob> {
        let (group, next) = self.gather(first);
        self.state.meters.gathered(group.len());
        let plans: Vec<&RowPlan> = group.iter().map(|waiting| &waiting.plan).collect();
        let verdicts = self.verdicts_on(&plans).await;
        for (waiting, verdict) in group.into_iter().zip(verdicts) {
            self.state.leave(waiting.plan.bytes());
            let took = waiting.handed_over_at.elapsed();
            self.state.meters.judged(waiting.contents, took, verdict);
            if let (Ok(()), Some((customer, count))) = (verdict, &waiting.requests) {
                self.state.activity.count_requests(customer, *count);
            }
            // The caller may have stopped waiting.
            let _ = waiting.reply.send(verdict);
        }
        next
    }

    fn gather(&mut self, first: QueuedRows) -> (Vec<QueuedRows>, Option<CommitterJob>) {
        let mut bytes = first.plan.bytes();
        let mut group = vec![first];
        while group.len() < GROUP_BATCHES_MAX && bytes < GROUP_BYTES_MAX {
            match self.jobs.try_recv() {
                Ok(CommitterJob::Commit(waiting)) => {
                    bytes += waiting.plan.bytes();
                    group.push(*waiting);
                }
                Ok(
                    other @ (CommitterJob::Sweep(..)
                    | CommitterJob::TakeOver(..)
                    | CommitterJob::ServerKey(..)),
                ) => {
                    return (group, Some(other));
                }
                Err(_) => break,
            }
        }
        (group, None)
    }

    /// The verdict on each batch of a group. If the server refuses the group, each batch is tried
    /// alone, so that one that cannot be stored does not take the others along.
    async fn verdicts_on(&mut self, plans: &[&RowPlan]) -> Vec<Result<(), CommitError>> {
        let all = |verdict| vec![verdict; plans.len()];
        match self.write(plans).await {
            Ok(decided) => decided.verdicts,
            Err(Failure::DiskFull | Failure::Away | Failure::Lost | Failure::Again) => {
                all(Err(CommitError::Full))
            }
            Err(Failure::Refused) if plans.len() > 1 => {
                let mut verdicts = Vec::with_capacity(plans.len());
                for plan in plans {
                    let alone = self.write(&[*plan]).await;
                    verdicts.push(match alone {
                        Ok(decided) => decided.verdicts.first().copied().unwrap_or(Ok(())),
                        Err(Failure::DiskFull | Failure::Away | Failure::Lost | Failure::Again) => {
                            Err(CommitError::Full)
                        }
                        Err(Failure::Refused | Failure::Unknown) => Err(CommitError::Unavailable),
                    });
                }
                verdicts
            }
            // A group that may be durable must not be written again.
            Err(Failure::Refused | Failure::Unknown) => all(Err(CommitError::Unavailable)),
        }
    }

    /// Writes a group, again if the server gave it up; returns only what is known.
    async fn write(&mut self, plans: &[&RowPlan]) -> Result<Decided, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let written = self.write_once(plans).await;
            if let Err(Failure::Lost | Failure::Again) = written
                && tries < TRIES_MAX
            {
                continue;
            }
            return written;
        }
    }

    /// Writes a group. If the connection is lost, whether it is durable is found out.
    async fn write_once(&mut self, plans: &[&RowPlan]) -> Result<Decided, Failure> {
        self.connection().await.map_err(|_| Failure::Away)?;
        self.group.number += 1;
        self.state.begin_group();
        let mut decided = None;
        let failure = match self.transact(plans, &mut decided).await {
            Ok(()) => None,
            Err(fault) => Some(self.failure(&fault)),
        };
        match (failure, decided) {
            (None, Some(decided)) => Ok(self.settle(decided)),
            (Some(Failure::Lost), Some(decided)) => match self.is_durable().await {
                Ok(true) => Ok(self.settle(decided)),
                Ok(false) => Err(Failure::Lost),
                Err(Unavailable) => Err(Failure::Unknown),
            },
            (Some(failure), _) => {
                if !matches!(failure, Failure::Lost) {
                    self.roll_back().await;
                }
                Err(failure)
            }
            (None, None) => Err(Failure::Refused),
        }
    }

    /// The transaction of a group. What was decided is there from before the commit is sent.
    async fn transact(
        &mut self,
        plans: &[&RowPlan],
        sent: &mut Option<Decided>,
    ) -> Result<(), PostgresFault> {
        let Some(client) = &self.connection else {
            return Ok(());
        };
        let days = plans.iter().flat_map(|plan| plan.days.iter().copied());
        self.partitions.ensure(days, client).await?;
        let mut group = GroupTransaction::begin(self.group, self.epoch, plans, client).await?;
        group.decide(plans).await?;
        let known = &self.state.known_devices;
        for (endpoint, key, address) in plans.iter().flat_map(|plan| &plan.devices) {
            known.add(DeviceMark::Endpoint(endpoint.as_str()));
            known.add(DeviceMark::Key(key.prefix()));
            if let Some(address) = address {
                known.add(DeviceMark::Address(*address));
            }
        }
        let begun = Instant::now();
        group.commit(sent).await?;
        self.state.meters.synced(begun.elapsed());
        Ok(())
    }

    /// What follows once a group is durable.
    fn settle(&self, decided: Decided) -> Decided {
        if decided.is_superseded {
            tracing::error!(
                "another process has taken the store over: nothing is written any more"
            );
            self.state.fail();
        }
        if let Some(newest) = decided.newest {
            self.state.reach(newest);
        }
        self.state.free_disk();
        self.state.end_group();
        let events = decided.events.iter().map(|(customer, _)| (customer, 1));
        self.state.activity.count_events(events);
        self.state.notifiers.notify(decided.events.clone());
        decided
    }

    /// Whether the last group is durable: waits until the server is back, and the transaction has
    /// ended.
    async fn is_durable(&mut self) -> Result<bool, Unavailable> {
        const LAST: &str = "SELECT last_group FROM committer WHERE id = $1 FOR UPDATE";
        loop {
            let (committer, number) = (self.group.committer, self.group.number);
            let is_over = self.jobs.is_closed();
            let connection = match self.connection().await {
                Ok(connection) => connection,
                Err(Unavailable) if is_over => return Err(Unavailable),
                Err(Unavailable) => continue,
            };
            match connection.query_opt(LAST, &[&committer]).await {
                Ok(row) => return Ok(row.is_some_and(|row| row.get::<_, i64>(0) >= number)),
                Err(error) => {
                    let fault = PostgresFault::from(error);
                    if !matches!(self.failure(&fault), Failure::Lost | Failure::Again) {
                        return Err(Unavailable);
                    }
                }
            }
        }
    }

    /// Begins an epoch later than any before, unless the lease began one. Waits for the groups that
    /// it fences off.
    async fn take_over(&mut self) -> Result<u64, Unavailable> {
        if let Some(epoch) = self.lease {
            self.epoch = epoch;
            return Ok(epoch);
        }
        const EPOCH: &str = "SELECT epoch FROM store_state FOR UPDATE";
        const BEGIN: &str = "UPDATE store_state SET epoch = 1 + \
             greatest(epoch, (SELECT max(epoch) FROM shard_epoch WHERE shard < 1024)) \
             RETURNING epoch";
        const FENCE: &str = "INSERT INTO shard_epoch SELECT generate_series(0, 1023), $1 \
             ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch";
        for _ in 0..TRIES_MAX {
            let connection = self.connection().await?;
            let begun: Result<i64, tokio_postgres::Error> = async {
                let transaction = connection.transaction().await?;
                transaction.query_one(EPOCH, &[]).await?;
                let epoch: i64 = transaction.query_one(BEGIN, &[]).await?.get(0);
                // Without leases it takes all shards, and no deliveries.
                transaction.execute(FENCE, &[&epoch]).await?;
                transaction.commit().await?;
                Ok(epoch)
            }
            .await;
            match begun {
                Ok(epoch) => {
                    self.epoch = epoch.cast_unsigned();
                    return Ok(self.epoch);
                }
                // An epoch too many fences nobody off that is not superseded.
                Err(error) => drop(self.failure(&error.into())),
            }
        }
        Err(Unavailable)
    }

    /// The key of the service, which is stored unless there is one.
    async fn server_key(&mut self, new: &Sealed) -> Result<Sealed, Unavailable> {
        const KEY: &str = "UPDATE store_state SET server_key = coalesce(server_key, $1) \
             WHERE $2::bigint IN (0, epoch) RETURNING server_key";
        let (new, epoch) = (write_server_key(new), self.epoch.cast_signed());
        for _ in 0..TRIES_MAX {
            let connection = self.connection().await?;
            match connection.query_opt(KEY, &[&new, &epoch]).await {
                Ok(None) => return Err(Unavailable),
                Ok(Some(row)) => {
                    let key: Vec<u8> = row.get(0);
                    return read_server_key(&key).map_err(|damage| {
                        tracing::error!(%damage, "the key of the service cannot be read");
                        Unavailable
                    });
                }
                Err(error) => drop(self.failure(&error.into())),
            }
        }
        Err(Unavailable)
    }

    async fn sweep(&mut self, retention: &Retention, max: u32) -> Result<SweepReport, Unavailable> {
        self.connection().await?;
        let Some(client) = &self.connection else {
            return Err(Unavailable);
        };
        let now = (self.now)();
        let (partitions, epoch) = (&mut self.partitions, self.epoch);
        let tidied = tidy_partitions(retention, now, (partitions, epoch), client).await;
        let swept = match tidied {
            Ok(()) => sweep(retention, max, (self.group.slot, epoch), client).await,
            Err(fault) => Err(fault),
        };
        match swept {
            Ok(swept) => Ok(swept),
            Err(fault) => {
                self.failure(&fault);
                self.roll_back().await;
                Err(Unavailable)
            }
        }
    }

    /// Why a statement failed. A lost connection is given up.
    fn failure(&mut self, fault: &PostgresFault) -> Failure {
        let is_closed = self.connection.as_ref().is_none_or(|it| it.is_closed());
        let code = fault.code().map(SqlState::code);
        let failure = match code {
            None => Failure::Lost,
            Some(code) if is_closed || code.starts_with("57P") || code.starts_with("08") => {
                Failure::Lost
            }
            // The server became a standby: another one is the primary.
            Some("25006") => Failure::Lost,
            Some("53100") => Failure::DiskFull,
            // A deadlock, a row or a partition of another process, a lock that was not to be had.
            Some("40P01" | "40001" | "23505" | "23514" | "55P03") => Failure::Again,
            Some(_) => Failure::Refused,
        };
        match failure {
            Failure::Lost => {
                tracing::warn!(%fault, "the connection to PostgreSQL was lost");
                // A connection that failed is not used again, whatever state it is in.
                drop(self.connection.take().map(Object::take));
            }
            Failure::DiskFull => {
                if !self.state.disk_full() {
                    tracing::warn!("the disk of the PostgreSQL server is full");
                }
                self.state.fill_disk();
            }
            Failure::Again => tracing::debug!(%fault, "a transaction was given up"),
            Failure::Refused | Failure::Unknown | Failure::Away => {
                tracing::error!(%fault, "a transaction was refused");
            }
        }
        failure
    }

    async fn roll_back(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        if let Err(error) = connection.batch_execute("ROLLBACK").await {
            self.failure(&error.into());
        }
        // Another process may have dropped a partition.
        self.partitions = Partitions::default();
    }

    /// The connection. If there is none for a while, what is queued is refused, too.
    async fn connection(&mut self) -> Result<&mut Object, Unavailable> {
        if self.connection.as_ref().is_some_and(|it| it.is_closed()) {
            drop(self.connection.take().map(Object::take));
        }
        let begun = Instant::now();
        let mut pauses = BACK_OFF.into_iter();
        while self.connection.is_none() {
            match self.pool.get().await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.state.reach_server();
                    break;
                }
                Err(error) => {
                    tracing::warn!(fault = %PostgresFault::from(error), "the server is away")
                }
            }
            self.state.lose_server();
            if begun.elapsed() >= OUTAGE_MAX {
                self.refuse_queued();
                return Err(Unavailable);
            }
            let pause = pauses.next().unwrap_or(Duration::from_secs(1));
            tokio::time::sleep(pause).await;
        }
        self.connection.as_mut().ok_or(Unavailable)
    }

    /// Refuses what is queued: none of it was sent.
    fn refuse_queued(&mut self) {
        while let Ok(job) = self.jobs.try_recv() {
            match job {
                CommitterJob::Commit(waiting) => {
                    self.state.leave(waiting.plan.bytes());
                    self.state.meters.refused(CommitError::Full);
                    let _ = waiting.reply.send(Err(CommitError::Full));
                }
                CommitterJob::Sweep(_, _, reply) => drop(reply.send(Err(Unavailable))),
                CommitterJob::TakeOver(_, reply) => drop(reply.send(Err(Unavailable))),
                CommitterJob::ServerKey(_, reply) => drop(reply.send(Err(Unavailable))),
            }
        }
    }
}

/// Tells everybody that the committer panicked.
struct PanicGuard(Arc<CommitState>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(
                "the committer panicked: nothing is written any more until the service is restarted"
            );
            self.0.fail();
        }
    }
}
