//! What is kept of a device between runs of the service.

use std::sync::Arc;

use protocol::coap::observe::NewestNotification;
use protocol::lwm2m::binding::Binding;
use protocol::lwm2m::links::ObjectLinks;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::version::EnablerVersion;

use crate::action::{Action, Protocol};
use crate::ids::ActionId;
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::profile::Profile;

/// What a device's actor knows of it that must survive.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeviceRecord {
    /// When it was heard for the first time ever, over any protocol.
    pub first_heard_at: Option<Timestamp>,
    /// When it was last heard, coarsely: an update that changes nothing is not saved each time.
    pub last_seen_at: Option<Timestamp>,
    /// Where it was last heard.
    pub peer: Option<Peer>,
    /// Its registration, while it has one.
    pub registration: Option<Registration>,
    /// What is observed of it, oldest first.
    pub observations: Box<[Observation]>,
    /// The protocols it was heard over.
    pub protocols_seen: ProtocolsSeen,
    /// Whether its customer knows that it sends values of what nobody knows.
    pub unknown_object: Logged,
}

/// The protocols a device was heard over.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProtocolsSeen {
    ever: u8,
    last: Option<Protocol>,
}

impl ProtocolsSeen {
    /// Those that were kept: every one, and the last.
    pub fn restored(ever: impl IntoIterator<Item = Protocol>, last: Option<Protocol>) -> Self {
        let ever = ever.into_iter().fold(0, |ever, it| ever | bit_of(it));
        Self { ever, last }
    }

    /// Notes that the device was heard over one, and says whether that is for the first time.
    pub fn note(&mut self, protocol: Protocol) -> bool {
        let is_new = !self.has(protocol);
        self.ever |= bit_of(protocol);
        self.last = Some(protocol);
        is_new
    }

    /// Whether the device was ever heard over one.
    pub fn has(self, protocol: Protocol) -> bool {
        self.ever & bit_of(protocol) != 0
    }

    /// The one it was heard over last.
    pub fn last(self) -> Option<Protocol> {
        self.last
    }
}

fn bit_of(protocol: Protocol) -> u8 {
    1 << protocol as u8
}

/// Whether the log of a customer says something that it is to say once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Logged {
    /// It does not.
    #[default]
    No,
    /// It does.
    Yes,
}

/// A registration of an LwM2M device (LwM2M Core 1.2 section 6.2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Registration {
    /// The part of the location that makes it hard to guess and tells registrations apart.
    pub salt: u32,
    /// The lifetime as the device asked for it, in seconds.
    pub lifetime_asked_s: Option<u32>,
    /// When it lapses unless the device updates it.
    pub expires_at: Timestamp,
    /// When it began.
    pub registered_at: Timestamp,
    /// The enabler version of the device.
    pub version: EnablerVersion,
    /// The transports and modes of the device.
    pub binding: Binding,
    /// The number for SMS triggers, where the device gave one.
    pub sms: Option<Box<str>>,
    /// The objects the device offers; shared, because most of a fleet offers the same.
    pub links: Arc<ObjectLinks>,
}

/// An observation: a device was asked to tell each value of a path (RFC 7641).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Observation {
    /// What is observed.
    pub path: Path,
    /// What its notifications are known by, as long as it lasts.
    pub token: [u8; OBSERVATION_TOKEN_BYTES],
    /// The request that began it.
    pub action: ActionId,
    /// When it began.
    pub begun_at: Timestamp,
    /// Whether the device knows of it.
    pub state: ObservationState,
    /// Its newest notification since the service started; an older one is told apart by it. It is
    /// not kept, because it must not cost a write.
    pub newest: Option<NewestNotification>,
}

impl Observation {
    /// The device is not known to hold it any more: it is to be asked again.
    pub(super) fn renew(&mut self) {
        self.state = ObservationState::Owed;
        self.newest = None;
    }
}

/// Random bytes in the token of an observation: as in any other request of the service.
pub const OBSERVATION_TOKEN_BYTES: usize = 4;

/// Whether a device knows that something of it is observed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ObservationState {
    /// It does.
    Held,
    /// It forgot when it registered anew, and has to be asked again.
    Owed,
}

/// The parts whose types belong to the protocol, as text: what a store keeps of them.
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

/// Everything needed to bring a device back: what its machine restores from.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoredDevice {
    /// Who it is.
    pub profile: Profile,
    /// What was known of it.
    pub record: DeviceRecord,
    /// Its requests that are not final, oldest first.
    pub pending: Vec<Action>,
}
