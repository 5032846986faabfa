//! What one peer said in one datagram, decoded once and handed on.

use protocol::coap::message::Message;

use crate::peer::Peer;

/// A well-formed CoAP message and where it came from.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Its number within the process, for traces.
    pub number: u64,
    /// Where it came from.
    pub peer: Peer,
    /// What it says.
    pub message: Message,
}

impl Datagram {
    /// The same datagram with what it is a part of.
    pub(crate) fn with(&self, message: Message) -> Self {
        Self { message, ..*self }
    }
}

/// Bytes of no protocol, and where they came from.
#[derive(Clone, Debug)]
pub struct UdpDatagram {
    /// The number of the datagram within the process, for traces.
    pub number: u64,
    /// Where they came from.
    pub peer: Peer,
    /// What they are.
    pub bytes: Vec<u8>,
}

/// What is handed to a device as its own.
#[derive(Clone, Debug)]
pub enum Inbound {
    /// A CoAP message.
    Message(Datagram),
    /// A CoAP message from an address that is not this device's alone.
    Ambiguous(Datagram),
    /// Bytes of no protocol.
    Udp(UdpDatagram),
    /// Several such, one behind the other: they are taken in one step.
    UdpBurst(UdpDatagram, Vec<UdpDatagram>),
}

impl Inbound {
    /// How many datagrams it came in.
    pub fn datagrams(&self) -> usize {
        match self {
            Self::Message(_) | Self::Ambiguous(_) | Self::Udp(_) => 1,
            Self::UdpBurst(_, more) => more.len().saturating_add(1),
        }
    }

    /// How long it is, as far as others say how long.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message(datagram) | Self::Ambiguous(datagram) => {
                let options = datagram.message.options();
                let values = options.map(|(_, value)| value.len());
                let payload = datagram.message.payload.len();
                values.sum::<usize>().saturating_add(payload)
            }
            Self::Udp(bare) => bare.bytes.len(),
            Self::UdpBurst(first, more) => {
                let all = std::iter::once(first).chain(more);
                all.map(|bare| bare.bytes.len()).sum()
            }
        }
    }

    /// The number of the datagram it began with.
    pub fn number(&self) -> u64 {
        match self {
            Self::Message(datagram) | Self::Ambiguous(datagram) => datagram.number,
            Self::Udp(bare) | Self::UdpBurst(bare, _) => bare.number,
        }
    }

    /// The numbers of all datagrams it came in.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        let more = match self {
            Self::Message(_) | Self::Ambiguous(_) | Self::Udp(_) => &[],
            Self::UdpBurst(_, more) => more.as_slice(),
        };
        std::iter::once(self.number()).chain(more.iter().map(|bare| bare.number))
    }

    /// Where it came from.
    pub fn peer(&self) -> Peer {
        match self {
            Self::Message(datagram) | Self::Ambiguous(datagram) => datagram.peer,
            Self::Udp(bare) | Self::UdpBurst(bare, _) => bare.peer,
        }
    }
}
