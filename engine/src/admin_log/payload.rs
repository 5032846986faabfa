//! What was in the bytes an entry is about? They are kept beside the entry and asked for by its id.

use crate::limits::LOG_PAYLOAD_BYTES_MAX;

/// The bytes an entry is about. Whoever writes the entry has them; whoever reads it is told that
/// they are kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EntryPayload {
    /// The bytes, on their way into the log.
    Whole(Box<[u8]>),
    /// The log keeps them.
    Kept {
        /// How many they are.
        bytes: u32,
    },
}

impl EntryPayload {
    /// As much of the bytes as the log keeps.
    pub fn of(bytes: &[u8]) -> Self {
        Self::Whole(bytes.iter().take(LOG_PAYLOAD_BYTES_MAX).copied().collect())
    }

    /// What somebody who reads the entry is told.
    pub fn told(&self) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_up_to_the_bound() {
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
    fn a_reader_is_told_how_many_bytes_are_kept() {
        let told = EntryPayload::of(&[1, 2, 3]).told();
        assert_eq!(told, EntryPayload::Kept { bytes: 3 });
        assert_eq!(told.told(), told);
    }
}
