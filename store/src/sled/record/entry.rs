//! How is an entry of the administration log stored?

use std::net::IpAddr;

use engine::admin_log::entry::{AboutDevice, Entry};
use engine::admin_log::payload::EntryPayload;
use engine::ids::{DeviceKey, EntryId, Imsi, TraceId};
use engine::moment::Timestamp;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::profile::{iccid, imsi};
use super::{Unreadable, check_version, code, read, write};
use crate::sled::key::log::EntryPlace;

const VERSION: u8 = 1;
const PAYLOAD_VERSION: u8 = 1;

#[derive(Decode, Encode)]
#[cbor(array)]
struct EntryV1<'a> {
    #[n(0)]
    id: ByteArray<16>,
    #[b(1)]
    customer: &'a str,
    #[n(2)]
    at_ms: i64,
    #[n(3)]
    subject: u8,
    #[n(4)]
    category: u8,
    #[b(5)]
    message: &'a str,
    #[b(6)]
    description: &'a str,
    #[n(7)]
    trace: ByteArray<16>,
    #[b(8)]
    about: Option<AboutV1<'a>>,
    /// The size of a payload that has rows of its own.
    #[n(9)]
    payload_bytes: Option<u32>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct AboutV1<'a> {
    #[n(0)]
    device: ByteArray<16>,
    #[b(1)]
    iccid: &'a str,
    #[b(2)]
    imsi: Option<&'a str>,
    #[n(3)]
    ip: Option<IpAddr>,
}

/// Writes an entry, to be linked.
pub(crate) fn write_entry(entry: &Entry) -> Vec<u8> {
    let record = EntryV1 {
        id: ByteArray::from(*entry.id.as_bytes()),
        customer: entry.customer.as_str(),
        at_ms: entry.at.as_ms(),
        subject: code::of_subject(entry.subject),
        category: code::of_category(entry.category),
        message: &entry.message,
        description: &entry.description,
        trace: ByteArray::from(*entry.trace.as_bytes()),
        about: entry.about.as_ref().map(|about| AboutV1 {
            device: ByteArray::from(*about.key.as_bytes()),
            iccid: about.iccid.as_str(),
            imsi: about.imsi.as_ref().map(Imsi::as_str),
            ip: about.ip,
        }),
        payload_bytes: entry.payload.as_ref().map(EntryPayload::size),
    };
    write(VERSION, &record)
}

/// Links an entry to the one before it of its device: the value of its row.
pub(crate) fn link(previous: Option<EntryPlace>, entry: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(1 + EntryPlace::BYTES + entry.len());
    value.push(u8::from(previous.is_some()));
    if let Some(previous) = previous {
        value.extend_from_slice(&previous.to_bytes());
    }
    value.extend_from_slice(entry);
    value
}

/// The place of the entry before it of its device, and the entry, from the value of a row.
pub(crate) fn unlink(value: &[u8]) -> Result<(Option<EntryPlace>, &[u8]), Unreadable> {
    const DAMAGED: Unreadable = Unreadable::Damaged("an entry that is not linked");
    match value.split_first() {
        Some((0, entry)) => Ok((None, entry)),
        Some((1, rest)) => {
            let (previous, entry) = EntryPlace::split_from(rest).ok_or(DAMAGED)?;
            Ok((Some(previous), entry))
        }
        Some(_) | None => Err(DAMAGED),
    }
}

/// Reads an entry from the value of its row.
pub(crate) fn read_entry(value: &[u8]) -> Result<Entry, Unreadable> {
    let (_, entry) = unlink(value)?;
    let record: EntryV1<'_> = read(VERSION, entry)?;
    Ok(Entry {
        id: EntryId::from_bytes(record.id.into()),
        customer: customer_id(record.customer)?,
        at: Timestamp::from_ms(record.at_ms),
        subject: code::subject(record.subject)?,
        category: code::category(record.category)?,
        message: record.message.into(),
        description: record.description.into(),
        trace: TraceId::from_bytes(record.trace.into()),
        about: record.about.map(read_about).transpose()?,
        payload: record
            .payload_bytes
            .map(|bytes| EntryPayload::Kept { bytes }),
    })
}

/// Writes the payload of an entry.
pub(crate) fn write_payload(bytes: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(1 + bytes.len());
    value.push(PAYLOAD_VERSION);
    value.extend_from_slice(bytes);
    value
}

/// Reads the payload of an entry.
pub(crate) fn read_payload(value: &[u8]) -> Result<Box<[u8]>, Unreadable> {
    check_version(PAYLOAD_VERSION, value).map(Box::from)
}

fn read_about(record: AboutV1<'_>) -> Result<AboutDevice, Unreadable> {
    Ok(AboutDevice {
        key: DeviceKey::from_bytes(record.device.into()),
        iccid: iccid(record.iccid)?,
        imsi: record.imsi.map(imsi).transpose()?,
        ip: record.ip,
    })
}
