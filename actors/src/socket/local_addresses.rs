//! Which number has an address of the host? A peer carries the number of the address it sent to.
//! The numbers are those of the process, because an answer may leave through the socket of another
//! arbiter. A host has few addresses, and each keeps its number until the process ends.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU16;
use std::sync::{PoisonError, RwLock};

use engine::peer::LocalAddressId;

/// The addresses in the order of their numbers. Beyond 65,535 of them the kernel chooses.
static ADDRESSES: RwLock<Vec<IpAddr>> = RwLock::new(Vec::new());

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
        let id = known(address).or_else(|| number(address))?;
        self.latest.set(Some((address, id)));
        Some(id)
    }

    /// The address that has a number.
    pub(super) fn address_of(&self, id: LocalAddressId) -> Option<IpAddr> {
        let latest = self.latest.get();
        if let Some((address, _)) = latest.filter(|(_, it)| *it == id) {
            return Some(address);
        }
        let addresses = ADDRESSES.read().unwrap_or_else(PoisonError::into_inner);
        let address = *addresses.get(usize::from(id.0.get()) - 1)?;
        self.latest.set(Some((address, id)));
        Some(address)
    }
}

fn known(address: IpAddr) -> Option<LocalAddressId> {
    let addresses = ADDRESSES.read().unwrap_or_else(PoisonError::into_inner);
    let index = addresses.iter().position(|it| *it == address)?;
    numbered(index)
}

fn number(address: IpAddr) -> Option<LocalAddressId> {
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
