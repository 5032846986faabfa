//! How do the threads that serve devices reach the other nodes? Each has a stream to every node, in
//! whose body it sends datagrams and batches for the arbiters there, and in whose response it
//! receives what is to leave through its sockets.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::web::Bytes;
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::NodeId;
use metrics::{Counter, counter, describe_counter};
use reqwest::{Body, Client};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::arbiters::nodes::{NodeView, OtherNodes};
use crate::lease;
use crate::registry::forward_batch::ForwardBatch;
use crate::socket::Sockets;

use super::frame::{BatchContext, FrameReader, StreamFrame, write_batch};
use super::identity::NodeIdentity;
use super::{DATAGRAMS, NodeTasks, Patience, client_of, reasons};

const RELAYED: &str = "signalbox_datagrams_relayed_total";
const UNRELAYED: &str = "signalbox_datagrams_unrelayed_total";

/// Parts of a stream that may wait for its connection; more are lost.
const PARTS_MAX: usize = 256;

/// How long a node may take to accept a stream.
const ACCEPT_FOR: Duration = Duration::from_secs(5);

/// The pause before it is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Describes the metrics, and begins to count.
pub fn describe() {
    describe_counter!(
        RELAYED,
        "Datagrams that this node passed on to the one that serves their devices."
    );
    describe_counter!(
        UNRELAYED,
        "Datagrams that this node could not pass on: that node was not connected, or its queue was \
         full."
    );
    for name in [RELAYED, UNRELAYED] {
        counter!(name).increment(0);
    }
}

/// Whether the threads of this process reach the active node.
#[derive(Clone, Debug)]
pub struct LinkState(Arc<watch::Sender<Vec<bool>>>);

impl LinkState {
    /// The state of the links of so many threads: none reaches it.
    pub(crate) fn of(threads: usize) -> Self {
        Self(Arc::new(watch::Sender::new(vec![false; threads])))
    }

    /// Whether they do.
    pub fn is_complete(&self) -> bool {
        self.0.borrow().iter().all(|it| *it)
    }

    /// Returns at once if they do, and otherwise once they may.
    pub async fn completes(&self) {
        let mut state = self.0.subscribe();
        // The sender is here, too.
        let _ = state.wait_for(|it| it.iter().all(|it| *it)).await;
    }

    fn set(&self, thread: u16, is_reached: bool) {
        self.0.send_if_modified(|threads| {
            let known = threads.get_mut(usize::from(thread));
            known.is_some_and(|it| std::mem::replace(it, is_reached) != is_reached)
        });
    }
}

/// The links of a thread to the other nodes.
pub(crate) struct NodeLinks {
    thread: u16,
    nodes: NodeView,
    open: RefCell<BTreeMap<NodeId, mpsc::Sender<Bytes>>>,
    relayed: Counter,
    unrelayed: Counter,
}

impl NodeLinks {
    /// The links of a thread, of which none is open.
    pub(crate) fn new(thread: u16, nodes: NodeView) -> Rc<Self> {
        Rc::new(Self {
            thread,
            nodes,
            open: RefCell::default(),
            relayed: counter!(RELAYED),
            unrelayed: counter!(UNRELAYED),
        })
    }

    /// Opens links to the other nodes, and keeps them open.
    pub(crate) fn keep_open(
        self: &Rc<Self>,
        identity: &NodeIdentity,
        state: LinkState,
        sockets: Rc<Sockets>,
    ) -> Result<(), reqwest::Error> {
        let kept = KeptLinks {
            client: client_of(identity)?,
            links: Rc::clone(self),
            state,
            sockets,
        };
        actix_rt::spawn(kept.follow(self.nodes.watch_others()));
        Ok(())
    }

    /// Sends a batch to an arbiter of a node; returns whether there was room for it. Without the
    /// lease nothing is sent.
    pub(crate) fn send_batch(&self, node: NodeId, to: ArbiterId, batch: &ForwardBatch) -> bool {
        if !lease::is_held() {
            return false;
        }
        let mut frames = Vec::new();
        let reached_at = |peer| self.nodes.reached_at(peer, self.thread);
        write_batch(to, batch, &reached_at, &mut frames);
        self.relay(Some(node), frames, batch.datagrams())
    }

