//! What does the kernel know of a socket? Which addresses it has, and from which of them a datagram
//! leaves.
//!
//! What a device is sent leaves from the address that the device sent to: a NAT on the way drops
//! what comes from another, and a device does not accept it as a response (RFC 7252 section 5.3.2).
//! A socket on one address needs nothing for that. One on every address has the kernel name the
//! destination of what arrives, and names the source of what leaves (RFC 3542 section 6).

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::os::fd::{AsRawFd as _, RawFd};

use engine::peer::{Peer, Transport};
use nix::cmsg_space;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, sendmsg,
    setsockopt,
};
use tokio::net::UdpSocket;

use super::local_addresses::{LocalAddresses, RelayId};

/// An open socket of an arbiter.
pub(super) struct BoundSocket {
    socket: UdpSocket,
    bound_to: BoundTo,
    addresses: LocalAddresses,
}

/// The addresses a socket has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BoundTo {
    One,
    EveryIpv4,
    /// Those of both families; IPv4 addresses are mapped to IPv6 (RFC 4291 section 2.5.5.2).
    Every,
}

impl BoundSocket {
    /// Takes over an open socket; to be called on the arbiter that shall own it.
    pub(super) fn adopt(socket: StdSocket) -> io::Result<Self> {
        let socket = UdpSocket::from_std(socket)?;
        let bound_to = BoundTo::of(socket.local_addr()?);
        match bound_to {
            BoundTo::One => {}
            BoundTo::EveryIpv4 => setsockopt(&socket, Ipv4PacketInfo, &true)?,
            BoundTo::Every => setsockopt(&socket, Ipv6RecvPacketInfo, &true)?,
        }
        Ok(Self {
            socket,
            bound_to,
            addresses: LocalAddresses::default(),
        })
    }

    /// The socket as the runtime has it.
    pub(super) fn udp(&self) -> &UdpSocket {
        &self.socket
    }

    /// The socket as the kernel has it. Datagrams are sent through it and not through the runtime,
    /// which refuses on behalf of the kernel until it has its first event from the kernel: on an
    /// arbiter that has just started, that may be after the first answers.
    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The address that it is bound to.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// Which of the addresses a peer sends to, if it is known.
    pub(super) fn address_for(&self, peer: Peer) -> Option<IpAddr> {
        match self.bound_to {
            BoundTo::One => self.address().map(|address| address.ip()),
            BoundTo::EveryIpv4 | BoundTo::Every => {
                peer.local.and_then(|id| self.addresses.address_of(id))
            }
        }
    }

    /// The relay through which a peer is reached, and the address that it sends to there; none if
    /// it sends to this node.
    pub(super) fn relay_to(&self, peer: Peer) -> Option<(RelayId, IpAddr)> {
        peer.local.and_then(|id| self.addresses.relay_of(id))
    }

    /// Headers for a batch, with space for the address that each datagram was sent to or is sent
    /// from. They serve this socket alone: the kernel writes the lengths of what it received into
    /// them, which are those of the next batch only if it is of the same socket.
    pub(super) fn headers(&self, batch: usize) -> MultiHeaders<SockaddrStorage> {
        let control = match self.bound_to {
            BoundTo::One => None,
            BoundTo::EveryIpv4 => Some(cmsg_space!(in_pktinfo)),
            BoundTo::Every => Some(cmsg_space!(in6_pktinfo)),
        };
        MultiHeaders::preallocate(batch, control)
    }

    /// The peer that sent a datagram to one of the addresses.
    pub(super) fn peer(
        &self,
        from: SocketAddr,
        transport: Transport,
        sent_to: Option<IpAddr>,
    ) -> Peer {
        let local = sent_to.and_then(|address| self.addresses.id_of(address));
        Peer::at(from, transport).sent_to(local)
    }

