//! Which node is this process? Its identity, how it joins the others on its database, and where it
//! reaches them.

use std::convert::Infallible;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actors::arbiters::OtherNodes;
use actors::clock::Clock;
use actors::lease::{LeaseJoinError, LeaseKeeper};
use actors::relay::identity::NodeIdentity;
use actors::relay::links::LinkState;
use actors::relay::{ActiveNode, ActiveProbe};
use engine::ids::{NodeId, Partition};
use engine::limits::PARTITIONS;
use engine::moment::Timestamp;
use engine::node::KnownNode;
use engine::node::lease::LeaseRules;
use engine::node::secret::SECRET_BYTES_MIN;
use engine::sealing::SecretOwner;
use store::sealed::MasterKey;
use store::{DrainOutcome, FoundStore, NewNode, NodeDatabase, Nodes, PostgresNodes, ReadAnswer};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use zeroize::Zeroizing;

use crate::config::{Config, StoreChoice};
use crate::setting_file::{UnreadableSettingFile, read};
use crate::storage::{self, StorageError};

/// The file that a process with this data directory holds locked.
const LOCK_FILE: &str = "node-lock";

/// Differs with each start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What precedes the address of a node for the other nodes, in the list of its addresses.
const NODE_SCHEME: &str = "node://";

/// How often a node looks where the others are.
const LOOK: Duration = Duration::from_millis(250);

/// How often it looks while partitions move, of which one may follow the other.
const LOOK_WHILE_MOVING: Duration = Duration::from_millis(50);
const MOVING: Duration = Duration::from_secs(2);

/// The pause before a node that has become active is asked again whether it answers calls.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// How long a node that is to stop waits for the list of nodes.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// What a node is called without a name of its own.
const NAMELESS: &str = "signalbox";

/// This node among others, until the process ends.
pub struct JoinedNode {
    /// Keeps its lease.
    pub(crate) keeper: LeaseKeeper,
    /// Its id.
    pub(crate) id: NodeId,
    /// It and the others.
    pub(crate) nodes: Arc<dyn Nodes>,
    /// How nodes reach each other, if the configuration says so.
    pub(crate) transport: Option<NodeTransport>,
    /// Whether it takes a part of the partitions.
    shares: Arc<AtomicBool>,
    /// Locked as long as it is open.
    _place: File,
}

/// Where the other nodes reach this one, and how they recognise each other.
#[derive(Clone)]
pub(crate) struct NodeTransport {
    pub(crate) address: SocketAddr,
    pub(crate) identity: NodeIdentity,
    /// Where the others are.
    pub(crate) others: watch::Receiver<OtherNodes>,
}

/// Why a node cannot join the others.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Another process has the data directory.
    #[error("another process uses the data directory {0}: each node needs its own")]
    PlaceTaken(PathBuf),
    /// The data directory cannot be locked.
    #[error("cannot lock {path}: {source}")]
    Place {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The secret of the nodes cannot be read.
    #[error(transparent)]
    Secret(#[from] UnreadableSettingFile),
    /// The secret of the nodes can be guessed.
    #[error("node_secret_file {0}: the secret must have at least {SECRET_BYTES_MIN} characters")]
    ShortSecret(PathBuf),
    /// The database cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The thread of the lease cannot be started.
    #[error("the thread of the lease cannot be started: {0}")]
    Thread(io::Error),
    /// The secrets in the database are sealed with another key.
    #[error(
        "the master key of this node is not that of the database: set SIGNALBOX_MASTER_KEY, or \
         copy the file master-key of a node that was active"
    )]
    OtherMasterKey,
}

impl JoinError {
    /// Whether it is worth waiting for the server.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Storage(error) if error.is_transient())
    }
}

