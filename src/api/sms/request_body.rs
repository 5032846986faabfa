//! How are the bodies of SMS parsed?

use engine::directory::sms::{NewReceivedSms, NewSms};
use engine::ids::{InvalidId, Msisdn, SmsId};
use engine::limits::{SMS_ADDRESS_CHARACTERS_MAX, SMS_PART_CHARACTERS_MAX, SMS_VALIDITY_MS_MAX};
use engine::moment::Timestamp;
use engine::sms::address::AddressType;
use engine::sms::{MultiPartInfo, ReportedStatus, SmsPurpose};
use engine::sms_text::coding::{dcs_for, octets};
use engine::sms_text::parts::encode;
use engine::wake_up::{WakeUpContent, WakeUpKind, WakeUpMessage};

use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields};
use crate::api::words::Word as _;

/// The characters of a name as the source address.
pub(super) const NAME_CHARACTERS_MAX: usize = 11;

/// The octets of 8-bit data that one message has room for (3GPP TS 23.040 section 9.2.3.24).
pub(super) const DATA_OCTETS_MAX: usize = 140;

/// The digits of a number as the source address.
pub(super) const NUMBER_DIGITS_MAX: usize = 15;

/// The SMS to a device that a body describes.
pub(super) fn new_sms(mut fields: Fields, now: Timestamp) -> Result<NewSms, ApiError> {
    let source = source(&mut fields);
    let payload = fields.required("payload", |text| Ok::<_, String>(Box::from(text)));
    let dcs = octet(&mut fields, "dcs");
    let udh = fields.optional("udh", header);
    let expires_at = fields.optional("expiry_date", |text| expiry(text, now));
    let payload: Option<Box<str>> = payload;
    let coded = payload.and_then(|payload| {
        let dcs = dcs.unwrap_or_else(|| dcs_for(&payload));
        match encode(&payload, dcs, udh.as_deref(), 0) {
            Ok(_) => Some((payload, dcs)),
            Err(why) => {
                fields.fault("payload", why);
                None
            }
        }
    });
    let new = source.zip(coded);
    let new = new.map(|((source, source_type), (payload, dcs))| NewSms {
        source,
        source_type,
        payload,
        dcs,
        udh,
        expires_at,
        purpose: SmsPurpose::Message,
    });
    fields.finish(new)
}

/// The message that wakes a device, as a body describes it.
pub(super) fn new_wake_up(mut fields: Fields) -> Result<WakeUpMessage, ApiError> {
    const PAYLOAD: &str = "payload";
    let source = source(&mut fields);
    let kind = fields.required("type", WakeUpKind::read);
    let content = match kind {
        Some(WakeUpKind::Text) => fields.required(PAYLOAD, text_of_one),
        Some(WakeUpKind::Data) => fields.required(PAYLOAD, data_of_one),
        Some(WakeUpKind::RegistrationUpdateTrigger) => {
            fields.refuse(PAYLOAD, "is not supported for this type");
            Some(WakeUpContent::RegistrationUpdateTrigger)
        }
        None => {
            // What it means depends on the type.
            fields.optional(PAYLOAD, |_| Ok::<_, FieldFault>(()));
            None
        }
    };
    let message = source.zip(content);
    fields.finish(
        message.map(|((source, source_type), content)| WakeUpMessage {
            source,
            source_type,
            content,
        }),
    )
}

/// A text that fits one message.
fn text_of_one(text: &str) -> Result<WakeUpContent, FieldFault> {
    match encode(text, dcs_for(text), None, 0) {
        Ok(encoded) if encoded.parts.len() == 1 && !text.is_empty() => {
            Ok(WakeUpContent::Text(text.into()))
        }
        Ok(_) => Err(FieldFault::out_of_range(
            "must have at least one character and fit one message: 160 characters of the GSM 7 \
             bit alphabet, or 70 others",
        )),
        Err(why) => Err(why.into()),
    }
}

/// Data that fits one message.
fn data_of_one(text: &str) -> Result<WakeUpContent, FieldFault> {
    let octets = octets(text).map_err(|_| "must be hexadecimal digits, two for each octet")?;
    match (1..=DATA_OCTETS_MAX).contains(&octets.len()) {
        true => Ok(WakeUpContent::Data(octets.into())),
        false => Err(FieldFault::out_of_range(format!(
            "must have 1 to {DATA_OCTETS_MAX} octets"
        ))),
    }
}

/// The message of a device that a body describes, and its sender.
pub(super) fn new_received(mut fields: Fields) -> Result<(Msisdn, NewReceivedSms), ApiError> {
    let source = fields.required("source_address", |text| {
        msisdn(text).map(|sender| (sender, Box::from(text)))
    });
    let dest = fields.required("dest_address", |text| {
        short(text, SMS_ADDRESS_CHARACTERS_MAX)
    });
    let payload = fields.required("payload", |text| short(text, SMS_PART_CHARACTERS_MAX));
    let dcs = fields.required_number("dcs", 0..=u32::from(u8::MAX));
    let pid = fields.required_number("pid", 0..=u32::from(u8::MAX));
    let part = part(&mut fields);
    let ends = source.zip(dest);
    let coding = dcs.zip(pid);
    let new = ends.zip(payload).zip(coding);
    let new = new.map(|((((sender, source), dest), payload), (dcs, pid))| {
        let new = NewReceivedSms {
            source,
            dest,
            payload,
            dcs: to_octet(dcs),
            pid: to_octet(pid),
            part,
        };
        (sender, new)
    });
    fields.finish(new)
}

