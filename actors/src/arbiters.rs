//! How many threads serve devices? One for each core, with sockets of its own on the addresses
//! devices know. Each has one arbiter. With nodes, it has as many of the arbiters of all of them as
//! its node is to have.

pub(crate) mod datagrams;
pub(crate) mod nodes;
pub(crate) mod peer_choice;
pub(crate) mod places;

use std::sync::Arc;

use actix::{Addr, MailboxError};
use actix_rt::Arbiter as Thread;
use engine::associations::export::SessionRecord;
use engine::change::Batch;
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::ids::{NodeId, Partition};
use engine::limits::PARTITIONS;
use store::Commit;
use tokio::sync::watch;
use tracing::{error, warn};

use crate::devices::Devices;
use crate::kept_sessions::HandedOver;
use crate::logging::Logging;
use crate::receiver::{
    BeginArbiter, EndArbiter, FlushOutbound, Receive, ReceiveNoMore, Receiver, ReceiverParts,
};
use crate::registry::context::{ArbiterParts, ArbiterPlacement};
use crate::registry::{KeepSessions, Quiesce, Registry, StartArbiter, StopArbiter, UnloadDevices};
use crate::relay::identity::NodeIdentity;
use crate::relay::links::LinkState;
use crate::socket::Open;

use nodes::NodeView;
use places::{ArbiterPlaces, ArbitersHere};

pub use nodes::OtherNodes;

/// The threads that serve devices, with the arbiters of this process.
pub struct Arbiters {
    threads: Vec<ServingThread>,
    here: Arc<watch::Sender<ArbitersHere>>,
    places: ArbiterPlaces,
    /// With what sessions are resumed by their ids, once that was read.
    cached: Option<Arc<[SessionRecord]>>,
}

/// A thread that serves devices.
struct ServingThread {
    thread: Thread,
    receiver: Addr<Receiver>,
    arbiters: Vec<ArbiterId>,
}

/// How the arbiters of all nodes reach each other.
#[derive(Clone)]
pub struct NodeArbiters {
    /// This node.
    pub node: NodeId,
    /// What it proves with that it is one.
    pub identity: NodeIdentity,
    /// The others.
    pub others: watch::Receiver<OtherNodes>,
}

/// The way in to the arbiters of this process for what other nodes send.
#[derive(Clone)]
pub struct ArbiterInlet(pub(crate) ArbiterPlaces);

impl Arbiters {
    /// Starts an arbiter for each pair of sockets; from then on devices are served and restored.
    pub async fn start(parts: ArbiterParts, sockets: Vec<Open>, logging: &Addr<Logging>) -> Self {
        let mut arbiters = Self::open_alone(sockets);
        if !arbiters.threads.is_empty() {
            arbiters.begin_all(parts, logging).await;
        }
        arbiters
    }

    /// The threads of a process without other nodes, each for one arbiter. They receive once all
    /// arbiters begin.
    pub fn open_alone(sockets: Vec<Open>) -> Self {
        Self::open_among(ShardMap::among(sockets.len()), sockets, None)
    }

    /// The threads of a node, whose arbiters are those of the partitions that it has: none, for
    /// now. What arrives is for other nodes, if they can be reached.
    pub fn open(sockets: Vec<Open>, nodes: Option<NodeArbiters>) -> (Self, LinkState) {
        let state = LinkState::of(sockets.len());
        let nodes = nodes.map(|nodes| (nodes, state.clone()));
        let shard_map = ShardMap::among(PARTITIONS.into());
        let arbiters = Self::open_among(shard_map, sockets, nodes);
        // Until then it waits in the sockets.
        let (receivers, links) = (arbiters.receivers(), state.clone());
        actix_rt::spawn(async move {
            links.completes().await;
            receivers.iter().for_each(|it| it.do_send(Receive));
        });
        (arbiters, state)
    }

    fn receivers(&self) -> Vec<Addr<Receiver>> {
        self.threads.iter().map(|it| it.receiver.clone()).collect()
    }

