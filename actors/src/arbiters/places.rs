//! Where is an arbiter? On a thread of this process, or at another node.

use std::collections::BTreeMap;

use actix::Addr;
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::ids::{NodeId, Partition};
use tokio::sync::watch;

use super::nodes::NodeView;
use crate::registry::Registry;

/// The arbiters of this process.
pub(crate) type ArbitersHere = BTreeMap<ArbiterId, Addr<Registry>>;

/// Where an arbiter is.
pub(crate) enum ArbiterPlace {
    /// In this process.
    Here(Addr<Registry>),
    /// At another node.
    There(NodeId),
    /// Nowhere, as far as is known: it moves.
    Nowhere,
}

/// Where each arbiter is; clones see the same.
#[derive(Clone)]
pub(crate) struct ArbiterPlaces {
    nodes: NodeView,
    here: watch::Receiver<ArbitersHere>,
}

impl ArbiterPlaces {
    pub(super) fn new(nodes: NodeView, here: watch::Receiver<ArbitersHere>) -> Self {
        Self { nodes, here }
    }

    /// This node and the others.
    pub(crate) fn nodes(&self) -> &NodeView {
        &self.nodes
    }

    /// The arbiters of all nodes.
    pub(crate) fn shard_map(&self) -> ShardMap {
        self.nodes.shard_map()
    }

    /// The arbiter of the devices of a partition.
    pub(super) fn arbiter_of(&self, partition: Partition) -> Option<ArbiterId> {
        self.shard_map().numbered(partition.0.into())
    }

    /// The arbiters of this process.
    pub(crate) fn here(&self) -> watch::Ref<'_, ArbitersHere> {
        self.here.borrow()
    }

    /// Where an arbiter is.
    pub(crate) fn place(&self, arbiter: ArbiterId) -> ArbiterPlace {
        if let Some(registry) = self.here().get(&arbiter) {
            return ArbiterPlace::Here(registry.clone());
        }
        let node = self.nodes.others().node_of(arbiter);
        node.map_or(ArbiterPlace::Nowhere, ArbiterPlace::There)
    }

    /// Whether an arbiter may be elsewhere than when this was last called.
    pub(crate) fn has_changed(&mut self) -> bool {
        let have_here = self.here.has_changed().unwrap_or(false);
        if have_here {
            self.here.mark_unchanged();
        }
        self.nodes.have_changed() || have_here
    }

    /// Returns once an arbiter may be elsewhere than before.
    pub(crate) async fn changed(&mut self) {
        tokio::select! {
            Ok(()) = self.here.changed() => {}
            () = self.nodes.changed() => {}
        }
    }
}
