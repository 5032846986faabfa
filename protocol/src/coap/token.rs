//! Which request does a response answer? The token of RFC 7252 section 5.3.1, stored inline.

use std::fmt;

/// A token of 0 to 8 bytes, chosen by the sender of the request.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Token {
    length: u8,
    // Unused bytes are zero, so that equality and hashing can use all of them.
    bytes: [u8; Token::BYTES_MAX],
}

impl Token {
    /// The longest token RFC 7252 allows.
    pub const BYTES_MAX: usize = 8;
    /// The token of no bytes, which is valid like any other.
    pub const EMPTY: Token = Token {
        length: 0,
        bytes: [0; Token::BYTES_MAX],
    };

    /// Makes a token of up to 8 bytes.
    pub fn new(bytes: &[u8]) -> Option<Token> {
        let mut token = Token::EMPTY;
        token.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        token.length = u8::try_from(bytes.len()).ok()?;
        Some(token)
    }

    /// Makes a token of 8 bytes, so that an attacker always has to guess all of them.
    pub fn from_u64(number: u64) -> Token {
        Token {
            length: 8,
            bytes: number.to_be_bytes(),
        }
    }

    /// Returns the number of bytes, 0 to 8.
    pub(super) fn length(&self) -> u8 {
        self.length
    }

    /// Returns the encoded token.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}
