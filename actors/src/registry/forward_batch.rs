//! What does one arbiter send another? What it has gathered for it in a turn.

use std::sync::Arc;

use actix::Message;
use engine::associations::export::SessionRecord;
use engine::dispatch::router::{ForwardedDatagram, RouteHint};
use engine::ids::DeviceKey;
use engine::peer::Peer;

/// What one arbiter sends another.
#[derive(Debug, Default, Message)]
#[rtype(result = "()")]
pub(crate) struct ForwardBatch {
    pub(crate) datagrams: Vec<ForwardedDatagram>,
    pub(crate) route_hints: Vec<RouteHint>,
    /// Records of sessions that the other arbiter has.
    pub(crate) records: Vec<(Peer, Vec<u8>)>,
    /// Messages to devices whose sessions the other arbiter has.
    pub(crate) secured: Vec<(DeviceKey, Vec<u8>)>,
    /// With what sessions of the sender are resumed by their ids.
    pub(crate) cached_sessions: Vec<Arc<SessionRecord>>,
    /// Senders of datagrams that the other arbiter received; no known devices.
    pub(crate) strangers: Vec<Peer>,
}

impl ForwardBatch {
    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
            && self.route_hints.is_empty()
            && self.records.is_empty()
            && self.secured.is_empty()
            && self.cached_sessions.is_empty()
            && self.strangers.is_empty()
    }

    /// How many datagrams are lost with it.
    pub(crate) fn datagrams(&self) -> u64 {
        (self.datagrams.len() + self.records.len()) as u64
    }
}
