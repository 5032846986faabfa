//! Who has a certificate, and who says so? X.509 (RFC 5280) as RFC 7925 section 4.4 has it: a chain
//! of the peer, authorities that the caller trusts, and names in the subject or beside it.
//!
//! The signatures and the path are rustls-webpki's, which reads no common name. The work is bounded
//! before anything is trusted: by the length of the chain, by the number of names, and by the
//! signatures that rustls-webpki checks for a path.

use std::time::Duration;

use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use webpki::aws_lc_rs::{
    ECDSA_P256_SHA256, ECDSA_P256_SHA384, ECDSA_P384_SHA256, ECDSA_P384_SHA384,
    RSA_PKCS1_2048_8192_SHA256,
};
use webpki::{EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};

use crate::moment::Timestamp;
use crate::presentation::{Malformed, Reader};

/// The most certificates of a peer: its own and those of three authorities.
pub(crate) const CHAIN_MAX: usize = 4;

/// The most names of a certificate that are looked at.
const NAMES_MAX: usize = 4;

/// The longest name that is looked at, in bytes.
const NAME_MAX: usize = 255;

/// What authorities sign with. The keys of peers are on P-256.
const ALGORITHMS: &[&dyn SignatureVerificationAlgorithm] = &[
    ECDSA_P256_SHA256,
    ECDSA_P256_SHA384,
    ECDSA_P384_SHA256,
    ECDSA_P384_SHA384,
    RSA_PKCS1_2048_8192_SHA256,
];

/// commonName (RFC 5280 appendix A.1).
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// The certificates that a peer has shown, its own first, in DER.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateChain(Box<[CertificateDer<'static>]>);

/// Why a chain does not lead to an authority.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum CertificateFault {
    /// One of its certificates has expired, or is not valid yet.
    #[error("a certificate is not valid at this time")]
    NotValidNow,
    /// No authority that is trusted has signed it.
    #[error("no trusted authority has signed the certificate")]
    UnknownIssuer,
    /// It breaks a rule of RFC 5280, or has a signature of a kind that is not supported.
    #[error("the certificate cannot be used")]
    Unusable,
}

impl CertificateChain {
    /// The chain of these certificates, in DER; none if there are none.
    pub fn of(certificates: &[&[u8]]) -> Option<Self> {
        let owned = |it: &&[u8]| CertificateDer::from(it.to_vec());
        let chain: Box<[_]> = certificates.iter().map(owned).collect();
        (!chain.is_empty()).then_some(Self(chain))
    }

    /// The peer's own certificate.
    pub(crate) fn own(&self) -> &[u8] {
        self.0.first().map_or(&[], |it| it)
    }

