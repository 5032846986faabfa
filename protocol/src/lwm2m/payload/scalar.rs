//! Which value does a self-describing payload contain for a resource? (LwM2M Core 1.1 appendix C)
//!
//! JSON and CBOR distinguish numbers, texts, bytes and booleans, but not all types of LwM2M. What
//! was read becomes a value once the model gives the type of the resource.

use crate::lwm2m::value::{DataType, Value};

/// An item in the payload's own types.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Boolean(bool),
    Bytes(Vec<u8>),
    /// A text that is marked as an object link.
    Link(String),
    Number(Number),
    Text(String),
    /// A number that is marked as seconds since 1970.
    Time(Number),
}

/// A number as it was written: without or with a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl Scalar {
    /// Returns the value of the type, if this is one; for a resource unknown to the model, the
    /// value of the closest type.
    ///
    /// A floating point number may be NaN or infinite, which CBOR can encode. Devices write
    /// booleans as 0 and 1, too.
    pub(super) fn into_value(self, data_type: Option<DataType>) -> Option<Value> {
        match data_type {
            Some(data_type) => self.into_typed(data_type),
            None => self.into_untyped(),
        }
    }

    fn into_typed(self, data_type: DataType) -> Option<Value> {
        match (data_type, self) {
            (DataType::Boolean, Self::Boolean(value)) => Some(Value::Boolean(value)),
            (DataType::Boolean, Self::Number(number)) => number.to_boolean().map(Value::Boolean),
            (DataType::CoreLink, Self::Text(text)) => Some(Value::CoreLink(text)),
            (DataType::Float, Self::Number(number)) => Some(Value::Float(number.widen())),
            (DataType::Integer, Self::Number(number)) => number.to_signed().map(Value::Integer),
            (DataType::ObjectLink, Self::Link(text) | Self::Text(text)) => {
                Value::parse(DataType::ObjectLink, &text).ok()
            }
            (DataType::Opaque, Self::Bytes(bytes)) => Some(Value::Opaque(bytes)),
            (DataType::String, Self::Text(text)) => Some(Value::String(text)),
            (DataType::Time, Self::Number(number) | Self::Time(number)) => {
                number.to_seconds().map(Value::Time)
            }
            (DataType::UnsignedInteger, Self::Number(number)) => {
                number.to_unsigned().map(Value::UnsignedInteger)
            }
            (
                DataType::Boolean
                | DataType::CoreLink
                | DataType::Float
                | DataType::Integer
                | DataType::ObjectLink
                | DataType::Opaque
                | DataType::String
                | DataType::Time
                | DataType::UnsignedInteger,
                _,
            ) => None,
        }
    }

    fn into_untyped(self) -> Option<Value> {
        match self {
            Self::Boolean(value) => Some(Value::Boolean(value)),
            Self::Bytes(bytes) => Some(Value::Opaque(bytes)),
            Self::Link(text) => Value::parse(DataType::ObjectLink, &text).ok(),
            Self::Number(Number::Float(number)) => Some(Value::Float(number)),
            Self::Number(Number::Integer(number)) => match i64::try_from(number) {
                Ok(number) => Some(Value::Integer(number)),
                Err(_) => u64::try_from(number).ok().map(Value::UnsignedInteger),
            },
            Self::Text(text) => Some(Value::String(text)),
            Self::Time(number) => number.to_seconds().map(Value::Time),
        }
    }
}

