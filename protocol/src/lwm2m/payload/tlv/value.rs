//! How is one value encoded in an entry of a TLV payload? (LwM2M Core 1.1 appendix C)
//!
//! Numbers are big-endian. Devices pad integers differently, so any length up to 8 bytes is read.

use crate::lwm2m::value::{DataType, ObjectLink, Value};

/// Returns the shortest bytes for a value: integers in 1, 2, 4 or 8 bytes, floating point numbers
/// in 4 if nothing is lost and in 8 otherwise.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    match value {
        Value::Boolean(value) => vec![u8::from(*value)],
        Value::CoreLink(text) | Value::String(text) => text.clone().into_bytes(),
        Value::Float(number) => float_bytes(*number),
        Value::Integer(number) | Value::Time(number) => integer_bytes(*number),
        Value::ObjectLink(link) => {
            let ids = [link.object.to_be_bytes(), link.instance.to_be_bytes()];
            ids.concat()
        }
        Value::Opaque(bytes) => bytes.clone(),
        Value::UnsignedInteger(number) => unsigned_bytes(*number),
    }
}

/// Reads bytes as a value of the type, if they are one; a floating point number may be NaN or
/// infinite.
pub(super) fn decode(bytes: &[u8], data_type: DataType) -> Option<Value> {
    let text = |bytes| std::str::from_utf8(bytes).ok().map(str::to_owned);
    match data_type {
        DataType::Boolean => match bytes {
            [0] => Some(Value::Boolean(false)),
            [1] => Some(Value::Boolean(true)),
            _ => None,
        },
        DataType::CoreLink => text(bytes).map(Value::CoreLink),
        DataType::Float => read_float(bytes).map(Value::Float),
        DataType::Integer => read_integer(bytes).map(Value::Integer),
        DataType::ObjectLink => read_link(bytes).map(Value::ObjectLink),
        DataType::Opaque => Some(Value::Opaque(bytes.to_vec())),
        DataType::String => text(bytes).map(Value::String),
        DataType::Time => read_integer(bytes).map(Value::Time),
        DataType::UnsignedInteger => read_unsigned(bytes).map(Value::UnsignedInteger),
    }
}

fn integer_bytes(number: i64) -> Vec<u8> {
    if let Ok(number) = i8::try_from(number) {
        number.to_be_bytes().to_vec()
    } else if let Ok(number) = i16::try_from(number) {
        number.to_be_bytes().to_vec()
    } else if let Ok(number) = i32::try_from(number) {
        number.to_be_bytes().to_vec()
    } else {
        number.to_be_bytes().to_vec()
    }
}

/// Returns as many bytes as a signed number of the same value has: some devices read every number
/// as signed, and would take one whose first bit is set for a negative one.
fn unsigned_bytes(number: u64) -> Vec<u8> {
    match i64::try_from(number) {
        Ok(number) => integer_bytes(number),
        Err(_) => number.to_be_bytes().to_vec(),
    }
}

fn float_bytes(number: f64) -> Vec<u8> {
    let single = number as f32;
    if f64::from(single).to_bits() == number.to_bits() {
        single.to_be_bytes().to_vec()
    } else {
        number.to_be_bytes().to_vec()
    }
}

fn read_integer(bytes: &[u8]) -> Option<i64> {
    let negative = bytes.first()? & 0x80 != 0;
    let padding = if negative { [0xff; 8] } else { [0; 8] };
    padded(bytes, padding).map(i64::from_be_bytes)
}

fn read_unsigned(bytes: &[u8]) -> Option<u64> {
    bytes.first()?;
    padded(bytes, [0; 8]).map(u64::from_be_bytes)
}

/// Copies the bytes to the end of the padding, if they fit.
fn padded(bytes: &[u8], mut padding: [u8; 8]) -> Option<[u8; 8]> {
    let start = padding.len().checked_sub(bytes.len())?;
    padding.get_mut(start..)?.copy_from_slice(bytes);
    Some(padding)
}

fn read_float(bytes: &[u8]) -> Option<f64> {
    let single = bytes.try_into().ok().map(f32::from_be_bytes).map(f64::from);
    single.or_else(|| bytes.try_into().ok().map(f64::from_be_bytes))
}

