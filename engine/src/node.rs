//! What is a node, and in which state is it?

pub mod lease;
pub mod secret;

use crate::ids::{NodeId, Partition};
use crate::limits::{PARTITIONS, SHARDS};
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
    /// Whether it is the active one.
    pub is_active: bool,
    /// When the lease of the active node ends, if it is this one.
    pub lease_ends_at: Option<Timestamp>,
    /// The partitions whose devices it serves, and whose destinations it delivers to.
    pub partitions: Vec<Partition>,
}

impl KnownNode {
    /// Its state.
    pub fn state(&self) -> NodeState {
        match (self.is_heard, self.is_draining, self.is_active) {
            (false, _, false) => NodeState::Lost,
            (_, true, _) => NodeState::Draining,
            (_, false, false) => NodeState::Standby,
            (_, false, true) => NodeState::Active,
        }
    }

    /// How many shards have the devices that it serves.
    pub fn shards(&self) -> usize {
        self.partitions.len() * usize::from(SHARDS) / usize::from(PARTITIONS)
    }
}

/// The state of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeState {
    /// It answers calls, and does what only one node may do.
    Active,
    /// It takes over when the active node ends. It may serve a part of the devices.
    Standby,
    /// It completes what is in progress, gives up its leases and takes none.
    Draining,
    /// It was not heard for a lease and is not the active one.
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_lost_only_when_its_lease_has_ended() {
        let known = |is_heard, is_draining, is_active| KnownNode {
            id: NodeId::from_bytes([1; 16]),
            name: "a".to_owned(),
            version: "1".to_owned(),
            addresses: vec![],
            started_at: Timestamp::default(),
            heartbeat_at: Timestamp::default(),
            is_heard,
            is_draining,
            is_active,
            lease_ends_at: None,
            partitions: vec![Partition(1), Partition(7)],
        };
        assert_eq!(known(true, false, false).shards(), 128);
        for (is_heard, is_draining, is_active, state) in [
            (true, false, true, NodeState::Active),
            (false, false, true, NodeState::Active),
            (true, false, false, NodeState::Standby),
            (true, true, true, NodeState::Draining),
            (true, true, false, NodeState::Draining),
            (false, true, true, NodeState::Draining),
            (false, false, false, NodeState::Lost),
            (false, true, false, NodeState::Lost),
        ] {
            assert_eq!(known(is_heard, is_draining, is_active).state(), state);
        }
    }
}
