//! Who is the peer?

use crate::presentation::{Malformed, Reader, Writer};

/// What a handshake proved about the peer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Identity {
    /// It has the pre-shared key of this identity (RFC 4279).
    Psk(Box<[u8]>),
    /// It has the private key of this SubjectPublicKeyInfo (RFC 7250).
    RawPublicKey(Box<[u8]>),
    /// It has the private key of a certificate that the caller has admitted under this name.
    Certificate(Box<[u8]>),
}

impl Identity {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Psk(identity) => (1, identity),
            Self::RawPublicKey(key) => (2, key),
            Self::Certificate(name) => (3, name),
        };
        out.push(kind);
        out.put_vector16(bytes);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = reader.u8()?;
        let bytes = reader.vector16()?;
        match kind {
            1 => Ok(Self::Psk(bytes.into())),
            2 => Ok(Self::RawPublicKey(bytes.into())),
            3 => Ok(Self::Certificate(bytes.into())),
            _ => Err(Malformed),
        }
    }
}
