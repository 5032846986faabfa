//! Which number has an address of the service? A peer carries the number of the address it sent
//! to, on this host or at a node that relays its datagrams. The numbers are those of the process,
//! because an answer may leave through the socket of another arbiter. A host has few addresses, and
//! each keeps its number until the process ends.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU16;
use std::sync::{PoisonError, RwLock};

use engine::ids::NodeId;
use engine::peer::LocalAddressId;

/// The addresses in the order of their numbers. Beyond 65,535 of them the kernel chooses.
static ADDRESSES: RwLock<Vec<LocalAddress>> = RwLock::new(Vec::new());

/// One of the relays of a node, which has one for each of its threads.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RelayId {
    /// The node.
    pub node: NodeId,
    /// Which one of it.
    pub stream: u16,
}

/// An address that datagrams were sent to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct LocalAddress {
    ip: IpAddr,
    /// The relay that received them, if it was not this node.
    relay: Option<RelayId>,
}

/// The number of an address at a node that relays what is sent to it.
pub(crate) fn id_at_relay(relay: RelayId, ip: IpAddr) -> Option<LocalAddressId> {
    id_of(LocalAddress {
        ip,
        relay: Some(relay),
    })
}

/// The numbers of addresses, with the one used last at hand: most hosts have one.
#[derive(Debug, Default)]
pub(super) struct LocalAddresses {
    latest: Cell<Option<(IpAddr, LocalAddressId)>>,
}

impl LocalAddresses {
    /// The number of an address that a datagram was sent to, if it can be sent from.
    pub(super) fn id_of(&self, address: IpAddr) -> Option<LocalAddressId> {
        let address = address.to_canonical();
        let latest = self.latest.get();
        if let Some((_, id)) = latest.filter(|(it, _)| *it == address) {
            return Some(id);
        }
        let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
        if address.is_multicast() || address.is_unspecified() || is_broadcast {
            return None;
        }
        let id = id_of(LocalAddress {
            ip: address,
            relay: None,
        })?;
        self.latest.set(Some((address, id)));
        Some(id)
    }

    /// The address that has a number.
    pub(super) fn address_of(&self, id: LocalAddressId) -> Option<IpAddr> {
        self.with(id).map(|address| address.ip)
    }

    /// The relay and its address that have a number; none if it is of this host.
    pub(super) fn relay_of(&self, id: LocalAddressId) -> Option<(RelayId, IpAddr)> {
        let LocalAddress { ip, relay } = self.with(id)?;
        Some((relay?, ip))
    }

    fn with(&self, id: LocalAddressId) -> Option<LocalAddress> {
        let latest = self.latest.get().filter(|(_, it)| *it == id);
        if let Some((ip, _)) = latest {
            return Some(LocalAddress { ip, relay: None });
        }
        let addresses = ADDRESSES.read().unwrap_or_else(PoisonError::into_inner);
        let address = *addresses.get(usize::from(id.0.get()) - 1)?;
        if address.relay.is_none() {
            self.latest.set(Some((address.ip, id)));
        }
        Some(address)
    }
}

fn id_of(address: LocalAddress) -> Option<LocalAddressId> {
    known(address).or_else(|| number(address))
}

fn known(address: LocalAddress) -> Option<LocalAddressId> {
    let addresses = ADDRESSES.read().unwrap_or_else(PoisonError::into_inner);
    let index = addresses.iter().position(|it| *it == address)?;
    numbered(index)
}

fn number(address: LocalAddress) -> Option<LocalAddressId> {
    let mut addresses = ADDRESSES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(index) = addresses.iter().position(|it| *it == address) {
        return numbered(index);
    }
    let id = numbered(addresses.len())?;
    addresses.push(address);
    Some(id)
}

fn numbered(index: usize) -> Option<LocalAddressId> {
    let number = u16::try_from(index).ok()?.checked_add(1)?;
    NonZeroU16::new(number).map(LocalAddressId)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn an_address_keeps_its_number() {
        let (one, other) = (LocalAddresses::default(), LocalAddresses::default());
        let first = IpAddr::from(Ipv4Addr::new(127, 9, 9, 1));
        let second = IpAddr::from(Ipv6Addr::LOCALHOST);
        let ids = [first, second].map(|it| one.id_of(it).unwrap());
        assert_ne!(ids[0], ids[1]);
        assert_eq!(
            [second, first].map(|it| other.id_of(it).unwrap()),
            [ids[1], ids[0]]
        );
        assert_eq!(ids.map(|id| other.address_of(id).unwrap()), [first, second]);
    }

    #[test]
    fn an_address_at_a_relay_is_another_one() {
        let addresses = LocalAddresses::default();
        let ip = IpAddr::from(Ipv4Addr::new(127, 9, 9, 3));
        let relay = RelayId {
            node: NodeId::from_bytes([1; 16]),
            stream: 0,
        };
        let (here, there) = (
            addresses.id_of(ip).unwrap(),
            id_at_relay(relay, ip).unwrap(),
        );
        assert_ne!(here, there);
        assert_eq!(id_at_relay(relay, ip), Some(there));
        assert_eq!(addresses.relay_of(here), None);
        assert_eq!(addresses.relay_of(there), Some((relay, ip)));
        assert_eq!(addresses.address_of(there), Some(ip));
        assert_eq!(addresses.relay_of(there), Some((relay, ip)));
    }

    #[test]
    fn an_ipv4_address_has_one_number_over_either_family() {
        let addresses = LocalAddresses::default();
        let address = Ipv4Addr::new(127, 9, 9, 2);
        let id = addresses.id_of(address.into());
        assert!(id.is_some());
        assert_eq!(addresses.id_of(address.to_ipv6_mapped().into()), id);
    }

    #[test]
    fn nothing_leaves_from_an_address_of_many() {
        let addresses = LocalAddresses::default();
        for address in [
            "255.255.255.255",
            "224.0.1.187",
            "ff02::fd",
            "::",
            "0.0.0.0",
        ] {
            assert_eq!(addresses.id_of(address.parse().unwrap()), None, "{address}");
        }
    }
}
