//! Which device is behind a peer? The registered devices of an arbiter by where they send from.
//!
//! Two devices may be known at one peer: one of them was there before, and nobody heard yet that
//! it left. The one heard last is behind it. So each device says where it is whenever it is heard,
//! and all but a few find that nothing happened since they said so last.

use std::collections::HashMap;

use crate::ids::DeviceKey;
use crate::peer::Peer;

/// Registered devices by where they send from; as many as there are registered devices.
#[derive(Debug, Default)]
pub struct Peers {
    device_by_peer: HashMap<Peer, DeviceKey>,
    /// How often a device came to a peer that was another's.
    takeovers: u64,
}

/// How many takeovers a device knew of when it last said where it is. Without one since, it still
/// is behind its peer and need not look; in a large fleet a look finds nothing in the cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said(u64);

impl Peers {
    /// Lets the datagrams of `to` reach a device, and those of `from` no longer.
    pub fn rebind(
        &mut self,
        device: DeviceKey,
        from: Option<Peer>,
        to: Option<Peer>,
        said: &mut Said,
    ) {
        if from == to && said.0 == self.takeovers {
            return;
        }
        if from != to
            && let Some(from) = from
            && self.device_by_peer.get(&from) == Some(&device)
        {
            self.device_by_peer.remove(&from);
        }
        if let Some(to) = to
            && let Some(other) = self.device_by_peer.insert(to, device)
            && other != device
        {
            self.takeovers += 1;
        }
        said.0 = self.takeovers;
    }

    /// The device registered behind a peer.
    pub fn device_behind(&self, peer: Peer) -> Option<DeviceKey> {
        self.device_by_peer.get(&peer).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use crate::ids::{CustomerId, DeviceId};

    use super::*;

    const HERE: &str = "10.0.0.1:5683";
    const THERE: &str = "10.0.0.2:5683";

    #[test]
    fn the_device_heard_last_is_behind_the_peer() {
        let mut peers = Peers::default();
        let (mut early, mut late) = (Known::new("early"), Known::new("late"));
        early.comes(&mut peers, None, HERE);
        late.comes(&mut peers, None, HERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(late.key));
        early.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(early.key));
        late.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(late.key));
    }

    #[test]
    fn a_device_is_found_again_where_another_was_and_left() {
        let mut peers = Peers::default();
        let (mut stays, mut leaves) = (Known::new("stays"), Known::new("leaves"));
        stays.comes(&mut peers, None, HERE);
        leaves.comes(&mut peers, None, HERE);
        leaves.comes(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_behind(peer(HERE)), None);
        stays.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(stays.key));
        assert_eq!(peers.device_behind(peer(THERE)), Some(leaves.key));
    }

    #[test]
    fn a_device_that_leaves_does_not_take_the_place_of_another_along() {
        let mut peers = Peers::default();
        let (mut leaves, mut stays) = (Known::new("leaves"), Known::new("stays"));
        leaves.comes(&mut peers, None, HERE);
        stays.comes(&mut peers, None, HERE);
        leaves.comes(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(stays.key));
        peers.rebind(leaves.key, Some(peer(THERE)), None, &mut leaves.said);
        assert_eq!(peers.device_behind(peer(THERE)), None);
    }

    struct Known {
        key: DeviceKey,
        said: Said,
    }

    impl Known {
        fn new(name: &str) -> Self {
            let customer = CustomerId::parse("acme").unwrap();
            let key = DeviceKey::of(&customer, &DeviceId::parse(name).unwrap());
            Self {
                key,
                said: Said::default(),
            }
        }

        fn comes(&mut self, peers: &mut Peers, from: Option<&str>, to: &str) {
            peers.rebind(self.key, from.map(peer), Some(peer(to)), &mut self.said);
        }
    }

    fn peer(address: &str) -> Peer {
        let address: SocketAddr = address.parse().unwrap();
        Peer::plain(address)
    }
}
