//! What does a call ask of the caller, and what does it report?

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use zeroize::Zeroizing;

use crate::alert::AlertDescription;
use crate::association::AssociationId;
use crate::cipher_suite::CipherSuite;
use crate::handshake::resumption::Resumption;
use crate::identity::Identity;
use crate::moment::Timestamp;
use crate::x509::CertificateChain;

/// One effect of a call.
#[derive(Debug)]
pub enum Effect<'e> {
    /// Send a datagram.
    Send {
        /// To whom.
        peer: SocketAddr,
        /// The datagram.
        datagram: &'e [u8],
    },
    /// Look up the pre-shared key of an identity, then call
    /// [`Endpoint::provide_psk`](crate::Endpoint::provide_psk), now or later.
    LookUpPsk {
        /// The handshake.
        association: AssociationId,
        /// The identity that the client claims.
        identity: &'e [u8],
    },
    /// Say whether the owner of a raw public key is known, with
    /// [`Endpoint::admit`](crate::Endpoint::admit) or
    /// [`Endpoint::refuse`](crate::Endpoint::refuse), now or later. The peer has proved that it has
    /// the private key.
    AdmitPublicKey {
        /// The handshake.
        association: AssociationId,
        /// The SubjectPublicKeyInfo, in DER.
        public_key: &'e [u8],
    },
    /// Say under which name the owner of a certificate is known, with
    /// [`Endpoint::admit_as`](crate::Endpoint::admit_as), or
    /// [`Endpoint::refuse`](crate::Endpoint::refuse) it, now or later. The peer has proved that it
    /// has the private key; whether the chain leads to an authority is for the caller to ask
    /// ([`CertificateChain::verify`]).
    AdmitCertificate {
        /// The handshake.
        association: AssociationId,
        /// The certificates of the peer.
        chain: &'e CertificateChain,
    },
    /// A handshake has succeeded: datagrams of the association are from this identity.
    Established {
        /// The association.
        association: AssociationId,
        /// Where the peer is.
        peer: SocketAddr,
        /// Who the peer is.
        identity: &'e Identity,
        /// What the session consists of.
        security: Security,
        /// What a client can resume the session with.
        resumption: Option<&'e Resumption>,
        /// The record with which a server resumes the session by its id, if the client has no
        /// ticket. It contains the secret of the session. A caller that keeps it, sealed, gives it
        /// to [`Endpoint::cache`](crate::Endpoint::cache) after a restart.
        cached: Option<&'e [u8]>,
    },
    /// A datagram of an established association has arrived.
    Received {
        /// The association.
        association: AssociationId,
        /// Its content.
        content: &'e [u8],
    },
    /// The peer is at another address; what is sent from now on goes there (RFC 9146 section 6).
    Moved {
        /// The association.
        association: AssociationId,
        /// Where the peer was.
        from: SocketAddr,
        /// Where it is.
        to: SocketAddr,
    },
    /// An established association has ended.
    Closed {
        /// The association.
        association: AssociationId,
        /// Why.
        reason: CloseReason,
    },
    /// A handshake has failed.
    Failed {
        /// The association that it would have led to.
        association: AssociationId,
        /// With whom.
        peer: SocketAddr,
        /// Why.
        reason: HandshakeFailure,
    },
}

/// What a session consists of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Security {
    /// The cipher suite.
    pub suite: CipherSuite,
    /// Whether the peer may change its address (RFC 9146).
    pub has_connection_id: bool,
    /// Whether the secret is bound to the handshake (RFC 7627).
    pub has_extended_master_secret: bool,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// When the peer proved its identity: a resumed session is as old as its first handshake. A
    /// caller that has revoked the key since then closes the association.
    pub authenticated_at: Timestamp,
    /// Which of the keys of [`Endpoint::provide_psk`](crate::Endpoint::provide_psk) the peer has.
    pub psk_index: usize,
}

/// Why an association has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CloseReason {
    /// The peer has closed it.
    CloseNotify,
    /// The peer has reported an error.
    Alert(AlertDescription),
    /// It was silent for too long.
    Idle,
    /// There were too many associations.
    Evicted,
    /// The peer, known by its address alone, has made a new handshake.
    Replaced,
}

/// Why a handshake has failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandshakeFailure {
    /// The peer has another key than the identity it claims, or the caller knows no key.
    WrongKey,
    /// The peer has refused it.
    RefusedByPeer(AlertDescription),
    /// It was refused here.
    Refused(AlertDescription),
    /// The peer has fallen silent.
    TimedOut,
    /// There were too many handshakes.
    Evicted,
    /// The peer has begun another one.
    Replaced,
}

