//! What are the keys of idempotency records?

use engine::idempotency::{IdempotencyKey, IdentifiedDevice};
use engine::ids::DeviceKey;
use engine::moment::Timestamp;

use crate::record::Unreadable;

use super::{Builder, Key, Table, append, first_id, last_id, rest_of};

/// The record under an idempotency key, for a device or for the whole call.
pub(crate) fn idempotency(key: IdempotencyKey, device: Option<IdentifiedDevice>) -> Key {
    with_device(idempotency_under(key), device)
}

/// The prefix of the keys of all records under an idempotency key.
pub(crate) fn idempotency_under(key: IdempotencyKey) -> Key {
    Builder::of(Table::Idempotency).bytes(key.as_bytes()).end()
}

/// Index: an idempotency record by its instant.
pub(crate) fn idempotency_by_age(
    at: Timestamp,
    key: IdempotencyKey,
    device: Option<IdentifiedDevice>,
) -> Key {
    let of_key = append(idempotency_from(at), key.as_bytes());
    with_device(of_key, device)
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

/// The idempotency key of a record, from its key.
pub(crate) fn key_of(record: &[u8]) -> Option<IdempotencyKey> {
    first_id(rest_of(record, &Table::Idempotency.prefix())).map(IdempotencyKey::from_bytes)
}

/// The device of an idempotency record, from its key; `Ok(None)` if it is for the whole call.
pub(crate) fn device_of(
    record: &[u8],
    key: IdempotencyKey,
) -> Result<Option<IdentifiedDevice>, Unreadable> {
    let rest = rest_of(record, &idempotency_under(key));
    if rest.is_empty() {
        return Ok(None);
    }
    let device = rest.split_last_chunk().and_then(|(device, number)| {
        Some(IdentifiedDevice {
            key: last_id(device).map(DeviceKey::from_bytes)?,
            number: u64::from_be_bytes(*number),
        })
    });
    device
        .map(Some)
        .ok_or(Unreadable::Damaged("an idempotency record"))
}

fn with_device(prefix: Key, device: Option<IdentifiedDevice>) -> Key {
    match device {
        Some(IdentifiedDevice { key, number }) => {
            append(append(prefix, key.as_bytes()), &number.to_be_bytes())
        }
        None => prefix,
    }
}
