//! How does CBC protect a record between peers that agree on encrypt_then_mac? It encrypts, then
//! authenticates what it encrypted: RFC 7366 section 3.
//!
//! ```text
//! IV 16 | ciphertext of content and padding | HMAC-SHA256 32
//! ```

use subtle::ConstantTimeEq;

use super::cbc_key::{CbcKey, MAC_LENGTH};
use super::{AdditionalData, Header, INNER_MAX, NotAuthentic};
use crate::key_schedule::hmac_sha256;

/// Appends the fragment with this content.
pub(super) fn seal(key: &CbcKey, header: &Header<'_>, content: [&[u8]; 2], out: &mut Vec<u8>) {
    let start = out.len();
    key.encrypt(header.number, &content, out);
    let mac = mac(key, header, &out[start..]);
    out.extend_from_slice(&mac);
}

/// Appends what is encrypted in a fragment.
pub(super) fn open(
    key: &CbcKey,
    header: &Header<'_>,
    fragment: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), NotAuthentic> {
    let protected = fragment.split_last_chunk::<MAC_LENGTH>();
    let (encrypted, received) = protected.ok_or(NotAuthentic)?;
    if !bool::from(mac(key, header, encrypted).ct_eq(received)) {
        return Err(NotAuthentic);
    }
    let start = out.len();
    key.decrypt(encrypted, out)?;
    let plaintext = &out[start..];
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

/// RFC 7366 section 3, RFC 9146 section 5.2: the length is that of the IV and the ciphertext.
fn mac(key: &CbcKey, header: &Header<'_>, encrypted: &[u8]) -> [u8; MAC_LENGTH] {
    let additional = AdditionalData::new(header, encrypted.len());
    hmac_sha256(&key.mac_key, &[additional.bytes(), encrypted])
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

    /// What opens of a fragment whose plaintext is padded like this.
    fn opened(padded: &[u8]) -> Option<Vec<u8>> {
        let key = CbcKey::of_test();
        let mut fragment = key.encrypt_padded(padded);
        let mac = mac(&key, &HEADER, &fragment);
        fragment.extend_from_slice(&mac);
        let mut out = Vec::new();
        let result = open(&key, &HEADER, &fragment, &mut out);
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
}
