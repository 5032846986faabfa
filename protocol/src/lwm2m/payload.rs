//! How does one resource's value travel in a payload? (LwM2M Core 1.1 section 7.4)
//!
//! Chooses between the formats; each format's bytes are its own file's.

pub mod opaque;
pub mod text;

use thiserror::Error;

use crate::coap::content::ContentFormat;
use crate::lwm2m::value::{DataType, Value};

/// Opaque as numbered by drafts of LwM2M 1.0.
const LEGACY_OPAQUE: ContentFormat = ContentFormat(1544);

/// Tells why a payload became no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Undecodable {
    /// The payload is in a format this codec has no reader for.
    #[error("payloads in Content-Format {0} are not supported")]
    UnsupportedFormat(ContentFormat),
    /// The payload is not what its format and the resource's type demand.
    #[error(transparent)]
    Malformed(#[from] Malformed),
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

/// Reads the value of one resource that a device answered.
///
/// A missing format means text, as devices of the 1.0 era leave it out; it means bytes where the
/// model says the resource is opaque, for such a device has no reason to dress bytes up. A resource
/// of unknown type is text if it can be, bytes otherwise.
pub fn decode_resource(
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

fn text_or_bytes(payload: &[u8]) -> Value {
    match std::str::from_utf8(payload) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => Value::Opaque(payload.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{Malformed, Undecodable, decode_resource, encode_resource};
    use crate::coap::content::ContentFormat;
    use crate::lwm2m::value::{DataType, Value};

    #[test]
    fn bytes_travel_as_they_are_and_the_rest_as_text() {
        let opaque = encode_resource(&Value::Opaque(vec![0, 255]));
        assert_eq!(opaque, (ContentFormat::OCTET_STREAM, vec![0, 255]));
        let boolean = encode_resource(&Value::Boolean(true));
        assert_eq!(boolean, (ContentFormat::TEXT, b"1".to_vec()));
    }

    #[test]
    fn an_answer_without_format_follows_the_model() {
        let text = |kind| decode_resource(None, b"AQI=", kind);
        assert_eq!(
            text(Some(DataType::String)),
            Ok(Value::String("AQI=".into()))
        );
        assert_eq!(
            text(Some(DataType::Opaque)),
            Ok(Value::Opaque(b"AQI=".to_vec()))
        );
        assert_eq!(text(None), Ok(Value::String("AQI=".into())));
        assert_eq!(
            decode_resource(None, &[0xff], None),
            Ok(Value::Opaque(vec![0xff]))
        );
    }

    #[test]
    fn an_answer_with_format_follows_the_format() {
        let opaque = Some(DataType::Opaque);
        for text in [ContentFormat::TEXT, ContentFormat::LEGACY_TEXT] {
            assert_eq!(
                decode_resource(Some(text), b"AQI=", opaque),
                Ok(Value::Opaque(vec![1, 2]))
            );
        }
        for bytes in [ContentFormat::OCTET_STREAM, ContentFormat(1544)] {
            let read = decode_resource(Some(bytes), b"AQI=", opaque);
            assert_eq!(read, Ok(Value::Opaque(b"AQI=".to_vec())));
            assert_eq!(
                decode_resource(Some(bytes), b"a", None),
                Ok(Value::Opaque(b"a".to_vec()))
            );
        }
        let unfit = decode_resource(Some(ContentFormat::TEXT), b"warm", Some(DataType::Float));
        let malformed = Malformed {
            data_type: DataType::Float,
        };
        assert_eq!(unfit, Err(Undecodable::Malformed(malformed)));
    }

    #[test]
    fn a_format_without_reader_is_named() {
        for format in [40, 60, 110, 112, 1542, 1543, 11542, 11543, 11544, 65535].map(ContentFormat)
        {
            for data_type in [None, Some(DataType::Integer), Some(DataType::Opaque)] {
                let read = decode_resource(Some(format), b"1", data_type);
                assert_eq!(read, Err(Undecodable::UnsupportedFormat(format)));
            }
        }
    }

    proptest! {
        #[test]
        fn a_payload_of_unknown_type_always_becomes_a_value(payload in vec(any::<u8>(), 0..64)) {
            prop_assert!(decode_resource(None, &payload, None).is_ok());
        }
    }
}
