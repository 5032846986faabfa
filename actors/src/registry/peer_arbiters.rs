//! What do the arbiters of a process send each other? Datagrams of devices that another one owns,
//! and what goes through sessions that another one has.
//!
//! Everything for another arbiter is gathered during a turn and sent as one message at its end:
//! waking another thread costs more than a datagram does.

use std::sync::Arc;

use actix::{Addr, Message};
use engine::associations::export::SessionRecord;
use engine::dispatch::router::{ForwardedDatagram, RouteHint};
use engine::dispatch::shard_map::ArbiterId;
use engine::ids::DeviceKey;
use engine::peer::Peer;

use crate::registry::Registry;

/// What one arbiter sends another.
#[derive(Default, Message)]
#[rtype(result = "()")]
pub(crate) struct ForwardBatch {
    pub(crate) datagrams: Vec<ForwardedDatagram>,
    pub(crate) route_hints: Vec<RouteHint>,
    /// Records of sessions that the other arbiter has.
    pub(crate) records: Vec<(Peer, Vec<u8>)>,
    /// Messages to devices whose sessions the other arbiter has.
    pub(crate) secured: Vec<(DeviceKey, Vec<u8>)>,
    /// With what sessions of the sender are resumed by their ids.
    pub(crate) cached_sessions: Vec<Arc<SessionRecord>>,
    /// Senders of datagrams that the other arbiter received; no known devices.
    pub(crate) strangers: Vec<Peer>,
}

impl ForwardBatch {
    fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
            && self.route_hints.is_empty()
            && self.records.is_empty()
            && self.secured.is_empty()
            && self.cached_sessions.is_empty()
            && self.strangers.is_empty()
    }
}

/// All arbiters of the process by number, and the batch for each.
#[derive(Default)]
pub(crate) struct PeerArbiters {
    registries: Arc<[Addr<Registry>]>,
    outgoing: Vec<ForwardBatch>,
}

impl PeerArbiters {
    /// The arbiters of the process.
    pub(crate) fn new(registries: Arc<[Addr<Registry>]>) -> Self {
        let outgoing = registries.iter().map(|_| ForwardBatch::default()).collect();
        Self {
            registries,
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
        for (registry, post) in self.registries.iter().zip(&mut self.outgoing) {
            if post.is_empty() {
                continue;
            }
            if let Err(refused) = registry.try_send(std::mem::take(post)) {
                let lost_post = refused.into_inner();
                lost += (lost_post.datagrams.len() + lost_post.records.len()) as u64;
            }
        }
        lost
    }
}
