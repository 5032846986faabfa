//! Is every CBOR item read correctly in each of its encodings, and everything else refused?

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, proptest};

use super::reader::{CborReader, UnreadableCbor};
use super::{decode_item as decode, encode};
use crate::lwm2m::path::Path;
use crate::lwm2m::payload::samples::{MalformedSamples, ReadSamples};
use crate::lwm2m::payload::scalar::{Number, Scalar};
use crate::lwm2m::value::{DataType, ObjectLink, Value};

#[test]
fn each_value_has_its_shortest_item() {
    let link = ObjectLink {
        object: 66,
        instance: 1,
    };
    let cases: [(Value, &[u8]); 12] = [
        (Value::Boolean(true), &[0xf5]),
        (Value::Integer(0), &[0]),
        (Value::Integer(36), &[0x18, 0x24]),
        (Value::Integer(-500), &[0x39, 0x01, 0xf3]),
        (
            Value::Time(1_700_000_000),
            &[0xc1, 0x1a, 0x65, 0x53, 0xf1, 0],
        ),
        (Value::Float(21.5), &[0xfa, 0x41, 0xac, 0, 0]),
        (
            Value::Float(0.1),
            &[0xfb, 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a],
        ),
        (Value::String("é".into()), &[0x62, 0xc3, 0xa9]),
        (Value::CoreLink(String::new()), &[0x60]),
        (Value::ObjectLink(link), b"\x6466:1"),
        (Value::Opaque(vec![1, 2]), &[0x42, 1, 2]),
        (
            Value::UnsignedInteger(u64::MAX),
            &[0x1b, 255, 255, 255, 255, 255, 255, 255, 255],
        ),
    ];
    for (value, bytes) in cases {
        assert_eq!(encode(&value), bytes, "{value:?}");
        let read = decode(bytes).map(|scalar| scalar.into_value(Some(value.data_type())));
        assert_eq!(read, Ok(Some(value)));
    }
}

#[test]
fn a_number_is_read_however_it_is_written() {
    let huge = 1_i128 << 72;
    let cases: [(&str, Number); 22] = [
        ("1b0000000000000005", Number::Integer(5)),
        ("1bffffffffffffffff", Number::Integer(u64::MAX.into())),
        ("3bffffffffffffffff", Number::Integer(-(1 << 64))),
        ("f93c00", Number::Float(1.0)),
        ("f94d00", Number::Float(20.0)),
        ("f90001", Number::Float(5.960_464_477_539_063e-8)),
        ("fa421c0000", Number::Float(39.0)),
        ("fb4033e66666666666", Number::Float(19.9)),
        ("c240", Number::Integer(0)),
        ("c2420100", Number::Integer(256)),
        ("c3420100", Number::Integer(-257)),
        ("c24a01000000000000000000", Number::Integer(huge)),
        (
            "c2530000000000000000000000000000000000ffff",
            Number::Integer(65_535),
        ),
        ("c48221196ab3", Number::Float(273.15)),
        ("c4820205", Number::Integer(500)),
        ("c482211903e8", Number::Integer(10)),
        ("c49f2005ff", Number::Float(0.5)),
        ("c48220c24103", Number::Float(0.3)),
        ("c4821903e800", Number::Integer(0)),
        ("c4821903e801", Number::Float(f64::INFINITY)),
        ("c4823903e701", Number::Float(0.0)),
        ("d9d9f705", Number::Integer(5)),
    ];
    for (hex, number) in cases {
        assert_eq!(decode(&bytes(hex)), Ok(Scalar::Number(number)), "{hex}");
        assert_eq!(CborReader::new(&bytes(hex)).number(), Ok(number), "{hex}");
    }
}

#[test]
fn nan_is_not_a_value() {
    let path = Path::resource(3303, 0, 5700);
    for item in ["f97e00", "faffc00000", "fb7ff8000000000000"] {
        let read = |data_type| {
            let read = super::decode(path, &bytes(item), &|_| data_type);
            read.and_then(ReadSamples::whole)
        };
        for data_type in [Some(DataType::Float), None] {
            assert_eq!(read(data_type), Err(MalformedSamples::NotFinite(path)));
        }
        for data_type in [DataType::Integer, DataType::Time] {
            let refused = Err(MalformedSamples::Value { path, data_type });
            assert_eq!(read(Some(data_type)), refused);
        }
    }
}

#[test]
fn a_time_is_known_by_its_tag() {
    let cases = [
        ("c11a6b01743f", Number::Integer(1_795_257_407)),
        ("c1fb41dac05d1d800000", Number::Float(1_795_257_462.0)),
        (
            "c074323032362d31312d32315431313a33343a33345a",
            Number::Integer(1_795_260_874),
        ),
    ];
    for (hex, number) in cases {
        assert_eq!(decode(&bytes(hex)), Ok(Scalar::Time(number)), "{hex}");
    }
}

