//! Whose certificates may the devices of a customer show? Those of authorities that the customer
//! trusts, each with a certificate of its own (RFC 5280).

use crate::limits::{AUTHORITIES_MAX, AUTHORITY_BYTES_MAX};
use crate::moment::Timestamp;

/// The certificate authorities of a customer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateAuthorities {
    /// Their certificates, in DER.
    certificates: Box<[Box<[u8]>]>,
    /// When they were set. Sessions of earlier handshakes are over, because an authority that is
    /// no longer trusted may have admitted them.
    set_at: Timestamp,
}

/// Why certificates are not those of authorities.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidAuthorities {
    /// There is none.
    #[error("must contain a certificate")]
    Missing,
    /// There are too many.
    #[error("must contain at most {max} certificates")]
    TooMany {
        /// How many are accepted.
        max: usize,
    },
    /// One is too long.
    #[error("certificate {number} must have at most {max} bytes in DER")]
    TooLong {
        /// Which one, from 1.
        number: usize,
        /// How many bytes are accepted.
        max: usize,
    },
    /// One is not an X.509 certificate.
    #[error("certificate {number} is not an X.509 certificate of version 3")]
    NotX509 {
        /// Which one, from 1.
        number: usize,
    },
}

impl CertificateAuthorities {
    /// The authorities with these certificates, in DER.
    pub fn new(
        certificates: Vec<Box<[u8]>>,
        set_at: Timestamp,
    ) -> Result<Self, InvalidAuthorities> {
        if certificates.is_empty() {
            return Err(InvalidAuthorities::Missing);
        }
        if certificates.len() > AUTHORITIES_MAX {
            return Err(InvalidAuthorities::TooMany {
                max: AUTHORITIES_MAX,
            });
        }
        for (number, certificate) in (1..).zip(&certificates) {
            if certificate.len() > AUTHORITY_BYTES_MAX {
                return Err(InvalidAuthorities::TooLong {
                    number,
                    max: AUTHORITY_BYTES_MAX,
                });
            }
            if !dtls::is_authority(certificate) {
                return Err(InvalidAuthorities::NotX509 { number });
            }
        }
        Ok(Self::restore(certificates, set_at))
    }

    /// Authorities that were set before.
    pub fn restore(certificates: Vec<Box<[u8]>>, set_at: Timestamp) -> Self {
        Self {
            certificates: certificates.into(),
            set_at,
        }
    }

    /// Their certificates, in DER.
    pub fn certificates(&self) -> &[Box<[u8]>] {
        &self.certificates
    }

    /// When they were set.
    pub fn set_at(&self) -> Timestamp {
        self.set_at
    }

    /// Whether a session is still valid if its first handshake was at this time.
    pub fn admit_session_of(&self, handshake_at: Timestamp) -> bool {
        handshake_at >= self.set_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_a_few_certificates() {
        let certificate = |bytes: usize| vec![0x30; bytes].into_boxed_slice();
        let of = |certificates| CertificateAuthorities::new(certificates, Timestamp::from_ms(1));
        assert_eq!(of(vec![]), Err(InvalidAuthorities::Missing));
        let many = vec![certificate(1); AUTHORITIES_MAX + 1];
        let max = AUTHORITIES_MAX;
        assert_eq!(of(many), Err(InvalidAuthorities::TooMany { max }));
        let long = certificate(AUTHORITY_BYTES_MAX + 1);
        let (number, max) = (1, AUTHORITY_BYTES_MAX);
        let too_long = InvalidAuthorities::TooLong { number, max };
        assert_eq!(of(vec![long]), Err(too_long));
        let not = InvalidAuthorities::NotX509 { number };
        assert_eq!(of(vec![certificate(10)]), Err(not));
    }
}
