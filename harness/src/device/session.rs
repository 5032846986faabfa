//! Which state does a device lose without power?
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

/// Everything that a device keeps only in memory.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) radio: Radio,
    pub(super) registration: RegistrationPhase,
    /// The one request whose answer is awaited (NSTART is 1).
    pub(super) request: Option<OpenRequest>,
    pub(super) answers: PendingAnswers,
    pub(super) dedup: DedupCache,
    /// The received blocks of an incomplete body.
    pub(super) incoming: Assembly,
    pub(super) observations: Observations,
    /// A consequence of a request, and when it happens.
    pub(super) consequence: Option<(i64, Consequence)>,
    /// The download or the installation of a firmware image, and when it ends.
    pub(super) update: Option<(i64, Consequence)>,
    pub(super) message_ids: MessageIds,
    /// Failed registrations in a row.
    pub(super) failures: u32,
    /// When the last datagram was sent or received.
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
    /// Not registered; without a time, nothing happens by itself.
    Resting {
        until_ms: Option<i64>,
    },
    Registering,
    /// It asked for its bootstrap, and waits for the next request until this time.
    Bootstrapping {
        until_ms: i64,
    },
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
    Bootstrap,
    Data,
    Deregister { again_at_ms: Option<i64> },
    Register { lifetime_s: u32 },
    Send,
    Update { lifetime_s: u32 },
}

/// The ids of the messages that the device sends, in sequence.
#[derive(Clone, Debug)]
pub(super) struct MessageIds(u16);

impl Session {
    /// A session without power, with a first id that the server is unlikely to remember.
    pub(super) fn new(first_message_id: u16) -> Self {
        Self {
            radio: Radio::Off,
            registration: RegistrationPhase::Resting { until_ms: None },
            request: None,
            answers: PendingAnswers::default(),
            dedup: DedupCache::default(),
            incoming: Assembly::default(),
            observations: Observations::default(),
            consequence: None,
            update: None,
            message_ids: MessageIds(first_message_id),
            failures: 0,
            quiet_since_ms: 0,
        }
    }
}

impl MessageIds {
    /// The next id; after the last one comes the first.
    pub(super) fn take(&mut self) -> MessageId {
        let next = self.0;
        self.0 = next.wrapping_add(1);
        MessageId(next)
    }
}

impl RegistrationPhase {
    /// When the device contacts the server by itself.
    pub(super) fn next_contact_at_ms(&self) -> Option<i64> {
        match self {
            Self::Resting { until_ms } => *until_ms,
            Self::Registering => None,
            Self::Bootstrapping { until_ms } => Some(*until_ms),
            Self::Registered {
                next_update_at_ms, ..
            } => Some(*next_update_at_ms),
        }
    }
}
