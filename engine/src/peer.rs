//! Where a datagram came from and where its answer goes, and what that shows of who sent it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

/// One end of a path to a device: an endpoint of RFC 7252 section 1.2.
///
/// Without security an endpoint is an address and port, and the transport it speaks. With security
/// it is the association (RFC 7252 section 9.1), whose address may change (RFC 9146): two peers of
/// one association are equal.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The address and port the datagram came from; of an association, the latest that is known.
    pub address: SocketAddr,
    /// What carries the datagrams.
    pub transport: Transport,
    /// The security association, if there is one.
    pub association: Option<AssociationId>,
}

/// What carries the datagrams of a peer: each transport has a socket of its own.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Transport {
    /// CoAP over UDP (RFC 7252).
    Coap,
    /// UDP alone: the datagrams are of no further protocol.
    Udp,
}

/// The number of a security association; no other of the process has it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AssociationId(pub NonZeroU32);

/// What a datagram shows of its sender. Which device has an identity is looked up; a device that is
/// registered is found by its [`Peer`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PeerIdentity {
    /// The address it came from.
    Address(IpAddr),
    /// The security association it came over, which belongs to the device that proved its keys.
    Association(AssociationId),
}

/// One of something for each transport.
#[derive(Clone, Debug)]
pub struct ByTransport<T> {
    /// For CoAP over UDP.
    pub coap: T,
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

    /// The peer at this address without security.
    pub fn at(address: SocketAddr, transport: Transport) -> Self {
        let ip = address.ip().to_canonical();
        Self {
            address: SocketAddr::new(ip, address.port()),
            transport,
            association: None,
        }
    }

    /// The same peer over a security association.
    pub fn over(self, association: AssociationId) -> Self {
        Self {
            association: Some(association),
            ..self
        }
    }

    /// The network address alone.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// What its datagrams show of who sends them.
    pub fn identity(&self) -> PeerIdentity {
        let address = || PeerIdentity::Address(self.ip());
        self.association
            .map_or_else(address, PeerIdentity::Association)
    }

    /// What makes it the same peer; an association is the same at any address.
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
    /// The one of a transport.
    pub fn of(&self, transport: Transport) -> &T {
        match transport {
            Transport::Coap => &self.coap,
            Transport::Udp => &self.udp,
        }
    }

    /// Makes one of something else of each.
    pub fn try_map<U, E>(
        self,
        mut make: impl FnMut(Transport, T) -> Result<U, E>,
    ) -> Result<ByTransport<U>, E> {
        Ok(ByTransport {
            coap: make(Transport::Coap, self.coap)?,
            udp: make(Transport::Udp, self.udp)?,
        })
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.coap, &self.udp].into_iter()
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
    fn an_ipv4_address_mapped_to_ipv6_is_the_ipv4_address() {
        let mapped = Peer::plain("[::ffff:10.0.0.1]:5683".parse().unwrap());
        assert_eq!(mapped, Peer::plain("10.0.0.1:5683".parse().unwrap()));
    }
}
