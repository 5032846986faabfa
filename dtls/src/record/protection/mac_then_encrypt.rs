//! How does CBC protect a record between peers that do not agree on encrypt_then_mac? It
//! authenticates, then encrypts content, MAC and padding: RFC 5246 section 6.2.3.2, RFC 9146
//! section 5.1.
//!
//! ```text
//! IV 16 | ciphertext of content, HMAC-SHA256 32 and padding
//! ```
//!
//! Where the content ends is known after the decryption alone, and anybody can change it there.
//! Whoever learned from an answer, or from its time, whether the padding was right, would learn the
//! plaintext (Vaudenay 2002; Lucky Thirteen, AlFardan and Paterson 2013). So no branch, no place in
//! memory and no number of compressions depends on the padding or on the length that follows from
//! it, until padding and MAC were found to be right; only the length of the fragment, which
//! everybody sees, decides them.

use sha2::block_api::compress256;
use sha2::{Digest, Sha256};
use subtle::{
    Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater, ConstantTimeLess,
};
use zeroize::Zeroizing;

use super::cbc_key::{CbcKey, MAC_KEY_LENGTH, MAC_LENGTH};
use super::{AdditionalData, Header, INNER_MAX, NotAuthentic};
use crate::key_schedule::hmac_sha256;

/// RFC 5246 section 6.2.3.2: padding_length is one byte.
const PADDING_MAX: usize = 255;

/// A block of SHA-256, and what is hashed before the first (FIPS 180-4 section 5.3.3).
const HASH_BLOCK_LENGTH: usize = 64;
const HASH_BEFORE: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];
/// Its padding: a byte of one bit at least, and the number of bits (FIPS 180-4 section 5.1.1).
const BIT_COUNT_LENGTH: usize = 8;
const ONE_BIT: u8 = 0x80;

/// Appends the fragment with this content.
pub(super) fn seal(key: &CbcKey, header: &Header<'_>, content: [&[u8]; 2], out: &mut Vec<u8>) {
    let [first, second] = content;
    let additional = AdditionalData::new(header, first.len() + second.len());
    let mac = hmac_sha256(&key.mac_key, &[additional.bytes(), first, second]);
    key.encrypt(header.number, &[first, second, &mac], out);
}

/// Appends what is encrypted in a fragment.
pub(super) fn open(
    key: &CbcKey,
    header: &Header<'_>,
    fragment: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), NotAuthentic> {
    let start = out.len();
    key.decrypt(fragment, out)?;
    let (length, is_authentic) = content_length(key, header, &out[start..])?;
    if !bool::from(is_authentic) || length > INNER_MAX {
        return Err(NotAuthentic);
    }
    out.truncate(start + length);
    Ok(())
}

/// How long the content is that a plaintext begins with, and whether padding and MAC are right.
fn content_length(
    key: &CbcKey,
    header: &Header<'_>,
    plaintext: &[u8],
) -> Result<(usize, Choice), NotAuthentic> {
    // Without padding, but with the byte of its length.
    let length_max = plaintext.len().checked_sub(MAC_LENGTH + 1);
    let length_max = length_max.ok_or(NotAuthentic)? as u32;
    let (padding, is_padded) = padding_length(plaintext, length_max);
    let length = length_max - padding;
    let additional = AdditionalData::new(header, length as usize);
    let content_max = &plaintext[..length_max as usize];
    let mac = mac(&key.mac_key, additional.bytes(), content_max, length);
    let is_authentic = is_padded & has_mac(plaintext, length_max, length, mac);
    Ok((length as usize, is_authentic))
}

/// How long the padding is, and whether it is right; if it is not, it counts as empty (RFC 5246
/// section 6.2.3.2).
fn padding_length(plaintext: &[u8], padding_max: u32) -> (u32, Choice) {
    let last = plaintext.last().copied().unwrap_or(0);
    let padding = u32::from(last);
    let mut is_right = !padding.ct_gt(&padding_max);
    let from_end = plaintext.iter().rev().take(PADDING_MAX + 1);
    for (place, byte) in (0..).zip(from_end) {
        is_right &= byte.ct_eq(&last) | u32::ct_gt(&place, &padding);
    }
    (u32::conditional_select(&0, &padding, is_right), is_right)
}

