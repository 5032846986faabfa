//! How is the number of a group of commits stored?

use engine::moment::Timestamp;

use super::{Unreadable, check_version};

const VERSION: u8 = 1;

/// A group of commits that were written as one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct GroupMark {
    /// Its number; each group has the number after the one before.
    pub(crate) number: u64,
    /// When it was written.
    pub(crate) at: Timestamp,
}

impl GroupMark {
    pub(crate) const BYTES: usize = 1 + 8 + 8;
}

/// Writes the number and the time of a group.
pub(crate) fn write_group(group: GroupMark) -> [u8; GroupMark::BYTES] {
    let mut value = [VERSION; GroupMark::BYTES];
    value[1..9].copy_from_slice(&group.number.to_be_bytes());
    value[9..].copy_from_slice(&group.at.as_ms().to_be_bytes());
    value
}

/// Reads the number and the time of a group.
pub(crate) fn read_group(value: &[u8]) -> Result<GroupMark, Unreadable> {
    let (numbers, rest) = check_version(VERSION, value)?.as_chunks::<8>();
    match (numbers, rest) {
        ([number, at], []) => Ok(GroupMark {
            number: u64::from_be_bytes(*number),
            at: Timestamp::from_ms(i64::from_be_bytes(*at)),
        }),
        _ => Err(Unreadable::Damaged("the number of a group")),
    }
}