    fn open_among(
        shard_map: ShardMap,
        sockets: Vec<Open>,
        nodes: Option<(NodeArbiters, LinkState)>,
    ) -> Self {
        let here = Arc::new(watch::Sender::default());
        let own = nodes.as_ref().map(|(nodes, _)| nodes);
        let (node, others) = match own {
            Some(nodes) => (nodes.node, nodes.others.clone()),
            None => (
                NodeId::from_bytes([0; 16]),
                watch::channel(OtherNodes::default()).1,
            ),
        };
        let places = ArbiterPlaces::new(NodeView::new(shard_map, node, others), here.subscribe());
        let nodes = nodes.map(|(nodes, state)| (nodes.identity, state));
        let threads = (0..).zip(sockets).map(|(number, open)| {
            let thread = Thread::new();
            let parts = ReceiverParts {
                thread: number,
                open,
                places: places.clone(),
                here: Arc::clone(&here),
                nodes: nodes.clone(),
            };
            let receiver = Receiver::start_on(&thread, parts);
            ServingThread {
                thread,
                receiver,
                arbiters: Vec::new(),
            }
        });
        Self {
            threads: threads.collect(),
            here,
            places,
            cached: None,
        }
    }

    /// Begins all arbiters in the epoch of these parts.
    pub async fn begin_all(&mut self, parts: ArbiterParts, logging: &Addr<Logging>) {
        let arbiters: Vec<ArbiterId> = self.places.shard_map().arbiters().collect();
        if let Some(kept) = &parts.kept_sessions {
            kept.keep_only(self.places.shard_map().count());
        }
        self.take_cached(&parts, &[]);
        for arbiter in &arbiters {
            self.begin_one(*arbiter, parts.clone(), vec![], logging)
                .await;
        }
        // Each may get datagrams of another one's devices.
        self.start_begun(&arbiters);
    }

    /// Begins the arbiter of a partition in an epoch, with the sessions over DTLS that another node
    /// has kept for it.
    pub async fn begin(
        &mut self,
        (partition, epoch): (Partition, u64),
        parts: &ArbiterParts,
        handed_over: HandedOver,
        logging: &Addr<Logging>,
    ) {
        let Some(arbiter) = self.places.arbiter_of(partition) else {
            return;
        };
        let parts = ArbiterParts {
            epoch,
            ..parts.clone()
        };
        self.take_cached(&parts, &handed_over.cached);
        self.begin_one(arbiter, parts, handed_over.sessions, logging)
            .await;
        self.start_begun(&[arbiter]);
    }

    /// Ends the arbiter of a partition. When this returns, what its devices had done before is
    /// durable and sent. What one of them still does is refused once another node has it.
    pub async fn give(&mut self, partition: Partition, commits: &dyn Commit) {
        let Some(arbiter) = self.places.arbiter_of(partition) else {
            return;
        };
        let mut threads = self.threads.iter_mut();
        let found = threads.find(|it| it.arbiters.contains(&arbiter));
        let registry = self.here.borrow().get(&arbiter).cloned();
        let (Some(thread), Some(registry)) = (found, registry) else {
            return;
        };
        thread.arbiters.retain(|it| *it != arbiter);
        warn_if_stopped(thread.receiver.send(EndArbiter(arbiter)).await);
        warn_if_stopped(registry.send(Quiesce).await);
        warn_if_stopped(registry.send(UnloadDevices).await);
        commit_all_earlier(commits).await;
        warn_if_stopped(thread.receiver.send(FlushOutbound).await);
        warn_if_stopped(registry.send(KeepSessions).await);
        warn_if_stopped(registry.send(StopArbiter).await);
    }

