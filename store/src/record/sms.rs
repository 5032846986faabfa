//! How is an SMS stored, and what do its indexes say of it?

use engine::ids::{DeviceKey, Iccid, SmsId};
use engine::moment::Timestamp;
use engine::sms::{
    JoinedSms, ReceivedPart, ReportedStatus, Sms, SmsPurpose, SmsStatus, SmsWay, SubmittedPart,
    SubmittedSms,
};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::{Unreadable, code, damaged, read, write};

const VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct SmsV1<'a> {
    #[n(0)]
    id: u64,
    #[b(1)]
    customer: &'a str,
    #[n(2)]
    device: ByteArray<16>,
    #[n(3)]
    device_number: u64,
    #[b(4)]
    iccid: &'a str,
    #[b(5)]
    source: &'a str,
    #[b(6)]
    dest: Option<&'a str>,
    #[n(7)]
    dcs: u8,
    #[n(8)]
    pid: u8,
    #[n(9)]
    submitted_at_ms: i64,
    #[b(10)]
    way: SmsWayV1<'a>,
}

#[derive(Decode, Encode)]
enum SmsWayV1<'a> {
    #[n(0)]
    #[cbor(array)]
    FromDevice {
        #[n(0)]
        total: u8,
        #[n(1)]
        identifier: u16,
        #[b(2)]
        parts: Vec<PartV1<'a>>,
    },
    #[n(1)]
    ToDevice(#[b(0)] SubmittedV1<'a>),
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct PartV1<'a> {
    #[n(0)]
    number: u8,
    #[n(1)]
    id: u64,
    #[b(2)]
    text: &'a str,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct SubmittedV1<'a> {
    #[b(0)]
    payload: &'a str,
    #[n(1)]
    source_type: u8,
    #[cbor(b(2), with = "minicbor::bytes")]
    udh: Option<&'a [u8]>,
    #[n(3)]
    expires_at_ms: i64,
    #[n(4)]
    status: u8,
    #[n(5)]
    task: Option<u8>,
    #[n(6)]
    taken_at_ms: Option<i64>,
    #[n(7)]
    buffered_at_ms: Option<i64>,
    #[n(8)]
    final_at_ms: Option<i64>,
    #[b(9)]
    reason: Option<&'a str>,
    /// None in records that were written before links.
    #[b(10)]
    parts: Option<Vec<SubmittedPartV1<'a>>>,
    /// Absent of a message of a customer.
    #[n(11)]
    purpose: Option<u8>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct SubmittedPartV1<'a> {
    #[b(0)]
    message_id: Option<&'a str>,
    #[n(1)]
    status: Option<u8>,
}

/// Writes an SMS.
pub(crate) fn write_sms(sms: &Sms) -> Vec<u8> {
    let record = SmsV1 {
        id: sms.id.number(),
        customer: sms.customer.as_str(),
        device: ByteArray::from(*sms.device.as_bytes()),
        device_number: sms.device_number,
        iccid: sms.iccid.as_str(),
        source: &sms.source,
        dest: sms.dest.as_deref(),
        dcs: sms.dcs,
        pid: sms.pid,
        submitted_at_ms: sms.submitted_at.as_ms(),
        way: match &sms.way {
            SmsWay::FromDevice(joined) => SmsWayV1::FromDevice {
                total: joined.total,
                identifier: joined.identifier,
                parts: joined.parts.iter().map(part_record).collect(),
            },
            SmsWay::ToDevice(submitted) => SmsWayV1::ToDevice(submitted_record(submitted)),
        },
    };
    write(VERSION, &record)
}

/// Reads an SMS.
pub(crate) fn read_sms(value: &[u8]) -> Result<Sms, Unreadable> {
    let record: SmsV1<'_> = read(VERSION, value)?;
    Ok(Sms {
        id: sms_id(record.id)?,
        customer: customer_id(record.customer)?,
        device: DeviceKey::from_bytes(record.device.into()),
        device_number: record.device_number,
        iccid: Iccid::parse(record.iccid).map_err(damaged("no ICCID"))?,
        source: record.source.into(),
        dest: record.dest.map(Into::into),
        dcs: record.dcs,
        pid: record.pid,
        submitted_at: Timestamp::from_ms(record.submitted_at_ms),
        way: match record.way {
            SmsWayV1::FromDevice {
                total,
                identifier,
                parts,
            } => SmsWay::FromDevice(JoinedSms {
                total,
                identifier,
                parts: parts.into_iter().map(read_part).collect::<Result<_, _>>()?,
            }),
            SmsWayV1::ToDevice(submitted) => SmsWay::ToDevice(Box::new(read_submitted(submitted)?)),
        },
    })
}

/// Writes where an SMS is: the integer id of its device, and its id.
pub(crate) fn write_place(device: u64, id: SmsId) -> Vec<u8> {
    [
        &[VERSION][..],
        &device.to_be_bytes(),
        &id.number().to_be_bytes(),
    ]
    .concat()
}

/// Reads where an SMS is.
pub(crate) fn read_place(value: &[u8]) -> Result<(u64, SmsId), Unreadable> {
    let bytes = super::check_version(VERSION, value)?;
    let (device, id) = bytes
        .split_first_chunk()
        .ok_or(Unreadable::Damaged("the place of an SMS"))?;
    let id = id.try_into().map_err(damaged("the place of an SMS"))?;
    Ok((u64::from_be_bytes(*device), sms_id(u64::from_be_bytes(id))?))
}

fn part_record(part: &ReceivedPart) -> PartV1<'_> {
    PartV1 {
        number: part.number,
        id: part.id.number(),
        text: &part.text,
    }
}

