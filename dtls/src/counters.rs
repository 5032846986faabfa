//! What has happened so far?

/// Numbers since the endpoint was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Records that were read.
    pub records_received: u64,
    /// Records that led to nothing, for whatever reason.
    pub records_dropped: u64,
    /// Datagrams with something that is no record of DTLS 1.2.
    pub malformed: u64,
    /// Records that were forged, repeated, or of another key.
    pub not_authentic: u64,
    /// Records whose Connection ID names no association: of a peer that has to resume its session.
    pub unknown_connection_ids: u64,
    /// ClientHellos that were answered with a cookie.
    pub cookies_sent: u64,
    /// ClientHellos that came with a valid cookie.
    pub handshakes_begun: u64,
    /// Handshakes that succeeded.
    pub handshakes_completed: u64,
    /// Handshakes that failed.
    pub handshakes_failed: u64,
}