    async fn begin_one(
        &mut self,
        arbiter: ArbiterId,
        mut parts: ArbiterParts,
        handed_over: Vec<Vec<u8>>,
        logging: &Addr<Logging>,
    ) {
        let count = usize::from(self.places.shard_map().count());
        parts.limits = parts.limits.shared_among(count);
        parts.association_limits = parts.association_limits.shared_among(count);
        let number = (arbiter.number(), parts.epoch);
        let sessions = parts.kept_sessions.as_ref();
        let place = ArbiterPlacement {
            arbiter_id: arbiter,
            places: self.places.clone(),
            sessions: sessions.map_or_else(Vec::new, |it| it.take(number, handed_over)),
            cached_sessions: self.cached.clone().unwrap_or_default(),
        };
        let least = self.threads.iter_mut().min_by_key(|it| it.arbiters.len());
        let Some(thread) = least else {
            return;
        };
        thread.arbiters.push(arbiter);
        let begun = thread.receiver.send(BeginArbiter {
            place,
            parts,
            logging: logging.clone(),
        });
        if begun.await.is_err() {
            error!("a thread that serves devices has stopped");
        }
    }

    /// Reads with what sessions are resumed by their ids, unless that is known already: what was
    /// kept here, also since other arbiters began, and what another node has handed over.
    fn take_cached(&mut self, parts: &ArbiterParts, handed_over: &[u8]) {
        if let Some(kept) = &parts.kept_sessions
            && (self.cached.is_none() || kept.has_new_cached() || !handed_over.is_empty())
        {
            self.cached = Some(kept.take_cached(handed_over));
        }
    }

    /// Has arbiters restore their devices, and all threads receive.
    fn start_begun(&self, begun: &[ArbiterId]) {
        let here = self.here.borrow();
        for registry in begun.iter().filter_map(|it| here.get(it)) {
            registry.do_send(StartArbiter);
        }
        self.receivers().iter().for_each(|it| it.do_send(Receive));
    }

    /// The handle to all devices.
    pub fn devices(&self, parts: &ArbiterParts) -> Devices {
        Devices::new(self.places.clone(), parts)
    }

    /// The way in for other nodes.
    pub fn inlet(&self) -> ArbiterInlet {
        ArbiterInlet(self.places.clone())
    }

    /// The threads that serve devices.
    pub fn handles(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().map(|it| &it.thread)
    }

    /// Ends the work of devices: from then on they receive no datagram and no wake-up, and the
    /// results of their earlier steps are durable and sent.
    ///
    /// The devices stay in memory. To unload a million of them takes longer than to restore them,
    /// and the end of the process frees them at once.
    pub async fn quiesce(&self, commits: &dyn Commit) {
        // All stop receiving before the first one finishes: a datagram may belong to another
        // arbiter.
        for thread in &self.threads {
            warn_if_stopped(thread.receiver.send(ReceiveNoMore).await);
        }
        let registries = self.registries();
        for registry in &registries {
            warn_if_stopped(registry.send(Quiesce).await);
        }
        commit_all_earlier(commits).await;
        for thread in &self.threads {
            warn_if_stopped(thread.receiver.send(FlushOutbound).await);
        }
    }

    /// Keeps the sessions over DTLS for the next process, once the devices are quiesced. Nothing is
    /// sent over them any more.
    pub async fn keep_sessions(&self) {
        for registry in &self.registries() {
            warn_if_stopped(registry.send(KeepSessions).await);
        }
    }

    /// Ends the work of devices, frees them and ends the threads, for a process that goes on.
    pub async fn stop(self, commits: &dyn Commit) {
        self.quiesce(commits).await;
        for registry in &self.registries() {
            warn_if_stopped(registry.send(StopArbiter).await);
        }
        for ServingThread { thread, .. } in self.threads {
            thread.stop();
            if thread.join().is_err() {
                warn!("a thread that serves devices did not stop cleanly");
            }
        }
    }

    fn registries(&self) -> Vec<Addr<Registry>> {
        self.here.borrow().values().cloned().collect()
    }
}

/// Returns once everything that devices have committed is durable: batches are committed in order,
/// so once one has its receipt, so have all earlier ones.
async fn commit_all_earlier(commits: &dyn Commit) {
    if let Err(error) = commits.commit(Batch::default()).await {
        warn!(%error, "the last changes may not be durable");
    }
}

fn warn_if_stopped(sent: Result<(), MailboxError>) {
    if sent.is_err() {
        warn!("a registry has stopped");
    }
}
