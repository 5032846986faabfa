//! How are the values of resources encoded in a payload? (LwM2M Core 1.1 section 7.4)
//!
//! Chooses between the formats; each format has a file of its own.

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
use std::fmt;

use thiserror::Error;

use self::samples::{MalformedSamples, ReadSamples};
use crate::coap::content::ContentFormat;
use crate::lwm2m::model::{self, Instances, Object};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};

/// The values read at and below a path, of resources and of resource instances, in the order of the
/// tree. A resource has either one value or several instances, never both.
pub type Reading = BTreeMap<Path, Value>;

/// The opaque format as numbered by drafts of LwM2M 1.0.
const LEGACY_OPAQUE: ContentFormat = ContentFormat(1544);

/// Bounds the samples of one payload: a day of one value every half minute, and a payload of the
/// shortest records does not grow to many times its size. A longer one is refused.
pub const SAMPLES_MAX: usize = 4_096;

/// What a decoder needs to know of the objects in a payload.
///
/// A function from paths to types is one, too; it takes objects from the registry.
pub trait Model {
    /// Returns the type of the resource a path is or lies in.
    fn type_of(&self, path: Path) -> Option<DataType>;

    /// Returns how often an object may be present; none for an unknown object.
    fn instances_of(&self, object: u16) -> Option<Instances>;
}

/// A value of a path, and when it was measured, if the payload contains that.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The resource or resource instance.
    pub path: Path,
    /// The value.
    pub value: Value,
    /// When it was measured; none if the payload does not contain that.
    pub measured: Option<Measured>,
}

/// What was read of a payload, at least one sample unless there is nothing in the payload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The samples in the order of the payload.
    pub samples: Vec<Sample>,
    /// The values that cannot be read.
    pub unreadable: Vec<UnreadableValue>,
}

/// A value of a payload that cannot be read, although others can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadableValue {
    /// Its path, where it is known.
    pub path: Option<Path>,
    /// Why it cannot be read.
    pub reason: Undecodable,
}

/// When a value was measured (RFC 8428 section 4.5.3), in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Milliseconds after the receipt of the payload; before it, if negative.
    Relative(i64),
    /// Milliseconds after 1970-01-01T00:00:00Z.
    Absolute(i64),
}

/// Which paths a payload may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every path: a Send, a composite read.
    All,
    /// A path and those below it.
    Within(Path),
}

/// Why a payload could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undecodable {
    /// The payload is in a format without a decoder.
    #[error("payloads in Content-Format {0} are not supported")]
    UnsupportedFormat(ContentFormat),
    /// The payload has one value, but those of an object or an instance were requested.
    #[error("payloads in Content-Format {0} hold one value only")]
    OneValue(ContentFormat),
    /// The format has no names, and the context does not tell which resource it is.
    #[error("payloads in Content-Format {0} do not name a resource")]
    Nameless(ContentFormat),
    /// The format of the payload is unknown.
    #[error("the payload has no Content-Format")]
    NoFormat,
    /// The payload does not match its format and the resource's type.
    #[error(transparent)]
    Malformed(#[from] MalformedValue),
    /// The payload is not valid TLV, or not for the requested path.
    #[error("the TLV payload is malformed: {0}")]
    MalformedTlv(#[from] tlv::MalformedTlv),
    /// The payload has more samples than allowed.
    #[error("the payload has more than {SAMPLES_MAX} samples")]
    TooMany,
    /// The payload does not match its format of named values.
    #[error("the payload in Content-Format {format} is malformed: {reason}")]
    MalformedSamples {
        /// The format of the payload.
        format: ContentFormat,
        /// What is wrong with it.
        reason: MalformedSamples,
    },
}

/// The bytes are not a value of the resource's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the payload is not a value of type {data_type}")]
pub struct MalformedValue {
    /// The expected type.
    pub data_type: DataType,
}

/// Why values could not be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unencodable {
    /// The format has no encoder.
    #[error("writing payloads in Content-Format {0} is not supported")]
    UnsupportedFormat(ContentFormat),
    /// The format holds one value, and there are several or they are at other paths.
    #[error("payloads in Content-Format {0} hold one value only")]
    OneValue(ContentFormat),
    /// The format cannot represent the value.
    #[error("Content-Format {format} cannot represent the value of {path}")]
    Value {
        /// The format.
        format: ContentFormat,
        /// The path of the value.
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

impl fmt::Display for UnreadableValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reason, self.path) {
            (Undecodable::MalformedTlv(reason), _) => reason.fmt(f),
            (Undecodable::MalformedSamples { reason, .. }, Some(path)) if !reason.names_path() => {
                write!(f, "the value of {path} cannot be read, because {reason}")
            }
            (Undecodable::MalformedSamples { reason, .. }, _) => reason.fmt(f),
            (reason, _) => reason.fmt(f),
        }
    }
}

impl Scope {
    /// Returns whether the payload may contain the path.
    pub fn contains(self, path: Path) -> bool {
        match self {
            Self::All => true,
            Self::Within(within) => within.contains(path),
        }
    }
}

/// Returns the format for a single value of the type.
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

/// Encodes a value for a device: bytes unchanged, everything else as text.
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

/// Reads a device's response to a read of a path, or a notification: the newest value of each path.
///
/// Every path of the reading is the requested one or below it.
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

/// Orders samples from old to new, as far as that is known without a clock: a time relative to the
/// receipt, like a missing time, counts as newer than an absolute one.
fn age_rank(measured: Option<Measured>) -> (u8, i64) {
    match measured {
        Some(Measured::Absolute(at_ms)) => (0, at_ms),
        Some(Measured::Relative(after_ms)) => (1, after_ms),
        None => (1, 0),
    }
}

