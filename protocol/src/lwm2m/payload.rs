//! How do the values of resources travel in a payload? (LwM2M Core 1.1 section 7.4)
//!
//! Chooses between the formats; each format's bytes are its own file's.

mod cbor;
pub mod formats;
mod json;
mod lwm2m_cbor;
mod lwm2m_json;
pub mod opaque;
pub mod samples;
mod scalar;
mod senml;
#[cfg(test)]
mod tests;
pub mod text;
pub mod tlv;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::coap::content::ContentFormat;
use crate::lwm2m::model::{self, Instances, Object};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};

/// What was read at and below a path: the values of resources and of resource instances, in the
/// order of the tree. A resource has either one value or several instances, never both.
pub type Reading = BTreeMap<Path, Value>;

/// Opaque as numbered by drafts of LwM2M 1.0.
const LEGACY_OPAQUE: ContentFormat = ContentFormat(1544);

/// Bounds the samples of one payload: a day of one value every half minute, and a payload of the
/// shortest records does not grow to many times its size. A longer one is refused.
pub const SAMPLES_MAX: usize = 4_096;

/// What is known of that which a payload speaks of.
///
/// Whoever knows the types alone passes a function; objects are those of the registry then.
pub trait Model {
    /// Returns the type of the resource a path is or lies in.
    fn type_of(&self, path: Path) -> Option<DataType>;

    /// Returns how often an object may be present; none for one that is not known.
    fn instances_of(&self, object: u16) -> Option<Instances>;
}

/// A value of a path, and when it was measured, where the payload says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The resource or resource instance.
    pub path: Path,
    /// What it was.
    pub value: Value,
    /// When it was so; none if the payload does not say.
    pub measured: Option<Measured>,
}

/// When a value was measured (RFC 8428 section 4.5.3), in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// So long after the receipt of the payload; before it, if negative.
    Relative(i64),
    /// So long after 1970-01-01T00:00:00Z.
    Absolute(i64),
}

/// What a payload may speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every path: a Send, a composite read.
    All,
    /// A path and what lies below it.
    Within(Path),
}

/// Tells why a payload became no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undecodable {
    /// The payload is in a format this codec has no reader for.
    #[error("payloads in Content-Format {0} are not supported")]
    UnsupportedFormat(ContentFormat),
    /// The payload holds one value, and was to hold those of an object or an instance.
    #[error("payloads in Content-Format {0} hold one value only")]
    OneValue(ContentFormat),
    /// The format has no names, and nothing else says what the payload is about.
    #[error("payloads in Content-Format {0} do not name a resource")]
    Nameless(ContentFormat),
    /// Nothing says what the payload is.
    #[error("the payload has no Content-Format")]
    NoFormat,
    /// The payload is not what its format and the resource's type demand.
    #[error(transparent)]
    Malformed(#[from] MalformedValue),
    /// The payload is not TLV, or not that of what was asked for.
    #[error("the TLV payload is malformed: {0}")]
    MalformedTlv(#[from] tlv::MalformedTlv),
    /// The payload holds more samples than are taken from one.
    #[error("the payload has more than {SAMPLES_MAX} samples")]
    TooMany,
    /// The payload is not what its format of named values demands.
    #[error("the payload in Content-Format {format} is malformed: {reason}")]
    MalformedSamples {
        /// The format it was said to be in.
        format: ContentFormat,
        /// What is wrong with it.
        reason: samples::MalformedSamples,
    },
}

/// Tells that bytes are not a value of the resource's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the payload is not a value of type {data_type}")]
pub struct MalformedValue {
    /// The type the bytes should have been of.
    pub data_type: DataType,
}

/// Tells why values became no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unencodable {
    /// There is no writer for the format.
    #[error("writing payloads in Content-Format {0} is not supported")]
    UnsupportedFormat(ContentFormat),
    /// The format holds one value, and the values are several or lie elsewhere.
    #[error("payloads in Content-Format {0} hold one value only")]
    OneValue(ContentFormat),
    /// The format has no form for the value.
    #[error("Content-Format {format} cannot represent the value of {path}")]
    Value {
        /// The format asked for.
        format: ContentFormat,
        /// Where the value belongs.
        path: Path,
    },
}

