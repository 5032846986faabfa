//! Which faults does the cluster have, and how are they made and mended?

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use tokio::runtime::Runtime;

use super::database::DatabaseCluster;
use super::links::{LinkState, Links};
use super::nodes::Nodes;
use super::pause;

/// How long what passes lasts: beyond the lease, and until another node has taken over.
const LASTS: Duration = Duration::from_secs(15);

/// A fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Fault {
    /// kill -9 of the active node, whose machine does not come back
    KillNode,
    /// Drain of the active node by the API
    DrainNode,
    /// SIGTERM of the active node
    TerminateNode,
    /// kill -9 of the PostgreSQL primary and its Patroni
    KillPrimary,
    /// A planned switchover of PostgreSQL
    SwitchOver,
    /// kill -9 of the active node, of the primary and its Patroni
    KillBoth,
    /// SIGSTOP of the active node, and SIGCONT after 15 s
    PauseNode,
    /// The active node reaches no database server for 15 s; devices and callers reach it
    PartitionNode,
    /// Whatever passes between nodes and database takes 0.1 s longer each way, for 15 s
    SlowDatabase,
    /// The nodes are started anew with the program to measure: those that stand by, then the active
    /// one
    Upgrade,
}

impl Fault {
    /// Whether the database is without a primary for a while.
    pub(crate) fn concerns_database(self) -> bool {
        match self {
            Self::KillPrimary | Self::SwitchOver | Self::KillBoth => true,
            Self::KillNode
            | Self::DrainNode
            | Self::TerminateNode
            | Self::PauseNode
            | Self::PartitionNode
            | Self::SlowDatabase
            | Self::Upgrade => false,
        }
    }

    /// Makes the fault; returns what it has left of the database.
    pub(crate) fn make(
        self,
        nodes: &mut Nodes,
        links: &Links,
        database: &mut DatabaseCluster,
        runtime: &Runtime,
    ) -> Option<usize> {
        let active = nodes.active(runtime);
        match self {
            Self::KillNode => nodes.program(active).kill(),
            Self::DrainNode => {
                nodes.drain(active, runtime);
                nodes.stopped(active);
            }
            Self::TerminateNode => {
                nodes.program(active).terminate();
                nodes.stopped(active);
            }
            Self::KillPrimary => return Some(database.kill_primary(runtime)),
            Self::SwitchOver => database.switch_over(runtime),
            Self::KillBoth => {
                let primary = database.kill_primary(runtime);
                nodes.program(active).kill();
                return Some(primary);
            }
            Self::PauseNode => {
                nodes.program(active).pause();
                runtime.block_on(pause(LASTS));
                nodes.program(active).resume();
                nodes.superseded(active);
            }
            Self::PartitionNode => {
                links.set(active, LinkState::Cut);
                runtime.block_on(pause(LASTS));
                links.set(active, LinkState::Open);
                nodes.superseded(active);
            }
            Self::SlowDatabase => {
                links.set_all(LinkState::Slow);
                runtime.block_on(pause(LASTS));
                links.set_all(LinkState::Open);
            }
            Self::Upgrade => {
                for standby in nodes.others(active) {
                    nodes.program(standby).terminate();
                    nodes.stopped(standby);
                    nodes.upgrade(standby);
                    nodes.wait_until_whole(runtime);
                }
                nodes.drain(active, runtime);
                nodes.stopped(active);
                nodes.upgrade(active);
            }
        }
        None
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillNode => "kill -9 of the active node",
            Self::DrainNode => "drain of the active node",
            Self::TerminateNode => "SIGTERM of the active node",
            Self::KillPrimary => "kill -9 of the PostgreSQL primary",
            Self::SwitchOver => "planned switchover of PostgreSQL",
            Self::KillBoth => "kill -9 of the active node and the primary",
            Self::PauseNode => "SIGSTOP of the active node, SIGCONT after 15 s",
            Self::PartitionNode => "the active node without the database for 15 s",
            Self::SlowDatabase => "0.2 s more for each round trip to the database, for 15 s",
            Self::Upgrade => "upgrade of all nodes, one after the other",
        })
    }
}
