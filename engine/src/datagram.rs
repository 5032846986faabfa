//! A received datagram, decoded once.

use protocol::coap::message::Message;

use crate::associations::handshake::HandshakeFault;
#[cfg(doc)]
use crate::dispatch::shard_map::ArbiterId;
use crate::peer::Peer;

/// A well-formed CoAP message and where it came from.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Its number within the process ([`ArbiterId::datagram_number`]).
    pub number: u64,
    /// Where it came from.
    pub peer: Peer,
    /// The message.
    pub message: Message,
    /// Whether all arbiters that were asked for the device at the peer had restored their devices.
    pub restoration: Restoration,
}

impl Datagram {
    /// A message of this number from a peer, for which no arbiter was asked yet.
    pub fn new(number: u64, peer: Peer, message: Message) -> Self {
        Self {
            number,
            peer,
            message,
            restoration: Restoration::Complete,
        }
    }

    /// The datagram of this number from a peer, decoded; `None` if it is no message.
    pub fn decode(number: u64, peer: Peer, bytes: &[u8]) -> Option<Self> {
        let message = Message::decode(bytes).ok()?;
        Some(Self::new(number, peer, message))
    }

    /// The same datagram with another message, such as the body that it completes.
    pub(crate) fn with(&self, message: Message) -> Self {
        Self { message, ..*self }
    }
}

/// Whether devices are restored: those of an arbiter since it began, or those of several.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Restoration {
    /// Some may not be restored yet.
    UnderWay,
    /// All are restored.
    Complete,
}

/// A bare datagram and where it came from.
#[derive(Clone, Debug)]
pub struct UdpDatagram {
    /// Its number within the process ([`ArbiterId::datagram_number`]).
    pub number: u64,
    /// The peer that sent it.
    pub peer: Peer,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A handshake that was refused to somebody who claims to be a device.
#[derive(Clone, Copy, Debug)]
pub struct RefusedHandshake {
    /// The number of the datagram that ended it.
    pub number: u64,
    /// Where it came from.
    pub peer: Peer,
    /// Why it was refused.
    pub why: HandshakeFault,
}

/// An input from the network for one device.
#[derive(Clone, Debug)]
pub enum Inbound {
    /// A CoAP message.
    Message(Datagram),
    /// A CoAP message from an address that several devices have.
    Ambiguous(Datagram),
    /// A CoAP request that a device makes with a key that is valid for its bootstrap alone, for
    /// something else.
    BootstrapOnly(Datagram),
    /// A bare datagram.
    Udp(UdpDatagram),
    /// Several bare datagrams in order, handled in one step.
    UdpBurst(UdpDatagram, Vec<UdpDatagram>),
    /// A handshake that was refused.
    RefusedHandshake(RefusedHandshake),
}

impl Inbound {
    /// How many datagrams it consists of.
    pub fn datagrams(&self) -> usize {
        match self {
            Self::Message(_) | Self::Ambiguous(_) | Self::BootstrapOnly(_) | Self::Udp(_) => 1,
            Self::RefusedHandshake(_) => 0,
            Self::UdpBurst(_, more) => more.len().saturating_add(1),
        }
    }

    /// Whether the sender sends it by itself: it is a request, a notification or data.
    pub fn is_uplink(&self) -> bool {
        match self {
            Self::Message(Datagram { message, .. })
            | Self::Ambiguous(Datagram { message, .. })
            | Self::BootstrapOnly(Datagram { message, .. }) => {
                message.code.is_request() || message.observe().is_some()
            }
            Self::Udp(_) | Self::UdpBurst(..) | Self::RefusedHandshake(_) => true,
        }
    }

    /// Whether it brings data, not only news of the sender itself.
    pub fn has_payload(&self) -> bool {
        match self {
            Self::Message(Datagram { message, .. })
            | Self::Ambiguous(Datagram { message, .. })
            | Self::BootstrapOnly(Datagram { message, .. }) => !message.payload.is_empty(),
            Self::Udp(_) | Self::UdpBurst(..) => true,
            Self::RefusedHandshake(_) => false,
        }
    }

    /// The length of what a sender may make long: option values and payload, or bare bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message(datagram) | Self::Ambiguous(datagram) | Self::BootstrapOnly(datagram) => {
                let options = datagram.message.options();
                let values = options.map(|(_, value)| value.len());
                let payload = datagram.message.payload.len();
                values.sum::<usize>().saturating_add(payload)
            }
            Self::RefusedHandshake(_) => 0,
            Self::Udp(bare) => bare.bytes.len(),
            Self::UdpBurst(first, more) => {
                let all = std::iter::once(first).chain(more);
                all.map(|bare| bare.bytes.len()).sum()
            }
        }
    }

    /// The number of its first datagram.
    pub fn number(&self) -> u64 {
        match self {
            Self::Message(datagram) | Self::Ambiguous(datagram) | Self::BootstrapOnly(datagram) => {
                datagram.number
            }
            Self::Udp(bare) | Self::UdpBurst(bare, _) => bare.number,
            Self::RefusedHandshake(refused) => refused.number,
        }
    }

    /// The numbers of all its datagrams.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        let more = match self {
            Self::Message(_)
            | Self::Ambiguous(_)
            | Self::BootstrapOnly(_)
            | Self::Udp(_)
            | Self::RefusedHandshake(_) => &[],
            Self::UdpBurst(_, more) => more.as_slice(),
        };
        std::iter::once(self.number()).chain(more.iter().map(|bare| bare.number))
    }

    /// Where it came from.
    pub fn peer(&self) -> Peer {
        match self {
            Self::Message(datagram) | Self::Ambiguous(datagram) | Self::BootstrapOnly(datagram) => {
                datagram.peer
            }
            Self::Udp(bare) | Self::UdpBurst(bare, _) => bare.peer,
            Self::RefusedHandshake(refused) => refused.peer,
        }
    }
}
