//! Which nodes are there? What a list of nodes and their drain need.

use engine::ids::NodeId;
use engine::node::KnownNode;

use crate::ReadAnswer;

/// The nodes of a service.
pub trait Nodes: Send + Sync {
    /// Every node, the one that started first first.
    fn nodes(&self) -> ReadAnswer<Vec<KnownNode>>;

    /// Has a node give up its shards.
    fn drain(&self, node: NodeId) -> ReadAnswer<DrainOutcome>;
}

/// What becomes of a node that is to be drained.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DrainOutcome {
    /// It learns of it at its next heartbeat.
    Begun,
    /// There is no such node.
    Unknown,
    /// There is no other node that could take its shards.
    OnlyNode,
}
