//! How are the options of a message encoded? RFC 7252 sections 3.1, 3.2 and 5.4.
//!
//! They are stored in encoded form, each with its delta from the number before, so that a message
//! is read with one copy and written with another.

use std::fmt;

use crate::coap::message::malformed::MessageFault;
use crate::coap::option::{self, OptionDefinition};

/// Separates the options from the payload.
pub(super) const PAYLOAD_MARKER: u8 = 0xFF;

// Nibbles for numbers in the bytes that follow, and the first of those numbers.
const ONE_BYTE: u8 = 13;
const ONE_BYTE_FROM: u16 = 13;
const TWO_BYTES: u8 = 14;
const TWO_BYTES_FROM: u16 = 269;
const RESERVED: u8 = 15;

/// Room for the location of a registration, or for the path of a resource and its format.
const USUAL_BYTES: usize = 32;

/// One byte of nibbles and two extensions of up to two bytes each.
const HEAD_BYTES_MAX: usize = 5;

/// The options of one message, ordered by number.
#[derive(Clone, Default, Eq, PartialEq)]
pub(super) struct Options {
    // A delta or length has exactly one encoding, so equal options are equal bytes.
    wire: Vec<u8>,
    last: u16,
    // The first critical option that is longer, shorter or more frequent than defined, or not text
    // where it has to be: RFC 7252 section 5.4.3 treats it like an unrecognized one.
    misused: Option<u16>,
}

impl Options {
    /// Reads the options at the start of the bytes, and returns the bytes after them.
    ///
    /// Misused elective options are left out, misused critical ones recorded.
    pub(super) fn read(bytes: &[u8]) -> Result<(Options, &[u8]), MessageFault> {
        let mut reader = Reader::new(bytes);
        let mut is_as_defined = true;
        let mut misused = None;
        while let Some(found) = reader.read()? {
            if !found.is_well_used() {
                is_as_defined = false;
                if option::is_critical(found.number) {
                    misused.get_or_insert(found.number);
                }
            }
        }
        let (wire, rest) = bytes
            .split_at_checked(bytes.len().saturating_sub(reader.rest.len()))
            .unwrap_or_default();
        let mut options = Options {
            misused,
            ..Options::default()
        };
        if is_as_defined {
            options.wire = wire.to_vec();
            options.last = reader.number;
        } else {
            options.add_all(Reader::new(wire).filter(Found::is_well_used));
        }
        Ok((options, rest))
    }

    /// Returns the encoded options.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.wire
    }

    /// Returns the first misused critical option.
    pub(super) fn misused(&self) -> Option<u16> {
        self.misused
    }

    /// Records the first misused critical option.
    pub(super) fn set_misused(&mut self, number: Option<u16>) {
        self.misused = number;
    }

    /// Adds an option after those of the same number.
    ///
    /// # Panics
    ///
    /// If the value is longer than a datagram can be.
    pub(super) fn add(&mut self, number: u16, value: &[u8]) {
        match number.checked_sub(self.last) {
            Some(delta) => self.append(number, delta, value),
            None => self.insert(number, value),
        }
    }

    /// Sets an option that may occur only once to a number, written without leading zeros (RFC 7252
    /// section 3.2).
    pub(super) fn set_number(&mut self, option: u16, number: u32) {
        self.remove(option);
        let bytes = number.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        self.add(option, bytes.get(zeros..).unwrap_or_default());
    }

    /// Removes all options of a number.
    pub(super) fn remove(&mut self, option: u16) {
        if self.values_of(option).next().is_some() {
            let before = self.take_wire();
            self.add_all(Reader::new(&before).filter(|found| found.number != option));
        }
    }

    fn append(&mut self, number: u16, delta: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).expect("no option is longer than a datagram");
        let bytes = HEAD_BYTES_MAX.saturating_add(value.len());
        let is_first = self.wire.is_empty();
        self.wire.reserve(if is_first {
            bytes.max(USUAL_BYTES)
        } else {
            bytes
        });
        self.wire.push(nibble(delta) << 4 | nibble(length));
        self.push_extension(delta);
        self.push_extension(length);
        self.wire.extend_from_slice(value);
        self.last = number;
    }

    // Rare: most messages get their options in the order of the numbers.
    fn insert(&mut self, number: u16, value: &[u8]) {
        let before = self.take_wire();
        let stands_before = |found: &Found<'_>| found.number <= number;
        self.add_all(Reader::new(&before).take_while(stands_before));
        self.add(number, value);
        self.add_all(Reader::new(&before).skip_while(stands_before));
    }

    fn add_all<'a>(&mut self, all: impl Iterator<Item = Found<'a>>) {
        all.for_each(|found| self.add(found.number, found.value));
    }

    fn take_wire(&mut self) -> Vec<u8> {
        self.last = 0;
        std::mem::take(&mut self.wire)
    }

    fn push_extension(&mut self, number: u16) {
        if let Some(number) = number.checked_sub(TWO_BYTES_FROM) {
            self.wire.extend_from_slice(&number.to_be_bytes());
        } else if let Some(number) = number.checked_sub(ONE_BYTE_FROM) {
            let [_, low] = number.to_be_bytes();
            self.wire.push(low);
        }
    }

    /// Iterates over the options in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        Reader::new(&self.wire).map(|found| (found.number, found.value))
    }

    /// Iterates over the values of one option.
    pub(super) fn values_of(&self, number: u16) -> impl Iterator<Item = &[u8]> {
        Reader::new(&self.wire)
            .take_while(move |found| found.number <= number)
            .filter(move |found| found.number == number)
            .map(|found| found.value)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One option at its position.
struct Found<'a> {
    number: u16,
    value: &'a [u8],
    // The number 0 is not defined; it alone has a delta of zero from the start.
    is_first_of_number: bool,
}

