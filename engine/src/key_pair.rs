//! Which key pairs on P-256 are devices given? Those that the service makes, and those of their
//! certificates.

use std::fmt;

use dtls::SigningKey;
use zeroize::Zeroizing;

use crate::associations::server_key::InvalidServerKey;
use crate::credentials::RawPublicKey;

/// How many numbers are drawn: one of 2^32 is no key, and several in a row are no entropy.
const DRAWS: usize = 4;

/// A key pair. The private key is overwritten when it is dropped, and never printed.
pub struct KeyPair {
    /// The public key.
    pub public: RawPublicKey,
    /// The private key in PKCS #8 (RFC 5958), in DER.
    pub private: Zeroizing<Vec<u8>>,
}

/// The private key of a certificate, in PKCS #8.
pub fn private_key_of(
    certificate: &[u8],
    key: &[u8],
) -> Result<Zeroizing<Vec<u8>>, InvalidServerKey> {
    let key = SigningKey::from_der(key, vec![certificate.into()])?;
    Ok(key.private_key()?)
}

/// The entropy is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no number of the entropy is a key")]
pub struct NoKey;

impl KeyPair {
    /// A key pair from entropy that is fit for keys.
    pub fn generate(fill: &mut dyn FnMut(&mut [u8])) -> Result<Self, NoKey> {
        let mut draws = (0..DRAWS).map(|_| {
            let mut scalar = Zeroizing::new([0; 32]);
            fill(&mut *scalar);
            SigningKey::from_scalar(&scalar).ok()
        });
        let key = draws.find_map(|key| key).ok_or(NoKey)?;
        Ok(Self {
            public: RawPublicKey::from_spki(key.public_key()).map_err(|_| NoKey)?,
            private: key.private_key().map_err(|_| NoKey)?,
        })
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_private_key_is_the_one_of_the_public_key() {
        let mut draws = [[0_u8; 32], [7; 32]].into_iter();
        let mut fill = |bytes: &mut [u8]| bytes.copy_from_slice(&draws.next().unwrap());
        let pair = KeyPair::generate(&mut fill).unwrap();
        let key = SigningKey::from_der(&pair.private, Vec::new()).unwrap();
        assert_eq!(key.public_key(), pair.public.spki());
        assert_eq!(format!("{pair:?}"), "KeyPair(..)");
        let none = KeyPair::generate(&mut |bytes| bytes.fill(0));
        assert_eq!(none.unwrap_err(), NoKey);
    }
}
