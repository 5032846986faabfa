//! How are the last known values of devices stored?
//!
//! A page has those of devices with neighbouring keys: first up to which event it is complete, then
//! the devices in the order of their keys, compressed where that makes them smaller. The values of
//! a device are decoded only where they are wanted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use engine::delivery::backlog::Sequence;
use engine::ids::DeviceKey;
use engine::query::KnownValue;
use minicbor::bytes::{ByteArray, ByteSlice, ByteVec};
use minicbor::{Decode, Decoder, Encode};

use super::packed::{pack, unpack};
use super::value::{KnownV1, path_record, read_path};
use super::{Unreadable, check_version, damaged, read_record, write, write_behind};

const VERSION: u8 = 1;

/// The last known values of devices with neighbouring keys.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct ValuePage {
    /// What every event of these devices up to this number reported is in the values.
    pub(crate) complete_to: Sequence,
    /// The values of each device, as [`write_values`] wrote them.
    pub(crate) devices: BTreeMap<DeviceKey, Box<[u8]>>,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct HeadV1 {
    #[n(0)]
    complete_to: u64,
    /// The size of the devices before compression; zero if they are not compressed.
    #[n(1)]
    size: u32,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct DeviceV1<'a> {
    #[n(0)]
    device: ByteArray<16>,
    #[b(1)]
    values: &'a ByteSlice,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct NamedKnownV1 {
    #[n(0)]
    path: ByteVec,
    #[n(1)]
    known: KnownV1,
}

impl ValuePage {
    /// Reads a page.
    pub(crate) fn read(value: &[u8]) -> Result<Self, Unreadable> {
        let (head, devices) = split(value)?;
        let mut page = Self {
            complete_to: Sequence(head.complete_to),
            devices: BTreeMap::new(),
        };
        for device in each(&devices) {
            let device = device?;
            let key = DeviceKey::from_bytes(*device.device);
            page.devices.insert(key, Box::from(&**device.values));
        }
        Ok(page)
    }

    /// The value to store, and its size before compression.
    pub(crate) fn write(&self) -> (Vec<u8>, usize) {
        let mut devices = Vec::new();
        for (device, values) in &self.devices {
            let record = DeviceV1 {
                device: ByteArray::from(*device.as_bytes()),
                values: (&**values).into(),
            };
            devices = write_behind(devices, &record);
        }
        let whole = devices.len();
        let (size, devices) = pack(devices);
        let head = HeadV1 {
            complete_to: self.complete_to.0,
            size,
        };
        let mut value = write(VERSION, &head);
        value.extend_from_slice(&devices);
        (value, whole)
    }
}

/// Reads the values of one device from a page, and up to which event the page is complete.
pub(crate) fn read_values_of(
    value: &[u8],
    device: DeviceKey,
) -> Result<(Sequence, Vec<KnownValue>), Unreadable> {
    let (head, devices) = split(value)?;
    let mut values = Vec::new();
    for record in each(&devices) {
        let record = record?;
        if *record.device == *device.as_bytes() {
            values = read_values(record.values)?;
            break;
        }
    }
    Ok((Sequence(head.complete_to), values))
}

/// Reads every value of a page.
pub(crate) fn check(value: &[u8]) -> Result<(), Unreadable> {
    let page = ValuePage::read(value)?;
    let mut values = page.devices.values();
    values.try_for_each(|values| read_values(values).map(drop))
}

/// Writes the values of a device.
pub(crate) fn write_values(values: &[KnownValue]) -> Box<[u8]> {
    let record = |known: &KnownValue| NamedKnownV1 {
        path: path_record(known.path),
        known: KnownV1::of(known.at, &known.value),
    };
    let records: Vec<_> = values.iter().map(record).collect();
    write_behind(Vec::new(), &records).into()
}

/// Reads the values of a device.
pub(crate) fn read_values(bytes: &[u8]) -> Result<Vec<KnownValue>, Unreadable> {
    let records: Vec<NamedKnownV1> = read_record(bytes)?;
    let read = |record: NamedKnownV1| Ok(record.known.read(read_path(&record.path)?));
    records.into_iter().map(read).collect()
}

fn split(value: &[u8]) -> Result<(HeadV1, Cow<'_, [u8]>), Unreadable> {
    let mut decoder = Decoder::new(check_version(VERSION, value)?);
    let head: HeadV1 = decoder
        .decode()
        .map_err(damaged("the beginning of a page"))?;
    let rest = decoder.input().get(decoder.position()..);
    let devices = unpack(head.size, rest.unwrap_or_default())?;
    Ok((head, devices))
}

fn each(devices: &[u8]) -> impl Iterator<Item = Result<DeviceV1<'_>, Unreadable>> {
    let mut decoder = Decoder::new(devices);
    std::iter::from_fn(move || {
        if decoder.position() >= devices.len() {
            return None;
        }
        let record = decoder.decode();
        if record.is_err() {
            decoder.set_position(devices.len());
        }
        Some(record.map_err(damaged("a device of a page")))
    })
}

#[cfg(test)]
mod tests {
    use engine::moment::Timestamp;
    use engine::{Path, Value};

    use super::*;

    fn page(devices: u8) -> ValuePage {
        let values = |device: u8| {
            let known = |resource| KnownValue {
                path: Path::resource(3303, 0, resource),
                value: Value::Float(f64::from(device)),
                at: Timestamp::from_ms(1_000 + i64::from(device)),
            };
            write_values(&[known(5700), known(5701)])
        };
        let key = |device| DeviceKey::from_bytes([device; 16]);
        ValuePage {
            complete_to: Sequence(7),
            devices: (0..devices)
                .map(|device| (key(device), values(device)))
                .collect(),
        }
    }

    #[test]
    fn a_page_is_read_as_it_was_written_compressed_or_not() {
        for devices in [0, 1, 100] {
            let page = page(devices);
            let (value, _) = page.write();
            assert_eq!(ValuePage::read(&value), Ok(page));
        }
        let (value, size) = page(100).write();
        assert!(value.len() < size, "a page of alike values is compressed");
        let of = |device| read_values_of(&value, DeviceKey::from_bytes([device; 16])).unwrap();
        assert_eq!(of(200), (Sequence(7), vec![]));
        let (_, values) = of(9);
        assert_eq!(values.len(), 2);
        assert_eq!(values[1].value, Value::Float(9.0));
    }

    #[test]
    fn a_damaged_page_is_an_error_or_other_values() {
        let (value, _) = page(20).write();
        for length in 0..value.len() {
            assert!(ValuePage::read(&value[..length]).is_err());
        }
        for place in 0..value.len() {
            let mut damaged = value.clone();
            damaged[place] ^= 0x55;
            if let Ok(page) = ValuePage::read(&damaged) {
                let read = page.devices.values().map(|values| read_values(values));
                assert!(read.count() <= 20);
            }
        }
    }
}
