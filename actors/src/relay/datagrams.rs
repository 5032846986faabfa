//! Which node gets the datagrams that arrive at one that stands by? It has the ports for devices
//! open, and relays what arrives there to the active node, whose answers leave through it.

use std::cell::RefCell;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_rt::Arbiter;
use actix_web::web::Bytes;
use engine::ids::NodeId;
use engine::peer::{ByTransport, Peer};
use metrics::{Counter, counter, describe_counter};
use reqwest::{Body, Client};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use crate::socket::{Open, RelaySocket};

use super::client_of;
use super::frame::{Frame, FrameReader};
use super::identity::NodeIdentity;

const RELAYED: &str = "signalbox_datagrams_relayed_total";
const UNRELAYED: &str = "signalbox_datagrams_unrelayed_total";

/// Batches that may wait for the connection; more are lost.
const BATCHES_MAX: usize = 256;

/// How long the active node may take to accept a stream.
const ACCEPT_FOR: Duration = Duration::from_secs(5);

/// The pause before it is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Where the active node is reached, as far as it is known.
pub type ActiveNode = watch::Receiver<Option<SocketAddr>>;

/// Describes the metrics, and begins to count.
pub fn describe() {
    describe_counter!(
        RELAYED,
        "Datagrams that this node, which stood by, relayed to the active one."
    );
    describe_counter!(
        UNRELAYED,
        "Datagrams that this node could not relay: no active node was connected, or its queue was \
         full."
    );
    for name in [RELAYED, UNRELAYED] {
        counter!(name).increment(0);
    }
}

/// The sockets of a node that stands by, and its streams to the active node.
pub struct DatagramRelay {
    arbiters: Vec<Arbiter>,
    connected: Arc<watch::Sender<usize>>,
}

impl DatagramRelay {
    /// Relays what arrives at these sockets, those of each arbiter over a stream of its own.
    pub fn start(
        node: NodeId,
        identity: &NodeIdentity,
        active: &ActiveNode,
        sockets: Vec<Open>,
    ) -> Result<Self, reqwest::Error> {
        describe();
        let connected = Arc::new(watch::Sender::new(0));
        let mut arbiters = Vec::new();
        for (stream, open) in (0..).zip(sockets) {
            let client = client_of(identity)?;
            let (active, connected) = (active.clone(), Arc::clone(&connected));
            let arbiter = Arbiter::new();
            let stream = RelayStream {
                node,
                stream,
                active,
                connected,
                client,
            };
            arbiter.spawn_fn(move || {
                actix_rt::spawn(async move {
                    if let Err(error) = stream.relay(open).await {
                        error!(%error, "datagrams are not relayed: the sockets cannot be used");
                    }
                });
            });
            arbiters.push(arbiter);
        }
        Ok(Self {
            arbiters,
            connected,
        })
    }

    /// A handle that says whether every stream is connected.
    pub fn connection(&self) -> RelayConnection {
        RelayConnection {
            streams: self.arbiters.len(),
            connected: Arc::clone(&self.connected),
        }
    }

    /// Ends the streams and closes the sockets.
    pub fn stop(self) {
        for arbiter in self.arbiters {
            arbiter.stop();
            if arbiter.join().is_err() {
                warn!("a thread that relays datagrams did not stop cleanly");
            }
        }
    }
}

/// Whether the active node gets what arrives at this one.
#[derive(Clone, Debug)]
pub struct RelayConnection {
    streams: usize,
    connected: Arc<watch::Sender<usize>>,
}

impl RelayConnection {
    /// Whether it does.
    pub fn is_complete(&self) -> bool {
        *self.connected.borrow() == self.streams
    }

    /// Returns at once if it does, and otherwise once it may.
    pub(super) async fn completes(&self) {
        let mut connected = self.connected.subscribe();
        // The sender is here, too.
        let _ = connected.wait_for(|it| *it == self.streams).await;
    }
}

/// The stream of one arbiter.
struct RelayStream {
    node: NodeId,
    stream: u16,
    active: ActiveNode,
    connected: Arc<watch::Sender<usize>>,
    client: Client,
}

/// The open stream to the active node, if there is one.
struct OpenStream {
    batches: RefCell<Option<mpsc::Sender<Bytes>>>,
    relayed: Counter,
    unrelayed: Counter,
}