impl Found<'_> {
    fn is_well_used(&self) -> bool {
        OptionDefinition::of(self.number).is_none_or(|definition| {
            definition.allows(self.value) && (self.is_first_of_number || definition.may_repeat())
        })
    }
}

/// Reads one option after another, up to the end or the payload marker.
///
/// A search for one option skips those before it, so skipping is inlined into the search.
struct Reader<'a> {
    rest: &'a [u8],
    number: u16,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            rest: bytes,
            number: 0,
        }
    }

    #[inline]
    fn read(&mut self) -> Result<Option<Found<'a>>, MessageFault> {
        let [first, rest @ ..] = self.rest else {
            return Ok(None);
        };
        if *first == PAYLOAD_MARKER {
            return Ok(None);
        }
        let (delta, rest) = extended(first >> 4, rest, MessageFault::OptionDelta)?;
        let (length, rest) = extended(first & 0b1111, rest, MessageFault::OptionLength)?;
        self.number = self
            .number
            .checked_add(delta)
            .ok_or(MessageFault::OptionDelta)?;
        let (value, rest) = rest
            .split_at_checked(length.into())
            .ok_or(MessageFault::OptionLength)?;
        self.rest = rest;
        Ok(Some(Found {
            number: self.number,
            value,
            is_first_of_number: delta != 0,
        }))
    }
}

// The options of a message were checked when it was decoded.
impl<'a> Iterator for Reader<'a> {
    type Item = Found<'a>;

    #[inline]
    fn next(&mut self) -> Option<Found<'a>> {
        self.read().ok().flatten()
    }
}

/// Returns the number that a nibble and the bytes after it encode, and the remaining bytes.
///
/// The standard's longest option is 65,804 bytes and no datagram holds it, so 16 bits are enough.
#[inline]
fn extended(nibble: u8, bytes: &[u8], fault: MessageFault) -> Result<(u16, &[u8]), MessageFault> {
    match (nibble, bytes) {
        (0..ONE_BYTE, _) => Ok((nibble.into(), bytes)),
        (ONE_BYTE, [byte, rest @ ..]) => Ok((ONE_BYTE_FROM + u16::from(*byte), rest)),
        (TWO_BYTES, [high, low, rest @ ..]) => u16::from_be_bytes([*high, *low])
            .checked_add(TWO_BYTES_FROM)
            .map(|number| (number, rest))
            .ok_or(fault),
        (ONE_BYTE | TWO_BYTES, _) => Err(MessageFault::OptionLength),
        (RESERVED.., _) => Err(fault),
    }
}

fn nibble(number: u16) -> u8 {
    match number {
        0..ONE_BYTE_FROM => {
            let [_, low] = number.to_be_bytes();
            low
        }
        ONE_BYTE_FROM..TWO_BYTES_FROM => ONE_BYTE,
        TWO_BYTES_FROM.. => TWO_BYTES,
    }
}
