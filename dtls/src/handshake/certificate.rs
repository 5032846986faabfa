//! How do both sides show their keys? Certificate, CertificateRequest and CertificateVerify: RFC
//! 5246 sections 7.4.2, 7.4.4 and 7.4.8, RFC 7250, RFC 8422 sections 5.4 to 5.8.

use sha2::{Digest, Sha256};

use crate::alert::AlertDescription;
use crate::key_agreement;
use crate::key_schedule::Randoms;
use crate::presentation::{Reader, Writer};
use crate::signature::{self, SigningKey};
use crate::x509::{self, CertificateChain};

use super::Refused;

/// ecdsa_secp256r1_sha256, the one algorithm here.
pub(crate) const ECDSA_SHA256: u16 = 0x0403;

/// ecdsa_sign (RFC 8422 section 5.5).
const ECDSA_SIGN: u8 = 64;

/// What a Certificate consists of (RFC 7250 section 3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CertificateType {
    X509,
    RawPublicKey,
}

impl CertificateType {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::X509 => 0,
            Self::RawPublicKey => 2,
        }
    }

    /// How the owner of a key shows it.
    pub(crate) fn of(key: &SigningKey) -> Self {
        match key.certificates() {
            [] => Self::RawPublicKey,
            [_, ..] => Self::X509,
        }
    }

    /// The type that the extension of a ServerHello chooses; without it X.509.
    pub(crate) fn chosen(extension: Option<&[u8]>) -> Result<Self, Refused> {
        match extension {
            None | Some([0]) => Ok(Self::X509),
            Some([2]) => Ok(Self::RawPublicKey),
            Some(_) => Err(Refused(AlertDescription::ILLEGAL_PARAMETER)),
        }
    }

    /// The types that the extension of a ClientHello offers, in order; without it X.509.
    pub(crate) fn offered(extension: Option<&[u8]>) -> Result<Vec<Self>, Refused> {
        let Some(extension) = extension else {
            return Ok(vec![Self::X509]);
        };
        let mut reader = Reader::new(extension);
        let numbers = reader.vector8()?;
        reader.end()?;
        let known = numbers.iter().filter_map(|number| match number {
            0 => Some(Self::X509),
            2 => Some(Self::RawPublicKey),
            _ => None,
        });
        Ok(known.collect())
    }
}

/// What the other side has shown.
#[derive(Debug)]
pub(crate) struct ShownKey {
    /// The SubjectPublicKeyInfo of a key on P-256.
    pub(crate) public_key: Box<[u8]>,
    /// The certificates that it is shown by; none for a raw public key.
    pub(crate) chain: Option<CertificateChain>,
}

impl ShownKey {
    /// Reads a Certificate of the agreed type.
    pub(crate) fn decode(shown_as: CertificateType, body: &[u8]) -> Result<Self, Refused> {
        let shown = match shown_as {
            CertificateType::RawPublicKey => Self {
                public_key: decode_raw_public_key(body)?.into(),
                chain: None,
            },
            CertificateType::X509 => {
                let chain = decode_chain(body)?;
                let public_key = x509::public_key_of(chain.own());
                let public_key = public_key.ok_or(Refused(AlertDescription::BAD_CERTIFICATE))?;
                Self {
                    public_key: public_key.into(),
                    chain: Some(chain),
                }
            }
        };
        match signature::point_of(&shown.public_key) {
            Some(_) => Ok(shown),
            None => Err(Refused(AlertDescription::UNSUPPORTED_CERTIFICATE)),
        }
    }
}

/// Whether signatures of ours can be checked by a client with this extension.
pub(crate) fn has_signature_algorithm(extension: Option<&[u8]>) -> bool {
    let mut pairs = extension.unwrap_or_default().chunks_exact(2);
    pairs.any(|pair| pair == ECDSA_SHA256.to_be_bytes())
}

/// The body of a Certificate.
pub(crate) fn encode_certificate(key: &SigningKey, certificate_type: CertificateType) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    match certificate_type {
        CertificateType::RawPublicKey => {
            out.put_u24(key.public_key().len() as u32);
            out.extend_from_slice(key.public_key());
        }
        CertificateType::X509 => {
            let length: usize = key.certificates.iter().map(|it| 3 + it.len()).sum();
            out.put_u24(length as u32);
            for certificate in &key.certificates {
                out.put_u24(certificate.len() as u32);
                out.extend_from_slice(certificate);
            }
        }
    }
    out
}

