//! How does an endpoint behave?

use std::fmt;
use std::sync::Arc;

use crate::cipher_suite::CipherSuite;
use crate::handshake::resumption::Resumption;
use crate::handshake::ticket::TicketKey;
use crate::signature::SigningKey;

/// The settings of an endpoint. [`Config::new`] has the defaults.
#[derive(Clone)]
pub struct Config {
    /// What every Connection ID of this endpoint begins with, at most
    /// [`CONNECTION_ID_PREFIX_MAX`](crate::CONNECTION_ID_PREFIX_MAX) bytes. Endpoints that share a
    /// port have prefixes of one length, so that [`DatagramRoute`](crate::DatagramRoute) finds
    /// theirs. Default: none.
    pub connection_id_prefix: Box<[u8]>,
    /// The key of cookies (RFC 6347 section 4.2.1). Endpoints that share a port share it.
    pub cookie_secret: [u8; 32],
    /// Whether handshakes of clients are accepted. Default: yes.
    pub accepts_clients: bool,
    /// The suites of a server in the order of its preference. Default: all that its credentials
    /// allow.
    pub cipher_suites: Vec<CipherSuite>,
    /// Whether clients that do not offer encrypt_then_mac (RFC 7366) may have the suites with CBC.
    /// MAC-then-encrypt is checked in constant time, and was broken by its timing again and again
    /// elsewhere. Default: no.
    pub accepts_bare_cbc: bool,
    /// The server's key for peers without a pre-shared one. Default: none, so that their suites are
    /// not chosen.
    pub server_key: Option<Arc<SigningKey>>,
    /// What a server does with clients that do not know RFC 7627. Default: accepted, but their
    /// sessions cannot be resumed.
    pub extended_master_secret: ExtendedMasterSecret,
    /// Session tickets (RFC 5077): the first key seals, all of them open. Default: no tickets.
    pub ticket_keys: Vec<TicketKey>,
    /// How long after its last handshake, full or abbreviated, a session may be resumed. Longer
    /// than a session may be silent, so that one that has ended can be. Default: 30 days.
    pub resumption_s: u32,
    /// How long after its full handshake a session may be resumed, however often it was. Default:
    /// 120 days.
    pub authentication_s: u32,
    /// How many sessions of clients without tickets can be resumed by their id. Default: 1,000; the
    /// oldest one gives way.
    pub cached_sessions_max: usize,
    /// The longest datagram that is sent in a handshake. Default: 1,232, which IPv6 carries
    /// everywhere.
    pub datagram_max: usize,
    /// The timers of handshakes.
    pub retransmission: Retransmission,
    /// How many handshakes are under way at a time. Default: 1,000; the oldest one gives way.
    pub handshakes_max: usize,
    /// How many associations there are, handshakes included. Default: 1,000,000; the one that was
    /// silent longest gives way.
    pub associations_max: usize,
    /// How long a session may be silent. Default: 7 days.
    pub idle_timeout_ms: u64,
}

/// Whether sessions need an extended master secret (RFC 7627).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExtendedMasterSecret {
    /// It is used with every peer that knows it.
    Preferred,
    /// A peer that does not know it is refused.
    Required,
}

/// The timers of RFC 6347 section 4.2.4.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retransmission {
    /// How long a flight waits for an answer before it is sent again. Default: 1 s; networks of
    /// narrow-band devices want more (RFC 7925 section 11: 9 s).
    pub initial_ms: u64,
    /// The bound of that time, which doubles with each repetition. Default: 60 s.
    pub max_ms: u64,
    /// How long a handshake may take. Default: 60 s.
    pub give_up_ms: u64,
}