/// Reads a payload in any format, in the order of the payload; every value must be readable.
pub fn decode_samples(
    format: Option<ContentFormat>,
    scope: Scope,
    payload: &[u8],
    model: &dyn Model,
) -> Result<Vec<Sample>, Undecodable> {
    let decoded = decode_readable(format, scope, payload, model)?;
    match decoded.unreadable.first() {
        Some(unreadable) => Err(unreadable.reason),
        None => Ok(decoded.samples),
    }
}

/// Reads the values of a payload that can be read, in any format and in the order of the payload,
/// and names the others. A payload of which no value can be read is undecodable.
///
/// A missing format means text for a resource, or bytes if the model says it is opaque, and TLV for
/// several values, because devices that omit the format know no other one for them.
pub fn decode_readable(
    format: Option<ContentFormat>,
    scope: Scope,
    payload: &[u8],
    model: &dyn Model,
) -> Result<Decoded, Undecodable> {
    match (format, scope) {
        (Some(format @ ContentFormat::SENML_JSON), _) => {
            readable(format, senml::decode_json(scope, payload, model))
        }
        (Some(format @ ContentFormat::SENML_CBOR), _) => {
            readable(format, senml::decode_cbor(scope, payload, model))
        }
        (Some(format @ (ContentFormat::LWM2M_JSON | ContentFormat::LEGACY_JSON)), _) => {
            readable(format, lwm2m_json::decode(scope, payload, model))
        }
        (Some(format @ ContentFormat::LWM2M_CBOR), _) => {
            readable(format, lwm2m_cbor::decode(scope, payload, model))
        }
        (Some(format), Scope::All) if is_nameless(format) => Err(Undecodable::Nameless(format)),
        (Some(format), Scope::All) => Err(Undecodable::UnsupportedFormat(format)),
        (None, Scope::All) => Err(Undecodable::NoFormat),
        (_, Scope::Within(path)) => decode_nameless(format, path, payload, model),
    }
}

/// Reads a payload in a format without names.
fn decode_nameless(
    format: Option<ContentFormat>,
    path: Path,
    payload: &[u8],
    model: &dyn Model,
) -> Result<Decoded, Undecodable> {
    let in_resource = path.to_resource().is_some();
    match format {
        Some(ContentFormat::LWM2M_TLV | ContentFormat::LEGACY_TLV) => {
            decode_tlv(path, payload, model)
        }
        None if !in_resource => decode_tlv(path, payload, model),
        Some(format) if holds_one_value_only(format) && !in_resource => {
            Err(Undecodable::OneValue(format))
        }
        Some(format @ ContentFormat::CBOR) => readable(format, cbor::decode(path, payload, model)),
        Some(_) | None => {
            let value = decode_resource(format, payload, model.type_of(path));
            let value = value.map_err(|reason| {
                if matches!(reason, Undecodable::Malformed(_)) && text::is_not_finite(payload) {
                    let format = format.unwrap_or(ContentFormat::TEXT);
                    return misread(format, MalformedSamples::NotFinite(path));
                }
                reason
            })?;
            Ok(Decoded {
                samples: vec![timeless(path, value)],
                unreadable: Vec::new(),
            })
        }
    }
}

/// Returns what was read of a payload of named values.
fn readable(
    format: ContentFormat,
    read: Result<ReadSamples, MalformedSamples>,
) -> Result<Decoded, Undecodable> {
    let read = read.map_err(|reason| misread(format, reason))?;
    let unreadable = read.unreadable.into_iter();
    let unreadable = unreadable.map(|(path, reason)| UnreadableValue {
        path,
        reason: misread(format, reason),
    });
    unless_nothing_is_readable(read.samples, unreadable.collect())
}

/// Returns what was read of a payload, unless no value of it can be read.
fn unless_nothing_is_readable(
    samples: Vec<Sample>,
    unreadable: Vec<UnreadableValue>,
) -> Result<Decoded, Undecodable> {
    match unreadable.first() {
        Some(first) if samples.is_empty() => Err(first.reason),
        Some(_) | None => Ok(Decoded {
            samples,
            unreadable,
        }),
    }
}

fn misread(format: ContentFormat, reason: MalformedSamples) -> Undecodable {
    if reason == MalformedSamples::TooMany {
        Undecodable::TooMany
    } else {
        Undecodable::MalformedSamples { format, reason }
    }
}

fn is_nameless(format: ContentFormat) -> bool {
    let tlv = [ContentFormat::LWM2M_TLV, ContentFormat::LEGACY_TLV];
    tlv.contains(&format) || holds_one_value_only(format)
}

fn decode_tlv(path: Path, payload: &[u8], model: &dyn Model) -> Result<Decoded, Undecodable> {
    let (values, unreadable) = tlv::decode_readable(path, payload, model)?;
    let samples = values.into_iter();
    let samples = samples.map(|(path, value)| timeless(path, value)).collect();
    let unreadable = unreadable.into_iter().map(|reason| UnreadableValue {
        path: reason.path(),
        reason: reason.into(),
    });
    unless_nothing_is_readable(samples, unreadable.collect())
}

fn timeless(path: Path, value: Value) -> Sample {
    Sample {
        path,
        value,
        measured: None,
    }
}

/// Encodes the values at and below a path for a request to that path; values at other paths are
/// left out.
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

/// Encodes values at any paths for a composite write (LwM2M Core 1.1 section 6.3.9).
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

/// Encodes the paths of a composite read (LwM2M Core 1.1 section 6.3.8).
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

/// Reads the value of one resource that a device sent as text or as bytes.
///
/// A missing format means text, because devices of the 1.0 era omit it; it means bytes if the model
/// says the resource is opaque, because such a device has no reason to encode them. A resource of
/// unknown type is text if it is valid UTF-8, bytes otherwise.
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
        // A link format here is the value of a resource: no discovery was requested.
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
