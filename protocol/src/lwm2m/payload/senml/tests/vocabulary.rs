//! The vocabulary of the SenML tests: a pack is written in JSON and read in both forms.

use minicbor::data::Int;
use minicbor::encode::Encoder;

use crate::lwm2m::path::Path;
use crate::lwm2m::payload::json::{self, JsonToken};
use crate::lwm2m::payload::samples::{MalformedSamples, ReadSamples};
use crate::lwm2m::payload::scalar::{Number, Scalar};
use crate::lwm2m::payload::senml::{decode_cbor, decode_json};
use crate::lwm2m::payload::{Measured, Sample, Scope};
use crate::lwm2m::value::{DataType, Value};

pub(super) fn sample(path: &str, value: Value, measured: Option<Measured>) -> Sample {
    Sample {
        path: path.parse().unwrap(),
        value,
        measured,
    }
}

/// Reads a pack with the types of a few known resources, in JSON and in CBOR.
pub(super) fn read(pack: &str, scope: Scope) -> Result<Vec<Sample>, MalformedSamples> {
    let json = decode_json(scope, pack.as_bytes(), &type_of).and_then(ReadSamples::whole);
    let cbor = decode_cbor(scope, &as_cbor(pack), &type_of).and_then(ReadSamples::whole);
    assert_eq!(cbor, json, "{pack}");
    json
}

/// Reads a pack whose values all have one type, in JSON and in CBOR.
pub(super) fn read_as(
    pack: &str,
    scope: Scope,
    data_type: Option<DataType>,
) -> Result<Vec<Sample>, MalformedSamples> {
    let json = decode_json(scope, pack.as_bytes(), &|_| data_type).and_then(ReadSamples::whole);
    let cbor = decode_cbor(scope, &as_cbor(pack), &|_| data_type).and_then(ReadSamples::whole);
    assert_eq!(cbor, json, "{pack}");
    json
}

pub(super) fn type_of(path: Path) -> Option<DataType> {
    match (path.object_id(), path.resource_id()?) {
        (3, 0) => Some(DataType::String),
        (3, 7 | 9 | 20) => Some(DataType::Integer),
        (3303, 5700) => Some(DataType::Float),
        (_, _) => None,
    }
}

/// Converts a pack in JSON to the same pack in CBOR.
pub(super) fn as_cbor(pack: &str) -> Vec<u8> {
    let Ok(JsonToken::List(records)) = json::parse(pack.as_bytes()) else {
        panic!("not a pack: {pack}");
    };
    let mut encoder = Encoder::new(Vec::new());
    encoder.array(records.len() as u64).unwrap();
    for record in records {
        let JsonToken::Object(fields) = record else {
            panic!("not a record: {pack}");
        };
        encoder.map(fields.len() as u64).unwrap();
        for (name, value) in fields {
            match NUMBERS.iter().find(|(known, _)| *known == name) {
                Some((_, number)) => encoder.i64(*number).unwrap(),
                None => encoder.str(&name).unwrap(),
            };
            match (name.as_str(), value) {
                ("vd", JsonToken::Scalar(Scalar::Text(text))) => write_bytes(&text, &mut encoder),
                (_, value) => write_token(&value, &mut encoder),
            }
        }
    }
    encoder.into_writer()
}

/// The fields that have a number in CBOR.
const NUMBERS: [(&str, i64); 15] = [
    ("bver", -1),
    ("bn", -2),
    ("bt", -3),
    ("bu", -4),
    ("bv", -5),
    ("bs", -6),
    ("n", 0),
    ("u", 1),
    ("v", 2),
    ("vs", 3),
    ("vb", 4),
    ("s", 5),
    ("t", 6),
    ("ut", 7),
    ("vd", 8),
];

fn write_bytes(base64: &str, encoder: &mut Encoder<Vec<u8>>) {
    let usual = base64.replace('-', "+").replace('_', "/");
    match Value::parse(DataType::Opaque, &usual) {
        Ok(Value::Opaque(bytes)) => encoder.bytes(&bytes).unwrap(),
        Ok(_) | Err(_) => encoder.str(base64).unwrap(),
    };
}

fn write_token(token: &JsonToken, encoder: &mut Encoder<Vec<u8>>) {
    match token {
        JsonToken::Null => drop(encoder.null().unwrap()),
        JsonToken::Scalar(Scalar::Boolean(value)) => drop(encoder.bool(*value).unwrap()),
        JsonToken::Scalar(Scalar::Number(Number::Float(number))) => {
            encoder.f64(*number).unwrap();
        }
        JsonToken::Scalar(Scalar::Number(Number::Integer(number))) => {
            encoder.int(Int::try_from(*number).unwrap()).unwrap();
        }
        JsonToken::Scalar(Scalar::Text(text)) => drop(encoder.str(text).unwrap()),
        JsonToken::Scalar(Scalar::Bytes(_) | Scalar::Link(_) | Scalar::Time(_)) => {
            panic!("JSON has no {token:?}")
        }
        JsonToken::List(items) => {
            encoder.array(items.len() as u64).unwrap();
            items.iter().for_each(|item| write_token(item, encoder));
        }
        JsonToken::Object(fields) => {
            encoder.map(fields.len() as u64).unwrap();
            for (name, value) in fields {
                encoder.str(name).unwrap();
                write_token(value, encoder);
            }
        }
    }
}

pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap())
        .collect();
    let pairs = digits.chunks_exact(2);
    assert!(pairs.remainder().is_empty(), "{hex}");
    pairs.map(|pair| pair[0] * 16 + pair[1]).collect()
}
