//! How is CBOR encoded? (RFC 8949 section 3)
//!
//! Lengths are definite and numbers as short as possible, which the simplest decoder understands.
//! Half floats are not written, because not every device supports them.

use std::convert::Infallible;

use minicbor::data::Tag;
use minicbor::encode::{Encoder, Error};

use crate::lwm2m::value::Value;

/// Seconds since 1970 (RFC 8949 section 3.4.2).
const EPOCH_TIME: Tag = Tag::new(1);

/// Appends items one after the other.
pub(crate) struct CborWriter {
    encoder: Encoder<Vec<u8>>,
}

impl CborWriter {
    /// Starts with no bytes.
    pub(crate) fn new() -> Self {
        Self {
            encoder: Encoder::new(Vec::new()),
        }
    }

    /// Begins an array of this many items.
    pub(crate) fn array(&mut self, length: usize) {
        written(self.encoder.array(length as u64));
    }

    /// Begins a map of this many pairs.
    pub(crate) fn map(&mut self, length: usize) {
        written(self.encoder.map(length as u64));
    }

    /// Writes an integer.
    pub(crate) fn integer(&mut self, number: i64) {
        written(self.encoder.i64(number));
    }

    /// Writes a text.
    pub(crate) fn text(&mut self, text: &str) {
        written(self.encoder.str(text));
    }

    /// Writes a value without a tag: a time as a number, an object link as a text.
    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Boolean(value) => written(self.encoder.bool(*value)),
            Value::CoreLink(text) | Value::String(text) => self.text(text),
            Value::Float(number) => self.float(*number),
            Value::Integer(number) | Value::Time(number) => self.integer(*number),
            Value::ObjectLink(_) => self.text(&value.to_text()),
            Value::Opaque(bytes) => written(self.encoder.bytes(bytes)),
            Value::UnsignedInteger(number) => written(self.encoder.u64(*number)),
        }
    }

    /// Writes a value with a tag for a time.
    pub(crate) fn tagged_value(&mut self, value: &Value) {
        if let Value::Time(_) = value {
            written(self.encoder.tag(EPOCH_TIME));
        }
        self.value(value);
    }

    /// Returns the bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.encoder.into_writer()
    }

    /// Writes a number in four bytes if nothing is lost.
    fn float(&mut self, number: f64) {
        let single = number as f32;
        if f64::from(single).to_bits() == number.to_bits() {
            written(self.encoder.f32(single));
        } else {
            written(self.encoder.f64(number));
        }
    }
}

fn written(outcome: Result<&mut Encoder<Vec<u8>>, Error<Infallible>>) {
    outcome.expect("bytes in memory take every item");
}
