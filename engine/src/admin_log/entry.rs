//! The texts of administration log entries; no other file has any.

use std::net::IpAddr;

use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;

use super::payload::{EntryPayload, FurtherPayloads, RejectedPayload};
use crate::action::{Action, Protocol};
use crate::device::identity::Identity;
use crate::device::record::ObservationTarget;
use crate::device::rejections::{RejectedMessage, UnloggedRejections};
use crate::ids::{CustomerId, DeviceKey, EntryId, Iccid, Imsi, TraceId};
use crate::limits::LOG_PAYLOAD_BYTES_MAX;
use crate::moment::{Moment, Timestamp};
use crate::route::DeviceOperation;

/// One entry of the administration log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its id; ids sort by time.
    pub id: EntryId,
    /// The customer whose log it is in.
    pub customer: CustomerId,
    /// When it was written.
    pub at: Timestamp,
    /// Its subject.
    pub subject: Subject,
    /// Whether someone should act.
    pub category: Category,
    /// `Component[Kind]`.
    pub message: Box<str>,
    /// The details, as sentences.
    pub description: Box<str>,
    /// The trace id of the cause.
    pub trace: TraceId,
    /// The device, if the entry concerns one.
    pub about: Option<AboutDevice>,
    /// The stored bytes, if there are any.
    pub payload: Option<EntryPayload>,
}

/// The device of an entry, as it was known when the entry was written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AboutDevice {
    /// The device.
    pub key: DeviceKey,
    /// The SIM in it.
    pub iccid: Iccid,
    /// The subscriber identity of the SIM, where known.
    pub imsi: Option<Imsi>,
    /// Its address, where known.
    pub ip: Option<IpAddr>,
}

/// The subject of an entry: its `type`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Subject {
    /// A device: its messages, and the requests to it.
    Device,
    /// The lifecycle of a device.
    Lifecycle,
    /// A connection to a system of the customer.
    Integration,
    /// Anything else.
    General,
}

/// Whether someone should act on an entry.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Category {
    /// Something failed.
    Error,
    /// Something worth knowing.
    Info,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 4] = [
        Self::Device,
        Self::Lifecycle,
        Self::Integration,
        Self::General,
    ];
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 2] = [Self::Error, Self::Info];
}

/// A device as an entry shows it: its identity and its last known address.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSighting<'a> {
    /// Its key.
    pub key: DeviceKey,
    /// Who it is.
    pub identity: &'a Identity,
    /// Its last known address, if any.
    pub at: Option<IpAddr>,
}

impl Entry {
    /// The device registered for the first time; logged exactly once per device.
    pub fn first_registered(m: &mut Moment, device: DeviceSighting<'_>) -> Self {
        let name = device.identity.endpoint();
        let description = format!("The device registered for the first time as {name}.");
        Self::first_contact(m, device, description)
    }

    /// The first message of the device is not a registration; of the first message and the first
    /// registration, only the earlier one is logged.
    pub fn first_heard(m: &mut Moment, device: DeviceSighting<'_>, over: Protocol) -> Self {
        let over = match over {
            Protocol::Udp => "UDP",
            Protocol::Coap => "CoAP",
            Protocol::Lwm2m => "LwM2M",
        };
        let description = format!("The first message from the device was received over {over}.");
        Self::first_contact(m, device, description)
    }

    /// A message of the device, or of a sender that claims to be the device, was rejected.
    ///
    /// Unspecified (the list of messages): `CoAP[RequestRejected]` is a kind of its own, because no
    /// other one fits what is neither LwM2M nor from another address.
    pub fn message_rejected(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        rejected: &RejectedMessage,
        unlogged: Option<UnloggedRejections>,
    ) -> Self {
        let message = match (rejected.operation, rejected.answer) {
            (
                DeviceOperation::Register
                | DeviceOperation::Update
                | DeviceOperation::Deregister
                | DeviceOperation::Send
                | DeviceOperation::Notify,
                _,
            ) => "LwM2M[RegistrationRejected]",
            (DeviceOperation::Bootstrap, _) => "LwM2M[BootstrapRejected]",
            (DeviceOperation::Data, Some(Code::UNAUTHORIZED)) => "CoAP[UnauthorizedDevice]",
            (DeviceOperation::Handshake, _) => "CoAP[UnauthorizedDevice]",
            (DeviceOperation::Data | DeviceOperation::Unknown, _) => "CoAP[RequestRejected]",
        };
        let description = rejection_text(device.identity, rejected, unlogged);
        Self::error(m, device, None, message, description)
    }

