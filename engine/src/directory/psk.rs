//! Is this a pre-shared key? From what a customer wrote to the bytes of a key (RFC 4279).

/// How a key is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyFormat {
    /// The characters are the key.
    Text,
    /// Two hexadecimal digits are one byte of the key.
    Hex,
}

/// A text that is no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidKey {
    /// It is shorter or longer than a key may be.
    #[error("must have {KEY_CHARACTERS_MIN} to {KEY_CHARACTERS_MAX} characters")]
    Length,
    /// It is not made of pairs of hexadecimal digits.
    #[error("must be hexadecimal, two digits per byte")]
    Hex,
}

/// A shorter text is guessed.
pub const KEY_CHARACTERS_MIN: usize = 8;

/// No device holds a longer key.
pub const KEY_CHARACTERS_MAX: usize = 256;

/// Reads the bytes of a key.
pub fn parse_key(format: KeyFormat, text: &str) -> Result<Vec<u8>, InvalidKey> {
    // Unspecified: whether the bounds count characters or bytes of the key; they count what is
    // written, in either format.
    if !(KEY_CHARACTERS_MIN..=KEY_CHARACTERS_MAX).contains(&text.chars().count()) {
        return Err(InvalidKey::Length);
    }
    match format {
        KeyFormat::Text => Ok(text.as_bytes().to_vec()),
        KeyFormat::Hex => hex_bytes(text),
    }
}

fn hex_bytes(text: &str) -> Result<Vec<u8>, InvalidKey> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    };
    pairs
        .map(byte)
        .collect::<Option<_>>()
        .ok_or(InvalidKey::Hex)
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
        assert_eq!(parse_key(KeyFormat::Text, "0011aaFF").unwrap(), b"0011aaFF");
        assert_eq!(
            parse_key(KeyFormat::Hex, "0011aaFF").unwrap(),
            [0x00, 0x11, 0xAA, 0xFF]
        );
    }

    #[test]
    fn a_text_that_is_no_key_is_refused() {
        let long = "a".repeat(KEY_CHARACTERS_MAX + 1);
        let cases = [
            (KeyFormat::Text, "1234567", InvalidKey::Length),
            (KeyFormat::Text, long.as_str(), InvalidKey::Length),
            (KeyFormat::Hex, "0011aaF", InvalidKey::Length),
            (KeyFormat::Hex, "0011aaFF0", InvalidKey::Hex),
            (KeyFormat::Hex, "0011aaFG", InvalidKey::Hex),
            (KeyFormat::Hex, "0011aaÄ12", InvalidKey::Hex),
        ];
        for (format, text, fault) in cases {
            assert_eq!(parse_key(format, text), Err(fault), "{text}");
        }
    }
}
