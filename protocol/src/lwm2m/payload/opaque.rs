//! How are bytes sent unchanged? (LwM2M Core 1.1 section 7.4.2, application/octet-stream)

use super::MalformedValue;
use crate::lwm2m::value::{DataType, Value};

/// Writes a value as plain bytes; types other than opaque and text as their text form.
pub fn encode(value: &Value) -> Vec<u8> {
    match value {
        Value::Opaque(bytes) => bytes.clone(),
        Value::CoreLink(text) | Value::String(text) => text.clone().into_bytes(),
        Value::Boolean(_)
        | Value::Float(_)
        | Value::Integer(_)
        | Value::ObjectLink(_)
        | Value::Time(_)
        | Value::UnsignedInteger(_) => super::text::encode(value),
    }
}

/// Reads plain bytes as a value of the given type.
///
/// The format is for opaque resources; UTF-8 bytes may also be the text form of another type, to
/// support devices that label everything as bytes.
pub fn decode(bytes: &[u8], data_type: DataType) -> Result<Value, MalformedValue> {
    match data_type {
        DataType::Opaque => Ok(Value::Opaque(bytes.to_vec())),
        DataType::Boolean
        | DataType::CoreLink
        | DataType::Float
        | DataType::Integer
        | DataType::ObjectLink
        | DataType::String
        | DataType::Time
        | DataType::UnsignedInteger => super::text::decode(bytes, data_type),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{decode, encode};
    use crate::lwm2m::payload::MalformedValue;
    use crate::lwm2m::value::{DataType, Value};

    #[test]
    fn other_types_are_sent_as_their_text() {
        for value in [
            Value::Integer(-3),
            Value::Boolean(true),
            Value::String("é".into()),
        ] {
            assert_eq!(decode(&encode(&value), value.data_type()), Ok(value));
        }
        let malformed = MalformedValue {
            data_type: DataType::Integer,
        };
        assert_eq!(decode(&[0, 1], DataType::Integer), Err(malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_survive(bytes in vec(any::<u8>(), 0..64)) {
            let value = Value::Opaque(bytes.clone());
            prop_assert_eq!(encode(&value), bytes.clone());
            prop_assert_eq!(decode(&bytes, DataType::Opaque), Ok(value));
        }
    }
}
