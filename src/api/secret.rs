//! Where secrets come from and how they are compared.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use engine::customer::SecretDigest;
use zeroize::Zeroizing;

/// Random bytes in a secret: 256 bits cannot be guessed.
const SECRET_BYTES: usize = 32;

/// A new secret of 256 bits, in characters that need no escaping anywhere.
pub(super) fn draw() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Random bytes in a generated pre-shared key: as many as the keys of AES-128 have. Many devices
/// support no more.
const PSK_BYTES: usize = 16;

/// A new pre-shared key.
pub(super) fn draw_psk() -> Result<Zeroizing<Vec<u8>>, getrandom::Error> {
    let mut bytes = Zeroizing::new(vec![0; PSK_BYTES]);
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Whether two digests are equal, in constant time.
pub(super) fn same(one: &SecretDigest, other: &SecretDigest) -> bool {
    let pairs = one.as_bytes().iter().zip(other.as_bytes());
    pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_need_no_escaping() {
        let (one, other) = (draw().unwrap(), draw().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
        assert!(
            one.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        );
    }

    #[test]
    fn digests_are_equal_only_if_every_byte_is() {
        let digest = SecretDigest::of("secret");
        assert!(same(&digest, &SecretDigest::of("secret")));
        let mut bytes = *digest.as_bytes();
        bytes[31] ^= 1;
        assert!(!same(&digest, &SecretDigest::from_bytes(bytes)));
    }
}
