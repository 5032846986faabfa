//! Where does the service listen? All sockets are opened before any actor starts, because the
//! system may refuse them, and an actor that was started in vain is not stopped.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use actors::socket::{self, Open};
use actors::web::{self, ConnectionLimits, Drain, Listening, Routes, Web};
use engine::firmware::delivery::DownloadUris;
use tracing::warn;

use crate::api::ServedRoutes;
use crate::config::{Config, cores};
use crate::node::NodeTransport;
use crate::tls::{Certificate, TlsError};

/// What is listened for at the address of the node.
const NODES: &str = "other nodes";

/// Why the service cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The certificate or its key is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refuses an address.
    #[error("cannot listen for {what} on {address}: {source}")]
    Refused {
        /// The purpose of the address.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
}

/// The listeners of a service.
pub(crate) struct Listeners {
    pub(crate) http: WebListener,
    /// The certificate of the API, if it speaks TLS.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// That of the operator API, if it has an address of its own.
    pub(crate) operator: Option<WebListener>,
}

/// The sockets of the API that a node had open while it stood by: what waits in them is served.
#[derive(Default)]
pub(crate) struct OpenSockets {
    /// That of the API.
    pub(crate) http: Option<TcpListener>,
    /// That of the operator API, if it has an address of its own.
    pub(crate) operator: Option<TcpListener>,
}

/// The listeners for devices.
pub(crate) struct DeviceListeners {
    pub(crate) at: DeviceAddresses,
    /// One of each per thread that serves devices.
    pub(crate) sockets: Vec<Open>,
}

/// Where devices are heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceAddresses {
    pub(crate) coap: SocketAddr,
    pub(crate) coaps: SocketAddr,
    pub(crate) udp: SocketAddr,
}

/// Every address at which the service listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListeningAt {
    pub(crate) http: SocketAddr,
    /// That of the operator API, if it has an address of its own.
    pub(crate) operator: Option<SocketAddr>,
    pub(crate) devices: DeviceAddresses,
}

impl DeviceListeners {
    pub(crate) fn open(config: &Config) -> Result<Self, ListenError> {
        let arbiters = config.arbiters();
        let coap = SharedListener::open("CoAP", config.coap, arbiters)?;
        let coaps = SharedListener::open("CoAP over DTLS", config.coaps, arbiters)?;
        let udp = SharedListener::open("UDP", config.udp, arbiters)?;
        let all = coap.sockets.into_iter().zip(coaps.sockets).zip(udp.sockets);
        let open = |((coap, coaps), udp)| Open { coap, coaps, udp };
        let at = DeviceAddresses {
            coap: coap.address,
            coaps: coaps.address,
            udp: udp.address,
        };
        let sockets = all.map(open).collect();
        Ok(Self { at, sockets })
    }
}

impl Listeners {
    /// Opens those that are not open.
    pub(crate) fn open(config: &Config, open: OpenSockets) -> Result<Self, ListenError> {
        let files = config.tls();
        let certificate = files.map(|(cert, key)| Certificate::load(cert, key));
        let certificate = certificate.transpose()?;
        let with = (config, certificate.as_ref());
        let operator = config.operator_http.map(|address| {
            let sockets = (address, open.operator);
            WebListener::open(sockets, ServedRoutes::Operator, with)
        });
        let http = (config.http, open.http);
        Ok(Self {
            http: WebListener::open(http, ServedRoutes::at_api(config), with)?,
            certificate,
            operator: operator.transpose()?,
        })
    }

    /// Where the service listens, which hears devices at these addresses.
    pub(crate) fn at(&self, devices: DeviceAddresses) -> ListeningAt {
        ListeningAt {
            http: self.http.address,
            operator: self.operator.as_ref().map(|web| web.address),
            devices,
        }
    }
}

