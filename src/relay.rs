//! What does a node that stands by pass on to the active one? What devices and callers send to it.

use actors::relay::calls::CallRelay;
use actors::relay::datagrams::DatagramRelay;
use actors::socket::Open;
use tokio::sync::watch;

use crate::api::waiting::WaitingRelay;
use crate::node::{JoinedNode, NodeTransport};

/// The relay of a node that stands by.
pub(crate) struct Relay {
    calls: CallRelay,
    datagrams: DatagramRelay,
    ended: watch::Sender<bool>,
}

impl Relay {
    /// Relays what arrives at these sockets, and calls.
    pub(crate) fn start(
        node: &JoinedNode,
        NodeTransport { identity, .. }: &NodeTransport,
        sockets: Vec<Open>,
    ) -> Result<Self, reqwest::Error> {
        let active = node.follow_active();
        let (ended, ends) = watch::channel(false);
        Ok(Self {
            datagrams: DatagramRelay::start(node.id, identity, &active, sockets)?,
            calls: CallRelay::new(identity, active, ends)?,
            ended,
        })
    }

    /// What the handlers of calls need.
    pub(crate) fn waiting(&self) -> WaitingRelay {
        WaitingRelay {
            calls: self.calls.clone(),
            datagrams: self.datagrams.connection(),
        }
    }

    /// Ends the calls in progress, which this node may have to answer anew, and closes the sockets.
    pub(crate) fn stop(self) {
        self.ended.send_replace(true);
        self.datagrams.stop();
    }
}