impl RelayStream {
    async fn relay(mut self, open: Open) -> io::Result<()> {
        let adopt = |transport, socket| RelaySocket::adopt(socket, transport).map(Rc::new);
        let sockets = open.try_map(adopt)?;
        let open = Rc::new(OpenStream {
            batches: RefCell::new(None),
            relayed: counter!(RELAYED),
            unrelayed: counter!(UNRELAYED),
        });
        for socket in sockets.iter() {
            actix_rt::spawn(receive_from(Rc::clone(socket), Rc::clone(&open)));
        }
        loop {
            let active = *self.active.borrow_and_update();
            let mut has_failed = false;
            let ended = async {
                let Some(address) = active else {
                    return std::future::pending().await;
                };
                loop {
                    let ended = self.connect(address, &sockets, &open).await;
                    open.batches.replace(None);
                    if let Err(fault) = ended
                        && !std::mem::replace(&mut has_failed, true)
                    {
                        let fault = reasons(&*fault);
                        warn!(%fault, %address, "datagrams are not relayed to the active node");
                    }
                    sleep(RETRY).await;
                }
            };
            let mut changes = self.active.clone();
            let changed = tokio::select! {
                () = ended => Ok(()),
                changed = changes.changed() => changed,
            };
            open.batches.replace(None);
            if changed.is_err() {
                return Ok(());
            }
        }
    }

    /// Relays to the node at this address, until the stream ends.
    async fn connect(
        &self,
        address: SocketAddr,
        sockets: &ByTransport<Rc<RelaySocket>>,
        open: &OpenStream,
    ) -> Result<(), Box<dyn Error>> {
        let (batches, body) = mpsc::channel(BATCHES_MAX);
        let url = format!(
            "https://{address}/v1/datagrams/{}/{}",
            self.node, self.stream
        );
        let accepted = self.client.post(url).body(Body::wrap(BatchBody(body)));
        let accepted = timeout(ACCEPT_FOR, accepted.send()).await??;
        let mut departing = accepted.error_for_status()?;
        open.batches.replace(Some(batches));
        let _connected = ConnectedCount::of(&self.connected);
        if self.stream == 0 {
            info!(%address, "datagrams are relayed to the active node");
        }
        let mut reader = FrameReader::default();
        while let Some(part) = departing.chunk().await? {
            reader.read(&part, |frame| {
                let socket = sockets.of(frame.peer.transport);
                socket.send(frame.peer.address, frame.at, frame.datagram);
            })?;
        }
        Ok(())
    }
}

/// An error with its causes.
fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

async fn receive_from(socket: Rc<RelaySocket>, open: Rc<OpenStream>) {
    loop {
        let (mut batch, mut count) = (Vec::new(), 0);
        let take = |peer: Peer, at: IpAddr, datagram: &[u8]| {
            count += 1;
            Frame { peer, at, datagram }.write(&mut batch);
        };
        if let Err(error) = socket.receive(take).await {
            return warn!(%error, "a socket was closed");
        }
        open.relay(batch, count);
    }
}

impl OpenStream {
    fn relay(&self, batch: Vec<u8>, count: u64) {
        if batch.is_empty() {
            return;
        }
        let batches = self.batches.borrow();
        let taken = batches.as_ref().map(|it| it.try_send(batch.into()));
        match taken {
            Some(Ok(())) => self.relayed.increment(count),
            Some(Err(_)) | None => self.unrelayed.increment(count),
        }
    }
}

/// Counts a connected stream until it is dropped.
struct ConnectedCount<'a>(&'a watch::Sender<usize>);

impl<'a> ConnectedCount<'a> {
    fn of(connected: &'a watch::Sender<usize>) -> Self {
        connected.send_modify(|it| *it += 1);
        Self(connected)
    }
}

impl Drop for ConnectedCount<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|it| *it -= 1);
    }
}

/// The body of a stream: batches of frames without an end.
struct BatchBody(mpsc::Receiver<Bytes>);

impl http_body::Body for BatchBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let batch = ready!(self.0.poll_recv(cx));
        Poll::Ready(batch.map(|batch| Ok(http_body::Frame::data(batch))))
    }
}
