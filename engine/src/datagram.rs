//! One message from one peer, decoded once and handed on.

use protocol::coap::message::Message;

use crate::peer::Peer;

/// A well-formed CoAP message and where it came from.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Where it came from.
    pub peer: Peer,
    /// What it says.
    pub message: Message,
}
