//! What does a process do before it is the active node? It waits for the database, then for the
//! lease. Meanwhile health checks and callers are told, or calls are relayed to the active node; if
//! other nodes reach it, it serves the partitions that it has leases of, and relays what devices
//! send to it while it has none.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use actix::Addr;
use actix_web::web::ServiceConfig;
use actors::arbiters::{Arbiters, NodeArbiters};
use actors::clock::Clock;
use actors::kept_sessions::KeptSessions;
use actors::lease::{LeaseKeeper, LeaseReport};
use actors::relay::links::LinkState;
use actors::web::{DRAIN_MAX, Web};
use engine::node::lease::LeaseId;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::api::ServedRoutes;
use crate::api::waiting::{WaitingRelay, WaitingState};
use crate::config::Config;
use crate::handing_over;
use crate::listeners::{
    DeviceAddresses, DeviceListeners, ListenError, ListeningAt, NodeListener, OpenSockets,
    WebListener, stopped,
};
use crate::member::{LEAVING, Member, MemberError};
use crate::node::{JoinError, JoinedNode};
use crate::operator::OperatorToken;
use crate::relay::{HeldCalls, Relay};
use crate::storage;
use crate::tls::{Certificate, TlsError};

/// The pause before a server of the store that cannot be reached is tried again: the first one, and
/// the longest, to which it doubles.
const STORE_PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How long a start waits for a free lease before it opens the addresses of the API to say so.
const STANDBY_AFTER: Duration = Duration::from_millis(500);

/// How long a call waits for the next active node beyond the lease of the last one.
const START_MAX: Duration = Duration::from_secs(10);

