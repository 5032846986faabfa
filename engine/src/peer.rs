//! The source of a datagram, and where its answer goes.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::num::{NonZeroU16, NonZeroU32};

use crate::ids::DeviceKey;

/// One end of a path to a device: an endpoint of RFC 7252 section 1.2.
///
/// Without security an endpoint is an address and port, and the transport it speaks. With security
/// it is the security association (RFC 7252 section 9.1), whose address may change (RFC 9146): two
/// peers of one association are equal. The association is with the device that proved its keys, and
/// outlives its DTLS sessions: an answer may come over a later session than its request left over.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The source address and port; for an association, the latest known ones.
    pub address: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// The security association, if there is one.
    pub association: Option<AssociationId>,
    /// The address of the service that the datagram was sent to. What is sent to the peer leaves
    /// from there, because a NAT drops what comes from another address; without it, the kernel
    /// chooses. Not part of what makes a peer the same.
    pub local: Option<LocalAddressId>,
}

/// The number of an address of the service, see `actors/src/socket/local_addresses.rs`. A number
/// is smaller than an address, and a peer is kept for each device.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LocalAddressId(pub NonZeroU16);

/// The transport of a peer's datagrams; each transport has a socket of its own.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Transport {
    /// CoAP over UDP (RFC 7252).
    Coap,
    /// CoAP over DTLS (RFC 7252 section 9.1).
    Coaps,
    /// UDP alone: bare datagrams.
    Udp,
}

/// The security association with a device: the beginning of its key, because a peer is kept for
/// each device. It tells the association of a device from addresses; a datagram over it is routed
/// by the whole key.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AssociationId(NonZeroU32);

impl AssociationId {
    /// The association with a device.
    pub fn of(device: DeviceKey) -> Self {
        let [a, b, c, d, ..] = *device.as_bytes();
        Self(NonZeroU32::new(u32::from_be_bytes([a, b, c, d])).unwrap_or(NonZeroU32::MIN))
    }

    /// The association with this number.
    pub fn from_number(number: NonZeroU32) -> Self {
        Self(number)
    }

    /// The number.
    pub fn number(self) -> NonZeroU32 {
        self.0
    }
}

/// What makes a peer the same, in less memory: a table of peers has one for each device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum PeerKey {
    /// Without security.
    Address {
        ip: [u8; 16],
        /// The interface of a link-local address.
        scope: [u8; 4],
        port: [u8; 2],
        transport: Transport,
    },
    /// Over a security association.
    Association([u8; 4]),
}

const _: () = assert!(size_of::<PeerKey>() <= 24);

/// One value for each transport.
#[derive(Clone, Debug)]
pub struct ByTransport<T> {
    /// For CoAP over UDP.
    pub coap: T,
    /// For CoAP over DTLS.
    pub coaps: T,
    /// For UDP alone.
    pub udp: T,
}

impl Peer {
    /// The peer that speaks CoAP from this address without security.
    pub fn plain(address: SocketAddr) -> Self {
        Self::at(address, Transport::Coap)
    }

    /// The peer that sends bare datagrams from this address.
    pub fn bare(address: SocketAddr) -> Self {
        Self::at(address, Transport::Udp)
    }

    /// The peer that sends records from this address, whoever it is.
    pub fn secured(address: SocketAddr) -> Self {
        Self::at(address, Transport::Coaps)
    }

    /// The peer at this address without security. An IPv4 address mapped to IPv6 is the IPv4
    /// address; a link-local address keeps its interface.
    pub fn at(address: SocketAddr, transport: Transport) -> Self {
        let ip = address.ip().to_canonical();
        let address = match address {
            SocketAddr::V6(v6) if ip.is_ipv6() => {
                SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into()
            }
            SocketAddr::V4(_) | SocketAddr::V6(_) => SocketAddr::new(ip, address.port()),
        };
        Self {
            address,
            transport,
            association: None,
            local: None,
        }
    }

    /// The same peer, which sent to this address of the service.
    pub fn sent_to(self, local: Option<LocalAddressId>) -> Self {
        Self { local, ..self }
    }

