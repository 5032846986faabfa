//! Which SMS wakes a device that sleeps, because a request to it says so? One at a time, and a
//! bounded number within an hour.

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;
use protocol::sms::coding::{DCS_DATA, dcs_for, hex};

use super::{NewSms, submitted};
use crate::action::NewAction;
use crate::ids::SmsId;
use crate::limits::{SmsRules, WAKE_UP_RESPONSE_MS, WAKE_UPS_MS};
use crate::moment::{Moment, Timestamp};
use crate::profile::Profile;
use crate::sms::{Sms, SmsPurpose, SmsStatus};
use crate::wake_up::{WakeUpContent, WakeUpMessage};

/// The registration update trigger of the server object.
const TRIGGER: Path = Path::resource(1, 0, 8);

/// What is stored of a device that a request may wake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WakeUpFacts {
    /// The device.
    pub device: Profile,
    /// What wakes the devices of its customer.
    pub of_customer: Option<WakeUpMessage>,
    /// The SMS that woke it last, newest first: as many as it may be sent within an hour.
    pub newest: Vec<Sms>,
    /// How many SMS to it have no final status.
    pub open: u32,
}

/// An action request that may wake its device.
#[derive(Clone, Debug)]
pub struct WakingAction {
    /// The request.
    pub new: NewAction,
    /// What is stored of the device.
    pub facts: WakeUpFacts,
    /// The id of the SMS, if one is sent. Two steps of one moment would draw the same one.
    pub sms: SmsId,
}

/// What the machine of a device that sleeps knows of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SleepingDevice {
    /// When it was last heard.
    pub heard_at: Option<Timestamp>,
    /// The last SMS that requests which still wait woke it with.
    pub woken_by: Option<SmsId>,
}

/// The SMS that wakes a device.
#[derive(Clone, Debug, PartialEq)]
pub enum WakeUpSms {
    /// One that is on its way.
    UnderWay(SmsId),
    /// A new one.
    New(Box<Sms>),
}

/// Why a device cannot be woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WakeUpRefusal {
    /// It has no telephone number.
    #[error("the device has no MSISDN to send an SMS to; set its msisdn")]
    NoNumber,
    /// Neither it nor its customer has a message.
    #[error("neither the device nor the customer has a wake-up message; set one")]
    NoMessage,
    /// It was woken too often.
    #[error("at most {max} SMS wake a device within an hour")]
    TooOften {
        /// The most allowed.
        max: u32,
    },
    /// Too many SMS to it wait.
    #[error("{max} SMS to the device have no final status, which is the maximum")]
    TooManyOpen {
        /// The most allowed.
        max: u32,
    },
}

impl WakeUpSms {
    /// The id of the SMS.
    pub fn id(&self) -> SmsId {
        match self {
            Self::UnderWay(id) => *id,
            Self::New(sms) => sms.id,
        }
    }
}

/// Whether a device could be woken at all.
pub fn check(facts: &WakeUpFacts) -> Result<&WakeUpMessage, WakeUpRefusal> {
    if facts.device.msisdn.is_none() {
        return Err(WakeUpRefusal::NoNumber);
    }
    let own = facts.device.wake_up.as_ref();
    let message = own.or(facts.of_customer.as_ref());
    message.ok_or(WakeUpRefusal::NoMessage)
}

/// The SMS that wakes a device that sleeps, a new one under this id, for a request that expires at
/// an instant: the SMS is of no use later.
pub fn wake(
    m: &mut Moment,
    (facts, id): (&WakeUpFacts, SmsId),
    device: SleepingDevice,
    expires_at: Timestamp,
    rules: SmsRules,
) -> Result<WakeUpSms, WakeUpRefusal> {
    let message = check(facts)?;
    // The facts were read before the step that sent it was saved.
    let newest = facts.newest.first().map(|sms| sms.id);
    if let Some(unread) = device.woken_by.filter(|id| Some(*id) > newest) {
        return Ok(WakeUpSms::UnderWay(unread));
    }
    let is_on_its_way = |sms: &&Sms| is_under_way(sms, device.heard_at, m.now());
    if let Some(sms) = facts.newest.iter().find(is_on_its_way) {
        return Ok(WakeUpSms::UnderWay(sms.id));
    }
    let is_recent = |sms: &&Sms| m.now().since_ms(sms.submitted_at) < WAKE_UPS_MS;
    let recent = facts.newest.iter().filter(is_recent).count();
    let max = rules.wake_ups_max;
    if u32::try_from(recent).is_ok_and(|recent| recent >= max) {
        return Err(WakeUpRefusal::TooOften { max });
    }
    if facts.open >= rules.open_max {
        let max = rules.open_max;
        return Err(WakeUpRefusal::TooManyOpen { max });
    }
    let new = sms_of(m, message);
    let by_default = m.now().plus_ms(rules.validity_ms);
    let at = (id, m.now());
    let sms = submitted(at, &facts.device, new, by_default.min(expires_at));
    Ok(WakeUpSms::New(Box::new(sms)))
}

/// Whether the device will be woken by an SMS that it was sent: the network has it, or the device
/// received it and had no time to speak.
fn is_under_way(sms: &Sms, heard_at: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(submitted) = sms.submitted() else {
        return false;
    };
    match submitted.status {
        SmsStatus::Pending | SmsStatus::InProgress | SmsStatus::Buffered => {
            now < submitted.expires_at
        }
        SmsStatus::Delivered => submitted.final_at.is_some_and(|at| {
            let is_silent = heard_at.is_none_or(|heard_at| heard_at < at);
            is_silent && now.since_ms(at) < WAKE_UP_RESPONSE_MS
        }),
        SmsStatus::Failed | SmsStatus::Expired | SmsStatus::Canceled => false,
    }
}

fn sms_of(m: &mut Moment, message: &WakeUpMessage) -> NewSms {
    let (payload, dcs) = match &message.content {
        WakeUpContent::Text(text) => (text.clone(), dcs_for(text)),
        WakeUpContent::Data(octets) => (hex(octets).into(), DCS_DATA),
        WakeUpContent::RegistrationUpdateTrigger => (hex(&trigger(m)).into(), DCS_DATA),
    };
    NewSms {
        source: message.source.clone(),
        source_type: message.source_type,
        payload,
        dcs,
        udh: None,
        expires_at: None,
        purpose: SmsPurpose::WakeUp,
    }
}

/// Non-confirmable and without a token: the device answers by what it then sends over IP.
fn trigger(m: &mut Moment) -> Vec<u8> {
    let [high, low, ..] = m.next_u32().to_be_bytes();
    let id = MessageId(u16::from_be_bytes([high, low]));
    let request = Message::request(MessageKind::NonConfirmable, Code::POST, id, Token::EMPTY);
    let segments = TRIGGER.segments().map(|segment| segment.to_string());
    request.with_uri_path(segments).encode()
}

#[cfg(test)]
mod tests;
