//! CoAP: what does a datagram mean, was it received before, and does it answer our request?
//!
//! RFC 7252 and RFC 7959 without sockets and clocks: bytes come in, messages and verdicts go out,
//! and time is a parameter. Only `message` knows the codec underneath.

pub mod assembly;
pub mod block;
mod body;
pub mod code;
pub mod content;
pub mod dedup;
pub mod exchange;
pub mod message;
pub mod observe;
pub mod option;
pub mod serving;
pub mod token;
pub mod transfer;
pub mod uri;
