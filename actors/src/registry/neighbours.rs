//! What do the arbiters of a process hand each other? What one heard and another is home to.
//!
//! What is for a neighbour is gathered while an arbiter has its turn and leaves as one message at
//! its end: waking another thread costs more than a datagram does.

use std::sync::Arc;

use actix::{Addr, Message};
use engine::registry::homes::ArbiterId;
use engine::registry::router::{Hint, Parcel};

use crate::registry::Registry;

/// What one arbiter hands another.
#[derive(Default, Message)]
#[rtype(result = "()")]
pub(crate) struct Post {
    pub(crate) parcels: Vec<Parcel>,
    pub(crate) hints: Vec<Hint>,
}

impl Post {
    fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.hints.is_empty()
    }
}

/// All arbiters of the process by number, and what is to leave for each.
#[derive(Default)]
pub(crate) struct Neighbours {
    registries: Arc<[Addr<Registry>]>,
    outgoing: Vec<Post>,
}

impl Neighbours {
    /// The arbiters of the process.
    pub(crate) fn new(registries: Arc<[Addr<Registry>]>) -> Self {
        let outgoing = registries.iter().map(|_| Post::default()).collect();
        Self {
            registries,
            outgoing,
        }
    }

    /// Keeps a datagram for a neighbour until the end of the turn.
    pub(crate) fn forward(&mut self, to: ArbiterId, parcel: Parcel) {
        if let Some(post) = self.outgoing.get_mut(to.index()) {
            post.parcels.push(parcel);
        }
    }

    /// Keeps for a neighbour where a device is at home.
    pub(crate) fn tell(&mut self, hint: Hint) {
        if let Some(post) = self.outgoing.get_mut(hint.to.index()) {
            post.hints.push(hint);
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
                lost += refused.into_inner().parcels.len() as u64;
            }
        }
        lost
    }
}
