//! How does the service start, in order, and stop, in reverse?
//!
//! A node on PostgreSQL stands by until it has the lease of the shards: nothing of the following is
//! there before, and all of it has stopped when the lease is given up.
//!
//! Store, logging actor, arbiters with their sockets, running jobs, the link to an SMS centre, web
//! actor. A stop drains the web actor, ends the link, holds the jobs and stops the arbiters; the
//! store needs no closing. A stop that is cut short loses nothing that was accepted: only the next
//! start takes longer.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use actix::{Actor as _, Addr};
use actix_rt::System;
use actix_web::web::ServiceConfig;
use actors::arbiters::Arbiters;
use actors::broker::BrokerConnector;
use actors::campaigns::{CampaignParts, Campaigns};
use actors::clock::Clock;
use actors::delivery::{BrokerConnections, Deliveries, DeliveryParts, command_queue};
use actors::image_files::ImageFiles;
use actors::jobs::selection::DeviceSelection;
use actors::jobs::{JobParts, Jobs};
use actors::kept_sessions::KeptSessions;
use actors::lease::{self, LeaseReport};
use actors::logging::{Logging, RetentionPeriods};
use actors::policy::PolicyCache;
use actors::registry::context::ArbiterParts;
use actors::relay;
use actors::smpp::Smpp;
use actors::sms::SmsValidity;
use actors::sms::network::SmsNetwork;
use actors::socket::{self, Open};
use actors::web::{self, ConnectionLimits, Drain, Listening, Routes, Web};
use engine::associations::AssociationSecrets;
use engine::associations::server_key::ServerKey;
use engine::directory::bootstrap::ServiceUris;
use engine::firmware::delivery::DownloadUris;
use engine::rules::{EndpointTrust, NoSecBootstrap, Rules, TransmissionRules};
use store::sealed::MasterKey;
use store::{Commit, Nodes, Pressure, Store, Unavailable};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::api::networks::Networks;
use crate::api::waiting::{WaitingRelay, WaitingState};
use crate::api::{self, ApiState, ServedRoutes};
use crate::coaps_key::{self, ShownServerKey, StoredKeyError};
use crate::config::{Config, cores};
use crate::data_dir;
use crate::deliveries::{self, DeliveryError};
use crate::node::{JoinError, JoinedNode, NodeTransport};
use crate::oidc::{self, IdentityProviderError};
use crate::operator::OperatorToken;
use crate::relay::Relay;
use crate::smpp::{self, LinkError};
use crate::storage::{self, Storage, StorageError};
use crate::tls::{Certificate, TlsError};

/// The pause before the process is replaced, so that one that fails at once does not do so often.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The pause before a server of the store that cannot be reached is tried again: the first one, and
/// the longest, to which it doubles.
const STORE_PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How long a start waits for a free lease before it opens the addresses of the API to say so.
const STANDBY_AFTER: Duration = Duration::from_millis(500);

/// What is listened for at the address of the node.
const NODES: &str = "other nodes";

