//! What is stored of a device?

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use protocol::coap::observe::NewestNotification;
use protocol::lwm2m::attributes::Attributes;
use protocol::lwm2m::binding::Binding;
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::version::EnablerVersion;

use crate::action::{Action, Protocol};
use crate::device::log_quota::LogQuota;
use crate::firmware::update::FirmwareUpdate;
use crate::ids::{ActionId, EventId};
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::profile::Profile;

/// The durable state of a device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeviceRecord {
    /// When its first message was received, over any protocol.
    pub first_contact_at: Option<Timestamp>,
    /// When its last message was received. Coarse: an update that changes nothing is not saved each
    /// time.
    pub last_seen_at: Option<Timestamp>,
    /// Where its last message came from.
    pub peer: Option<Peer>,
    /// Its registration, while it has one.
    pub registration: Option<Registration>,
    /// What is observed of it, oldest first.
    pub observations: Box<[Observation]>,
    /// The protocols it has used.
    pub protocols_seen: ProtocolsSeen,
    /// Whether its customer's log has an entry that it sends values of unknown objects.
    pub unknown_object: Logged,
    /// A digest of what the device announced when it acknowledged a request for several objects and
    /// did not answer it. As long as it announces the same, none is sent again.
    pub composite_unanswered: Option<NonZeroU32>,
    /// How many bytes of its rejected payloads were stored in the log lately.
    pub log_quota: LogQuota,
    /// Whether the device is online, as far as its customer was told.
    pub connectivity: Connectivity,
    /// Whether the device listens in queue mode, as far as its customer was told.
    pub wakefulness: Wakefulness,
    /// The lifetime, in seconds, of a registration that expired while the device was still heard:
    /// the device is offline once it is silent for as long.
    pub expired_lifetime_s: Option<NonZeroU32>,
    /// Its firmware update, while a campaign updates it.
    pub update: Option<Box<FirmwareUpdate>>,
}

/// Whether a device is online, as far as its customer was told.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Connectivity {
    /// Nobody knows: it was never heard, or it is not registered and may be silent for any time.
    #[default]
    Unknown,
    /// It was heard, and how long it may be silent is known.
    Online,
    /// It was silent for too long, which was published.
    Offline,
}

impl Connectivity {
    /// Whether the device is online, if that is known. A registered device is, until its silence is
    /// published.
    pub fn is_online(self, is_registered: bool) -> Option<bool> {
        match (self, is_registered) {
            (Self::Offline, _) => Some(false),
            (Self::Online, _) | (Self::Unknown, true) => Some(true),
            (Self::Unknown, false) => None,
        }
    }
}

/// Whether a device in queue mode listens, as far as its customer was told.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Wakefulness {
    /// Nothing was published since it registered.
    #[default]
    Unreported,
    /// It was published that it is awake.
    Awake,
    /// It was published that it is asleep.
    Asleep,
}

/// The protocols a device has used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProtocolsSeen {
    ever: u8,
    last: Option<Protocol>,
}

impl ProtocolsSeen {
    /// Restores the set from its protocols and the last one.
    pub fn restored(ever: impl IntoIterator<Item = Protocol>, last: Option<Protocol>) -> Self {
        let ever = ever.into_iter().fold(0, |ever, it| ever | bit_of(it));
        Self { ever, last }
    }

    /// Notes the protocol of a message. Returns whether it is new.
    pub fn note(&mut self, protocol: Protocol) -> bool {
        let is_new = !self.has(protocol);
        self.ever |= bit_of(protocol);
        self.last = Some(protocol);
        is_new
    }

    /// Whether the device ever used a protocol.
    pub fn has(self, protocol: Protocol) -> bool {
        self.ever & bit_of(protocol) != 0
    }

    /// The protocol of its last message.
    pub fn last(self) -> Option<Protocol> {
        self.last
    }
}

fn bit_of(protocol: Protocol) -> u8 {
    1 << protocol as u8
}

/// Whether an entry that is logged only once was logged.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Logged {
    /// It was not.
    #[default]
    No,
    /// It was.
    Yes,
}

