//! What are the keys of idempotency records?

use engine::idempotency::IdempotencyKey;
use engine::ids::DeviceKey;
use engine::moment::Timestamp;

use super::{Builder, Key, Table, append, last_id, rest_of};

/// The record under an idempotency key for a device and a number.
pub(crate) fn idempotency(key: IdempotencyKey, device: DeviceKey, number: u64) -> Key {
    numbered(idempotency_under(key), device, number)
}

/// The prefix of the keys of all records under an idempotency key.
pub(crate) fn idempotency_under(key: IdempotencyKey) -> Key {
    Builder::of(Table::Idempotency).bytes(key.as_bytes()).end()
}

/// Index: an idempotency record by its instant.
pub(crate) fn idempotency_by_age(
    at: Timestamp,
    key: IdempotencyKey,
    device: DeviceKey,
    number: u64,
) -> Key {
    let of_key = append(idempotency_from(at), key.as_bytes());
    numbered(of_key, device, number)
}

/// Where the idempotency records made at an instant or later begin.
pub(crate) fn idempotency_from(at: Timestamp) -> Key {
    Builder::of(Table::IdempotencyByAge).instant(at).end()
}

/// Where idempotency records begin, ordered by their age.
pub(crate) fn by_age() -> Key {
    Builder::of(Table::IdempotencyByAge).end()
}

/// An idempotency record's key, from the key that orders it by its age.
pub(crate) fn idempotency_from_age(age: &[u8]) -> Key {
    let beginning = idempotency_from(Timestamp::default());
    Builder::of(Table::Idempotency)
        .bytes(rest_of(age, &beginning))
        .end()
}

/// The device and the number of an idempotency record, from its key.
pub(crate) fn device_of(record: &[u8]) -> Option<(DeviceKey, u64)> {
    let (before, number) = record.split_last_chunk()?;
    let device = last_id(before).map(DeviceKey::from_bytes)?;
    Some((device, u64::from_be_bytes(*number)))
}

fn numbered(prefix: Key, device: DeviceKey, number: u64) -> Key {
    append(append(prefix, device.as_bytes()), &number.to_be_bytes())
}
