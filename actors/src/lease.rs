//! Does this process hold its leases? The shell of [`NodeLease`] is a thread of its
//! own, which nothing delays; what receives or sends asks [`is_held`] first, and waits for nobody.
//!
//! A process has one lease, as it has one id. Without a keeper it always holds its shards: those
//! of the embedded store are nobody else's.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use engine::ids::Partition;
use engine::limits;
use engine::node::lease::{
    LeaseAnswer, LeaseEffect, LeaseId, LeaseRequest, NodeLease, NodeRole, SteadyTime,
};
use metrics::{describe_gauge, gauge};
use store::{FoundStore, NodeDatabase, PostgresOpenError};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, sleep_until};
use tracing::{error, info, warn};

use crate::clock::steady_time;

/// Commands that may wait: each happens once.
const WAITING_MAX: usize = 8;

/// How often a delivery asks whether the lease is held again.
const LOOK: Duration = Duration::from_millis(100);

/// How long a process that ends tries to leave the list of nodes.
const LEAVE_MAX: Duration = Duration::from_secs(2);

const ACTIVE: &str = "signalbox_node_active";
const SHARDS: &str = "signalbox_node_shards";

/// Nothing is received or sent from this time on.
static HELD_UNTIL: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether anything may be received or sent now.
pub fn is_held() -> bool {
    match HELD_UNTIL.load(Ordering::Acquire) {
        u64::MAX => true,
        until => steady_time() < SteadyTime(until),
    }
}

/// Returns once something may be sent.
pub(crate) async fn held() {
    while !is_held() {
        sleep(LOOK).await;
    }
}

/// Describes the metrics of the node, and sets them for one that needs no lease.
pub fn describe_active() {
    describe_gauge!(ACTIVE, "1 while the node is the active one, 0 otherwise.");
    gauge!(ACTIVE).set(1.0);
    describe_gauge!(
        SHARDS,
        "How many of the 1,024 shards have the devices that the node serves."
    );
    gauge!(SHARDS).set(f64::from(limits::SHARDS));
}

/// What the keeper of the leases reports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LeaseReport {
    /// The node has these leases, each in its epoch.
    Began(Vec<(LeaseId, u64)>),
    /// The node is to stop to serve a partition, and then to say so
    /// ([`LeaseKeeper::given`]).
    Give(Partition),
    /// The node is to stop and give all leases up.
    Drain,
    /// All leases were given up, or there were none.
    Left,
}

enum LeaseCommand {
    StandBy,
    Given(Partition),
    Drain,
    Release,
    Leave,
}

/// The thread that keeps the lease.
pub struct LeaseKeeper {
    commands: mpsc::Sender<LeaseCommand>,
    reports: mpsc::UnboundedReceiver<LeaseReport>,
    is_answered: Arc<AtomicBool>,
}

impl LeaseKeeper {
    /// Joins the nodes of a database; nothing is received or sent before the lease is held. When
    /// another node has taken it, `superseded` is called, from a thread of no actor.
    pub async fn join(
        database: NodeDatabase,
        superseded: fn() -> Infallible,
    ) -> Result<(Self, FoundStore), LeaseJoinError> {
        describe_active();
        close();
        let (commands, commanded) = mpsc::channel(WAITING_MAX);
        // Nothing may delay the thread. There is one for each lease at most, and one for the end.
        let (reported, reports) = mpsc::unbounded_channel();
        let (reply, joined) = oneshot::channel();
        let is_answered = Arc::new(AtomicBool::new(true));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (node, rules) = database.node();
        let thread = LeaseThread {
            database: Arc::new(database),
            machine: NodeLease::new(steady_time(), node, rules),
            asked: None,
            reports: reported,
            is_answered: Arc::clone(&is_answered),
            until: SteadyTime::default(),
            role: NodeRole::Standby,
            superseded,
        };
        thread::Builder::new()
            .name("lease".to_owned())
            .spawn(move || {
                let _end = PanicGuard(superseded);
                runtime.block_on(async {
                    let found = thread.database.join().await;
                    let has_joined = found.is_ok();
                    if reply.send(found).is_ok() && has_joined {
                        thread.run(commanded).await;
                    }
                });
            })?;
        let found = joined
            .await
            .map_err(|_| io::Error::other("it has ended"))??;
        let keeper = Self {
            commands,
            reports,
            is_answered,
        };
        Ok((keeper, found))
    }