/// HMAC-SHA256 (RFC 2104) of the additional data and the first `length` bytes of a content, with as
/// many compressions as for all of it.
fn mac(
    key: &[u8; MAC_KEY_LENGTH],
    additional: &[u8],
    content_max: &[u8],
    length: u32,
) -> [u8; MAC_LENGTH] {
    let [inner, outer] = [0x36, 0x5c].map(|pad| keyed_block(key, pad));
    let mut state = HASH_BEFORE;
    compress256(&mut state, &[*inner]);
    let end = additional.len() as u32 + length;
    let bit_count = ((end as usize + HASH_BLOCK_LENGTH) as u64 * 8).to_be_bytes();
    let last_block = (end + BIT_COUNT_LENGTH as u32) / HASH_BLOCK_LENGTH as u32;
    let end_max = additional.len() + content_max.len();
    let blocks = (end_max + BIT_COUNT_LENGTH) / HASH_BLOCK_LENGTH + 1;
    let mut message = additional.iter().chain(content_max);
    let mut places = 0_u32..;
    let mut hash = [0; 8];
    for number in 0..blocks as u32 {
        let mut block = [0; HASH_BLOCK_LENGTH];
        for (byte, place) in block.iter_mut().zip(&mut places) {
            let content = message.next().copied().unwrap_or(0);
            *byte = u8::conditional_select(&0, &content, place.ct_lt(&end))
                | u8::conditional_select(&0, &ONE_BIT, place.ct_eq(&end));
        }
        let is_last = number.ct_eq(&last_block);
        let tail = &mut block[HASH_BLOCK_LENGTH - BIT_COUNT_LENGTH..];
        for (byte, of_count) in tail.iter_mut().zip(&bit_count) {
            byte.conditional_assign(of_count, is_last);
        }
        compress256(&mut state, &[block]);
        for (word, hashed) in hash.iter_mut().zip(&state) {
            word.conditional_assign(hashed, is_last);
        }
    }
    let hash = hash.map(u32::to_be_bytes);
    let outer = Sha256::new().chain_update(*outer);
    outer.chain_update(hash.as_flattened()).finalize().into()
}

fn keyed_block(key: &[u8; MAC_KEY_LENGTH], pad: u8) -> Zeroizing<[u8; HASH_BLOCK_LENGTH]> {
    let mut block = Zeroizing::new([pad; HASH_BLOCK_LENGTH]);
    for (byte, of_key) in block.iter_mut().zip(key) {
        *byte ^= of_key;
    }
    block
}

