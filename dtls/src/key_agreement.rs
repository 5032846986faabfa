//! Ephemeral keys on P-256: ECDHE of RFC 8422, with aws-lc-rs.

use std::fmt;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use zeroize::Zeroizing;

use crate::alert::AlertDescription;
use crate::handshake::Refused;
use crate::moment::Moment;
use crate::presentation::{Malformed, Reader, Writer};

/// secp256r1 in the registry of groups (RFC 8422 section 5.1.1).
pub(crate) const SECP256R1: u16 = 23;

/// A curve by its name (RFC 8422 section 5.4).
const NAMED_CURVE: u8 = 3;

/// A key for one handshake.
pub(crate) struct EphemeralKey {
    private: PrivateKey,
    /// The point, uncompressed.
    public: Box<[u8]>,
}

impl EphemeralKey {
    pub(crate) fn generate(moment: &mut Moment<'_>) -> Result<Self, Refused> {
        const FAULT: Refused = Refused(AlertDescription::INTERNAL_ERROR);
        // One of 2^32 numbers is no scalar of the curve; more in a row are no entropy.
        let mut attempts = (0..4).map(|_| Zeroizing::new(moment.random::<32>()));
        let private =
            attempts.find_map(|bytes| PrivateKey::from_private_key(&ECDH_P256, &*bytes).ok());
        let private = private.ok_or(FAULT)?;
        let public = private.compute_public_key().map_err(|_| FAULT)?;
        let public = public.as_ref().into();
        Ok(Self { private, public })
    }

    /// The point, uncompressed.
    pub(crate) fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret that both sides have in common.
    pub(crate) fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, Refused> {
        let peer = UnparsedPublicKey::new(&ECDH_P256, peer);
        agree(
            &self.private,
            peer,
            Refused(AlertDescription::ILLEGAL_PARAMETER),
            |secret| Ok(Zeroizing::new(secret.to_vec())),
        )
    }
}

impl fmt::Debug for EphemeralKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EphemeralKey(..)")
    }
}

/// The point of a private key, uncompressed.
pub(crate) fn public_key_of(private_key: &[u8; 32]) -> Option<Vec<u8>> {
    let private = PrivateKey::from_private_key(&ECDH_P256, private_key).ok()?;
    Some(private.compute_public_key().ok()?.as_ref().to_vec())
}

/// Appends ServerECDHParams (RFC 8422 section 5.4).
pub(crate) fn encode_parameters(public: &[u8], out: &mut Vec<u8>) {
    out.push(NAMED_CURVE);
    out.put_u16(SECP256R1);
    out.put_vector8(public);
}

/// The point in ServerECDHParams on our curve.
pub(crate) fn decode_parameters<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Refused> {
    let curve_type = reader.u8()?;
    let curve = reader.u16()?;
    if (curve_type, curve) != (NAMED_CURVE, SECP256R1) {
        return Err(Refused(AlertDescription::ILLEGAL_PARAMETER));
    }
    let point: Result<&[u8], Malformed> = reader.vector8();
    Ok(point?)
}
