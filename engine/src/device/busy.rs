//! Where do the parts of a device lie between steps? Some of it has a device only while something
//! is going on: an idle one, as most of a fleet is, has nothing of that.

use protocol::coap::recent::Recent;

use crate::device::exchange::Exchange;
use crate::device::ingest::{Incoming, Pace, Retained};
use crate::device::messages::Visitor;
use crate::device::observations::ObservationRequests;
use crate::device::passive::{Learned, Round};
use crate::device::queue::Queue;
use crate::device::record::Observation;
use crate::device::registration::RegistrationState;
use crate::moment::Timestamp;

/// What of the parts an idle device has, too.
pub(super) struct Idle {
    pub(super) registration: RegistrationState,
    pub(super) recent: Recent,
    pub(super) observed: Box<[Observation]>,
    pub(super) learned: Learned,
    pub(super) next_message_id: u16,
    pub(super) pace: Pace,
}

/// What of the parts an idle device does without.
#[derive(Default)]
pub(super) struct Busy {
    pub(super) queue: Queue,
    pub(super) requests: ObservationRequests,
    pub(super) round: Option<Box<Round>>,
    pub(super) exchange: Exchange,
    pub(super) incoming: Option<Box<Incoming>>,
    pub(super) visitor: Option<Box<Visitor>>,
    pub(super) retained: Retained,
}

impl Busy {
    /// Whether nothing of it is left.
    pub(super) fn is_over(&self) -> bool {
        self.queue.is_empty()
            && self.requests.is_empty()
            && self.incoming.is_none()
            && self.round.is_none()
            && self.exchange.is_idle()
            && self.retained.until().is_none()
    }

    /// When time asks for something.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        let exchange = self.exchange.next_timeout();
        let expiry = self.queue.next_timeout(self.exchange.action());
        let incoming = self.incoming.as_ref().map(|it| it.expires_at());
        [exchange, expiry, incoming, self.retained.until()]
            .into_iter()
            .flatten()
            .min()
    }
}
