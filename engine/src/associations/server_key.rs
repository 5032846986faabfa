//! What does the service prove its own identity with, to devices without a pre-shared key? A key on
//! P-256, shown raw (RFC 7250) or by a certificate.

use std::fmt;
use std::sync::Arc;

use dtls::SigningKey;

/// The key of the service.
#[derive(Clone)]
pub struct ServerKey(Arc<SigningKey>);

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidServerKey(#[from] dtls::InvalidKey);

impl ServerKey {
    /// A private key in PKCS #8 or SEC 1 and its certificates, its own first, all in DER. Without
    /// certificates it is shown raw.
    pub fn from_der(
        private_key: &[u8],
        certificates: Vec<Box<[u8]>>,
    ) -> Result<Self, InvalidServerKey> {
        let key = SigningKey::from_der(private_key, certificates)?;
        Ok(Self(Arc::new(key)))
    }

    /// The private key that is this number. All but one of 2^32 random numbers are a key.
    pub fn from_scalar(private_key: &[u8; 32]) -> Result<Self, InvalidServerKey> {
        Ok(Self(Arc::new(SigningKey::from_scalar(private_key)?)))
    }

    /// The SubjectPublicKeyInfo, in DER.
    pub fn public_key(&self) -> &[u8] {
        self.0.public_key()
    }

    /// The certificates, in DER, its own first; none if it is shown raw.
    pub fn certificates(&self) -> &[Box<[u8]>] {
        self.0.certificates()
    }

    pub(super) fn signing_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKey(..)")
    }
}
