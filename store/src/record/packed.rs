//! How are bytes compressed? In the LZ4 block format, where that makes them smaller.

use std::borrow::Cow;

use lz4_flex::block::{compress, decompress};

use super::{Unreadable, damaged};

/// The largest size that is believed: far more than the largest block or page.
const SIZE_MAX: u32 = 64 * 1_024 * 1_024;

/// Compresses bytes. Beside what is to be stored it returns their size before compression; zero if
/// they are stored as they are.
pub(super) fn pack(bytes: Vec<u8>) -> (u32, Vec<u8>) {
    let compressed = compress(&bytes);
    let size = u32::try_from(bytes.len()).expect("a block or a page is far smaller");
    match compressed.len() < bytes.len() {
        true => (size, compressed),
        false => (0, bytes),
    }
}

/// Reads bytes that were compressed from this size.
pub(super) fn unpack(size: u32, bytes: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
    match size {
        0 => Ok(Cow::Borrowed(bytes)),
        1..=SIZE_MAX => {
            let size = size as usize;
            let read = decompress(bytes, size).map_err(damaged("compressed bytes"))?;
            match read.len() == size {
                true => Ok(Cow::Owned(read)),
                false => Err(Unreadable::Damaged("compressed bytes of another size")),
            }
        }
        _ => Err(Unreadable::Damaged("the size of compressed bytes")),
    }
}
