//! Is a tree of CBOR read and written as specified, with keys of every shape?

use super::{decode, encode, encode_paths};
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::samples::{MalformedSamples, ReadSamples};
use crate::lwm2m::payload::{Reading, Sample, Scope};
use crate::lwm2m::value::{DataType, ObjectLink, Value};

const LEVEL: Path = Path::resource(3, 0, 9);
const SOURCES: Path = Path::resource(3, 0, 6);

#[test]
fn numbers_lead_down_one_by_one_or_several_at_once() {
    let payloads: [&[u8]; 6] = [
        // {3: {0: {9: 95, 6: {0: 1}}}}
        &[0xa1, 3, 0xa1, 0, 0xa2, 9, 0x18, 95, 6, 0xa1, 0, 1],
        // {[3, 0]: {9: 95, [6, 0]: 1}}
        &[0xa1, 0x82, 3, 0, 0xa2, 9, 0x18, 95, 0x82, 6, 0, 1],
        // {[3, 0, 9]: 95, [3, 0, 6, 0]: 1}
        &[0xa2, 0x83, 3, 0, 9, 0x18, 95, 0x84, 3, 0, 6, 0, 1],
        // {_ 3: {_ 0: {_ 9: 95, 6: {_ 0: 1}}}}
        &[
            0xbf, 3, 0xbf, 0, 0xbf, 9, 0x18, 95, 6, 0xbf, 0, 1, 0xff, 0xff, 0xff, 0xff,
        ],
        // {_ [_ 3, 0, 9]: 95, [3, 0]: {[_ 6, 0]: 1}}
        &[
            0xbf, 0x9f, 3, 0, 9, 0xff, 0x18, 95, 0x82, 3, 0, 0xa1, 0x9f, 6, 0, 0xff, 1, 0xff,
        ],
        // {3: {0: {9: 95}}, [3, 0]: {6: {0: 1}}}: the same path may occur twice.
        &[
            0xa2, 3, 0xa1, 0, 0xa1, 9, 0x18, 95, 0x82, 3, 0, 0xa1, 6, 0xa1, 0, 1,
        ],
    ];
    let expected = [
        (LEVEL, Value::Integer(95)),
        (SOURCES.child(0).unwrap(), Value::Integer(1)),
    ];
    for payload in payloads {
        for scope in [Scope::All, Scope::Within(Path::instance(3, 0))] {
            let read =
                decode(scope, payload, &|_| Some(DataType::Integer)).and_then(ReadSamples::whole);
            assert_eq!(read, Ok(timeless(expected.clone())), "{payload:x?}");
        }
    }
}

#[test]
fn values_are_of_their_type_however_they_are_written() {
    let (object, instance) = (3, 0);
    let cases: [(&[u8], Value); 17] = [
        (&[0xf5], Value::Boolean(true)),
        (&[0], Value::Boolean(false)),
        (&[1], Value::Boolean(true)),
        (&[0x39, 1, 0], Value::Integer(-257)),
        (&[0xf9, 0x42, 0x00], Value::Integer(3)),
        (&[0xf9, 0x41, 0x00], Value::Float(2.5)),
        (&[0xfa, 0x41, 0xac, 0, 0], Value::Float(21.5)),
        (&[5], Value::Float(5.0)),
        (&[0xc4, 0x82, 0x20, 0x18, 215], Value::Float(21.5)),
        (&[0xc1, 0x18, 100], Value::Time(100)),
        (&[0x18, 100], Value::Time(100)),
        (
            &[0x63, b'3', b':', b'0'],
            Value::ObjectLink(ObjectLink { object, instance }),
        ),
        (&[0x42, 1, 2], Value::Opaque(vec![1, 2])),
        (&[0x5f, 0x41, 1, 0x41, 2, 0xff], Value::Opaque(vec![1, 2])),
        (&[0x62, b'h', b'i'], Value::String("hi".into())),
        (
            &[0x7f, 0x61, b'h', 0x61, b'i', 0xff],
            Value::CoreLink("hi".into()),
        ),
        (
            &[0x1b, 255, 255, 255, 255, 255, 255, 255, 255],
            Value::UnsignedInteger(u64::MAX),
        ),
    ];
    for (bytes, value) in cases {
        let payload = [&[0xa1, 0x83, 3, 0, 9], bytes].concat();
        let read =
            decode(Scope::All, &payload, &|_| Some(value.data_type())).and_then(ReadSamples::whole);
        assert_eq!(read, Ok(timeless([(LEVEL, value)])), "{bytes:x?}");
    }
}

