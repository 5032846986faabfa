//! How long may a connection of a caller wait, and how many may be open? So that callers that send
//! or read slowly, or not at all, do not keep the others out.
//!
//! A connection waits for a request, is being served, or takes a response. While it waits, the
//! whole head of the next request has to arrive within a time, and so has each piece of a response
//! to be taken. Ours, because the server of actix limits the time of a connection's first head
//! only, and that of a response not at all. How long a body may take is a matter of those who read
//! it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::{Future, pending};
use std::io;
use std::net::{self, IpAddr, Shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_rt::task::JoinHandle;
use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::rt::net::TcpStream;
use actix_web::web::Bytes;
use engine::network::network_of_host;
use metrics::{counter, describe_counter};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

/// Connections that were closed by these rules, by reason.
const CLOSED: &str = "signalbox_http_connections_closed_total";
const TOO_MANY: &str = "too_many";
const NO_REQUEST: &str = "no_request";
const RESPONSE_NOT_TAKEN: &str = "response_not_taken";

/// The descriptors that are not for callers: sockets of devices, files of the store, deliveries.
const OTHER_DESCRIPTORS: u64 = 512;

/// With fewer descriptors than this the service may run out of them.
const DESCRIPTORS_MIN: u64 = 640;

/// The descriptors of a connection: its own, and the one by which it is closed.
const DESCRIPTORS: u64 = 2;

/// Connections beyond the bound that still serve the operator and health checks. When all of them
/// are open, a new one takes the place of the one that has waited longest for a request.
const RESERVE: usize = 32;

/// How long another node may acknowledge nothing before it is taken to be lost: about a lease.
const NODE_SILENT_MAX: Duration = Duration::from_secs(10);

/// A body is handed to the connection in pieces of this size, so that it is seen whether they are
/// taken. A shorter body goes as a whole.
const PIECE_BYTES: usize = 16 * 1_024;

/// How long a connection lasts whose request was refused and may have a body without an end.
const ENDING: Duration = Duration::from_secs(1);

/// How often a connection that is being served is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What connections of callers may do.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Open connections.
    pub connections_max: usize,
    /// Open connections from one address.
    pub per_address_max: usize,
    /// The time from the end of a response to the end of the head of the next request.
    pub request_wait: Duration,
    /// The time for which a piece of a response, 16 KiB, may wait to be taken.
    pub response_wait: Duration,
}

impl ConnectionLimits {
    /// The limits as far as the descriptors of the process permit. Raises the soft limit of the
    /// process to the hard one.
    pub fn within_descriptors(self) -> io::Result<Self> {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        if soft < hard {
            setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        }
        if hard < DESCRIPTORS_MIN {
            warn!(
                hard,
                least = DESCRIPTORS_MIN,
                "the limit of open files is too low"
            );
        }
        let others = OTHER_DESCRIPTORS.min(hard / 2);
        let for_callers = hard.saturating_sub(others) / DESCRIPTORS;
        let most = usize::try_from(for_callers).unwrap_or(usize::MAX);
        let most = most.saturating_sub(2 * RESERVE).max(RESERVE);
        let connections_max = self.connections_max.min(most);
        Ok(Self {
            connections_max,
            // No address takes everything.
            per_address_max: self.per_address_max.min(connections_max / 2).max(1),
            ..self
        })
    }
}

/// The open connections.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    /// IPv6: by the network of the host.
    by_address: HashMap<IpAddr, usize>,
    /// Those of the reserve, the oldest first.
    reserve: Vec<Arc<ConnectionHandle>>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionUse {
    /// Every route.
    Any,
    /// The operator and health checks: as many connections are open as may be.
    Reserve,
}

/// An open connection.
#[derive(Clone)]
pub struct Connection(Rc<ConnectionState>);

struct ConnectionState {
    connections: Connections,
    address: IpAddr,
    handle: Arc<ConnectionHandle>,
    purpose: ConnectionUse,
    phase: Cell<Phase>,
    watch: RefCell<Option<JoinHandle<()>>>,
}