/// The SubjectPublicKeyInfo in a Certificate with a raw public key.
pub(crate) fn decode_raw_public_key(body: &[u8]) -> Result<&[u8], Refused> {
    let mut reader = Reader::new(body);
    let public_key = reader.vector24()?;
    reader.end()?;
    if public_key.is_empty() {
        // RFC 5246 section 7.4.6: the client has no suitable certificate.
        return Err(Refused(AlertDescription::HANDSHAKE_FAILURE));
    }
    Ok(public_key)
}

/// The chain in a Certificate with X.509 (RFC 5246 section 7.4.2).
pub(crate) fn decode_chain(body: &[u8]) -> Result<CertificateChain, Refused> {
    let mut reader = Reader::new(body);
    let mut list = Reader::new(reader.vector24()?);
    reader.end()?;
    let mut certificates = Vec::new();
    while !list.is_empty() {
        if certificates.len() == x509::CHAIN_MAX {
            return Err(Refused(AlertDescription::BAD_CERTIFICATE));
        }
        certificates.push(list.vector24()?);
    }
    // RFC 5246 section 7.4.6: without a certificate the client has no suitable one.
    CertificateChain::of(&certificates).ok_or(Refused(AlertDescription::HANDSHAKE_FAILURE))
}

/// The body of a ServerKeyExchange with an ephemeral key that the server signs.
pub(crate) fn encode_signed_parameters(
    key: &SigningKey,
    randoms: &Randoms,
    public: &[u8],
) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::with_capacity(160);
    key_agreement::encode_parameters(public, &mut out);
    let signature = key.sign_hash(&hash_of_parameters(randoms, &out))?;
    encode_signature(&signature, &mut out);
    Ok(out)
}

/// The point in a ServerKeyExchange that the owner of this key has signed.
pub(crate) fn decode_signed_parameters(
    public_key: &[u8],
    randoms: &Randoms,
    body: &[u8],
) -> Result<Box<[u8]>, Refused> {
    let mut reader = Reader::new(body);
    let point = key_agreement::decode_parameters(&mut reader)?;
    let proof = decode_signature(&mut reader)?;
    reader.end()?;
    let mut parameters = Vec::with_capacity(80);
    key_agreement::encode_parameters(point, &mut parameters);
    let hash = hash_of_parameters(randoms, &parameters);
    signature::verify(public_key, &hash, proof)?;
    Ok(point.into())
}

/// The body of a CertificateRequest: any authority, our one algorithm.
pub(crate) fn encode_certificate_request() -> Vec<u8> {
    let mut out = Vec::with_capacity(8);
    out.put_vector8(&[ECDSA_SIGN]);
    out.put_vector16(&ECDSA_SHA256.to_be_bytes());
    out.put_vector16(&[]);
    out
}

/// The signature in a CertificateVerify.
pub(crate) fn decode_certificate_verify(body: &[u8]) -> Result<&[u8], Refused> {
    let mut reader = Reader::new(body);
    let signature = decode_signature(&mut reader)?;
    reader.end()?;
    Ok(signature)
}

/// The body of a CertificateVerify.
pub(crate) fn encode_certificate_verify(signature: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + signature.len());
    encode_signature(signature, &mut out);
    out
}

/// What is signed of the parameters of a server (RFC 8422 section 5.4).
fn hash_of_parameters(randoms: &Randoms, parameters: &[u8]) -> [u8; 32] {
    let hash = Sha256::new()
        .chain_update(randoms.client)
        .chain_update(randoms.server)
        .chain_update(parameters)
        .finalize();
    hash.into()
}

/// Appends a signature and its algorithm (RFC 5246 section 4.7).
fn encode_signature(signature: &[u8], out: &mut Vec<u8>) {
    out.put_u16(ECDSA_SHA256);
    out.put_vector16(signature);
}

/// A signature and its algorithm (RFC 5246 section 4.7).
fn decode_signature<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Refused> {
    let algorithm = reader.u16()?;
    let signature = reader.vector16()?;
    if algorithm == ECDSA_SHA256 {
        Ok(signature)
    } else {
        Err(Refused(AlertDescription::ILLEGAL_PARAMETER))
    }
}
