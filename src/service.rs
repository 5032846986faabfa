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
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor as _, Addr};
use actix_rt::System;
use actors::arbiters::Arbiters;
use actors::campaigns::{CampaignParts, Campaigns};
use actors::clock::Clock;
use actors::delivery::{Deliveries, DeliveryShare, command_queue};
use actors::image_files::ImageFiles;
use actors::jobs::selection::DeviceSelection;
use actors::jobs::{JobParts, Jobs};
use actors::kept_sessions::{HandedOver, KeptSessions};
use actors::lease::{self, LeaseReport};
use actors::logging::{Logging, RetentionPeriods};
use actors::policy::PolicyCache;
use actors::registry::context::ArbiterParts;
use actors::relay;
use actors::smpp::Smpp;
use actors::sms::SmsValidity;
use actors::sms::network::SmsNetwork;
use actors::web::{Routes, Web};
use engine::associations::AssociationSecrets;
use engine::associations::server_key::ServerKey;
use engine::directory::bootstrap::ServiceUris;
use engine::node::lease::LeaseId;
use engine::rules::{EndpointTrust, NoSecBootstrap, Rules, TransmissionRules};
use store::sealed::MasterKey;
use store::{Commit, Store, Unavailable};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::api::networks::Networks;
use crate::api::{self, ApiState};
use crate::coaps_key::{self, ShownServerKey, StoredKeyError};
use crate::config::Config;
use crate::data_dir;
use crate::deliveries::{self, DeliveryError};
use crate::handing_over::HandingOver;
use crate::listeners::{ListenError, Listeners, NodeListener, OpenSockets, stopped};
use crate::node::JoinedNode;
use crate::oidc::{self, IdentityProviderError};
use crate::operator::OperatorToken;
use crate::smpp::{self, LinkError};
use crate::standby::{self, LEAVING, StandbyError};
use crate::storage::{self, Storage, StorageError};
use crate::tls::TlsError;

/// The pause before the process is replaced, so that one that fails at once does not do so often.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// How long a call may be under way from a node that relays, which holds further calls from then
/// on.
const RELAYED: Duration = Duration::from_millis(250);

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
    /// The process cannot wait for its lease.
    #[error(transparent)]
    Standby(#[from] StandbyError),
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
    /// Commands could not be passed on to the nodes that deliver.
    #[error("the client for other nodes cannot be set up: {0}")]
    OtherNodes(reqwest::Error),
    /// The system gives no entropy.
    #[error("the system gives no entropy: {0}")]
    Entropy(io::Error),
    /// The key of DTLS is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The service cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
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
    store: Arc<dyn Store>,
    deliveries: Deliveries,
    kept_sessions: KeptSessions,
}

impl Service {
    /// Starts the service on the embedded store; must be called in an actix system.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        open_data_dir(config)?;
        lease::describe_active();
        let storage = storage::open(config, None).await?;
        let share = DeliveryShare::All;
        Self::start_on(config, (storage, share), Predecessor::default(), None).await
    }

    /// Starts the service on an open store, with its part of the deliveries, after whatever served
    /// before it, as the node that it is, if there can be several.
    async fn start_on(
        config: &Config,
        (storage, share): (Storage, DeliveryShare),
        predecessor: Predecessor,
        node: Option<&JoinedNode>,
    ) -> Result<Self, StartError> {
        relay::datagrams::describe();
        let operator = OperatorToken::load_or_make(config).map_err(StartError::OperatorToken)?;
        let clock = Clock::new();
        let (commands, broker_commands) = command_queue();
        let delivering = deliveries::parts(config, &storage, &clock, commands)?;
        let Storage {
            store,
            backups,
            lost,
            master_key,
        } = storage;
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
        let listeners = Listeners::open(config, transport, predecessor.sockets)?;
        // Kept sessions are of the epoch before: a start that ends before this leaves them.
        let epoch = store.take_over().await?;
        let kept_sessions = KeptSessions::new(&config.data_dir, Arc::clone(&master_key), epoch);
        kept_sessions.receive(predecessor.sessions);
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
            kept_sessions: Some(kept_sessions.clone()),
            master_key: Arc::clone(&master_key),
            images: image_files.clone(),
        };
        let arbiters = Arbiters::start(parts, listeners.devices.sockets, &logging);
        let destinations = chosen.into_iter().flat_map(|it| it.destinations);
        let post = Deliveries::start(delivering, share, destinations.collect(), &logging);
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
            store: store.clone(),
            devices: arbiters.devices(),
            deliveries: post.clone(),
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
        let web = web.into_iter().flatten().map(|web| {
            let (state, served) = (state.clone(), web.served);
            web.start(Arc::new(move |app| {
                api::configure(app, state.clone(), served);
            }))
        });
        let for_nodes = state.clone();
        let for_nodes: Routes = Arc::new(move |app| api::relayed::mount(app, &for_nodes));
        let nodes = listeners.nodes.into_iter();
        let nodes = nodes.map(|it| it.start(Arc::clone(&for_nodes)));
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
            store,
            deliveries: post,
            kept_sessions,
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
        // Both are asked before the first is waited for.
        let unbound = self.smpp.as_ref().map(Smpp::quiesce);
        stopped(self.web).await;
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

