//! The nodes of the service: which of them has which arbiter, which are silent, and what is between
//! them.
//!
//! The leases have a simulation of their own (`engine/tests/leases.rs`). What it shows holds here:
//! a node is silent before another one takes what it had, and each take-over begins a later epoch.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::num::NonZeroU16;

use engine::dispatch::shard_map::ArbiterId;
use engine::peer::{LocalAddressId, Peer};

use super::ArbiterRun;

/// The nodes, by number.
pub(crate) struct Nodes {
    count: usize,
    node_of: BTreeMap<ArbiterId, usize>,
    /// Those that could not renew their leases in time: nothing reaches them or leaves them.
    silent: BTreeSet<usize>,
    /// The pairs without a link, and until when.
    cut_until_ms: BTreeMap<(usize, usize), i64>,
    /// Until when some nodes take an arbiter to be where it was before.
    unseen_until_ms: BTreeMap<ArbiterId, i64>,
    /// Seeds the choice of who receives datagrams from a peer.
    deal: u64,
}

impl Nodes {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            node_of: BTreeMap::new(),
            silent: BTreeSet::new(),
            cut_until_ms: BTreeMap::new(),
            unseen_until_ms: BTreeMap::new(),
            deal: 0,
        }
    }

    pub(super) fn start(&mut self, deal: u64) {
        self.deal = deal;
    }

    pub(super) fn crash(&mut self) {
        *self = Self::new(self.count);
    }

    pub(super) fn take(&mut self, id: ArbiterId, node: usize) {
        self.node_of.insert(id, node);
    }

    pub(super) fn give(&mut self, id: ArbiterId) {
        self.node_of.remove(&id);
    }

    /// Others receive datagrams from the peers, because arbiters have moved.
    pub(crate) fn deal_again(&mut self) {
        self.deal = self.deal.wrapping_add(1);
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The node that has an arbiter.
    pub(crate) fn node_of(&self, id: ArbiterId) -> Option<usize> {
        self.node_of.get(&id).copied()
    }

    /// The arbiters of a node.
    pub(crate) fn arbiters_of(&self, node: usize) -> Vec<ArbiterId> {
        let own = self.node_of.iter().filter(|(_, at)| **at == node);
        own.map(|(id, _)| *id).collect()
    }

    /// A node falls silent, or goes on.
    pub(crate) fn silence(&mut self, node: usize) {
        self.silent.insert(node);
    }

    pub(crate) fn speak(&mut self, node: usize) {
        self.silent.remove(&node);
    }

    /// Whether the node of an arbiter is silent.
    pub(crate) fn is_silent(&self, id: ArbiterId) -> bool {
        let node = self.node_of(id);
        node.is_some_and(|node| self.silent.contains(&node))
    }

    /// Cuts the link between two nodes for a while.
    pub(crate) fn cut(&mut self, (one, other): (usize, usize), until_ms: i64) {
        let pair = (one.min(other), one.max(other));
        self.cut_until_ms.insert(pair, until_ms);
    }

    /// For a while, some nodes take an arbiter to be where it was before.
    pub(crate) fn overlook(&mut self, id: ArbiterId, until_ms: i64) {
        self.unseen_until_ms.insert(id, until_ms);
    }

    /// How one arbiter reaches another.
    pub(crate) fn way(&self, (from, to): (ArbiterId, ArbiterId), now_ms: i64) -> Way {
        let (one, other) = (self.node_of(from), self.node_of(to));
        if one == other {
            return Way::WithinNode;
        }
        let (Some(one), Some(other)) = (one, other) else {
            return Way::None;
        };
        let pair = (one.min(other), one.max(other));
        let is_cut = self.cut_until_ms.get(&pair).is_some_and(|it| now_ms < *it);
        let is_silent = self.silent.contains(&one) || self.silent.contains(&other);
        let is_unseen = self.unseen_until_ms.get(&to);
        match is_cut || is_silent {
            true => Way::None,
            false if is_unseen.is_some_and(|it| now_ms < *it) => Way::Unsure,
            false => Way::BetweenNodes,
        }
    }

    /// Who receives datagrams from a peer, unless they are lost: an arbiter of the node that is
    /// chosen by the peer or, if that has none, of another one. The peer says which node it was.
    pub(super) fn dealt_to(&self, peer: Peer, open: &[ArbiterRun]) -> Option<(Peer, ArbiterRun)> {
        let mut hasher = DefaultHasher::new();
        (self.deal, peer).hash(&mut hasher);
        let (count, number) = (self.count as u64, hasher.finish());
        let node = usize::try_from(number % count).expect("fewer than the nodes");
        if self.silent.contains(&node) {
            return None;
        }
        let is_own = |run: &&ArbiterRun| self.node_of(run.id) == Some(node);
        let own: Vec<&ArbiterRun> = open.iter().filter(is_own).collect();
        let relayed = open.iter().filter(|run| !self.is_silent(run.id));
        let receiving: Vec<&ArbiterRun> = match own.is_empty() {
            false => own,
            true => relayed.collect(),
        };
        let place = (number / count).checked_rem(receiving.len() as u64)?;
        let place = usize::try_from(place).expect("fewer than the arbiters");
        let local = u16::try_from(node + 1).ok().and_then(NonZeroU16::new);
        let heard = peer.sent_to(local.map(LocalAddressId));
        receiving.get(place).map(|run| (heard, **run))
    }
}

/// How what one arbiter sends another travels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    WithinNode,
    BetweenNodes,
    /// Between nodes, and it may go where the other was before.
    Unsure,
    /// It is lost.
    None,
}
