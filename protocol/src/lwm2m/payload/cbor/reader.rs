//! Which items does received CBOR contain? (RFC 8949 section 3)
//!
//! Reads definite and indefinite lengths alike. Only the requested items are stored, nesting is
//! bounded, and memory is allocated only for bytes that are there.

use minicbor::data::Type;
use minicbor::decode::{Decoder, Error};
use thiserror::Error;

use crate::lwm2m::payload::scalar::{Number, Scalar};
use crate::lwm2m::value::{DataType, Value};

/// How deep skipped items may nest: deeper than any format here, and far from the end of the stack.
const DEPTH_MAX: u8 = 16;

const DATE_TEXT: u64 = 0;
const EPOCH_TIME: u64 = 1;
const POSITIVE_BIGNUM: u64 = 2;
const NEGATIVE_BIGNUM: u64 = 3;
const DECIMAL_FRACTION: u64 = 4;

/// The bytes are not the expected CBOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is not valid CBOR for the format")]
pub(crate) struct UnreadableCbor;

impl From<Error> for UnreadableCbor {
    fn from(_: Error) -> Self {
        Self
    }
}

/// The kind of the next item, as far as the formats here distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CborShape {
    /// A list of items.
    Array,
    /// A list of pairs.
    Map,
    /// Null or undefined.
    Nothing,
    /// Everything else.
    Scalar,
}

/// How much of an array or a map has not been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remaining(Option<u64>);

/// Reads items one after the other.
pub(crate) struct CborReader<'b> {
    decoder: Decoder<'b>,
}

