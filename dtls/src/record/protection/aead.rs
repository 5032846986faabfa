//! How does a cipher protect a record that authenticates by itself? RFC 5246 section 6.2.3.3 with
//! CCM (RFC 6655) and GCM (RFC 5288).
//!
//! ```text
//! explicit nonce 8 | ciphertext | tag 8 or 16
//! ```

use aes::Aes128Enc;
use aes_gcm::AesGcm;
use ccm::aead::consts::{U8, U12, U16};
use ccm::aead::{AeadInOut, KeyInit};
use ccm::{Ccm, Nonce};
use zeroize::Zeroize;

use super::{AdditionalData, Header, INNER_MAX, NotAuthentic};

type Ccm8 = Ccm<Aes128Enc, U8, U12>;
type Ccm16 = Ccm<Aes128Enc, U16, U12>;
type Gcm = AesGcm<Aes128Enc, U12>;

pub(super) const KEY_LENGTH: usize = 16;
/// The part of the nonce that is not on the wire.
pub(super) const SALT_LENGTH: usize = 4;
const EXPLICIT_NONCE_LENGTH: usize = 8;

/// The ciphers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Aead {
    Ccm8,
    Ccm,
    Gcm,
}

/// A key with its cipher.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct AeadKey {
    cipher: Aead,
    key: [u8; KEY_LENGTH],
    salt: [u8; SALT_LENGTH],
}

/// What a fragment is longer than what is encrypted in it.
pub(super) const fn overhead(cipher: Aead) -> usize {
    EXPLICIT_NONCE_LENGTH + cipher.tag_length()
}

impl Aead {
    const fn tag_length(self) -> usize {
        match self {
            Self::Ccm8 => 8,
            Self::Ccm | Self::Gcm => 16,
        }
    }
}

impl AeadKey {
    pub(super) fn new(cipher: Aead, [key, salt]: [&[u8]; 2]) -> Self {
        let mut made = Self {
            cipher,
            key: [0; KEY_LENGTH],
            salt: [0; SALT_LENGTH],
        };
        made.key.copy_from_slice(key);
        made.salt.copy_from_slice(salt);
        made
    }

    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.key, &self.salt]
    }

    /// Appends the fragment with this content.
    pub(super) fn seal(&self, header: &Header<'_>, content: [&[u8]; 2], out: &mut Vec<u8>) {
        out.extend_from_slice(&header.number.to_be_bytes());
        let start = out.len();
        content.iter().for_each(|part| out.extend_from_slice(part));
        let inner = &mut out[start..];
        let additional = AdditionalData::new(header, inner.len());
        let nonce = self.nonce(header.number.to_be_bytes());
        let mut tag = [0; 16];
        let tag = self.encrypt(&nonce, additional.bytes(), inner, &mut tag);
        out.extend_from_slice(tag);
    }

    /// Appends what is encrypted in a fragment.
    pub(super) fn open(
        &self,
        header: &Header<'_>,
        fragment: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotAuthentic> {
        let (explicit, sealed) = fragment.split_first_chunk().ok_or(NotAuthentic)?;
        let length = sealed.len().checked_sub(self.cipher.tag_length());
        let (inner, tag) = sealed.split_at(length.ok_or(NotAuthentic)?);
        if inner.len() > INNER_MAX {
            return Err(NotAuthentic);
        }
        let additional = AdditionalData::new(header, inner.len());
        let start = out.len();
        out.extend_from_slice(inner);
        let nonce = self.nonce(*explicit);
        self.decrypt(&nonce, additional.bytes(), &mut out[start..], tag)
    }

    fn nonce(&self, explicit: [u8; EXPLICIT_NONCE_LENGTH]) -> Nonce<U12> {
        let mut nonce = Nonce::<U12>::default();
        nonce[..SALT_LENGTH].copy_from_slice(&self.salt);
        nonce[SALT_LENGTH..].copy_from_slice(&explicit);
        nonce
    }

    fn encrypt<'t>(
        &self,
        nonce: &Nonce<U12>,
        additional: &[u8],
        inner: &mut [u8],
        tag: &'t mut [u8; 16],
    ) -> &'t [u8] {
        const FITS: &str = "a record is shorter than the bounds of the cipher";
        let key = (&self.key).into();
        let tag = &mut tag[..self.cipher.tag_length()];
        let inner = inner.into();
        match self.cipher {
            Aead::Ccm8 => {
                let made = Ccm8::new(key).encrypt_inout_detached(nonce, additional, inner);
                tag.copy_from_slice(&made.expect(FITS));
            }
            Aead::Ccm => {
                let made = Ccm16::new(key).encrypt_inout_detached(nonce, additional, inner);
                tag.copy_from_slice(&made.expect(FITS));
            }
            Aead::Gcm => {
                let made = Gcm::new(key).encrypt_inout_detached(nonce, additional, inner);
                tag.copy_from_slice(&made.expect(FITS));
            }
        }
        tag
    }

    fn decrypt(
        &self,
        nonce: &Nonce<U12>,
        additional: &[u8],
        inner: &mut [u8],
        tag: &[u8],
    ) -> Result<(), NotAuthentic> {
        let key = (&self.key).into();
        let inner = inner.into();
        let opened = match self.cipher {
            Aead::Ccm8 => {
                let tag = tag.try_into().map_err(|_| NotAuthentic)?;
                Ccm8::new(key).decrypt_inout_detached(nonce, additional, inner, tag)
            }
            Aead::Ccm => {
                let tag = tag.try_into().map_err(|_| NotAuthentic)?;
                Ccm16::new(key).decrypt_inout_detached(nonce, additional, inner, tag)
            }
            Aead::Gcm => {
                let tag = tag.try_into().map_err(|_| NotAuthentic)?;
                Gcm::new(key).decrypt_inout_detached(nonce, additional, inner, tag)
            }
        };
        opened.map_err(|_| NotAuthentic)
    }
}

impl Drop for AeadKey {
    fn drop(&mut self) {
        self.key.zeroize();
        self.salt.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use ccm::aead::consts::U13;

    use super::*;
    use crate::hex::hex;

    /// RFC 3610 section 8, packet vector 1: a tag of 8 bytes.
    #[test]
    fn ccm_with_a_short_tag_gives_the_known_answer() {
        let key: [u8; 16] = hex("c0c1c2c3c4c5c6c7c8c9cacbcccdcecf").try_into().unwrap();
        let nonce = hex("00000003020100a0a1a2a3a4a5");
        let nonce: &Nonce<U13> = nonce[..].try_into().unwrap();
        let mut data = hex("08090a0b0c0d0e0f101112131415161718191a1b1c1d1e");
        let tag = Ccm::<Aes128Enc, U8, U13>::new(&key.into())
            .encrypt_inout_detached(nonce, &hex("0001020304050607"), data.as_mut_slice().into())
            .unwrap();
        assert_eq!(data, hex("588c979a61c663d2f066d0c2c0f989806d5f6b61dac384"));
        assert_eq!(tag[..], hex("17e8d12cfdf926e0"));
    }
}
