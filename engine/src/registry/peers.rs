//! Which device is behind a peer? The registered devices of an arbiter by where they send from, and
//! those with whom an exchange is under way elsewhere.
//!
//! Two devices may be known at one peer: one of them was there before, and nobody heard yet that
//! it left. The one heard last is behind it. So each device says where it is whenever it is heard,
//! and all but a few find that nothing happened since they said so last.

use std::collections::HashMap;

use crate::ids::DeviceKey;
use crate::peer::Peer;

/// Devices by where they send from; at most two peers for each: where it is registered, and where
/// its exchange is.
#[derive(Debug, Default)]
pub struct Peers {
    device_by_peer: HashMap<Peer, DeviceKey>,
    /// How often a device came to a peer that was another's.
    takeovers: u64,
}

/// What a device last said of where it is.
#[derive(Debug, Default)]
pub struct Said {
    /// How many takeovers it knew of when it last said where it is registered. Without one since,
    /// it still is behind its peer and need not look; in a large fleet a look finds nothing in the
    /// cache.
    takeovers: Option<u64>,
    /// The peer it came to while it was behind another, or behind none.
    beside: Option<Box<Peer>>,
}

impl Peers {
    /// Lets the datagrams of `to` reach a device, and those of `from` no longer.
    pub fn rebind(
        &mut self,
        device: DeviceKey,
        from: Option<Peer>,
        to: Option<Peer>,
        said: &mut Said,
    ) {
        let is_known = said.takeovers == Some(self.takeovers) && said.beside.is_none();
        if from == to && is_known {
            return;
        }
        if from != to
            && let Some(from) = from
        {
            self.leave(device, from);
        }
        if let Some(to) = to
            && let Some(other) = self.device_by_peer.insert(to, device)
            && other != device
        {
            self.takeovers += 1;
        }
        match (from, to) {
            // It says nothing of where the device is registered, if it is.
            (None, Some(to)) => said.beside = Some(Box::new(to)),
            (Some(peer), None) => said.forget_beside(peer),
            (Some(_), Some(to)) => {
                said.takeovers = Some(self.takeovers);
                said.forget_beside(to);
            }
            (None, None) => {}
        }
    }

    /// Forgets where a device is that ends in the middle of something and is registered there, or
    /// not at all: of its exchange nobody knows any more.
    pub fn abandon(&mut self, device: DeviceKey, registered: Option<Peer>, said: &mut Said) {
        if let Some(beside) = said.beside.take()
            && registered != Some(*beside)
        {
            self.leave(device, *beside);
        }
    }

    /// The device behind a peer.
    pub fn device_behind(&self, peer: Peer) -> Option<DeviceKey> {
        self.device_by_peer.get(&peer).copied()
    }

    fn leave(&mut self, device: DeviceKey, peer: Peer) {
        if self.device_by_peer.get(&peer) == Some(&device) {
            self.device_by_peer.remove(&peer);
        }
    }
}

impl Said {
    fn forget_beside(&mut self, peer: Peer) {
        self.beside.take_if(|beside| **beside == peer);
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

    #[test]
    fn an_exchange_elsewhere_leaves_the_device_where_it_is_registered() {
        let mut peers = Peers::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        meter.comes(&mut peers, None, THERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_behind(peer(THERE)), Some(meter.key));
        meter.goes(&mut peers, THERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_behind(peer(THERE)), None);
    }

    #[test]
    fn an_exchange_of_a_device_without_registration_leaves_nothing_behind() {
        let mut peers = Peers::default();
        let mut meter = Known::new("meter");
        for _ in 0..2 {
            meter.comes(&mut peers, None, HERE);
            // Each repetition says so again.
            meter.comes(&mut peers, None, HERE);
            assert_eq!(peers.device_behind(peer(HERE)), Some(meter.key));
            meter.goes(&mut peers, HERE);
            assert!(peers.device_by_peer.is_empty());
        }
    }

    #[test]
    fn a_device_that_was_at_an_exchange_still_notices_who_took_its_place() {
        let mut peers = Peers::default();
        let (mut meter, mut other) = (Known::new("meter"), Known::new("other"));
        meter.comes(&mut peers, None, HERE);
        other.comes(&mut peers, None, HERE);
        meter.comes(&mut peers, None, THERE);
        meter.goes(&mut peers, THERE);
        meter.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn an_exchange_does_not_take_the_registration_along_that_came_to_its_peer() {
        let mut peers = Peers::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        meter.comes(&mut peers, None, THERE);
        meter.comes(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_behind(peer(HERE)), None);
        peers.abandon(meter.key, Some(peer(THERE)), &mut meter.said);
        assert_eq!(peers.device_behind(peer(THERE)), Some(meter.key));
    }

    #[test]
    fn a_device_that_ends_at_an_exchange_is_behind_its_registration_alone() {
        let mut peers = Peers::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        meter.comes(&mut peers, Some(HERE), HERE);
        meter.comes(&mut peers, None, THERE);
        peers.abandon(meter.key, Some(peer(HERE)), &mut meter.said);
        assert_eq!(peers.device_behind(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_behind(peer(THERE)), None);
    }

    #[test]
    fn a_device_that_just_registered_and_ends_is_still_found_where_it_is() {
        let mut peers = Peers::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        peers.abandon(meter.key, Some(peer(HERE)), &mut meter.said);
        assert_eq!(peers.device_behind(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn a_device_that_ends_does_not_take_the_place_of_another_along() {
        let mut peers = Peers::default();
        let (mut ends, mut stays) = (Known::new("ends"), Known::new("stays"));
        ends.comes(&mut peers, None, THERE);
        stays.comes(&mut peers, None, THERE);
        peers.abandon(ends.key, None, &mut ends.said);
        assert_eq!(peers.device_behind(peer(THERE)), Some(stays.key));
    }

    #[test]
    fn a_device_that_was_brought_back_is_where_it_was() {
        let mut peers = Peers::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_behind(peer(HERE)), Some(meter.key));
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

        fn goes(&mut self, peers: &mut Peers, from: &str) {
            peers.rebind(self.key, Some(peer(from)), None, &mut self.said);
        }
    }

    fn peer(address: &str) -> Peer {
        let address: SocketAddr = address.parse().unwrap();
        Peer::plain(address)
    }
}
