//! Bytes to meaning: CoAP, LwM2M and MQTT, decoded and encoded without clocks, randomness or
//! sockets.
//!
//! Everything here is a pure function of its arguments. Bytes from devices are untrusted: they
//! become a typed value or a refusal, and never a panic.

pub mod base64_text;
pub mod coap;
pub mod lwm2m;
pub mod mqtt;
pub mod smpp;
pub mod sms;
