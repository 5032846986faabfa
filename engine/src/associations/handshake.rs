//! How did a DTLS handshake end, and why is one refused?

use dtls::CertificateFault;

/// How a handshake ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HandshakeOutcome {
    /// The device proved its key.
    Completed,
    /// The device resumed an earlier session.
    Resumed,
    /// No device has the identity.
    UnknownIdentity,
    /// It was refused to somebody who claims to be a device.
    Refused(HandshakeFault),
    /// It was refused before an identity was claimed, or the peer refused it.
    Failed,
    /// The peer fell silent.
    TimedOut,
    /// Too many handshakes were under way.
    Evicted,
    /// The peer began another one.
    Replaced,
    /// The store could not be read.
    StoreUnavailable,
}

/// Why a handshake is refused to somebody who claims to be a device; none of these tells a secret.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum HandshakeFault {
    /// The peer does not have the key of the identity.
    #[error("the sender has another key than the device")]
    WrongKey,
    /// The device has no key of the kind that the peer uses.
    #[error("the device has no valid key of this identity")]
    NoKey,
    /// The key of an earlier session is no longer valid.
    #[error("the sender resumed a session that began before the key of the device was changed")]
    Revoked,
    /// No authority of the customer has signed the certificate.
    #[error("no certificate authority of the customer has signed the certificate of the sender")]
    UntrustedCertificate,
    /// The certificate is out of its time.
    #[error("a certificate of the sender has expired, or is not valid yet")]
    CertificateNotValidNow,
    /// The certificate cannot be used.
    #[error("a certificate of the sender breaks a rule of RFC 5280 or is of an unsupported kind")]
    UnusableCertificate,
    /// The peer ended it with an alert.
    #[error("the sender ended it")]
    EndedByPeer,
    /// The peer offers nothing that is accepted, or breaks the protocol.
    #[error("the sender broke the protocol")]
    Protocol,
}

impl From<CertificateFault> for HandshakeFault {
    fn from(fault: CertificateFault) -> Self {
        match fault {
            CertificateFault::NotValidNow => Self::CertificateNotValidNow,
            CertificateFault::UnknownIssuer => Self::UntrustedCertificate,
            CertificateFault::Unusable => Self::UnusableCertificate,
        }
    }
}

impl HandshakeOutcome {
    /// Every outcome.
    pub const ALL: [Self; 16] = [
        Self::Completed,
        Self::Resumed,
        Self::UnknownIdentity,
        Self::Refused(HandshakeFault::WrongKey),
        Self::Refused(HandshakeFault::NoKey),
        Self::Refused(HandshakeFault::Revoked),
        Self::Refused(HandshakeFault::UntrustedCertificate),
        Self::Refused(HandshakeFault::CertificateNotValidNow),
        Self::Refused(HandshakeFault::UnusableCertificate),
        Self::Refused(HandshakeFault::EndedByPeer),
        Self::Refused(HandshakeFault::Protocol),
        Self::Failed,
        Self::TimedOut,
        Self::Evicted,
        Self::Replaced,
        Self::StoreUnavailable,
    ];

    /// Its index in [`Self::ALL`].
    pub fn index(self) -> usize {
        Self::ALL.iter().position(|it| *it == self).unwrap_or(0)
    }
}