/// Why a process cannot wait.
#[derive(Debug, thiserror::Error)]
pub enum StandbyError {
    /// It cannot join the nodes on its database.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The certificate or its key is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The operator's token cannot be read or generated.
    #[error("cannot read or create the operator token: {0}")]
    OperatorToken(io::Error),
    /// It cannot serve its partitions.
    #[error(transparent)]
    Serve(#[from] MemberError),
    /// The store has failed: only a new process can help.
    #[error("the store has failed")]
    StoreFailed,
    /// Nothing could be relayed to another node.
    #[error("the client for other nodes cannot be set up: {0}")]
    Relay(reqwest::Error),
}

/// Joins the nodes of the database, if there is one. A server that cannot be reached is waited for.
pub(crate) async fn join(
    config: &Config,
    superseded: fn() -> Infallible,
) -> Result<Option<JoinedNode>, StandbyError> {
    let deadline = Instant::now() + Duration::from_secs(config.store_wait_s.into());
    let (mut pause, longest) = STORE_PAUSES;
    let mut waiting = None;
    loop {
        let joined = JoinedNode::join(config, superseded).await;
        let is_away = joined.as_ref().is_err_and(JoinError::is_transient);
        if !is_away || Instant::now() + pause > deadline {
            if let Some(web) = waiting {
                stopped(servers(web)).await;
            }
            return Ok(joined?);
        }
        if let Err(error) = &joined {
            warn!(%error, "waiting for the server of the store");
        }
        if waiting.is_none() {
            waiting = Some(WaitingWeb::start_all(config, None, None)?);
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Waits until the node is the active one, and serves meanwhile what it has leases of; returns the
/// leases that it got with that of the active one, and what is open. Nothing is returned if the
/// process is to stop: then the node has left the others.
pub(crate) async fn stand_by(
    config: &Config,
    mut node: JoinedNode,
    asked_to_stop: impl Future<Output = ()>,
) -> Result<Option<(JoinedNode, Vec<(LeaseId, u64)>, Standby)>, StandbyError> {
    let mut standby = Standby::default();
    // A lease that is free is there soon: nobody else is asked to wait for that.
    let mut announced = pin!(sleep(STANDBY_AFTER));
    let mut asked_to_stop = pin!(asked_to_stop);
    let is_drained = loop {
        tokio::select! {
            report = node.keeper.next() => match report {
                LeaseReport::Began(leases) => {
                    let is_active = leases.iter().any(|(lease, _)| *lease == LeaseId::Active);
                    if is_active {
                        return Ok(Some((node, leases, standby)));
                    }
                    if standby.web.is_empty() {
                        standby = Standby::announced(config, &node)?;
                    }
                    standby.take(config, &node, leases).await?;
                }
                LeaseReport::Give(partition) => {
                    if let Some(Serving::Member(member, _)) = &mut standby.serving {
                        member.give(partition).await;
                    }
                    node.keeper.given(partition).await;
                }
                LeaseReport::Drain | LeaseReport::Left => break true,
            },
            () = failed(standby.serving.as_ref()) => return Err(StandbyError::StoreFailed),
            () = &mut asked_to_stop => break false,
            () = &mut announced, if standby.web.is_empty() => {
                standby = Standby::announced(config, &node)?;
            }
        }
    };
    node.keeper.drain().await;
    let kept = standby.end(&mut node.keeper, is_drained).await;
    handing_over::leave(config, node, kept).await;
    Ok(None)
}

/// Returns when the store has failed of a node that serves partitions.
async fn failed(serving: Option<&Serving>) {
    match serving {
        Some(Serving::Member(member, _)) => member.failed().await,
        Some(Serving::Threads(_)) | None => std::future::pending().await,
    }
}

/// What a node has open while it stands by.
#[derive(Default)]
pub(crate) struct Standby {
    web: Vec<WaitingWeb>,
    relay: Option<Relay>,
    /// Where it hears devices, if it does.
    devices: Option<DeviceAddresses>,
    /// What it serves them with.
    serving: Option<Serving>,
}

/// What a node serves devices with, before it is the active one.
pub(crate) enum Serving {
    /// Threads that relay what arrives.
    Threads(Arbiters),
    /// Its partitions, with the server for other nodes.
    Member(Box<Member>, Addr<Web>),
}

/// What the active node goes on with that stood by before.
#[derive(Default)]
pub(crate) struct StoodBy {
    pub(crate) sockets: OpenSockets,
    pub(crate) held: Option<HeldCalls>,
    pub(crate) devices: Option<(DeviceAddresses, Serving)>,
}

/// Opens the sockets for devices, and the threads that serve them for a node.
pub(crate) fn open_threads(
    config: &Config,
    node: &JoinedNode,
) -> Result<(DeviceAddresses, Arbiters, LinkState), ListenError> {
    let DeviceListeners { at, sockets } = DeviceListeners::open(config)?;
    let nodes = node.transport.as_ref().map(|transport| NodeArbiters {
        node: node.id,
        identity: transport.identity.clone(),
        others: transport.others.clone(),
    });
    let (arbiters, links) = Arbiters::open(sockets, nodes);
    Ok((at, arbiters, links))
}

impl Standby {
    /// Opens it, and says so.
    fn announced(config: &Config, node: &JoinedNode) -> Result<Self, StandbyError> {
        let hold_max = Duration::from_secs(config.node_lease_s.into()) + START_MAX;
        let mut standby = Self::default();
        if let Some(transport) = &node.transport {
            let (devices, arbiters, links) = open_threads(config, node)?;
            node.share_once(links.clone());
            let relay = Relay::start(transport, links, hold_max).map_err(StandbyError::Relay)?;
            standby.relay = Some(relay);
            standby.devices = Some(devices);
            standby.serving = Some(Serving::Threads(arbiters));
        }
        let relaying = standby
            .relay
            .as_ref()
            .map(|relay| (relay.waiting(), hold_max));
        standby.web = WaitingWeb::start_all(config, Some(node), relaying)?;
        info!(node = %node.id, "standing by until this node has the lease");
        println!("standing by node={}", node.id);
        Ok(standby)
    }

    /// Serves what these leases are of, too.
    async fn take(
        &mut self,
        config: &Config,
        node: &JoinedNode,
        leases: Vec<(LeaseId, u64)>,
    ) -> Result<(), StandbyError> {
        let serving = match self.serving.take() {
            Some(Serving::Threads(arbiters)) => self.begin(config, node, arbiters).await?,
            serving @ (Some(Serving::Member(..)) | None) => serving,
        };
        self.serving = serving;
        if let Some(Serving::Member(member, _)) = &mut self.serving {
            member.take(leases).await;
        }
        Ok(())
    }

    async fn begin(
        &self,
        config: &Config,
        node: &JoinedNode,
        arbiters: Arbiters,
    ) -> Result<Option<Serving>, MemberError> {
        let (Some(at), Some(transport)) = (self.listening_at(), &node.transport) else {
            return Ok(None);
        };
        let storage = storage::open(config).await?;
        let mut member = Member::start(config, (storage, arbiters), &at, Some(node)).await?;
        let listener = NodeListener::open(config, transport)?;
        let web = listener.start(member.routes().routes())?;
        Ok(Some(Serving::Member(Box::new(member), web)))
    }

    fn listening_at(&self) -> Option<ListeningAt> {
        let address = |is_operator: bool| {
            let mut web = self.web.iter();
            let found = web.find(|it| (it.served == ServedRoutes::Operator) == is_operator);
            found.and_then(|it| it.socket.local_addr().ok())
        };
        Some(ListeningAt {
            http: address(false)?,
            operator: address(true),
            devices: self.devices?,
        })
    }

    /// Ends: no further call is accepted, and those that the active node answers are completed.
    /// Returns where the sessions of its devices are kept.
    async fn end(mut self, keeper: &mut LeaseKeeper, is_drained: bool) -> Option<KeptSessions> {
        let servers = servers(std::mem::take(&mut self.web));
        if let Some(relay) = self.relay.take() {
            relay.leave();
            match &mut self.serving {
                Some(Serving::Member(member, _)) if !is_drained => member.give_all(keeper).await,
                Some(Serving::Member(..) | Serving::Threads(_)) | None => sleep(LEAVING).await,
            }
            let _ = timeout(DRAIN_MAX, stopped(servers.clone())).await;
            // What still waits for an active node is refused.
            drop(relay.stop());
        }
        stopped(servers).await;
        // Last: others serve once the leases are given up, which is next.
        match self.serving.take() {
            Some(Serving::Member(member, web)) => {
                member.end_streams();
                stopped(vec![web]).await;
                member.quiesce().await;
                Some(member.kept_sessions.clone())
            }
            Some(Serving::Threads(_)) | None => None,
        }
    }

    /// Takes over; the sockets stay open for the service, and calls that wait are held for it.
    pub(crate) fn take_over(self) -> StoodBy {
        let mut sockets = OpenSockets::default();
        let mut servers = Vec::new();
        for WaitingWeb {
            server,
            socket,
            served,
        } in self.web
        {
            servers.push(server);
            match served {
                ServedRoutes::All | ServedRoutes::WithoutOperator => sockets.http = Some(socket),
                ServedRoutes::Operator => sockets.operator = Some(socket),
            }
        }
        actix_rt::spawn(stopped(servers));
        StoodBy {
            sockets,
            held: self.relay.map(Relay::stop),
            devices: self.devices.zip(self.serving),
        }
    }
}

/// What answers at an address of the API while there is no store or no lease.
struct WaitingWeb {
    server: Addr<Web>,
    /// Stays open when the server has stopped.
    socket: TcpListener,
    served: ServedRoutes,
}

impl WaitingWeb {
    /// Starts one at every address of the API, for a node once it has joined.
    fn start_all(
        config: &Config,
        node: Option<&JoinedNode>,
        relay: Option<(WaitingRelay, Duration)>,
    ) -> Result<Vec<Self>, StandbyError> {
        let operator = OperatorToken::load_or_make(config).map_err(StandbyError::OperatorToken)?;
        let files = config.tls();
        let certificate = files.map(|(cert, key)| Certificate::load(cert, key));
        let certificate = certificate.transpose()?;
        if let Some(certificate) = &certificate {
            certificate.follow();
        }
        let (relay, drain_max) = match relay {
            Some((relay, hold_max)) => (Some(relay), hold_max),
            None => (None, DRAIN_MAX),
        };
        let no_answer = || Arc::new(AtomicBool::new(false));
        let is_standby = node.map_or_else(no_answer, |node| node.keeper.is_answered());
        let start = |(address, served): (SocketAddr, ServedRoutes)| {
            let state = WaitingState {
                clock: Clock::new(),
                is_standby: Arc::clone(&is_standby),
                nodes: node
                    .filter(|_| served != ServedRoutes::WithoutOperator)
                    .map(|node| Arc::clone(&node.nodes)),
                operator: operator.clone(),
                relay: relay.clone(),
                served,
            };
            let with = (config, certificate.as_ref());
            let listener = WebListener::open((address, None), served, with)?;
            let socket = listener.socket()?;
            let listener = listener.with_drain(drain_max);
            let server = listener.start(Arc::new(move |app: &mut ServiceConfig| {
                state.clone().mount(app);
            }))?;
            Ok(Self {
                server,
                socket,
                served,
            })
        };
        let operator_http = config.operator_http;
        let addresses = [
            Some((config.http, ServedRoutes::at_api(config))),
            operator_http.map(|address| (address, ServedRoutes::Operator)),
        ];
        addresses.into_iter().flatten().map(start).collect()
    }
}

fn servers(web: Vec<WaitingWeb>) -> Vec<Addr<Web>> {
    web.into_iter().map(|it| it.server).collect()
}
