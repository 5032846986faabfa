//! How is a customer's definition of an object stored? Its text has rows of its own.

use engine::moment::Timestamp;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::{Unreadable, check_version, damaged, read, write};

const VERSION: u8 = 1;
const TEXT_VERSION: u8 = 1;

/// The id of a text, which no other text ever has.
pub(crate) type TextId = [u8; 16];

/// The value under the id of a definition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Defined {
    /// When it was put.
    pub(crate) at: Timestamp,
    /// Its text.
    pub(crate) text: TextId,
}

#[derive(Decode, Encode)]
#[cbor(array)]
struct DefinedV1 {
    #[n(0)]
    at_ms: i64,
    #[n(1)]
    text: ByteArray<16>,
}

/// Writes the value under the id of a definition.
pub(crate) fn write_defined(defined: &Defined) -> Vec<u8> {
    let record = DefinedV1 {
        at_ms: defined.at.as_ms(),
        text: ByteArray::from(defined.text),
    };
    write(VERSION, &record)
}

/// Reads the value under the id of a definition.
pub(crate) fn read_defined(value: &[u8]) -> Result<Defined, Unreadable> {
    let record: DefinedV1 = read(VERSION, value)?;
    Ok(Defined {
        at: Timestamp::from_ms(record.at_ms),
        text: record.text.into(),
    })
}

/// Writes the text of a definition.
pub(crate) fn write_text(xml: &str) -> Vec<u8> {
    let mut value = Vec::with_capacity(1 + xml.len());
    value.push(TEXT_VERSION);
    value.extend_from_slice(xml.as_bytes());
    value
}

/// Reads the text of a definition.
pub(crate) fn read_text(value: &[u8]) -> Result<Box<str>, Unreadable> {
    let text = std::str::from_utf8(check_version(TEXT_VERSION, value)?);
    text.map(Into::into).map_err(damaged("no text"))
}
