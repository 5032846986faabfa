//! Which part of a body does a message carry or ask for? The value of the Block1 and Block2
//! options (RFC 7959 section 2.2).

/// A block's number, size and whether more follow: 20, 3 and 1 bits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Block(u32);

impl Block {
    /// Reads an option value of up to 24 bits.
    pub const fn from_value(value: u32) -> Block {
        Block(value & 0xFF_FFFF)
    }

    /// Gives the option value.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Gives the block's place in the body, counted in blocks of this size.
    pub const fn number(self) -> u32 {
        self.0 >> 4
    }

    /// Tells whether blocks follow this one.
    pub const fn has_more(self) -> bool {
        self.0 & 0b1000 != 0
    }

    /// Gives the block's size in bytes, or nothing for the reserved exponent 7, which a request
    /// must not use (answer 4.00).
    pub const fn size_bytes(self) -> Option<u16> {
        match self.0 & 0b111 {
            7 => None,
            exponent => Some(1 << (exponent + 4)),
        }
    }
}