/// The effects of calls, in order, until [`Effects::clear`]. It keeps its memory, so that a record
/// costs no allocation.
#[derive(Default)]
pub struct Effects {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

enum Item {
    Send(SocketAddr, Range<usize>),
    LookUpPsk(AssociationId, Box<[u8]>),
    AdmitPublicKey(AssociationId, Box<[u8]>),
    AdmitCertificate(AssociationId, Box<CertificateChain>),
    Established(Box<Establishment>),
    Received(AssociationId, Range<usize>),
    Moved(AssociationId, SocketAddr, SocketAddr),
    Closed(AssociationId, CloseReason),
    Failed(AssociationId, SocketAddr, HandshakeFailure),
}

pub(crate) struct Establishment {
    pub(crate) association: AssociationId,
    pub(crate) peer: SocketAddr,
    pub(crate) identity: Identity,
    pub(crate) security: Security,
    pub(crate) resumption: Option<Resumption>,
    pub(crate) cached: Option<Zeroizing<Vec<u8>>>,
}

impl Effects {
    /// No effects.
    pub fn new() -> Self {
        Self::default()
    }

    /// The effects in the order in which they are to be performed.
    pub fn iter(&self) -> impl Iterator<Item = Effect<'_>> {
        self.items.iter().map(|item| self.effect(item))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Forgets all effects, once they are performed.
    pub fn clear(&mut self) {
        self.items.clear();
        self.bytes.clear();
    }

    /// Where datagrams and contents are written.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Sends what was written since `start`.
    pub(crate) fn transmit(&mut self, peer: SocketAddr, start: usize) {
        if start < self.bytes.len() {
            self.items.push(Item::Send(peer, start..self.bytes.len()));
        }
    }

    /// Reports what was written since `start` as received.
    pub(crate) fn received(&mut self, association: AssociationId, start: usize) {
        let range = start..self.bytes.len();
        self.items.push(Item::Received(association, range));
    }

    pub(crate) fn look_up_psk(&mut self, association: AssociationId, identity: Box<[u8]>) {
        self.items.push(Item::LookUpPsk(association, identity));
    }

    pub(crate) fn admit_public_key(&mut self, association: AssociationId, key: Box<[u8]>) {
        self.items.push(Item::AdmitPublicKey(association, key));
    }

    pub(crate) fn admit_certificate(&mut self, association: AssociationId, it: CertificateChain) {
        self.items
            .push(Item::AdmitCertificate(association, Box::new(it)));
    }

    pub(crate) fn established(&mut self, establishment: Establishment) {
        self.items.push(Item::Established(Box::new(establishment)));
    }

    pub(crate) fn moved(&mut self, association: AssociationId, from: SocketAddr, to: SocketAddr) {
        self.items.push(Item::Moved(association, from, to));
    }

    pub(crate) fn closed(&mut self, association: AssociationId, reason: CloseReason) {
        self.items.push(Item::Closed(association, reason));
    }

    pub(crate) fn failed(
        &mut self,
        association: AssociationId,
        peer: SocketAddr,
        reason: HandshakeFailure,
    ) {
        self.items.push(Item::Failed(association, peer, reason));
    }

    fn effect<'e>(&'e self, item: &'e Item) -> Effect<'e> {
        match item {
            Item::Send(peer, range) => Effect::Send {
                peer: *peer,
                datagram: &self.bytes[range.clone()],
            },
            Item::LookUpPsk(association, identity) => Effect::LookUpPsk {
                association: *association,
                identity,
            },
            Item::AdmitCertificate(association, chain) => Effect::AdmitCertificate {
                association: *association,
                chain,
            },
            Item::AdmitPublicKey(association, public_key) => Effect::AdmitPublicKey {
                association: *association,
                public_key,
            },
            Item::Established(it) => Effect::Established {
                association: it.association,
                peer: it.peer,
                identity: &it.identity,
                security: it.security,
                resumption: it.resumption.as_ref(),
                cached: it.cached.as_ref().map(|record| record.as_slice()),
            },
            Item::Received(association, range) => Effect::Received {
                association: *association,
                content: &self.bytes[range.clone()],
            },
            Item::Moved(association, from, to) => Effect::Moved {
                association: *association,
                from: *from,
                to: *to,
            },
            Item::Closed(association, reason) => Effect::Closed {
                association: *association,
                reason: *reason,
            },
            Item::Failed(association, peer, reason) => Effect::Failed {
                association: *association,
                peer: *peer,
                reason: *reason,
            },
        }
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Contents are not for logs.
        write!(f, "Effects({})", self.items.len())
    }
}
