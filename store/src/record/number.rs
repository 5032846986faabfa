//! How are single numbers and keys stored: counts, epochs, the owner of a name, the end of a
//! log, a sequence number, an instant?

use engine::delivery::backlog::Sequence;
use engine::ids::{DeviceKey, EntryId};
use engine::moment::Timestamp;

use super::{Unreadable, check_version};

const VERSION: u8 = 1;

/// Writes a count.
pub(crate) fn write_count(count: i64) -> [u8; 9] {
    behind_version(count.to_be_bytes())
}

/// Reads a count.
pub(crate) fn read_count(value: &[u8]) -> Result<i64, Unreadable> {
    exactly(value).map(i64::from_be_bytes)
}

/// Writes an epoch.
pub(crate) fn write_epoch(epoch: u64) -> [u8; 9] {
    behind_version(epoch.to_be_bytes())
}

/// Reads an epoch.
pub(crate) fn read_epoch(value: &[u8]) -> Result<u64, Unreadable> {
    exactly(value).map(u64::from_be_bytes)
}

/// Writes the owner of a name.
pub(crate) fn write_name_owner(device: DeviceKey) -> [u8; 17] {
    behind_version(*device.as_bytes())
}

/// Reads the owner of a name.
pub(crate) fn read_name_owner(value: &[u8]) -> Result<DeviceKey, Unreadable> {
    exactly(value).map(DeviceKey::from_bytes)
}

/// Writes the last entry of a log.
pub(crate) fn write_last_entry(id: EntryId) -> [u8; 17] {
    behind_version(*id.as_bytes())
}

/// Reads the last entry of a log.
pub(crate) fn read_last_entry(value: &[u8]) -> Result<EntryId, Unreadable> {
    exactly(value).map(EntryId::from_bytes)
}

/// Writes a sequence number.
pub(crate) fn write_sequence(sequence: Sequence) -> [u8; 9] {
    behind_version(sequence.0.to_be_bytes())
}

/// Reads a sequence number.
pub(crate) fn read_sequence(value: &[u8]) -> Result<Sequence, Unreadable> {
    exactly(value).map(u64::from_be_bytes).map(Sequence)
}

/// Writes an instant.
pub(crate) fn write_instant(at: Timestamp) -> [u8; 9] {
    behind_version(at.as_ms().to_be_bytes())
}

/// Reads an instant.
pub(crate) fn read_instant(value: &[u8]) -> Result<Timestamp, Unreadable> {
    let ms = exactly(value).map(i64::from_be_bytes);
    ms.map(Timestamp::from_ms)
}

fn behind_version<const N: usize, const M: usize>(bytes: [u8; N]) -> [u8; M] {
    let mut value = [0; M];
    value[0] = VERSION;
    value[1..].copy_from_slice(&bytes);
    value
}

fn exactly<const N: usize>(value: &[u8]) -> Result<[u8; N], Unreadable> {
    let bytes = check_version(VERSION, value)?;
    bytes
        .try_into()
        .map_err(|_| Unreadable::Damaged("a number of another size"))
}