impl JoinedNode {
    /// Joins the nodes on the database of the configuration, if it names one.
    pub(crate) async fn join(
        config: &Config,
        superseded: fn() -> Infallible,
    ) -> Result<Option<Self>, JoinError> {
        let StoreChoice::Postgres(database) = &config.store else {
            return Ok(None);
        };
        let reached = reached(config)?;
        let (lock, place) = take_place(&config.data_dir)?;
        let id = NodeId::new(Clock::new().moment().uuid());
        let rules = LeaseRules {
            lease_ms: config.node_lease_s * 1_000,
            heartbeat_ms: config.node_heartbeat_s * 1_000,
        };
        let shares = Arc::new(AtomicBool::new(false));
        let node = NewNode {
            id,
            name: name(config),
            place,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            addresses: addresses(config),
            rules,
            shares: Arc::clone(&shares),
        };
        let options = storage::postgres_options(config, database)?;
        let joining = LeaseKeeper::join(NodeDatabase::of(&options, node), superseded);
        let (keeper, found) = joining.await.map_err(|error| match error {
            LeaseJoinError::Database(source) => JoinError::Storage(StorageError::Postgres {
                database: database.clone(),
                source,
            }),
            LeaseJoinError::Thread(error) => JoinError::Thread(error),
        })?;
        check_key(config, &found)?;
        keeper.stand_by().await;
        let nodes: Arc<dyn Nodes> = Arc::new(PostgresNodes::of(&options));
        let transport = reached.map(|(address, identity)| NodeTransport {
            address,
            identity,
            others: follow_others(Arc::clone(&nodes), id),
        });
        Ok(Some(Self {
            keeper,
            id,
            nodes,
            transport,
            shares,
            _place: lock,
        }))
    }

    /// Takes a part of the partitions from now on.
    pub(crate) fn share(&self) {
        let are_others = self.transport.is_some();
        self.shares.store(are_others, Ordering::Relaxed);
    }

    /// Takes a part of them once there are links to the active node: nobody would be served by a
    /// node that others do not reach.
    pub(crate) fn share_once(&self, links: LinkState) {
        let shares = Arc::clone(&self.shares);
        actix_rt::spawn(async move {
            links.completes().await;
            shares.store(true, Ordering::Relaxed);
        });
    }

    /// Whether another node may take the lease and the sessions of this one, as far as the database
    /// says so soon.
    pub(crate) async fn has_successor(&self) -> bool {
        let Ok(Ok(known)) = timeout(ANSWER_MAX, self.nodes.nodes()).await else {
            return false;
        };
        let mut others = known.iter().filter(|it| it.id != self.id);
        others.any(|it| it.is_heard && !it.is_draining && address_for_nodes(it).is_some())
    }

    /// Gives up the lease, if the node has it, and leaves the others.
    pub(crate) async fn leave(mut self) {
        self.keeper.release().await;
        self.keeper.leave().await;
    }
}

/// Looks where the other nodes are, as long as anybody wants to know.
fn follow_others(nodes: Arc<dyn Nodes>, own: NodeId) -> watch::Receiver<OtherNodes> {
    let (show, shown) = watch::channel(OtherNodes::default());
    actix_rt::spawn(async move {
        let mut moved_at = Instant::now();
        loop {
            if let Ok(listed) = nodes.nodes().await {
                let partitions = listed.iter().flat_map(|it| &it.partitions);
                let is_moving = partitions.count() < usize::from(PARTITIONS);
                let found = others_in(&listed, own);
                let has_changed = show.send_if_modified(|it| {
                    let has_changed = *it != found;
                    *it = found;
                    has_changed
                });
                if is_moving || has_changed {
                    moved_at = Instant::now();
                }
            }
            let look = match moved_at.elapsed() < MOVING {
                true => LOOK_WHILE_MOVING,
                false => LOOK,
            };
            tokio::select! {
                () = sleep(look) => {}
                () = show.closed() => return,
            }
        }
    });
    shown
}

fn others_in(listed: &[KnownNode], own: NodeId) -> OtherNodes {
    let others = || listed.iter().filter(|it| it.id != own);
    let addresses = |is_heard| {
        let nodes = others().filter(move |it| it.is_heard == is_heard);
        let reached = nodes.filter_map(|it| Some((it.id, address_for_nodes(it)?)));
        reached.collect()
    };
    let active = others().find(|it| it.is_active);
    let partitions = others().flat_map(|node| node.partitions.iter().map(|it| (*it, node.id)));
    OtherNodes {
        addresses: addresses(true),
        unheard: addresses(false),
        partitions: partitions.collect(),
        active: active.map(|it| it.id),
        is_active_replaced: active.is_none_or(|it| it.is_draining),
    }
}

