//! What do the arbiters of a process hand each other? What one heard and another is home to.
//!
//! What is for a neighbour is gathered while an arbiter has its turn and leaves as one message at
//! its end: waking another thread costs more than a datagram does.

use std::sync::Arc;

use actix::{Addr, Message};
use engine::dispatch::router::{ForwardedDatagram, RouteHint};
use engine::dispatch::shard_map::ArbiterId;

use crate::registry::Registry;

/// What one arbiter hands another.
#[derive(Default, Message)]
#[rtype(result = "()")]
pub(crate) struct ForwardBatch {
    pub(crate) datagrams: Vec<ForwardedDatagram>,
    pub(crate) route_hints: Vec<RouteHint>,
}

impl ForwardBatch {
    fn is_empty(&self) -> bool {
        self.datagrams.is_empty() && self.route_hints.is_empty()
    }
}

/// All arbiters of the process by number, and what is to leave for each.
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

    /// Keeps a datagram for a neighbour until the end of the turn.
    pub(crate) fn forward(&mut self, to: ArbiterId, forwarded: ForwardedDatagram) {
        if let Some(post) = self.outgoing.get_mut(to.index()) {
            post.datagrams.push(forwarded);
        }
    }

    /// Keeps for a neighbour where a device is at home.
    pub(crate) fn send_hint(&mut self, hint: RouteHint) {
        if let Some(post) = self.outgoing.get_mut(hint.to.index()) {
            post.route_hints.push(hint);
        }
    }

    /// Lets everything leave; returns how many datagrams found no place, as they might in the
    /// network, whose repetitions make up for both.
    pub(crate) fn flush(&mut self) -> u64 {
        let mut lost = 0;
        for (registry, post) in self.registries.iter().zip(&mut self.outgoing) {
            if post.is_empty() {
                continue;
            }
            if let Err(refused) = registry.try_send(std::mem::take(post)) {
                lost += refused.into_inner().datagrams.len() as u64;
            }
        }
        lost
    }
}
