//! Which arbiter receives what a peer sends? The same one as long as the arbiters stay, and for
//! most peers also when one joins or leaves them.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use engine::dispatch::shard_map::ArbiterId;
use engine::peer::Peer;

/// The parts that peers are divided into; each is received by one arbiter.
const PARTS: u16 = 256;

/// The arbiters that receive, by the part of a peer.
#[derive(Debug, Default)]
pub(crate) enum PeerChoice {
    /// There is none.
    #[default]
    None,
    /// There is one.
    Only(ArbiterId),
    /// There are several.
    ByPart(Vec<ArbiterId>),
}

impl PeerChoice {
    /// A choice among these arbiters: each part has the one that is first by a hash of both, so
    /// that it keeps it unless that one leaves, or a new one is first.
    pub(crate) fn among(arbiters: &[ArbiterId]) -> Self {
        let first_of = |part: u16| {
            let by_hash = |arbiter: &&ArbiterId| hash(&(part, arbiter.number()));
            arbiters.iter().min_by_key(by_hash).copied()
        };
        match arbiters {
            [] => Self::None,
            [only] => Self::Only(*only),
            [..] => Self::ByPart((0..PARTS).filter_map(first_of).collect()),
        }
    }

    /// The arbiter that receives from a peer.
    pub(crate) fn of(&self, peer: Peer) -> Option<ArbiterId> {
        match self {
            Self::None => None,
            Self::Only(only) => Some(*only),
            Self::ByPart(parts) => {
                let part = hash(&peer.address) % u64::from(PARTS);
                parts.get(usize::try_from(part).ok()?).copied()
            }
        }
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use engine::dispatch::shard_map::ShardMap;

    use super::*;

    #[test]
    fn a_peer_stays_with_its_arbiter_unless_that_leaves() {
        let all: Vec<ArbiterId> = ShardMap::among(16).arbiters().collect();
        let before = PeerChoice::among(&all);
        let after = PeerChoice::among(&all[1..]);
        let mut shares = [0; 16];
        for number in 0..4_096 {
            let ip = Ipv4Addr::from_bits(0x0A00_0000 + number);
            let peer = Peer::plain(SocketAddr::from((ip, 5683)));
            let chosen = before.of(peer).unwrap();
            shares[chosen.index()] += 1;
            let then = after.of(peer).unwrap();
            match chosen == all[0] {
                true => assert_ne!(then, all[0]),
                false => assert_eq!(then, chosen),
            }
        }
        assert!(shares.iter().all(|it| *it > 64), "{shares:?}");
        assert_eq!(
            PeerChoice::among(&[]).of(Peer::plain(([10, 0, 0, 1], 1).into())),
            None
        );
    }
}