/// Shows where the active node answers calls, until it is told.
pub(crate) struct ActiveFollower {
    shown: Arc<watch::Sender<Option<SocketAddr>>>,
    following: JoinHandle<()>,
}

impl ActiveFollower {
    /// Follows the active one of the other nodes.
    pub(crate) fn of(transport: &NodeTransport) -> Result<Self, reqwest::Error> {
        let probe = ActiveProbe::new(&transport.identity)?;
        let shown = Arc::new(watch::Sender::new(None));
        let (mut others, to) = (transport.others.clone(), Arc::clone(&shown));
        let following = actix_rt::spawn(async move {
            let mut answering = None;
            loop {
                let (active, address) = {
                    let others = others.borrow_and_update();
                    (others.active, others.active_address())
                };
                let is_known = active.is_some() && active == answering;
                let answers = match address {
                    Some(address) if !is_known => probe.answers_calls(address).await,
                    Some(_) => true,
                    None => false,
                };
                answering = active.filter(|_| answers);
                let found = address.filter(|_| answers);
                to.send_if_modified(|it| std::mem::replace(it, found) != found);
                let has_ended = tokio::select! {
                    changed = others.changed() => changed.is_err(),
                    () = sleep(ASK_AGAIN), if address.is_some() && !answers => false,
                };
                if has_ended {
                    return;
                }
            }
        });
        Ok(Self { shown, following })
    }

    /// Where it is reached, as far as it is known.
    pub(crate) fn address(&self) -> ActiveNode {
        self.shown.subscribe()
    }

    /// Looks no longer: it is here, or nowhere for now.
    pub(crate) fn turn_to(&self, address: Option<SocketAddr>) {
        self.following.abort();
        self.shown.send_replace(address);
    }
}

impl Drop for ActiveFollower {
    fn drop(&mut self) {
        self.following.abort();
    }
}

/// Where the other nodes reach this one, and how they recognise each other, if they can.
fn reached(config: &Config) -> Result<Option<(SocketAddr, NodeIdentity)>, JoinError> {
    let (Some(address), Some(path)) = (config.node_address, &config.node_secret_file) else {
        return Ok(None);
    };
    let secret = Zeroizing::new(read("node_secret_file", path)?);
    let secret = secret.trim_ascii_end();
    if secret.len() < SECRET_BYTES_MIN {
        return Err(JoinError::ShortSecret(path.clone()));
    }
    Ok(Some((address, NodeIdentity::of_secret(secret))))
}

fn address_for_nodes(node: &KnownNode) -> Option<SocketAddr> {
    let mut addresses = node.addresses.iter();
    addresses.find_map(|it| it.strip_prefix(NODE_SCHEME)?.parse().ok())
}

/// A node without others, which needs no lease.
pub(crate) struct OnlyNode {
    node: KnownNode,
    clock: Clock,
}

impl OnlyNode {
    /// The node of this process.
    pub(crate) fn of(config: &Config, clock: &Clock) -> Self {
        let node = KnownNode {
            id: NodeId::new(clock.moment().uuid()),
            name: name(config),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            addresses: addresses(config),
            started_at: clock.now(),
            heartbeat_at: Timestamp::default(),
            is_heard: true,
            is_draining: false,
            is_active: true,
            lease_ends_at: None,
            partitions: Partition::all().collect(),
        };
        let clock = clock.clone();
        Self { node, clock }
    }
}

impl Nodes for OnlyNode {
    fn nodes(&self) -> ReadAnswer<Vec<KnownNode>> {
        let heartbeat_at = self.clock.now();
        let node = KnownNode {
            heartbeat_at,
            ..self.node.clone()
        };
        Box::pin(std::future::ready(Ok(vec![node])))
    }

    fn drain(&self, node: NodeId) -> ReadAnswer<DrainOutcome> {
        let outcome = match node == self.node.id {
            true => DrainOutcome::OnlyNode,
            false => DrainOutcome::Unknown,
        };
        Box::pin(std::future::ready(Ok(outcome)))
    }
}