impl ListeningAt {
    /// Where devices download images: as the configuration says, or at the service's own addresses,
    /// unless they are every address of the machine.
    pub(crate) fn downloads(&self, config: &Config) -> DownloadUris {
        let http = match config.tls() {
            Some(_) => "https",
            None => "http",
        };
        let own = |scheme: &str, at: SocketAddr| {
            (!at.ip().is_unspecified()).then(|| format!("{scheme}://{at}").into())
        };
        let set = config.public_http.as_deref().map(Box::from);
        DownloadUris {
            http: set.or_else(|| own(http, self.http)),
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

    /// Every address at which it receives.
    pub(crate) fn heard_at(&self) -> Result<Vec<SocketAddr>, ListenError> {
        let operator = self.operator.map(|at| ("HTTP for the operator", at));
        let listeners = [
            ("CoAP", self.devices.coap),
            ("CoAP over DTLS", self.devices.coaps),
            ("UDP", self.devices.udp),
            ("HTTP", self.http),
        ];
        let mut heard_at = Vec::new();
        for (what, bound) in listeners.into_iter().chain(operator) {
            heard_at.extend(socket::heard_at(bound).map_err(refused(what, bound))?);
        }
        Ok(heard_at)
    }
}

/// The listener of a part of the API.
pub(crate) struct WebListener {
    pub(crate) address: SocketAddr,
    listening: Listening,
    pub(crate) served: ServedRoutes,
}

impl WebListener {
    /// Opens the socket at an address, unless it is open.
    pub(crate) fn open(
        (address, open): (SocketAddr, Option<TcpListener>),
        served: ServedRoutes,
        (config, certificate): (&Config, Option<&Arc<Certificate>>),
    ) -> Result<Self, ListenError> {
        let refused = refused(purpose(served), address);
        let listener = open.map_or_else(|| web::open(address), Ok);
        let listener = listener.map_err(refused)?;
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
            drain_max: web::DRAIN_MAX,
        };
        Ok(Self {
            address,
            listening,
            served,
        })
    }

    /// A further handle of its socket, which stays open when the server has stopped.
    pub(crate) fn socket(&self) -> Result<TcpListener, ListenError> {
        let socket = self.listening.listener.try_clone();
        socket.map_err(refused(purpose(self.served), self.address))
    }

    /// Has a stop wait so long for the calls in progress.
    pub(crate) fn with_drain(mut self, drain_max: Duration) -> Self {
        self.listening.drain_max = drain_max;
        self
    }

    /// Starts to serve.
    pub(crate) fn start(self, routes: Routes) -> Result<Addr<Web>, ListenError> {
        let refused = refused(purpose(self.served), self.address);
        Web::start_serving(self.listening, routes).map_err(refused)
    }
}

/// The listener for other nodes.
pub(crate) struct NodeListener {
    address: SocketAddr,
    listening: Listening,
}

impl NodeListener {
    pub(crate) fn open(config: &Config, transport: &NodeTransport) -> Result<Self, ListenError> {
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
            drain_max: web::DRAIN_MAX,
        };
        Ok(Self { address, listening })
    }

    /// Starts to serve.
    pub(crate) fn start(self, routes: Routes) -> Result<Addr<Web>, ListenError> {
        Web::start_serving(self.listening, routes).map_err(refused(NODES, self.address))
    }
}

/// Returns once web actors have ended their calls.
pub(crate) async fn stopped(webs: Vec<Addr<Web>>) {
    // All are asked before the first is waited for.
    let drained: Vec<_> = webs.iter().map(|web| web.send(Drain)).collect();
    for drained in drained {
        if drained.await.is_err() {
            warn!("a web actor has stopped");
        }
    }
}

/// The sockets of all arbiters at one address.
struct SharedListener {
    address: SocketAddr,
    sockets: Vec<UdpSocket>,
}

impl SharedListener {
    fn open(what: &'static str, address: SocketAddr, arbiters: usize) -> Result<Self, ListenError> {
        let refused = refused(what, address);
        let sockets = socket::open_shared(address, arbiters).map_err(refused)?;
        let bound = sockets.first().map_or(Ok(address), UdpSocket::local_addr);
        let address = bound.map_err(refused)?;
        Ok(Self { address, sockets })
    }
}

/// What is listened for at an address of the API.
fn purpose(served: ServedRoutes) -> &'static str {
    match served {
        ServedRoutes::All | ServedRoutes::WithoutOperator => "HTTP",
        ServedRoutes::Operator => "HTTP for the operator",
    }
}

fn refused(what: &'static str, address: SocketAddr) -> impl Fn(io::Error) -> ListenError + Copy {
    move |source| ListenError::Refused {
        what,
        address,
        source,
    }
}