    /// Where what is sent to a peer goes, and from which address; none if the socket has but one.
    /// From one of a relay that is gone only if this machine has it by now: the kernel takes no
    /// other.
    pub(super) fn path_to(&self, peer: Peer) -> (SockaddrStorage, Option<SourceAddress>) {
        let local = match self.relay_to(peer) {
            Some((_, address)) => StdSocket::bind((address, 0)).map(|_| address).ok(),
            None => peer.local.and_then(|id| self.addresses.address_of(id)),
        };
        let to = peer.address;
        match self.bound_to {
            BoundTo::One => (to.into(), None),
            BoundTo::EveryIpv4 => (to.into(), Some(SourceAddress::v4(local))),
            BoundTo::Every => {
                let source = SourceAddress::v6(local, to.ip());
                let to = match to {
                    SocketAddr::V4(v4) => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
                    SocketAddr::V6(_) => to,
                };
                (to.into(), Some(source))
            }
        }
    }

    /// Passes a datagram to the kernel now.
    pub(super) fn send_now(&self, to: Peer, datagram: &[u8]) -> nix::Result<()> {
        let (to, from) = self.path_to(to);
        let control = from.as_ref().map(SourceAddress::control_message);
        let flags = MsgFlags::MSG_DONTWAIT;
        let parts = [IoSlice::new(datagram)];
        sendmsg(
            self.descriptor(),
            &parts,
            control.as_slice(),
            flags,
            Some(&to),
        )?;
        Ok(())
    }
}

impl BoundTo {
    fn of(bound: SocketAddr) -> Self {
        match bound {
            SocketAddr::V4(v4) if v4.ip().is_unspecified() => Self::EveryIpv4,
            SocketAddr::V6(v6) if v6.ip().is_unspecified() => Self::Every,
            SocketAddr::V4(_) | SocketAddr::V6(_) => Self::One,
        }
    }
}

/// The address from which a datagram leaves, as the kernel takes it.
#[derive(Clone, Copy, Debug)]
pub(super) enum SourceAddress {
    /// Of a socket for IPv4.
    V4(in_pktinfo),
    /// Of a socket for both.
    V6(in6_pktinfo),
}

impl SourceAddress {
    /// This address, on a socket for IPv4; the kernel chooses if there is none.
    fn v4(address: Option<IpAddr>) -> Self {
        let v4 = |it| match it {
            IpAddr::V4(v4) => Some(v4),
            IpAddr::V6(_) => None,
        };
        let address = address.and_then(v4).unwrap_or(Ipv4Addr::UNSPECIFIED);
        Self::V4(in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: in_addr {
                s_addr: u32::from_ne_bytes(address.octets()),
            },
            ipi_addr: in_addr { s_addr: 0 },
        })
    }

    /// This address, on a socket for both; the kernel chooses if it is not of the family of the
    /// destination.
    fn v6(address: Option<IpAddr>, destination: IpAddr) -> Self {
        let same_family = address.filter(|it| it.is_ipv4() == destination.is_ipv4());
        let any = match destination {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self::V6(in6_pktinfo {
            ipi6_addr: in6_addr {
                s6_addr: mapped(same_family.unwrap_or(any)).octets(),
            },
            ipi6_ifindex: 0,
        })
    }

    /// What the kernel is given with a datagram.
    pub(super) fn control_message(&self) -> ControlMessage<'_> {
        match self {
            Self::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Self::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

impl PartialEq for SourceAddress {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::V4(one), Self::V4(other)) => {
                one.ipi_spec_dst.s_addr == other.ipi_spec_dst.s_addr
            }
            (Self::V6(one), Self::V6(other)) => one.ipi6_addr.s6_addr == other.ipi6_addr.s6_addr,
            (Self::V4(_), Self::V6(_)) | (Self::V6(_), Self::V4(_)) => false,
        }
    }
}

