//! Who reads the sockets of a thread? This actor, which gives what arrives to an arbiter of the
//! thread, or else of the process. If the process has none, another node gets it.

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, Addr, Arbiter as Thread, AsyncContext as _, Context, Handler, Message, MessageResult,
    SpawnHandle, StreamHandler,
};
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::NodeId;
use tokio::sync::watch;
use tracing::{debug, error};

use crate::arbiters::datagrams::{Datagrams, SortedDatagrams};
use crate::arbiters::peer_choice::PeerChoice;
use crate::arbiters::places::{ArbiterPlace, ArbiterPlaces, ArbitersHere};
use crate::lease;
use crate::logging::Logging;
use crate::meters::PUBLISH_EVERY;
use crate::meters::sent::SentMeters;
use crate::registry::context::{ArbiterParts, ArbiterPlacement};
use crate::registry::{ReceivedDatagrams, Registry};
use crate::relay::frame::Frame;
use crate::relay::identity::NodeIdentity;
use crate::relay::links::{LinkState, NodeLinks};
use crate::socket::{self, Open, Socket, SocketReadable, Sockets};

/// The actor that reads the sockets of a thread.
pub(crate) struct Receiver {
    thread: u16,
    sockets: Rc<Sockets>,
    meters: Rc<SentMeters>,
    links: Rc<NodeLinks>,
    places: ArbiterPlaces,
    /// The arbiters of the process.
    here: Arc<watch::Sender<ArbitersHere>>,
    /// The arbiters on this thread.
    on_thread: Vec<ArbiterId>,
    choice: PeerChoice,
    /// Whether the lease was held when it chose.
    was_held: bool,
    /// The streams of the sockets, which a stop cancels.
    readable: Vec<SpawnHandle>,
}

/// What a receiver of a thread needs.
pub(crate) struct ReceiverParts {
    /// The number of the thread.
    pub(crate) thread: u16,
    /// Its sockets.
    pub(crate) open: Open,
    /// Where all arbiters are.
    pub(crate) places: ArbiterPlaces,
    /// Those of this process.
    pub(crate) here: Arc<watch::Sender<ArbitersHere>>,
    /// How other nodes are reached, if there are any.
    pub(crate) nodes: Option<(NodeIdentity, LinkState)>,
}

impl Receiver {
    /// Starts the receiver of a thread; it reads the sockets once it is told to.
    pub(crate) fn start_on(thread: &Thread, parts: ReceiverParts) -> Addr<Self> {
        Self::start_in_arbiter(&thread.handle(), move |_| {
            let ReceiverParts {
                thread,
                open,
                places,
                here,
                nodes,
            } = parts;
            let meters = Rc::new(SentMeters::of(thread));
            let sockets = socket::adopt(open, &meters);
            let sockets = Rc::new(sockets.expect("the runtime of the thread takes open sockets"));
            let links = NodeLinks::new(thread, places.nodes().clone());
            if let Some((identity, state)) = nodes
                && let Err(error) = links.keep_open(&identity, state, Rc::clone(&sockets))
            {
                error!(%error, "other nodes are not reached: there is no client for them");
            }
            Self {
                thread,
                sockets,
                meters,
                links,
                places,
                here,
                on_thread: Vec::new(),
                choice: PeerChoice::None,
                was_held: false,
                readable: Vec::new(),
            }
        })
    }

    /// Chooses anew who receives what, because arbiters have moved, or this node is silent or no
    /// longer: what its arbiters would drop meanwhile is for those of other nodes.
    fn choose(&mut self) {
        self.was_held = lease::is_held();
        let here: Vec<ArbiterId> = self.places.here().keys().copied().collect();
        let all = self.places.shard_map().arbiters();
        let there: Vec<ArbiterId> = all.clone().filter(|it| !here.contains(it)).collect();
        let receiving = if !self.was_held && !there.is_empty() {
            there
        } else if !self.on_thread.is_empty() {
            self.on_thread.clone()
        } else if !here.is_empty() {
            here
        } else {
            all.collect()
        };
        self.choice = PeerChoice::among(&receiving);
    }

