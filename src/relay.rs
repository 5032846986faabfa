//! What does a node that stands by pass on to the active one? What devices and callers send to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actors::relay::calls::CallRelay;
use actors::relay::datagrams::{ActiveNode, DatagramRelay};
use actors::socket::Open;

use crate::api::waiting::WaitingRelay;
use crate::node::{ActiveFollower, JoinedNode, NodeTransport};

/// The relay of a node that stands by.
pub(crate) struct Relay {
    calls: CallRelay,
    datagrams: DatagramRelay,
    active: ActiveFollower,
    is_leaving: Arc<AtomicBool>,
}

/// The calls that a node has accepted while it stood by, and that wait for an active one.
pub(crate) struct HeldCalls {
    active: ActiveFollower,
}

impl Relay {
    /// Relays what arrives at these sockets, and calls; these wait so long for an active node.
    pub(crate) fn start(
        node: &JoinedNode,
        NodeTransport { address, identity }: &NodeTransport,
        sockets: Vec<Open>,
        hold_max: Duration,
    ) -> Result<Self, reqwest::Error> {
        let active = node.follow_active();
        let datagrams = DatagramRelay::start(node.id, identity, &active.address(), sockets)?;
        let reached = (active.address(), datagrams.connection());
        Ok(Self {
            calls: CallRelay::new(identity, *address, reached, hold_max)?,
            datagrams,
            active,
            is_leaving: Arc::default(),
        })
    }

    /// Where the active node is reached.
    pub(crate) fn active(&self) -> ActiveNode {
        self.active.address()
    }

    /// What the handlers of calls need.
    pub(crate) fn waiting(&self) -> WaitingRelay {
        WaitingRelay {
            calls: self.calls.clone(),
            datagrams: self.datagrams.connection(),
            is_replaced: self.active.is_replaced(),
            is_leaving: Arc::clone(&self.is_leaving),
        }
    }

    /// Asks callers to turn to another node: this one is about to stop.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Ends what is in progress at the former active node, and closes the sockets: this node takes
    /// over, or ends.
    pub(crate) fn stop(self) -> HeldCalls {
        let active = self.active;
        active.turn_to(None);
        self.datagrams.stop();
        HeldCalls { active }
    }
}

impl HeldCalls {
    /// Has the calls served by this node, which is active now.
    pub(crate) fn serve_at(&self, own: SocketAddr) {
        self.active.turn_to(Some(own));
    }
}
