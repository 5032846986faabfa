//! SMS of devices as they are stored: those that a device sent, whose parts are joined, and those
//! that a customer sent to a device.
//!
//! ```text
//!              taken by the network          buffered by the network
//!   PENDING <--------------------> IN PROGRESS -----------------> BUFFERED
//!    |   |     refused for now      |     |                        |   |
//!    |   | its validity is over     |     | DELIVERED, FAILED or EXPIRED, as the network reports
//!    |   +--> EXPIRED               |     +------------------------+---+--> that status
//!    |                              |                              |
//!    | DELETE                       | its validity is over         | DELETE
//!    +--> CANCELED                  +--> FAILED: outcome unknown   +--> CANCELED
//! ```

pub mod address;

use protocol::smpp::receipt::message_id_key;
use protocol::sms::parts::{EncodedParts, encode};

use crate::ids::{CustomerId, DeviceKey, Iccid, SmsId};
use crate::moment::Timestamp;
use crate::profile::Profile;
use crate::sms::address::AddressType;

/// An SMS.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sms {
    /// Its id.
    pub id: SmsId,
    /// The customer of the device.
    pub customer: CustomerId,
    /// The device.
    pub device: DeviceKey,
    /// The integer id of the device, which no later device has.
    pub device_number: u64,
    /// The SIM in the device when the SMS was stored.
    pub iccid: Iccid,
    /// The address of the sender.
    pub source: Box<str>,
    /// The address of the recipient, where known.
    pub dest: Option<Box<str>>,
    /// The data coding scheme (3GPP TS 23.038 section 4).
    pub dcs: u8,
    /// The protocol identifier (3GPP TS 23.040 section 9.2.3.9).
    pub pid: u8,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// What depends on its direction.
    pub way: SmsWay,
}

/// The direction of an SMS.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SmsWay {
    /// From the device: mobile-originated.
    FromDevice(JoinedSms),
    /// To the device: mobile-terminated.
    ToDevice(Box<SubmittedSms>),
}

/// What the lists of SMS have of one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SmsState {
    /// When its validity is over; none if its status is final.
    pub due_at: Option<Timestamp>,
    /// What the network still has to do for it.
    pub task: Option<NetworkTask>,
}

/// The parts of an SMS that a device sent, as far as they were received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JoinedSms {
    /// How many parts it has.
    pub total: u8,
    /// The reference that its parts share.
    pub identifier: u16,
    /// The received parts, by their number.
    pub parts: Vec<ReceivedPart>,
}

/// A received part of an SMS.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReceivedPart {
    /// Its number, from 1.
    pub number: u8,
    /// Its own id; that of the first received part is the id of the SMS.
    pub id: SmsId,
    /// Its text.
    pub text: Box<str>,
}

/// An SMS that a customer sent to a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubmittedSms {
    /// The text; of 8-bit data, its bytes in hexadecimal.
    pub payload: Box<str>,
    /// The type of the source address.
    pub source_type: AddressType,
    /// The user data header of the customer.
    pub udh: Option<Box<[u8]>>,
    /// When its validity is over.
    pub expires_at: Timestamp,
    /// Its status.
    pub status: SmsStatus,
    /// What the network still has to do for it.
    pub task: Option<NetworkTask>,
    /// When the network took it.
    pub taken_at: Option<Timestamp>,
    /// When the network reported that it is buffered.
    pub buffered_at: Option<Timestamp>,
    /// When its status became final.
    pub final_at: Option<Timestamp>,
    /// Why it is failed.
    pub reason: Option<Box<str>>,
    /// The parts that an SMS centre accepted over a link, as far as that is known, in order.
    pub parts: Vec<SubmittedPart>,
    /// What it is for.
    pub purpose: SmsPurpose,
}

/// What an SMS to a device is for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SmsPurpose {
    /// A customer sent it.
    #[default]
    Message,
    /// It wakes the device for an action request.
    WakeUp,
}

/// A part of an SMS that an SMS centre accepted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SubmittedPart {
    /// The id that the SMS centre gave it, if the response is known.
    pub message_id: Option<Box<str>>,
    /// What was reported of it last.
    pub status: Option<ReportedStatus>,
}

/// What the network has to do for an SMS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NetworkTask {
    /// Send it to the device.
    Send,
    /// Delete it from its buffer.
    Withdraw,
}

/// The status of an SMS to a device.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SmsStatus {
    /// It waits for the network.
    Pending,
    /// The network took it, and its outcome is not known yet.
    InProgress,
    /// The network keeps it until the device can be reached.
    Buffered,
    /// The device received it.
    Delivered,
    /// It did not reach the device, or its outcome is unknown.
    Failed,
    /// The device could not be reached within its validity.
    Expired,
    /// The customer cancelled it.
    Canceled,
}

/// What the network reports of an SMS to a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReportedStatus {
    /// It keeps the SMS until the device can be reached.
    Buffered,
    /// The device received it.
    Delivered,
    /// It did not reach the device.
    Failed,
    /// The device could not be reached within its validity.
    Expired,
}

/// The part of an SMS that a message is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MultiPartInfo {
    /// Its number, from 1.
    pub number: u8,
    /// How many parts there are.
    pub total: u8,
    /// The reference that the parts share.
    pub identifier: u16,
}

/// The parts of a device that belong together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PartsKey {
    /// The integer id of the device.
    pub device_number: u64,
    /// How many parts there are.
    pub total: u8,
    /// The reference that the parts share.
    pub identifier: u16,
}

