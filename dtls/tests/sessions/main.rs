//! Do both roles of an endpoint find together over a network that loses, repeats and reorders?

#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod bare_cbc;
mod certificates;
mod connection_ids;
mod failures;
mod handshakes;
mod loss;
mod network;
mod orders;
mod restart;
mod resumption;
mod sizes;
