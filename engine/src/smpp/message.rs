//! How is an SMS to a device a `submit_sm`, and a `deliver_sm` a message of a device?

use protocol::smpp::message::{Address, RECEIPT_WANTED, ShortMessage};
use protocol::smpp::pdu::Cancellation;
use protocol::sms::parts::EncodedPart;

use crate::directory::sms::NewReceivedSms;
use crate::ids::Msisdn;
use crate::limits::SMPP_TEXT_CHARACTERS_MAX;
use crate::sms::address::AddressType;
use crate::sms::{MultiPartInfo, Sms, SubmittedSms};

/// The type of an international number (SMPP 3.4 section 5.2.5).
const INTERNATIONAL: u8 = 1;

/// The type of a national number.
const NATIONAL: u8 = 2;

/// The type of a name.
const ALPHANUMERIC: u8 = 5;

/// The numbering plan of telephones (section 5.2.6).
const TELEPHONE: u8 = 1;

/// A part of an SMS as it is submitted.
pub(super) fn submission(
    sms: &Sms,
    submitted: &SubmittedSms,
    (number, part): (u8, &EncodedPart),
) -> ShortMessage {
    let mut message = ShortMessage {
        source: source(sms, submitted),
        dest: dest(sms),
        protocol_id: sms.pid,
        data_coding: sms.dcs,
        validity_period: submitted.expires_at.smpp().to_string().into(),
        registered_delivery: RECEIPT_WANTED,
        user_message_reference: Some(sms.part_reference(number)),
        ..ShortMessage::default()
    };
    message.set_part(part);
    message
}

/// The parts of a cancelled SMS that the SMS centre is to delete.
pub(super) fn cancellations(sms: &Sms) -> Vec<Cancellation> {
    let Some(submitted) = sms.submitted() else {
        return Vec::new();
    };
    let ids = submitted
        .parts
        .iter()
        .filter_map(|it| it.message_id.clone());
    let cancellation = |message_id| Cancellation {
        message_id,
        source: source(sms, submitted),
        dest: dest(sms),
    };
    ids.map(cancellation).collect()
}

/// The device that sent a message or received the one of a receipt.
pub(super) fn device_of(message: &ShortMessage) -> Option<Msisdn> {
    let text = &*message.source.text;
    Msisdn::parse(text.strip_prefix('+').unwrap_or(text)).ok()
}

/// The message that a device sent, unless it is longer than any SMS.
pub(super) fn received(message: &ShortMessage) -> Option<NewReceivedSms> {
    let text = message.text();
    let part = text
        .segment
        .map_or(MultiPartInfo::WHOLE, |segment| MultiPartInfo {
            number: segment.number,
            total: segment.total,
            identifier: segment.reference,
        });
    let is_short = text.payload.chars().count() <= SMPP_TEXT_CHARACTERS_MAX;
    is_short.then(|| NewReceivedSms {
        source: message.source.text.clone(),
        dest: message.dest.text.clone(),
        payload: text.payload.into(),
        dcs: text.dcs,
        pid: message.protocol_id,
        part,
    })
}

fn source(sms: &Sms, submitted: &SubmittedSms) -> Address {
    let (ton, npi) = match submitted.source_type {
        AddressType::International => (INTERNATIONAL, TELEPHONE),
        AddressType::National => (NATIONAL, TELEPHONE),
        AddressType::Alphanumeric => (ALPHANUMERIC, 0),
    };
    Address {
        ton,
        npi,
        text: sms.source.clone(),
    }
}

fn dest(sms: &Sms) -> Address {
    Address {
        ton: INTERNATIONAL,
        npi: TELEPHONE,
        text: sms.dest.clone().unwrap_or_default(),
    }
}
