//! Which node is this process? Its identity, how it joins the others on its database, and where it
//! reaches the active one.

use std::convert::Infallible;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actors::clock::Clock;
use actors::kept_sessions::HandedOver;
use actors::lease::{LeaseJoinError, LeaseKeeper};
use actors::relay::datagrams::ActiveNode;
use actors::relay::deliveries::{Deliverers, DeliveringNodes};
use actors::relay::identity::NodeIdentity;
use actors::relay::sessions;
use engine::ids::{NodeId, Partition};
use engine::limits::SHARDS;
use engine::moment::Timestamp;
use engine::node::KnownNode;
use engine::node::lease::LeaseRules;
use engine::node::secret::SECRET_BYTES_MIN;
use engine::sealing::SecretOwner;
use store::sealed::MasterKey;
use store::{DrainOutcome, FoundStore, NewNode, NodeDatabase, Nodes, PostgresNodes, ReadAnswer};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
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

/// How often a node that stands by looks for the active one, and that for those that deliver.
const LOOK: Duration = Duration::from_millis(500);

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
    /// Locked as long as it is open.
    _place: File,
}

/// Where the other nodes reach this one, and how they recognise each other.
#[derive(Clone)]
pub(crate) struct NodeTransport {
    pub(crate) address: SocketAddr,
    pub(crate) identity: NodeIdentity,
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
        let transport = NodeTransport::of(config)?;
        let (lock, place) = take_place(&config.data_dir)?;
        let id = NodeId::new(Clock::new().moment().uuid());
        let rules = LeaseRules {
            lease_ms: config.node_lease_s * 1_000,
            heartbeat_ms: config.node_heartbeat_s * 1_000,
        };
        let node = NewNode {
            id,
            name: name(config),
            place,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            addresses: addresses(config),
            rules,
            shares: transport.is_some(),
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
        Ok(Some(Self {
            keeper,
            id,
            nodes: Arc::new(PostgresNodes::of(&options)),
            transport,
            _place: lock,
        }))
    }

    /// Takes the sessions over DTLS of the node that had the lease before this one, if it has
    /// stopped and waits to hand them over.
    pub(crate) async fn take_sessions(&self, arbiters: usize) -> HandedOver {
        let (Some(transport), Ok(known)) = (&self.transport, self.nodes.nodes().await) else {
            return HandedOver::default();
        };
        let has_stopped = |it: &&KnownNode| it.is_heard && it.is_draining && it.shards == 0;
        let others = known.iter().filter(|it| it.id != self.id);
        for address in others.filter(has_stopped).filter_map(address_for_nodes) {
            let taken = sessions::take(&transport.identity, address, arbiters).await;
            // One that only stood by has none, and answers nothing.
            if !taken.by_arbiter.is_empty() {
                return taken;
            }
        }
        HandedOver::default()
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

    /// How the active node reaches those that deliver beside it, if they can.
    pub(crate) fn others_that_deliver(&self) -> Result<Option<DeliveringNodes>, reqwest::Error> {
        let Some(transport) = &self.transport else {
            return Ok(None);
        };
        let (show, known) = watch::channel(Deliverers::new());
        let (nodes, own) = (Arc::clone(&self.nodes), self.id);
        actix_rt::spawn(async move {
            loop {
                if let Ok(listed) = nodes.nodes().await {
                    let others = listed.iter().filter(|it| it.id != own);
                    let reached = others.filter_map(|it| Some((it, address_for_nodes(it)?)));
                    let found = reached.flat_map(|(node, address)| {
                        let partitions = node.deliveries.iter();
                        partitions.map(move |partition| (*partition, address))
                    });
                    let found: Deliverers = found.collect();
                    let has_changed = |it: &mut Deliverers| {
                        let is_new = *it != found;
                        *it = found;
                        is_new
                    };
                    show.send_if_modified(has_changed);
                }
                tokio::select! {
                    () = sleep(LOOK) => {}
                    () = show.closed() => return,
                }
            }
        });
        DeliveringNodes::new(&transport.identity, known).map(Some)
    }

    /// Follows where the active node is reached.
    pub(crate) fn follow_active(&self) -> ActiveFollower {
        let shown = Arc::new(watch::Sender::new(None));
        let is_replaced = Arc::new(AtomicBool::new(false));
        let (nodes, own, to) = (Arc::clone(&self.nodes), self.id, Arc::clone(&shown));
        let replaced = Arc::clone(&is_replaced);
        let looking = actix_rt::spawn(async move {
            loop {
                if let Ok(known) = nodes.nodes().await {
                    let found = known.iter().find(|it| it.id != own && it.shards > 0);
                    let is_leaving = found.is_none_or(|it| it.is_draining);
                    replaced.store(is_leaving, Ordering::Relaxed);
                    let found = found.and_then(address_for_nodes);
                    to.send_if_modified(|it| std::mem::replace(it, found) != found);
                }
                sleep(LOOK).await;
            }
        });
        ActiveFollower {
            shown,
            is_replaced,
            looking,
        }
    }
}

/// Looks where the active node is reached, until it is told.
pub(crate) struct ActiveFollower {
    shown: Arc<watch::Sender<Option<SocketAddr>>>,
    is_replaced: Arc<AtomicBool>,
    looking: JoinHandle<()>,
}

impl ActiveFollower {
    /// Where it is reached, as far as it is known.
    pub(crate) fn address(&self) -> ActiveNode {
        self.shown.subscribe()
    }

    /// Whether there is none, or one that is about to stop: another node takes over soon.
    pub(crate) fn is_replaced(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_replaced)
    }

    /// Looks no longer: it is here, or nowhere for now.
    pub(crate) fn turn_to(&self, address: Option<SocketAddr>) {
        self.looking.abort();
        self.shown.send_replace(address);
    }
}

impl Drop for ActiveFollower {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl NodeTransport {
    fn of(config: &Config) -> Result<Option<Self>, JoinError> {
        let (Some(address), Some(path)) = (config.node_address, &config.node_secret_file) else {
            return Ok(None);
        };
        let secret = Zeroizing::new(read("node_secret_file", path)?);
        let secret = secret.trim_ascii_end();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(JoinError::ShortSecret(path.clone()));
        }
        let identity = NodeIdentity::of_secret(secret);
        Ok(Some(Self { address, identity }))
    }
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
            shards: SHARDS.into(),
            lease_ends_at: None,
            deliveries: Partition::all().collect(),
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
        let refused = |config: &Config| NodeTransport::of(config).err().unwrap().to_string();
        assert!(refused(&config).starts_with("cannot read node_secret_file"));
        std::fs::write(&path, "thirty-one characters, not more\n").unwrap();
        assert!(refused(&config).contains("at least 32 characters"));
        std::fs::write(&path, "thirty-two characters or more...\n").unwrap();
        assert!(NodeTransport::of(&config).unwrap().is_some());
        assert!(NodeTransport::of(&Config::of_defaults()).unwrap().is_none());
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
