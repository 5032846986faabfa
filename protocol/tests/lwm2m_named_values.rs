//! Do values survive each format that names them, and does no payload in one harm us?

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::{prop_assert, prop_assert_eq};
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{
    Reading, Scope, decode, decode_paths, decode_samples, encode, encode_all, encode_paths,
};
use protocol::lwm2m::value::{DataType, ObjectLink, Value};

const FORMATS: [ContentFormat; 5] = [
    ContentFormat::SENML_JSON,
    ContentFormat::SENML_CBOR,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LEGACY_JSON,
    ContentFormat::LWM2M_CBOR,
];

const COMPOSITE: [ContentFormat; 3] = [
    ContentFormat::SENML_JSON,
    ContentFormat::SENML_CBOR,
    ContentFormat::LWM2M_CBOR,
];

proptest! {
    #[test]
    fn every_reading_survives_each_format((path, values) in readings()) {
        for format in FORMATS {
            let bytes = encode(format, path, &values).unwrap();
            let type_of = |at: Path| values.get(&at).map(Value::data_type);
            let read = decode(Some(format), path, &bytes, type_of);
            prop_assert_eq!(read, Ok(values.clone()), "{}", format);
        }
    }

    #[test]
    fn values_of_several_objects_survive_each_format(
        (_, one) in readings(),
        (_, other) in readings(),
    ) {
        let objects = one.keys().map(Path::object_id).max();
        let is_elsewhere = |path: &Path| Some(path.object_id()) != objects;
        let other = other.into_iter().filter(|(path, _)| is_elsewhere(path));
        let values: Reading = one.into_iter().chain(other).collect();
        for format in FORMATS {
            let bytes = encode_all(format, &values).unwrap();
            let type_of = |at: Path| values.get(&at).map(Value::data_type);
            let samples = decode_samples(Some(format), Scope::All, &bytes, &type_of).unwrap();
            let read = samples.into_iter().map(|sample| (sample.path, sample.value));
            prop_assert_eq!(read.collect::<Reading>(), values.clone(), "{}", format);
        }
    }

    #[test]
    fn lists_of_paths_survive_each_format(paths in vec(paths(), 0..8)) {
        for format in COMPOSITE {
            let bytes = encode_paths(format, &paths).unwrap();
            prop_assert_eq!(decode_paths(format, &bytes), Ok(paths.clone()), "{}", format);
        }
    }

    #[test]
    fn no_payload_is_too_strange(
        (path, bytes) in payloads(),
        elsewhere in paths(),
        salt in any::<u16>(),
    ) {
        let type_of = |at: Path| type_by_number(at, salt);
        for format in FORMATS {
            for scope in [Scope::All, Scope::Within(path), Scope::Within(elsewhere)] {
                if let Ok(samples) = decode_samples(Some(format), scope, &bytes, &type_of) {
                    let is_fit = |at: Path| scope.contains(at) && at.to_resource().is_some();
                    prop_assert!(samples.iter().all(|sample| is_fit(sample.path)));
                }
            }
            let _ = decode_paths(format, &bytes);
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
    prop_oneof![
        0..4_u16,
        20..26_u16,
        254..258_u16,
        Just(65535),
        any::<u16>()
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let link = |(object, instance)| Value::ObjectLink(ObjectLink { object, instance });
    let finite = any::<f64>().prop_filter("finite", |number| number.is_finite());
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        any::<String>().prop_map(Value::CoreLink),
        finite.prop_map(Value::Float),
        (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| Value::Integer(number >> shift)),
        any::<(u16, u16)>().prop_map(link),
        vec(any::<u8>(), 0..300).prop_map(Value::Opaque),
        any::<String>().prop_map(Value::String),
        any::<i64>().prop_map(Value::Time),
        any::<u64>().prop_map(Value::UnsignedInteger),
    ]
}

fn paths() -> impl Strategy<Value = Path> {
    (select(vec![3, 42_000]), vec(numbers(), 0..4)).prop_map(|(object, below)| {
        let deeper = |path: Path, id: u16| path.child(id).expect("there are three at most");
        below.into_iter().fold(Path::object(object), deeper)
    })
}

/// Noise, nests of the same few bytes, and payloads that are cut, changed and doubled.
fn payloads() -> impl Strategy<Value = (Path, Vec<u8>)> {
    let noise = (paths(), vec(any::<u8>(), 0..40));
    let nests = (paths(), vec(openings(), 1..6), 0..400_usize);
    let nests = nests.prop_map(|(path, few, times)| (path, few.concat().repeat(times)));
    let places = (any::<Index>(), any::<Index>(), any::<u8>());
    let spoilt = (readings(), select(&FORMATS[..]), places, 1..3_usize);
    let spoilt = spoilt.prop_map(|((path, values), format, (place, end, byte), times)| {
        let mut bytes = encode(format, path, &values).unwrap_or_default();
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(end.index(bytes.len()) + 1);
        }
        (path, bytes.repeat(times))
    });
    prop_oneof![1 => noise, 1 => nests, 4 => spoilt]
}

/// Bytes that begin something which holds more: arrays, maps, tags and strings without an end.
fn openings() -> impl Strategy<Value = Vec<u8>> {
    select(vec![
        vec![0x9f],
        vec![0xbf],
        vec![0x81],
        vec![0xa1, 0],
        vec![0x82, 0],
        vec![0xc4, 0x82, 0],
        vec![0xc1],
        vec![0xd8, 0x20],
        vec![0x5f],
        vec![0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        vec![0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        b"[".to_vec(),
        br#"{"e":"#.to_vec(),
        br#"{"e":[{"n":"#.to_vec(),
    ])
}

fn type_by_number(path: Path, salt: u16) -> Option<DataType> {
    let place = usize::from(path.resource_id()?.wrapping_add(salt)) % (DataType::ALL.len() + 1);
    DataType::ALL.get(place).copied()
}
