//! What do LwM2M bytes and texts mean? (OMA LwM2M Core 1.0, 1.1 and 1.2)
//!
//! Rests on two assumptions: a datagram was already decoded to a CoAP message, and the caller
//! decides what to do about its meaning. Nothing here knows a clock, a socket or a device.

pub mod attributes;
pub mod binding;
pub mod bootstrap;
pub mod links;
pub mod model;
pub mod operation;
pub mod path;
pub mod payload;
pub mod registration;
pub mod value;
pub mod version;
