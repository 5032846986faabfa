//! Which device is at a peer? The registered devices of an arbiter by the peer they send from, and
//! devices in an exchange at another address by the peer they answer from.
//!
//! Two devices may be registered at one peer: one of them has left, which the service has not
//! learned yet. The peer belongs to the device that sent last. So each device rebinds its peer at
//! every uplink; for nearly all of them nothing has changed since the last time.

use std::collections::HashMap;
use std::num::NonZeroU64;

use crate::ids::DeviceKey;
use crate::indexed_map::IndexedMap;
use crate::peer::{Peer, PeerKey};

/// Devices by peer.
///
/// A device in an exchange at a peer need not be registered there, and another device may be. The
/// exchange lets answers through, and nothing else: a caller that may send requests to an address
/// must not receive what other devices send from there.
#[derive(Debug, Default)]
pub struct PeerTable {
    /// Devices by the peer of their registration.
    device_by_peer: IndexedMap<PeerKey, DeviceKey>,
    /// Devices by the peer of their exchange, if they are not registered there.
    device_by_exchange_peer: HashMap<Peer, DeviceKey>,
    /// How often a device took over a peer from another one.
    takeovers: u64,
}

/// What a device last announced of its peer.
#[derive(Debug, Default)]
pub struct PeerBinding {
    /// The number of takeovers, plus one, when it last announced the peer of its registration.
    /// Without a takeover since, the table still agrees and need not be read; in a large fleet such
    /// a read misses the CPU cache.
    takeovers: Option<NonZeroU64>,
    /// The peer of its exchange, if it is not registered there.
    exchange_peer: Option<Box<Peer>>,
}

