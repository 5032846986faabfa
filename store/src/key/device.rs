//! Where do the rows of devices lie?

use engine::ids::{CustomerId, DeviceId, DeviceKey};

use super::{Builder, Key, Table, append};

/// A device.
pub(crate) fn device(key: DeviceKey) -> Key {
    append(devices(), key.as_bytes())
}

/// What the keys of devices begin with.
pub(crate) fn devices() -> Key {
    Builder::of(Table::Device).end()
}

/// What the keys of the devices with this first half begin with.
pub(crate) fn devices_at(prefix: [u8; 8]) -> Key {
    Builder::of(Table::Device).bytes(&prefix).end()
}

/// That a customer has a device.
pub(crate) fn device_of(customer: &CustomerId, device: &DeviceId) -> Key {
    append(devices_of(customer), device.as_str().as_bytes())
}

/// What the keys of a customer's devices begin with.
pub(crate) fn devices_of(customer: &CustomerId) -> Key {
    Builder::of(Table::DeviceOfCustomer)
        .text(customer.as_str())
        .end()
}

/// What a device's actor saved of it.
pub(crate) fn record(device: DeviceKey) -> Key {
    append(records(), device.as_bytes())
}

/// What the keys of all that was saved of devices begin with.
pub(crate) fn records() -> Key {
    Builder::of(Table::Record).end()
}

/// That a device has a registration.
pub(crate) fn registered(device: DeviceKey) -> Key {
    append(all_registered(), device.as_bytes())
}

/// What the keys of registered devices begin with.
pub(crate) fn all_registered() -> Key {
    Builder::of(Table::Registered).end()
}
