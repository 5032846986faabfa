//! The state of a device at one instant, for the API.

use protocol::lwm2m::path::Path;

use crate::action::timeline::WaitReason;
use crate::action::{Action, Protocol};
use crate::bootstrap::BootstrapRecord;
use crate::device::record::{Connectivity, Observation, Registration};
use crate::ids::ActionId;
use crate::moment::Timestamp;
use crate::peer::Peer;

/// A device at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When its first message was received.
    pub first_contact_at: Option<Timestamp>,
    /// When its last message was received.
    pub last_seen_at: Option<Timestamp>,
    /// Where its last message came from.
    pub peer: Option<Peer>,
    /// The protocol of its last message.
    pub protocols_seen: Option<Protocol>,
    /// Whether it listens now, as far as is known.
    pub presence: Presence,
    /// Whether it is online, as far as its customer was told.
    pub connectivity: Connectivity,
    /// Its registration, while it has one.
    pub registration: Option<Registration>,
    /// Its requests that are not final, oldest first.
    pub pending: Vec<PendingAction>,
    /// The exchange in flight.
    pub exchange: Option<CurrentExchange>,
    /// What is observed of it.
    pub observations: Vec<Observation>,
    /// The bootstrap under way.
    pub bootstrap: Option<BootstrapRecord>,
}

/// A request that is not final.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingAction {
    /// The request.
    pub action: Action,
    /// Why it is not sent yet; none if it is in flight.
    pub waits_for: Option<WaitReason>,
}

/// The exchange in flight with a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurrentExchange {
    /// What other requests wait for meanwhile.
    pub purpose: WaitReason,
    /// The request, if it is one of a caller.
    pub action: Option<ActionId>,
    /// The observed path, if it is about an observation of one.
    pub path: Option<Path>,
    /// When it began.
    pub begun_at: Timestamp,
}

/// Whether a device listens (LwM2M Core 1.2 section 6.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// It has no registration.
    Unregistered,
    /// It listens.
    Awake,
    /// It registered for queue mode and its awake window is over.
    Asleep,
}

impl Presence {
    /// Whether a device with this registration listens, which in queue mode it does until
    /// `awake_until`.
    pub fn of(registration: Option<&Registration>, awake_until: Timestamp, now: Timestamp) -> Self {
        match registration {
            None => Self::Unregistered,
            // The timeout that ends it may come late.
            Some(r) if r.expires_at <= now => Self::Unregistered,
            Some(r) if r.binding.queue_mode() && now >= awake_until => Self::Asleep,
            Some(_) => Self::Awake,
        }
    }
}
