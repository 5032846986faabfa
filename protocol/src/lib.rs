//! Bytes to meaning: CoAP and LwM2M, read and written without clocks, chance or sockets.
//!
//! Everything here is a pure function of its arguments. Bytes from devices are taken for what they
//! are, unchecked noise: they become a typed value or a refusal, and never a panic.

pub mod coap;
pub mod lwm2m;
