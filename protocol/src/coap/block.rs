//! Which part of a body does a message carry or request? The value of the Block1 and Block2 options
//! (RFC 7959 section 2.2).

/// A block's number, size and whether more follow: 20, 3 and 1 bits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Block(u32);

/// Whether more blocks follow.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum More {
    /// They do, so the block is full.
    Yes,
    /// It is the last one; always set in a request's Block2, where it has no meaning.
    No,
}

/// The size of the blocks of one transfer: 16 to 1,024 bytes, a power of two.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BlockSize(u8);

/// How a block is inconsistent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BlockFault {
    /// The exponent is 7.
    ReservedSize,
    /// It holds more bytes than its size, or fewer although others follow.
    NotFilled,
}

impl Block {
    /// The highest number that 20 bits hold.
    pub const NUMBER_MAX: u32 = 0xF_FFFF;

    /// Makes a block; the low 20 bits of the number count.
    pub const fn new(number: u32, more: More, size: BlockSize) -> Block {
        let more = match more {
            More::Yes => 0b1000,
            More::No => 0,
        };
        Block((number & Block::NUMBER_MAX) << 4 | more | size.0 as u32)
    }

    /// Reads an option value of up to 24 bits.
    pub const fn from_value(value: u32) -> Block {
        Block(value & 0xFF_FFFF)
    }

    /// Returns the option value.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Returns the block's place in the body, counted in blocks of this size.
    pub const fn number(self) -> u32 {
        self.0 >> 4
    }

    /// Returns whether blocks follow this one.
    pub const fn has_more(self) -> bool {
        self.0 & 0b1000 != 0
    }

    /// Returns the block's size, or nothing for the reserved exponent 7, which a request must not
    /// use (answer 4.00).
    pub const fn size(self) -> Option<BlockSize> {
        match self.0 & 0b111 {
            7 => None,
            exponent => Some(BlockSize(exponent as u8)),
        }
    }

    /// Returns the block's place in the body in bytes, or nothing for the reserved exponent.
    pub fn offset(self) -> Option<usize> {
        let number = usize::try_from(self.number()).ok()?;
        number.checked_mul(self.size()?.bytes())
    }

    /// Returns the size of a block whose payload has this many bytes.
    pub(super) fn size_when_filled(self, payload_bytes: usize) -> Result<BlockSize, BlockFault> {
        let size = self.size().ok_or(BlockFault::ReservedSize)?;
        let is_filled = if self.has_more() {
            payload_bytes == size.bytes()
        } else {
            payload_bytes <= size.bytes()
        };
        if is_filled {
            Ok(size)
        } else {
            Err(BlockFault::NotFilled)
        }
    }
}

impl BlockSize {
    /// 1,024 bytes.
    pub const MAX: BlockSize = BlockSize(6);
    /// 16 bytes.
    pub const MIN: BlockSize = BlockSize(0);

    /// Returns the block size with this number of bytes, if there is one.
    pub const fn of_bytes(bytes: u16) -> Option<BlockSize> {
        match bytes {
            16 => Some(BlockSize(0)),
            32 => Some(BlockSize(1)),
            64 => Some(BlockSize(2)),
            128 => Some(BlockSize(3)),
            256 => Some(BlockSize(4)),
            512 => Some(BlockSize(5)),
            1_024 => Some(BlockSize(6)),
            _ => None,
        }
    }

    /// Returns the number of bytes.
    pub const fn bytes(self) -> usize {
        16 << self.0
    }

    /// Returns the longest body that 20-bit block numbers can address.
    pub(super) const fn body_bytes_max(self) -> usize {
        self.bytes() << 20
    }

    /// Returns this size, or the smallest larger one with which a body of this length can be
    /// numbered.
    pub(super) fn fitted_to(self, length: usize) -> BlockSize {
        (self.0..=BlockSize::MAX.0)
            .map(BlockSize)
            .find(|size| length <= size.body_bytes_max())
            .unwrap_or(BlockSize::MAX)
    }

    /// Returns the number of the block that begins at an offset, if 20 bits hold it.
    pub(super) fn number_at(self, offset: usize) -> Option<u32> {
        u32::try_from(offset / self.bytes())
            .ok()
            .filter(|number| *number <= Block::NUMBER_MAX)
    }
}
