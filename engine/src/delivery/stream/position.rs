//! From where does a stream resume? Its cursor in each partition, as a short text that readers do
//! not look into.
//!
//! ```text
//!   base64url( version, greatest cursor, greatest cursor - cursor of partition 0, .. of the last )
//! ```
//!
//! Each number is in as few bytes as it needs, seven bits in each (LEB128): cursors that are close
//! to each other take a byte or two.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::delivery::backlog::Sequence;
use crate::ids::Partition;
use crate::limits::PARTITIONS;

const VERSION: u8 = 1;

/// The longest text: every number at its longest.
const CHARACTERS_MAX: usize = (1 + 10 * (PARTITIONS as usize + 1)).div_ceil(3) * 4;

/// The cursors of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamPosition([Sequence; PARTITIONS as usize]);

/// A text that is no position.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("must be the id of a message of a stream")]
pub struct InvalidPosition;

impl StreamPosition {
    /// Behind all events up to a number.
    pub fn behind(number: Sequence) -> Self {
        Self([number; PARTITIONS as usize])
    }

    /// Reads the text of a position.
    pub fn parse(text: &str) -> Result<Self, InvalidPosition> {
        if text.len() > CHARACTERS_MAX {
            return Err(InvalidPosition);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidPosition)?;
        let mut rest = bytes.strip_prefix(&[VERSION]).ok_or(InvalidPosition)?;
        let greatest = read_number(&mut rest).ok_or(InvalidPosition)?;
        let mut cursors = [Sequence::default(); PARTITIONS as usize];
        for cursor in &mut cursors {
            let distance = read_number(&mut rest).ok_or(InvalidPosition)?;
            *cursor = Sequence(greatest.checked_sub(distance).ok_or(InvalidPosition)?);
        }
        let position = Self(cursors);
        match rest.is_empty() && position.greatest() == Sequence(greatest) {
            true => Ok(position),
            false => Err(InvalidPosition),
        }
    }

    /// Up to which number the events of a partition are done.
    pub fn of(&self, partition: Partition) -> Sequence {
        let cursor = self.0.get(usize::from(partition.0));
        cursor.copied().unwrap_or_default()
    }

    /// The greatest number up to which events are done.
    pub fn greatest(&self) -> Sequence {
        self.0.iter().copied().max().unwrap_or_default()
    }

    /// Moves the cursor of a partition on.
    pub(super) fn advance(&mut self, partition: Partition, to: Sequence) {
        if let Some(cursor) = self.0.get_mut(usize::from(partition.0)) {
            *cursor = to.max(*cursor);
        }
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sequence(greatest) = self.greatest();
        let mut bytes = vec![VERSION];
        write_number(greatest, &mut bytes);
        for Sequence(cursor) in self.0 {
            write_number(greatest - cursor, &mut bytes);
        }
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn write_number(number: u64, bytes: &mut Vec<u8>) {
    let mut rest = number;
    while rest > 0x7f {
        bytes.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    bytes.push(rest.to_le_bytes()[0]);
}

/// Takes a number from the front; none unless it is written as [`write_number`] writes it.
fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits.leading_zeros() < shift {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            let is_shortest = shift == 0 || *byte != 0;
            return is_shortest.then_some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    #[test]
    fn a_position_is_short_and_fits_a_header() {
        let mut position = StreamPosition::behind(Sequence(3_000_000_000));
        assert_eq!(position.to_string().len(), 30);
        position.advance(Partition(4), Sequence(u64::MAX));
        position.advance(Partition(9), Sequence(0));
        let text = position.to_string();
        assert!(text.len() <= CHARACTERS_MAX, "{text}");
        assert_eq!(StreamPosition::parse(&text), Ok(position.clone()));
        assert_eq!(position.of(Partition(9)), Sequence(3_000_000_000));
        assert_eq!(position.greatest(), Sequence(u64::MAX));
    }

    #[test]
    fn every_other_text_is_refused() {
        let text = StreamPosition::behind(Sequence(300)).to_string();
        let longer = "A".repeat(CHARACTERS_MAX + 1);
        let cut = &text[..text.len() - 2];
        let no_greatest = URL_SAFE_NO_PAD.encode([vec![VERSION, 5], vec![1; 16]].concat());
        let before_zero = URL_SAFE_NO_PAD.encode([vec![VERSION, 5], vec![6; 16]].concat());
        let not_shortest = URL_SAFE_NO_PAD.encode([vec![VERSION, 0x85, 0], vec![0; 16]].concat());
        let other_version = URL_SAFE_NO_PAD.encode([vec![9, 5], vec![0; 16]].concat());
        for refused in [
            "",
            "17",
            "not base64!",
            cut,
            &format!("{text}AA"),
            &longer,
            &no_greatest,
            &before_zero,
            &not_shortest,
            &other_version,
        ] {
            assert_eq!(
                StreamPosition::parse(refused),
                Err(InvalidPosition),
                "{refused}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_position_is_read_as_it_was_written(cursors: [u64; PARTITIONS as usize]) {
            let position = StreamPosition(cursors.map(Sequence));
            assert_eq!(StreamPosition::parse(&position.to_string()), Ok(position));
        }

        #[test]
        fn a_text_that_is_read_is_the_text_of_its_position(
            bytes: Vec<u8>,
            text in any::<String>(),
        ) {
            for text in [URL_SAFE_NO_PAD.encode([vec![VERSION], bytes].concat()), text] {
                if let Ok(position) = StreamPosition::parse(&text) {
                    assert_eq!(position.to_string(), text);
                }
            }
        }
    }
}