fn read_link(bytes: &[u8]) -> Option<ObjectLink> {
    let ids: [u8; 4] = bytes.try_into().ok()?;
    let [object_high, object_low, instance_high, instance_low] = ids;
    Some(ObjectLink {
        object: u16::from_be_bytes([object_high, object_low]),
        instance: u16::from_be_bytes([instance_high, instance_low]),
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{decode, encode};
    use crate::lwm2m::value::{DataType, ObjectLink, Value};

    #[test]
    fn each_value_has_its_shortest_bytes() {
        let link = ObjectLink {
            object: 66,
            instance: 1,
        };
        let cases: [(Value, &[u8]); 21] = [
            (Value::Boolean(true), &[1]),
            (Value::Boolean(false), &[0]),
            (Value::Integer(0), &[0]),
            (Value::Integer(127), &[0x7f]),
            (Value::Integer(128), &[0, 0x80]),
            (Value::Integer(-128), &[0x80]),
            (Value::Integer(-129), &[0xff, 0x7f]),
            (Value::Integer(86_400), &[0, 1, 0x51, 0x80]),
            (Value::Integer(1 << 31), &[0, 0, 0, 0, 0x80, 0, 0, 0]),
            (Value::Time(1_367_491_215), &[0x51, 0x82, 0x42, 0x8f]),
            (Value::UnsignedInteger(127), &[127]),
            (Value::UnsignedInteger(255), &[0, 255]),
            (Value::UnsignedInteger(65_535), &[0, 0, 255, 255]),
            (
                Value::UnsignedInteger(1 << 31),
                &[0, 0, 0, 0, 0x80, 0, 0, 0],
            ),
            (Value::UnsignedInteger(u64::MAX), &[255; 8]),
            (Value::Float(21.5), &[0x41, 0xac, 0, 0]),
            (
                Value::Float(0.1),
                &[0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a],
            ),
            (Value::ObjectLink(link), &[0, 66, 0, 1]),
            (Value::Opaque(vec![1, 2]), &[1, 2]),
            (Value::String("é".into()), &[0xc3, 0xa9]),
            (Value::CoreLink(String::new()), &[]),
        ];
        for (value, bytes) in cases {
            assert_eq!(encode(&value), bytes, "{value:?}");
            assert_eq!(decode(bytes, value.data_type()), Some(value));
        }
    }

    #[test]
    fn a_number_in_more_bytes_than_it_needs_is_read() {
        let integer = |bytes: &[u8]| decode(bytes, DataType::Integer);
        assert_eq!(integer(&[0, 5]), Some(Value::Integer(5)));
        assert_eq!(integer(&[0, 0, 5]), Some(Value::Integer(5)));
        assert_eq!(integer(&[0xff, 0xff, 0xff]), Some(Value::Integer(-1)));
        assert_eq!(integer(&[0xff; 8]), Some(Value::Integer(-1)));
        let unsigned = decode(&[0, 0, 0x80], DataType::UnsignedInteger);
        assert_eq!(unsigned, Some(Value::UnsignedInteger(128)));
        let double = decode(&21.5_f64.to_be_bytes(), DataType::Float);
        assert_eq!(double, Some(Value::Float(21.5)));
    }

    #[test]
    fn nan_and_infinity_are_numbers() {
        for bytes in [&f32::NAN.to_be_bytes()[..], &f64::NAN.to_be_bytes()] {
            let read = decode(bytes, DataType::Float);
            assert!(matches!(read, Some(Value::Float(number)) if number.is_nan()));
        }
        let infinite = decode(&f32::INFINITY.to_be_bytes(), DataType::Float);
        assert_eq!(infinite, Some(Value::Float(f64::INFINITY)));
    }

    #[test]
    fn bytes_that_are_no_such_value_are_none() {
        let cases: [(DataType, &[&[u8]]); 8] = [
            (DataType::Boolean, &[&[], &[2], &[0, 1]]),
            (DataType::CoreLink, &[&[0xc3]]),
            (DataType::Float, &[&[], &[0; 3], &[0; 5], &[0; 9]]),
            (DataType::Integer, &[&[], &[0; 9]]),
            (DataType::ObjectLink, &[&[], &[0; 3], &[0; 5]]),
            (DataType::String, &[&[0xff]]),
            (DataType::Time, &[&[], &[0; 9]]),
            (DataType::UnsignedInteger, &[&[], &[0; 9]]),
        ];
        for (data_type, unfit) in cases {
            for bytes in unfit {
                assert_eq!(decode(bytes, data_type), None, "{data_type} {bytes:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn integers_survive_in_1_2_4_or_8_bytes(number in any::<i64>(), shift in 0..64_u32) {
            let value = Value::Integer(number >> shift);
            let bytes = encode(&value);
            prop_assert!(matches!(bytes.len(), 1 | 2 | 4 | 8));
            prop_assert_eq!(decode(&bytes, DataType::Integer), Some(value));
        }

        #[test]
        fn unsigned_integers_survive(number in any::<u64>(), shift in 0..64_u32) {
            let value = Value::UnsignedInteger(number >> shift);
            prop_assert_eq!(decode(&encode(&value), DataType::UnsignedInteger), Some(value));
        }

        #[test]
        fn floating_point_numbers_survive(number in any::<f64>(), single in any::<f32>()) {
            for number in [number, f64::from(single)] {
                let read = decode(&encode(&Value::Float(number)), DataType::Float);
                let survives = |read: f64| read == number || (read.is_nan() && number.is_nan());
                prop_assert!(matches!(read, Some(Value::Float(read)) if survives(read)));
            }
        }

        #[test]
        fn any_bytes_are_a_value_or_none(bytes in vec(any::<u8>(), 0..12)) {
            let types = [
                DataType::Boolean,
                DataType::Integer,
                DataType::ObjectLink,
                DataType::String,
                DataType::Time,
                DataType::UnsignedInteger,
            ];
            for data_type in types {
                if let Some(value) = decode(&bytes, data_type) {
                    prop_assert_eq!(decode(&encode(&value), data_type), Some(value));
                }
            }
        }
    }
}
