//! Do we read and write TLV like the standard's examples and real devices, for any bytes?
//!
//! Each file under `vectors/tlv` is one payload: the path it is about, the bytes, and the values.

#[path = "given/hex.rs"]
mod hex;
#[path = "given/readings.rs"]
mod readings;
#[path = "given/recorded.rs"]
mod recorded;
#[path = "given/values.rs"]
mod values;

use std::fs;
use std::path::Path as FilePath;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::{prop_assert, prop_assert_eq};
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Reading, tlv};
use protocol::lwm2m::value::Value;

use crate::hex::bytes_of;
use crate::readings::{readings, spoilt};
use crate::recorded::{files_of, type_in_model, value_of};
use crate::values::type_by_number;

#[test]
fn every_vector_is_read_as_it_was_meant() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 12);
    for Vector {
        name,
        path,
        bytes,
        values,
    } in vectors
    {
        let type_of = |at: Path| values.get(&at).map(Value::data_type);
        let read = tlv::decode(path, &bytes, &type_of);
        assert_eq!(read, Ok(values), "{name}");
    }
}

#[test]
fn every_vector_is_written_as_it_was_read() {
    for Vector {
        name,
        path,
        bytes,
        values,
    } in vectors()
    {
        assert_eq!(tlv::encode(path, &values), bytes, "{name}");
    }
}

#[test]
fn every_vector_of_a_known_object_is_of_the_types_of_the_model() {
    for Vector { name, values, .. } in vectors() {
        let known = values
            .iter()
            .filter(|(at, _)| !model::versions(at.object_id()).is_empty());
        for (at, value) in known {
            assert_eq!(
                type_in_model(*at),
                Some(value.data_type()),
                "{at} in {name}"
            );
        }
    }
}

#[test]
fn no_vector_is_read_when_it_is_cut_off_inside_a_value() {
    for Vector {
        name,
        path,
        bytes,
        values,
    } in vectors()
    {
        let (_, cut) = bytes.split_last().expect("a vector has bytes");
        let type_of = |at: Path| values.get(&at).map(Value::data_type);
        let read = tlv::decode(path, cut, &type_of);
        assert_eq!(read, Err(tlv::MalformedTlv::CutOff), "{name}");
    }
}

proptest! {
    #[test]
    fn every_reading_survives_its_bytes((path, values) in readings()) {
        let bytes = tlv::encode(path, &values);
        let type_of = |at: Path| values.get(&at).map(Value::data_type);
        let read = tlv::decode(path, &bytes, &type_of);
        prop_assert_eq!(read, Ok(values));
    }

    #[test]
    fn any_payload_is_decoded_or_refused(path in paths(), bytes in payloads(), salt: u16) {
        let type_of = |at: Path| type_by_number(at, salt);
        if let Ok(values) = tlv::decode(path, &bytes, &type_of) {
            prop_assert!(values.keys().all(|at| path.contains(*at)));
            let written = tlv::encode(path, &values);
            let again = tlv::decode(path, &written, &type_of);
            // Compared as bytes: NaN equals nothing.
            prop_assert_eq!(again.map(|values| tlv::encode(path, &values)), Ok(written));
        }
    }
}

/// Paths of small numbers, so that a payload is often about them.
fn paths() -> impl Strategy<Value = Path> {
    (select(vec![3, 42_000]), vec(0..4_u16, 0..4)).prop_map(|(object, below)| {
        let deeper = |path: Path, id: u16| path.child(id).expect("there are three at most");
        below.into_iter().fold(Path::object(object), deeper)
    })
}

/// Noise, entries in any order and nesting, and payloads that are cut or changed.
fn payloads() -> impl Strategy<Value = Vec<u8>> {
    let noise = vec(any::<u8>(), 0..40);
    let places = (any::<Index>(), any::<Index>(), any::<u8>());
    let spoilt = (readings(), places)
        .prop_map(|((path, values), places)| spoilt(tlv::encode(path, &values), places));
    prop_oneof![1 => noise, 3 => nested_entries(), 2 => spoilt]
}

/// Entries of any kind, each of which contains entries or a few bytes.
fn nested_entries() -> impl Strategy<Value = Vec<u8>> {
    let leaf = vec(any::<u8>(), 0..9).boxed();
    leaf.prop_recursive(4, 16, 4, |inner| {
        vec((select(vec![0_u8, 0x40, 0x80, 0xc0]), 0..4_u8, inner), 0..4).prop_map(|entries| {
            let write = |(kind, id, value): (u8, u8, Vec<u8>)| {
                let length = u16::try_from(value.len()).expect("a few entries are short");
                let [high, low] = length.to_be_bytes();
                [vec![kind | 0b1_0000, id, high, low], value].concat()
            };
            entries.into_iter().flat_map(write).collect()
        })
    })
}

/// One payload and its values.
struct Vector {
    name: String,
    path: Path,
    bytes: Vec<u8>,
    values: Reading,
}

fn vectors() -> Vec<Vector> {
    let files = files_of("tlv");
    files.iter().map(|file| Vector::read(file)).collect()
}

impl Vector {
    fn read(file: &FilePath) -> Vector {
        let text = fs::read_to_string(file).expect("a vector is text");
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let head = lines.next().and_then(|line| line.split_once(" | "));
        let (path, hex) = head.expect("a vector begins with its path and its bytes");
        Vector {
            name: file.display().to_string(),
            path: path.parse().expect("a path"),
            bytes: bytes_of(hex),
            values: lines.map(value_of).collect(),
        }
    }
}
