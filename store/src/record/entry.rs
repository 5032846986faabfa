//! How is an entry of the administration log stored? Without what its key tells, and compressed
//! with a dictionary: most entries are sentences of a few kinds, with names in them.

use std::net::IpAddr;

use engine::admin_log::entry::{AboutDevice, Entry};
use engine::admin_log::payload::EntryPayload;
use engine::ids::{DeviceKey, Imsi, TraceId};
use engine::moment::Timestamp;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::customer::customer_id;
use super::entry_place::EntryPlace;
use super::profile::{iccid, imsi};
use super::{Unreadable, check_version, damaged, read, write};

const VERSION: u8 = 2;
const PAYLOAD_VERSION: u8 = 1;

/// What entries are compressed with. It is part of the format: a change needs a version of its own.
const DICTIONARY: &[u8] = b"\
    Translator[UserPayloadError]Translator[UnknownObject]DeviceController[InvalidDataType]\
    DeviceController[ActionRequestFailed]DeviceController[ActionRequestExpired]\
    LwM2M[RegistrationRejected]LwM2M[PassiveReportingFailed]LwM2M[ObservationLost]\
    LwM2M[BootstrapRejected]CoAP[UnauthorizedDevice]CoAP[InvalidTopic]CoAP[RequestRejected]\
    CloudIntegrator[IntegrationDisabled]CloudIntegrator[IntegrationRestarted]\
    CloudIntegrator[EventsDeadLettered]CloudIntegrator[PluginDisabled]SmsForwarder[DeliveryFailed]\
    The observation of  was lost: Passive reporting could not read  was not sent: \
    Action request  failed: the device did not answer.The device answered \
    Data was rejected: The first message from the device was received over CoAP.UDP.LwM2M.\
    Lifecycle[DeviceFirstTimeRegistered]The device registered for the first time as ";

/// The most bytes that an entry may have: far more than its texts can be.
const SIZE_MAX: u32 = 1 << 20;

/// An entry, compressed.
#[derive(Decode, Encode)]
#[cbor(array)]
struct CompressedV2<'a> {
    /// Its size before compression.
    #[n(0)]
    size: u32,
    #[cbor(b(1), with = "minicbor::bytes")]
    bytes: &'a [u8],
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct EntryV2<'a> {
    #[b(0)]
    message: &'a str,
    #[b(1)]
    description: &'a str,
    #[n(2)]
    at_ms: i64,
    #[n(3)]
    trace: ByteArray<16>,
    #[b(4)]
    about: Option<AboutV1<'a>>,
    /// The size of a payload that has rows of its own.
    #[n(5)]
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
    let record = EntryV2 {
        message: &entry.message,
        description: &entry.description,
        at_ms: entry.at.as_ms(),
        trace: ByteArray::from(*entry.trace.as_bytes()),
        about: entry.about.as_ref().map(|about| AboutV1 {
            device: ByteArray::from(*about.key.as_bytes()),
            iccid: about.iccid.as_str(),
            imsi: about.imsi.as_ref().map(Imsi::as_str),
            ip: about.ip,
        }),
        payload_bytes: entry.payload.as_ref().map(EntryPayload::size),
    };
    let plain = minicbor::to_vec(&record).expect("writing to memory cannot fail");
    let compressed = CompressedV2 {
        size: u32::try_from(plain.len()).expect("an entry is far smaller"),
        bytes: &compress_with_dict(&plain, DICTIONARY),
    };
    write(VERSION, &compressed)
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

/// Reads an entry of a customer's log that is not linked.
pub(crate) fn read_entry(
    customer: &str,
    place: EntryPlace,
    entry: &[u8],
) -> Result<Entry, Unreadable> {
    let (category, subject) = place.kind.read()?;
    let compressed: CompressedV2<'_> = read(VERSION, entry)?;
    if compressed.size > SIZE_MAX {
        return Err(Unreadable::Damaged("the size of an entry"));
    }
    let plain = decompress_with_dict(compressed.bytes, compressed.size as usize, DICTIONARY);
    let plain = plain.map_err(damaged("an entry of other bytes"))?;
    let record: EntryV2<'_> = minicbor::decode(&plain).map_err(damaged("an entry"))?;
    Ok(Entry {
        id: place.id,
        customer: customer_id(customer)?,
        at: Timestamp::from_ms(record.at_ms),
        subject,
        category,
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

#[cfg(test)]
mod tests {
    use engine::admin_log::entry::DeviceSighting;
    use engine::device::identity::Identity;
    use engine::ids::CustomerId;
    use engine::moment::Moment;

    use super::*;
    use crate::conformance::samples::device;

    fn first_registered() -> Entry {
        let of = device(&CustomerId::parse("acme").unwrap(), 1);
        let device = DeviceSighting {
            key: of.key(),
            identity: &Identity::of(&of),
            at: None,
        };
        let noon = Timestamp::from_ms(1_795_521_600_000);
        Entry::first_registered(&mut Moment::new(noon, 7), device)
    }

    #[test]
    fn an_entry_is_read_from_its_place_and_fewer_bytes_than_its_texts_have() {
        let entry = first_registered();
        let value = write_entry(&entry);
        let texts = entry.message.len() + entry.description.len();
        let ids = 2 * 16
            + entry
                .about
                .as_ref()
                .map_or(0, |about| about.iccid.as_str().len());
        assert!(value.len() < ids + 2 * texts / 3, "{} bytes", value.len());
        let place = EntryPlace::of(&entry);
        assert_eq!(read_entry("acme", place, &value), Ok(entry));
    }

    #[test]
    fn an_entry_of_other_bytes_is_damage() {
        let entry = first_registered();
        let place = EntryPlace::of(&entry);
        let value = write_entry(&entry);
        for length in 0..value.len() {
            let read = read_entry("acme", place, &value[..length]);
            assert!(matches!(read, Err(Unreadable::Damaged(_))), "{length}");
        }
        let linked = link(Some(place), &value);
        assert_eq!(unlink(&linked), Ok((Some(place), &*value)));
        assert!(unlink(&linked[..18]).is_err());
    }
}
