//! Which blocks of events are in memory? Those that were read last, within a bound: one read serves
//! every event of a block, for each destination and stream that wants it.
//!
//! A block is never changed, only removed. So what is in memory is what is stored, as long as a
//! removed block is dropped, and a read that began before the removal keeps nothing.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::delivery::backlog::Sequence;
use engine::ids::{CustomerId, Partition};
use sled::{IVec, Tree};

use super::fault::Fault;
use super::key;
use super::kv;
use crate::record::block::Block;

/// The bytes of blocks in memory, for all destinations and streams: what eight destinations have
/// open at most, if an event has 250 bytes. Beyond it, what was read first is dropped and read
/// again when it is wanted.
const BLOCKS_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// What a block takes beside its events: its key, in two places, and the allocations.
const OVERHEAD_BYTES: usize = 256;

/// The blocks in memory, for all readers.
#[derive(Default)]
pub(super) struct BlockCache {
    kept: Mutex<KeptBlocks>,
}

#[derive(Default)]
struct KeptBlocks {
    /// By key, so in the order of the stored ones.
    by_key: BTreeMap<IVec, KeptBlock>,
    /// In the order in which they were read.
    key_by_read: BTreeMap<u64, IVec>,
    /// The number of the next read.
    next_read: u64,
    bytes: usize,
    /// Counts removals from the store.
    removals: u64,
}

struct KeptBlock {
    block: Arc<Block<'static>>,
    /// The number of its read.
    read: u64,
}

impl BlockCache {
    /// The block of a partition that may have the event with a number, if it is in memory.
    pub(super) fn find(
        &self,
        customer: &CustomerId,
        partition: Partition,
        number: Sequence,
    ) -> Option<Arc<Block<'static>>> {
        let first = key::event::blocks_in(customer, partition);
        let last = key::event::block(customer, partition, number);
        let kept = self.lock();
        let stretch = (Bound::Included(&*first), Bound::Included(&*last));
        let mut before = kept.by_key.range::<[u8], _>(stretch);
        let block = &before.next_back()?.1.block;
        (block.head.last >= number).then(|| Arc::clone(block))
    }

    /// The block under a key, unless it is removed: from memory, or from the store.
    pub(super) fn read(
        &self,
        tree: &Tree,
        key: &IVec,
    ) -> Result<Option<Arc<Block<'static>>>, Fault> {
        let removals = {
            let kept = self.lock();
            if let Some(found) = kept.by_key.get(key) {
                return Ok(Some(Arc::clone(&found.block)));
            }
            kept.removals
        };
        let Some(value) = kv::load(tree, key)? else {
            return Ok(None);
        };
        let block = Arc::new(Block::read(&value)?.into_owned());
        self.lock().keep(key.clone(), &block, removals);
        Ok(Some(block))
    }

    /// Drops blocks that are removed from the store.
    pub(super) fn forget(&self, removed: impl Iterator<Item = IVec>) {
        let mut kept = self.lock();
        for key in removed {
            kept.removals += 1;
            kept.drop_block(&key);
        }
    }

    /// The lock may be poisoned: a block that is kept is the stored one at any moment.
    fn lock(&self) -> MutexGuard<'_, KeptBlocks> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptBlocks {
    /// Keeps a block that was read after so many removals. Those that were read first make room.
    fn keep(&mut self, key: IVec, block: &Arc<Block<'static>>, removals: u64) {
        if self.removals != removals || self.by_key.contains_key(&key) {
            return;
        }
        self.bytes += bytes_of(block);
        let (block, read) = (Arc::clone(block), self.next_read);
        self.next_read += 1;
        self.key_by_read.insert(read, key.clone());
        self.by_key.insert(key, KeptBlock { block, read });
        while self.bytes > BLOCKS_BYTES_MAX
            && let Some((_, first)) = self.key_by_read.pop_first()
        {
            self.drop_block(&first);
        }
    }

    fn drop_block(&mut self, key: &IVec) {
        if let Some(dropped) = self.by_key.remove(key) {
            self.bytes -= bytes_of(&dropped.block);
            self.key_by_read.remove(&dropped.read);
        }
    }
}

fn bytes_of(block: &Block<'_>) -> usize {
    OVERHEAD_BYTES + block.bytes()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use engine::delivery::backlog::QueuedEvent;
    use engine::moment::Timestamp;

    use super::*;
    use crate::conformance::samples::{acme, device, event};
    use crate::record::block::{BlockEntry, BlockWriter};

    const PARTITION: Partition = Partition(3);

    #[test]
    fn a_block_is_found_by_the_numbers_it_may_have() {
        let (db, cache) = stored([(10, 100), (20, 100)]);
        for first in [10, 20] {
            assert!(cache.read(&db, &key_of(first)).unwrap().is_some());
        }
        assert_eq!(found(&cache, 9..=22), [10, 11, 20, 21]);
        let other = cache.find(&acme(), Partition(4), Sequence(10));
        assert!(other.is_none());
        assert!(cache.read(&db, &key_of(30)).unwrap().is_none());
    }

    #[test]
    fn blocks_that_were_read_first_make_room_for_others() {
        let quarter = BLOCKS_BYTES_MAX / 4;
        let (db, cache) = stored([10, 20, 30, 40].map(|first| (first, quarter)));
        for first in [10, 20, 30, 10, 40] {
            cache.read(&db, &key_of(first)).unwrap();
        }
        assert_eq!(found(&cache, [10, 20, 30, 40]), [20, 30, 40]);
        cache.read(&db, &key_of(10)).unwrap();
        assert_eq!(found(&cache, [10, 20, 30, 40]), [10, 30, 40]);
    }

    #[test]
    fn a_removed_block_is_dropped_and_a_read_from_before_keeps_nothing() {
        let (db, cache) = stored([(10, 100), (20, 100)]);
        let before = cache.lock().removals;
        let block = cache.read(&db, &key_of(10)).unwrap().unwrap();
        cache.read(&db, &key_of(20)).unwrap();
        db.remove(key_of(10)).unwrap();
        cache.forget([key_of(10)].into_iter());
        cache.lock().keep(key_of(10), &block, before);
        assert_eq!(found(&cache, [10, 20]), [20]);
        assert!(cache.read(&db, &key_of(10)).unwrap().is_none());
        cache.forget([key_of(20)].into_iter());
        let kept = cache.lock();
        assert_eq!((kept.bytes, kept.key_by_read.len()), (0, 0));
    }

    /// A tree with blocks of two events each, by the number of the first and the size of an event.
    fn stored<const COUNT: usize>(blocks: [(u64, usize); COUNT]) -> (sled::Db, BlockCache) {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let example = event(&device(&acme(), 1), 1, 1);
        for (first, size) in blocks {
            let mut writer = BlockWriter::behind(0);
            for (number, size) in [(first, size), (first + 1, 0)] {
                let entry = BlockEntry {
                    queued: QueuedEvent::of(Sequence(number), &example),
                    previous: Sequence::default(),
                    event: Cow::Owned(vec![7; size]),
                };
                writer.push(Timestamp::from_ms(1), &entry);
            }
            db.insert(key_of(first), writer.finish()).unwrap();
        }
        (db, BlockCache::default())
    }

    fn key_of(first: u64) -> IVec {
        key::event::block(&acme(), PARTITION, Sequence(first)).into()
    }

    /// The numbers whose block is in memory.
    fn found(cache: &BlockCache, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let in_memory = |number: &u64| {
            let block = cache.find(&acme(), PARTITION, Sequence(*number));
            block.is_some()
        };
        numbers.into_iter().filter(in_memory).collect()
    }
}
