//! Do values survive each format that names them, and is every other payload refused?

#[path = "given/readings.rs"]
mod readings;
#[path = "given/values.rs"]
mod values;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::{prop_assert, prop_assert_eq};
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{
    Reading, Scope, decode, decode_paths, decode_samples, encode, encode_all, encode_paths,
};
use protocol::lwm2m::value::Value;

use crate::readings::{numbers, readings, spoilt};
use crate::values::type_by_number;

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
    fn any_payload_is_decoded_or_refused(
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
    let changed = (readings(), select(&FORMATS[..]), places, 1..3_usize);
    let changed = changed.prop_map(|((path, values), format, places, times)| {
        let bytes = encode(format, path, &values).unwrap_or_default();
        (path, spoilt(bytes, places).repeat(times))
    });
    prop_oneof![1 => noise, 1 => nests, 4 => changed]
}

/// Bytes that begin a container: arrays, maps, tags and strings without an end.
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
