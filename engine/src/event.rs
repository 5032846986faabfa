//! Events of devices, as they are stored in the history and delivered to destinations.

use std::net::IpAddr;

use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;

use crate::action::{Outcome, Protocol, Status};
use crate::admin_log::entry::{Category, Entry};
use crate::device::identity::Identity;
use crate::ids::{ActionId, CustomerId, DeviceId, DeviceKey, EntryId, EventId, Iccid, Imsi};
use crate::moment::{Moment, Timestamp};
use crate::sms::{ReceivedSms, SmsReport};
use crate::topic::Topic;

/// One event of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its id; ids sort by time.
    pub id: EventId,
    /// The customer of the device.
    pub customer: CustomerId,
    /// The device.
    pub device: DeviceKey,
    /// The identity of the device at the time of the event.
    pub device_info: DeviceInfo,
    /// When it was received.
    pub at: Timestamp,
    /// What happened.
    pub content: EventContent,
}

impl Event {
    /// The event for a log entry about a device; `None` unless its category is error.
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

/// The identity of a device at the time of an event; it stays the same when the device is renamed
/// or removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceInfo {
    /// Its device id.
    pub device: DeviceId,
    /// The SIM in it.
    pub iccid: Iccid,
    /// The subscriber identity of the SIM, where known.
    pub imsi: Option<Imsi>,
    /// Its address, where known.
    pub ip: Option<IpAddr>,
}

impl DeviceInfo {
    /// The device as it is known now, with an address.
    pub fn of(device: &Identity, ip: Option<IpAddr>) -> Self {
        Self {
            device: device.device(),
            iccid: device.iccid(),
            imsi: device.imsi(),
            ip,
        }
    }
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventContent {
    /// The device reported values.
    Telemetry(Telemetry),
    /// The device sent data that the service does not interpret.
    Data(Box<Data>),
    /// The device was heard for the first time, registered, fell silent, or the like.
    Lifecycle(Lifecycle),
    /// Something failed: an entry of category error is in the log.
    Error(Box<ErrorReport>),
    /// A request of a caller is final.
    ActionResult(Box<ActionResult>),
    /// The device sent an SMS, or a part of one.
    SmsReceived(Box<ReceivedSms>),
    /// The status of an SMS to the device is final.
    SmsReport(Box<SmsReport>),
}

impl EventContent {
    /// The type of the event.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Telemetry(_) | Self::Data(_) => EventType::TelemetryData,
            Self::Lifecycle(_) => EventType::Lifecycle,
            Self::Error(_) => EventType::Error,
            Self::ActionResult(_) => EventType::ActionResult,
            Self::SmsReceived(_) => EventType::SmsReceived,
            Self::SmsReport(_) => EventType::SmsReport,
        }
    }

    /// Its kind, if it is a lifecycle event.
    pub fn lifecycle(&self) -> Option<Lifecycle> {
        match self {
            Self::Lifecycle(kind) => Some(*kind),
            Self::Telemetry(_)
            | Self::Data(_)
            | Self::Error(_)
            | Self::ActionResult(_)
            | Self::SmsReceived(_)
            | Self::SmsReport(_) => None,
        }
    }

    /// When the device measured the values, if it sent a time.
    pub fn measured_at(&self) -> Option<Timestamp> {
        match self {
            Self::Telemetry(telemetry) => telemetry.measured_at,
            Self::Data(_)
            | Self::Lifecycle(_)
            | Self::Error(_)
            | Self::ActionResult(_)
            | Self::SmsReceived(_)
            | Self::SmsReport(_) => None,
        }
    }
}

/// The types of events.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum EventType {
    /// Values of a device.
    TelemetryData,
    /// A device was heard for the first time, registered, fell silent, or the like.
    Lifecycle,
    /// Something failed.
    Error,
    /// A request of a caller is final.
    ActionResult,
    /// A device sent an SMS, or a part of one.
    SmsReceived,
    /// The status of an SMS to a device is final.
    SmsReport,
}

impl EventType {
    /// Every type.
    pub const ALL: [Self; 6] = [
        Self::TelemetryData,
        Self::Lifecycle,
        Self::Error,
        Self::ActionResult,
        Self::SmsReceived,
        Self::SmsReport,
    ];