#[test]
fn a_resource_unknown_to_the_model_has_the_type_it_is_written_in() {
    // {42000: {0: {1: 21.5, 2: "x", 3: 7, 4: 1(9)}}}
    let payload = [
        0xa1, 0x19, 0xa4, 0x10, 0xa1, 0, 0xa4, 1, 0xf9, 0x4d, 0x60, 2, 0x61, b'x', 3, 7, 4, 0xc1, 9,
    ];
    let at = |id| Path::resource(42_000, 0, id);
    let expected = [
        (at(1), Value::Float(21.5)),
        (at(2), Value::String("x".into())),
        (at(3), Value::Integer(7)),
        (at(4), Value::Time(9)),
    ];
    let read = decode(Scope::All, &payload, &|_| None).and_then(ReadSamples::whole);
    assert_eq!(read, Ok(timeless(expected)));
}

#[test]
fn nan_is_not_read_and_does_not_affect_the_other_values() {
    // {3303: {0: {5700: NaN, 5701: "Cel"}}}
    let payload = [
        0xa1, 0x19, 0x0c, 0xe7, 0xa1, 0, 0xa2, 0x19, 0x16, 0x44, 0xf9, 0x7e, 0, 0x19, 0x16, 0x45,
        0x63, b'C', b'e', b'l',
    ];
    for of_number in [Some(DataType::Float), None] {
        let type_of = |path: Path| match path.resource_id() {
            Some(5700) => of_number,
            _ => None,
        };
        let read = decode(Scope::All, &payload, &type_of).unwrap();
        let unit = (Path::resource(3303, 0, 5701), Value::String("Cel".into()));
        assert_eq!(read.samples, timeless([unit]));
        let path = Path::resource(3303, 0, 5700);
        let reason = MalformedSamples::NotFinite(path);
        assert_eq!(read.unreadable, [(Some(path), reason)]);
    }
}

#[test]
fn malformed_trees_are_refused() {
    let text = DataType::String;
    let cases: [(&[u8], MalformedSamples); 18] = [
        (&[], MalformedSamples::Cbor),
        (&[0x80], MalformedSamples::Cbor),
        (&[0x18], MalformedSamples::Cbor),
        (&[0xa1], MalformedSamples::Cbor),
        (&[0xa0, 0], MalformedSamples::Cbor),
        (&[0xbf, 3, 0xa0], MalformedSamples::Cbor),
        // An object or an instance has no value.
        (&[0xa1, 3, 1], MalformedSamples::Name(1)),
        (&[0xa1, 0x82, 3, 0, 1], MalformedSamples::Name(1)),
        // Keys that are no numbers, or do not go deeper, or go too deep.
        (&[0xa1, 0x61, b'3', 1], MalformedSamples::Name(1)),
        (&[0xa1, 0x20, 1], MalformedSamples::Name(1)),
        (&[0xa1, 0x1a, 0, 1, 0, 0, 1], MalformedSamples::Name(1)),
        (&[0xa1, 0x80, 1], MalformedSamples::Name(1)),
        (&[0xa1, 3, 0xa1, 0x80, 0xa0], MalformedSamples::Name(2)),
        (&[0xa1, 0x85, 3, 0, 6, 0, 0, 1], MalformedSamples::Name(1)),
        // Values that are not allowed.
        (&[0xa1, 0x83, 3, 0, 9, 0xf6], MalformedSamples::NoValue(1)),
        (&[0xa1, 0x83, 3, 0, 9, 0x80], MalformedSamples::Field(1)),
        (
            &[0xa1, 0x83, 3, 0, 9, 1],
            MalformedSamples::Value {
                path: LEVEL,
                data_type: text,
            },
        ),
        (
            &[0xa2, 0x83, 3, 0, 9, 0x60, 0x83, 3, 0, 9, 0x60],
            MalformedSamples::Repeated(2),
        ),
    ];
    for (payload, why) in cases {
        let read = decode(Scope::All, payload, &|_| Some(text)).and_then(ReadSamples::whole);
        assert_eq!(read, Err(why), "{payload:x?}");
    }
}

