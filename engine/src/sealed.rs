//! A secret at rest: bytes that only the holder of the master key can decrypt.

use std::fmt;

/// An encrypted secret; neither printing nor logging shows it.
#[derive(Clone, Eq, PartialEq)]
pub struct Sealed(Box<[u8]>);

impl Sealed {
    /// Wraps bytes that a master key encrypted.
    pub fn from_bytes(bytes: Box<[u8]>) -> Self {
        Self(bytes)
    }

    /// The encrypted bytes, to store or to decrypt.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(..)")
    }
}
