//! What is a node, and in which state is it?

pub mod lease;
pub mod secret;

use crate::ids::{NodeId, Partition};
use crate::moment::Timestamp;

/// What is known of a node, by the clock of the database.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownNode {
    /// Its id.
    pub id: NodeId,
    /// Its name, which another node may have, too.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// Where it listens once it is active, each with the protocol before it.
    pub addresses: Vec<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it was heard last.
    pub heartbeat_at: Timestamp,
    /// Whether it was heard within a lease.
    pub is_heard: bool,
    /// Whether it is to give up its shards, and take none.
    pub is_draining: bool,
    /// The shards of which it has a lease.
    pub shards: u32,
    /// When its lease ends, if it has one.
    pub lease_ends_at: Option<Timestamp>,
    /// The partitions whose destinations it delivers to.
    pub deliveries: Vec<Partition>,
}

impl KnownNode {
    /// Its state.
    pub fn state(&self) -> NodeState {
        match (self.is_heard, self.is_draining, self.shards) {
            (false, _, 0) => NodeState::Lost,
            (_, true, _) => NodeState::Draining,
            (_, false, 0) => NodeState::Standby,
            (_, false, _) => NodeState::Active,
        }
    }
}

/// The state of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeState {
    /// It has a lease of shards and serves their devices.
    Active,
    /// It takes over when a lease is free.
    Standby,
    /// It completes what is in progress, gives up its shards and takes none.
    Draining,
    /// It was not heard for a lease and holds none.
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDS: u32 = 1_024;

    #[test]
    fn a_node_is_lost_only_when_its_lease_has_ended() {
        let known = |is_heard, is_draining, shards| KnownNode {
            id: NodeId::from_bytes([1; 16]),
            name: "a".to_owned(),
            version: "1".to_owned(),
            addresses: vec![],
            started_at: Timestamp::default(),
            heartbeat_at: Timestamp::default(),
            is_heard,
            is_draining,
            shards,
            lease_ends_at: None,
            deliveries: vec![],
        };
        for (is_heard, is_draining, shards, state) in [
            (true, false, SHARDS, NodeState::Active),
            (false, false, SHARDS, NodeState::Active),
            (true, false, 0, NodeState::Standby),
            (true, true, SHARDS, NodeState::Draining),
            (true, true, 0, NodeState::Draining),
            (false, true, SHARDS, NodeState::Draining),
            (false, false, 0, NodeState::Lost),
            (false, true, 0, NodeState::Lost),
        ] {
            assert_eq!(known(is_heard, is_draining, shards).state(), state);
        }
    }
}
