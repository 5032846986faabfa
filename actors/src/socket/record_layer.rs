//! What is in the datagrams of a socket? A record layer stands between a socket and the arbiter: it
//! opens received datagrams before their messages are routed, and seals a message before it is
//! sent.
//!
//! One with security (DTLS, RFC 6347) names the association in the peer, answers handshakes itself
//! and sends to the latest address of an association; neither the arbiter nor a device notices.

use engine::peer::Peer;

/// The record layer of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordLayer {
    /// None: a datagram is the message itself (LwM2M Transport 1.2 section 5.2, NoSec mode).
    NoSec,
}

impl RecordLayer {
    /// Passes on each message of a datagram, with its peer.
    pub(crate) fn open(self, from: Peer, datagram: &[u8], mut take: impl FnMut(Peer, &[u8])) {
        match self {
            Self::NoSec => take(from, datagram),
        }
    }

    /// The datagram of a message, and where it goes; nothing if the peer cannot be reached.
    pub(crate) fn seal(self, to: Peer, message: Vec<u8>) -> Option<(Peer, Vec<u8>)> {
        match self {
            Self::NoSec => Some((to, message)),
        }
    }
}
