//! What a device is doing right now, for someone who looks at it.

use crate::action::{Action, Protocol};
use crate::device::record::{Observation, Registration};
use crate::moment::Timestamp;
use crate::peer::Peer;

/// A device at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When it was heard for the first time ever.
    pub first_heard_at: Option<Timestamp>,
    /// When it was last heard.
    pub last_seen_at: Option<Timestamp>,
    /// Where it was last heard.
    pub peer: Option<Peer>,
    /// The protocol it was last heard over.
    pub protocols_seen: Option<Protocol>,
    /// Whether it listens now, as far as anyone can tell.
    pub presence: Presence,
    /// Its registration, while it has one.
    pub registration: Option<Registration>,
    /// Its requests that are not final, oldest first.
    pub pending: Vec<Action>,
    /// What is observed of it.
    pub observations: Vec<Observation>,
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