    /// Sends so many datagrams, in frames, to a node; returns whether there was room for them.
    pub(crate) fn relay(&self, node: Option<NodeId>, frames: Vec<u8>, datagrams: u64) -> bool {
        let open = self.open.borrow();
        let link = node.and_then(|node| open.get(&node));
        let is_sent = link.is_some_and(|link| link.try_send(frames.into()).is_ok());
        match is_sent {
            true => self.relayed.increment(datagrams),
            false => self.unrelayed.increment(datagrams),
        }
        is_sent
    }

    fn reaches_active(&self) -> bool {
        let active = self.nodes.others().active;
        active.is_some_and(|it| self.open.borrow().contains_key(&it))
    }
}

/// The links that are kept open.
struct KeptLinks {
    client: Client,
    links: Rc<NodeLinks>,
    state: LinkState,
    sockets: Rc<Sockets>,
}

impl KeptLinks {
    async fn follow(self, mut others: watch::Receiver<OtherNodes>) {
        let kept = Rc::new(self);
        let mut tasks = NodeTasks::default();
        loop {
            let known = others.borrow_and_update().addresses.clone();
            tasks.follow(&known, |node, address| {
                actix_rt::spawn(Rc::clone(&kept).keep(node, address))
            });
            kept.links
                .open
                .borrow_mut()
                .retain(|it, _| known.contains_key(it));
            kept.show();
            if others.changed().await.is_err() {
                return;
            }
        }
    }

    /// Keeps a link open to a node at this address.
    async fn keep(self: Rc<Self>, node: NodeId, address: SocketAddr) {
        let mut patience = Patience::default();
        loop {
            let ended = self.connect(node, address, &mut patience).await;
            self.links.open.borrow_mut().remove(&node);
            self.show();
            if let Err(fault) = ended
                && patience.is_over()
            {
                let fault = reasons(&*fault);
                warn!(%fault, %address, "there is no link to a node");
            }
            sleep(RETRY).await;
        }
    }

    async fn connect(
        &self,
        node: NodeId,
        address: SocketAddr,
        patience: &mut Patience,
    ) -> Result<(), Box<dyn Error>> {
        let (parts, body) = mpsc::channel(PARTS_MAX);
        let (own, thread) = (self.links.nodes.node(), self.links.thread);
        let url = format!("https://{address}{DATAGRAMS}/{own}/{thread}");
        let accepted = self.client.post(url).body(Body::wrap(StreamBody(body)));
        let accepted = timeout(ACCEPT_FOR, accepted.send()).await??;
        let mut departing = accepted.error_for_status()?;
        self.links.open.borrow_mut().insert(node, parts);
        self.show();
        *patience = Patience::default();
        if thread == 0 {
            info!(%node, %address, "there is a link to a node");
        }
        let mut reader = FrameReader::default();
        let nodes = &self.links.nodes;
        let context = BatchContext {
            shard_map: nodes.shard_map(),
            local_at: &|relay, at| nodes.local_at(relay, at),
        };
        while let Some(part) = departing.chunk().await? {
            reader.read(&part, &context, |frame| match frame {
                StreamFrame::Datagram(frame) => {
                    let socket = self.sockets.of(frame.peer.transport);
                    socket.pass_on(frame.peer.address, frame.at, frame.datagram);
                }
                // They come in the body of a request.
                StreamFrame::Batch(..) => {}
            })?;
        }
        Ok(())
    }

    fn show(&self) {
        let is_reached = self.links.reaches_active();
        self.state.set(self.links.thread, is_reached);
    }
}

/// The body of a stream: parts without an end.
struct StreamBody(mpsc::Receiver<Bytes>);

impl http_body::Body for StreamBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let part = ready!(self.0.poll_recv(cx));
        Poll::Ready(part.map(|part| Ok(http_body::Frame::data(part))))
    }
}
