//! Who has a private key? ECDSA on P-256 with SHA-256 (RFC 8422), with aws-lc-rs.

use std::fmt;

use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use zeroize::Zeroizing;

use crate::alert::AlertDescription;
use crate::handshake::Refused;
use crate::key_agreement::public_key_of;
use crate::key_schedule::TranscriptHash;
use crate::x509;

/// The SubjectPublicKeyInfo of a key on P-256, up to its point (RFC 5480 section 2).
const PUBLIC_KEY_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A point, uncompressed (RFC 8422 section 5.4.1).
const POINT_LENGTH: usize = 65;

/// A key that signs handshakes, for peers that have no pre-shared one, and what it is shown by.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    public: Box<[u8]>,
    pub(crate) certificates: Vec<Box<[u8]>>,
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidKey {
    /// The bytes are no private key on P-256.
    #[error("the key is not a private key on P-256 in PKCS #8 or SEC 1, in DER")]
    NotOnP256,
    /// The certificate is not one of the key.
    #[error("the certificate is not one of the key")]
    OtherCertificate,
}

impl SigningKey {
    /// A private key on P-256 in PKCS #8 or SEC 1, in DER. The chain begins with the own
    /// certificate, in DER; without one, only peers that take a raw public key (RFC 7250) are
    /// served.
    pub fn from_der(private_key: &[u8], certificates: Vec<Box<[u8]>>) -> Result<Self, InvalidKey> {
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, private_key)
            .or_else(|_| EcdsaKeyPair::from_private_key_der(algorithm, private_key));
        Self::of(pair.map_err(|_| InvalidKey::NotOnP256)?, certificates)
    }

    /// The private key that is this number, big-endian, without a certificate. All but one of 2^32
    /// random numbers are a key.
    pub fn from_scalar(private_key: &[u8; 32]) -> Result<Self, InvalidKey> {
        let public = public_key_of(private_key).ok_or(InvalidKey::NotOnP256)?;
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, private_key, &public);
        Self::of(pair.map_err(|_| InvalidKey::NotOnP256)?, Vec::new())
    }

    fn of(pair: EcdsaKeyPair, certificates: Vec<Box<[u8]>>) -> Result<Self, InvalidKey> {
        let public = [&PUBLIC_KEY_PREFIX, pair.public_key().as_ref()].concat();
        if let Some(own) = certificates.first()
            && x509::public_key_of(own).as_deref() != Some(&public[..])
        {
            return Err(InvalidKey::OtherCertificate);
        }
        Ok(Self {
            pair,
            public: public.into(),
            certificates,
        })
    }

    /// The private key in PKCS #8 (RFC 5958), in DER.
    pub fn private_key(&self) -> Result<Zeroizing<Vec<u8>>, InvalidKey> {
        let written = self.pair.to_pkcs8v1().map_err(|_| InvalidKey::NotOnP256)?;
        Ok(Zeroizing::new(written.as_ref().to_vec()))
    }

    /// The SubjectPublicKeyInfo, in DER, which devices with raw public keys are given.
    pub fn public_key(&self) -> &[u8] {
        &self.public
    }

    /// The certificates that it is shown by, in DER, its own first; none if there are none.
    pub fn certificates(&self) -> &[Box<[u8]>] {
        &self.certificates
    }

    /// A signature of what has this hash, in DER. Its nonce is from the library's own entropy: a
    /// nonce that repeats gives the key away.
    pub(crate) fn sign_hash(&self, hash: &TranscriptHash) -> Result<Vec<u8>, Refused> {
        const FAULT: Refused = Refused(AlertDescription::INTERNAL_ERROR);
        let digest = Digest::import_less_safe(hash, &SHA256).map_err(|_| FAULT)?;
        let signature = self.pair.sign_digest(&digest).map_err(|_| FAULT)?;
        Ok(signature.as_ref().to_vec())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

/// The point in a SubjectPublicKeyInfo, if that is of a key on P-256.
pub(crate) fn point_of(public_key: &[u8]) -> Option<&[u8]> {
    let point = public_key.strip_prefix(&PUBLIC_KEY_PREFIX)?;
    (point.len() == POINT_LENGTH).then_some(point)
}

/// Whether the owner of a key has signed what has this hash.
pub(crate) fn verify(
    public_key: &[u8],
    hash: &TranscriptHash,
    signature: &[u8],
) -> Result<(), Refused> {
    const WRONG: Refused = Refused(AlertDescription::DECRYPT_ERROR);
    let point = point_of(public_key).ok_or(WRONG)?;
    let digest = Digest::import_less_safe(hash, &SHA256).map_err(|_| WRONG)?;
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point);
    key.verify_digest(&digest, signature).map_err(|_| WRONG)
}
