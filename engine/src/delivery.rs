//! What a customer's own systems are told of its devices: where to, in which order, how often it
//! is tried, and what becomes of what they do not take.

pub mod address;
pub mod backlog;
pub mod body;
pub mod command;
pub mod destination;
pub mod forwarder;
pub mod forwarders;
pub mod forwarding;
pub mod signature;