/// A device as SMS events name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SmsEndpoint {
    /// Its integer id.
    pub number: u64,
    /// Its name; its device id if it has none.
    pub name: Box<str>,
}

/// A message of a device as an event: an SMS, or a part of one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReceivedSms {
    /// Its id.
    pub id: SmsId,
    /// Its text.
    pub payload: Box<str>,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// The address of the recipient.
    pub dest: Box<str>,
    /// The address of the sender.
    pub source: Box<str>,
    /// The data coding scheme.
    pub dcs: u8,
    /// The protocol identifier.
    pub pid: u8,
    /// Which part it is.
    pub part: MultiPartInfo,
    /// The device.
    pub endpoint: SmsEndpoint,
}

/// The final status of an SMS as an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SmsReport {
    /// The SMS.
    pub id: SmsId,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// When its status became final.
    pub final_at: Timestamp,
    /// The status.
    pub status: SmsStatus,
    /// The device.
    pub endpoint: SmsEndpoint,
}

impl Sms {
    /// The SMS to a device, if it is one.
    pub fn submitted(&self) -> Option<&SubmittedSms> {
        match &self.way {
            SmsWay::ToDevice(submitted) => Some(submitted),
            SmsWay::FromDevice(_) => None,
        }
    }

    /// An SMS to a device as the messages that the network sends.
    pub fn encoded(&self) -> Option<EncodedParts> {
        let SubmittedSms { payload, udh, .. } = self.submitted()?;
        // It was encoded before it was accepted.
        encode(payload, self.dcs, udh.as_deref(), self.reference()).ok()
    }

    /// The reference that the parts of an SMS to a device share.
    pub fn reference(&self) -> u8 {
        let [.., last] = self.id.number().to_be_bytes();
        last
    }

    /// The reference that a part of it is submitted with, which a receipt may repeat. Two parts to
    /// one device have the same one rarely; their message ids tell them apart.
    pub fn part_reference(&self, number: u8) -> u16 {
        // Ids of one time differ little; their product differs in the upper bits (Knuth).
        let mixed = self.id.number().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let [high, low, ..] = mixed.to_be_bytes();
        u16::from_be_bytes([high, low]).wrapping_add(u16::from(number))
    }

    /// The ids under which the SMS centre accepted its parts, each in the one way in which it is
    /// found.
    pub fn message_id_keys(&self) -> impl Iterator<Item = String> {
        let parts = self
            .submitted()
            .map_or(&[][..], |submitted| &submitted.parts);
        let ids = parts.iter().filter_map(|part| part.message_id.as_deref());
        ids.filter_map(message_id_key)
    }

    /// What the lists have of it.
    pub fn state(&self) -> SmsState {
        let Some(submitted) = self.submitted() else {
            return SmsState::default();
        };
        SmsState {
            due_at: (!submitted.status.is_final()).then_some(submitted.expires_at),
            task: submitted.task,
        }
    }

    /// What its further parts have in common with it, if it has several.
    pub fn parts_key(&self) -> Option<PartsKey> {
        match &self.way {
            SmsWay::FromDevice(joined) if joined.total > 1 => Some(PartsKey {
                device_number: self.device_number,
                total: joined.total,
                identifier: joined.identifier,
            }),
            SmsWay::FromDevice(_) | SmsWay::ToDevice(_) => None,
        }
    }

    /// The ids by which it is found: its own and those of its parts.
    pub fn ids(&self) -> Vec<SmsId> {
        let mut ids = vec![self.id];
        if let SmsWay::FromDevice(joined) = &self.way {
            ids.extend(joined.parts.iter().map(|part| part.id));
            ids.sort_unstable();
            ids.dedup();
        }
        ids
    }
}

impl JoinedSms {
    /// The text as far as it was received.
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| &*part.text).collect()
    }
}

impl SmsStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::InProgress,
        Self::Buffered,
        Self::Delivered,
        Self::Failed,
        Self::Expired,
        Self::Canceled,
    ];

    /// Its number in the API.
    pub fn number(self) -> u8 {
        match self {
            Self::Pending => 1,
            Self::InProgress => 2,
            Self::Buffered => 3,
            Self::Delivered => 4,
            Self::Failed => 5,
            Self::Expired => 6,
            Self::Canceled => 7,
        }
    }

    /// Whether it never changes.
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::InProgress | Self::Buffered => false,
            Self::Delivered | Self::Failed | Self::Expired | Self::Canceled => true,
        }
    }
}

impl ReportedStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Buffered, Self::Delivered, Self::Failed, Self::Expired];
}

impl From<ReportedStatus> for SmsStatus {
    fn from(reported: ReportedStatus) -> Self {
        match reported {
            ReportedStatus::Buffered => Self::Buffered,
            ReportedStatus::Delivered => Self::Delivered,
            ReportedStatus::Failed => Self::Failed,
            ReportedStatus::Expired => Self::Expired,
        }
    }
}

impl MultiPartInfo {
    /// That of a message which is whole.
    pub const WHOLE: Self = Self {
        number: 1,
        total: 1,
        identifier: 0,
    };
}

impl SmsEndpoint {
    /// The device with this profile.
    pub fn of(profile: &Profile) -> Self {
        let name = profile.name.as_deref().unwrap_or(profile.device.as_str());
        Self {
            number: profile.number,
            name: name.into(),
        }
    }
}
