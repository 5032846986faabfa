//! How are the numbers of the newest events of devices stored?
//!
//! A page has those of devices with neighbouring keys. A row of its own says how far the pages were
//! written, for each of several sections of them.

use engine::delivery::backlog::Sequence;
use engine::ids::DeviceKey;
use minicbor::{Decode, Encode};

use super::{Unreadable, check_version, read, write};

const VERSION: u8 = 1;
const CHECKPOINT_VERSION: u8 = 2;

/// The pages are divided into so many sections.
pub(crate) const SECTIONS: usize = 16;

/// A device and the number of its newest event.
pub(crate) type DeviceHead = (DeviceKey, Sequence);

const ENTRY_BYTES: usize = 16 + 8;

/// How far the pages were written.
#[derive(Clone, Copy, Debug, Default, Decode, Encode, Eq, PartialEq)]
#[cbor(array)]
pub(crate) struct CheckpointV2 {
    /// The page that is written next.
    #[n(0)]
    pub(crate) next_page: u16,
    /// The newest number when the first page of the section of that page was written.
    #[n(1)]
    pub(crate) begun_at: u64,
    /// For each section, the number up to which every event is in one of its pages.
    #[n(2)]
    pub(crate) sections: [u64; SECTIONS],
}

impl CheckpointV2 {
    /// Every event up to this number is in a page.
    pub(crate) fn complete_to(&self) -> Sequence {
        Sequence(self.sections.into_iter().min().unwrap_or_default())
    }
}

/// Writes how far the pages were written.
pub(crate) fn write_checkpoint(checkpoint: &CheckpointV2) -> Vec<u8> {
    write(CHECKPOINT_VERSION, checkpoint)
}

/// Reads how far the pages were written.
pub(crate) fn read_checkpoint(value: &[u8]) -> Result<CheckpointV2, Unreadable> {
    read(CHECKPOINT_VERSION, value)
}

/// Writes a page.
pub(crate) fn write_page(heads: &[DeviceHead]) -> Vec<u8> {
    let mut value = Vec::with_capacity(1 + heads.len() * ENTRY_BYTES);
    value.push(VERSION);
    for (device, newest) in heads {
        value.extend_from_slice(device.as_bytes());
        value.extend_from_slice(&newest.0.to_be_bytes());
    }
    value
}

/// Reads a page.
pub(crate) fn read_page(value: &[u8]) -> Result<Vec<DeviceHead>, Unreadable> {
    let (entries, rest) = check_version(VERSION, value)?.as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() {
        return Err(Unreadable::Damaged("a page of another size"));
    }
    let heads = entries.iter().map(|entry| {
        let (device, newest) = entry.split_first_chunk::<16>()?;
        let newest = u64::from_be_bytes(newest.try_into().ok()?);
        Some((DeviceKey::from_bytes(*device), Sequence(newest)))
    });
    let heads: Option<Vec<_>> = heads.collect();
    heads.ok_or(Unreadable::Damaged("a page of another size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_back_and_other_bytes_are_refused() {
        let head = |byte, newest| (DeviceKey::from_bytes([byte; 16]), Sequence(newest));
        for heads in [vec![], vec![head(1, 7), head(2, u64::MAX)]] {
            let written = write_page(&heads);
            assert_eq!(read_page(&written), Ok(heads));
            assert!(read_page(&[written.as_slice(), &[0]].concat()).is_err());
        }
        assert!(read_page(&[]).is_err());
    }
}