    /// Data of the device has no valid topic; the bytes are stored.
    pub fn invalid_topic(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        why: &str,
        payload: RejectedPayload<'_>,
    ) -> Self {
        let description = format!("Data was rejected: {why}.{}", notes_on(payload));
        Self {
            payload: payload.bytes.map(EntryPayload::of),
            ..Self::error(m, device, None, "CoAP[InvalidTopic]", description)
        }
    }

    /// The value of a request does not fit the resource it addresses.
    pub fn invalid_data_type(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        action: &Action,
        why: &str,
    ) -> Self {
        let description = format!("Action request {} was not sent: {why}.", action.id);
        let message = "DeviceController[InvalidDataType]";
        Self::error(m, device, Some(action.trace), message, description)
    }

    /// A request failed.
    pub fn action_failed(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        action: &Action,
        why: &str,
    ) -> Self {
        let description = format!("Action request {} failed: {why}.", action.id);
        let message = "DeviceController[ActionRequestFailed]";
        Self::error(m, device, Some(action.trace), message, description)
    }

    /// A request expired.
    pub fn action_expired(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        action: &Action,
        why: &str,
    ) -> Self {
        let description = format!("Action request {} failed: {why}.", action.id);
        let message = "DeviceController[ActionRequestExpired]";
        Self::error(m, device, Some(action.trace), message, description)
    }

    /// A payload of the device was rejected; the bytes are stored for inspection.
    pub fn undecodable_payload(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        why: &str,
        payload: RejectedPayload<'_>,
    ) -> Self {
        let what = format!("A payload was rejected: {why}.");
        Self::payload_error(m, device, &what, payload)
    }

    /// Values of a payload cannot be read and were not stored, although the others were; the bytes
    /// are stored for inspection.
    pub fn unreadable_values(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        (message, why): (&str, &str),
        payload: RejectedPayload<'_>,
    ) -> Self {
        let what = format!(
            "Values of {message} cannot be read and were not stored: {why}. The other values were \
             stored."
        );
        Self::payload_error(m, device, &what, payload)
    }

    /// The device sent a value for a path that its object model or its registration does not have;
    /// logged once per device.
    ///
    /// Unspecified (the list of messages): a kind of its own, because no other one fits.
    pub fn unknown_object(m: &mut Moment, device: DeviceSighting<'_>, path: &Path) -> Self {
        let description = format!(
            "The device sent a value for {path}, which is not in the object model or not in its \
             registration. Such values are stored without a type check. This is logged once per \
             device."
        );
        Self::error(m, device, None, "Translator[UnknownObject]", description)
    }

    /// An observation ended without a request to end it.
    pub fn observation_lost(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        what: &ObservationTarget,
        why: &str,
    ) -> Self {
        let description = format!("The observation of {what} was lost: {why}.");
        Self::error(m, device, None, "LwM2M[ObservationLost]", description)
    }

    /// Passive reporting could not read an object; the response of the device is stored.
    pub fn passive_reporting_failed(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        path: &Path,
        why: &str,
        bytes: Option<&[u8]>,
    ) -> Self {
        let description = format!("Passive reporting could not read {path}: {why}.");
        let message = "LwM2M[PassiveReportingFailed]";
        Self {
            payload: bytes.map(EntryPayload::of),
            ..Self::error(m, device, None, message, description)
        }
    }

    /// The device has more objects than a round of passive reporting reads.
    pub fn passive_objects_left(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        max: usize,
        left: &[u16],
    ) -> Self {
        let named: Vec<_> = left.iter().map(|id| format!("/{id}")).collect();
        let description = format!(
            "Passive reporting reads at most {max} objects at a time. The next rounds read {}.",
            named.join(", ")
        );
        Self::error(
            m,
            device,
            None,
            "LwM2M[PassiveReportingFailed]",
            description,
        )
    }