impl PeerTable {
    /// Updates the peers of a device. With both peers it is registered at `to` and was at `from`,
    /// which may be the same. Without `from` it is in an exchange at `to`. Without `to` it has left
    /// `from`.
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
                self.leave(device, peer);
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
            self.leave(device, from);
        }
        if let Some(other) = self.device_by_peer.insert(to.key(), device)
            && other != device
        {
            self.takeovers += 1;
        }
        binding.takeovers = self.takeovers_known();
    }

    /// The number of takeovers plus one, so that it is never zero.
    fn takeovers_known(&self) -> Option<NonZeroU64> {
        NonZeroU64::MIN.checked_add(self.takeovers)
    }

    /// Forgets the exchange of a device whose actor ended during it.
    pub fn abandon(&mut self, device: DeviceKey, binding: &mut PeerBinding) {
        self.end_exchange(device, binding);
    }

    /// The device that is registered at the peer of a request.
    pub fn device_at(&self, peer: Peer) -> Option<DeviceKey> {
        self.device_by_peer.get(&peer.key()).copied()
    }

    /// The device that may answer from a peer: the one in an exchange there, or else the registered
    /// one.
    pub fn device_answering_from(&self, peer: Peer) -> Option<DeviceKey> {
        let in_exchange = self.device_by_exchange_peer.get(&peer).copied();
        in_exchange.or_else(|| self.device_at(peer))
    }

    fn end_exchange(&mut self, device: DeviceKey, binding: &mut PeerBinding) {
        if let Some(peer) = binding.exchange_peer.take()
            && self.device_by_exchange_peer.get(&peer) == Some(&device)
        {
            self.device_by_exchange_peer.remove(&peer);
        }
    }

    fn leave(&mut self, device: DeviceKey, peer: Peer) {
        let peer = peer.key();
        if self.device_by_peer.get(&peer) == Some(&device) {
            self.device_by_peer.remove(&peer);
        }
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
    fn a_peer_belongs_to_the_device_that_sent_last() {
        let mut peers = PeerTable::default();
        let (mut early, mut late) = (Known::new("early"), Known::new("late"));
        early.registers(&mut peers, None, HERE);
        late.registers(&mut peers, None, HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(late.key));
        early.registers(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(early.key));
        late.registers(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(late.key));
    }

    #[test]
    fn a_device_is_found_again_after_another_left_its_peer() {
        let mut peers = PeerTable::default();
        let (mut stays, mut leaves) = (Known::new("stays"), Known::new("leaves"));
        stays.registers(&mut peers, None, HERE);
        leaves.registers(&mut peers, None, HERE);
        leaves.registers(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), None);
        stays.registers(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(stays.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(leaves.key));
    }

    #[test]
    fn a_device_that_leaves_does_not_unbind_another() {
        let mut peers = PeerTable::default();
        let (mut leaves, mut stays) = (Known::new("leaves"), Known::new("stays"));
        leaves.registers(&mut peers, None, HERE);
        stays.registers(&mut peers, None, HERE);
        leaves.registers(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(stays.key));
        peers.rebind(leaves.key, Some(peer(THERE)), None, &mut leaves.binding);
        assert_eq!(peers.device_answering_from(peer(THERE)), None);
    }

    #[test]
    fn an_exchange_at_another_peer_keeps_the_registration_bound() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.registers(&mut peers, None, HERE);
        meter.begins_exchange(&mut peers, THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(meter.key));
        meter.departs(&mut peers, THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), None);
    }

    #[test]
    fn an_exchange_without_a_registration_leaves_no_binding() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        for _ in 0..2 {
            meter.begins_exchange(&mut peers, HERE);
            // Each retransmission binds it again.
            meter.begins_exchange(&mut peers, HERE);
            assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
            meter.departs(&mut peers, HERE);
            assert!(peers.device_by_exchange_peer.is_empty());
        }
    }

    #[test]
    fn a_takeover_before_an_exchange_is_still_noticed() {
        let mut peers = PeerTable::default();
        let (mut meter, mut other) = (Known::new("meter"), Known::new("other"));
        meter.registers(&mut peers, None, HERE);
        other.registers(&mut peers, None, HERE);
        meter.begins_exchange(&mut peers, THERE);
        meter.departs(&mut peers, THERE);
        meter.registers(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn the_end_of_an_exchange_keeps_a_registration_at_its_peer() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.registers(&mut peers, None, HERE);
        meter.begins_exchange(&mut peers, THERE);
        meter.registers(&mut peers, Some(HERE), THERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), None);
        peers.abandon(meter.key, &mut meter.binding);
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(meter.key));
    }

    #[test]
    fn a_device_that_ends_during_an_exchange_keeps_its_registration_alone() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.registers(&mut peers, None, HERE);
        meter.registers(&mut peers, Some(HERE), HERE);
        meter.begins_exchange(&mut peers, THERE);
        peers.abandon(meter.key, &mut meter.binding);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
        assert_eq!(peers.device_answering_from(peer(THERE)), None);
    }

    #[test]
    fn a_device_that_ends_after_registering_is_still_found() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.registers(&mut peers, None, HERE);
        peers.abandon(meter.key, &mut meter.binding);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn a_device_that_ends_does_not_unbind_another() {
        let mut peers = PeerTable::default();
        let (mut ends, mut stays) = (Known::new("ends"), Known::new("stays"));
        ends.begins_exchange(&mut peers, THERE);
        stays.begins_exchange(&mut peers, THERE);
        peers.abandon(ends.key, &mut ends.binding);
        assert_eq!(peers.device_answering_from(peer(THERE)), Some(stays.key));
    }

    #[test]
    fn an_exchange_lets_answers_through_and_nothing_else() {
        let mut peers = PeerTable::default();
        let (mut in_exchange, mut registered) =
            (Known::new("in-exchange"), Known::new("registered"));
        in_exchange.begins_exchange(&mut peers, HERE);
        assert_eq!(peers.device_at(peer(HERE)), None);
        registered.registers(&mut peers, None, HERE);
        in_exchange.begins_exchange(&mut peers, HERE);
        assert_eq!(peers.device_at(peer(HERE)), Some(registered.key));
        assert_eq!(
            peers.device_answering_from(peer(HERE)),
            Some(in_exchange.key)
        );
        in_exchange.departs(&mut peers, HERE);
        assert_eq!(
            peers.device_answering_from(peer(HERE)),
            Some(registered.key)
        );
    }

    #[test]
    fn a_device_that_left_its_peer_can_bind_it_again() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.registers(&mut peers, None, HERE);
        meter.departs(&mut peers, HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), None);
        meter.registers(&mut peers, Some(HERE), HERE);
        assert_eq!(peers.device_answering_from(peer(HERE)), Some(meter.key));
    }

    #[test]
    fn a_restored_device_is_at_its_former_peer() {
        let mut peers = PeerTable::default();
        let mut meter = Known::new("meter");
        meter.registers(&mut peers, Some(HERE), HERE);
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

        fn registers(&mut self, peers: &mut PeerTable, from: Option<&str>, to: &str) {
            let from = from.unwrap_or(to);
            peers.rebind(
                self.key,
                Some(peer(from)),
                Some(peer(to)),
                &mut self.binding,
            );
        }

        fn begins_exchange(&mut self, peers: &mut PeerTable, at: &str) {
            peers.rebind(self.key, None, Some(peer(at)), &mut self.binding);
        }

        fn departs(&mut self, peers: &mut PeerTable, from: &str) {
            peers.rebind(self.key, Some(peer(from)), None, &mut self.binding);
        }
    }

    fn peer(address: &str) -> Peer {
        let address: SocketAddr = address.parse().unwrap();
        Peer::plain(address)
    }
}
