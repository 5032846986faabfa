//! How do datagrams and calls reach the active node from one that stands by?
//!
//! The active node has an HTTPS server for the other nodes, who prove that they have the secret
//! (`identity.rs`). A node that stands by passes on each call as a request, and has a request of
//! its own for each of its arbiters, in whose body it sends the datagrams that it received, and in
//! whose response it receives those that are to leave through it. All are bounded: datagrams for
//! which there is no room are lost, as they may be in the network, and a body is read as it is
//! taken. A node that has stopped hands over the sessions of its devices to the next one.

pub mod calls;
pub mod datagrams;
pub mod deliveries;
mod frame;
pub mod identity;
pub mod news;
pub mod receiving;
pub mod sessions;

use std::time::Duration;

use reqwest::Client;

use crate::http::client_builder;

use identity::NodeIdentity;

/// How long it may take to connect to the active node.
const CONNECT_FOR: Duration = Duration::from_secs(2);

/// Calls nodes that have the same secret. All requests run on the arbiter of the first one, which
/// owns the connections.
pub(crate) fn client_of(identity: &NodeIdentity) -> Result<Client, reqwest::Error> {
    client_builder(identity.client_config())
        .connect_timeout(CONNECT_FOR)
        .build()
}
