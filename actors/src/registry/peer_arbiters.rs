//! What do arbiters send each other? Datagrams of devices that another one owns, and what goes
//! through sessions that another one has.
//!
//! Everything for another arbiter is gathered during a turn and sent as one message at its end:
//! waking another thread costs more than a datagram does. To an arbiter at another node it goes
//! over a stream.

use std::rc::Rc;
use std::sync::Arc;

use engine::associations::export::SessionRecord;
use engine::dispatch::router::{ForwardedDatagram, RouteHint};
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::DeviceKey;
use engine::peer::Peer;

use crate::arbiters::places::{ArbiterPlace, ArbiterPlaces};
use crate::registry::forward_batch::ForwardBatch;
use crate::relay::links::NodeLinks;

/// All arbiters by number, and the batch for each.
pub(crate) struct PeerArbiters {
    places: ArbiterPlaces,
    links: Rc<NodeLinks>,
    outgoing: Vec<ForwardBatch>,
}

impl PeerArbiters {
    /// The arbiters at these places; those of other nodes are reached over the links.
    pub(crate) fn new(places: ArbiterPlaces, links: Rc<NodeLinks>) -> Self {
        let arbiters = places.shard_map().arbiters();
        let outgoing = arbiters.map(|_| ForwardBatch::default()).collect();
        Self {
            places,
            links,
            outgoing,
        }
    }

    /// Keeps a datagram for another arbiter until the end of the turn.
    pub(crate) fn forward(&mut self, to: ArbiterId, forwarded: ForwardedDatagram) {
        if let Some(post) = self.outgoing.get_mut(to.index()) {
            post.datagrams.push(forwarded);
        }
    }

    /// Keeps a record for the arbiter that has its session until the end of the turn.
    pub(crate) fn forward_record(&mut self, to: ArbiterId, peer: Peer, record: Vec<u8>) {
        if let Some(post) = self.outgoing.get_mut(to.index()) {
            post.records.push((peer, record));
        }
    }

    /// Keeps a message to a device for the arbiter that has its session until the end of the turn.
    pub(crate) fn send_secured(&mut self, to: ArbiterId, device: DeviceKey, message: Vec<u8>) {
        if let Some(post) = self.outgoing.get_mut(to.index()) {
            post.secured.push((device, message));
        }
    }

    /// Keeps with what a session of the arbiter `of` is resumed by its id for all others until the
    /// end of the turn.
    pub(crate) fn share_session(&mut self, of: ArbiterId, record: SessionRecord) {
        let record = Arc::new(record);
        for (at, post) in self.outgoing.iter_mut().enumerate() {
            if at != of.index() {
                post.cached_sessions.push(Arc::clone(&record));
            }
        }
    }

    /// Whether anything waits for the end of the turn.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.outgoing.iter().any(|post| !post.is_empty())
    }

    /// Keeps a route hint for another arbiter until the end of the turn.
    pub(crate) fn send_hint(&mut self, hint: RouteHint) {
        if let Some(post) = self.outgoing.get_mut(hint.to.index()) {
            post.route_hints.push(hint);
        }
    }

    /// Keeps a sender that is no known device until the end of the turn.
    pub(crate) fn send_stranger(&mut self, to: ArbiterId, peer: Peer) {
        if let Some(post) = self.outgoing.get_mut(to.index()) {
            post.strangers.push(peer);
        }
    }

    /// Sends all batches; returns how many datagrams were lost, as they might be in the network,
    /// whose retransmissions make up for both.
    pub(crate) fn flush(&mut self) -> u64 {
        let mut lost = 0;
        let arbiters = self.places.shard_map().arbiters();
        for (arbiter, post) in arbiters.zip(&mut self.outgoing) {
            if post.is_empty() {
                continue;
            }
            let post = std::mem::take(post);
            let datagrams = post.datagrams();
            let is_sent = match self.places.place(arbiter) {
                ArbiterPlace::Here(registry) => registry.try_send(post).is_ok(),
                ArbiterPlace::There(node) => self.links.send_batch(node, arbiter, &post),
                ArbiterPlace::Nowhere => false,
            };
            if !is_sent {
                lost += datagrams;
            }
        }
        lost
    }
}
