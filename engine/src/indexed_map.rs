//! Which value does a key have, in a map with an entry for each device of a fleet?
//!
//! The entries stand in a vector that grows by an eighth, and a hash table has their indexes. A
//! hash table doubles when it grows, so it is up to nine sixteenths empty: here that concerns five
//! bytes of an entry, and not all of them.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Hashes as the map of the standard library does, with a secret of its own: whoever chooses the
/// keys cannot make them collide.
#[derive(Debug, Default)]
pub(crate) struct KeyedHasher(HashMap<(), ()>);

/// A map of at most 2^32 entries.
#[derive(Debug)]
pub(crate) struct IndexedMap<K, V, S = KeyedHasher> {
    entries: Vec<(K, V)>,
    index_by_hash: HashTable<u32>,
    hasher: S,
}

impl<K: Eq + Hash, V, S: BuildHasher> IndexedMap<K, V, S> {
    /// Sets the value of a key, and returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Self {
            entries,
            index_by_hash,
            hasher,
        } = self;
        let is_key = |index: &u32| entries[*index as usize].0 == key;
        let hash_of = |index: &u32| hasher.hash_one(&entries[*index as usize].0);
        match index_by_hash.entry(hasher.hash_one(&key), is_key, hash_of) {
            Entry::Occupied(found) => {
                let (_, present) = &mut entries[*found.get() as usize];
                Some(std::mem::replace(present, value))
            }
            Entry::Vacant(place) => {
                let index = u32::try_from(entries.len());
                place.insert(index.expect("a process has no 2^32 devices"));
                if entries.len() == entries.capacity() {
                    entries.reserve_exact(entries.len() / 8 + 1);
                }
                entries.push((key, value));
                None
            }
        }
    }

    /// Removes a key with its value.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        let is_key = |index: &u32| self.entries[*index as usize].0 == *key;
        let found = self.index_by_hash.find_entry(hash, is_key).ok()?;
        let (index, _) = found.remove();
        let last = u32::try_from(self.entries.len() - 1).expect("it has an index");
        if index != last {
            let hash = self.hasher.hash_one(&self.entries[last as usize].0);
            let moved = self.index_by_hash.find_mut(hash, |index| *index == last);
            *moved.expect("each entry has its index there") = index;
        }
        Some(self.entries.swap_remove(index as usize).1)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        Some(&self.entry(key)?.1)
    }

    /// The stored key that equals a key, with its value.
    pub(crate) fn entry(&self, key: &K) -> Option<&(K, V)> {
        Some(&self.entries[self.index_of(key)?])
    }

    /// The same, with its value mutable.
    pub(crate) fn entry_mut(&mut self, key: &K) -> Option<(&K, &mut V)> {
        let index = self.index_of(key)?;
        let (key, value) = &mut self.entries[index];
        Some((key, value))
    }

    fn index_of(&self, key: &K) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        let is_key = |index: &u32| self.entries[*index as usize].0 == *key;
        Some(*self.index_by_hash.find(hash, is_key)? as usize)
    }
}

impl<K, V, S> IndexedMap<K, V, S> {
    /// The entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.entries.iter()
    }
}

impl<K, V, S: Default> Default for IndexedMap<K, V, S> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            index_by_hash: HashTable::new(),
            hasher: S::default(),
        }
    }
}

impl BuildHasher for KeyedHasher {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.0.hasher().build_hasher()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in vec((any::<bool>(), 0_u8..40, any::<u16>()), 0..400)) {
            let (mut map, mut model) = (IndexedMap::<u8, u16>::default(), HashMap::new());
            for (inserts, key, value) in steps {
                if inserts {
                    assert_eq!(map.insert(key, value), model.insert(key, value));
                } else {
                    assert_eq!(map.remove(&key), model.remove(&key));
                }
                for key in 0..40 {
                    assert_eq!(map.get(&key), model.get(&key));
                }
                let entries: HashMap<u8, u16> = map.iter().copied().collect();
                assert_eq!(entries, model);
            }
        }
    }

    #[test]
    fn it_grows_by_an_eighth() {
        let mut map = IndexedMap::<u32, u32>::default();
        for key in 0..10_000 {
            map.insert(key, key);
            let (length, capacity) = (map.entries.len(), map.entries.capacity());
            assert!(capacity <= length + length / 8 + 1, "{length}: {capacity}");
        }
    }
}
