//! Is this a valid pre-shared key, a valid PSK identity? Parses what a customer wrote (RFC
//! 4279).

use zeroize::Zeroizing;

use crate::ids::{InvalidId, check};

/// A PSK identity (RFC 4279 section 5.1), service-wide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PskIdentity(Box<str>);

impl PskIdentity {
    /// The longest identity that every implementation supports (RFC 4279 section 5.3).
    pub const BYTES_MAX: usize = 128;

    /// Parses an identity.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        check(text, Self::BYTES_MAX, |c| !c.is_control())?;
        Ok(Self(text.into()))
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The encoding of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PskFormat {
    /// The characters are the key.
    Text,
    /// Each pair of hexadecimal digits is one byte of the key.
    Hex,
}

/// Why a key is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidPsk {
    /// It is shorter or longer than a key may be.
    #[error("must have {KEY_CHARACTERS_MIN} to {KEY_CHARACTERS_MAX} characters")]
    Length,
    /// It is not made of pairs of hexadecimal digits.
    #[error("must be hexadecimal, two digits per byte")]
    Hex,
}

/// A shorter key can be guessed.
pub const KEY_CHARACTERS_MIN: usize = 8;

/// No device supports a longer key.
pub const KEY_CHARACTERS_MAX: usize = 256;

/// Parses the bytes of a key.
pub fn parse_key(format: PskFormat, text: &str) -> Result<Zeroizing<Vec<u8>>, InvalidPsk> {
    // Unspecified: whether the bounds count characters or bytes of the key. They count the
    // characters written, in either format.
    if !(KEY_CHARACTERS_MIN..=KEY_CHARACTERS_MAX).contains(&text.chars().count()) {
        return Err(InvalidPsk::Length);
    }
    match format {
        PskFormat::Text => Ok(Zeroizing::new(text.as_bytes().to_vec())),
        PskFormat::Hex => hex_bytes(text).map(Zeroizing::new),
    }
}

fn hex_bytes(text: &str) -> Result<Vec<u8>, InvalidPsk> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    };
    pairs
        .map(byte)
        .collect::<Option<_>>()
        .ok_or(InvalidPsk::Hex)
}

fn hex_digit(character: u8) -> Option<u8> {
    let digit = char::from(character).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_characters_or_its_hexadecimal_digits() {
        let parsed = |format| parse_key(format, "0011aaFF").unwrap();
        assert_eq!(*parsed(PskFormat::Text), b"0011aaFF");
        assert_eq!(*parsed(PskFormat::Hex), [0x00, 0x11, 0xAA, 0xFF]);
    }

    #[test]
    fn an_invalid_psk_identity_is_refused_with_its_reason() {
        assert_eq!(PskIdentity::parse(""), Err(InvalidId::Empty));
        assert_eq!(PskIdentity::parse("a\n"), Err(InvalidId::Character('\n')));
        let long = "x".repeat(PskIdentity::BYTES_MAX + 1);
        assert_eq!(
            PskIdentity::parse(&long),
            Err(InvalidId::TooLong { max: 128 })
        );
    }

    #[test]
    fn an_invalid_key_is_refused() {
        let long = "a".repeat(KEY_CHARACTERS_MAX + 1);
        let cases = [
            (PskFormat::Text, "1234567", InvalidPsk::Length),
            (PskFormat::Text, long.as_str(), InvalidPsk::Length),
            (PskFormat::Hex, "0011aaF", InvalidPsk::Length),
            (PskFormat::Hex, "0011aaFF0", InvalidPsk::Hex),
            (PskFormat::Hex, "0011aaFG", InvalidPsk::Hex),
            (PskFormat::Hex, "0011aaÄ12", InvalidPsk::Hex),
        ];
        for (format, text, fault) in cases {
            assert_eq!(parse_key(format, text), Err(fault), "{text}");
        }
    }
}