    /// Whether webhooks and plugins receive it. The others go to the SMS forwarder alone.
    pub fn is_for_integrations(self) -> bool {
        match self {
            Self::TelemetryData | Self::Lifecycle | Self::Error | Self::ActionResult => true,
            Self::SmsReceived | Self::SmsReport => false,
        }
    }
}

/// A log entry of category error, as it is delivered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ErrorReport {
    /// The entry.
    pub entry: EntryId,
    /// Its `Component[Kind]`.
    pub message: Box<str>,
    /// Its description.
    pub description: Box<str>,
    /// Whether the entry has a stored payload.
    pub payload: PayloadKept,
}

/// Whether the payload of an entry is stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PayloadKept {
    /// There is none.
    No,
    /// It is stored with the log entry.
    Yes,
}

impl ErrorReport {
    /// The report of a log entry; `None` unless its category is error.
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

/// The final result of a caller's request.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionResult {
    /// The request.
    pub action: ActionId,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its status, which is final.
    pub status: Status,
    /// The answer of the device, or the error.
    pub outcome: Option<Outcome>,
}

/// Data a device sent over plain CoAP or bare UDP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Data {
    /// The protocol it was sent over.
    pub source: Protocol,
    /// The topic that the device gave it; bare datagrams have none.
    pub topic: Option<Topic>,
    /// The bytes as received.
    pub bytes: Box<[u8]>,
}

/// Values that a device reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The protocol they were sent over.
    pub source: Protocol,
    /// Why the device sent them.
    pub cause: Cause,
    /// When they were measured, if the device sent a time.
    pub measured_at: Option<Timestamp>,
    /// The values by path.
    pub values: Box<[(Path, Value)]>,
}

impl Telemetry {
    /// The time that decides which value of a path is the last known one: the latest wins.
    pub fn known_at(&self, received_at: Timestamp) -> Timestamp {
        known_at(self.measured_at, received_at)
    }
}

/// The time of a value among the last known ones. A device clock that is ahead must not shadow
/// values that are received later.
pub(crate) fn known_at(measured_at: Option<Timestamp>, received_at: Timestamp) -> Timestamp {
    measured_at.map_or(received_at, |at| at.min(received_at))
}

/// Why a device reported values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The path is observed (RFC 7641).
    Observation(Path),
    /// Several paths are observed at once, since this request.
    CompositeObservation(ActionId),
    /// An action request read them.
    Action(ActionId),
    /// The device sent them with Send (LwM2M Core 1.1 section 6.4.6).
    Send,
    /// They were read because the device registered or updated its registration (seed 1.3).
    PassiveReport,
}

/// The kinds of lifecycle events: contact with a device, its registration (LwM2M Core 1.2 section
/// 6.2), and its sleep in queue mode (section 6.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lifecycle {
    /// Its first message was received, over any protocol.
    FirstContact,
    /// It registered.
    Registered,
    /// An update changed its registration, or came from another IP address.
    Updated,
    /// It deregistered.
    Deregistered,
    /// There was no update within the lifetime of its registration.
    Expired,
    /// It was silent for too long.
    Offline,
    /// It was heard again after that.
    Back,
    /// In queue mode: it was heard, and listens for its awake window.
    Awake,
    /// In queue mode: its awake window is over.
    Asleep,
    /// It was bootstrapped (section 6.1).
    Bootstrapped,
}

impl Lifecycle {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::FirstContact,
        Self::Registered,
        Self::Updated,
        Self::Deregistered,
        Self::Expired,
        Self::Offline,
        Self::Back,
        Self::Awake,
        Self::Asleep,
        Self::Bootstrapped,
    ];

    /// Whether a destination receives it that does not name the kinds it wants.
    pub fn is_usual(self) -> bool {
        match self {
            Self::FirstContact
            | Self::Registered
            | Self::Updated
            | Self::Deregistered
            | Self::Expired
            | Self::Offline
            | Self::Back
            | Self::Bootstrapped => true,
            Self::Awake | Self::Asleep => false,
        }
    }
}
