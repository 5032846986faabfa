//! How does the service start, in order, and stop, in reverse?
//!
//! A node on PostgreSQL stands by until it is the active one. If other nodes reach it, the store,
//! devices and deliveries are there before (`member.rs`), and nothing else is. All of it has
//! stopped when the leases are given up.
//!
//! Store, logging actor, arbiters with their sockets, deliveries, running jobs, the link to an SMS
//! centre, web actor. A stop drains the web actor, ends the link, holds the jobs and stops the
//! arbiters; the store needs no closing. A stop that is cut short loses nothing that was accepted:
//! only the next start takes longer.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor as _, Addr};
use actix_rt::System;
use actors::arbiters::Arbiters;
use actors::campaigns::{CampaignParts, Campaigns};
use actors::jobs::selection::DeviceSelection;
use actors::jobs::{JobParts, Jobs};
use actors::lease;
use actors::logging::{RemoveOld, RetentionPeriods};
use actors::relay::links;
use actors::smpp::Smpp;
use actors::sms::SmsValidity;
use actors::sms::network::SmsNetwork;
use actors::web::{Routes, Web};
use engine::node::lease::LeaseId;
use store::Unavailable;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::api::networks::Networks;
use crate::api::{self, ApiState};
use crate::config::Config;
use crate::data_dir;
use crate::handing_over;
use crate::listeners::{
    DeviceAddresses, DeviceListeners, ListenError, Listeners, NodeListener, OpenSockets, stopped,
};
use crate::member::{LEAVING, Member, MemberError, image_directory};
use crate::node::JoinedNode;
use crate::oidc::{self, IdentityProviderError};
use crate::operator::OperatorToken;
use crate::smpp::{self, LinkError};
use crate::standby::{self, Serving, StandbyError, StoodBy};
use crate::storage::{self, StorageError};

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
    /// The operator's token cannot be read or generated.
    #[error("cannot read or create the operator token: {0}")]
    OperatorToken(io::Error),
    /// SMS could not be sent and received.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// People could not sign in with the identity provider.
    #[error(transparent)]
    IdentityProvider(#[from] IdentityProviderError),
    /// Devices and destinations could not be served.
    #[error(transparent)]
    Member(#[from] MemberError),
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
    member: Box<Member>,
}

impl Service {
    /// Starts the service on the embedded store; must be called in an actix system.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        open_data_dir(config)?;
        lease::describe_active();
        Self::start_on(config, StoodBy::default(), None).await
    }

    /// Starts the service after whatever stood by before it, as the node that it is and with the
    /// leases that it got with that of the active one, if there can be several.
    async fn start_on(
        config: &Config,
        StoodBy {
            sockets, devices, ..
        }: StoodBy,
        node: Option<(&JoinedNode, Vec<(LeaseId, u64)>)>,
    ) -> Result<Self, StartError> {
        links::describe();
        let operator = OperatorToken::load_or_make(config).map_err(StartError::OperatorToken)?;
        let link = smpp::options(config)?;
        let identity_provider = oidc::options(config)?;
        let (node, leases) = node.unzip();
        let (heard_at, listeners, mut member, node_server) = match devices {
            Some((heard_at, Serving::Member(member, web))) => {
                let listeners = Listeners::open(config, sockets)?;
                (heard_at, listeners, member, Some(web))
            }
            Some((heard_at, Serving::Threads(arbiters))) => {
                let threads = Some((heard_at, arbiters));
                open_all(config, sockets, threads, node).await?
            }
            None => open_all(config, sockets, None, node).await?,
        };
        let store = Arc::clone(member.store());
        tidy_images(config, &member).await?;
        match leases {
            Some(leases) => {
                let active = leases.iter().find(|(lease, _)| *lease == LeaseId::Active);
                if let Some((_, epoch)) = active {
                    store.take_over_by_lease(*epoch).await?;
                }
                member.take(leases).await;
            }
            None => {
                let epoch = store.take_over().await?;
                member.take_all(epoch).await;
            }
        }
        member.logging.do_send(RemoveOld(retention_periods(config)));
        let networks = Networks::load(&*store).await?;
        let clock = member.clock.clone();
        let job_parts = JobParts {
            clock: clock.clone(),
            commits: store.clone(),
            devices: member.devices.clone(),
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
                devices: member.devices.clone(),
            },
            store.open_campaigns().await?,
        );
        SmsValidity::new(clock.clone(), store.clone(), store.clone()).start();
        let sms_network = SmsNetwork::new(clock.clone(), store.clone(), store.clone());
        let smpp = link.map(|link| Smpp::start(clock.clone(), sms_network.clone(), link));
        let smpp = smpp.transpose().map_err(LinkError::from)?;
        let operator_token_path = operator.path.clone();
        let parts = api::ApiParts {
            commits: store.clone(),
            store: store.clone(),
            devices: member.devices.clone(),
            deliveries: member.deliveries.clone(),
            jobs: jobs.clone(),
            campaigns: campaigns.clone(),
            image_files: member.image_files.clone(),
            downloads: member.downloads.clone(),
            clock,
            master_key: Arc::clone(&member.storage.master_key),
            operator,
            lost: member.storage.lost,
            networks,
            server_key: Arc::clone(&member.server_key),
            backups: Arc::clone(&member.storage.backups),
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
        let mut web = web.collect::<Result<Vec<_>, _>>()?;
        if let Some(transport) = node.and_then(|node| node.transport.as_ref()) {
            if let Some(former) = node_server {
                member.end_streams();
                stopped(vec![former]).await;
            }
            let (state, of_member) = (state.clone(), member.routes());
            let routes: Routes = Arc::new(move |app| {
                of_member.mount(app);
                api::relayed::mount(app, &state);
            });
            web.push(NodeListener::open(config, transport)?.start(routes)?);
        }
        let commands = member.broker_commands.take();
        let commands = commands.map(|it| api::broker_commands::serve(state.clone(), it));
        drop(commands.map(actix_rt::spawn));
        state.set_ready();
        if let Some(node) = node {
            node.share();
        }
        Ok(Self {
            http,
            operator_http,
            coap: heard_at.coap,
            coaps: heard_at.coaps,
            udp: heard_at.udp,
            operator_token_path,
            state,
            web,
            jobs,
            campaigns,
            smpp,
            member,
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
        self.member.end_streams();
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
        self.member.quiesce().await;
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
        let Some(node) = standby::join(config, ends.superseded).await? else {
            let service = Service::start(config).await?;
            // A program that reads the announcement may send a signal immediately.
            let mut signals = Signals::of(config);
            service.announce();
            return run(config, service, None, &mut signals, (ends, started_at)).await;
        };
        let mut signals = Signals::of(config);
        let waited = standby::stand_by(config, node, signals.received()).await?;
        let Some((node, leases, standby)) = waited else {
            info!("stopped");
            return Ok(());
        };
        let mut stood_by = standby.take_over();
        let held = stood_by.held.take();
        match Service::start_on(config, stood_by, Some((&node, leases))).await {
            Ok(service) => {
                if let (Some(held), Some(transport)) = (&held, &node.transport) {
                    held.serve_at(transport.address);
                }
                service.announce();
                let node = Some(node);
                run(config, service, node, &mut signals, (ends, started_at)).await
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
    mut service: Service,
    mut node: Option<JoinedNode>,
    signals: &mut Signals,
    (ends, started_at): (ProcessEnds, Instant),
) -> Result<(), StartError> {
    let store = Arc::clone(service.member.store());
    let ended = async {
        tokio::select! {
            () = signals.received() => ServiceEnd::Asked,
            () = storage::failed(&*store) => ServiceEnd::StoreFailed,
        }
    };
    let ended = match &mut node {
        Some(node) => service.member.follow_leases(&mut node.keeper, ended).await,
        None => Some(ended.await),
    };
    match ended {
        Some(ServiceEnd::StoreFailed) => replaced(signals, (ends, started_at)).await,
        Some(ServiceEnd::Asked) => stop(config, service, node, false).await,
        None => stop(config, service, node, true).await,
    }
}

/// Why the service ends, unless its node is drained.
enum ServiceEnd {
    Asked,
    StoreFailed,
}

/// The store has failed: replaces the process, unless it is asked to stop meanwhile.
async fn replaced(
    signals: &mut Signals,
    (ends, started_at): (ProcessEnds, Instant),
) -> Result<(), StartError> {
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
    mut service: Service,
    node: Option<JoinedNode>,
    is_drained: bool,
) -> Result<(), StartError> {
    let Some(mut node) = node else {
        service.stop().await;
        return Ok(());
    };
    node.keeper.drain().await;
    if node.transport.is_some() && node.has_successor().await {
        service.state.set_leaving();
        match is_drained {
            true => sleep(LEAVING).await,
            false => service.member.give_all(&mut node.keeper).await,
        }
        service.state.set_draining();
        service.member.end_streams();
        sleep(RELAYED).await;
    }
    let kept = service.member.kept_sessions.clone();
    service.stop().await;
    handing_over::leave(config, node, Some(kept)).await;
    Ok(())
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

/// Opens the store, and then everything that is not open, because what the store says is said
/// before; starts what serves devices and destinations.
async fn open_all(
    config: &Config,
    sockets: OpenSockets,
    threads: Option<(DeviceAddresses, Arbiters)>,
    node: Option<&JoinedNode>,
) -> Result<(DeviceAddresses, Listeners, Box<Member>, Option<Addr<Web>>), StartError> {
    let storage = storage::open(config).await?;
    let listeners = Listeners::open(config, sockets)?;
    let (heard_at, arbiters) = match (threads, node) {
        (Some(threads), _) => threads,
        (None, Some(node)) => {
            let (at, arbiters, _) = standby::open_threads(config, node)?;
            (at, arbiters)
        }
        (None, None) => {
            let DeviceListeners { at, sockets } = DeviceListeners::open(config)?;
            (at, Arbiters::open_alone(sockets))
        }
    };
    let at = listeners.at(heard_at);
    let member = Member::start(config, (storage, arbiters), &at, node).await?;
    Ok((heard_at, listeners, Box::new(member), None))
}

/// Removes the files of firmware images that an upload or a removal left behind.
async fn tidy_images(config: &Config, member: &Member) -> Result<(), StartError> {
    let images = member.store().images().await?;
    let images: Vec<_> = images.iter().map(|image| image.id).collect();
    let tidied = member.image_files.keep_only(&images);
    tidied.map_err(|source| StartError::DataDir {
        path: image_directory(config),
        source,
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