impl Number {
    /// Adds two numbers, if their sum is not too large; a sum of integers is an integer.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.checked_add(other).map(Self::Integer),
            (one, other) => {
                let (one, other) = (one.widen(), other.widen());
                let sum = one + other;
                let overflows = sum.is_infinite() && one.is_finite() && other.is_finite();
                (!overflows).then_some(Self::Float(sum))
            }
        }
    }

    /// Returns the number times a billion, to the nearest integer.
    pub(super) fn to_billionths(self) -> Option<i128> {
        const BILLION: i128 = 1_000_000_000;
        match self {
            Self::Integer(number) => number.checked_mul(BILLION),
            Self::Float(number) => whole((number * 1e9).round()),
        }
    }

    /// Returns the boolean of 0 or 1, which some devices write.
    fn to_boolean(self) -> Option<bool> {
        match self.to_whole()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Returns the number if it is integral and in range.
    pub(super) fn to_signed(self) -> Option<i64> {
        i64::try_from(self.to_whole()?).ok()
    }

    /// Returns the number if it is integral and in range.
    pub(super) fn to_unsigned(self) -> Option<u64> {
        u64::try_from(self.to_whole()?).ok()
    }

    /// Returns the number without its fraction if it is in range: a time has whole seconds.
    fn to_seconds(self) -> Option<i64> {
        match self {
            Self::Integer(_) => self.to_signed(),
            Self::Float(number) => Self::Float(number.floor()).to_signed(),
        }
    }

    fn to_whole(self) -> Option<i128> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Float(number) => whole(number),
        }
    }

    fn widen(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

/// Returns a number without fraction as an integer, if it is small enough for any use.
fn whole(number: f64) -> Option<i128> {
    const BOUND: f64 = 1e30;
    (number.fract() == 0.0 && number.abs() < BOUND).then_some(number as i128)
}

#[cfg(test)]
mod tests {
    use super::{Number, Scalar};
    use crate::lwm2m::value::{DataType, ObjectLink, Value};

    #[test]
    fn a_scalar_becomes_a_value_of_the_type() {
        let link = Value::ObjectLink(ObjectLink {
            object: 3,
            instance: 65_535,
        });
        let text = || "3:65535".to_owned();
        let cases = [
            (Scalar::Boolean(true), Value::Boolean(true)),
            (integer(0), Value::Boolean(false)),
            (integer(1), Value::Boolean(true)),
            (float(0.0), Value::Boolean(false)),
            (float(1.0), Value::Boolean(true)),
            (Scalar::Bytes(vec![0, 255]), Value::Opaque(vec![0, 255])),
            (Scalar::Link(text()), link.clone()),
            (Scalar::Text(text()), link),
            (Scalar::Text(text()), Value::String(text())),
            (Scalar::Text(text()), Value::CoreLink(text())),
            (integer(i64::MIN.into()), Value::Integer(i64::MIN)),
            (float(-3.0), Value::Integer(-3)),
            (float(-0.0), Value::Integer(0)),
            (integer(u64::MAX.into()), Value::UnsignedInteger(u64::MAX)),
            (float(2.0_f64.powi(63)), Value::UnsignedInteger(1 << 63)),
            (integer(1_700_000_000), Value::Time(1_700_000_000)),
            (Scalar::Time(Number::Integer(-1)), Value::Time(-1)),
            (float(1_700_000_000.9), Value::Time(1_700_000_000)),
            (integer(7), Value::Float(7.0)),
            (float(0.1), Value::Float(0.1)),
        ];
        for (scalar, value) in cases {
            let read = scalar.clone().into_value(Some(value.data_type()));
            assert_eq!(read, Some(value), "{scalar:?}");
        }
    }

    #[test]
    fn a_scalar_of_another_type_or_out_of_range_is_no_value() {
        let cases = [
            (DataType::Boolean, integer(2)),
            (DataType::Boolean, integer(-1)),
            (DataType::Boolean, float(0.5)),
            (DataType::Boolean, float(f64::NAN)),
            (DataType::Boolean, Scalar::Time(Number::Integer(1))),
            (DataType::Boolean, Scalar::Text("true".into())),
            (DataType::Integer, integer(i128::from(i64::MAX) + 1)),
            (DataType::Integer, float(9_223_372_036_854_775_808.0)),
            (DataType::Integer, float(1.5)),
            (DataType::Integer, float(f64::NAN)),
            (DataType::Integer, float(f64::INFINITY)),
            (DataType::Integer, Scalar::Text("1".into())),
            (DataType::Integer, Scalar::Time(Number::Integer(1))),
            (DataType::UnsignedInteger, integer(-1)),
            (DataType::UnsignedInteger, float(2.0_f64.powi(64))),
            (DataType::Time, float(1e19)),
            (DataType::Time, float(f64::NAN)),
            (DataType::Time, Scalar::Text("2026-11-21T00:00:00Z".into())),
            (DataType::Float, Scalar::Boolean(true)),
            (DataType::Opaque, Scalar::Text("AQI".into())),
            (DataType::String, Scalar::Bytes(vec![])),
            (DataType::String, Scalar::Link("1:1".into())),
            (DataType::CoreLink, integer(0)),
            (DataType::ObjectLink, Scalar::Link("1".into())),
            (DataType::ObjectLink, Scalar::Link("65536:0".into())),
        ];
        for (data_type, scalar) in cases {
            let read = scalar.clone().into_value(Some(data_type));
            assert_eq!(read, None, "{data_type} {scalar:?}");
        }
    }

    #[test]
    fn a_resource_without_type_takes_that_of_its_value() {
        let cases = [
            (Scalar::Boolean(false), Some(Value::Boolean(false))),
            (Scalar::Bytes(vec![1]), Some(Value::Opaque(vec![1]))),
            (
                Scalar::Text("1:1".into()),
                Some(Value::String("1:1".into())),
            ),
            (integer(-5), Some(Value::Integer(-5))),
            (integer(1 << 63), Some(Value::UnsignedInteger(1 << 63))),
            (integer(1 << 64), None),
            (integer(-1 << 64), None),
            (float(21.0), Some(Value::Float(21.0))),
            (Scalar::Link("x".into()), None),
            (Scalar::Time(Number::Integer(5)), Some(Value::Time(5))),
            (Scalar::Time(Number::Float(-0.5)), Some(Value::Time(-1))),
        ];
        for (scalar, value) in cases {
            assert_eq!(scalar.clone().into_value(None), value, "{scalar:?}");
        }
    }

    #[test]
    fn a_float_may_be_nan_or_infinite() {
        for data_type in [Some(DataType::Float), None] {
            let read = float(f64::NAN).into_value(data_type);
            assert!(matches!(read, Some(Value::Float(number)) if number.is_nan()));
            for number in [f64::INFINITY, f64::NEG_INFINITY] {
                assert_eq!(
                    float(number).into_value(data_type),
                    Some(Value::Float(number))
                );
            }
        }
    }

    #[test]
    fn numbers_add_up_and_do_not_overflow() {
        let one = Number::Integer(1);
        assert_eq!(one.plus(Number::Integer(2)), Some(Number::Integer(3)));
        assert_eq!(one.plus(Number::Float(0.5)), Some(Number::Float(1.5)));
        assert_eq!(Number::Integer(i128::MAX).plus(one), None);
        let most = Number::Float(f64::MAX);
        assert_eq!(most.plus(most), None);
        let infinite = Number::Float(f64::INFINITY);
        assert_eq!(infinite.plus(one), Some(infinite));
        assert_eq!(Number::Integer(i128::MAX).to_billionths(), None);
        assert_eq!(Number::Float(f64::MAX).to_billionths(), None);
        assert_eq!(Number::Float(-0.5).to_billionths(), Some(-500_000_000));
    }

    fn integer(number: i128) -> Scalar {
        Scalar::Number(Number::Integer(number))
    }

    fn float(number: f64) -> Scalar {
        Scalar::Number(Number::Float(number))
    }
}
