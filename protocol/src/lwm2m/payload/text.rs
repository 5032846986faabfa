//! How is a value encoded as plain text? (LwM2M Core 1.1 section 7.4.1, text/plain)

use super::MalformedValue;
use crate::lwm2m::value::{DataType, Value};

/// Writes a value as a device expects it: booleans as 0 and 1, times as seconds since 1970, bytes
/// as base64, the others in their text form.
pub fn encode(value: &Value) -> Vec<u8> {
    match value {
        Value::Boolean(true) => b"1".to_vec(),
        Value::Boolean(false) => b"0".to_vec(),
        Value::Time(seconds) => seconds.to_string().into_bytes(),
        Value::CoreLink(_)
        | Value::Float(_)
        | Value::Integer(_)
        | Value::ObjectLink(_)
        | Value::Opaque(_)
        | Value::String(_)
        | Value::UnsignedInteger(_) => value.to_text().into_bytes(),
    }
}

/// Reads a value of the given type.
///
/// The words true and false are accepted for booleans, too, because some devices write them.
pub fn decode(bytes: &[u8], data_type: DataType) -> Result<Value, MalformedValue> {
    let malformed = MalformedValue { data_type };
    let text = std::str::from_utf8(bytes).map_err(|_| malformed)?;
    match data_type {
        DataType::Time => text.parse().map(Value::Time).map_err(|_| malformed),
        DataType::Boolean
        | DataType::CoreLink
        | DataType::Float
        | DataType::Integer
        | DataType::ObjectLink
        | DataType::Opaque
        | DataType::String
        | DataType::UnsignedInteger => Value::parse(data_type, text).map_err(|_| malformed),
    }
}

/// Whether a text that is no value is NaN, infinity, or a number that rounds to infinity.
pub(super) fn is_not_finite(bytes: &[u8]) -> bool {
    let number = std::str::from_utf8(bytes).ok().map(str::parse::<f64>);
    matches!(number, Some(Ok(number)) if !number.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

    use super::{decode, encode};
    use crate::lwm2m::payload::MalformedValue;
    use crate::lwm2m::value::{DataType, ObjectLink, Value};

    #[test]
    fn each_type_has_its_text() {
        let cases = [
            (Value::Boolean(true), "1"),
            (Value::Boolean(false), "0"),
            (Value::Time(1_795_260_873), "1795260873"),
            (Value::Time(-1), "-1"),
            (Value::Integer(-7), "-7"),
            (Value::UnsignedInteger(u64::MAX), "18446744073709551615"),
            (Value::Float(21.5), "21.5"),
            (Value::Opaque(vec![1, 2]), "AQI="),
            (
                Value::ObjectLink(ObjectLink {
                    object: 65535,
                    instance: 65535,
                }),
                "65535:65535",
            ),
            (Value::String("Anjay".into()), "Anjay"),
            (Value::String(String::new()), ""),
            (Value::CoreLink("</3/0>".into()), "</3/0>"),
        ];
        for (value, text) in cases {
            assert_eq!(encode(&value), text.as_bytes());
            assert_eq!(decode(text.as_bytes(), value.data_type()), Ok(value));
        }
    }

    #[test]
    fn a_boolean_spelled_out_is_understood() {
        assert_eq!(decode(b"true", DataType::Boolean), Ok(Value::Boolean(true)));
        assert_eq!(
            decode(b"false", DataType::Boolean),
            Ok(Value::Boolean(false))
        );
    }

    #[test]
    fn bytes_that_are_no_such_value_are_malformed() {
        let cases: [(DataType, &[u8]); 7] = [
            (DataType::String, &[0xff]),
            (DataType::CoreLink, &[0xc3]),
            (DataType::Integer, b""),
            (DataType::Float, b"nan"),
            (DataType::Time, b"2026-11-21T00:00:00Z"),
            (DataType::Opaque, b"AQI=="),
            (DataType::ObjectLink, b"3"),
        ];
        for (data_type, bytes) in cases {
            assert_eq!(decode(bytes, data_type), Err(MalformedValue { data_type }));
        }
    }

    proptest! {
        #[test]
        fn integers_survive(number in any::<i64>()) {
            for value in [Value::Integer(number), Value::Time(number)] {
                prop_assert_eq!(decode(&encode(&value), value.data_type()), Ok(value));
            }
        }

        #[test]
        fn finite_numbers_survive(number in any::<f64>().prop_filter("f", |n| n.is_finite())) {
            let value = Value::Float(number);
            prop_assert_eq!(decode(&encode(&value), DataType::Float), Ok(value));
        }

        #[test]
        fn any_bytes_are_read_or_malformed(bytes in vec(any::<u8>(), 0..40)) {
            let types = [DataType::Boolean, DataType::Time, DataType::Opaque, DataType::Float];
            for data_type in types {
                if let Ok(value) = decode(&bytes, data_type) {
                    prop_assert_eq!(decode(&encode(&value), data_type), Ok(value));
                }
            }
        }
    }
}
