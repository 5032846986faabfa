//! How do two sides arrive at a session? The handshake of RFC 6347 section 4.2.
//!
//! [`transport`] gets messages across, in order and whole; [`server`] and [`client`] say what they
//! mean.

pub(crate) mod certificate;
pub(crate) mod client;
pub(crate) mod cookie;
pub(crate) mod extension;
pub(crate) mod flight;
pub(crate) mod hello;
pub(crate) mod message;
pub(crate) mod reassembly;
pub(crate) mod resumption;
pub(crate) mod server;
pub(crate) mod ticket;
pub(crate) mod transport;

use crate::alert::AlertDescription;
use crate::effect::Security;
use crate::identity::Identity;
use crate::presentation::Malformed;
use crate::session::Session;
use crate::x509::CertificateChain;

use self::flight::LastFlight;
use self::resumption::{Resumable, Resumption, SessionId};

/// A handshake ends with a fatal alert of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Refused(pub(crate) AlertDescription);

impl From<Malformed> for Refused {
    fn from(Malformed: Malformed) -> Self {
        Self(AlertDescription::DECODE_ERROR)
    }
}

/// What follows from a message.
#[derive(Debug)]
pub(crate) enum Step {
    /// More messages of the same flight are to come.
    Wait,
    /// Our next flight is ready.
    SendFlight,
    /// The key of this identity is needed.
    LookUpPsk(Box<[u8]>),
    /// Whether the owner of this key is known is to be said.
    AdmitPublicKey(Box<[u8]>),
    /// Whether, and under which name, the owner of this certificate is known is to be said.
    AdmitCertificate(CertificateChain),
    /// The peer is authenticated; what is left of the flight is sent first.
    Establish(Box<Outcome>),
}

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) session: Session,
    pub(crate) identity: Identity,
    pub(crate) security: Security,
    /// The flight that the peer may ask for again; none if the last flight is the peer's.
    pub(crate) last_flight: Option<LastFlight>,
    /// What a client resumes the session with.
    pub(crate) resumption: Option<Resumption>,
    /// What a server resumes the session with, and the id that the client then names.
    pub(crate) cached: Option<(SessionId, Resumable)>,
}
