//! CoAP: what does a datagram say, was it said before, and is it the answer we wait for?
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
