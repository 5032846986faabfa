//! What are the keys of events and last known values?

use engine::Path;
use engine::ids::{DeviceKey, EventId};

use super::{Builder, Key, Table, append, rest_of};

/// An event.
pub(crate) fn event(device: DeviceKey, event: EventId) -> Key {
    append(of_device(device), event.as_bytes())
}

/// The prefix of the keys of the events of a device; their order is that of time.
pub(crate) fn of_device(device: DeviceKey) -> Key {
    Builder::of(Table::Event).bytes(device.as_bytes()).end()
}

/// Index: an event by its age.
pub(crate) fn by_age_of(device: DeviceKey, event: EventId) -> Key {
    append(
        append(by_age(), event.as_bytes()),
        device.as_bytes().as_slice(),
    )
}

/// Where the events of all devices begin, ordered by their age.
pub(crate) fn by_age() -> Key {
    Builder::of(Table::EventByAge).end()
}

/// An event's key, from the key that orders it by age.
pub(crate) fn event_from_age(age: &[u8]) -> Option<Key> {
    let (event, device) = rest_of(age, &by_age()).split_first_chunk()?;
    let device = DeviceKey::from_bytes(device.try_into().ok()?);
    Some(self::event(device, EventId::from_bytes(*event)))
}

/// The row with the last event of the history of a removed device.
pub(crate) fn removed_of(device: DeviceKey) -> Key {
    append(removed(), device.as_bytes())
}

/// The prefix of the keys of the histories of removed devices.
pub(crate) fn removed() -> Key {
    Builder::of(Table::RemovedHistory).end()
}

/// The removed device, from the key that marks its history removed.
pub(crate) fn device_of_removed(mark: &[u8]) -> Option<DeviceKey> {
    let device = rest_of(mark, &removed()).try_into().ok()?;
    Some(DeviceKey::from_bytes(device))
}

/// The last known value of a path of a device.
pub(crate) fn value(device: DeviceKey, path: Path) -> Key {
    append(values_of(device), &path.to_bytes())
}

/// The prefix of the keys of the last known values of a device; their order is that of paths.
pub(crate) fn values_of(device: DeviceKey) -> Key {
    Builder::of(Table::Value).bytes(device.as_bytes()).end()
}

/// How many last known values a device has.
pub(crate) fn values_counted(device: DeviceKey) -> Key {
    Builder::of(Table::ValuesCounted)
        .bytes(device.as_bytes())
        .end()
}

/// The path of a last known value, from its key.
pub(crate) fn path_of_value(key: &[u8], device: DeviceKey) -> Option<Path> {
    Path::from_bytes(rest_of(key, &values_of(device)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_by_its_age_and_a_path_by_its_value() {
        let device = DeviceKey::from_bytes([7; 16]);
        let id = EventId::from_bytes([9; 16]);
        let age = by_age_of(device, id);
        assert_eq!(event_from_age(&age), Some(event(device, id)));
        assert_eq!(event_from_age(&age[..20]), None);
        let path = Path::resource(3303, 0, 5700);
        assert_eq!(path_of_value(&value(device, path), device), Some(path));
        assert_eq!(device_of_removed(&removed_of(device)), Some(device));
        assert_eq!(device_of_removed(&removed()), None);
    }
}