/// A registration of an LwM2M device (LwM2M Core 1.2 section 6.2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Registration {
    /// The part of the location that makes it hard to guess, and distinguishes registrations.
    pub salt: u32,
    /// The lifetime that the device requested, in seconds.
    pub lifetime_asked_s: Option<u32>,
    /// When it expires unless the device updates it.
    pub expires_at: Timestamp,
    /// When it began.
    pub registered_at: Timestamp,
    /// The enabler version of the device.
    pub version: EnablerVersion,
    /// The transports and modes of the device.
    pub binding: Binding,
    /// The number for SMS triggers, if the device named one.
    pub sms: Option<Box<str>>,
    /// The objects the device offers; shared, because most devices of a fleet offer the same.
    pub links: Arc<ObjectLinks>,
}

/// An observation: the device was requested to notify each new value (RFC 7641).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Observation {
    /// What is observed.
    pub target: ObservationTarget,
    /// The conditions of its notifications.
    pub attributes: Attributes,
    /// The token of its notifications, as long as it lasts.
    pub token: [u8; OBSERVATION_TOKEN_BYTES],
    /// The request that began it.
    pub action: ActionId,
    /// When it began.
    pub begun_at: Timestamp,
    /// Whether the device holds it.
    pub state: ObservationState,
    /// Its newest notification since the service started, to recognise an older one. Not stored,
    /// because it must not cost a write.
    pub newest: Option<NewestNotification>,
}

/// What an observation is of. The order of several paths does not matter.
#[derive(Clone, Debug, Eq)]
pub enum ObservationTarget {
    /// A path.
    Path(Path),
    /// Several paths at once (LwM2M Core 1.1 section 6.4.7).
    Paths(Box<[Path]>),
}

impl PartialEq for ObservationTarget {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(one), Self::Path(other)) => one == other,
            (Self::Paths(some), Self::Paths(others)) => {
                // No path is given twice.
                some.len() == others.len() && some.iter().all(|path| others.contains(path))
            }
            (Self::Path(_), Self::Paths(_)) | (Self::Paths(_), Self::Path(_)) => false,
        }
    }
}

impl ObservationTarget {
    /// The path, if it is one.
    pub fn path(&self) -> Option<Path> {
        match self {
            Self::Path(path) => Some(*path),
            Self::Paths(_) => None,
        }
    }
}

impl fmt::Display for ObservationTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.fmt(f),
            Self::Paths(paths) if paths.is_empty() => f.write_str("/"),
            Self::Paths(paths) => {
                let paths: Vec<String> = paths.iter().map(Path::to_string).collect();
                f.write_str(&paths.join(", "))
            }
        }
    }
}

impl Observation {
    /// The device may have lost it: it has to be requested again.
    pub(super) fn renew(&mut self) {
        self.state = ObservationState::Owed;
        self.newest = None;
    }
}

/// Random bytes in the token of an observation, as many as in any other request of the service.
pub const OBSERVATION_TOKEN_BYTES: usize = 4;

/// Whether a device holds an observation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ObservationState {
    /// The device holds it.
    Held,
    /// It has to be requested again: the device may have lost it, or the rest of a notification in
    /// blocks is missing.
    Owed,
}

/// The fields whose types belong to `protocol`, as text for the store.
impl Registration {
    /// The enabler version, as [`Registration::parse_version`] reads it.
    pub fn version_text(&self) -> String {
        self.version.to_string()
    }

    /// The binding, as [`Registration::parse_binding`] reads it.
    pub fn binding_text(&self) -> String {
        self.binding.to_string()
    }

    /// The object links, as [`Registration::parse_links`] reads them.
    pub fn links_text(&self) -> String {
        self.links.encode()
    }

    /// Reads an enabler version.
    pub fn parse_version(text: &str) -> Option<EnablerVersion> {
        EnablerVersion::parse(text).ok()
    }

    /// Reads a binding.
    pub fn parse_binding(text: &str) -> Option<Binding> {
        Binding::parse(text)
    }

    /// Reads object links.
    pub fn parse_links(text: &str) -> Option<Arc<ObjectLinks>> {
        ObjectLinks::decode(text.as_bytes()).ok().map(Arc::new)
    }
}

/// Everything that a device is restored from.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoredDevice {
    /// Its profile.
    pub profile: Profile,
    /// Its durable state.
    pub record: DeviceRecord,
    /// Its requests that are not final, oldest first.
    pub pending: Vec<Action>,
    /// Its last events, oldest first, if they are recent: a message that reported one of them may
    /// be repeated.
    pub recent_events: Box<[EventId]>,
}
