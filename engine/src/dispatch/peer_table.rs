//! Which device is behind a peer? The registered devices of an arbiter by where they send from, and
//! those that are asked elsewhere by where they answer from.
//!
//! Two devices may be known at one peer: one of them was there before, and nobody heard yet that
//! it left. The one heard last is behind it. So each device says where it is whenever it is heard,
//! and all but a few find that nothing happened since they said so last.

use std::collections::HashMap;
use std::num::NonZeroU64;

use crate::ids::DeviceKey;
use crate::peer::Peer;

/// Devices by where they send from.
///
/// Where a device is asked it need not be registered, and another may be: an exchange lets answers
/// through, and nothing else. Whoever may ask at an address must not be told what others say from
/// there.
#[derive(Debug, Default)]
pub struct PeerTable {
    /// Where they are registered.
    device_by_peer: HashMap<Peer, DeviceKey>,
    /// Where they are asked and are not registered.
    device_by_exchange_peer: HashMap<Peer, DeviceKey>,
    /// How often a device came to a peer that was another's.
    takeovers: u64,
}

/// What a device last said of where it is.
#[derive(Debug, Default)]
pub struct PeerBinding {
    /// How many takeovers it knew of when it last said where it is registered. Without one since,
    /// it still is behind its peer and need not look; in a large fleet a look finds nothing in the
    /// cache.
    takeovers: Option<NonZeroU64>,
    /// Where it is asked and is not registered.
    exchange_peer: Option<Box<Peer>>,
}

impl PeerTable {
    /// Takes what a device says of where it is: it is registered at `to` and was at `from`, or is
    /// there still; without `from` it is asked at `to`; without `to` it is at `from` no longer.
    pub fn rebind(
        &mut self,
        device: DeviceKey,
        from: Option<Peer>,
        to: Option<Peer>,
        binding: &mut PeerBinding,
    ) {
        match (from, to) {
            (None, Some(to)) => {
                self.device_by_exchange_peer.insert(to, device);
                binding.exchange_peer = Some(Box::new(to));
            }
            (Some(from), Some(to)) => self.register(device, (from, to), binding),
            (Some(peer), None) if binding.has_exchange_at(peer) => {
                self.end_exchange(device, binding)
            }
            (Some(peer), None) => {
                leave(&mut self.device_by_peer, device, peer);
                binding.takeovers = None;
            }
            (None, None) => {}
        }
    }

    fn register(&mut self, device: DeviceKey, (from, to): (Peer, Peer), binding: &mut PeerBinding) {
        if binding.has_exchange_at(to) {
            self.end_exchange(device, binding);
        }
        if from == to && binding.takeovers == self.takeovers_known() {
            return;
        }
        if from != to {
            leave(&mut self.device_by_peer, device, from);
        }
        if let Some(other) = self.device_by_peer.insert(to, device)
            && other != device
        {
            self.takeovers += 1;
        }
        binding.takeovers = self.takeovers_known();
    }

    /// One more than there were, which is never none.
    fn takeovers_known(&self) -> Option<NonZeroU64> {
        NonZeroU64::MIN.checked_add(self.takeovers)
    }

    /// Forgets where a device is asked that ends in the middle of it: nobody knows of that any
    /// more.
    pub fn abandon(&mut self, device: DeviceKey, binding: &mut PeerBinding) {
        self.end_exchange(device, binding);
    }

    /// The device that is registered where a request comes from.
    pub fn device_at(&self, peer: Peer) -> Option<DeviceKey> {
        self.device_by_peer.get(&peer).copied()
    }

    /// The device that may answer from a peer: the one asked there, or else registered.
    pub fn device_answering_from(&self, peer: Peer) -> Option<DeviceKey> {
        let asked = self.device_by_exchange_peer.get(&peer).copied();
        asked.or_else(|| self.device_at(peer))
    }

    fn end_exchange(&mut self, device: DeviceKey, binding: &mut PeerBinding) {
        if let Some(peer) = binding.exchange_peer.take() {
            leave(&mut self.device_by_exchange_peer, device, *peer);
        }
    }
}

fn leave(device_by_peer: &mut HashMap<Peer, DeviceKey>, device: DeviceKey, peer: Peer) {
    if device_by_peer.get(&peer) == Some(&device) {
        device_by_peer.remove(&peer);
    }
}