    /// Takes the lease once it is free.
    pub async fn stand_by(&self) {
        self.command(LeaseCommand::StandBy).await;
    }

    /// What happens next to the lease.
    pub async fn next(&mut self) -> LeaseReport {
        match self.reports.recv().await {
            Some(report) => report,
            None => pending().await,
        }
    }

    /// Whether the last request to the database was answered.
    pub fn is_answered(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_answered)
    }

    /// A partition is served no longer.
    pub async fn given(&self, partition: Partition) {
        self.command(LeaseCommand::Given(partition)).await;
    }

    /// Tells the other nodes that this one stops.
    pub async fn drain(&self) {
        self.command(LeaseCommand::Drain).await;
    }

    /// Gives the lease up, so that another node may take it at once: everything has stopped.
    pub async fn release(&mut self) {
        self.command(LeaseCommand::Release).await;
        while let Some(report) = self.reports.recv().await {
            if report == LeaseReport::Left {
                return;
            }
        }
    }

    /// Leaves the nodes once the lease is given up.
    pub async fn leave(mut self) {
        self.command(LeaseCommand::Leave).await;
        while self.reports.recv().await.is_some() {}
    }

    async fn command(&self, command: LeaseCommand) {
        if self.commands.send(command).await.is_err() {
            warn!("the keeper of the lease has stopped");
        }
    }
}

/// Why a node cannot join.
#[derive(Debug, thiserror::Error)]
pub enum LeaseJoinError {
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] PostgresOpenError),
    /// The thread cannot be started.
    #[error("the thread of the lease cannot be started: {0}")]
    Thread(#[from] io::Error),
}

struct LeaseThread {
    database: Arc<NodeDatabase>,
    machine: NodeLease,
    asked: Option<Pin<Box<dyn Future<Output = LeaseAnswer> + Send>>>,
    reports: mpsc::UnboundedSender<LeaseReport>,
    is_answered: Arc<AtomicBool>,
    until: SteadyTime,
    role: NodeRole,
    superseded: fn() -> Infallible,
}

impl LeaseThread {
    async fn run(mut self, mut commands: mpsc::Receiver<LeaseCommand>) {
        if commands.recv().await.is_none() {
            return;
        }
        loop {
            let mut out = Vec::new();
            let wake = self.wake();
            tokio::select! {
                biased;
                answer = answered(&mut self.asked) => {
                    self.asked = None;
                    self.note(&answer);
                    self.machine.handle_answer(steady_time(), answer, &mut out);
                }
                () = reached(wake) => self.machine.handle_timeout(steady_time(), &mut out),
                command = commands.recv() => match command {
                    Some(LeaseCommand::StandBy) => {}
                    Some(LeaseCommand::Given(partition)) => {
                        self.machine.given(steady_time(), partition);
                    }
                    Some(LeaseCommand::Drain) => self.machine.drain(steady_time()),
                    Some(LeaseCommand::Release) => self.machine.release(steady_time(), &mut out),
                    Some(LeaseCommand::Leave) => return self.database.leave(LEAVE_MAX).await,
                    None => return,
                },
            }
            for effect in out {
                self.perform(effect);
            }
            self.follow_role();
        }
    }

