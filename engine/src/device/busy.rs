//! Where are the parts of a device between steps? Some of their fields exist only while something
//! is in progress: an idle device, as most of a fleet are, has none of them.

use protocol::coap::dedup::DedupWindow;

use crate::bootstrap::BootstrapRecord;
use crate::device::bootstrap::RunningBootstrap;
use crate::device::bootstrap_pack::ServedPack;
use crate::device::exchange::Exchange;
use crate::device::ingest::{IncomingBody, RateWindow, Retained};
use crate::device::messages::OtherPeer;
use crate::device::observations::ObservationRequests;
use crate::device::passive::{LearnedCapabilities, Round};
use crate::device::queue::ActionQueue;
use crate::device::record::Observation;
use crate::device::registration::RegistrationState;
use crate::device::update::OngoingUpdate;
use crate::moment::Timestamp;

/// The fields of the parts that an idle device has, too.
pub(super) struct Idle {
    pub(super) registration: RegistrationState,
    pub(super) recent: DedupWindow,
    pub(super) observed: Box<[Observation]>,
    pub(super) capabilities: LearnedCapabilities,
    pub(super) next_message_id: u16,
    pub(super) rate: RateWindow,
}

/// The fields of the parts that an idle device does without.
#[derive(Default)]
pub(super) struct Busy {
    pub(super) queue: ActionQueue,
    pub(super) requests: ObservationRequests,
    pub(super) round: Option<Box<Round>>,
    pub(super) exchange: Exchange,
    pub(super) bootstrap: Option<Box<RunningBootstrap>>,
    pub(super) bootstrap_pack: Option<Box<ServedPack>>,
    pub(super) update: Option<Box<OngoingUpdate>>,
    pub(super) incoming_body: Option<Box<IncomingBody>>,
    pub(super) other_peer: Option<Box<OtherPeer>>,
    pub(super) retained: Retained,
}

impl Busy {
    /// Whether nothing is in progress.
    pub(super) fn is_over(&self) -> bool {
        self.queue.is_empty()
            && self.requests.is_empty()
            && self.incoming_body.is_none()
            && self.round.is_none()
            && self.exchange.is_idle()
            && self.bootstrap.is_none()
            && self.bootstrap_pack.is_none()
            && self.update.is_none()
            && self.retained.is_empty()
    }

    /// The bootstrap under way.
    pub(super) fn bootstrap_under_way(&self) -> Option<&BootstrapRecord> {
        let running = self.bootstrap.as_ref().map(|it| it.record());
        let pack = self.bootstrap_pack.as_ref();
        running.or_else(|| pack.and_then(|it| it.unfinished()))
    }

    /// The bytes of memory that bodies received in part occupy.
    pub(super) fn unfinished_bytes(&self) -> usize {
        let incoming = self.incoming_body.as_ref().map_or(0, |it| it.memory());
        incoming.saturating_add(self.exchange.memory())
    }

    /// When something is due.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        let exchange = self.exchange.next_timeout();
        let expiry = self.queue.next_timeout(self.exchange.action());
        let incoming = self.incoming_body.as_ref().map(|it| it.expires_at());
        let pack = self.bootstrap_pack.as_ref().map(|it| it.forgotten_at());
        let is_free = self.exchange.is_idle();
        let update = self.update.as_ref().filter(|_| is_free);
        let update = update.and_then(|it| it.next_timeout());
        [
            exchange,
            expiry,
            incoming,
            pack,
            update,
            self.retained.next_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
