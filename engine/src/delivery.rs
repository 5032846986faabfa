//! The delivery of events to a customer's systems: destinations, order, retries, and dead letters.

pub mod address;
pub mod backlog;
pub mod body;
pub mod command;
pub mod destination;
pub mod forwarder;
pub mod forwarders;
pub mod forwarding;
pub mod mqtt;
pub mod partner;
pub mod signature;
pub mod stream;
