//! Which laws hold for payloads? (LwM2M Core 1.2 section 7.4)
//!
//! Every sample is within the requested path, their number is bounded, and decoded values are the
//! same after encoding and decoding them again.

use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{
    self, Reading, SAMPLES_MAX, Sample, Scope, decode_paths, decode_readable, encode, encode_all,
    encode_paths, opaque, text,
};
use protocol::lwm2m::value::{DataType, Value};

use crate::FuzzOutcome;
use crate::types::Types;

const RESOURCE: Path = Path::resource(3, 0, 9);
const BASES: [Path; 5] = [
    Path::object(3),
    Path::instance(3, 0),
    RESOURCE,
    Path::resource(3, 0, 7),
    Path::resource_instance(3, 0, 7, 0),
];

pub(crate) fn text_and_opaque(bytes: &[u8]) -> FuzzOutcome {
    let mut fate = FuzzOutcome::Refused;
    for data_type in DataType::ALL {
        let from_text = text::decode(bytes, data_type);
        if let Ok(value) = &from_text {
            assert_eq!(
                text::decode(&text::encode(value), data_type).as_ref(),
                Ok(value)
            );
            let shown = Value::parse(data_type, &value.to_text());
            assert_eq!(shown.as_ref(), Ok(value));
        }
        let from_bytes = opaque::decode(bytes, data_type);
        if let Ok(value) = &from_bytes {
            let written = opaque::encode(value);
            assert_eq!(opaque::decode(&written, data_type).as_ref(), Ok(value));
        }
        fate = fate.or(FuzzOutcome::of(&from_text));
    }
    fate
}

pub(crate) fn tlv(bytes: &[u8]) -> FuzzOutcome {
    one_scope_at_a_time(ContentFormat::LWM2M_TLV, bytes)
}

pub(crate) fn cbor(bytes: &[u8]) -> FuzzOutcome {
    one_scope_at_a_time(ContentFormat::CBOR, bytes)
}

pub(crate) fn lwm2m_json(bytes: &[u8]) -> FuzzOutcome {
    named(ContentFormat::LWM2M_JSON, bytes)
}

pub(crate) fn senml_json(bytes: &[u8]) -> FuzzOutcome {
    named(ContentFormat::SENML_JSON, bytes).or(paths(ContentFormat::SENML_JSON, bytes))
}

pub(crate) fn senml_cbor(bytes: &[u8]) -> FuzzOutcome {
    named(ContentFormat::SENML_CBOR, bytes).or(paths(ContentFormat::SENML_CBOR, bytes))
}

pub(crate) fn lwm2m_cbor(bytes: &[u8]) -> FuzzOutcome {
    named(ContentFormat::LWM2M_CBOR, bytes).or(paths(ContentFormat::LWM2M_CBOR, bytes))
}

/// A format whose payload depends on the requested path.
fn one_scope_at_a_time(format: ContentFormat, bytes: &[u8]) -> FuzzOutcome {
    let mut fate = FuzzOutcome::Refused;
    for (base, types) in BASES.into_iter().flat_map(|path| with_types(path, bytes)) {
        let type_of = |path: Path| types.of(path);
        let Ok(samples) = read(format, Scope::Within(base), bytes, types) else {
            continue;
        };
        fate = FuzzOutcome::Read;
        let values = newest(&samples);
        let written = encode(format, base, &values).expect("what was read can be written");
        let again = payload::decode(Some(format), base, &written, type_of);
        let again = again.expect("what was written can be read");
        assert_eq!(again, values);
    }
    fate
}

/// A format whose payload contains its paths.
fn named(format: ContentFormat, bytes: &[u8]) -> FuzzOutcome {
    let mut fate = FuzzOutcome::Refused;
    for types in Types::for_input(bytes) {
        for base in BASES {
            let _ = read(format, Scope::Within(base), bytes, types);
        }
        let Ok(samples) = read(format, Scope::All, bytes, types) else {
            continue;
        };
        fate = FuzzOutcome::Read;
        let values = newest(&samples);
        let written = encode_all(format, &values).expect("what was read can be written");
        let again = read(format, Scope::All, &written, types);
        let again = newest(&again.expect("what was written can be read"));
        assert_eq!(again, values);
    }
    fate
}

/// A decoded list of paths encodes to the same list.
fn paths(format: ContentFormat, bytes: &[u8]) -> FuzzOutcome {
    let read = decode_paths(format, bytes);
    if let Ok(paths) = &read {
        let written = encode_paths(format, paths).expect("what was read can be written");
        assert_eq!(decode_paths(format, &written).as_ref(), Ok(paths));
    }
    FuzzOutcome::of(&read)
}

fn read(
    format: ContentFormat,
    scope: Scope,
    bytes: &[u8],
    types: Types,
) -> Result<Vec<Sample>, payload::Undecodable> {
    let decoded = decode_readable(Some(format), scope, bytes, &|path| types.of(path))?;
    let samples = decoded.samples;
    assert!(samples.len() + decoded.unreadable.len() <= SAMPLES_MAX);
    for Sample { path, value, .. } in &samples {
        assert!(scope.contains(*path), "{path} was not asked for");
        assert!(path.to_resource().is_some(), "{path} has no value");
        let known = types.of(*path);
        assert!(
            known.is_none_or(|known| known == value.data_type()),
            "{path} is {value:?}"
        );
    }
    Ok(samples)
}

fn newest(samples: &[Sample]) -> Reading {
    let values = samples.iter().map(|it| (it.path, it.value.clone()));
    values.collect()
}

fn with_types(path: Path, bytes: &[u8]) -> [(Path, Types); 3] {
    Types::for_input(bytes).map(|types| (path, types))
}