/// The nodes of a service, or the only one.
pub(crate) fn nodes_of(
    config: &Config,
    clock: &Clock,
    several: Option<Arc<dyn Nodes>>,
) -> Arc<dyn Nodes> {
    several.unwrap_or_else(|| Arc::new(OnlyNode::of(config, clock)))
}

/// Locks the data directory, and names the place that it is: a process that finds it unlocked knows
/// that whoever was there before has ended. A copy of the directory is another place, and so is the
/// directory after a restart of the machine, which may have another one by then.
fn take_place(data_dir: &Path) -> Result<(File, String), JoinError> {
    let path = data_dir.join(LOCK_FILE);
    let failed = |source| JoinError::Place {
        path: path.clone(),
        source,
    };
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(failed)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => JoinError::PlaceTaken(data_dir.to_owned()),
        TryLockError::Error(source) => failed(source),
    })?;
    let file = lock.metadata().map_err(failed)?;
    let boot = match fs::read_to_string(BOOT_ID) {
        Ok(id) => id.trim().to_owned(),
        // Then every process is in a place of its own, and waits for the lease of the one before.
        Err(_) => Clock::new().moment().uuid().to_string(),
    };
    Ok((lock, format!("{boot}/{:x}/{:x}", file.dev(), file.ino())))
}

/// Whether this node can decrypt what is in the database, before it is needed.
fn check_key(config: &Config, found: &FoundStore) -> Result<(), JoinError> {
    let key: MasterKey = match found.is_new {
        true => storage::key_of_new_store(config)?,
        false => storage::key_of_store(config)?,
    };
    let Some(sealed) = &found.server_key else {
        return Ok(());
    };
    let opened = key.open(sealed, &SecretOwner::ServerKey.context());
    opened.map(drop).map_err(|_| JoinError::OtherMasterKey)
}

fn name(config: &Config) -> String {
    if !config.node_name.is_empty() {
        return config.node_name.clone();
    }
    let host = nix::unistd::gethostname().ok();
    let host = host.and_then(|name| name.into_string().ok());
    host.unwrap_or_else(|| NAMELESS.to_owned())
}

/// Where it listens, as the configuration says.
fn addresses(config: &Config) -> Vec<String> {
    let http = match config.tls() {
        Some(_) => "https",
        None => "http",
    };
    let operator = config.operator_http.map(|at| format!("{http}://{at}"));
    let api = format!("{http}://{}", config.http);
    let devices = [
        format!("coap://{}", config.coap),
        format!("coaps://{}", config.coaps),
        format!("udp://{}", config.udp),
    ];
    let nodes = config.node_address.map(|at| format!("{NODE_SCHEME}{at}"));
    [Some(api), operator]
        .into_iter()
        .flatten()
        .chain(devices)
        .chain(nodes)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_can_be_guessed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let config = Config {
            node_address: Some("127.0.0.1:7700".parse().unwrap()),
            node_secret_file: Some(path.clone()),
            ..Config::of_defaults()
        };
        let refused = |config: &Config| reached(config).err().unwrap().to_string();
        assert!(refused(&config).starts_with("cannot read node_secret_file"));
        std::fs::write(&path, "thirty-one characters, not more\n").unwrap();
        assert!(refused(&config).contains("at least 32 characters"));
        std::fs::write(&path, "thirty-two characters or more...\n").unwrap();
        assert!(reached(&config).unwrap().is_some());
        assert!(reached(&Config::of_defaults()).unwrap().is_none());
    }

    #[test]
    fn a_place_has_one_process_and_a_copy_of_it_is_another() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (lock, place) = take_place(first.path()).unwrap();
        let taken = take_place(first.path()).unwrap_err().to_string();
        assert!(taken.starts_with("another process uses"), "{taken}");
        let (_other, copy) = take_place(second.path()).unwrap();
        assert_ne!(place, copy);
        drop(lock);
        assert_eq!(take_place(first.path()).unwrap().1, place);
    }
}
