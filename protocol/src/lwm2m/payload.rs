//! How do the values of resources travel in a payload? (LwM2M Core 1.1 section 7.4)
//!
//! Chooses between the formats; each format's bytes are its own file's.

pub mod opaque;
#[cfg(test)]
mod tests;
pub mod text;
pub mod tlv;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::coap::content::ContentFormat;
use crate::lwm2m::model::{Instances, Resource};
use crate::lwm2m::path::Path;
use crate::lwm2m::value::{DataType, Value};

/// What was read at and below a path: the values of resources and of resource instances, in the
/// order of the tree. A resource has either one value or several instances, never both.
pub type Reading = BTreeMap<Path, Value>;

/// Opaque as numbered by drafts of LwM2M 1.0.
const LEGACY_OPAQUE: ContentFormat = ContentFormat(1544);

/// Tells why a payload became no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undecodable {
    /// The payload is in a format this codec has no reader for.
    #[error("payloads in Content-Format {0} are not supported")]
    UnsupportedFormat(ContentFormat),
    /// The payload holds one value, and was to hold those of an object or an instance.
    #[error("payloads in Content-Format {0} hold one value only")]
    OneValue(ContentFormat),
    /// The payload is not what its format and the resource's type demand.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The payload is not TLV, or not that of what was asked for.
    #[error("the TLV payload is malformed: {0}")]
    MalformedTlv(#[from] tlv::Malformed),
}

/// Tells that bytes are not a value of the resource's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the payload is not a value of type {data_type}")]
pub struct Malformed {
    /// The type the bytes should have been of.
    pub data_type: DataType,
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

/// Returns the format to ask for when a path is read or observed; none if that is best left to the
/// device.
///
/// One value is asked for as text or as bytes, which every device has and few announce. Several
/// are asked for as TLV under its registered number, unless the device announces formats and TLV
/// only under the number of the drafts, or not at all.
pub fn accept_for(
    path: Path,
    resource: Option<&Resource>,
    announced: &[u16],
) -> Option<ContentFormat> {
    if holds_one_value(path, resource) {
        return resource.and_then(Resource::data_type).map(format_of);
    }
    let announces = |format: &ContentFormat| announced.contains(&format.0);
    if announced.is_empty() {
        Some(ContentFormat::LWM2M_TLV)
    } else {
        let readable = [ContentFormat::LWM2M_TLV, ContentFormat::LEGACY_TLV];
        readable.into_iter().find(announces)
    }
}

/// Tells whether a path holds one value, as far as the model knows.
fn holds_one_value(path: Path, resource: Option<&Resource>) -> bool {
    let multiple = resource.is_some_and(|resource| resource.instances() == Instances::Multiple);
    path.is_resource_instance() || (path.is_resource() && !multiple)
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

/// Reads what a device answered when a path was read, or notifies of one.
///
/// Every path of the reading is the one asked for or lies below it. A missing format means text for
/// a resource, or bytes where the model says it is opaque, and TLV for what holds several values,
/// as devices that leave the format out know no other for them.
pub fn decode(
    format: Option<ContentFormat>,
    path: Path,
    payload: &[u8],
    type_of: impl Fn(Path) -> Option<DataType>,
) -> Result<Reading, Undecodable> {
    let in_resource = path.to_resource().is_some();
    match format {
        Some(ContentFormat::LWM2M_TLV | ContentFormat::LEGACY_TLV) => {
            Ok(tlv::decode(path, payload, type_of)?)
        }
        None if !in_resource => Ok(tlv::decode(path, payload, type_of)?),
        Some(format) if holds_one_value_only(format) && !in_resource => {
            Err(Undecodable::OneValue(format))
        }
        Some(_) | None => {
            let value = decode_resource(format, payload, type_of(path))?;
            Ok(Reading::from([(path, value)]))
        }
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
