//! DTLS 1.2 with Connection ID for constrained devices: who sent a datagram, what was in it?
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod alert;
mod association;
mod cipher_suite;
mod config;
mod connection_id;
mod counters;
mod effect;
mod endpoint;
mod export;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
#[cfg(test)]
mod hex;
mod identity;
mod key_agreement;
mod key_schedule;
mod moment;
mod path_check;
mod presentation;
mod record;
mod session;
mod signature;
mod x509;

pub use alert::AlertDescription;
pub use association::AssociationId;
pub use cipher_suite::CipherSuite;
pub use config::{
    ClientConfig, Config, ConnectionIdOffer, ExtendedMasterSecret, MaxFragmentLength,
    Retransmission,
};
pub use connection_id::{CONNECTION_ID_PREFIX_MAX, DatagramRoute};
pub use counters::Counters;
pub use effect::{CloseReason, Effect, Effects, HandshakeFailure, Security};
pub use endpoint::{CannotConnect, Endpoint, SendError};
pub use export::ImportSummary;
pub use handshake::resumption::Resumption;
pub use handshake::ticket::TicketKey;
pub use identity::Identity;
pub use moment::{Entropy, Moment, Timestamp};
pub use signature::{InvalidKey, SigningKey};
pub use x509::{CertificateChain, CertificateFault, is_authority};