#[test]
fn a_resource_has_one_value_or_several_never_both() {
    let both = [0xa2, 0x83, 3, 0, 6, 1, 0x84, 3, 0, 6, 0, 1];
    let read = decode(Scope::All, &both, &|_| None).and_then(ReadSamples::whole);
    assert_eq!(read, Err(MalformedSamples::Ambiguous(SOURCES)));
}

#[test]
fn values_that_were_not_requested_are_refused() {
    let payload = [0xa1, 0x83, 3, 0, 9, 1];
    let scope = Scope::Within(Path::resource(3, 0, 10));
    let read = decode(scope, &payload, &|_| None).and_then(ReadSamples::whole);
    assert_eq!(read, Err(MalformedSamples::Elsewhere(LEVEL)));
}

#[test]
fn empty_maps_leave_no_trace() {
    for payload in [&[0xa0][..], &[0xa1, 3, 0xa0], &[0xbf, 3, 0xbf, 0xff, 0xff]] {
        let read = decode(Scope::All, payload, &|_| None).and_then(ReadSamples::whole);
        assert_eq!(read, Ok(vec![]));
    }
}

#[test]
fn maps_of_nothing_are_read_to_a_bound() {
    let payload = [
        vec![0xbf],
        [3, 0xa0].repeat(super::PAIRS_MAX + 1),
        vec![0xff],
    ]
    .concat();
    let read = decode(Scope::All, &payload, &|_| None).and_then(ReadSamples::whole);
    assert_eq!(read, Err(MalformedSamples::TooMany));
}

#[test]
fn a_tree_is_written_with_one_number_a_key() {
    let values = Reading::from([
        (SOURCES.child(0).unwrap(), Value::Integer(1)),
        (SOURCES.child(1).unwrap(), Value::Integer(5)),
        (LEVEL, Value::Integer(95)),
        (Path::resource(3, 0, 13), Value::Time(9)),
        (Path::resource(6, 0, 0), Value::Float(21.5)),
    ]);
    let device = [
        0xa1, 3, 0xa1, 0, 0xa3, 6, 0xa2, 0, 1, 1, 5, 9, 0x18, 95, 13, 0xc1, 9,
    ];
    assert_eq!(encode(below(Path::object(3)), &values), device);
    assert_eq!(encode(below(Path::instance(3, 0)), &values), device);
    let level = [0xa1, 3, 0xa1, 0, 0xa1, 9, 0x18, 95];
    assert_eq!(encode(below(LEVEL), &values), level);
    assert_eq!(encode(below(Path::object(7)), &values), [0xa0]);
    let place = [6, 0xa1, 0, 0xa1, 0, 0xfa, 0x41, 0xac, 0, 0];
    let all = [&[0xa2], &device[1..], &place].concat();
    assert_eq!(encode(Scope::All, &values), all);
}

#[test]
fn paths_are_written_as_lists_of_numbers() {
    let paths = [
        Path::object(6),
        LEVEL,
        Path::resource_instance(3, 0, 6, 300),
    ];
    let written = [0x83, 0x81, 6, 0x83, 3, 0, 9, 0x84, 3, 0, 6, 0x19, 1, 44];
    assert_eq!(encode_paths(&paths), written);
    assert_eq!(encode_paths(&[]), [0x80]);
}

fn below(path: Path) -> Scope {
    Scope::Within(path)
}

fn timeless<const N: usize>(values: [(Path, Value); N]) -> Vec<Sample> {
    let sample = |(path, value)| Sample {
        path,
        value,
        measured: None,
    };
    values.map(sample).into()
}
