//! What does a node that stands by pass on to the active one? What callers send to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actors::relay::calls::CallRelay;
use actors::relay::links::LinkState;

use crate::api::waiting::WaitingRelay;
use crate::node::{ActiveFollower, NodeTransport};

/// The relay of a node that stands by.
pub(crate) struct Relay {
    waiting: WaitingRelay,
    active: ActiveFollower,
}

/// The calls that a node has accepted while it stood by, and that wait for an active one.
pub(crate) struct HeldCalls {
    active: ActiveFollower,
}

impl Relay {
    /// Relays calls; these wait so long for an active node. What devices send goes over the links.
    pub(crate) fn start(
        transport: &NodeTransport,
        links: LinkState,
        hold_max: Duration,
    ) -> Result<Self, reqwest::Error> {
        let active = ActiveFollower::of(transport)?;
        let reached = (active.address(), links.clone());
        let (identity, own) = (&transport.identity, transport.address);
        let waiting = WaitingRelay {
            calls: CallRelay::new(identity, own, reached, hold_max)?,
            links,
            others: transport.others.clone(),
            is_leaving: Arc::new(AtomicBool::new(false)),
        };
        Ok(Self { waiting, active })
    }

    /// What the handlers of calls need.
    pub(crate) fn waiting(&self) -> WaitingRelay {
        self.waiting.clone()
    }

    /// Asks callers to turn to another node: this one is about to stop.
    pub(crate) fn leave(&self) {
        self.waiting.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Ends what is in progress at the former active node: this node takes over, or ends.
    pub(crate) fn stop(self) -> HeldCalls {
        self.active.turn_to(None);
        HeldCalls {
            active: self.active,
        }
    }
}

impl HeldCalls {
    /// Has the calls served by this node, which is active now.
    pub(crate) fn serve_at(&self, own: SocketAddr) {
        self.active.turn_to(Some(own));
    }
}
