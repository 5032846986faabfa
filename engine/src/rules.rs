//! Which rules apply to every device of the service?

use std::net::SocketAddr;

use protocol::coap::exchange::Transmission;
use protocol::coap::transfer::TransferRules;

use crate::delivery::address::policy::AddressPolicy;
use crate::directory::bootstrap::ServiceUris;
use crate::firmware::delivery::DownloadUris;
use crate::limits::{Limits, TRANSFER_IDLE_MS};

/// The rules for all devices.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The bounds.
    pub limits: Limits,
    /// The transmission parameters of requests to devices (RFC 7252 section 4.8).
    pub transmission: Transmission,
    /// Whether an endpoint name alone authenticates a registration.
    pub names: EndpointTrust,
    /// Whether a device is bootstrapped without DTLS.
    pub bootstrap: NoSecBootstrap,
    /// The URIs that devices are given for this service, where they are set.
    pub uris: ServiceUris,
    /// Where devices reach the service to download firmware images.
    pub downloads: DownloadUris,
    /// The addresses that the service itself listens at; nothing is sent there.
    pub own: Box<[SocketAddr]>,
    /// Which addresses a device that was not heard from there may have when it is sent a request.
    pub addresses: AddressPolicy,
}

impl Rules {
    /// The rules with these bounds, transmission parameters, and trust.
    pub fn new(
        limits: Limits,
        transmission_rules: TransmissionRules,
        names: EndpointTrust,
    ) -> Self {
        let transmission = Transmission {
            ack_timeout_ms: transmission_rules.ack_timeout_ms,
            max_retransmit: transmission_rules.max_retransmit,
            response_timeout_ms: transmission_rules.response_timeout_ms,
            ..Transmission::STANDARD
        };
        Self {
            limits,
            transmission,
            names,
            bootstrap: NoSecBootstrap::default(),
            uris: ServiceUris::default(),
            downloads: DownloadUris::default(),
            own: Box::default(),
            addresses: AddressPolicy::PublicOnly,
        }
    }

    /// The rules of transfers to devices, with or without blocks.
    pub fn transfers(&self) -> TransferRules<'_> {
        TransferRules {
            transmission: &self.transmission,
            block: self.limits.block,
            answer_bytes_max: self.limits.answer_bytes_max,
            idle_ms: TRANSFER_IDLE_MS,
        }
    }

    /// Whether an address is one of the service itself.
    pub fn is_own(&self, address: SocketAddr) -> bool {
        let is_at = |own: &SocketAddr| {
            let is_everywhere = own.ip().is_unspecified() && address.ip().is_loopback();
            own.port() == address.port() && (own.ip() == address.ip() || is_everywhere)
        };
        self.own.iter().any(is_at)
    }
}

/// How long and how often the service transmits a message.
#[derive(Clone, Copy, Debug)]
pub struct TransmissionRules {
    /// The shortest first wait for an acknowledgement: ACK_TIMEOUT.
    pub ack_timeout_ms: u32,
    /// How often an unacknowledged message is repeated: MAX_RETRANSMIT.
    pub max_retransmit: u8,
    /// How long an acknowledged request waits for its response.
    pub response_timeout_ms: u32,
}

/// Whether a device is bootstrapped without DTLS, which sends its keys in plain text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NoSecBootstrap {
    /// It is not.
    #[default]
    Refused,
    /// It is, if it could register without DTLS.
    Accepted,
}

/// Whether an endpoint name authenticates a device without DTLS.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EndpointTrust {
    /// It does not: the device must register from its own address.
    #[default]
    AddressRequired,
    /// It does for a device without an address of its own.
    NameSuffices,
}