impl<F: Fn(Path) -> Option<DataType>> Model for F {
    fn type_of(&self, path: Path) -> Option<DataType> {
        self(path)
    }

    fn instances_of(&self, object: u16) -> Option<Instances> {
        model::versions(object).last().map(Object::instances)
    }
}

impl Scope {
    /// Tells whether the payload may speak of the path.
    pub fn contains(self, path: Path) -> bool {
        match self {
            Self::All => true,
            Self::Within(asked) => asked.contains(path),
        }
    }
}

/// Returns the format a single value of the type travels in.
pub fn format_of(data_type: DataType) -> ContentFormat {
    match data_type {
        DataType::Opaque => ContentFormat::OCTET_STREAM,
        DataType::Boolean
        | DataType::CoreLink
        | DataType::Float
        | DataType::Integer
        | DataType::ObjectLink
        | DataType::String
        | DataType::Time
        | DataType::UnsignedInteger => ContentFormat::TEXT,
    }
}

/// Writes a value for a device: bytes as they are, everything else as text.
pub fn encode_resource(value: &Value) -> (ContentFormat, Vec<u8>) {
    match value {
        Value::Opaque(bytes) => (ContentFormat::OCTET_STREAM, bytes.clone()),
        Value::Boolean(_)
        | Value::CoreLink(_)
        | Value::Float(_)
        | Value::Integer(_)
        | Value::ObjectLink(_)
        | Value::String(_)
        | Value::Time(_)
        | Value::UnsignedInteger(_) => (ContentFormat::TEXT, text::encode(value)),
    }
}

/// Reads what a device answered when a path was read, or notifies of one: of each path the newest
/// value.
///
/// Every path of the reading is the one asked for or lies below it.
pub fn decode(
    format: Option<ContentFormat>,
    path: Path,
    payload: &[u8],
    type_of: impl Fn(Path) -> Option<DataType>,
) -> Result<Reading, Undecodable> {
    let mut samples = decode_samples(format, Scope::Within(path), payload, &type_of)?;
    // The sort is stable: of values measured at one time, the last of the payload counts.
    samples.sort_by_key(|sample| age_rank(sample.measured));
    let values = samples
        .into_iter()
        .map(|sample| (sample.path, sample.value));
    Ok(values.collect())
}

/// Orders samples from old to new, as far as that is known without a clock: what is relative to the
/// receipt, as a value without time is, is taken to be newer than what has a date.
fn age_rank(measured: Option<Measured>) -> (u8, i64) {
    match measured {
        Some(Measured::Absolute(at_ms)) => (0, at_ms),
        Some(Measured::Relative(after_ms)) => (1, after_ms),
        None => (1, 0),
    }
}

/// Reads a payload in any format, in the order of the payload.
///
/// A missing format means text for a resource, or bytes where the model says it is opaque, and TLV
/// for what holds several values, as devices that leave the format out know no other for them.
pub fn decode_samples(
    format: Option<ContentFormat>,
    scope: Scope,
    payload: &[u8],
    model: &dyn Model,
) -> Result<Vec<Sample>, Undecodable> {
    match (format, scope) {
        (Some(format @ ContentFormat::SENML_JSON), _) => {
            senml::decode_json(scope, payload, model).map_err(|reason| misread(format, reason))
        }
        (Some(format @ ContentFormat::SENML_CBOR), _) => {
            senml::decode_cbor(scope, payload, model).map_err(|reason| misread(format, reason))
        }
        (Some(format @ (ContentFormat::LWM2M_JSON | ContentFormat::LEGACY_JSON)), _) => {
            lwm2m_json::decode(scope, payload, model).map_err(|reason| misread(format, reason))
        }
        (Some(format @ ContentFormat::LWM2M_CBOR), _) => {
            lwm2m_cbor::decode(scope, payload, model).map_err(|reason| misread(format, reason))
        }
        (Some(format), Scope::All) if is_nameless(format) => Err(Undecodable::Nameless(format)),
        (Some(format), Scope::All) => Err(Undecodable::UnsupportedFormat(format)),
        (None, Scope::All) => Err(Undecodable::NoFormat),
        (_, Scope::Within(path)) => decode_nameless(format, path, payload, model),
    }
}