    /// The same peer over the security association with a device.
    pub fn of_device(self, device: DeviceKey) -> Self {
        self.over(AssociationId::of(device))
    }

    /// The same peer over a security association.
    pub fn over(self, association: AssociationId) -> Self {
        Self {
            transport: Transport::Coaps,
            association: Some(association),
            ..self
        }
    }

    /// The IP address.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// What makes it the same as another one.
    pub(crate) fn key(&self) -> PeerKey {
        if let Some(AssociationId(association)) = self.association {
            return PeerKey::Association(association.get().to_be_bytes());
        }
        let (ip, scope) = match self.address {
            SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
            SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
        };
        PeerKey::Address {
            ip: ip.octets(),
            scope: scope.to_be_bytes(),
            port: self.address.port().to_be_bytes(),
            transport: self.transport,
        }
    }

    /// The bytes that tell this endpoint of a device from others, also after a restart. The
    /// association with the device is one endpoint at any address.
    pub(crate) fn lasting_bytes(&self) -> [u8; 19] {
        let mut bytes = [0; 19];
        bytes[18] = self.transport as u8;
        if self.association.is_none() {
            let ip = match self.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            bytes[..16].copy_from_slice(&ip.octets());
            bytes[16..18].copy_from_slice(&self.address.port().to_be_bytes());
        }
        bytes
    }

    /// The part that decides equality; an association is the same at any address.
    fn endpoint(&self) -> Result<AssociationId, (SocketAddr, Transport)> {
        self.association.ok_or((self.address, self.transport))
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.endpoint() == other.endpoint()
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.endpoint() {
            Ok(association) => association.hash(state),
            Err(address) => address.hash(state),
        }
    }
}

impl Ord for Peer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.endpoint().cmp(&other.endpoint())
    }
}

impl PartialOrd for Peer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl<T> ByTransport<T> {
    /// The value of a transport.
    pub fn of(&self, transport: Transport) -> &T {
        match transport {
            Transport::Coap => &self.coap,
            Transport::Coaps => &self.coaps,
            Transport::Udp => &self.udp,
        }
    }

    /// Maps each value.
    pub fn try_map<U, E>(
        self,
        mut make: impl FnMut(Transport, T) -> Result<U, E>,
    ) -> Result<ByTransport<U>, E> {
        Ok(ByTransport {
            coap: make(Transport::Coap, self.coap)?,
            coaps: make(Transport::Coaps, self.coaps)?,
            udp: make(Transport::Udp, self.udp)?,
        })
    }

    /// Each value.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.coap, &self.coaps, &self.udp].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_association_is_the_same_peer_at_any_address() {
        let first = Peer::plain("10.0.0.1:5683".parse().unwrap());
        let other = Peer::plain("10.0.0.2:5683".parse().unwrap());
        assert_ne!(first, other);
        assert_ne!(first, Peer::bare(first.address));
        let association = AssociationId(NonZeroU32::MIN);
        assert_eq!(first.over(association), other.over(association));
        assert_ne!(first.over(association), first);
        let unlike = AssociationId(NonZeroU32::MAX);
        assert_ne!(first.over(association), first.over(unlike));
    }

    #[test]
    fn the_address_a_peer_sent_to_does_not_make_it_another() {
        let peer = Peer::plain("10.0.0.1:5683".parse().unwrap());
        let local = LocalAddressId(NonZeroU16::MIN);
        assert_eq!(peer.sent_to(Some(local)), peer);
        assert_eq!(peer.sent_to(Some(local)).local, Some(local));
    }

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        let address = "[fe80::1%7]:5683".parse().unwrap();
        assert_eq!(Peer::plain(address).address, address);
    }

    #[test]
    fn an_ipv4_address_mapped_to_ipv6_is_the_ipv4_address() {
        let mapped = Peer::plain("[::ffff:10.0.0.1]:5683".parse().unwrap());
        assert_eq!(mapped, Peer::plain("10.0.0.1:5683".parse().unwrap()));
    }
}
