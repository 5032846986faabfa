//! Which nodes are there beside this one, and which address of theirs does a peer send to?

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::ids::{NodeId, Partition};
use engine::peer::{LocalAddressId, Peer};
use tokio::sync::watch;

use crate::socket::{self, RelayId};

/// The other nodes, as they are listed in the database.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OtherNodes {
    /// Where each is reached that can be.
    pub addresses: BTreeMap<NodeId, SocketAddr>,
    /// Where those are reached that did not renew their leases in time, and may go on soon.
    pub unheard: BTreeMap<NodeId, SocketAddr>,
    /// Which of them has a partition.
    pub partitions: BTreeMap<Partition, NodeId>,
    /// The active one, if it can be reached.
    pub active: Option<NodeId>,
    /// Whether there is no active one among them, or one that is about to stop.
    pub is_active_replaced: bool,
}

impl OtherNodes {
    /// The one that has an arbiter: that of the partition with its number.
    pub(crate) fn node_of(&self, arbiter: ArbiterId) -> Option<NodeId> {
        let partition = Partition(u8::try_from(arbiter.number()).ok()?);
        self.partitions.get(&partition).copied()
    }

    /// Where the node is reached that has a partition.
    pub fn address_of(&self, partition: Partition) -> Option<SocketAddr> {
        let node = self.partitions.get(&partition)?;
        self.addresses.get(node).copied()
    }

    /// Where the active one is reached.
    pub fn active_address(&self) -> Option<SocketAddr> {
        self.addresses.get(&self.active?).copied()
    }

    /// Where nodes are reached that have partitions.
    pub fn holders(&self) -> BTreeSet<SocketAddr> {
        let nodes: BTreeSet<&NodeId> = self.partitions.values().collect();
        let reached = nodes.into_iter().filter_map(|it| self.addresses.get(it));
        reached.copied().collect()
    }
}

/// This node among the others, for all arbiters of it; clones see the same.
#[derive(Clone)]
pub(crate) struct NodeView {
    shard_map: ShardMap,
    /// This node; any, if there are no others.
    node: NodeId,
    others: watch::Receiver<OtherNodes>,
}

impl NodeView {
    pub(super) fn new(
        shard_map: ShardMap,
        node: NodeId,
        others: watch::Receiver<OtherNodes>,
    ) -> Self {
        Self {
            shard_map,
            node,
            others,
        }
    }

    /// The arbiters of all nodes.
    pub(crate) fn shard_map(&self) -> ShardMap {
        self.shard_map
    }

    /// This node.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// The other nodes.
    pub(crate) fn others(&self) -> watch::Ref<'_, OtherNodes> {
        self.others.borrow()
    }

    /// A receiver of the changes of the other nodes.
    pub(crate) fn watch_others(&self) -> watch::Receiver<OtherNodes> {
        self.others.clone()
    }

    /// Whether the others may have changed since this was last called.
    pub(crate) fn have_changed(&mut self) -> bool {
        let have_changed = self.others.has_changed().unwrap_or(false);
        if have_changed {
            self.others.mark_unchanged();
        }
        have_changed
    }

    /// Returns once the others have changed.
    pub(crate) async fn changed(&mut self) {
        if self.others.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// The node and the stream whose sockets have the address that a peer sends to, and the
    /// address, which is unspecified if it is not known. Peers without a node were heard by the
    /// sockets of this stream.
    pub(crate) fn reached_at(&self, peer: Peer, stream: u16) -> (RelayId, IpAddr) {
        let own = RelayId {
            node: self.node,
            stream,
        };
        socket::reached_at(peer, own)
    }

    /// The number of such an address here.
    pub(crate) fn local_at(&self, relay: RelayId, address: IpAddr) -> Option<LocalAddressId> {
        match relay.node == self.node {
            true => socket::id_here(address),
            false => socket::id_at_relay(relay, address),
        }
    }
}