    fn perform(&mut self, effect: LeaseEffect) {
        match effect {
            LeaseEffect::Ask(request, patience_ms) => {
                self.asked = Some(asking(&self.database, request, patience_ms));
            }
            LeaseEffect::HoldUntil(until) => {
                self.until = until;
                HELD_UNTIL.store(until.0, Ordering::Release);
            }
            LeaseEffect::Begin(begun) => {
                for (lease, epoch) in &begun {
                    match lease {
                        LeaseId::Active => info!(epoch, "this node is the active one"),
                        LeaseId::Partition(Partition(partition)) => {
                            info!(epoch, partition, "this node serves a partition");
                        }
                    }
                }
                self.report(LeaseReport::Began(begun));
            }
            LeaseEffect::Give(partition) => {
                info!(partition = partition.0, "this node gives up a partition");
                self.report(LeaseReport::Give(partition));
            }
            LeaseEffect::Drain => {
                info!("this node is to drain");
                self.report(LeaseReport::Drain);
            }
            LeaseEffect::End => {
                error!("another node has the lease: this one ends");
                (self.superseded)();
            }
            LeaseEffect::Left => self.report(LeaseReport::Left),
        }
    }

    fn report(&self, report: LeaseReport) {
        if self.reports.send(report).is_err() {
            warn!("nobody follows the lease");
        }
    }

    fn note(&self, answer: &LeaseAnswer) {
        let is_answered = *answer != LeaseAnswer::None;
        self.is_answered.store(is_answered, Ordering::Relaxed);
    }

    /// Shows what the node does from now on.
    fn follow_role(&mut self) {
        let partitions = self.machine.served(steady_time()) as f64;
        let shards = partitions * f64::from(limits::SHARDS) / f64::from(limits::PARTITIONS);
        gauge!(SHARDS).set(shards);
        let role = self.machine.role(steady_time());
        if role == self.role {
            return;
        }
        match (self.role, role) {
            (_, NodeRole::Silent) => {
                warn!("the lease could not be renewed in time: this node is silent");
            }
            (NodeRole::Silent, NodeRole::Active) => {
                info!("the lease is renewed: this node goes on");
            }
            (_, NodeRole::Standby | NodeRole::Active | NodeRole::Ended) => {}
        }
        let is_active = role == NodeRole::Active;
        gauge!(ACTIVE).set(f64::from(u8::from(is_active)));
        self.role = role;
    }

    /// When the machine is due, or the lease ends.
    fn wake(&self) -> Option<SteadyTime> {
        let ends = (self.role == NodeRole::Active).then_some(self.until);
        let due = self.machine.next_timeout();
        [ends, due].into_iter().flatten().min()
    }
}

/// Ends the process if the thread panics: the node would be silent until somebody noticed.
struct PanicGuard(fn() -> Infallible);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            error!("the thread of the lease panicked: this node ends");
            (self.0)();
        }
    }
}

/// Closes the sockets until the lease is held.
fn close() {
    HELD_UNTIL.store(0, Ordering::Release);
    gauge!(ACTIVE).set(0.0);
    gauge!(SHARDS).set(0.0);
}

fn asking(
    database: &Arc<NodeDatabase>,
    request: LeaseRequest,
    patience_ms: u64,
) -> Pin<Box<dyn Future<Output = LeaseAnswer> + Send>> {
    let (database, within) = (Arc::clone(database), Duration::from_millis(patience_ms));
    Box::pin(async move { database.ask(&request, within).await })
}

/// The answer to the request in progress; never, if there is none.
async fn answered(
    asked: &mut Option<Pin<Box<dyn Future<Output = LeaseAnswer> + Send>>>,
) -> LeaseAnswer {
    match asked {
        Some(asked) => asked.await,
        None => pending().await,
    }
}

/// Returns at this time; never, if there is none.
async fn reached(at: Option<SteadyTime>) {
    let Some(at) = at else {
        return pending().await;
    };
    let left = at.0.saturating_sub(steady_time().0);
    sleep_until(tokio::time::Instant::now() + Duration::from_millis(left)).await;
}