impl<'b> CborReader<'b> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self {
            decoder: Decoder::new(bytes),
        }
    }

    /// Returns the kind of the next item without reading it.
    pub(crate) fn shape(&self) -> Result<CborShape, UnreadableCbor> {
        match self.next_type()? {
            Type::Array | Type::ArrayIndef => Ok(CborShape::Array),
            Type::Map | Type::MapIndef => Ok(CborShape::Map),
            Type::Null | Type::Undefined => Ok(CborShape::Nothing),
            Type::Bool
            | Type::U8
            | Type::U16
            | Type::U32
            | Type::U64
            | Type::I8
            | Type::I16
            | Type::I32
            | Type::I64
            | Type::Int
            | Type::F16
            | Type::F32
            | Type::F64
            | Type::Simple
            | Type::Bytes
            | Type::BytesIndef
            | Type::String
            | Type::StringIndef
            | Type::Tag
            | Type::Break
            | Type::Unknown(_) => Ok(CborShape::Scalar),
        }
    }

    /// Enters an array.
    pub(crate) fn array(&mut self) -> Result<Remaining, UnreadableCbor> {
        Ok(Remaining(self.decoder.array()?))
    }

    /// Enters a map; its keys and values alternate.
    pub(crate) fn map(&mut self) -> Result<Remaining, UnreadableCbor> {
        Ok(Remaining(self.decoder.map()?))
    }

    /// Returns whether another item, or another pair, follows; leaves the array or map if not.
    pub(crate) fn another(&mut self, remaining: &mut Remaining) -> Result<bool, UnreadableCbor> {
        let Some(left) = &mut remaining.0 else {
            let ends = self.next_type()? == Type::Break;
            if ends {
                self.decoder.set_position(self.decoder.position() + 1);
            }
            return Ok(!ends);
        };
        let more = *left > 0;
        *left = left.saturating_sub(1);
        Ok(more)
    }

    /// Reads a number, a text, bytes or a boolean. Tags without meaning here are skipped.
    pub(crate) fn scalar(&mut self) -> Result<Scalar, UnreadableCbor> {
        while self.next_type()? == Type::Tag {
            let tag = self.decoder.tag()?.as_u64();
            match tag {
                DATE_TEXT => return self.date(),
                EPOCH_TIME => return Ok(Scalar::Time(self.number()?)),
                POSITIVE_BIGNUM | NEGATIVE_BIGNUM => {
                    return Ok(Scalar::Number(Number::Integer(self.bignum(tag)?)));
                }
                DECIMAL_FRACTION => return Ok(Scalar::Number(self.fraction()?)),
                _ => {}
            }
        }
        self.untagged()
    }

    /// Reads a scalar; skips an item that is none, or has no meaning here.
    pub(crate) fn scalar_or_skip(&mut self) -> Result<Option<Scalar>, UnreadableCbor> {
        let start = self.decoder.position();
        if let Ok(scalar) = self.scalar() {
            return Ok(Some(scalar));
        }
        self.decoder.set_position(start);
        self.skip()?;
        Ok(None)
    }

    /// Reads a number in any encoding; seconds since 1970 are a number, too.
    pub(crate) fn number(&mut self) -> Result<Number, UnreadableCbor> {
        while self.next_type()? == Type::Tag {
            match self.decoder.tag()?.as_u64() {
                tag @ (POSITIVE_BIGNUM | NEGATIVE_BIGNUM) => {
                    return self.bignum(tag).map(Number::Integer);
                }
                DECIMAL_FRACTION => return self.fraction(),
                _ => {}
            }
        }
        match self.untagged()? {
            Scalar::Number(number) => Ok(number),
            Scalar::Boolean(_)
            | Scalar::Bytes(_)
            | Scalar::Link(_)
            | Scalar::Text(_)
            | Scalar::Time(_) => Err(UnreadableCbor),
        }
    }

    /// Skips one item and everything in it.
    pub(crate) fn skip(&mut self) -> Result<(), UnreadableCbor> {
        self.skip_within(DEPTH_MAX)
    }

    /// Fails unless every byte was read.
    pub(crate) fn finish(self) -> Result<(), UnreadableCbor> {
        if self.decoder.position() == self.decoder.input().len() {
            Ok(())
        } else {
            Err(UnreadableCbor)
        }
    }

    fn next_type(&self) -> Result<Type, UnreadableCbor> {
        Ok(self.decoder.datatype()?)
    }

    fn untagged(&mut self) -> Result<Scalar, UnreadableCbor> {
        match self.next_type()? {
            Type::Bool => Ok(Scalar::Boolean(self.decoder.bool()?)),
            Type::U8
            | Type::U16
            | Type::U32
            | Type::U64
            | Type::I8
            | Type::I16
            | Type::I32
            | Type::I64
            | Type::Int => Ok(Scalar::Number(Number::Integer(self.integer()?))),
            Type::F16 => Ok(float(self.decoder.f16()?.into())),
            Type::F32 => Ok(float(self.decoder.f32()?.into())),
            Type::F64 => Ok(float(self.decoder.f64()?)),
            Type::Bytes | Type::BytesIndef => {
                let chunks = self.decoder.bytes_iter()?.collect::<Result<Vec<_>, _>>()?;
                Ok(Scalar::Bytes(chunks.concat()))
            }
            Type::String | Type::StringIndef => {
                let chunks = self.decoder.str_iter()?.collect::<Result<Vec<_>, _>>()?;
                Ok(Scalar::Text(chunks.concat()))
            }
            Type::Null
            | Type::Undefined
            | Type::Simple
            | Type::Array
            | Type::ArrayIndef
            | Type::Map
            | Type::MapIndef
            | Type::Tag
            | Type::Break
            | Type::Unknown(_) => Err(UnreadableCbor),
        }
    }

    fn integer(&mut self) -> Result<i128, UnreadableCbor> {
        Ok(self.decoder.int()?.into())
    }

    /// Reads a date such as `2026-11-21T11:34:34Z`.
    fn date(&mut self) -> Result<Scalar, UnreadableCbor> {
        let Scalar::Text(text) = self.untagged()? else {
            return Err(UnreadableCbor);
        };
        match Value::parse(DataType::Time, &text) {
            Ok(Value::Time(seconds)) => Ok(Scalar::Time(Number::Integer(seconds.into()))),
            Ok(_) | Err(_) => Err(UnreadableCbor),
        }
    }

    /// Reads an integer of any length that fits 128 bits.
    fn bignum(&mut self, tag: u64) -> Result<i128, UnreadableCbor> {
        let Scalar::Bytes(bytes) = self.untagged()? else {
            return Err(UnreadableCbor);
        };
        let shift_in = |number: i128, byte: &u8| {
            let shifted = number.checked_mul(256)?;
            shifted.checked_add(i128::from(*byte))
        };
        let magnitude = bytes.iter().try_fold(0, shift_in).ok_or(UnreadableCbor)?;
        match tag {
            POSITIVE_BIGNUM => Ok(magnitude),
            NEGATIVE_BIGNUM => Ok(-1 - magnitude),
            _ => Err(UnreadableCbor),
        }
    }

    /// Reads a pair of exponent and mantissa (RFC 8949 section 3.4.4); a result without fraction is
    /// an integer.
    fn fraction(&mut self) -> Result<Number, UnreadableCbor> {
        let mut remaining = self.array()?;
        if !self.another(&mut remaining)? {
            return Err(UnreadableCbor);
        }
        let exponent = self.integer()?;
        if !self.another(&mut remaining)? {
            return Err(UnreadableCbor);
        }
        let mantissa = if self.next_type()? == Type::Tag {
            let tag = self.decoder.tag()?.as_u64();
            self.bignum(tag)?
        } else {
            self.integer()?
        };
        if self.another(&mut remaining)? {
            return Err(UnreadableCbor);
        }
        Ok(times_power_of_ten(mantissa, exponent))
    }

    fn skip_within(&mut self, depth: u8) -> Result<(), UnreadableCbor> {
        let deeper = depth.checked_sub(1).ok_or(UnreadableCbor);
        if self.next_type()? == Type::Tag {
            self.decoder.tag()?;
            return self.skip_within(deeper?);
        }
        if self.next_type()? == Type::Simple {
            return self
                .decoder
                .simple()
                .map(drop)
                .map_err(UnreadableCbor::from);
        }
        match self.shape()? {
            CborShape::Array => {
                let mut remaining = self.array()?;
                while self.another(&mut remaining)? {
                    self.skip_within(deeper?)?;
                }
                Ok(())
            }
            CborShape::Map => {
                let mut remaining = self.map()?;
                while self.another(&mut remaining)? {
                    self.skip_within(deeper?)?;
                    self.skip_within(deeper?)?;
                }
                Ok(())
            }
            CborShape::Nothing => Ok(self.decoder.skip()?),
            CborShape::Scalar if self.next_type()? == Type::String => Ok(self.decoder.skip()?),
            CborShape::Scalar => self.untagged().map(drop),
        }
    }
}

fn float(number: f64) -> Scalar {
    Scalar::Number(Number::Float(number))
}

/// Returns an integer if the number fits one, otherwise the nearest floating point number, which is
/// infinite if the number is too large.
fn times_power_of_ten(mantissa: i128, exponent: i128) -> Number {
    let digits = u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX);
    let integer = match 10_i128.checked_pow(digits) {
        Some(power) if exponent >= 0 => mantissa.checked_mul(power),
        Some(power) if mantissa % power == 0 => Some(mantissa / power),
        Some(_) | None => (mantissa == 0).then_some(0),
    };
    match integer {
        Some(integer) => Number::Integer(integer),
        None => {
            let nearest = format!("{mantissa}e{exponent}").parse();
            Number::Float(nearest.expect("an integer and an exponent are a decimal number"))
        }
    }
}
