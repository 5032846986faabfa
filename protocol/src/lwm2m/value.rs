//! What is a resource's value, and what is its text form? (LwM2M Core 1.1 appendix C)
//!
//! This text form is the one that callers of the service send and receive. How a value is sent to a
//! device is decided per Content-Format in `payload`.

mod time;

use std::fmt;

use thiserror::Error;

use crate::base64_text;

/// The type of a resource, from its object's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataType {
    /// True or false.
    Boolean,
    /// Links in the CoRE link format; behaves as text.
    CoreLink,
    /// A 64-bit floating point number.
    Float,
    /// A signed 64-bit integer.
    Integer,
    /// A reference to an object instance.
    ObjectLink,
    /// Bytes.
    Opaque,
    /// UTF-8 text.
    String,
    /// Seconds since 1970-01-01T00:00:00Z.
    Time,
    /// An unsigned 64-bit integer.
    UnsignedInteger,
}

/// One resource's value with its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Boolean(bool),
    /// Links in the CoRE link format, as text.
    CoreLink(String),
    /// A 64-bit floating point number.
    Float(f64),
    /// A signed 64-bit integer.
    Integer(i64),
    /// A reference to an object instance.
    ObjectLink(ObjectLink),
    /// Bytes.
    Opaque(Vec<u8>),
    /// UTF-8 text.
    String(String),
    /// Seconds since 1970-01-01T00:00:00Z.
    Time(i64),
    /// An unsigned 64-bit integer.
    UnsignedInteger(u64),
}

/// Refers to an object instance, written `object:instance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectLink {
    /// The object's number; 65535 in both fields is the null link.
    pub object: u16,
    /// The instance's number.
    pub instance: u16,
}

/// The text does not fit the resource's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not of type {data_type}: expected {}", .data_type.expectation())]
pub struct InvalidValue {
    /// The expected type.
    pub data_type: DataType,
}

impl DataType {
    /// Every type.
    pub const ALL: [Self; 9] = [
        Self::Boolean,
        Self::CoreLink,
        Self::Float,
        Self::Integer,
        Self::ObjectLink,
        Self::Opaque,
        Self::String,
        Self::Time,
        Self::UnsignedInteger,
    ];

    /// Returns the type's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::CoreLink => "CORELINK",
            Self::Float => "FLOAT",
            Self::Integer => "INTEGER",
            Self::ObjectLink => "OBJLINK",
            Self::Opaque => "OPAQUE",
            Self::String => "STRING",
            Self::Time => "TIME",
            Self::UnsignedInteger => "UNSIGNED_INTEGER",
        }
    }

    const fn expectation(self) -> &'static str {
        match self {
            Self::Boolean => "true, false, 1 or 0",
            Self::CoreLink | Self::String => "text",
            Self::Float => "a finite decimal number",
            Self::Integer => "a decimal integer of at most 64 bits",
            Self::ObjectLink => "object:instance, each from 0 to 65535",
            Self::Opaque => "standard base64",
            Self::Time => "an ISO 8601 date-time or seconds since 1970",
            Self::UnsignedInteger => "a decimal integer of at most 64 bits without sign",
        }
    }
}

impl Value {
    /// Reads a caller's text for a resource of this type.
    pub fn parse(data_type: DataType, text: &str) -> Result<Self, InvalidValue> {
        let value = match data_type {
            DataType::Boolean => parse_boolean(text).map(Self::Boolean),
            DataType::CoreLink => Some(Self::CoreLink(text.to_owned())),
            DataType::Float => parse_float(text).map(Self::Float),
            DataType::Integer => text.parse().ok().map(Self::Integer),
            DataType::ObjectLink => ObjectLink::parse(text).map(Self::ObjectLink),
            DataType::Opaque => base64_text::decode(text).ok().map(Self::Opaque),
            DataType::String => Some(Self::String(text.to_owned())),
            DataType::Time => time::parse(text).map(Self::Time),
            DataType::UnsignedInteger => text.parse().ok().map(Self::UnsignedInteger),
        };
        value.ok_or(InvalidValue { data_type })
    }

    /// Returns the type of this value.
    pub const fn data_type(&self) -> DataType {
        match self {
            Self::Boolean(_) => DataType::Boolean,
            Self::CoreLink(_) => DataType::CoreLink,
            Self::Float(_) => DataType::Float,
            Self::Integer(_) => DataType::Integer,
            Self::ObjectLink(_) => DataType::ObjectLink,
            Self::Opaque(_) => DataType::Opaque,
            Self::String(_) => DataType::String,
            Self::Time(_) => DataType::Time,
            Self::UnsignedInteger(_) => DataType::UnsignedInteger,
        }
    }

    /// Returns the text form for callers; [`Value::parse`] reads it back.
    pub fn to_text(&self) -> String {
        self.to_string()
    }
}

impl ObjectLink {
    /// Reads `object:instance`.
    pub fn parse(text: &str) -> Option<Self> {
        let (object, instance) = text.split_once(':')?;
        Some(Self {
            object: object.parse().ok()?,
            instance: instance.parse().ok()?,
        })
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ObjectLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.object, self.instance)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::CoreLink(value) | Self::String(value) => f.write_str(value),
            Self::Float(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::ObjectLink(value) => value.fmt(f),
            Self::Opaque(value) => f.write_str(&base64_text::encode(value)),
            Self::Time(value) => f.write_str(&time::text(*value)),
            Self::UnsignedInteger(value) => value.fmt(f),
        }
    }
}