/// How often it is asked whether the store has failed.
const STORE_LOOK: Duration = Duration::from_millis(500);

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be created or read.
    #[error("cannot use the data directory {path}: {source}")]
    DataDir {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StorageError),
    /// The node cannot join those on its database.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Nothing could be relayed to another node.
    #[error("the client for other nodes cannot be set up: {0}")]
    Relay(reqwest::Error),
    /// The store does not respond.
    #[error(transparent)]
    StoreSilent(#[from] Unavailable),
    /// The private key of the service cannot be used.
    #[error(transparent)]
    ServerKey(#[from] StoredKeyError),
    /// The operator's token cannot be read or generated.
    #[error("cannot read or create the operator token: {0}")]
    OperatorToken(io::Error),
    /// Events could not be delivered.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// SMS could not be sent and received.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// People could not sign in with the identity provider.
    #[error(transparent)]
    IdentityProvider(#[from] IdentityProviderError),
    /// The system gives no entropy.
    #[error("the system gives no entropy: {0}")]
    Entropy(io::Error),
    /// The certificate or its key is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The service cannot listen on an address.
    #[error("cannot listen for {what} on {address}: {source}")]
    Listen {
        /// The purpose of the address.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
}

/// A running service.
pub struct Service {
    /// The address of the HTTP API.
    pub http: SocketAddr,
    /// The address of the operator API, if it has one of its own.
    pub operator_http: Option<SocketAddr>,
    /// The address for CoAP devices.
    pub coap: SocketAddr,
    /// The address for CoAP devices over DTLS.
    pub coaps: SocketAddr,
    /// The address for devices that send bare datagrams.
    pub udp: SocketAddr,
    /// The file with the operator's token, unless the configuration gives it.
    pub operator_token_path: Option<PathBuf>,
    state: ApiState,
    web: Vec<Addr<Web>>,
    jobs: Jobs,
    campaigns: Campaigns,
    smpp: Option<Smpp>,
    arbiters: Arbiters,
    commits: Arc<dyn Commit>,
}

impl Service {
    /// Starts the service on the embedded store; must be called in an actix system.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        open_data_dir(config)?;
        lease::describe_active();
        Self::start_on(config, storage::open(config, None).await?, None).await
    }

    /// Starts the service on an open store, as the node that it is, if there can be several.
    async fn start_on(
        config: &Config,
        storage: Storage,
        node: Option<&JoinedNode>,
    ) -> Result<Self, StartError> {
        let Storage {
            store,
            backups,
            lost,
            master_key,
        } = storage;
        relay::datagrams::describe();
        let operator = OperatorToken::load_or_make(config).map_err(StartError::OperatorToken)?;
        let clock = Clock::new();
        let (commands, broker_commands) = command_queue();
        let http = deliveries::http(config)?;
        let delivering = DeliveryParts {
            clock: clock.clone(),
            commits: store.clone(),
            store: store.clone(),
            brokers: BrokerConnector::beside(&http),
            connections: BrokerConnections::default(),
            http,
            commands,
            policy: config.policy(),
            master_key: Arc::clone(&master_key),
            rules: Arc::new(config.delivery_rules()),
        };
        let image_files = image_files(config, &*store).await?;
        let link = smpp::options(config)?;
        let identity_provider = oidc::options(config)?;
        let key_files = config.coaps_key_files();
        let key_files = key_files.map(|it| it.read().map(|material| (it, material)));
        let key_files = key_files.transpose()?;
        let server_key = match &key_files {
            Some((_, material)) => coaps_key::of_files(material).map_err(TlsError::from)?,
            None => coaps_key::stored(&*store, &master_key).await?,
        };
        let transport = node.and_then(|node| node.transport.as_ref());
        let listeners = Listeners::open(config, transport)?;
        // Kept sessions are of the epoch before: a start that ends before this leaves them.
        let epoch = store.take_over().await?;
        let networks = Networks::load(&*store).await?;
        let (commits, reads) = (store.clone(), store.clone());
        let logging =
            Logging::new(clock.clone(), commits, reads, retention_periods(config)).start();
        let chosen = store.all_customer_settings().await?;
        let downloads = listeners.downloads(config);
        let rules = Arc::new(Rules {
            downloads: downloads.clone(),
            ..rules(config, listeners.heard_at()?)
        });
        let parts = ArbiterParts {
            clock: clock.clone(),
            commits: store.clone(),
            store: store.clone(),
            policies: PolicyCache::of(&rules, &chosen),
            epoch,
            limits: config.arbiter_limits(),
            association_limits: config.association_limits(),
            secrets: association_secrets(&master_key, server_key.clone())?,
            kept_sessions: Some(KeptSessions::new(
                &config.data_dir,
                Arc::clone(&master_key),
                epoch,
            )),
            master_key: Arc::clone(&master_key),
            images: image_files.clone(),
        };
        let arbiters = Arbiters::start(parts, listeners.devices.sockets, &logging);
        let destinations = chosen.into_iter().flat_map(|it| it.destinations);
        let post = Deliveries::start(delivering, destinations.collect(), &logging);
        let job_parts = JobParts {
            clock: clock.clone(),
            commits: store.clone(),
            devices: arbiters.devices(),
            selection: DeviceSelection {
                store: store.clone(),
                devices_max: config.job_devices_max,
            },
            limits: config.job_limits(),
        };
        let jobs = Jobs::start(
            job_parts,
            store.running_jobs().await?,
            store.schedules().await?,
        );
        let campaigns = Campaigns::start(
            CampaignParts {
                clock: clock.clone(),
                commits: store.clone(),
                store: store.clone(),
                devices: arbiters.devices(),
            },
            store.open_campaigns().await?,
        );
        SmsValidity::new(clock.clone(), store.clone(), store.clone()).start();
        let sms_network = SmsNetwork::new(clock.clone(), store.clone(), store.clone());
        let smpp = link.map(|link| Smpp::start(clock.clone(), sms_network.clone(), link));
        let smpp = smpp.transpose().map_err(LinkError::from)?;
        let operator_token_path = operator.path.clone();
        let server_key = Arc::new(ShownServerKey::new(server_key));
        if let Some((files, material)) = key_files {
            let (shown, devices) = (Arc::clone(&server_key), arbiters.devices());
            files.follow("DTLS key", material.fingerprint(), move |material| {
                shown.replace(coaps_key::of_files(material)?, &devices);
                Ok(ControlFlow::Continue(()))
            });
        }
        let commits: Arc<dyn Commit> = store.clone();
        let parts = api::ApiParts {
            commits: Arc::clone(&commits),
            store,
            devices: arbiters.devices(),
            deliveries: post,
            jobs: jobs.clone(),
            campaigns: campaigns.clone(),
            image_files,
            downloads,
            clock,
            master_key,
            operator,
            lost,
            networks,
            server_key,
            backups,
            nodes: node.map(|node| Arc::clone(&node.nodes)),
            sms_network,
            smpp: smpp.clone(),
            identity_provider,
        };
        let state = ApiState::new(config, parts);
        let http = listeners.http.address;
        let operator_http = listeners.operator.as_ref().map(|web| web.address);
        if let Some(certificate) = &listeners.certificate {
            certificate.follow();
        }
        let web = [Some(listeners.http), listeners.operator];
        let web = web.into_iter().flatten().map(|web| web.start(&state));
        let nodes = listeners.nodes.into_iter().map(|it| it.start(&state));
        let web = web.chain(nodes).collect::<Result<_, _>>()?;
        actix_rt::spawn(api::broker_commands::serve(state.clone(), broker_commands));
        state.set_ready();
        Ok(Self {
            http,
            operator_http,
            coap: listeners.devices.coap,
            coaps: listeners.devices.coaps,
            udp: listeners.devices.udp,
            operator_token_path,
            state,
            web,
            jobs,
            campaigns,
            smpp,
            arbiters,
            commits,
        })
    }

    /// Logs and prints the addresses of the service.
    pub fn announce(&self) {
        println!("listening http={}", self.http);
        if let Some(address) = self.operator_http {
            println!("listening operator-http={address}");
        }
        println!("listening coap={}", self.coap);
        println!("listening coaps={}", self.coaps);
        println!("listening udp={}", self.udp);
        if let Some(path) = &self.operator_token_path {
            println!("operator token in {}", path.display());
        }
    }

    /// Stops the service: it accepts no new call and no new datagram, then completes what is in
    /// progress. Afterwards everything that was acknowledged is durable, and the process may end.
    pub async fn stop(self) {
        info!("stopping");
        self.state.set_draining();
        // All are asked before the first is waited for.
        let unbound = self.smpp.as_ref().map(Smpp::quiesce);
        let drained: Vec<_> = self.web.iter().map(|web| web.send(Drain)).collect();
        for drained in drained {
            if drained.await.is_err() {
                warn!("a web actor has stopped");
            }
        }
        if let Some(unbound) = unbound
            && let Err(error) = unbound.await
        {
            warn!(%error, "the link to the SMS centre has stopped");
        }
        if let Err(error) = self.jobs.quiesce().await {
            warn!(%error, "the runner of jobs has stopped");
        }
        if let Err(error) = self.campaigns.quiesce().await {
            warn!(%error, "the runner of campaigns has stopped");
        }
        self.arbiters.quiesce().await;
        self.arbiters.keep_sessions().await;
        info!("stopped");
    }
}

/// How the process ends by itself. Neither returns, because actors that are dropped with the system
/// may act once more.
#[derive(Clone, Copy)]
pub struct ProcessEnds {
    /// The store has failed: only a new process can help. Called with the time since the start.
    pub replace: fn(Duration) -> Infallible,
    /// Another node has the lease.
    pub superseded: fn() -> Infallible,
}

/// Serves until the process is asked to stop.
pub fn serve(config: &Config, ends: ProcessEnds) -> Result<(), StartError> {
    System::new().block_on(async {
        let started_at = Instant::now();
        open_data_dir(config)?;
        let Some(mut node) = join(config, ends.superseded).await? else {
            let service = Service::start(config).await?;
            // A program that reads the announcement may send a signal immediately.
            let mut signals = Signals::of(config);
            service.announce();
            return run(service, &mut signals, None, (ends, started_at)).await;
        };
        let mut signals = Signals::of(config);
        let Some(epoch) = stand_by(config, &mut node, &mut signals).await? else {
            node.keeper.release().await;
            info!("stopped");
            return Ok(());
        };
        let started = async {
            let storage = storage::open(config, Some(epoch)).await?;
            Service::start_on(config, storage, Some(&node)).await
        };
        match started.await {
            Ok(service) => {
                service.announce();
                run(service, &mut signals, Some(node), (ends, started_at)).await
            }
            Err(error) => {
                node.keeper.release().await;
                Err(error)
            }
        }
    })
}

/// Serves until the process is asked to stop, the node is to drain, or the store has failed.
async fn run(
    service: Service,
    signals: &mut Signals,
    mut node: Option<JoinedNode>,
    (ends, started_at): (ProcessEnds, Instant),
) -> Result<(), StartError> {
    tokio::select! {
        () = signals.received() => return stop(service, node).await,
        () = drained(&mut node) => return stop(service, node).await,
        () = failed(service.commits.as_ref()) => {}
    }
    let served_for = started_at.elapsed();
    tokio::select! {
        () = signals.received() => Ok(()),
        () = sleep(RESTART_PAUSE) => match (ends.replace)(served_for) {},
    }
}

/// Stops the service, and then gives up the lease, so that another node takes it at once.
async fn stop(service: Service, node: Option<JoinedNode>) -> Result<(), StartError> {
    if let Some(node) = &node {
        node.keeper.stopping().await;
    }
    service.stop().await;
    if let Some(node) = node {
        node.keeper.release().await;
        info!("the lease is given up");
    }
    Ok(())
}

/// Returns when somebody drains the node.
async fn drained(node: &mut Option<JoinedNode>) {
    let Some(node) = node else {
        return std::future::pending().await;
    };
    while node.keeper.next().await != LeaseReport::Drain {}
}

/// Joins the nodes of the database, if there is one. A server that cannot be reached is waited for,
/// and health checks are told.
async fn join(
    config: &Config,
    superseded: fn() -> Infallible,
) -> Result<Option<JoinedNode>, StartError> {
    let deadline = Instant::now() + Duration::from_secs(config.store_wait_s.into());
    let (mut pause, longest) = STORE_PAUSES;
    let mut waiting = None;
    loop {
        let joined = JoinedNode::join(config, superseded).await;
        let is_away = joined.as_ref().is_err_and(JoinError::is_transient);
        if !is_away || Instant::now() + pause > deadline {
            if let Some(web) = waiting {
                stopped(web).await;
            }
            return Ok(joined?);
        }
        if let Err(error) = &joined {
            warn!(%error, "waiting for the server of the store");
        }
        if waiting.is_none() {
            let why = Arc::new(AtomicBool::new(false));
            waiting = Some(WebListener::start_all_waiting(config, &why, None, None)?);
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Waits for the lease and returns its epoch; none if the process is to stop. Health checks and
/// callers are told.
async fn stand_by(
    config: &Config,
    node: &mut JoinedNode,
    signals: &mut Signals,
) -> Result<Option<u64>, StartError> {
    let (mut waiting, mut relay) = (None, None);
    // A lease that is free is there soon: nobody else is asked to wait for that.
    let mut announced = Box::pin(sleep(STANDBY_AFTER));
    let epoch = loop {
        tokio::select! {
            report = node.keeper.next() => match report {
                LeaseReport::Began(epoch) => break Some(epoch),
                LeaseReport::Drain | LeaseReport::Left => break None,
            },
            () = signals.received() => break None,
            () = &mut announced, if waiting.is_none() => {
                if let Some(transport) = &node.transport {
                    let sockets = DeviceListeners::open(config)?.sockets;
                    let started = Relay::start(node, transport, sockets);
                    relay = Some(started.map_err(StartError::Relay)?);
                }
                let (is_standby, nodes) = (node.keeper.is_answered(), Some(&node.nodes));
                let relaying = relay.as_ref().map(Relay::waiting);
                let web = WebListener::start_all_waiting(config, &is_standby, nodes, relaying)?;
                info!(node = %node.id, "standing by until this node has the lease");
                println!("standing by node={}", node.id);
                waiting = Some(web);
            }
        }
    };
    if let Some(relay) = relay {
        relay.stop();
    }
    if let Some(web) = waiting {
        stopped(web).await;
    }
    Ok(epoch)
}

fn open_data_dir(config: &Config) -> Result<(), StartError> {
    data_dir::open(&config.data_dir).map_err(|source| StartError::DataDir {
        path: config.data_dir.clone(),
        source,
    })
}

/// Returns once web actors have ended their calls.
async fn stopped(webs: Vec<Addr<Web>>) {
    for web in webs {
        if web.send(Drain).await.is_err() {
            warn!("a web actor has stopped");
        }
    }
}

/// Returns when the store has failed.
async fn failed(commits: &dyn Commit) {
    let mut looks = tokio::time::interval(STORE_LOOK);
    while commits.pressure() != Pressure::Failed {
        looks.tick().await;
    }
}

/// Returns when the process is asked to stop, also by the end of its terminal.
pub async fn wait_for_signal() {
    Signals::listen().received().await;
}

/// The signals that stop the process. From `listen` on, none of them ends the process directly.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// Not where it has another meaning.
    hangup: Option<Signal>,
}

impl Signals {
    fn of(config: &Config) -> Self {
        match (config.tls(), config.coaps_key_files()) {
            (None, None) => Self::listen(),
            (Some(_), _) | (_, Some(_)) => Self::listen_without_hangup(),
        }
    }

    fn listen() -> Self {
        Self {
            hangup: Some(heard(SignalKind::hangup())),
            ..Self::listen_without_hangup()
        }
    }

    /// SIGHUP has certificates and keys read again. Where none is in use yet it does nothing.
    fn listen_without_hangup() -> Self {
        // The handler of the process stays.
        drop(heard(SignalKind::hangup()));
        Self {
            terminate: heard(SignalKind::terminate()),
            interrupt: heard(SignalKind::interrupt()),
            hangup: None,
        }
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = received(&mut self.hangup) => {}
        }
    }
}

fn heard(kind: SignalKind) -> Signal {
    signal(kind).expect("the runtime handles signals")
}

/// Returns when a signal is received; never, if there is none to wait for.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The listeners, which the system may refuse: opened before any actor starts, because an actor
/// that was started in vain is not stopped.
struct Listeners {
    http: WebListener,
    /// The certificate of the API, if it speaks TLS.
    certificate: Option<Arc<Certificate>>,
    /// That of the operator API, if it has an address of its own.
    operator: Option<WebListener>,
    /// That for other nodes, if they can relay to this one.
    nodes: Option<NodeListener>,
    devices: DeviceListeners,
}

/// The listeners for devices.
struct DeviceListeners {
    coap: SocketAddr,
    coaps: SocketAddr,
    udp: SocketAddr,
    /// One of each per arbiter.
    sockets: Vec<Open>,
}

impl DeviceListeners {
    fn open(config: &Config) -> Result<Self, StartError> {
        let arbiters = config.arbiters();
        let coap = SharedListener::open("CoAP", config.coap, arbiters)?;
        let coaps = SharedListener::open("CoAP over DTLS", config.coaps, arbiters)?;
        let udp = SharedListener::open("UDP", config.udp, arbiters)?;
        let all = coap.sockets.into_iter().zip(coaps.sockets).zip(udp.sockets);
        let open = |((coap, coaps), udp)| Open { coap, coaps, udp };
        Ok(Self {
            coap: coap.address,
            coaps: coaps.address,
            udp: udp.address,
            sockets: all.map(open).collect(),
        })
    }
}

impl Listeners {
    fn open(config: &Config, transport: Option<&NodeTransport>) -> Result<Self, StartError> {
        let devices = DeviceListeners::open(config)?;
        let files = config.tls();
        let certificate = files.map(|(cert, key)| Certificate::load(cert, key));
        let certificate = certificate.transpose()?;
        let with = (config, certificate.as_ref());
        let operator = config.operator_http.map(|address| {
            WebListener::open(
                "HTTP for the operator",
                address,
                ServedRoutes::Operator,
                with,
            )
        });
        Ok(Self {
            http: WebListener::open("HTTP", config.http, ServedRoutes::at_api(config), with)?,
            certificate,
            operator: operator.transpose()?,
            nodes: transport
                .map(|it| NodeListener::open(config, it))
                .transpose()?,
            devices,
        })
    }

    /// Where devices download images: as the configuration says, or at the service's own addresses,
    /// unless they are every address of the machine.
    fn downloads(&self, config: &Config) -> DownloadUris {
        let http = match config.tls() {
            Some(_) => "https",
            None => "http",
        };
        let own = |scheme: &str, at: SocketAddr| {
            (!at.ip().is_unspecified()).then(|| format!("{scheme}://{at}").into())
        };
        let set = config.public_http.as_deref().map(Box::from);
        DownloadUris {
            http: set.or_else(|| own(http, self.http.address)),
            coap: config
                .public_coap
                .clone()
                .or_else(|| own("coap", self.devices.coap)),
            coaps: config
                .public_coaps
                .clone()
                .or_else(|| own("coaps", self.devices.coaps)),
        }
    }

    /// Every address at which the service listens.
    fn heard_at(&self) -> Result<Vec<SocketAddr>, StartError> {
        let web = [Some(&self.http), self.operator.as_ref()];
        let web = web.into_iter().flatten().map(|web| (web.what, web.address));
        let listeners = [
            ("CoAP", self.devices.coap),
            ("CoAP over DTLS", self.devices.coaps),
            ("UDP", self.devices.udp),
        ];
        let mut heard_at = Vec::new();
        for (what, bound) in listeners.into_iter().chain(web) {
            heard_at.extend(socket::heard_at(bound).map_err(refused(what, bound))?);
        }
        Ok(heard_at)
    }
}

/// The listener of a part of the API.
struct WebListener {
    what: &'static str,
    address: SocketAddr,
    listening: Listening,
    served: ServedRoutes,
}

impl WebListener {
    fn open(
        what: &'static str,
        address: SocketAddr,
        served: ServedRoutes,
        (config, certificate): (&Config, Option<&Arc<Certificate>>),
    ) -> Result<Self, StartError> {
        let refused = refused(what, address);
        let listener = web::open(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let listening = Listening {
            listener,
            tls: certificate.map(Certificate::server_config),
            workers: match served {
                ServedRoutes::All | ServedRoutes::WithoutOperator => cores(),
                ServedRoutes::Operator => 1,
            },
            limits: config
                .connection_limits()
                .within_descriptors()
                .map_err(refused)?,
        };
        Ok(Self {
            what,
            address,
            listening,
            served,
        })
    }

    /// Starts, at every address of the API, with what is answered while there is no store or no
    /// lease; `is_standby` says which.
    fn start_all_waiting(
        config: &Config,
        is_standby: &Arc<AtomicBool>,
        nodes: Option<&Arc<dyn Nodes>>,
        relay: Option<WaitingRelay>,
    ) -> Result<Vec<Addr<Web>>, StartError> {
        let operator = OperatorToken::load_or_make(config).map_err(StartError::OperatorToken)?;
        let files = config.tls();
        let certificate = files.map(|(cert, key)| Certificate::load(cert, key));
        let certificate = certificate.transpose()?;
        if let Some(certificate) = &certificate {
            certificate.follow();
        }
        let operator_http = config.operator_http;
        let addresses = [
            Some((config.http, ServedRoutes::at_api(config))),
            operator_http.map(|address| (address, ServedRoutes::Operator)),
        ];
        let open = |(address, served)| {
            let with = (config, certificate.as_ref());
            Self::open("HTTP", address, served, with)
        };
        let listeners: Vec<_> = addresses
            .into_iter()
            .flatten()
            .map(open)
            .collect::<Result<_, _>>()?;
        let start = |it: Self| {
            let for_operator = it.served != ServedRoutes::WithoutOperator;
            let state = WaitingState {
                clock: Clock::new(),
                is_standby: Arc::clone(is_standby),
                nodes: nodes.filter(|_| for_operator).cloned(),
                operator: operator.clone(),
                relay: relay.clone(),
                served: it.served,
            };
            it.start_waiting(state)
        };
        listeners.into_iter().map(start).collect()
    }

    fn start(self, state: &ApiState) -> Result<Addr<Web>, StartError> {
        let (state, served) = (state.clone(), self.served);
        self.start_with(Arc::new(move |app: &mut ServiceConfig| {
            api::configure(app, state.clone(), served);
        }))
    }

    fn start_waiting(self, state: WaitingState) -> Result<Addr<Web>, StartError> {
        self.start_with(Arc::new(move |app: &mut ServiceConfig| {
            state.clone().mount(app);
        }))
    }

    fn start_with(self, routes: Routes) -> Result<Addr<Web>, StartError> {
        Web::start_serving(self.listening, routes).map_err(refused(self.what, self.address))
    }
}

/// The listener for other nodes.
struct NodeListener {
    address: SocketAddr,
    listening: Listening,
}

impl NodeListener {
    fn open(config: &Config, transport: &NodeTransport) -> Result<Self, StartError> {
        let address = transport.address;
        let refused = refused(NODES, address);
        let limits = config.connection_limits();
        // What callers may do is limited at the node that they call.
        let limits = ConnectionLimits {
            per_address_max: limits.connections_max,
            ..limits
        };
        let listening = Listening {
            listener: web::open(address).map_err(refused)?,
            tls: Some(transport.identity.server_config()),
            workers: cores(),
            limits: limits.within_descriptors().map_err(refused)?,
        };
        Ok(Self { address, listening })
    }

    fn start(self, state: &ApiState) -> Result<Addr<Web>, StartError> {
        let state = state.clone();
        let routes: Routes = Arc::new(move |app| api::relayed::mount(app, &state));
        Web::start_serving(self.listening, routes).map_err(refused(NODES, self.address))
    }
}

/// The sockets of all arbiters at one address.
struct SharedListener {
    address: SocketAddr,
    sockets: Vec<UdpSocket>,
}

impl SharedListener {
    fn open(what: &'static str, address: SocketAddr, arbiters: usize) -> Result<Self, StartError> {
        let refused = refused(what, address);
        let sockets = socket::open_shared(address, arbiters).map_err(refused)?;
        let bound = sockets.first().map_or(Ok(address), UdpSocket::local_addr);
        let address = bound.map_err(refused)?;
        Ok(Self { address, sockets })
    }
}

fn refused(what: &'static str, address: SocketAddr) -> impl Fn(io::Error) -> StartError + Copy {
    move |source| StartError::Listen {
        what,
        address,
        source,
    }
}

/// Opens the files of firmware images, and removes those that an upload or a removal left behind.
async fn image_files(config: &Config, store: &dyn Store) -> Result<ImageFiles, StartError> {
    let images = store.images().await?;
    let images: Vec<_> = images.iter().map(|image| image.id).collect();
    let path = config.data_dir.join("firmware");
    ImageFiles::open(&path, &images).map_err(|source| StartError::DataDir { path, source })
}

/// The secrets of DTLS. Cookies live for seconds; tickets are to survive the process, whatever ends
/// it.
fn association_secrets(
    master_key: &MasterKey,
    server_key: ServerKey,
) -> Result<AssociationSecrets, StartError> {
    let mut cookies = [0; 32];
    getrandom::fill(&mut cookies).map_err(|error| StartError::Entropy(io::Error::other(error)))?;
    Ok(AssociationSecrets {
        cookies,
        tickets: master_key.derive(b"signalbox DTLS session tickets"),
        server_key,
    })
}

pub(crate) fn retention_periods(config: &Config) -> RetentionPeriods {
    let days = |days: u32| i64::from(days) * 86_400_000;
    RetentionPeriods {
        actions_ms: days(config.action_retention_days),
        jobs_ms: days(config.action_retention_days),
        entries_ms: days(config.log_retention_days),
        events_ms: days(config.history_retention_days),
        dead_letters_ms: days(config.dead_letter_retention_days),
        sms_ms: days(config.sms_retention_days),
        answers_ms: i64::from(config.idempotency_retention_h) * 3_600_000,
    }
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

#[cfg(test)]
mod tests {
    use engine::limits::{ACTION_RETENTION_MS, IDEMPOTENCY_RETENTION_MS, LOG_RETENTION_MS};

    use super::*;

    #[test]
    fn requests_are_kept_for_7_days_and_the_log_for_30_by_default() {
        let retention = retention_periods(&Config::of_defaults());
        assert_eq!(retention.actions_ms, ACTION_RETENTION_MS);
        assert_eq!(retention.entries_ms, LOG_RETENTION_MS);
        assert_eq!(retention.answers_ms, IDEMPOTENCY_RETENTION_MS);
        let days = |days: i64| days * 86_400_000;
        assert_eq!(
            (retention.actions_ms, retention.entries_ms),
            (days(7), days(30))
        );
        let config = Config {
            action_retention_days: 1,
            log_retention_days: 365,
            ..Config::of_defaults()
        };
        let retention = retention_periods(&config);
        assert_eq!(
            (retention.actions_ms, retention.entries_ms),
            (days(1), days(365))
        );
    }
}