/// Reads a payload that does not say which resource, or which object, it is about.
fn decode_nameless(
    format: Option<ContentFormat>,
    path: Path,
    payload: &[u8],
    model: &dyn Model,
) -> Result<Vec<Sample>, Undecodable> {
    let in_resource = path.to_resource().is_some();
    match format {
        Some(ContentFormat::LWM2M_TLV | ContentFormat::LEGACY_TLV) => {
            decode_tlv(path, payload, model)
        }
        None if !in_resource => decode_tlv(path, payload, model),
        Some(format) if holds_one_value_only(format) && !in_resource => {
            Err(Undecodable::OneValue(format))
        }
        Some(format @ ContentFormat::CBOR) => {
            cbor::decode(path, payload, model).map_err(|reason| misread(format, reason))
        }
        Some(_) | None => {
            let value = decode_resource(format, payload, model.type_of(path))?;
            Ok(vec![timeless(path, value)])
        }
    }
}

fn misread(format: ContentFormat, reason: samples::MalformedSamples) -> Undecodable {
    if reason == samples::MalformedSamples::TooMany {
        Undecodable::TooMany
    } else {
        Undecodable::MalformedSamples { format, reason }
    }
}

fn is_nameless(format: ContentFormat) -> bool {
    let tlv = [ContentFormat::LWM2M_TLV, ContentFormat::LEGACY_TLV];
    tlv.contains(&format) || holds_one_value_only(format)
}

fn decode_tlv(path: Path, payload: &[u8], model: &dyn Model) -> Result<Vec<Sample>, Undecodable> {
    let values = tlv::decode(path, payload, model)?.into_iter();
    Ok(values.map(|(path, value)| timeless(path, value)).collect())
}

fn timeless(path: Path, value: Value) -> Sample {
    Sample {
        path,
        value,
        measured: None,
    }
}

/// Writes the values at and below a path as a request for that path carries them; what lies
/// elsewhere is left out.
pub fn encode(format: ContentFormat, path: Path, values: &Reading) -> Result<Vec<u8>, Unencodable> {
    match format {
        ContentFormat::TEXT | ContentFormat::LEGACY_TEXT => {
            one_value(format, path, values).map(text::encode)
        }
        ContentFormat::OCTET_STREAM | LEGACY_OPAQUE => {
            one_value(format, path, values).map(opaque::encode)
        }
        ContentFormat::CBOR => one_value(format, path, values).map(cbor::encode),
        ContentFormat::LWM2M_TLV | ContentFormat::LEGACY_TLV => Ok(tlv::encode(path, values)),
        ContentFormat::SENML_JSON => senml::encode_json(format, Some(path), values),
        ContentFormat::SENML_CBOR => Ok(senml::encode_cbor(Some(path), values)),
        ContentFormat::LWM2M_JSON | ContentFormat::LEGACY_JSON => {
            encode_lwm2m_json(format, Scope::Within(path), values)
        }
        ContentFormat::LWM2M_CBOR => Ok(lwm2m_cbor::encode(Scope::Within(path), values)),
        other => Err(Unencodable::UnsupportedFormat(other)),
    }
}

/// Writes values wherever they lie, as a composite write carries them (LwM2M Core 1.1 section
/// 6.3.9).
pub fn encode_all(format: ContentFormat, values: &Reading) -> Result<Vec<u8>, Unencodable> {
    match format {
        ContentFormat::SENML_JSON => senml::encode_json(format, None, values),
        ContentFormat::SENML_CBOR => Ok(senml::encode_cbor(None, values)),
        ContentFormat::LWM2M_JSON | ContentFormat::LEGACY_JSON => {
            encode_lwm2m_json(format, Scope::All, values)
        }
        ContentFormat::LWM2M_CBOR => Ok(lwm2m_cbor::encode(Scope::All, values)),
        other => Err(Unencodable::UnsupportedFormat(other)),
    }
}

