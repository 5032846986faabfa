//! Which device of a campaign downloads an image? Each is told a path of its own, with a key that
//! nobody else can make.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PLACE_BYTES: usize = 4;

/// As many bytes of the code as nobody can guess.
const CODE_BYTES: usize = 16;

/// The bytes of a key.
pub const IMAGE_KEY_BYTES: usize = PLACE_BYTES + CODE_BYTES;

/// The place of a device in its campaign and a code of it (HMAC-SHA256, truncated to 128 bits).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ImageKey([u8; IMAGE_KEY_BYTES]);

impl ImageKey {
    /// The key of the device at a place, by the secret of its campaign.
    pub fn of(secret: &[u8; 16], place: u32) -> Self {
        let code = code_of(secret, place).finalize().into_bytes();
        let bytes = place.to_be_bytes().into_iter().chain(code);
        let mut key = [0; IMAGE_KEY_BYTES];
        for (byte, of_key) in bytes.zip(&mut key) {
            *of_key = byte;
        }
        Self(key)
    }

    /// Reads a key from a path.
    pub fn parse(text: &str) -> Option<Self> {
        let mut key = [0; IMAGE_KEY_BYTES];
        let is_lower = |digit: &u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit);
        if text.len() != 2 * IMAGE_KEY_BYTES || !text.as_bytes().iter().all(is_lower) {
            return None;
        }
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(key))
    }

    /// Restores a key from its bytes.
    pub fn from_bytes(bytes: [u8; IMAGE_KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; IMAGE_KEY_BYTES] {
        &self.0
    }

    /// The place of the device, if the key is one of the campaign with this secret.
    pub fn place_by(&self, secret: &[u8; 16]) -> Option<u32> {
        let (place, code) = self.0.split_first_chunk::<PLACE_BYTES>()?;
        let place = u32::from_be_bytes(*place);
        let verified = code_of(secret, place).verify_truncated_left(code);
        verified.is_ok().then_some(place)
    }
}

impl fmt::Display for ImageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn code_of(secret: &[u8; 16], place: u32) -> Hmac<Sha256> {
    let code = Hmac::<Sha256>::new_from_slice(secret);
    let mut code = code.expect("HMAC takes keys of every length (RFC 2104 section 2)");
    code.update(&place.to_be_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_of_one_place_of_one_campaign() {
        let key = ImageKey::of(&[7; 16], 300);
        assert_eq!(ImageKey::parse(&key.to_string()), Some(key));
        assert_eq!(key.place_by(&[7; 16]), Some(300));
        assert_eq!(key.place_by(&[8; 16]), None);
        let mut other = *key.as_bytes();
        other[3] ^= 1;
        assert_eq!(ImageKey::from_bytes(other).place_by(&[7; 16]), None);
    }

    #[test]
    fn what_is_no_key_is_not_read() {
        let key = ImageKey::of(&[7; 16], 0).to_string();
        for text in ["", &key[1..], &key.to_uppercase(), &format!("{key}0")] {
            assert_eq!(ImageKey::parse(text), None, "{text}");
        }
        assert_eq!(ImageKey::parse(&"é".repeat(IMAGE_KEY_BYTES)), None);
    }
}
