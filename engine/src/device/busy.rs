//! What has a device only while something is going on? An idle one, as most of a fleet is, has
//! nothing of it.

use protocol::lwm2m::path::Path;

use crate::datagram::Datagram;
use crate::device::attempt::Attempt;
use crate::device::data::Visitor;
use crate::device::incoming::Incoming;
use crate::device::passive::Round;
use crate::device::queue::Pending;
use crate::ids::ActionId;
use crate::moment::Timestamp;

/// What a device is at, apart from its registration.
#[derive(Default)]
pub(super) struct Busy {
    /// Requests that are not final, oldest first.
    pub(super) pending: Vec<Pending>,
    /// What is to be observed again: the device forgot it and was heard since.
    pub(super) owed: Vec<Path>,
    /// What is to be read because the device registered or updated its registration.
    pub(super) round: Option<Box<Round>>,
    /// The one exchange in flight.
    pub(super) attempt: Option<Box<Attempt>>,
    /// Requests restored from the store were not looked at yet.
    pub(super) unsettled: bool,
    /// What the device says in several blocks, as far as it was heard.
    pub(super) incoming: Option<Box<Incoming>>,
    /// Notifications that go on in further blocks, of each observation the newest.
    pub(super) notified: Vec<Datagram>,
    /// The one of them that is being fetched.
    pub(super) fetched: Option<Box<Datagram>>,
    /// What was heard lately from elsewhere than where the device is.
    pub(super) visitor: Option<Box<Visitor>>,
    pub(super) rejection_logged_at: Option<Timestamp>,
    pub(super) unreadable_logged_at: Option<Timestamp>,
    /// Until when something is remembered that the store does not know and somebody may rely on.
    pub(super) lingers_until: Option<Timestamp>,
}

impl Busy {
    /// What a device is at that has requests again from the store.
    pub(super) fn restored(pending: Vec<Pending>) -> Self {
        Self {
            unsettled: !pending.is_empty(),
            pending,
            ..Self::default()
        }
    }

    /// Whether nothing of it is left.
    pub(super) fn is_over(&self) -> bool {
        self.pending.is_empty()
            && self.owed.is_empty()
            && self.notified.is_empty()
            && self.incoming.is_none()
            && self.round.is_none()
            && self.attempt.is_none()
            && self.lingers_until.is_none()
    }

    /// When time asks for something.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        if self.unsettled {
            return Some(Timestamp::default());
        }
        let exchange = self.attempt.as_ref().map(|attempt| attempt.next_timeout());
        let expiry = self.pending.iter().filter_map(|p| self.expiry_of(p)).min();
        let incoming = self.incoming.as_ref().map(|it| it.expires_at());
        [exchange, expiry, incoming, self.lingers_until]
            .into_iter()
            .flatten()
            .min()
    }

    /// Stops remembering what was to be remembered until now. A rejection is logged again by
    /// then, so it needs not be known that one was.
    pub(super) fn end_lingering(&mut self, now: Timestamp) {
        self.incoming.take_if(|it| it.expires_at() <= now);
        if self.lingers_until.take_if(|until| *until <= now).is_some() {
            self.visitor = None;
            self.rejection_logged_at = None;
            self.unreadable_logged_at = None;
        }
    }

    pub(super) fn action_in_flight(&self) -> Option<ActionId> {
        self.attempt.as_ref()?.action()
    }

    /// Adds a request behind the others. Room is made for one at a time: most devices that have
    /// any have one.
    pub(super) fn push(&mut self, pending: Pending) {
        self.pending.reserve_exact(1);
        self.pending.push(pending);
    }

    /// When a request fails if nothing happens; never while it is in flight.
    fn expiry_of(&self, pending: &Pending) -> Option<Timestamp> {
        let waits = Some(pending.action.id) != self.action_in_flight();
        waits.then_some(pending.action.expires_at)
    }
}
