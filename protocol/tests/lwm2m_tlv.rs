//! Do we read and write TLV as the standard's examples and real devices do, whatever the bytes?
//!
//! Each file under `vectors/tlv` is one payload: the path it is about, the bytes, and the values.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path as FilePath;

use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::{prop_assert, prop_assert_eq};
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Reading, tlv};
use protocol::lwm2m::value::{DataType, ObjectLink, Value};
use protocol::lwm2m::version::Version;

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
        assert_eq!(read, Err(tlv::Malformed::CutOff), "{name}");
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
    fn no_payload_is_too_strange(path in paths(), bytes in payloads(), salt in any::<u16>()) {
        let type_of = |at: Path| type_by_number(at, salt);
        if let Ok(values) = tlv::decode(path, &bytes, &type_of) {
            prop_assert!(values.keys().all(|at| path.contains(*at)));
            let written = tlv::encode(path, &values);
            let again = tlv::decode(path, &written, &type_of);
            // Compared as bytes: a number that is none equals nothing.
            prop_assert_eq!(again.map(|values| tlv::encode(path, &values)), Ok(written));
        }
    }
}

/// A path, and values at or below it as a device could have them.
fn readings() -> impl Strategy<Value = (Path, Reading)> {
    let resources = btree_map((0..3_u16, numbers()), resources(), 0..6);
    (numbers(), resources, any::<Index>(), 0..4_usize).prop_map(
        |(object, resources, chosen, level)| {
            let mut all = Reading::new();
            for ((instance, id), values) in resources {
                let path = Path::resource(object, instance, id);
                all.extend(values.into_iter().map(|(below, value)| {
                    let at = below.and_then(|below| path.child(below));
                    (at.unwrap_or(path), value)
                }));
            }
            let paths: Vec<Path> = all.keys().copied().collect();
            let path = match paths.is_empty() {
                true => Path::object(object),
                false => above(*chosen.get(&paths), level),
            };
            all.retain(|at, _| path.contains(*at));
            (path, all)
        },
    )
}

/// The path that deep on the way to another, or the other one itself.
fn above(path: Path, level: usize) -> Path {
    let below = path.segments().skip(1).take(level);
    let deeper = |at: Path, id| at.child(id).expect("it is no deeper than the path");
    below.fold(Path::object(path.object_id()), deeper)
}

/// The values of one resource: one of its own, or one for each of its instances.
fn resources() -> impl Strategy<Value = BTreeMap<Option<u16>, Value>> {
    let single = values().prop_map(|value| BTreeMap::from([(None, value)]));
    let multiple = btree_map(numbers().prop_map(Some), values(), 1..4);
    prop_oneof![single, multiple]
}

fn numbers() -> impl Strategy<Value = u16> {
    prop_oneof![0..4_u16, 254..258_u16, Just(65535), any::<u16>()]
}

fn values() -> impl Strategy<Value = Value> {
    let link = |(object, instance)| Value::ObjectLink(ObjectLink { object, instance });
    let finite = any::<f64>().prop_filter("finite", |number| number.is_finite());
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        "\\PC{0,12}".prop_map(Value::CoreLink),
        finite.prop_map(Value::Float),
        (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| Value::Integer(number >> shift)),
        any::<(u16, u16)>().prop_map(link),
        vec(any::<u8>(), 0..300).prop_map(Value::Opaque),
        "\\PC{0,300}".prop_map(Value::String),
        any::<i32>().prop_map(|seconds| Value::Time(seconds.into())),
        any::<u64>().prop_map(Value::UnsignedInteger),
    ]
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
    let spoilt = (readings(), any::<Index>(), any::<Index>(), any::<u8>()).prop_map(
        |((path, values), place, end, byte)| {
            let mut bytes = tlv::encode(path, &values);
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = byte;
                bytes.truncate(end.index(bytes.len()) + 1);
            }
            bytes
        },
    );
    prop_oneof![1 => noise, 3 => nested_entries(), 2 => spoilt]
}

/// Entries of any kind, each of which holds entries or a few bytes.
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

fn type_by_number(path: Path, salt: u16) -> Option<DataType> {
    let place = usize::from(path.resource_id()?.wrapping_add(salt)) % (DataType::ALL.len() + 1);
    DataType::ALL.get(place).copied()
}

fn type_in_model(path: Path) -> Option<DataType> {
    model::resource(path.object_id(), Version::new(1, 1), path.resource_id()?)?.data_type()
}

/// One payload and what it means.
struct Vector {
    name: String,
    path: Path,
    bytes: Vec<u8>,
    values: Reading,
}

fn vectors() -> Vec<Vector> {
    let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/tlv");
    let entries = fs::read_dir(folder).expect("the vectors are in the repository");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    files.sort();
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

/// Reads a line such as `/3/0/9 INTEGER 100`; an empty text is left out.
fn value_of(line: &str) -> (Path, Value) {
    let mut parts = line.splitn(3, ' ');
    let path = parts
        .next()
        .and_then(|path| path.parse().ok())
        .expect("a path");
    let name = parts.next().expect("a type behind the path");
    let known = DataType::ALL
        .into_iter()
        .find(|data_type| data_type.as_str() == name);
    let text = parts.next().unwrap_or_default();
    let value = Value::parse(known.expect("the name of a type"), text);
    (path, value.expect("a value of the type"))
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |digit: char| digit.to_digit(16).expect("a hexadecimal digit");
    let digits: Vec<u32> = hex.chars().map(digit).collect();
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits fit"))
        .collect()
}
