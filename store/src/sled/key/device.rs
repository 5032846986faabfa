//! Where do the rows of devices lie?

use std::net::IpAddr;

use engine::ids::{CustomerId, DeviceId, DeviceKey};

use super::{Builder, Key, Table, append};
use crate::sled::record::device_flags::DeviceFlags;

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

/// That a customer has a device with these traits.
pub(crate) fn device_of(customer: &CustomerId, flags: DeviceFlags, device: &DeviceId) -> Key {
    append(devices_of(customer, flags), device.as_str().as_bytes())
}

/// What the keys of a customer's devices with these traits begin with.
pub(crate) fn devices_of(customer: &CustomerId, flags: DeviceFlags) -> Key {
    Builder::of(Table::DeviceOfCustomer)
        .text(customer.as_str())
        .byte(flags.code())
        .end()
}

/// That a device has an address.
pub(crate) fn at_address(ip: IpAddr, device: DeviceKey) -> Key {
    append(at(ip), device.as_bytes())
}

/// What the keys of the devices with an address begin with. An IPv4 address stands as the IPv6
/// address that is mapped to it (RFC 4291 section 2.5.5.2), so that both ways to write it are one.
pub(crate) fn at(ip: IpAddr) -> Key {
    let ip = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    Builder::of(Table::Address).bytes(&ip.octets()).end()
}

/// How many devices with these traits a customer has, which the store keeps by itself.
pub(crate) fn counted(customer: &CustomerId, flags: DeviceFlags) -> Key {
    Builder::of(Table::Counter)
        .byte(5)
        .text(customer.as_str())
        .byte(flags.code())
        .end()
}

/// What the keys of all such counts begin with.
pub(crate) fn counts() -> Key {
    Builder::of(Table::Counter).byte(5).end()
}

/// The traits that a count is of.
pub(crate) fn traits_counted(key: &[u8]) -> Option<DeviceFlags> {
    let code = key.last()?;
    DeviceFlags::every().find(|flags| flags.code() == *code)
}

/// What the keys of the names of devices begin with that begin so: of ICCIDs, IMSIs, MSISDNs and
/// endpoint names, whoever's they are.
pub(crate) fn names_beginning(text: &str) -> [Key; 4] {
    [1, 2, 3, 4].map(|kind| super::device_name(kind, text))
}

/// What a device's actor saved of it.
pub(crate) fn record(device: DeviceKey) -> Key {
    append(records(), device.as_bytes())
}

/// What the keys of all that was saved of devices begin with.
pub(crate) fn records() -> Key {
    Builder::of(Table::Record).end()
}
