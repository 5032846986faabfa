//! The bytes of the message that an entry is about. They are stored beside the entry and read by
//! its id.

use crate::limits::LOG_PAYLOAD_BYTES_MAX;

/// The bytes an entry is about. A new entry has the bytes themselves; an entry that is read has
/// their number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EntryPayload {
    /// The bytes, of an entry that is to be stored.
    Whole(Box<[u8]>),
    /// The bytes are stored.
    Kept {
        /// How many bytes there are.
        bytes: u32,
    },
}

impl EntryPayload {
    /// The bytes, cut off at the bound.
    pub fn of(bytes: &[u8]) -> Self {
        Self::Whole(bytes.iter().take(LOG_PAYLOAD_BYTES_MAX).copied().collect())
    }

    /// The payload as a reader of the entry sees it.
    pub fn without_bytes(&self) -> Self {
        let bytes = self.size();
        Self::Kept { bytes }
    }

    /// How many bytes there are.
    pub fn size(&self) -> u32 {
        match self {
            Self::Whole(bytes) => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            Self::Kept { bytes } => *bytes,
        }
    }
}

/// A payload that is rejected, in whole or in part, as its entry describes it.
#[derive(Clone, Copy, Debug)]
pub struct RejectedPayload<'a> {
    /// The bytes to store; none if those of the device reached the quota of the day.
    pub bytes: Option<&'a [u8]>,
    /// Whether there are entries about further ones.
    pub further: FurtherPayloads,
}

/// Which further rejected payloads of a device have an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FurtherPayloads {
    /// Each of them.
    Logged,
    /// One a minute.
    OncePerMinute,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_stored_up_to_the_bound() {
        for size in [0, 7, LOG_PAYLOAD_BYTES_MAX] {
            let bytes = vec![1; size];
            assert_eq!(EntryPayload::of(&bytes), EntryPayload::Whole(bytes.into()));
        }
        let cut = EntryPayload::of(&[vec![1; LOG_PAYLOAD_BYTES_MAX], vec![2]].concat());
        assert_eq!(
            cut,
            EntryPayload::Whole(vec![1; LOG_PAYLOAD_BYTES_MAX].into())
        );
    }

    #[test]
    fn a_reader_sees_how_many_bytes_are_stored() {
        let shown = EntryPayload::of(&[1, 2, 3]).without_bytes();
        assert_eq!(shown, EntryPayload::Kept { bytes: 3 });
        assert_eq!(shown.without_bytes(), shown);
    }
}