/// What any thread can do with a connection.
#[derive(Debug)]
struct ConnectionHandle {
    /// A second descriptor, so that the connection can be closed wherever it hangs.
    descriptor: OwnedFd,
    /// Whether it waits for a request.
    is_waiting: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// For a request.
    Waiting { since: Instant },
    /// A request is being served.
    Serving,
    /// A response is being taken.
    Answering {
        /// Since when a piece waits to be taken.
        offered_at: Option<Instant>,
    },
    /// For its end.
    Ending { since: Instant },
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        describe_counter!(
            CLOSED,
            "Connections to the API that were closed, by reason."
        );
        for reason in [TOO_MANY, NO_REQUEST, RESPONSE_NOT_TAKEN] {
            counter!(CLOSED, "reason" => reason).increment(0);
        }
        Self {
            limits,
            open: Arc::default(),
        }
    }

    /// Takes a connection in, or closes it.
    pub(super) fn admit(&self, stream: &dyn Any) -> Option<Connection> {
        let secured = stream.downcast_ref::<TlsStream<TcpStream>>();
        let stream = secured
            .map(|secured| secured.get_ref().0)
            .or_else(|| stream.downcast_ref::<TcpStream>())?;
        let address = network_of_host(stream.peer_addr().ok()?.ip().to_canonical());
        let handle = stream.as_fd().try_clone_to_owned().map(|descriptor| {
            Arc::new(ConnectionHandle {
                descriptor,
                is_waiting: AtomicBool::new(true),
            })
        });
        let admitted = handle.map_or(None, |handle| Some((self.enter(address, &handle)?, handle)));
        let Some((purpose, handle)) = admitted else {
            debug!(%address, "a connection was closed: too many are open");
            counter!(CLOSED, "reason" => TOO_MANY).increment(1);
            // It may be gone already.
            let _ = SockRef::from(stream).shutdown(Shutdown::Both);
            return None;
        };
        let state = Rc::new(ConnectionState {
            connections: self.clone(),
            address,
            handle,
            purpose,
            phase: Cell::new(Phase::Waiting {
                since: Instant::now(),
            }),
            watch: RefCell::new(None),
        });
        let watched = Rc::downgrade(&state);
        let watch = actix_rt::spawn(async move {
            while let Some(state) = watched.upgrade() {
                match state.deadline() {
                    Some(deadline) if deadline <= Instant::now() => return state.close(),
                    Some(deadline) => {
                        drop(state);
                        sleep_until(deadline).await;
                    }
                    None => {
                        drop(state);
                        sleep(LOOK).await;
                    }
                }
            }
        });
        *state.watch.borrow_mut() = Some(watch);
        Some(Connection(state))
    }

    fn enter(&self, address: IpAddr, handle: &Arc<ConnectionHandle>) -> Option<ConnectionUse> {
        let mut open = self.open();
        let of_address = open.by_address.get(&address).copied().unwrap_or_default();
        // Those that gave way count until they are closed, so there may be as many again.
        let all_max = self.limits.connections_max + 2 * RESERVE;
        if of_address >= self.limits.per_address_max || open.count >= all_max {
            return None;
        }
        let purpose = match open.count >= self.limits.connections_max {
            true => ConnectionUse::Reserve,
            false => ConnectionUse::Any,
        };
        if purpose == ConnectionUse::Reserve {
            if open.reserve.len() >= RESERVE {
                let waiting = |it: &Arc<ConnectionHandle>| it.is_waiting.load(Ordering::Relaxed);
                let longest = open.reserve.iter().position(waiting)?;
                open.reserve.remove(longest).close();
                counter!(CLOSED, "reason" => TOO_MANY).increment(1);
            }
            open.reserve.push(Arc::clone(handle));
        }
        *open.by_address.entry(address).or_default() += 1;
        open.count += 1;
        Some(purpose)
    }

    fn leave(&self, address: IpAddr, handle: &Arc<ConnectionHandle>) {
        let mut open = self.open();
        open.count -= 1;
        open.reserve.retain(|one| !Arc::ptr_eq(one, handle));
        if let Entry::Occupied(mut of_address) = open.by_address.entry(address) {
            *of_address.get_mut() -= 1;
            if *of_address.get() == 0 {
                of_address.remove();
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// What the connection is for.
    pub fn purpose(&self) -> ConnectionUse {
        self.0.purpose
    }

    /// The head of a request has arrived.
    pub fn serve(&self) {
        self.0.handle.is_waiting.store(false, Ordering::Relaxed);
        self.0.phase.set(Phase::Serving);
    }

    /// The caller is another node, which sends or reads for as long as it is there: one that
    /// acknowledges nothing is not. The kernel would wait for a quarter of an hour.
    pub fn serve_node(&self) {
        let socket = SockRef::from(&self.0.handle.descriptor);
        let asking = TcpKeepalive::new()
            .with_time(NODE_SILENT_MAX / 2)
            .with_interval(NODE_SILENT_MAX / 4);
        let bounded = socket
            .set_tcp_keepalive(&asking)
            .and_then(|()| socket.set_tcp_user_timeout(Some(NODE_SILENT_MAX)));
        if let Err(error) = bounded {
            warn!(%error, "a node that is lost is not noticed for a while");
        }
        self.serve();
    }

    /// Returns once the caller has closed the connection, or its half of it. The server learns that
    /// only when it sends something.
    pub fn left(&self) -> impl Future<Output = ()> + 'static {
        let descriptor = self.0.handle.descriptor.try_clone();
        async move {
            let watched = descriptor.map(net::TcpStream::from);
            let Ok(watched) = watched.and_then(TcpStream::from_std) else {
                return pending().await;
            };
            while let Ok(ready) = watched.ready(Interest::READABLE).await {
                if ready.is_read_closed() {
                    return;
                }
                // The server reads what the caller sends; this waits for the next thing.
                let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                let _ = watched.try_io(Interest::READABLE, nothing);
            }
        }
    }

    /// The request is refused, and the rest of its body would be received for long: the connection
    /// ends soon, whatever is sent.
    pub fn end_soon(&self) {
        let since = Instant::now();
        self.0.phase.set(Phase::Ending { since });
    }

    /// The response is ready. Returns its body, whose pieces are to be taken at the least rate.
    pub fn answer(&self, body: BoxBody) -> BoxBody {
        let is_short = match body.size() {
            BodySize::None => true,
            BodySize::Sized(bytes) => bytes <= PIECE_BYTES as u64,
            BodySize::Stream => false,
        };
        if is_short {
            self.0.wait();
            return body;
        }
        self.0.phase.set(Phase::Answering { offered_at: None });
        BoxBody::new(PacedBody {
            body,
            rest: Bytes::new(),
            connection: self.clone(),
        })
    }
}

impl ConnectionState {
    fn wait(&self) {
        let since = Instant::now();
        self.handle.is_waiting.store(true, Ordering::Relaxed);
        self.phase.set(Phase::Waiting { since });
    }

    /// When the connection is closed, unless something happens; none while the service is to act.
    fn deadline(&self) -> Option<Instant> {
        let limits = &self.connections.limits;
        match self.phase.get() {
            Phase::Waiting { since } => Some(since + limits.request_wait),
            Phase::Serving => None,
            Phase::Answering { offered_at } => Some(offered_at? + limits.response_wait),
            Phase::Ending { since } => Some(since + ENDING),
        }
    }

    fn close(&self) {
        let reason = match self.phase.get() {
            Phase::Waiting { .. } | Phase::Serving | Phase::Ending { .. } => NO_REQUEST,
            Phase::Answering { .. } => RESPONSE_NOT_TAKEN,
        };
        debug!(address = %self.address, reason, "a connection was closed");
        counter!(CLOSED, "reason" => reason).increment(1);
        self.handle.close();
    }
}

impl ConnectionHandle {
    fn close(&self) {
        // It may be gone already.
        let _ = SockRef::from(&self.descriptor).shutdown(Shutdown::Both);
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.abort();
        }
        self.connections.leave(self.address, &self.handle);
    }
}

/// A body whose pieces are counted as they are taken.
struct PacedBody {
    body: BoxBody,
    /// What is left of the last part of the body.
    rest: Bytes,
    connection: Connection,
}

impl MessageBody for PacedBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let this = &mut *self;
        let phase = &this.connection.0.phase;
        phase.set(Phase::Answering { offered_at: None });
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_next(cx)) {
                Some(Ok(part)) => this.rest = part,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = this.rest.split_to(PIECE_BYTES.min(this.rest.len()));
        let offered_at = Some(Instant::now());
        phase.set(Phase::Answering { offered_at });
        Poll::Ready(Some(Ok(piece)))
    }
}

impl Drop for PacedBody {
    fn drop(&mut self) {
        self.connection.0.wait();
    }
}
