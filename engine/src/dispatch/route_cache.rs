//! Which arbiter owned the device that was last seen at a peer? A cache of bounded size.
//!
//! A hint saves a search, and correctness does not depend on it: the arbiter it names looks the
//! peer up itself, and the search continues if no device is there. So a collision of digests or an
//! evicted peer only costs a detour.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::peer::Peer;

/// Peers in the cache: always two mebibytes.
const SLOTS: usize = 1 << 18;

/// The bits of a slot that name the arbiter; zero means that the slot is free.
const ARBITER_BITS: u64 = 0x7FFF;

/// The bit of a slot that says that a device is registered at the peer. Without it a datagram from
/// the peer only named a device.
const REGISTERED_BIT: u64 = 0x8000;

const DIGEST_BITS: u64 = !(ARBITER_BITS | REGISTERED_BIT);

/// The arbiters of the peers seen last.
#[derive(Debug)]
pub(super) struct RouteCache {
    slots: Box<[u64]>,
}

impl RouteCache {
    /// An empty cache; a single arbiter needs none.
    pub(super) fn among(shard_map: ShardMap) -> Self {
        let slots = if shard_map.count() == 1 { 0 } else { SLOTS };
        Self {
            slots: vec![0; slots].into(),
        }
    }

    /// Notes which arbiter owns the device that a datagram from a peer named.
    pub(super) fn note(&mut self, peer: Peer, owner: ArbiterId) {
        self.put(peer, owner, |slot, noted| {
            match slot & !REGISTERED_BIT == noted {
                true => slot,
                false => noted,
            }
        });
    }

    /// Notes which arbiter owns the device that is registered at a peer.
    pub(super) fn note_registered(&mut self, peer: Peer, owner: ArbiterId) {
        self.put(peer, owner, |_, noted| noted | REGISTERED_BIT);
    }

    /// Which arbiter owned the device at a peer.
    pub(super) fn arbiter_of(&self, peer: Peer, shard_map: ShardMap) -> Option<ArbiterId> {
        let slot = self.slot_of(peer)?;
        let named = u16::try_from(slot & ARBITER_BITS).ok()?.checked_sub(1)?;
        shard_map.numbered(named)
    }

    /// Whether a device is registered at a peer, as far as is remembered.
    pub(super) fn has_registered(&self, peer: Peer) -> bool {
        let slot = self.slot_of(peer);
        slot.is_some_and(|slot| slot & REGISTERED_BIT != 0)
    }

    fn slot_of(&self, peer: Peer) -> Option<u64> {
        if self.slots.is_empty() {
            return None;
        }
        let digest = digest(peer);
        let slot = *self.slots.get(place(digest))?;
        (slot & DIGEST_BITS == digest & DIGEST_BITS).then_some(slot)
    }

    /// Replaces the slot of a peer by what comes of its value and the value that names the owner.
    fn put(&mut self, peer: Peer, owner: ArbiterId, join: impl FnOnce(u64, u64) -> u64) {
        if self.slots.is_empty() {
            return;
        }
        let digest = digest(peer);
        let named = u64::from(owner.number()) + 1;
        if let Some(slot) = self.slots.get_mut(place(digest)) {
            *slot = join(*slot, digest & DIGEST_BITS | named);
        }
    }
}

fn digest(peer: Peer) -> u64 {
    let mut hasher = DefaultHasher::new();
    peer.hash(&mut hasher);
    hasher.finish()
}

fn place(digest: u64) -> usize {
    usize::try_from(digest >> 46).expect("eighteen bits")
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    #[test]
    fn a_hint_is_remembered_until_another_takes_its_place() {
        let shard_map = ShardMap::among(3);
        let mut cache = RouteCache::among(shard_map);
        let arbiters: Vec<ArbiterId> = shard_map.arbiters().collect();
        assert_eq!(cache.arbiter_of(peer(1), shard_map), None);
        for number in 0..100 {
            cache.note(peer(number), arbiters[number as usize % 3]);
        }
        for number in 0..100 {
            let owner = Some(arbiters[number as usize % 3]);
            assert_eq!(cache.arbiter_of(peer(number), shard_map), owner);
        }
        cache.note(peer(1), arbiters[0]);
        assert_eq!(cache.arbiter_of(peer(1), shard_map), Some(arbiters[0]));
    }

    #[test]
    fn a_peer_that_names_a_device_is_not_taken_for_a_registered_one() {
        let shard_map = ShardMap::among(3);
        let mut cache = RouteCache::among(shard_map);
        let arbiters: Vec<ArbiterId> = shard_map.arbiters().collect();
        cache.note(peer(1), arbiters[1]);
        assert!(!cache.has_registered(peer(1)));
        cache.note_registered(peer(1), arbiters[1]);
        cache.note(peer(1), arbiters[1]);
        assert!(cache.has_registered(peer(1)) && !cache.has_registered(peer(2)));
        assert_eq!(cache.arbiter_of(peer(1), shard_map), Some(arbiters[1]));
        cache.note(peer(1), arbiters[2]);
        assert!(!cache.has_registered(peer(1)));
        assert_eq!(cache.arbiter_of(peer(1), shard_map), Some(arbiters[2]));
    }

    #[test]
    fn the_cache_evicts_peers_at_its_bound() {
        let shard_map = ShardMap::among(2);
        let mut cache = RouteCache::among(shard_map);
        let owner = shard_map.arbiters().next().unwrap();
        let room = u32::try_from(SLOTS).unwrap();
        for number in 0..4 * room {
            cache.note(peer(number), owner);
        }
        let known =
            (0..4 * room).filter(|number| cache.arbiter_of(peer(*number), shard_map).is_some());
        assert!(known.count() <= SLOTS);
        assert_eq!(cache.arbiter_of(peer(4 * room - 1), shard_map), Some(owner));
    }

    fn peer(number: u32) -> Peer {
        Peer::plain(SocketAddr::from((
            Ipv4Addr::from_bits(0x0A00_0000 + number),
            5683,
        )))
    }
}
