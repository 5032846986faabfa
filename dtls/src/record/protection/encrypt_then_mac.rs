//! How does CBC protect a record? It encrypts, then authenticates what it encrypted: RFC 7366
//! section 3. The other order, of RFC 5246 section 6.2.3.2, is not there: whoever checks the
//! padding before the MAC tells an attacker about the plaintext, by a nuance of time.
//!
//! ```text
//! IV 16 | ciphertext of content and padding | HMAC-SHA256 32
//! ```

use aes::{Aes128Dec, Aes128Enc};
use cbc::cipher::array::Array;
use cbc::cipher::consts::U16;
use cbc::cipher::{BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit};
use cbc::{Decryptor, Encryptor};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use super::{AdditionalData, Header, INNER_MAX, NotAuthentic};
use crate::key_schedule::hmac_sha256;

pub(super) const MAC_KEY_LENGTH: usize = 32;
pub(super) const KEY_LENGTH: usize = 16;
const MAC_LENGTH: usize = 32;
const BLOCK_LENGTH: usize = 16;

/// The IV, a whole block of padding, and the MAC.
pub(super) const OVERHEAD_MAX: usize = 2 * BLOCK_LENGTH + MAC_LENGTH;

type Block = Array<u8, U16>;

/// A key of the MAC and one of the cipher.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct CbcKey {
    mac_key: [u8; MAC_KEY_LENGTH],
    key: [u8; KEY_LENGTH],
}

impl CbcKey {
    pub(super) fn new([mac_key, key]: [&[u8]; 2]) -> Self {
        let mut made = Self {
            mac_key: [0; MAC_KEY_LENGTH],
            key: [0; KEY_LENGTH],
        };
        made.mac_key.copy_from_slice(mac_key);
        made.key.copy_from_slice(key);
        made
    }

    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.mac_key, &self.key]
    }

    /// Appends the fragment with this content.
    pub(super) fn seal(&self, header: &Header<'_>, content: [&[u8]; 2], out: &mut Vec<u8>) {
        let start = out.len();
        let iv = self.iv(header.number);
        out.extend_from_slice(&iv);
        content.iter().for_each(|part| out.extend_from_slice(part));
        let padding = BLOCK_LENGTH - 1 - (out.len() - start) % BLOCK_LENGTH;
        out.resize(out.len() + padding + 1, padding as u8);
        let (blocks, rest) = Block::slice_as_chunks_mut(&mut out[start + BLOCK_LENGTH..]);
        debug_assert!(rest.is_empty(), "the padding fills a block");
        Encryptor::<Aes128Enc>::new((&self.key).into(), &iv).encrypt_blocks(blocks);
        let mac = self.mac(header, &out[start..]);
        out.extend_from_slice(&mac);
    }

    /// Appends what is encrypted in a fragment.
    pub(super) fn open(
        &self,
        header: &Header<'_>,
        fragment: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotAuthentic> {
        let protected = fragment.split_last_chunk::<MAC_LENGTH>();
        let (encrypted, mac) = protected.ok_or(NotAuthentic)?;
        let (iv, ciphertext) = encrypted.split_first_chunk().ok_or(NotAuthentic)?;
        let is_whole = ciphertext.len().is_multiple_of(BLOCK_LENGTH) && !ciphertext.is_empty();
        if !is_whole || !bool::from(self.mac(header, encrypted).ct_eq(mac)) {
            return Err(NotAuthentic);
        }
        let start = out.len();
        out.extend_from_slice(ciphertext);
        let plaintext = &mut out[start..];
        let (blocks, _) = Block::slice_as_chunks_mut(plaintext);
        let iv: &[u8; BLOCK_LENGTH] = iv;
        Decryptor::<Aes128Dec>::new((&self.key).into(), iv.into()).decrypt_blocks(blocks);
        // Only whoever has the keys can have padded it wrongly, so that the time does not matter.
        let padding = *plaintext.last().ok_or(NotAuthentic)?;
        let length = plaintext.len().checked_sub(usize::from(padding) + 1);
        let length = length.ok_or(NotAuthentic)?;
        let is_padded = plaintext[length..].iter().all(|byte| *byte == padding);
        if !is_padded || length > INNER_MAX {
            return Err(NotAuthentic);
        }
        out.truncate(start + length);
        Ok(())
    }

    /// What nobody can predict and is never the same: the number of the record, encrypted (NIST SP
    /// 800-38A appendix C).
    fn iv(&self, number: u64) -> Block {
        let mut iv = Block::default();
        iv[..8].copy_from_slice(&number.to_be_bytes());
        Aes128Enc::new((&self.key).into()).encrypt_block(&mut iv);
        iv
    }

    /// RFC 7366 section 3, RFC 9146 section 5.2: the length is that of the IV and the ciphertext.
    fn mac(&self, header: &Header<'_>, encrypted: &[u8]) -> [u8; MAC_LENGTH] {
        let additional = AdditionalData::new(header, encrypted.len());
        hmac_sha256(&self.mac_key, &[additional.bytes(), encrypted])
    }
}

impl Drop for CbcKey {
    fn drop(&mut self) {
        self.mac_key.zeroize();
        self.key.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ContentType;
    use super::*;

    const HEADER: Header<'_> = Header {
        outer: ContentType::ApplicationData,
        version: super::super::VERSION,
        number: 0x0001_0000_0000_0007,
        connection_id: &[],
    };

    fn key() -> CbcKey {
        CbcKey::new([&[7; MAC_KEY_LENGTH], &[9; KEY_LENGTH]])
    }

    /// What opens of a fragment whose plaintext is padded like this.
    fn opened(padded: &[u8]) -> Option<Vec<u8>> {
        let iv = key().iv(1);
        let mut blocks = padded.to_vec();
        let (whole, _) = Block::slice_as_chunks_mut(&mut blocks);
        Encryptor::<Aes128Enc>::new((&key().key).into(), &iv).encrypt_blocks(whole);
        let mut fragment = [&iv[..], &blocks].concat();
        let mac = key().mac(&HEADER, &fragment);
        fragment.extend_from_slice(&mac);
        let mut out = Vec::new();
        let result = key().open(&HEADER, &fragment, &mut out);
        result.ok().map(|()| out)
    }

    #[test]
    fn padding_may_be_longer_than_needed_and_is_checked() {
        let padded = |content: &[u8], count: usize| {
            let padding = vec![count as u8 - 1; count];
            [content, &padding].concat()
        };
        assert_eq!(opened(&padded(b"one", 13)), Some(b"one".to_vec()));
        assert_eq!(opened(&padded(b"one", 13 + 240)), Some(b"one".to_vec()));
        assert_eq!(opened(&padded(b"", 16)), Some(Vec::new()));
        let mut wrong = padded(b"one", 13);
        wrong[4] = 0;
        assert_eq!(opened(&wrong), None, "one byte of the padding differs");
        assert_eq!(opened(&[16; 16]), None, "longer than the plaintext");
        assert_eq!(opened(&[0; 15]), None, "not whole blocks");
        assert_eq!(opened(b""), None, "no block");
    }

    #[test]
    fn an_iv_is_never_the_same_in_a_session() {
        let of = |number| {
            let mut fragment = Vec::new();
            let header = Header { number, ..HEADER };
            key().seal(&header, [b"same", b""], &mut fragment);
            fragment[..BLOCK_LENGTH].to_vec()
        };
        assert_ne!(of(1), of(2));
    }
}