    /// Reads a batch of datagrams from a socket.
    fn receive(&mut self, socket: &Socket) {
        if self.places.has_changed() || self.was_held != lease::is_held() {
            self.choose();
        }
        let mut batches = SortedDatagrams::default();
        let choice = &self.choice;
        let received = socket.receive(|peer, bytes| {
            if let Some(arbiter) = choice.of(peer) {
                batches.put(arbiter, peer, bytes);
            }
        });
        if let Err(error) = received {
            // An ICMP error of an earlier send is reported here; it concerns one peer.
            debug!(%error, "the socket reported an error");
        }
        for (arbiter, batch) in batches {
            match self.places.place(arbiter) {
                ArbiterPlace::Here(registry) => {
                    if registry.try_send(ReceivedDatagrams(batch)).is_err() {
                        debug!("an arbiter has no room for datagrams");
                    }
                }
                ArbiterPlace::There(node) => self.relay(Some(node), &batch),
                ArbiterPlace::Nowhere => self.relay(None, &batch),
            }
        }
    }

    fn relay(&self, node: Option<NodeId>, batch: &Datagrams) {
        let mut frames = Vec::new();
        for (peer, datagram) in batch.iter() {
            let (_, at) = self.places.nodes().reached_at(peer, self.thread);
            let frame = Frame { peer, at, datagram };
            frame.write(&mut frames);
        }
        self.links.relay(node, frames, batch.len() as u64);
    }
}

impl Actor for Receiver {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(PUBLISH_EVERY, |receiver, _| receiver.meters.publish());
    }
}

impl StreamHandler<SocketReadable> for Receiver {
    fn handle(&mut self, SocketReadable(transport): SocketReadable, _: &mut Context<Self>) {
        let sockets = Rc::clone(&self.sockets);
        self.receive(sockets.of(transport));
    }

    fn finished(&mut self, _: &mut Context<Self>) {
        error!("a socket was closed");
    }
}

/// Reads the sockets from now on, if it does not yet.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Receive;

impl Handler<Receive> for Receiver {
    type Result = ();

    fn handle(&mut self, _: Receive, ctx: &mut Context<Self>) {
        if !self.readable.is_empty() {
            return;
        }
        self.choose();
        let sockets = self.sockets.iter();
        self.readable = sockets.map(|it| ctx.add_stream(it.arrivals())).collect();
    }
}

/// Reads the sockets no longer.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ReceiveNoMore;

impl Handler<ReceiveNoMore> for Receiver {
    type Result = MessageResult<ReceiveNoMore>;

    fn handle(
        &mut self,
        _: ReceiveNoMore,
        ctx: &mut Context<Self>,
    ) -> MessageResult<ReceiveNoMore> {
        for stream in self.readable.drain(..) {
            ctx.cancel_future(stream);
        }
        MessageResult(())
    }
}

/// Sends everything that devices have queued.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct FlushOutbound;

impl Handler<FlushOutbound> for Receiver {
    type Result = MessageResult<FlushOutbound>;

    fn handle(&mut self, _: FlushOutbound, _: &mut Context<Self>) -> MessageResult<FlushOutbound> {
        self.sockets.iter().for_each(Socket::flush);
        self.meters.publish();
        MessageResult(())
    }
}

/// Starts the registry of an arbiter on the thread.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct BeginArbiter {
    pub(crate) place: ArbiterPlacement,
    pub(crate) parts: ArbiterParts,
    pub(crate) logging: Addr<Logging>,
}

impl Handler<BeginArbiter> for Receiver {
    type Result = MessageResult<BeginArbiter>;

    fn handle(&mut self, new: BeginArbiter, _: &mut Context<Self>) -> MessageResult<BeginArbiter> {
        let BeginArbiter {
            place,
            parts,
            logging,
        } = new;
        let arbiter = place.arbiter_id;
        let thread = (Rc::clone(&self.sockets), Rc::clone(&self.links));
        let registry = Registry::start_on_thread(place, parts, thread, logging);
        self.on_thread.push(arbiter);
        self.here.send_modify(|here| {
            here.insert(arbiter, registry);
        });
        MessageResult(())
    }
}

/// Gives nothing more to an arbiter of the thread.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct EndArbiter(pub(crate) ArbiterId);

impl Handler<EndArbiter> for Receiver {
    type Result = MessageResult<EndArbiter>;

    fn handle(
        &mut self,
        EndArbiter(arbiter): EndArbiter,
        _: &mut Context<Self>,
    ) -> MessageResult<EndArbiter> {
        self.on_thread.retain(|it| *it != arbiter);
        self.here.send_modify(|here| drop(here.remove(&arbiter)));
        MessageResult(())
    }
}
