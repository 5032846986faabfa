//! A set of virtual shards, with one bit for each.

use engine::ids::Shard;
use engine::limits::SHARDS;

const WORDS: usize = SHARDS as usize / 64;

/// A set of virtual shards.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ShardSet([u64; WORDS]);

impl ShardSet {
    /// The set of all shards.
    pub(crate) const ALL: Self = Self([u64::MAX; WORDS]);

    /// Adds a shard.
    pub(crate) fn insert(&mut self, shard: Shard) {
        if let Some(word) = self.0.get_mut(word_of(shard)) {
            *word |= bit_of(shard);
        }
    }

    /// Removes a shard.
    pub(crate) fn remove(&mut self, shard: Shard) {
        if let Some(word) = self.0.get_mut(word_of(shard)) {
            *word &= !bit_of(shard);
        }
    }

    /// Removes every shard before this one.
    pub(crate) fn remove_before(&mut self, shard: Shard) {
        for (word, place) in self.0.iter_mut().zip(0..) {
            if place < word_of(shard) {
                *word = 0;
            } else if place == word_of(shard) {
                *word &= !(bit_of(shard) - 1);
            }
        }
    }

    /// The first shard in the set.
    pub(crate) fn first(&self) -> Option<Shard> {
        self.iter().next()
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The shards, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Shard> {
        (0..SHARDS).map(Shard).filter(|shard| self.has(*shard))
    }

    fn has(&self, shard: Shard) -> bool {
        let word = self.0.get(word_of(shard));
        word.is_some_and(|word| word & bit_of(shard) != 0)
    }
}

fn word_of(shard: Shard) -> usize {
    usize::from(shard.0 / 64)
}

fn bit_of(shard: Shard) -> u64 {
    1 << (shard.0 % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(set: &ShardSet) -> Vec<u16> {
        set.iter().map(|shard| shard.0).collect()
    }

    #[test]
    fn a_set_contains_what_was_inserted_and_not_removed() {
        let mut set = ShardSet::default();
        for shard in [1_023, 0, 64, 63, 0, 700] {
            set.insert(Shard(shard));
        }
        assert_eq!(shards(&set), [0, 63, 64, 700, 1_023]);
        set.remove(Shard(0));
        set.remove(Shard(5));
        assert_eq!(shards(&set), [63, 64, 700, 1_023]);
        set.remove_before(Shard(64));
        assert_eq!(set.first(), Some(Shard(64)));
        set.remove_before(Shard(65));
        assert_eq!(shards(&set), [700, 1_023]);
        set.remove_before(Shard(1_023));
        assert!(!set.is_empty());
        set.remove(Shard(1_023));
        assert!(set.is_empty() && set.first().is_none());
    }

    #[test]
    fn a_shard_that_is_none_is_in_no_set() {
        let mut set = ShardSet::ALL;
        set.insert(Shard(SHARDS));
        set.remove(Shard(u16::MAX));
        assert_eq!(shards(&set), (0..SHARDS).collect::<Vec<_>>());
        set.remove_before(Shard(SHARDS));
        assert!(set.is_empty());
    }
}
