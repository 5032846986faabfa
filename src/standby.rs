//! What does a process do before it has the lease of the shards? It waits for the database, then
//! for the lease. Meanwhile health checks and callers are told, or what arrives is relayed to the
//! active node.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use actix::Addr;
use actix_web::web::ServiceConfig;
use actors::clock::Clock;
use actors::lease::LeaseReport;
use actors::web::{DRAIN_MAX, Web};
use engine::node::lease::LeaseId;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::api::ServedRoutes;
use crate::api::waiting::{WaitingRelay, WaitingState};
use crate::config::Config;
use crate::deliverer::{Deliverer, DelivererError};
use crate::listeners::{DeviceListeners, ListenError, OpenSockets, WebListener, stopped};
use crate::node::{JoinError, JoinedNode, NodeTransport};
use crate::operator::OperatorToken;
use crate::relay::{HeldCalls, Relay};
use crate::tls::{Certificate, TlsError};

/// The pause before a server of the store that cannot be reached is tried again: the first one, and
/// the longest, to which it doubles.
const STORE_PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How long a start waits for a free lease before it opens the addresses of the API to say so.
const STANDBY_AFTER: Duration = Duration::from_millis(500);

/// How long a node that is to stop answers as before while it is not ready, so that load balancers
/// turn to others that serve or relay.
pub(crate) const LEAVING: Duration = Duration::from_secs(2);

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
    /// It cannot deliver.
    #[error(transparent)]
    Deliver(#[from] DelivererError),
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

/// Waits until the node is the active one, and delivers meanwhile if it has leases for that;
/// returns all leases with what is open meanwhile, or nothing if the process is to stop.
pub(crate) async fn stand_by(
    config: &Config,
    node: &mut JoinedNode,
    asked_to_stop: impl Future<Output = ()>,
) -> Result<Option<(BTreeMap<LeaseId, u64>, Standby)>, StandbyError> {
    let mut standby = Standby::default();
    // A lease that is free is there soon: nobody else is asked to wait for that.
    let mut announced = pin!(sleep(STANDBY_AFTER));
    let mut asked_to_stop = pin!(asked_to_stop);
    loop {
        tokio::select! {
            report = node.keeper.next() => match report {
                LeaseReport::Began(leases) => {
                    let is_active = leases.iter().any(|(lease, _)| *lease == LeaseId::Active);
                    if is_active {
                        let mut all = standby.deliver_no_more().await;
                        all.extend(leases);
                        return Ok(Some((all, standby)));
                    }
                    if standby.web.is_empty() {
                        standby = Standby::announced(config, node)?;
                    }
                    standby.deliver(config, node, leases).await?;
                }
                LeaseReport::Give(partition) => {
                    if let Some(deliverer) = &mut standby.deliverer {
                        deliverer.give(partition).await;
                    }
                    node.keeper.given(partition).await;
                }
                LeaseReport::Drain | LeaseReport::Left => break,
            },
            () = failed(standby.deliverer.as_ref()) => {
                return Err(DelivererError::StoreFailed.into());
            }
            () = &mut asked_to_stop => break,
            () = &mut announced, if standby.web.is_empty() => {
                standby = Standby::announced(config, node)?;
            }
        }
    }
    standby.end().await;
    Ok(None)
}

/// Returns when the store has failed of a node that delivers.
async fn failed(deliverer: Option<&Deliverer>) {
    match deliverer {
        Some(deliverer) => deliverer.failed().await,
        None => std::future::pending().await,
    }
}

/// What a node has open while it stands by.
#[derive(Default)]
pub(crate) struct Standby {
    web: Vec<WaitingWeb>,
    /// With the sockets that it relays from, if it does.
    relay: Option<(Relay, DeviceListeners)>,
    /// What it delivers, if it does.
    deliverer: Option<Deliverer>,
}

impl Standby {
    /// Opens it, and says so.
    fn announced(config: &Config, node: &JoinedNode) -> Result<Self, StandbyError> {
        let hold_max = Duration::from_secs(config.node_lease_s.into()) + START_MAX;
        let relay = |transport: &NodeTransport| {
            let devices = DeviceListeners::open(config)?;
            let sockets = devices.try_clone()?;
            let relay = Relay::start(node, transport, sockets, hold_max);
            Ok::<_, StandbyError>((relay.map_err(StandbyError::Relay)?, devices))
        };
        let relay = node.transport.as_ref().map(relay).transpose()?;
        let relaying = relay.as_ref().map(|(relay, _)| (relay.waiting(), hold_max));
        let web = WaitingWeb::start_all(config, Some(node), relaying)?;
        info!(node = %node.id, "standing by until this node has the lease");
        println!("standing by node={}", node.id);
        Ok(Self {
            web,
            relay,
            deliverer: None,
        })
    }

    /// Delivers under these leases, too.
    async fn deliver(
        &mut self,
        config: &Config,
        node: &JoinedNode,
        leases: Vec<(LeaseId, u64)>,
    ) -> Result<(), StandbyError> {
        let (Some(transport), Some((relay, _))) = (&node.transport, &self.relay) else {
            return Ok(());
        };
        let deliverer = match &mut self.deliverer {
            Some(deliverer) => deliverer,
            None => {
                let started = Deliverer::start(config, transport, relay.active()).await?;
                self.deliverer.insert(started)
            }
        };
        deliverer.take(leases).await;
        Ok(())
    }

    /// Delivers nothing any more; returns the leases for it, which the node still has.
    async fn deliver_no_more(&mut self) -> BTreeMap<LeaseId, u64> {
        match self.deliverer.take() {
            Some(deliverer) => deliverer.stop().await,
            None => BTreeMap::new(),
        }
    }

    /// Ends: no further call is accepted, and those that the active node answers are completed.
    async fn end(mut self) {
        let servers = servers(std::mem::take(&mut self.web));
        if let Some((relay, _)) = self.relay.take() {
            relay.leave();
            sleep(LEAVING).await;
            let _ = timeout(DRAIN_MAX, stopped(servers.clone())).await;
            // What still waits for an active node is refused.
            drop(relay.stop());
        }
        stopped(servers).await;
        // Last: others deliver once the leases are given up, which is next.
        self.deliver_no_more().await;
    }

    /// Takes over; the sockets stay open for the service, and calls that wait are held for it.
    pub(crate) fn take_over(self) -> (OpenSockets, Option<HeldCalls>) {
        let mut open = OpenSockets::default();
        let mut servers = Vec::new();
        for WaitingWeb {
            server,
            socket,
            served,
        } in self.web
        {
            servers.push(server);
            match served {
                ServedRoutes::All | ServedRoutes::WithoutOperator => open.http = Some(socket),
                ServedRoutes::Operator => open.operator = Some(socket),
            }
        }
        actix_rt::spawn(stopped(servers));
        let held = self.relay.map(|(relay, devices)| {
            open.devices = Some(devices);
            relay.stop()
        });
        (open, held)
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
