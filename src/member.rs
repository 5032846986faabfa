//! What does a node run under its leases of partitions, whether it is the active one or not? The
//! store, the devices and the destinations of these partitions, and the server for other nodes,
//! which pass on commands for them. A process without other nodes has all of them.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{Actor as _, Addr};
use actors::arbiters::{Arbiters, OtherNodes};
use actors::clock::Clock;
use actors::delivery::{CommandCall, Deliveries, DeliveryShare, command_queue};
use actors::devices::Devices;
use actors::image_files::ImageFiles;
use actors::kept_sessions::{HandedOver, KeptSessions};
use actors::lease::{LeaseKeeper, LeaseReport};
use actors::logging::Logging;
use actors::policy::PolicyCache;
use actors::registry::context::ArbiterParts;
use actors::relay::deliveries::DeliveringNodes;
use actors::relay::sessions::SessionTaker;
use actors::relay::{news, receiving};
use engine::associations::AssociationSecrets;
use engine::associations::server_key::ServerKey;
use engine::directory::bootstrap::ServiceUris;
use engine::firmware::delivery::DownloadUris;
use engine::ids::Partition;
use engine::node::lease::LeaseId;
use engine::policy::CustomerSettings;
use engine::rules::{EndpointTrust, NoSecBootstrap, Rules, TransmissionRules};
use store::sealed::MasterKey;
use store::{Store, Unavailable};
use tokio::sync::{OwnedMutexGuard, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::error;

use crate::coaps_key::{self, ShownServerKey, StoredKeyError};
use crate::config::Config;
use crate::deliveries::{self, DeliveryError};
use crate::for_nodes::NodeRoutes;
use crate::listeners::{ListenError, ListeningAt};
use crate::node::{JoinedNode, NodeTransport};
use crate::storage::{self, Storage, StorageError};
use crate::tls::TlsError;

/// How often the destinations are read again: the active node may not have been able to say that it
/// created one.
const REFRESH: Duration = Duration::from_secs(10);

/// The longest command for a device, but for its data.
const COMMAND_BYTES: usize = 1 << 20;

/// The pause before the settings of customers are read again.
const RETRY: Duration = Duration::from_millis(500);

/// How long a node that is to stop gives up its partitions one by one.
const GIVING_MAX: Duration = Duration::from_secs(5);

/// How long a node that is to stop answers as before while it is not ready, so that load balancers
/// turn to others that serve or relay.
pub(crate) const LEAVING: Duration = Duration::from_secs(2);

/// Why devices and destinations cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StorageError),
    /// The store does not respond.
    #[error(transparent)]
    StoreSilent(#[from] Unavailable),
    /// The private key of the service cannot be used.
    #[error(transparent)]
    ServerKey(#[from] StoredKeyError),
    /// The key of DTLS is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Events could not be delivered.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// Other nodes could not be called.
    #[error("the client for other nodes cannot be set up: {0}")]
    OtherNodes(reqwest::Error),
    /// The system gives no entropy.
    #[error("the system gives no entropy: {0}")]
    Entropy(io::Error),
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// What a process runs for devices and destinations.
pub(crate) struct Member {
    pub(crate) storage: Storage,
    pub(crate) clock: Clock,
    pub(crate) logging: Addr<Logging>,
    pub(crate) deliveries: Deliveries,
    pub(crate) devices: Devices,
    pub(crate) image_files: ImageFiles,
    pub(crate) downloads: DownloadUris,
    pub(crate) server_key: Arc<ShownServerKey>,
    pub(crate) kept_sessions: KeptSessions,
    /// The commands that come from brokers, until the API takes them.
    pub(crate) broker_commands: Option<mpsc::Receiver<CommandCall>>,
    arbiters: Arbiters,
    rules: Arc<Rules>,
    parts: ArbiterParts,
    /// How the sessions of partitions are taken from other nodes, if there are any.
    sessions: Option<(SessionTaker, watch::Receiver<OtherNodes>)>,
    leases: BTreeMap<LeaseId, u64>,
    /// Whether other nodes may begin streams.
    takes_streams: Arc<AtomicBool>,
    /// Whether it has had a partition.
    has_begun: bool,
    /// The longest command for a device.
    command_bytes_max: usize,
    tasks: Vec<JoinHandle<()>>,
}

impl Member {
    /// Starts with an open store and the threads that serve devices, for now without a partition.
    pub(crate) async fn start(
        config: &Config,
        (storage, arbiters): (Storage, Arbiters),
        at: &ListeningAt,
        node: Option<&JoinedNode>,
    ) -> Result<Self, MemberError> {
        let transport = node.and_then(|node| node.transport.as_ref());
        let clock = Clock::new();
        let (commands, broker_commands) = command_queue();
        let delivering = deliveries::parts(config, &storage, &clock, commands)?;
        let (store, master_key) = (Arc::clone(&storage.store), Arc::clone(&storage.master_key));
        let image_files = ImageFiles::at(image_directory(config));
        let key_files = config.coaps_key_files();
        let key_files = key_files.map(|it| it.read().map(|material| (it, material)));
        let key_files = key_files.transpose()?;
        let server_key = match &key_files {
            Some((_, material)) => coaps_key::of_files(material).map_err(TlsError::from)?,
            None => coaps_key::stored(&*store, &master_key).await?,
        };
        let kept_sessions = KeptSessions::new(&config.data_dir, Arc::clone(&master_key));
        let logging = Logging::new(clock.clone(), store.clone(), store.clone()).start();
        let downloads = at.downloads(config);
        let rules = Arc::new(Rules {
            downloads: downloads.clone(),
            ..rules(config, at.heard_at()?)
        });
        let parts = ArbiterParts {
            clock: clock.clone(),
            commits: store.clone(),
            store: store.clone(),
            policies: PolicyCache::of(&rules, &[]),
            epoch: 0,
            limits: config.arbiter_limits(),
            association_limits: config.association_limits(),
            secrets: association_secrets(&master_key, server_key.clone())?,
            kept_sessions: Some(kept_sessions.clone()),
            master_key: Arc::clone(&master_key),
            images: image_files.clone(),
        };
        let devices = arbiters.devices(&parts);
        let (devices, share, sessions) = match transport {
            None => {
                let leased = || DeliveryShare::Leased(BTreeMap::new(), None);
                let share = node.map_or(DeliveryShare::All, |_| leased());
                (devices, share, None)
            }
            Some(transport) => {
                let (identity, others) = (&transport.identity, &transport.others);
                let delivering = DeliveringNodes::new(identity, others.clone());
                let delivering = delivering.map_err(MemberError::OtherNodes)?;
                let taker = SessionTaker::new(identity).map_err(MemberError::OtherNodes)?;
                (
                    devices
                        .of_all_nodes(identity)
                        .map_err(MemberError::OtherNodes)?,
                    DeliveryShare::Leased(BTreeMap::new(), Some(delivering)),
                    Some((taker, others.clone())),
                )
            }
        };
        let deliveries = Deliveries::start(delivering, share, Vec::new(), &logging);
        let server_key = Arc::new(ShownServerKey::new(server_key));
        if let Some((files, material)) = key_files {
            let (shown, devices) = (Arc::clone(&server_key), devices.clone());
            files.follow("DTLS key", material.fingerprint(), move |material| {
                shown.replace(coaps_key::of_files(material)?, &devices);
                Ok(ControlFlow::Continue(()))
            });
        }
        let mut member = Self {
            storage,
            clock,
            logging,
            deliveries,
            devices,
            image_files,
            downloads,
            server_key,
            kept_sessions,
            broker_commands: Some(broker_commands),
            arbiters,
            rules,
            parts,
            sessions,
            leases: BTreeMap::new(),
            takes_streams: Arc::default(),
            has_begun: false,
            command_bytes_max: COMMAND_BYTES + config.action_data_bytes_max,
            tasks: Vec::new(),
        };
        if let Some(transport) = transport {
            member.follow_others(transport);
        }
        Ok(member)
    }

    /// Learns what other nodes store and change.
    fn follow_others(&mut self, transport: &NodeTransport) {
        let (identity, others) = (transport.identity.clone(), transport.others.clone());
        let following = news::follow(identity, others, self.store().clone());
        let (refreshed, read) = (self.deliveries.clone(), Arc::clone(self.store()));
        self.tasks.push(actix_rt::spawn(async move {
            if let Err(error) = following.await {
                error!(%error, "new events are found only when events are looked for");
            }
        }));
        self.tasks.push(actix_rt::spawn(async move {
            loop {
                sleep(REFRESH).await;
                let destinations = deliveries::all_destinations(&*read).await;
                refreshed.take(Vec::new(), destinations).await;
            }
        }));
    }

    /// The store.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.storage.store
    }

    /// What other nodes may call from now on.
    pub(crate) fn routes(&mut self) -> NodeRoutes {
        self.takes_streams = Arc::new(AtomicBool::new(true));
        NodeRoutes {
            deliveries: self.deliveries.of_this_node(),
            devices: self.devices.clone(),
            inlet: self.arbiters.inlet(),
            kept_sessions: self.kept_sessions.clone(),
            store: Arc::clone(self.store()),
            body_bytes_max: self.command_bytes_max,
            takes_streams: Arc::clone(&self.takes_streams),
        }
    }

    /// Ends the streams of other nodes, and takes no further one until there are new routes: they
    /// are never complete, and their server could not end.
    pub(crate) fn end_streams(&self) {
        self.takes_streams.store(false, Ordering::SeqCst);
        receiving::end_all();
        news::end_all();
    }

    /// Serves all devices and destinations in an epoch: nobody else does.
    pub(crate) async fn take_all(&mut self, epoch: u64) {
        let (settings, _held) = self.held_settings().await;
        let parts = ArbiterParts {
            policies: PolicyCache::of(&self.rules, &settings),
            epoch,
            ..self.parts.clone()
        };
        self.arbiters.begin_all(parts, &self.logging).await;
        let destinations = settings.into_iter().flat_map(|it| it.destinations);
        self.deliveries
            .take(Vec::new(), destinations.collect())
            .await;
    }

    /// Serves what these leases are of, too.
    pub(crate) async fn take(&mut self, leases: Vec<(LeaseId, u64)>) {
        self.leases.extend(leases.iter().copied());
        let destinations = deliveries::all_destinations(&**self.store()).await;
        self.deliveries.take(leases.clone(), destinations).await;
        let partitions = leases.into_iter().filter_map(|(lease, epoch)| match lease {
            LeaseId::Partition(partition) => Some((partition, epoch)),
            LeaseId::Active => None,
        });
        // What sessions are resumed with by their ids, all arbiters are told from then on.
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        // All are asked for before the first is waited for.
        let asked = partitions.map(|(partition, epoch)| {
            let sessions = self.sessions.clone();
            let taken = actix_rt::spawn(taken_over(sessions, partition, is_first));
            ((partition, epoch), taken)
        });
        let mut handed_over = Vec::new();
        for (lease, taken) in asked.collect::<Vec<_>>() {
            handed_over.push((lease, taken.await.unwrap_or_default()));
        }
        if handed_over.is_empty() {
            return;
        }
        let (settings, _held) = self.held_settings().await;
        self.parts.policies = PolicyCache::of(&self.rules, &settings);
        self.parts.secrets.server_key = self.server_key.get();
        for (lease, handed_over) in handed_over {
            let (parts, logging) = (&self.parts, &self.logging);
            self.arbiters
                .begin(lease, parts, handed_over, logging)
                .await;
        }
    }

    /// The settings of all customers, once they can be read; no changed one is told to arbiters
    /// while the guard is held.
    async fn held_settings(&self) -> (Vec<CustomerSettings>, OwnedMutexGuard<()>) {
        loop {
            let held = self.devices.hold_policies().await;
            match self.store().all_customer_settings().await {
                Ok(settings) => return (settings, held),
                Err(Unavailable) => drop(held),
            }
            sleep(RETRY).await;
        }
    }

    /// Serves a partition no longer. When this returns, nothing more is sent or saved for it.
    pub(crate) async fn give(&mut self, partition: Partition) {
        let store = Arc::clone(self.store());
        tokio::join!(
            self.deliveries.give(partition),
            self.arbiters.give(partition, &*store)
        );
        self.leases.remove(&LeaseId::Partition(partition));
    }

    /// Follows the leases of a node until something else happens; returns that, or nothing if
    /// somebody drains the node. A partition is taken or given up to the end in any case.
    pub(crate) async fn follow_leases<T>(
        &mut self,
        keeper: &mut LeaseKeeper,
        until: impl Future<Output = T>,
    ) -> Option<T> {
        let mut until = pin!(until);
        loop {
            let report = tokio::select! {
                report = keeper.next() => report,
                ended = &mut until => return Some(ended),
            };
            match report {
                LeaseReport::Began(leases) => self.take(leases).await,
                LeaseReport::Give(partition) => {
                    self.give(partition).await;
                    keeper.given(partition).await;
                }
                LeaseReport::Drain | LeaseReport::Left => return None,
            }
        }
    }

    /// Gives up the partitions of a node that is to stop one by one, while load balancers turn to
    /// others. Those that nobody has taken until then are given up with all other leases.
    pub(crate) async fn give_all(&mut self, keeper: &mut LeaseKeeper) {
        let given = self.follow_leases(keeper, sleep(GIVING_MAX));
        let (_, ()) = tokio::join!(given, sleep(LEAVING));
    }

    /// Serves nothing any more, with leases that are still held: their next owners may begin once
    /// these are given up.
    pub(crate) async fn quiesce(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.arbiters.quiesce(&**self.store()).await;
        self.arbiters.keep_sessions().await;
        for lease in self.leases.keys() {
            if let LeaseId::Partition(partition) = lease {
                self.deliveries.give(*partition).await;
            }
        }
    }

    /// Returns when the store has failed.
    pub(crate) async fn failed(&self) {
        storage::failed(&**self.store()).await;
    }
}

/// The sessions of a partition that another node has kept.
async fn taken_over(
    sessions: Option<(SessionTaker, watch::Receiver<OtherNodes>)>,
    partition: Partition,
    is_first: bool,
) -> HandedOver {
    let Some((taker, others)) = sessions else {
        return HandedOver::default();
    };
    let addresses: Vec<_> = others.borrow().addresses.values().copied().collect();
    taker.take(partition, &addresses, is_first).await
}

impl Drop for Member {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Where the files of firmware images are.
pub(crate) fn image_directory(config: &Config) -> PathBuf {
    config.data_dir.join("firmware")
}

/// The secrets of DTLS. Cookies live for seconds; tickets are to survive the process, whatever ends
/// it.
fn association_secrets(
    master_key: &MasterKey,
    server_key: ServerKey,
) -> Result<AssociationSecrets, MemberError> {
    let mut cookies = [0; 32];
    getrandom::fill(&mut cookies).map_err(|error| MemberError::Entropy(io::Error::other(error)))?;
    Ok(AssociationSecrets {
        cookies,
        tickets: master_key.derive(b"signalbox DTLS session tickets"),
        server_key,
    })
}

/// The rules for every device, from the configuration.
pub(crate) fn rules(config: &Config, own: Vec<SocketAddr>) -> Rules {
    let patience = TransmissionRules {
        ack_timeout_ms: config.coap_ack_timeout_ms,
        max_retransmit: config.coap_max_retransmit,
        response_timeout_ms: config.coap_response_timeout_ms,
    };
    let names = if config.trust_endpoint_names {
        EndpointTrust::NameSuffices
    } else {
        EndpointTrust::AddressRequired
    };
    let bootstrap = match config.bootstrap_nosec {
        true => NoSecBootstrap::Accepted,
        false => NoSecBootstrap::Refused,
    };
    Rules {
        bootstrap,
        uris: ServiceUris {
            coap: config.public_coap.clone(),
            coaps: config.public_coaps.clone(),
        },
        own: own.into(),
        addresses: config.policy(),
        ..Rules::new(config.limits(), patience, names)
    }
}
