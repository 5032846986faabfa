//! What is the JSON of SMS and of the SMS forwarder? SMS have the names and times of seed 6.

use serde::Serialize;

use engine::delivery::destination::{Destination, Replay, SmsForwarder};
use engine::ids::SmsId;
use engine::moment::Timestamp;
use engine::sms::address::AddressType;
use engine::sms::{JoinedSms, NetworkTask, Sms, SmsStatus, SmsWay, SubmittedSms};
use engine::sms_text::coding::hex;
use engine::sms_text::parts::{EncodedPart, EncodedParts};
use engine::wake_up::{WakeUpContent, WakeUpMessage};

use crate::api::words::Word as _;

/// The SMS forwarder.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct ForwarderBody {
    url: String,
    state: &'static str,
    replaying: bool,
    created: String,
    updated: String,
}

/// The response to an SMS to a device.
#[derive(Serialize)]
pub(in crate::api) struct SubmittedBody {
    id: u64,
}

/// The SMS that wakes a device.
#[derive(Serialize)]
pub(in crate::api) struct WakeUpMessageBody {
    source_address: String,
    source_address_type: AddressTypeBody,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Absent of the registration update trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
}

/// The response to a message of a device.
#[derive(Serialize)]
pub(in crate::api) struct ReceivedBody {
    id: u64,
}

/// The response to a report.
#[derive(Serialize)]
pub(in crate::api) struct ReportedBody {
    id: u64,
    status: StatusBody,
}

/// An SMS.
#[derive(Serialize)]
pub(in crate::api) struct SmsBody {
    id: u64,
    iccid: String,
    sms_type: DirectionBody,
    submit_date: String,
    source_address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dest_address: Option<String>,
    dcs: u8,
    pid: u8,
    #[serde(flatten)]
    way: WayBody,
}

/// What depends on the direction.
#[derive(Serialize)]
#[serde(untagged)]
enum WayBody {
    FromDevice {
        payload: String,
        multi_part_info: PartsBody,
    },
    ToDevice {
        payload: String,
        multi_part_info: PartsBody,
        status: StatusBody,
        expiry_date: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        in_progress_date: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        buffered_date: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        final_date: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        source_address_type: AddressTypeBody,
        #[serde(skip_serializing_if = "Option::is_none")]
        udh: Option<String>,
    },
}

/// A direction.
#[derive(Serialize)]
struct DirectionBody {
    id: u8,
    description: &'static str,
}

#[derive(Serialize)]
struct StatusBody {
    id: u8,
    status: &'static str,
}

#[derive(Serialize)]
struct AddressTypeBody {
    id: u8,
}

/// The parts of an SMS.
#[derive(Serialize)]
struct PartsBody {
    total: usize,
    identifier: u16,
    /// The numbers of the parts that were received; absent of an SMS to a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<Vec<u8>>,
}

/// What the network has to do.
#[derive(Serialize)]
pub(in crate::api) struct TakenBody {
    items: Vec<NetworkSmsBody>,
    /// Buffered messages that were cancelled.
    withdrawn: Vec<u64>,
}

/// An SMS to a device, as the network sends it.
#[derive(Serialize)]
pub(in crate::api) struct NetworkSmsBody {
    id: u64,
    iccid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dest_address: Option<String>,
    source_address: String,
    source_address_type: AddressTypeBody,
    expiry_date: String,
    dcs: u8,
    pid: u8,
    parts: Vec<PartBody>,
}

/// One message of it.
#[derive(Serialize)]
struct PartBody {
    /// The user data header in hexadecimal; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    udh: Option<String>,
    payload: String,
}

impl ForwarderBody {
    /// The forwarder.
    pub(in crate::api) fn of(destination: &Destination, forwarder: &SmsForwarder) -> Self {
        Self {
            url: forwarder.url.to_string(),
            state: destination.state.word(),
            replaying: destination.replay == Replay::UnderWay,
            created: destination.created_at.iso().to_string(),
            updated: destination.updated_at.iso().to_string(),
        }
    }
}

impl SubmittedBody {
    /// The SMS.
    pub(in crate::api) fn of(sms: &Sms) -> Self {
        let id = sms.id.number();
        Self { id }
    }
}

impl WakeUpMessageBody {
    pub(in crate::api) fn of(message: &WakeUpMessage) -> Self {
        Self {
            source_address: message.source.to_string(),
            source_address_type: AddressTypeBody::of(message.source_type),
            kind: message.content.kind().word(),
            payload: match &message.content {
                WakeUpContent::Text(text) => Some(text.to_string()),
                WakeUpContent::Data(octets) => Some(hex(octets)),
                WakeUpContent::RegistrationUpdateTrigger => None,
            },
        }
    }
}