fn read_part(part: PartV1<'_>) -> Result<ReceivedPart, Unreadable> {
    Ok(ReceivedPart {
        number: part.number,
        id: sms_id(part.id)?,
        text: part.text.into(),
    })
}

fn submitted_record(submitted: &SubmittedSms) -> SubmittedV1<'_> {
    SubmittedV1 {
        payload: &submitted.payload,
        source_type: code::of_address_type(submitted.source_type),
        udh: submitted.udh.as_deref(),
        expires_at_ms: submitted.expires_at.as_ms(),
        status: code::of_sms_status(submitted.status),
        task: submitted.task.map(code::of_network_task),
        taken_at_ms: submitted.taken_at.map(Timestamp::as_ms),
        buffered_at_ms: submitted.buffered_at.map(Timestamp::as_ms),
        final_at_ms: submitted.final_at.map(Timestamp::as_ms),
        reason: submitted.reason.as_deref(),
        parts: (!submitted.parts.is_empty())
            .then(|| submitted.parts.iter().map(submitted_part_record).collect()),
        purpose: match submitted.purpose {
            SmsPurpose::Message => None,
            purpose @ SmsPurpose::WakeUp => Some(code::of_sms_purpose(purpose)),
        },
    }
}

fn submitted_part_record(part: &SubmittedPart) -> SubmittedPartV1<'_> {
    SubmittedPartV1 {
        message_id: part.message_id.as_deref(),
        status: part
            .status
            .map(|status| code::of_sms_status(SmsStatus::from(status))),
    }
}

fn read_submitted_part(part: SubmittedPartV1<'_>) -> Result<SubmittedPart, Unreadable> {
    let status = part.status.map(code::sms_status).transpose()?;
    let status = status.map(|status| {
        let mut all = ReportedStatus::ALL.into_iter();
        all.find(|reported| SmsStatus::from(*reported) == status)
            .ok_or(Unreadable::Damaged("the status of a part of an SMS"))
    });
    Ok(SubmittedPart {
        message_id: part.message_id.map(Into::into),
        status: status.transpose()?,
    })
}

fn read_submitted(record: SubmittedV1<'_>) -> Result<SubmittedSms, Unreadable> {
    Ok(SubmittedSms {
        payload: record.payload.into(),
        source_type: code::address_type(record.source_type)?,
        udh: record.udh.map(Into::into),
        expires_at: Timestamp::from_ms(record.expires_at_ms),
        status: code::sms_status(record.status)?,
        task: record.task.map(code::network_task).transpose()?,
        taken_at: record.taken_at_ms.map(Timestamp::from_ms),
        buffered_at: record.buffered_at_ms.map(Timestamp::from_ms),
        final_at: record.final_at_ms.map(Timestamp::from_ms),
        reason: record.reason.map(Into::into),
        parts: record
            .parts
            .into_iter()
            .flatten()
            .map(read_submitted_part)
            .collect::<Result<_, _>>()?,
        purpose: record
            .purpose
            .map_or(Ok(SmsPurpose::Message), code::sms_purpose)?,
    })
}

/// The id with a stored number.
pub(super) fn sms_id(number: u64) -> Result<SmsId, Unreadable> {
    SmsId::from_number(number).ok_or(Unreadable::Damaged("no id of an SMS"))
}
