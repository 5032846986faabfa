//! Which values does a JSON text hold, and how are values written as JSON? (RFC 8259)
//!
//! Fields are stored in order, repeated ones included, which a map would hide. serde_json bounds
//! the nesting; the number of values is bounded here.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::SAMPLES_MAX;
use super::samples::MalformedSamples;
use super::scalar::{Number, Scalar};

/// Bounds the values of one text: more than the fields of as many records as a payload may have. A
/// value takes two bytes of text and some fifty of memory.
const VALUES_MAX: usize = 16 * SAMPLES_MAX;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsonToken {
    Null,
    Scalar(Scalar),
    List(Vec<JsonToken>),
    Object(Vec<(String, JsonToken)>),
}

/// Parses a text with one value.
pub(super) fn parse(payload: &[u8]) -> Result<JsonToken, MalformedSamples> {
    let left = Cell::new(VALUES_MAX);
    let mut deserializer = serde_json::Deserializer::from_slice(payload);
    let token = Tokens { left: &left }.deserialize(&mut deserializer);
    let whole = token.and_then(|token| deserializer.end().map(|()| token));
    let refusal = || match left.get() {
        0 => MalformedSamples::TooMany,
        _ => MalformedSamples::Json,
    };
    whole.map_err(|_| refusal())
}

/// Writes an object with these fields, in this order.
pub(super) fn object_text(fields: &[String]) -> String {
    format!("{{{}}}", fields.join(","))
}

/// Writes a field whose value is JSON already.
pub(super) fn field_text(name: &str, value: &str) -> String {
    format!("\"{name}\":{value}")
}

/// Writes a string.
pub(super) fn string_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes a finite number as the shortest text that is read as the same number. A number with an
/// exponent has a decimal point, too, as in `1.0e-5`: a widespread parser of devices reads `1e-5`
/// as 1.
pub(super) fn number_text(number: f64) -> String {
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        Some(_) | None => text,
    }
}

/// Reads values up to the bound.
#[derive(Clone, Copy)]
struct Tokens<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Tokens<'_> {
    type Value = JsonToken;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonToken, D::Error> {
        let too_many = || D::Error::custom("too many values");
        let left = self.left.get().checked_sub(1).ok_or_else(too_many)?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tokens<'_> {
    type Value = JsonToken;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonToken, E> {
        Ok(JsonToken::Scalar(Scalar::Boolean(value)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<JsonToken, E> {
        Ok(JsonToken::Scalar(Scalar::Number(Number::Integer(
            number.into(),
        ))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<JsonToken, E> {
        Ok(JsonToken::Scalar(Scalar::Number(Number::Integer(
            number.into(),
        ))))
    }

    fn visit_f64<E>(self, number: f64) -> Result<JsonToken, E> {
        Ok(JsonToken::Scalar(Scalar::Number(Number::Float(number))))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonToken, E> {
        Ok(JsonToken::Scalar(Scalar::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<JsonToken, E> {
        Ok(JsonToken::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonToken, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(JsonToken::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonToken, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            fields.push((name, map.next_value_seed(self)?));
        }
        Ok(JsonToken::Object(fields))
    }
}