impl ReceivedBody {
    /// The message.
    pub(in crate::api) fn of(id: SmsId) -> Self {
        let id = id.number();
        Self { id }
    }
}

impl ReportedBody {
    /// The SMS with its status.
    pub(in crate::api) fn of(id: SmsId, status: SmsStatus) -> Self {
        Self {
            id: id.number(),
            status: StatusBody::of(status),
        }
    }
}

impl SmsBody {
    /// The SMS.
    pub(in crate::api) fn of(sms: &Sms) -> Self {
        let (id, description, way) = match &sms.way {
            SmsWay::ToDevice(submitted) => (1, "MT", WayBody::of_submitted(sms, submitted)),
            SmsWay::FromDevice(joined) => (2, "MO", WayBody::of_received(joined)),
        };
        Self {
            id: sms.id.number(),
            iccid: sms.iccid.to_string(),
            sms_type: DirectionBody { id, description },
            submit_date: date(sms.submitted_at),
            source_address: sms.source.to_string(),
            dest_address: sms.dest.as_deref().map(Into::into),
            dcs: sms.dcs,
            pid: sms.pid,
            way,
        }
    }
}

impl WayBody {
    fn of_received(joined: &JoinedSms) -> Self {
        Self::FromDevice {
            payload: joined.text(),
            multi_part_info: PartsBody {
                total: joined.total.into(),
                identifier: joined.identifier,
                received: Some(joined.parts.iter().map(|part| part.number).collect()),
            },
        }
    }

    fn of_submitted(sms: &Sms, submitted: &SubmittedSms) -> Self {
        Self::ToDevice {
            payload: submitted.payload.to_string(),
            multi_part_info: PartsBody::of_submitted(sms),
            status: StatusBody::of(submitted.status),
            expiry_date: date(submitted.expires_at),
            in_progress_date: submitted.taken_at.map(date),
            buffered_date: submitted.buffered_at.map(date),
            final_date: submitted.final_at.map(date),
            reason: submitted.reason.as_deref().map(Into::into),
            source_address_type: AddressTypeBody::of(submitted.source_type),
            udh: submitted.udh.as_deref().map(hex),
        }
    }
}

impl StatusBody {
    fn of(status: SmsStatus) -> Self {
        Self {
            id: status.number(),
            status: status.word(),
        }
    }
}

impl AddressTypeBody {
    fn of(source_type: AddressType) -> Self {
        let id = source_type.number();
        Self { id }
    }
}

impl PartsBody {
    /// One message, or the parts that share a reference.
    fn of_submitted(sms: &Sms) -> Self {
        let total = sms.encoded().map_or(1, |encoded| encoded.parts.len());
        let identifier = match total {
            1 => 0,
            _ => sms.reference().into(),
        };
        Self {
            total,
            identifier,
            received: None,
        }
    }
}

impl TakenBody {
    /// What was taken.
    pub(in crate::api) fn of(
        taken: &[(NetworkTask, Sms)],
        show: impl Fn(&Sms) -> Option<NetworkSmsBody>,
    ) -> Self {
        let (mut items, mut withdrawn) = (Vec::new(), Vec::new());
        for (task, sms) in taken {
            match task {
                NetworkTask::Send => items.extend(show(sms)),
                NetworkTask::Withdraw => withdrawn.push(sms.id.number()),
            }
        }
        Self { items, withdrawn }
    }
}

impl NetworkSmsBody {
    /// The SMS in its parts.
    pub(in crate::api) fn of(sms: &Sms) -> Option<Self> {
        let submitted = sms.submitted()?;
        let encoded = sms.encoded()?;
        let parts = encoded
            .parts
            .iter()
            .map(|part| PartBody::of(&encoded, part));
        Some(Self {
            id: sms.id.number(),
            iccid: sms.iccid.to_string(),
            dest_address: sms.dest.as_deref().map(Into::into),
            source_address: sms.source.to_string(),
            source_address_type: AddressTypeBody::of(submitted.source_type),
            expiry_date: date(submitted.expires_at),
            dcs: sms.dcs,
            pid: sms.pid,
            parts: parts.collect(),
        })
    }
}

impl PartBody {
    fn of(encoded: &EncodedParts, part: &EncodedPart) -> Self {
        Self {
            udh: (!part.header.is_empty()).then(|| hex(&part.header)),
            payload: encoded.alphabet.read(&part.user_data),
        }
    }
}

fn date(at: Timestamp) -> String {
    at.spaced_s().to_string()
}