    /// The actor of this device panicked repeatedly and is not restored.
    ///
    /// Unspecified (the list of messages): a kind of its own, because no other one fits.
    pub fn device_parked(m: &mut Moment, device: DeviceSighting<'_>) -> Self {
        let description = "The service failed repeatedly while it processed messages of this \
                           device. The device is ignored until the service is restarted."
            .to_owned();
        Self::error(
            m,
            device,
            None,
            "DeviceController[DeviceParked]",
            description,
        )
    }

    fn payload_error(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        what: &str,
        payload: RejectedPayload<'_>,
    ) -> Self {
        let description = format!("{what}{}", notes_on(payload));
        let message = "Translator[UserPayloadError]";
        Self {
            payload: payload.bytes.map(EntryPayload::of),
            ..Self::error(m, device, None, message, description)
        }
    }

    fn first_contact(m: &mut Moment, device: DeviceSighting<'_>, description: String) -> Self {
        let message = "Lifecycle[DeviceFirstTimeRegistered]";
        Self {
            subject: Subject::Lifecycle,
            category: Category::Info,
            ..Self::error(m, device, None, message, description)
        }
    }

    fn error(
        m: &mut Moment,
        device: DeviceSighting<'_>,
        trace: Option<TraceId>,
        message: &str,
        description: String,
    ) -> Self {
        let trace = trace.unwrap_or_else(|| TraceId::new(m.uuid()));
        Self {
            id: EntryId::new(m.uuid()),
            customer: device.identity.customer(),
            at: m.now(),
            subject: Subject::Device,
            category: Category::Error,
            message: message.into(),
            description: description.into(),
            trace,
            about: Some(AboutDevice {
                key: device.key,
                iccid: device.identity.iccid(),
                imsi: device.identity.imsi(),
                ip: device.at.or(device.identity.ip()),
            }),
            payload: None,
        }
    }
}

/// What was rejected and why, with the address it came from and those where the device is expected.
fn rejection_text(
    device: &Identity,
    rejected: &RejectedMessage,
    unlogged: Option<UnloggedRejections>,
) -> String {
    let what = match rejected.operation {
        DeviceOperation::Register => "A registration",
        DeviceOperation::Update => "An update",
        DeviceOperation::Deregister => "A deregistration",
        DeviceOperation::Send => "A Send",
        DeviceOperation::Notify => "A notification",
        DeviceOperation::Data => "Data",
        DeviceOperation::Bootstrap => "A bootstrap request",
        DeviceOperation::Handshake => "A DTLS handshake",
        DeviceOperation::Unknown => "A request",
    };
    let (from, why) = (rejected.from, &rejected.why);
    let answer = rejected.answer.map(|code| format!(" with {code}"));
    let answer = answer.unwrap_or_default();
    let address = match device.ip() {
        Some(ip) => format!("has the IP address {ip}"),
        None => "has no IP address of its own".to_owned(),
    };
    let registered = match rejected.registered_at {
        Some(peer) => format!("is registered at {peer}"),
        None => "is not registered".to_owned(),
    };
    let unlogged = unlogged.map(|others| {
        let (count, since) = (others.count, others.since.iso());
        format!(" Rejected since {since} and not logged: {count} more.")
    });
    let unlogged = unlogged.unwrap_or_default();
    format!(
        "{what} from {from} was rejected{answer}: {why}. The device {address} and {registered}.\
         {unlogged}"
    )
}

/// What an entry says about the bytes of a rejected payload, and about further payloads.
fn notes_on(payload: RejectedPayload<'_>) -> String {
    let of_bytes = match payload.bytes.map(<[u8]>::len) {
        Some(..=LOG_PAYLOAD_BYTES_MAX) => String::new(),
        Some(len) => format!(" The first {LOG_PAYLOAD_BYTES_MAX} of {len} bytes are stored."),
        None => " The bytes are not stored: those of the device reached the quota of one day."
            .to_owned(),
    };
    match payload.further {
        FurtherPayloads::Logged => of_bytes,
        FurtherPayloads::OncePerMinute => {
            format!("{of_bytes} Further rejections within one minute are not logged.")
        }
    }
}
