//! What are the keys of bootstrap?

use engine::bootstrap::BootstrapScope;
use engine::ids::DeviceKey;

use super::{Builder, Key, Table};

/// What devices are given when they are bootstrapped.
pub(crate) fn config(scope: &BootstrapScope) -> Key {
    match scope {
        BootstrapScope::Customer(customer) => Builder::of(Table::BootstrapConfigOfCustomer)
            .bytes(customer.as_str().as_bytes())
            .end(),
        BootstrapScope::Device(device) => Builder::of(Table::BootstrapConfigOfDevice)
            .bytes(device.as_bytes())
            .end(),
    }
}

/// The last bootstrap of a device.
pub(crate) fn bootstrap(device: DeviceKey) -> Key {
    Builder::of(Table::Bootstrap).bytes(device.as_bytes()).end()
}

/// The device whose configuration has a key.
pub(crate) fn device_of(key: &[u8]) -> Option<DeviceKey> {
    let rest = key.strip_prefix(&*Table::BootstrapConfigOfDevice.prefix())?;
    Some(DeviceKey::from_bytes(rest.try_into().ok()?))
}
