//! What a device said or did, as it is kept in its history and told to others.

use std::net::IpAddr;

use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use crate::action::{Outcome, Protocol, Status};
use crate::admin_log::entry::{Category, Entry};
use crate::device::identity::Identity;
use crate::ids::{ActionId, CustomerId, DeviceId, DeviceKey, EntryId, EventId, Iccid, Imsi};
use crate::moment::{Moment, Timestamp};
use crate::topic::Topic;

/// One thing a device said or did.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its id; ids sort by time.
    pub id: EventId,
    /// Whose device it is.
    pub customer: CustomerId,
    /// The device.
    pub device: DeviceKey,
    /// Who the device was then, for those it is told to.
    pub device_info: DeviceInfo,
    /// When it was heard.
    pub at: Timestamp,
    /// What it was.
    pub content: EventContent,
}

impl Event {
    /// What is told of an entry about a device: nothing, unless something failed.
    pub fn of_entry(m: &mut Moment, entry: &Entry, device: &Identity) -> Option<Self> {
        let failure = ErrorReport::of(entry)?;
        let about = entry.about.as_ref()?;
        Some(Self {
            id: EventId::new(m.uuid()),
            customer: entry.customer.clone(),
            device: about.key,
            device_info: DeviceInfo::of(device, about.ip),
            at: entry.at,
            content: EventContent::Error(Box::new(failure)),
        })
    }
}

/// A device as it was known when it said something: what is told of it stays true when the device
/// is renamed or removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceInfo {
    /// What its customer calls it.
    pub device: DeviceId,
    /// The SIM in it.
    pub iccid: Iccid,
    /// The subscriber identity of the SIM, where known.
    pub imsi: Option<Imsi>,
    /// Its address, where known.
    pub ip: Option<IpAddr>,
}

impl DeviceInfo {
    /// The device as it is known now, at an address.
    pub fn of(device: &Identity, ip: Option<IpAddr>) -> Self {
        Self {
            device: device.device(),
            iccid: device.iccid(),
            imsi: device.imsi(),
            ip,
        }
    }
}

/// What a device can say or do.
#[derive(Clone, Debug, PartialEq)]
pub enum EventContent {
    /// It told values.
    Telemetry(Telemetry),
    /// It sent data whose form is its own.
    Data(Box<Data>),
    /// It came or went.
    Lifecycle(Lifecycle),
    /// Something failed: an entry of category error is in the log.
    Error(Box<ErrorReport>),
    /// A request of a caller is final.
    ActionResult(Box<ActionResult>),
}

impl EventContent {
    /// Of which type it is.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Telemetry(_) | Self::Data(_) => EventType::TelemetryData,
            Self::Lifecycle(_) => EventType::Lifecycle,
            Self::Error(_) => EventType::Error,
            Self::ActionResult(_) => EventType::ActionResult,
        }
    }

    /// When the device says it was so; none if it did not say, or said nothing itself.
    pub fn measured_at(&self) -> Option<Timestamp> {
        match self {
            Self::Telemetry(told) => told.measured_at,
            Self::Data(_) | Self::Lifecycle(_) | Self::Error(_) | Self::ActionResult(_) => None,
        }
    }
}

/// The types of events.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum EventType {
    /// Values of a device.
    TelemetryData,
    /// A device came or went.
    Lifecycle,
    /// Something failed.
    Error,
    /// A request of a caller is final.
    ActionResult,
}

impl EventType {
    /// Every type.
    pub const ALL: [Self; 4] = [
        Self::TelemetryData,
        Self::Lifecycle,
        Self::Error,
        Self::ActionResult,
    ];
}

/// An entry of category error, as it is told to others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ErrorReport {
    /// The entry.
    pub entry: EntryId,
    /// Its `Component[Kind]`.
    pub message: Box<str>,
    /// Its detail.
    pub description: Box<str>,
    /// Whether the entry has bytes to look at.
    pub payload: PayloadKept,
}

/// Whether the bytes something is about are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PayloadKept {
    /// There are none.
    No,
    /// They are, with the entry of the log.
    Yes,
}

impl ErrorReport {
    /// What is told of an entry: nothing, unless something failed.
    pub fn of(entry: &Entry) -> Option<Self> {
        let payload = match &entry.payload {
            Some(_) => PayloadKept::Yes,
            None => PayloadKept::No,
        };
        match entry.category {
            Category::Info => None,
            Category::Error => Some(Self {
                entry: entry.id,
                message: entry.message.clone(),
                description: entry.description.clone(),
                payload,
            }),
        }
    }
}

/// How a request of a caller ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionResult {
    /// The request.
    pub action: ActionId,
    /// The protocol it was sent by.
    pub protocol: Protocol,
    /// Its status, which is final.
    pub status: Status,
    /// What the device answered, or what went wrong.
    pub outcome: Option<Outcome>,
}

/// Data a device sent over plain CoAP or bare UDP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Data {
    /// The protocol it came by.
    pub source: Protocol,
    /// What the device says it is about; bare datagrams do not say.
    pub topic: Option<Topic>,
    /// As it came.
    pub bytes: Box<[u8]>,
}

/// Values a device told.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The protocol they came by.
    pub source: Protocol,
    /// Why they came.
    pub cause: Cause,
    /// When they were measured, where the device says so.
    pub measured_at: Option<Timestamp>,
    /// The values by path.
    pub values: Box<[(Path, Value)]>,
}

impl Telemetry {
    /// As of when its values are known: a value is the last known one unless another is known as of
    /// later.
    pub fn known_at(&self, heard_at: Timestamp) -> Timestamp {
        known_at(self.measured_at, heard_at)
    }
}

/// As of when a value is known. A clock that is ahead must not keep out what is heard later.
pub(crate) fn known_at(measured_at: Option<Timestamp>, heard_at: Timestamp) -> Timestamp {
    measured_at.map_or(heard_at, |at| at.min(heard_at))
}

/// Why a device told values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The path is observed (RFC 7641).
    Observation(Path),
    /// A request asked for them.
    Action(ActionId),
    /// The device sent them unasked (LwM2M Core 1.1 section 6.4.6).
    Send,
    /// They were read because the device registered or updated its registration (seed 1.3).
    PassiveReport,
}

/// How a device came or went (LwM2M Core 1.2 section 6.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lifecycle {
    /// It registered.
    Registered,
    /// It said that it leaves.
    Deregistered,
    /// It was not heard within its lifetime.
    RegistrationExpired,
}