/// What is left of what served before: this process while it stood by, and another node.
#[derive(Default)]
struct Predecessor {
    sockets: OpenSockets,
    sessions: HandedOver,
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
        let Some(mut node) = standby::join(config, ends.superseded).await? else {
            let service = Service::start(config).await?;
            // A program that reads the announcement may send a signal immediately.
            let mut signals = Signals::of(config);
            service.announce();
            return run(config, service, None, &mut signals, (ends, started_at)).await;
        };
        let mut signals = Signals::of(config);
        let waited = standby::stand_by(config, &mut node, signals.received()).await?;
        let Some((leases, standby)) = waited else {
            node.leave().await;
            info!("stopped");
            return Ok(());
        };
        let (sockets, held) = standby.take_over();
        let started = async {
            let sessions = node.take_sessions(config.arbiters());
            let epoch = leases.get(&LeaseId::Active).copied();
            let (storage, sessions) = tokio::join!(storage::open(config, epoch), sessions);
            let others = node.others_that_deliver().map_err(StartError::OtherNodes)?;
            let stored = (storage?, DeliveryShare::Leased(leases, others));
            let predecessor = Predecessor { sockets, sessions };
            Service::start_on(config, stored, predecessor, Some(&node)).await
        };
        match started.await {
            Ok(service) => {
                if let (Some(held), Some(transport)) = (&held, &node.transport) {
                    held.serve_at(transport.address);
                }
                service.announce();
                run(
                    config,
                    service,
                    Some(node),
                    &mut signals,
                    (ends, started_at),
                )
                .await
            }
            Err(error) => {
                node.leave().await;
                Err(error)
            }
        }
    })
}

/// Serves until the process is asked to stop, the node is to drain, or the store has failed.
async fn run(
    config: &Config,
    service: Service,
    mut node: Option<JoinedNode>,
    signals: &mut Signals,
    (ends, started_at): (ProcessEnds, Instant),
) -> Result<(), StartError> {
    tokio::select! {
        () = signals.received() => return stop(config, service, node).await,
        () = drained(&service, &mut node) => return stop(config, service, node).await,
        () = storage::failed(&*service.store) => {}
    }
    let served_for = started_at.elapsed();
    tokio::select! {
        () = signals.received() => Ok(()),
        () = sleep(RESTART_PAUSE) => match (ends.replace)(served_for) {},
    }
}

/// Stops the service, and then gives up the lease, so that another node takes it at once, and hands
/// its sessions over to that.
async fn stop(
    config: &Config,
    service: Service,
    node: Option<JoinedNode>,
) -> Result<(), StartError> {
    let Some(mut node) = node else {
        service.stop().await;
        return Ok(());
    };
    node.keeper.drain().await;
    let transport = match node.has_successor().await {
        true => node.transport.clone(),
        false => None,
    };
    if transport.is_some() {
        service.state.set_leaving();
        sleep(LEAVING).await;
        service.state.set_draining();
        sleep(RELAYED).await;
    }
    let sessions = HandingOver::of(service.kept_sessions.clone());
    service.stop().await;
    let listener = transport.and_then(|transport| {
        NodeListener::open(config, &transport)
            .and_then(|listener| listener.start(sessions.routes()))
            .inspect_err(|error| warn!(%error, "the DTLS sessions cannot be handed over"))
            .ok()
    });
    node.keeper.release().await;
    info!("the lease is given up");
    if let Some(listener) = listener {
        sessions.taken().await;
        stopped(vec![listener]).await;
    }
    node.keeper.leave().await;
    Ok(())
}

/// Follows the leases of deliveries; returns when somebody drains the node.
async fn drained(service: &Service, node: &mut Option<JoinedNode>) {
    let Some(node) = node else {
        return std::future::pending().await;
    };
    loop {
        match node.keeper.next().await {
            LeaseReport::Began(leases) => {
                let destinations = deliveries::all_destinations(&*service.store).await;
                service.deliveries.take(leases, destinations).await;
            }
            LeaseReport::Give(partition) => {
                service.deliveries.give(partition).await;
                node.keeper.given(partition).await;
            }
            LeaseReport::Drain | LeaseReport::Left => return,
        }
    }
}

fn open_data_dir(config: &Config) -> Result<(), StartError> {
    data_dir::open(&config.data_dir).map_err(|source| StartError::DataDir {
        path: config.data_dir.clone(),
        source,
    })
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
