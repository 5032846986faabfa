//! How many entries of each kind does a bucket have?

use super::{Unreadable, check_version};

const VERSION: u8 = 1;

/// The bytes of one count.
const COUNT: usize = size_of::<u64>();

/// A count for each kind, by its place. Later kinds are appended; a kind that has no place yet has
/// no entries.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct KindCounts(Vec<u64>);

impl KindCounts {
    /// How many there are of the kind at a place.
    pub(crate) fn at(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or(0)
    }

    /// Adds to the count at a place.
    pub(crate) fn add(&mut self, place: usize, delta: i64) {
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        if let Some(count) = self.0.get_mut(place) {
            *count = count.saturating_add_signed(delta);
        }
    }

    /// Whether every count is zero.
    pub(crate) fn are_zero(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

/// Writes counts, the same ones always as the same bytes.
pub(crate) fn write_counts(counts: &KindCounts) -> Vec<u8> {
    let last = counts.0.iter().rposition(|count| *count > 0);
    let counts = &counts.0[..last.map_or(0, |last| last + 1)];
    let mut value = Vec::with_capacity(1 + COUNT * counts.len());
    value.push(VERSION);
    for count in counts {
        value.extend_from_slice(&count.to_be_bytes());
    }
    value
}

/// Reads counts.
pub(crate) fn read_counts(value: &[u8]) -> Result<KindCounts, Unreadable> {
    let (counts, rest) = check_version(VERSION, value)?.as_chunks::<COUNT>();
    if !rest.is_empty() {
        return Err(Unreadable::Damaged("half a count"));
    }
    let counts = counts.iter().map(|count| u64::from_be_bytes(*count));
    Ok(KindCounts(counts.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_back_with_room_for_later_kinds() {
        let mut counts = KindCounts::default();
        assert!(counts.are_zero());
        counts.add(2, 1);
        counts.add(0, 300);
        counts.add(2, 1);
        let read = read_counts(&write_counts(&counts)).unwrap();
        assert_eq!([0, 1, 2, 3].map(|place| read.at(place)), [300, 0, 2, 0]);
        counts.add(0, -300);
        assert!(!counts.are_zero());
        counts.add(2, -2);
        assert!(counts.are_zero());
        assert_eq!(write_counts(&counts), write_counts(&KindCounts::default()));
    }

    #[test]
    fn foreign_bytes_are_damage() {
        for value in [&[][..], &[2], &[1, 0], &[1, 0, 0, 0, 0, 0, 0, 0, 1, 1]] {
            assert!(read_counts(value).is_err(), "{value:?}");
        }
    }
}