/// The id and the status of a report.
pub(super) fn new_report(mut fields: Fields) -> Result<(SmsId, ReportedStatus), ApiError> {
    let id = fields.required_integer("id", 0..=SmsId::MAX);
    let status = fields.required("status", ReportedStatus::read);
    let id = id.and_then(SmsId::from_number);
    fields.finish(id.zip(status))
}

/// The number of a sender, with or without a plus sign.
fn msisdn(text: &str) -> Result<Msisdn, InvalidId> {
    Msisdn::parse(text.strip_prefix('+').unwrap_or(text))
}

fn part(fields: &mut Fields) -> MultiPartInfo {
    let given = fields.object("multi_part_info", |of| {
        let octet = 1..=u32::from(u8::MAX);
        let number = of.required_number("partno", octet.clone());
        let total = of.required_number("total", octet);
        let identifier = of.required_number("identifier", 0..=u32::from(u16::MAX));
        if number > total && total.is_some() {
            of.fault("partno", FieldFault::out_of_range("must be at most total"));
        }
        number.zip(total).zip(identifier)
    });
    let part = given.flatten();
    part.map_or(MultiPartInfo::WHOLE, |((number, total), identifier)| {
        MultiPartInfo {
            number: to_octet(number),
            total: to_octet(total),
            identifier: u16::try_from(identifier).unwrap_or(u16::MAX),
        }
    })
}

/// The required source address, and its type.
fn source(fields: &mut Fields) -> Option<(Box<str>, AddressType)> {
    let source = fields.required("source_address", |text| Ok::<_, String>(text.to_owned()));
    let source_type = fields.object("source_address_type", |of| {
        of.required_number("id", 0..=u32::from(u8::MAX))
    });
    source_of(fields, &source?, source_type.flatten())
}

/// The source address and its type, which is that of its form by default.
fn source_of(
    fields: &mut Fields,
    text: &str,
    given: Option<u32>,
) -> Option<(Box<str>, AddressType)> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = digits.bytes().all(|it| it.is_ascii_digit())
        && (1..=NUMBER_DIGITS_MAX).contains(&digits.len());
    let named = given.map(|id| {
        AddressType::ALL
            .into_iter()
            .find(|it| u32::from(it.number()) == id)
    });
    let source_type = match named {
        None if is_number => AddressType::International,
        None => AddressType::Alphanumeric,
        Some(Some(source_type)) => source_type,
        Some(None) => {
            fields.fault("source_address_type", "must have the id 145, 161 or 209");
            return None;
        }
    };
    let source = match source_type {
        AddressType::International | AddressType::National if is_number => Ok(digits.into()),
        AddressType::International | AddressType::National => Err(format!(
            "must be a number of at most {NUMBER_DIGITS_MAX} digits"
        )),
        AddressType::Alphanumeric => name(text),
    };
    match source {
        Ok(source) => Some((source, source_type)),
        Err(why) => {
            fields.fault("source_address", why);
            None
        }
    }
}

fn name(text: &str) -> Result<Box<str>, String> {
    let is_plain = encode(text, 0, None, 0).is_ok() && !text.chars().any(char::is_control);
    match is_plain && (1..=NAME_CHARACTERS_MAX).contains(&text.chars().count()) {
        true => Ok(text.into()),
        false => Err(format!(
            "must be a number, or a name of 1 to {NAME_CHARACTERS_MAX} characters of the GSM 7 \
             bit alphabet"
        )),
    }
}

fn short(text: &str, max: usize) -> Result<Box<str>, FieldFault> {
    match text.chars().count() <= max {
        true => Ok(text.into()),
        false => {
            let message = format!("must not be longer than {max} characters");
            Err(FieldFault::out_of_range(message))
        }
    }
}

fn header(text: &str) -> Result<Box<[u8]>, String> {
    match octets(text) {
        Ok(octets) if !octets.is_empty() => Ok(octets.into()),
        Ok(_) | Err(_) => Err("must be hexadecimal digits, two for each octet".to_owned()),
    }
}

fn expiry(text: &str, now: Timestamp) -> Result<Timestamp, FieldFault> {
    let at = Timestamp::parse_iso(&text.replacen(' ', "T", 1));
    let at = at.ok_or("must be a UTC time such as 2026-11-21 12:43:51")?;
    let latest = now.plus_ms(SMS_VALIDITY_MS_MAX);
    match at > now && at <= latest {
        true => Ok(at),
        false => Err(FieldFault::out_of_range(
            "must be in the future, and at most 7 days from now",
        )),
    }
}

fn octet(fields: &mut Fields, name: &str) -> Option<u8> {
    fields.number(name, 0..=u32::from(u8::MAX)).map(to_octet)
}

fn to_octet(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
