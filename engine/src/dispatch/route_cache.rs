//! Where was a peer's device at home when it was last heard here? Remembered for so many peers.
//!
//! A hint spares a search and nothing rests on it: the arbiter it names looks for itself, and the
//! search goes on if there is nobody. So two peers of one digest, or one that pushes another out,
//! cost a detour.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::peer::Peer;

/// Peers remembered: two mebibytes, whatever comes.
const SLOTS: usize = 1 << 18;

/// The part of a slot that says which arbiter; zero says that the slot is free.
const HOME_BITS: u64 = 0xFFFF;

/// The homes of the peers heard last.
#[derive(Debug)]
pub(super) struct RouteCache {
    slots: Box<[u64]>,
}

impl RouteCache {
    /// No hint yet; where there is one arbiter, none is ever needed.
    pub(super) fn among(shard_map: ShardMap) -> Self {
        let slots = if shard_map.count() == 1 { 0 } else { SLOTS };
        Self {
            slots: vec![0; slots].into(),
        }
    }

    /// Notes where the device of a peer is at home.
    pub(super) fn note(&mut self, peer: Peer, home: ArbiterId) {
        if self.slots.is_empty() {
            return;
        }
        let digest = digest(peer);
        let named = u64::from(home.number()) + 1;
        if let Some(slot) = self.slots.get_mut(place(digest)) {
            *slot = digest & !HOME_BITS | named;
        }
    }

    /// Where the device of a peer was at home.
    pub(super) fn arbiter_of(&self, peer: Peer, shard_map: ShardMap) -> Option<ArbiterId> {
        if self.slots.is_empty() {
            return None;
        }
        let digest = digest(peer);
        let slot = *self.slots.get(place(digest))?;
        if slot & !HOME_BITS != digest & !HOME_BITS {
            return None;
        }
        let named = u16::try_from(slot & HOME_BITS).ok()?.checked_sub(1)?;
        shard_map.numbered(named)
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
        let mut route_hints = RouteCache::among(shard_map);
        let arbiters: Vec<ArbiterId> = shard_map.arbiters().collect();
        assert_eq!(route_hints.arbiter_of(peer(1), shard_map), None);
        for number in 0..100 {
            route_hints.note(peer(number), arbiters[number as usize % 3]);
        }
        for number in 0..100 {
            let home = Some(arbiters[number as usize % 3]);
            assert_eq!(route_hints.arbiter_of(peer(number), shard_map), home);
        }
        route_hints.note(peer(1), arbiters[0]);
        assert_eq!(
            route_hints.arbiter_of(peer(1), shard_map),
            Some(arbiters[0])
        );
    }

    #[test]
    fn more_peers_than_there_is_room_for_push_each_other_out() {
        let shard_map = ShardMap::among(2);
        let mut route_hints = RouteCache::among(shard_map);
        let home = shard_map.arbiters().next().unwrap();
        let room = u32::try_from(SLOTS).unwrap();
        for number in 0..4 * room {
            route_hints.note(peer(number), home);
        }
        let known = (0..4 * room)
            .filter(|number| route_hints.arbiter_of(peer(*number), shard_map).is_some());
        assert!(known.count() <= SLOTS);
        assert_eq!(
            route_hints.arbiter_of(peer(4 * room - 1), shard_map),
            Some(home)
        );
    }

    fn peer(number: u32) -> Peer {
        Peer::plain(SocketAddr::from((
            Ipv4Addr::from_bits(0x0A00_0000 + number),
            5683,
        )))
    }
}
