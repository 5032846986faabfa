//! Bytes to meaning: CoAP and LwM2M, decoded and encoded without clocks, randomness or sockets.
//!
//! Everything here is a pure function of its arguments. Bytes from devices are untrusted: they
//! become a typed value or a refusal, and never a panic.

pub mod base64_text;
pub mod coap;
pub mod lwm2m;
pub mod smpp;
pub mod sms;
