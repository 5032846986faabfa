//! What does the device forget when its power is cut?
//!
//! ```text
//!            start          registered              silence, refusal
//!   Resting -------> Registering -------> Registered ----------------> Resting
//!      ^                  |                   |  4.04 to an update
//!      +------------------+                   +----------------------> Registering
//!        silence, refusal
//! ```

use protocol::coap::assembly::Assembly;
use protocol::coap::message::MessageId;
use protocol::coap::transfer::Transfer;

use super::answers::PendingAnswers;
use super::dedup::DedupCache;
use super::event::RegistrationLocation;
use super::observations::Observations;
use super::resource::Consequence;

/// Everything that lives in the device's memory alone.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) radio: Radio,
    pub(super) registration: RegistrationPhase,
    /// The one request the device waits for an answer to (NSTART is 1).
    pub(super) request: Option<OpenRequest>,
    pub(super) answers: PendingAnswers,
    pub(super) heard: DedupCache,
    /// What the server says in blocks, as far as it came.
    pub(super) incoming: Assembly,
    pub(super) observations: Observations,
    /// What a request of the server has set off, and when it happens.
    pub(super) consequence: Option<(i64, Consequence)>,
    pub(super) message_ids: MessageIds,
    /// How often in a row registering failed.
    pub(super) failures: u32,
    /// When the last datagram came or went.
    pub(super) quiet_since_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Radio {
    /// The device has no power.
    Off,
    Asleep,
    Awake,
}

#[derive(Clone, Debug)]
pub(super) enum RegistrationPhase {
    /// Not registered; nothing happens by itself without a time.
    Resting {
        until_ms: Option<i64>,
    },
    Registering,
    Registered {
        location: RegistrationLocation,
        next_update_at_ms: i64,
        lifetime_told_s: u32,
    },
}

#[derive(Clone, Debug)]
pub(super) struct OpenRequest {
    pub(super) transfer: Transfer,
    pub(super) purpose: RequestPurpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    Data,
    Deregister { again_at_ms: Option<i64> },
    Register { lifetime_s: u32 },
    Send,
    Update { lifetime_s: u32 },
}

/// The ids of the messages the device sends, one after the other.
#[derive(Clone, Debug)]
pub(super) struct MessageIds(u16);

impl Session {
    /// Begins without power, and with an id that the server is unlikely to remember.
    pub(super) fn new(first_message_id: u16) -> Self {
        Self {
            radio: Radio::Off,
            registration: RegistrationPhase::Resting { until_ms: None },
            request: None,
            answers: PendingAnswers::default(),
            heard: DedupCache::default(),
            incoming: Assembly::default(),
            observations: Observations::default(),
            consequence: None,
            message_ids: MessageIds(first_message_id),
            failures: 0,
            quiet_since_ms: 0,
        }
    }
}

impl MessageIds {
    /// Takes the next id; after the last one comes the first.
    pub(super) fn take(&mut self) -> MessageId {
        let next = self.0;
        self.0 = next.wrapping_add(1);
        MessageId(next)
    }
}

impl RegistrationPhase {
    /// Tells when the device has something to say by itself.
    pub(super) fn next_contact_at_ms(&self) -> Option<i64> {
        match self {
            Self::Resting { until_ms } => *until_ms,
            Self::Registering => None,
            Self::Registered {
                next_update_at_ms, ..
            } => Some(*next_update_at_ms),
        }
    }
}