/// A handshake as a client.
#[derive(Clone)]
pub struct ClientConfig {
    /// The suites that are offered, in the order of preference.
    pub cipher_suites: Vec<CipherSuite>,
    /// Whether suites with CBC are offered with encrypt_then_mac (RFC 7366), which the server then
    /// has to agree to; otherwise it is not offered. Default: yes.
    pub offers_encrypt_then_mac: bool,
    /// The identity of the pre-shared key.
    pub psk_identity: Box<[u8]>,
    /// The pre-shared key.
    pub psk: Box<[u8]>,
    /// Whether Connection IDs are offered (RFC 9146).
    pub connection_id: ConnectionIdOffer,
    /// The key and the certificates that are shown where there is no pre-shared key; without
    /// certificates a raw public key. Default: none.
    pub signing_key: Option<Arc<SigningKey>>,
    /// The SubjectPublicKeyInfo that the server has to prove then.
    pub server_public_key: Box<[u8]>,
    /// A session to resume.
    pub resumption: Option<Resumption>,
    /// Whether the server may hand over the session in a ticket (RFC 5077); otherwise it can be
    /// resumed by its id alone. Default: yes.
    pub accepts_tickets: bool,
    /// The longest plaintext of a record that is accepted (RFC 8449), at least 64.
    pub record_size_limit: Option<u16>,
    /// The longest plaintext of a record of either side (RFC 6066 section 4); a server that answers
    /// the limit above ignores it.
    pub max_fragment_length: Option<MaxFragmentLength>,
}

/// A maximum fragment length, with its code in RFC 6066 section 4.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum MaxFragmentLength {
    /// 512 bytes.
    Bytes512 = 1,
    /// 1,024 bytes.
    Bytes1024 = 2,
    /// 2,048 bytes.
    Bytes2048 = 3,
    /// 4,096 bytes.
    Bytes4096 = 4,
}

/// What a client says about Connection IDs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionIdOffer {
    /// Nothing.
    None,
    /// Its own records carry the server's; those of the server carry none.
    Empty,
    /// The records of both sides carry one.
    Own,
}

impl Config {
    /// The defaults with this key of cookies.
    pub fn new(cookie_secret: [u8; 32]) -> Self {
        Self {
            connection_id_prefix: Box::default(),
            cookie_secret,
            accepts_clients: true,
            cipher_suites: CipherSuite::ALL.to_vec(),
            accepts_bare_cbc: false,
            server_key: None,
            extended_master_secret: ExtendedMasterSecret::Preferred,
            ticket_keys: Vec::new(),
            resumption_s: 30 * 86_400,
            authentication_s: 120 * 86_400,
            cached_sessions_max: 1_000,
            datagram_max: 1_232,
            retransmission: Retransmission {
                initial_ms: 1_000,
                max_ms: 60_000,
                give_up_ms: 60_000,
            },
            handshakes_max: 1_000,
            associations_max: 1_000_000,
            idle_timeout_ms: 7 * 86_400_000,
        }
    }
}

impl ClientConfig {
    /// Offers every suite of pre-shared keys and a Connection ID for the records to the server.
    pub fn with_psk(identity: &[u8], key: &[u8]) -> Self {
        Self {
            cipher_suites: CipherSuite::ALL
                .into_iter()
                .filter(CipherSuite::has_psk)
                .collect(),
            offers_encrypt_then_mac: true,
            psk_identity: identity.into(),
            psk: key.into(),
            connection_id: ConnectionIdOffer::Empty,
            signing_key: None,
            server_public_key: Box::default(),
            resumption: None,
            accepts_tickets: true,
            record_size_limit: None,
            max_fragment_length: None,
        }
    }

    /// Offers every suite without a pre-shared key, and a Connection ID as [`Self::with_psk`]. The
    /// server is known by its public key, however it shows it.
    pub fn with_signing_key(key: Arc<SigningKey>, server_public_key: &[u8]) -> Self {
        Self {
            cipher_suites: CipherSuite::ALL
                .into_iter()
                .filter(|suite| !suite.has_psk())
                .collect(),
            signing_key: Some(key),
            server_public_key: server_public_key.into(),
            ..Self::with_psk(&[], &[])
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Config(..)")
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientConfig(..)")
    }
}