#[test]
fn texts_and_bytes_may_come_in_pieces() {
    let text = |text: &str| Ok(Scalar::Text(text.to_owned()));
    assert_eq!(decode(&bytes("62c3a9")), text("é"));
    assert_eq!(decode(&bytes("7f61616162ff")), text("ab"));
    assert_eq!(decode(&bytes("7fff")), text(""));
    assert_eq!(decode(&bytes("d8206161")), text("a"));
    let pieces = Scalar::Bytes(vec![1, 2, 3]);
    assert_eq!(decode(&bytes("5f420102410340ff")), Ok(pieces));
}

#[test]
fn anything_but_one_item_is_refused() {
    let cases = [
        "",
        "ff",
        "18",
        "1c",
        "1f",
        "3f",
        "f6",
        "f7",
        "e0",
        "f818",
        "f81f",
        "80",
        "a0",
        "8100",
        "0000",
        "41",
        "61ff",
        "7f61c361a9ff",
        "7f4161ff",
        "5f6161ff",
        "7f7f6161ffff",
        "5f41",
        "7f6161",
        "5bffffffffffffffff00",
        "7bffffffffffffffff00",
        "c1",
        "c16161",
        "c0",
        "c000",
        "c06161",
        "c1c1",
        "c26161",
        "c25180000000000000000000000000000000ff",
        "c3",
        "c4",
        "c400",
        "c480",
        "c48101",
        "c4820000ff",
        "c483000000",
        "c482f9000000",
        "c48200f90000",
        "c482006161",
        "c49f0000",
        "c5820001",
        "dfff",
        "fc",
        "f9",
        "f93c",
        "fb00",
    ];
    for hex in cases {
        let payload = bytes(hex);
        assert_eq!(decode(&payload), Err(MalformedSamples::Cbor), "{hex}");
    }
}

#[test]
fn an_item_is_skipped_with_everything_in_it() {
    let cases = [
        "00",
        "3903e8",
        "fb0000000000000000",
        "6161",
        "7f6161ff",
        "5f4100ff",
        "f4",
        "f6",
        "f7",
        "f0",
        "f8ff",
        "80",
        "83010203",
        "9f0102ff",
        "a10102",
        "bf6161f4ff",
        "c100",
        "d9d9f7820102",
        "8181818181818181818181818100",
        "82a1008180bf0080ff",
    ];
    for hex in cases {
        let mut payload = bytes(hex);
        payload.push(5);
        let mut reader = CborReader::new(&payload);
        assert_eq!(reader.skip(), Ok(()), "{hex}");
        assert_eq!(reader.number(), Ok(Number::Integer(5)), "{hex}");
        assert_eq!(reader.finish(), Ok(()));
    }
}

#[test]
fn skipped_items_are_well_formed_and_not_too_deep() {
    let deep = ["81"; 17].concat() + "00";
    let tags = ["c6"; 17].concat() + "00";
    let cases = [
        "", "ff", "81", "8201", "9f01", "bf01ff", "a101", "c6", "62c3", "1c", &deep, &tags,
    ];
    for hex in cases {
        let payload = bytes(hex);
        assert_eq!(
            CborReader::new(&payload).skip(),
            Err(UnreadableCbor),
            "{hex}"
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_item_or_none(payload in vec(any::<u8>(), 0..40)) {
        if let Ok(scalar) = decode(&payload) {
            let Some(value) = scalar.into_value(None) else { return Ok(()) };
            let again = decode(&encode(&value)).map(|it| it.into_value(Some(value.data_type())));
            prop_assert!(is_again(&value, &again), "{value:?} {again:?}");
        }
        let mut reader = CborReader::new(&payload);
        while reader.skip().is_ok() {}
    }

    #[test]
    fn integers_and_floats_survive(integer in any::<i64>(), float in any::<f64>()) {
        let mut values = vec![Value::Integer(integer), Value::Time(integer)];
        values.push(Value::UnsignedInteger(integer.unsigned_abs()));
        values.push(Value::Float(float));
        for value in values {
            let read = decode(&encode(&value)).map(|it| it.into_value(Some(value.data_type())));
            prop_assert!(is_again(&value, &read), "{value:?} {read:?}");
        }
    }
}

/// Whether a value was read as it was written. NaN is not equal to itself.
fn is_again(value: &Value, read: &Result<Option<Value>, MalformedSamples>) -> bool {
    match (value, read) {
        (Value::Float(one), Ok(Some(Value::Float(other)))) if one.is_nan() => other.is_nan(),
        (value, read) => *read == Ok(Some(value.clone())),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap())
        .collect();
    let pairs = digits.chunks_exact(2);
    assert!(pairs.remainder().is_empty(), "{hex}");
    pairs.map(|pair| pair[0] * 16 + pair[1]).collect()
}