impl PeerBinding {
    fn has_exchange_at(&self, peer: Peer) -> bool {
        self.exchange_peer.as_deref() == Some(&peer)
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
        let mut peers = PeerTable::default();
        let (mut early, mut late) = (Known::new("early"), Known::new("late"));
        early.comes(&mut peers, None, HERE);
        late.comes(&mut peers, None, HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(late.key));
        early.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(early.key));
        late.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(late.key));
    }

    #[test]
    fn a_device_is_found_again_where_another_was_and_left() {
        let mut peers = PeerTable::default();
        let (mut stays, mut leaves) = (Known::new("stays"), Known::new("leaves"));
        stays.comes(&mut peers, None, HERE);
        leaves.comes(&mut peers, None, HERE);
        leaves.comes(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), None);
        stays.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(stays.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(leaves.key));
    }

    #[test]
    fn a_device_that_leaves_does_not_take_the_place_of_another_along() {
        let mut peers = PeerTable::default();
        let (mut leaves, mut stays) = (Known::new("leaves"), Known::new("stays"));
        leaves.comes(&mut peers, None, HERE);
        stays.comes(&mut peers, None, HERE);
        leaves.comes(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(stays.key));
        peers.rebind(leaves.key, Some(peer(THERE)), None, &mut leaves.binding);
        assert_eq!(peers.device_answering_from(peer(THERE)), None);
    }

    #[test]
    fn an_exchange_elsewhere_leaves_the_device_where_it_is_registered() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        meter.is_asked(&mut peers, THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(meter.key));
        meter.goes(&mut peers, THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), None);
    }

    #[test]
    fn an_exchange_of_a_device_without_registration_leaves_nothing_behind() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        for _ in 0..2 {
            meter.is_asked(&mut peers, HERE);
            // Each repetition says so again.
            meter.is_asked(&mut peers, HERE);
            assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
            meter.goes(&mut peers, HERE);
            assert!(peers.device_by_exchange_peer.is_empty());
        }
    }

    #[test]
    fn a_device_that_was_at_an_exchange_still_notices_who_took_its_place() {
        let mut peers = PeerTable::default();
        let (mut meter, mut other) = (Known::new("meter"), Known::new("other"));
        meter.comes(&mut peers, None, HERE);
        other.comes(&mut peers, None, HERE);
        meter.is_asked(&mut peers, THERE);
        meter.goes(&mut peers, THERE);
        meter.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn an_exchange_does_not_take_the_registration_along_that_came_to_its_peer() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        meter.is_asked(&mut peers, THERE);
        meter.comes(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), None);
        peers.abandon(meter.key, &mut meter.binding);
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(meter.key));
    }

    #[test]
    fn a_device_that_ends_at_an_exchange_is_behind_its_registration_alone() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        meter.comes(&mut peers, Some(HERE), HERE);
        meter.is_asked(&mut peers, THERE);
        peers.abandon(meter.key, &mut meter.binding);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), None);
    }

    #[test]
    fn a_device_that_just_registered_and_ends_is_still_found_where_it_is() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        peers.abandon(meter.key, &mut meter.binding);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn a_device_that_ends_does_not_take_the_place_of_another_along() {
        let mut peers = PeerTable::default();
        let (mut ends, mut stays) = (Known::new("ends"), Known::new("stays"));
        ends.is_asked(&mut peers, THERE);
        stays.is_asked(&mut peers, THERE);
        peers.abandon(ends.key, &mut ends.binding);
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(stays.key));
    }

    #[test]
    fn a_device_that_is_asked_somewhere_answers_from_there_and_says_nothing_else_from_there() {
        let mut peers = PeerTable::default();
        let (mut asked, mut registered) = (Known::new("asked"), Known::new("registered"));
        asked.is_asked(&mut peers, HERE);
        assert_eq!(peers.device_at(peer(HERE)), None);
        registered.comes(&mut peers, None, HERE);
        asked.is_asked(&mut peers, HERE);
        assert_eq!(peers.device_at(peer(HERE)), Some(registered.key));
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(asked.key));
        asked.goes(&mut peers, HERE);
        assert_eq!(
            peers.device_answering_from(peer(HERE)),
            Some(registered.key)
        );
    }

    #[test]
    fn a_device_that_left_its_peer_is_there_again_when_it_says_so() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, None, HERE);
        meter.goes(&mut peers, HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), None);
        meter.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn a_device_that_was_brought_back_is_where_it_was() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.comes(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
    }

    struct Known {
        key: DeviceKey,
        binding: PeerBinding,
    }

    impl Known {
        fn new(name: &str) -> Self {
            let customer = CustomerId::parse("acme").unwrap();
            let key = DeviceKey::of(&customer, &DeviceId::parse(name).unwrap());
            Self {
                key,
                binding: PeerBinding::default(),
            }
        }

        fn comes(&mut self, peers: &mut PeerTable, from: Option<&str>, to: &str) {
            let from = from.unwrap_or(to);
            peers.rebind(
                self.key,
                Some(peer(from)),
                Some(peer(to)),
                &mut self.binding,
            );
        }

        fn is_asked(&mut self, peers: &mut PeerTable, at: &str) {
            peers.rebind(self.key, None, Some(peer(at)), &mut self.binding);
        }

        fn goes(&mut self, peers: &mut PeerTable, from: &str) {
            peers.rebind(self.key, Some(peer(from)), None, &mut self.binding);
        }
    }

    fn peer(address: &str) -> Peer {
        let address: SocketAddr = address.parse().unwrap();
        Peer::plain(address)
    }
}