fn encode_lwm2m_json(
    format: ContentFormat,
    scope: Scope,
    values: &Reading,
) -> Result<Vec<u8>, Unencodable> {
    let written = lwm2m_json::encode(scope, values);
    written.map_err(|path| Unencodable::Value { format, path })
}

/// Writes the paths of a composite read (LwM2M Core 1.1 section 6.3.8).
pub fn encode_paths(format: ContentFormat, paths: &[Path]) -> Result<Vec<u8>, Unencodable> {
    match format {
        ContentFormat::SENML_JSON => Ok(senml::encode_paths_json(paths)),
        ContentFormat::SENML_CBOR => Ok(senml::encode_paths_cbor(paths)),
        ContentFormat::LWM2M_CBOR => Ok(lwm2m_cbor::encode_paths(paths)),
        other => Err(Unencodable::UnsupportedFormat(other)),
    }
}

/// Reads the paths of a composite read, in the order of the payload.
pub fn decode_paths(format: ContentFormat, payload: &[u8]) -> Result<Vec<Path>, Undecodable> {
    let paths = match format {
        ContentFormat::SENML_JSON => senml::decode_paths_json(payload),
        ContentFormat::SENML_CBOR => senml::decode_paths_cbor(payload),
        ContentFormat::LWM2M_CBOR => lwm2m_cbor::decode_paths(payload),
        other => return Err(Undecodable::UnsupportedFormat(other)),
    };
    paths.map_err(|reason| misread(format, reason))
}

/// Returns the value of the path, if there is none below it.
fn one_value(format: ContentFormat, path: Path, values: &Reading) -> Result<&Value, Unencodable> {
    let mut within = values
        .range(path..)
        .take_while(|(at, _)| path.contains(**at));
    match (within.next(), within.next()) {
        (Some((at, value)), None) if *at == path => Ok(value),
        (_, _) => Err(Unencodable::OneValue(format)),
    }
}

/// Reads the value of one resource that a device answered as text or as bytes.
///
/// A missing format means text, as devices of the 1.0 era leave it out; it means bytes where the
/// model says the resource is opaque, for such a device has no reason to dress bytes up. A resource
/// of unknown type is text if it can be, bytes otherwise.
fn decode_resource(
    format: Option<ContentFormat>,
    payload: &[u8],
    data_type: Option<DataType>,
) -> Result<Value, Undecodable> {
    let value = match (format, data_type) {
        (None, Some(DataType::Opaque)) => opaque::decode(payload, DataType::Opaque)?,
        (None | Some(ContentFormat::TEXT | ContentFormat::LEGACY_TEXT), Some(data_type)) => {
            text::decode(payload, data_type)?
        }
        (Some(ContentFormat::OCTET_STREAM | LEGACY_OPAQUE), Some(data_type)) => {
            opaque::decode(payload, data_type)?
        }
        (None | Some(ContentFormat::TEXT | ContentFormat::LEGACY_TEXT), None) => {
            text_or_bytes(payload)
        }
        // What links are labelled so are those a resource holds: nobody asked what there is.
        (Some(ContentFormat::LINK_FORMAT), Some(DataType::String)) => {
            text::decode(payload, DataType::String)?
        }
        (Some(ContentFormat::LINK_FORMAT), Some(DataType::CoreLink) | None) => {
            text::decode(payload, DataType::CoreLink)?
        }
        (Some(ContentFormat::OCTET_STREAM | LEGACY_OPAQUE), None) => {
            Value::Opaque(payload.to_vec())
        }
        (Some(other), Some(_) | None) => return Err(Undecodable::UnsupportedFormat(other)),
    };
    Ok(value)
}

fn holds_one_value_only(format: ContentFormat) -> bool {
    [
        ContentFormat::TEXT,
        ContentFormat::LEGACY_TEXT,
        ContentFormat::OCTET_STREAM,
        ContentFormat::CBOR,
        ContentFormat::LINK_FORMAT,
        LEGACY_OPAQUE,
    ]
    .contains(&format)
}

fn text_or_bytes(payload: &[u8]) -> Value {
    match std::str::from_utf8(payload) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => Value::Opaque(payload.to_vec()),
    }
}