/// Whether this MAC follows the first `length` bytes of a plaintext.
fn has_mac(plaintext: &[u8], length_max: u32, length: u32, mut mac: [u8; MAC_LENGTH]) -> Choice {
    let length_min = length_max.saturating_sub(PADDING_MAX as u32);
    // Rotated until the byte of each place has the same index modulo its length, whatever the
    // length of the content is.
    let distance = length - length_min;
    for bit in 0..MAC_LENGTH.ilog2() {
        let mut rotated = mac;
        rotated.rotate_right(1 << bit);
        let is_set = Choice::from((distance >> bit & 1) as u8);
        for (byte, moved) in mac.iter_mut().zip(&rotated) {
            byte.conditional_assign(moved, is_set);
        }
    }
    let end = length + MAC_LENGTH as u32;
    let mut difference = 0;
    let received = plaintext[length_min as usize..].iter();
    for ((place, byte), expected) in (length_min..).zip(received).zip(mac.iter().cycle()) {
        let is_of_mac = !place.ct_lt(&length) & place.ct_lt(&end);
        difference |= u8::conditional_select(&0, &(byte ^ expected), is_of_mac);
    }
    difference.ct_eq(&0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::super::{ContentType, VERSION};
    use super::*;

    fn header(connection_id: &[u8]) -> Header<'_> {
        Header {
            outer: match connection_id {
                [] => ContentType::ApplicationData,
                _ => ContentType::Cid,
            },
            version: VERSION,
            number: 0x0001_0000_0000_0007,
            connection_id,
        }
    }

    /// What `open` finds in a fragment with this plaintext.
    fn opened(header: &Header<'_>, plaintext: &[u8]) -> Option<Vec<u8>> {
        let key = CbcKey::of_test();
        let mut out = Vec::new();
        let result = open(&key, header, &key.encrypt_padded(plaintext), &mut out);
        result.ok().map(|()| out)
    }

    /// The same as RFC 5246 says it, step by step.
    fn read(header: &Header<'_>, plaintext: &[u8]) -> Option<Vec<u8>> {
        let (padding, rest) = plaintext.split_last()?;
        let (rest, padded) = rest.split_at_checked(rest.len().checked_sub((*padding).into())?)?;
        let (content, mac) = rest.split_last_chunk::<MAC_LENGTH>()?;
        let is_padded = padded.iter().all(|byte| byte == padding);
        (is_padded && *mac == mac_of(header, content)).then(|| content.to_vec())
    }

    fn mac_of(header: &Header<'_>, content: &[u8]) -> [u8; MAC_LENGTH] {
        let additional = AdditionalData::new(header, content.len());
        hmac_sha256(&CbcKey::of_test().mac_key, &[additional.bytes(), content])
    }

    /// Content, MAC and padding, with so many blocks of padding more than needed.
    fn padded(header: &Header<'_>, content: &[u8], more: usize) -> Vec<u8> {
        let mut plaintext = [content, &mac_of(header, content)].concat();
        let padding = 15 - plaintext.len() % 16 + 16 * more;
        plaintext.resize(plaintext.len() + padding + 1, padding as u8);
        plaintext
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_the_standard_says_it(
            connection_id in proptest::collection::vec(any::<u8>(), 0..9),
            content in proptest::collection::vec(any::<u8>(), 0..700),
            more in 0..16_usize,
            changed in any::<proptest::sample::Index>(),
            change in any::<u8>(),
        ) {
            let header = header(&connection_id);
            let mut plaintext = padded(&header, &content, more);
            prop_assert_eq!(opened(&header, &plaintext), Some(content));
            let changed = changed.index(plaintext.len());
            plaintext[changed] ^= change;
            prop_assert_eq!(opened(&header, &plaintext), read(&header, &plaintext));
        }

        #[test]
        fn any_bytes_are_read_or_not_authentic(
            fragment in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut out = Vec::new();
            let opened = open(&CbcKey::of_test(), &header(&[]), &fragment, &mut out);
            prop_assert_eq!(opened, Err(NotAuthentic));
        }
    }

    #[test]
    fn every_length_of_padding_is_read_and_every_wrong_one_is_refused() {
        let header = header(&[]);
        let content = [0x42; 300];
        for length in [0, 1, 15, 16, 64, 300] {
            for more in 0..16 {
                let content = &content[..length];
                let plaintext = padded(&header, content, more);
                assert_eq!(opened(&header, &plaintext).as_deref(), Some(content));
                let (last, rest) = plaintext.split_last().unwrap();
                for other in (0..=u8::MAX).filter(|it| it != last) {
                    let plaintext = [rest, &[other]].concat();
                    assert_eq!(opened(&header, &plaintext), None, "{last} read as {other}");
                }
                let padding = usize::from(*last);
                let end = rest.len();
                for place in end - padding - MAC_LENGTH..end {
                    let mut plaintext = plaintext.clone();
                    plaintext[place] ^= 1;
                    assert_eq!(opened(&header, &plaintext), None, "of {end} at {place}");
                }
            }
        }
    }

    #[test]
    fn nothing_shorter_than_a_mac_is_read() {
        for plaintext in [&[][..], &[0; 15], &[0; 16], &[31; 32], &[15; 47]] {
            assert_eq!(opened(&header(&[]), plaintext), None);
        }
    }

    #[test]
    fn the_mac_is_that_of_hmac_wherever_the_content_ends() {
        let key = CbcKey::of_test().mac_key;
        let content: Vec<u8> = (0..=u8::MAX).cycle().take(420).collect();
        for additional in [&content[..13], &content[..31]] {
            for length_max in [0, 1, 42, 43, 51, 115, 300, 420] {
                for length in length_max - length_max.min(PADDING_MAX)..=length_max {
                    let made = mac(&key, additional, &content[..length_max], length as u32);
                    let expected = hmac_sha256(&key, &[additional, &content[..length]]);
                    assert_eq!(made, expected, "{length} of {length_max}");
                }
            }
        }
    }
}
