//! What do records with CBC have in common? RFC 5246 section 6.2.3.2: a key of the MAC and one of
//! the cipher, an IV of their own, and padding.

use aes::{Aes128Dec, Aes128Enc};
use cbc::cipher::array::Array;
use cbc::cipher::consts::U16;
use cbc::cipher::{BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit};
use cbc::{Decryptor, Encryptor};
use zeroize::Zeroize;

use super::NotAuthentic;

pub(super) const MAC_KEY_LENGTH: usize = 32;
pub(super) const KEY_LENGTH: usize = 16;
pub(super) const MAC_LENGTH: usize = 32;
const BLOCK_LENGTH: usize = 16;

/// The IV, a whole block of padding, and the MAC.
pub(super) const OVERHEAD_MAX: usize = 2 * BLOCK_LENGTH + MAC_LENGTH;

type Block = Array<u8, U16>;

/// A key of the MAC and one of the cipher.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct CbcKey {
    pub(super) mac_key: [u8; MAC_KEY_LENGTH],
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

    /// Appends the IV of a record, and these parts of its plaintext, padded and encrypted.
    pub(super) fn encrypt(&self, number: u64, plaintext: &[&[u8]], out: &mut Vec<u8>) {
        let iv = self.iv(number);
        out.extend_from_slice(&iv);
        let start = out.len();
        plaintext
            .iter()
            .for_each(|part| out.extend_from_slice(part));
        let padding = BLOCK_LENGTH - 1 - (out.len() - start) % BLOCK_LENGTH;
        out.resize(out.len() + padding + 1, padding as u8);
        self.encrypt_blocks(&iv, &mut out[start..]);
    }

    /// Appends the plaintext, which is still padded, of an IV and one block at least.
    pub(super) fn decrypt(&self, encrypted: &[u8], out: &mut Vec<u8>) -> Result<(), NotAuthentic> {
        let (iv, ciphertext) = encrypted.split_first_chunk().ok_or(NotAuthentic)?;
        if !ciphertext.len().is_multiple_of(BLOCK_LENGTH) || ciphertext.is_empty() {
            return Err(NotAuthentic);
        }
        let start = out.len();
        out.extend_from_slice(ciphertext);
        let (blocks, _) = Block::slice_as_chunks_mut(&mut out[start..]);
        let iv: &[u8; BLOCK_LENGTH] = iv;
        Decryptor::<Aes128Dec>::new((&self.key).into(), iv.into()).decrypt_blocks(blocks);
        Ok(())
    }

    fn encrypt_blocks(&self, iv: &Block, plaintext: &mut [u8]) {
        let (blocks, rest) = Block::slice_as_chunks_mut(plaintext);
        debug_assert!(rest.is_empty(), "the padding fills a block");
        Encryptor::<Aes128Enc>::new((&self.key).into(), iv).encrypt_blocks(blocks);
    }

    /// What nobody can predict and is never the same: the number of the record, encrypted (NIST SP
    /// 800-38A appendix C).
    fn iv(&self, number: u64) -> Block {
        let mut iv = Block::default();
        iv[..8].copy_from_slice(&number.to_be_bytes());
        Aes128Enc::new((&self.key).into()).encrypt_block(&mut iv);
        iv
    }
}

impl Drop for CbcKey {
    fn drop(&mut self) {
        self.mac_key.zeroize();
        self.key.zeroize();
    }
}

#[cfg(test)]
impl CbcKey {
    pub(super) fn of_test() -> Self {
        Self::new([&[7; MAC_KEY_LENGTH], &[9; KEY_LENGTH]])
    }

    /// An IV and this plaintext, encrypted as it is if it has whole blocks, and left otherwise.
    pub(super) fn encrypt_padded(&self, plaintext: &[u8]) -> Vec<u8> {
        let iv = self.iv(1);
        let mut blocks = plaintext.to_vec();
        if blocks.len().is_multiple_of(BLOCK_LENGTH) {
            self.encrypt_blocks(&iv, &mut blocks);
        }
        [&iv[..], &blocks].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iv_is_never_the_same_in_a_session() {
        let of = |number| {
            let mut encrypted = Vec::new();
            CbcKey::of_test().encrypt(number, &[b"same"], &mut encrypted);
            encrypted[..BLOCK_LENGTH].to_vec()
        };
        assert_ne!(of(1), of(2));
    }
}
