//! Which arbiter of this process owns a shard?
//!
//! Each arbiter owns a contiguous range of shards, so that its devices are neighbours in the store.

use std::num::NonZeroU16;
use std::ops::RangeInclusive;

use crate::ids::{DeviceKey, Shard};
use crate::limits::SHARDS;

/// The bits of a datagram's number that count; those above name the arbiter that received it.
const RECEIVED_BITS: u32 = 48;

/// Names an arbiter of this process: one thread with its own socket and devices.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ArbiterId(u16);

impl ArbiterId {
    /// The index of the arbiter in this process.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The number of the datagram that it received as its nth: unique within the process.
    pub fn datagram_number(self, nth: u64) -> u64 {
        u64::from(self.0) << RECEIVED_BITS | nth & ((1 << RECEIVED_BITS) - 1)
    }

    /// The arbiter that received the datagram with a number.
    pub fn receiver_of(datagram: u64) -> Self {
        let [first, second, ..] = datagram.to_be_bytes();
        Self(u16::from_be_bytes([first, second]))
    }

    /// The number of the arbiter.
    pub fn number(self) -> u16 {
        self.0
    }
}

/// The distribution of the shards among the arbiters of this process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShardMap {
    arbiters: NonZeroU16,
}

impl ShardMap {
    /// The most arbiters that each have a shard of their own.
    pub const ARBITERS_MAX: u16 = SHARDS;

    /// The distribution among so many arbiters, clamped to at least one and at most one per shard.
    pub fn among(arbiters: usize) -> Self {
        let arbiters = u16::try_from(arbiters).unwrap_or(Self::ARBITERS_MAX);
        let arbiters = arbiters.clamp(1, Self::ARBITERS_MAX);
        Self {
            arbiters: NonZeroU16::new(arbiters).expect("at least one"),
        }
    }

    /// The arbiters.
    pub fn arbiters(self) -> impl Iterator<Item = ArbiterId> + Clone {
        (0..self.arbiters.get()).map(ArbiterId)
    }

    /// How many arbiters there are.
    pub fn count(self) -> u16 {
        self.arbiters.get()
    }

    /// The arbiter of this number, if there is one.
    pub fn numbered(self, number: u16) -> Option<ArbiterId> {
        (number < self.arbiters.get()).then_some(ArbiterId(number))
    }

    /// The arbiter that owns a shard.
    pub fn arbiter_of(self, Shard(shard): Shard) -> ArbiterId {
        let owner = u32::from(shard) * u32::from(self.arbiters.get()) / u32::from(SHARDS);
        ArbiterId(u16::try_from(owner).expect("less than the arbiters"))
    }

    /// The shards of an arbiter.
    pub fn shards(self, arbiter: ArbiterId) -> RangeInclusive<Shard> {
        let first = |arbiter: u32| {
            let first = (arbiter * u32::from(SHARDS)).div_ceil(u32::from(self.arbiters.get()));
            u16::try_from(first).expect("at most the shards")
        };
        let arbiter = u32::from(arbiter.0);
        Shard(first(arbiter))..=Shard(first(arbiter + 1) - 1)
    }

    /// The keys of the devices that an arbiter owns.
    pub fn keys(self, arbiter: ArbiterId) -> RangeInclusive<DeviceKey> {
        let shards = self.shards(arbiter);
        shards.start().first_key()..=shards.end().last_key()
    }

    /// The arbiter after this one; after the last comes the first.
    pub(super) fn next(self, arbiter: ArbiterId) -> ArbiterId {
        ArbiterId(arbiter.0.saturating_add(1) % self.arbiters.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_has_one_owner_and_every_arbiter_a_range_of_shards() {
        for count in [1, 2, 3, 7, 64, 1_000, SHARDS] {
            let shard_map = ShardMap::among(usize::from(count));
            let mut next = 0;
            for arbiter in shard_map.arbiters() {
                let (Shard(first), Shard(last)) = shard_map.shards(arbiter).into_inner();
                assert_eq!(first, next);
                assert!(first <= last, "{count} arbiters, {arbiter:?}");
                for shard in first..=last {
                    assert_eq!(shard_map.arbiter_of(Shard(shard)), arbiter);
                }
                let keys = shard_map.keys(arbiter);
                assert_eq!(keys.start().shard(), Shard(first));
                assert_eq!(keys.end().shard(), Shard(last));
                next = last + 1;
            }
            assert_eq!(next, SHARDS);
        }
    }

    #[test]
    fn there_is_at_least_one_arbiter_and_none_without_a_shard() {
        assert_eq!(ShardMap::among(0).count(), 1);
        assert_eq!(ShardMap::among(100_000).count(), SHARDS);
    }
}