    /// The names of the peer: the common names of the subject, then the DNS names and the URIs of
    /// subjectAltName, each once, four at most. Nobody has vouched for them before
    /// [`Self::verify`].
    pub fn names(&self) -> Vec<String> {
        let own = CertificateDer::from(self.own());
        let Ok(own) = EndEntityCert::try_from(&own) else {
            return Vec::new();
        };
        let common = common_names(own.subject());
        let all = common.into_iter().chain(own.valid_dns_names());
        let mut names: Vec<String> = Vec::new();
        for name in all.chain(own.valid_uri_names()) {
            let is_new = !names.iter().any(|it| it == name);
            if is_new && (1..=NAME_MAX).contains(&name.len()) && names.len() < NAMES_MAX {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Whether the chain leads to one of these authorities, whose certificates are in DER, and may
    /// be used by a client (RFC 5280 section 6). Revocation is not looked at.
    pub fn verify(
        &self,
        authorities: &[impl AsRef<[u8]>],
        now: Timestamp,
    ) -> Result<(), CertificateFault> {
        let trusted: Vec<CertificateDer<'_>> = authorities
            .iter()
            .map(|it| CertificateDer::from(it.as_ref()))
            .collect();
        let anchors: Vec<_> = trusted
            .iter()
            .filter_map(|it| anchor_from_trusted_cert(it).ok())
            .collect();
        let Some((own, others)) = self.0.split_first() else {
            return Err(CertificateFault::Unusable);
        };
        let own = EndEntityCert::try_from(own).map_err(|_| CertificateFault::Unusable)?;
        let now = UnixTime::since_unix_epoch(Duration::from_millis(now.as_ms()));
        let usage = KeyUsage::client_auth();
        let path = own.verify_for_usage(ALGORITHMS, &anchors, others, now, usage, None, None);
        path.map(|_| ()).map_err(|error| fault_of(&error))
    }

    /// Whether the peer's own certificate may be used by a client at this time, whoever has signed
    /// it.
    pub fn check_own(&self, now: Timestamp) -> Result<(), CertificateFault> {
        // The certificate itself is checked before its issuer is looked for.
        match self.verify(&[] as &[&[u8]], now) {
            Err(CertificateFault::UnknownIssuer) => Ok(()),
            checked => checked,
        }
    }
}

/// Whether a certificate, in DER, can be one of an authority.
pub fn is_authority(certificate: &[u8]) -> bool {
    anchor_from_trusted_cert(&CertificateDer::from(certificate)).is_ok()
}

/// The SubjectPublicKeyInfo of a certificate, in DER.
pub(crate) fn public_key_of(certificate: &[u8]) -> Option<Vec<u8>> {
    let certificate = CertificateDer::from(certificate);
    let certificate = EndEntityCert::try_from(&certificate).ok()?;
    Some(certificate.subject_public_key_info().to_vec())
}

fn fault_of(error: &Error) -> CertificateFault {
    let is_not_valid_now = matches!(
        error,
        Error::CertExpired { .. } | Error::CertNotValidYet { .. }
    );
    let is_of_another = matches!(
        error,
        Error::UnknownIssuer | Error::InvalidSignatureForPublicKey
    );
    match is_not_valid_now {
        true => CertificateFault::NotValidNow,
        // An authority of the same name has another key.
        false if is_of_another => CertificateFault::UnknownIssuer,
        false => CertificateFault::Unusable,
    }
}

/// The common names in the content of a subject (RFC 5280 section 4.1.2.6).
fn common_names(subject: &[u8]) -> Vec<&str> {
    let mut names = Vec::new();
    // What follows a malformed element is not read.
    let _ = read_common_names(Reader::new(subject), &mut names);
    names
}

fn read_common_names<'a>(
    mut subject: Reader<'a>,
    names: &mut Vec<&'a str>,
) -> Result<(), Malformed> {
    while !subject.is_empty() {
        let mut attributes = Reader::new(element(&mut subject, SET)?);
        while !attributes.is_empty() {
            let mut attribute = Reader::new(element(&mut attributes, SEQUENCE)?);
            let is_common_name = element(&mut attribute, OBJECT_IDENTIFIER)? == COMMON_NAME;
            let (tag, value) = any_element(&mut attribute)?;
            let is_text = matches!(tag, UTF8_STRING | PRINTABLE_STRING | IA5_STRING);
            if is_common_name && is_text {
                names.extend(str::from_utf8(value));
            }
        }
    }
    Ok(())
}

/// The content of the next element, which has this tag.
fn element<'a>(reader: &mut Reader<'a>, expected: u8) -> Result<&'a [u8], Malformed> {
    match any_element(reader)? {
        (tag, content) if tag == expected => Ok(content),
        _ => Err(Malformed),
    }
}

/// The tag and the content of the next element in DER (X.690 section 8.1), of 64 KiB at most.
fn any_element<'a>(reader: &mut Reader<'a>) -> Result<(u8, &'a [u8]), Malformed> {
    let tag = reader.u8()?;
    let length = match reader.u8()? {
        short @ ..=0x7f => short.into(),
        0x81 => reader.u8()?.into(),
        0x82 => reader.u16()?,
        _ => return Err(Malformed),
    };
    Ok((tag, reader.take(length.into())?))
}