/// An address as a socket for both families has it.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// The address a datagram was sent to, if the kernel says so here.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the messages of every protocol"
)]
pub(super) fn destination_of(message: &ControlMessageOwned) -> Option<IpAddr> {
    match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            let octets = info.ipi_spec_dst.s_addr.to_ne_bytes();
            Some(Ipv4Addr::from(octets).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Some(IpAddr::from(info.ipi6_addr.s6_addr).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as StdSocket;

    use engine::ids::NodeId;

    use super::*;
    use crate::socket;
    use crate::socket::id_at_relay;
    use crate::socket::inbox::Inbox;

    #[actix::test]
    async fn an_answer_leaves_from_the_address_that_was_asked() {
        for (bound, from, asked) in [
            ("[::]:0", "127.0.0.1", "127.3.3.3"),
            ("[::]:0", "127.3.3.4", "127.3.3.5"),
            ("[::]:0", "::1", "::1"),
            ("0.0.0.0:0", "127.0.0.1", "127.3.3.3"),
            ("127.3.3.3:0", "127.0.0.1", "127.3.3.3"),
            ("[::1]:0", "::1", "::1"),
        ] {
            let open = socket::open(bound.parse().unwrap()).unwrap();
            let port = open.local_addr().unwrap().port();
            let ours = BoundSocket::adopt(open).unwrap();
            let device = StdSocket::bind((from, 0)).unwrap();
            let asked: IpAddr = asked.parse().unwrap();
            device.send_to(b"asked", (asked, port)).unwrap();

            let peer = received(&ours).await;
            assert_eq!(peer.address, device.local_addr().unwrap(), "{bound}");
            ours.send_now(peer, b"answered").unwrap();
            let mut buffer = [0; 64];
            let (length, answered_from) = device.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"answered");
            assert_eq!(answered_from, SocketAddr::new(asked, port), "{bound}");
        }
    }

    #[actix::test]
    async fn the_kernel_chooses_the_address_for_a_peer_that_sent_nothing() {
        for (bound, at) in [
            ("[::]:0", "127.0.0.1:0"),
            ("[::]:0", "[::1]:0"),
            ("0.0.0.0:0", "127.0.0.1:0"),
        ] {
            let ours = BoundSocket::adopt(socket::open(bound.parse().unwrap()).unwrap()).unwrap();
            let device = StdSocket::bind(at).unwrap();
            let peer = Peer::plain(device.local_addr().unwrap());
            ours.send_now(peer, b"request").unwrap();
            let (length, _) = device.recv_from(&mut [0; 64]).unwrap();
            assert_eq!(length, b"request".len(), "{bound} to {at}");
        }
    }

    #[actix::test]
    async fn what_a_relay_that_is_gone_would_send_leaves_from_here() {
        let relay = RelayId {
            node: NodeId::from_bytes([9; 16]),
            stream: 1,
        };
        // The first is no address of this machine.
        for (at_relay, expected) in [("192.0.2.1", "127.0.0.1"), ("127.3.3.7", "127.3.3.7")] {
            for bound in ["[::]:0", "0.0.0.0:0"] {
                let ours = socket::open(bound.parse().unwrap()).unwrap();
                let ours = BoundSocket::adopt(ours).unwrap();
                let device = StdSocket::bind("127.0.0.1:0").unwrap();
                let peer = Peer::plain(device.local_addr().unwrap());
                let peer = peer.sent_to(id_at_relay(relay, at_relay.parse().unwrap()));
                ours.send_now(peer, b"request").unwrap();
                let (_, from) = device.recv_from(&mut [0; 64]).unwrap();
                assert_eq!(from.ip(), expected.parse::<IpAddr>().unwrap(), "{bound}");
            }
        }
    }

    async fn received(ours: &BoundSocket) -> Peer {
        let mut inbox = Inbox::new(ours);
        loop {
            ours.udp().readable().await.unwrap();
            inbox.fill(ours.udp()).unwrap();
            let first = inbox.datagrams().next();
            if let Some((from, sent_to, _)) = first {
                return ours.peer(from, Transport::Coap, sent_to);
            }
        }
    }
}
