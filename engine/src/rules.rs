//! What holds for every device of the service alike?

use std::net::SocketAddr;

use protocol::coap::exchange::Transmission;
use protocol::coap::transfer::TransferRules;

use crate::limits::{Limits, TRANSFER_IDLE_MS};

/// What holds for every device alike.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The bounds.
    pub limits: Limits,
    /// The transmission parameters of requests to devices (RFC 7252 section 4.8).
    pub transmission: Transmission,
    /// Whether an endpoint name alone proves who registers.
    pub names: EndpointTrust,
    /// Where the service itself is heard; nothing is sent there.
    pub own: Box<[SocketAddr]>,
}

impl Rules {
    /// The rules with these bounds, this patience, and this trust.
    pub fn new(limits: Limits, patience: TransmissionRules, names: EndpointTrust) -> Self {
        let transmission = Transmission {
            ack_timeout_ms: patience.ack_timeout_ms,
            max_retransmit: patience.max_retransmit,
            response_timeout_ms: patience.response_timeout_ms,
            ..Transmission::STANDARD
        };
        Self {
            limits,
            transmission,
            names,
            own: Box::default(),
        }
    }

    /// How requests to devices go, whatever number of messages they take.
    pub fn transfers(&self) -> TransferRules<'_> {
        TransferRules {
            transmission: &self.transmission,
            block: self.limits.block,
            answer_bytes_max: self.limits.answer_bytes_max,
            idle_ms: TRANSFER_IDLE_MS,
        }
    }

    /// Whether somebody at an address would be the service itself.
    pub fn is_own(&self, address: SocketAddr) -> bool {
        let is_at = |own: &SocketAddr| {
            let is_everywhere = own.ip().is_unspecified() && address.ip().is_loopback();
            own.port() == address.port() && (own.ip() == address.ip() || is_everywhere)
        };
        self.own.iter().any(is_at)
    }
}

/// How long and how often the service tries to get a message across.
#[derive(Clone, Copy, Debug)]
pub struct TransmissionRules {
    /// The shortest first wait for an acknowledgement: ACK_TIMEOUT.
    pub ack_timeout_ms: u32,
    /// How often an unacknowledged message is repeated: MAX_RETRANSMIT.
    pub max_retransmit: u8,
    /// How long an acknowledged request waits for its response.
    pub response_timeout_ms: u32,
}

/// Whether the name a device registers with proves anything without DTLS.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EndpointTrust {
    /// A name alone proves nothing: the device must come from its own address.
    #[default]
    AddressRequired,
    /// A device without an address of its own is believed.
    NameSuffices,
}