fn parse_boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Reads a decimal number, with or without exponent; NaN and infinity, and numbers that round to
/// infinity, are no values of a resource.
fn parse_float(text: &str) -> Option<f64> {
    let decimal = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let number: f64 = text.bytes().all(decimal).then(|| text.parse().ok())??;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

    use super::{DataType, InvalidValue, ObjectLink, Value};

    #[test]
    fn a_fitting_text_becomes_a_value_and_is_shown_in_its_one_spelling() {
        let link = ObjectLink {
            object: 3,
            instance: 0,
        };
        let cases = [
            ("true", Value::Boolean(true), "true"),
            ("1", Value::Boolean(true), "true"),
            ("false", Value::Boolean(false), "false"),
            ("0", Value::Boolean(false), "false"),
            (
                "-9223372036854775808",
                Value::Integer(i64::MIN),
                "-9223372036854775808",
            ),
            ("007", Value::Integer(7), "7"),
            (
                "18446744073709551615",
                Value::UnsignedInteger(u64::MAX),
                "18446744073709551615",
            ),
            ("21.5", Value::Float(21.5), "21.5"),
            ("-40", Value::Float(-40.0), "-40"),
            ("1e3", Value::Float(1000.0), "1000"),
            ("2.5E-3", Value::Float(0.0025), "0.0025"),
            (
                "1700000000",
                Value::Time(1_700_000_000),
                "2023-11-14T22:13:20Z",
            ),
            (
                "2023-11-14T22:13:20Z",
                Value::Time(1_700_000_000),
                "2023-11-14T22:13:20Z",
            ),
            ("3:0", Value::ObjectLink(link), "3:0"),
            ("AQID/w==", Value::Opaque(vec![1, 2, 3, 255]), "AQID/w=="),
            ("AQID/w", Value::Opaque(vec![1, 2, 3, 255]), "AQID/w=="),
            ("", Value::Opaque(vec![]), ""),
            ("", Value::String(String::new()), ""),
            ("Grüße\n", Value::String("Grüße\n".into()), "Grüße\n"),
            ("</1/0>", Value::CoreLink("</1/0>".into()), "</1/0>"),
        ];
        for (text, value, shown) in cases {
            assert_eq!(
                Value::parse(value.data_type(), text),
                Ok(value.clone()),
                "{text:?}"
            );
            assert_eq!(value.to_text(), shown);
        }
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused() {
        let cases = [
            (
                DataType::Boolean,
                &["", "TRUE", "yes", "2", " true", "01"][..],
            ),
            (
                DataType::Integer,
                &["", "1.0", "1e3", "9223372036854775808", "0x1", "1 ", "--1"],
            ),
            (
                DataType::UnsignedInteger,
                &["", "-1", "18446744073709551616", "1.5"],
            ),
            (
                DataType::Float,
                &[
                    "",
                    "NaN",
                    "inf",
                    "-infinity",
                    "1e999",
                    "1,5",
                    "e",
                    ".",
                    "0x1p3",
                ],
            ),
            (DataType::Time, &["", "today", "2026-11-21", "1.5"]),
            (
                DataType::ObjectLink,
                &["", "3", "3:", ":0", "3:0:1", "65536:0", "3/0", "-1:0"],
            ),
            (
                DataType::Opaque,
                &["A", "AQID/w=", "AQ-_", "AQ ID", "AR==", "===="],
            ),
        ];
        for (data_type, texts) in cases {
            for text in texts {
                let refused = Err(InvalidValue { data_type });
                assert_eq!(
                    Value::parse(data_type, text),
                    refused,
                    "{data_type} {text:?}"
                );
            }
        }
    }

    #[test]
    fn a_refusal_names_the_type_and_what_would_fit() {
        let refusal = Value::parse(DataType::Boolean, "maybe")
            .unwrap_err()
            .to_string();
        assert_eq!(refusal, "not of type BOOLEAN: expected true, false, 1 or 0");
    }

    proptest! {
        #[test]
        fn every_value_survives_its_text(value in any_value()) {
            prop_assert_eq!(Value::parse(value.data_type(), &value.to_text()), Ok(value));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9eE:.+=A-f-]{0,20}|\\PC{0,60}") {
            for data_type in DataType::ALL {
                if let Ok(value) = Value::parse(data_type, &text) {
                    prop_assert_eq!(value.data_type(), data_type);
                    prop_assert_eq!(Value::parse(data_type, &value.to_text()), Ok(value));
                }
            }
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let finite = any::<f64>().prop_filter("finite", |number| number.is_finite());
        prop_oneof![
            any::<bool>().prop_map(Value::Boolean),
            any::<String>().prop_map(Value::CoreLink),
            finite.prop_map(Value::Float),
            prop_oneof![Just(i64::MIN), any::<i64>()].prop_map(Value::Integer),
            any::<(u16, u16)>()
                .prop_map(|(object, instance)| Value::ObjectLink(ObjectLink { object, instance })),
            any::<Vec<u8>>().prop_map(Value::Opaque),
            any::<String>().prop_map(Value::String),
            any::<i64>().prop_map(Value::Time),
            any::<u64>().prop_map(Value::UnsignedInteger),
        ]
    }
}
