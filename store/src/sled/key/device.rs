//! What are the keys of devices?

use std::net::IpAddr;

use engine::ids::{CustomerId, DeviceId, DeviceKey};
use engine::tags::Tag;

use super::{Builder, Key, Table, append};
use crate::record::device_flags::DeviceFlags;

/// A device.
pub(crate) fn device(key: DeviceKey) -> Key {
    append(devices(), key.as_bytes())
}

/// The prefix of the keys of devices.
pub(crate) fn devices() -> Key {
    Builder::of(Table::Device).end()
}

/// The prefix of the keys of the devices with this first half.
pub(crate) fn devices_at(prefix: [u8; 8]) -> Key {
    Builder::of(Table::Device).bytes(&prefix).end()
}

/// Index: a device of a customer with these flags.
pub(crate) fn device_of(customer: &CustomerId, flags: DeviceFlags, device: &DeviceId) -> Key {
    append(devices_of(customer, flags), device.as_str().as_bytes())
}

/// The prefix of the keys of a customer's devices with these flags.
pub(crate) fn devices_of(customer: &CustomerId, flags: DeviceFlags) -> Key {
    Builder::of(Table::DeviceOfCustomer)
        .text(customer.as_str())
        .byte(flags.code())
        .end()
}

/// Index: a device of a customer that has a tag.
pub(crate) fn tagged_device(customer: &CustomerId, tag: &Tag, device: &DeviceId) -> Key {
    append(tagged(customer, tag), device.as_str().as_bytes())
}

/// The prefix of the keys of a customer's devices that have a tag.
pub(crate) fn tagged(customer: &CustomerId, tag: &Tag) -> Key {
    Builder::of(Table::DeviceOfTag)
        .text(customer.as_str())
        .text(tag.key.as_str())
        .text(tag.value.as_str())
        .end()
}

/// How many devices of a customer have a tag; the store maintains this count itself.
pub(crate) fn tagged_counted(customer: &CustomerId, tag: &Tag) -> Key {
    Builder::of(Table::DevicesOfTagCounted)
        .text(customer.as_str())
        .text(tag.key.as_str())
        .text(tag.value.as_str())
        .end()
}

/// Index: a device that has an address.
pub(crate) fn at_address(ip: IpAddr, device: DeviceKey) -> Key {
    append(at(ip), device.as_bytes())
}

/// The prefix of the keys of the devices with an address. An IPv4 address is stored as the IPv6
/// address that is mapped to it (RFC 4291 section 2.5.5.2), so that both ways to write it are one.
pub(crate) fn at(ip: IpAddr) -> Key {
    let ip = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    append(addresses(), &ip.octets())
}

/// The prefix of the keys of all devices by their addresses.
pub(crate) fn addresses() -> Key {
    Builder::of(Table::Address).end()
}

/// How many devices with these flags a customer has; the store maintains this count itself.
pub(crate) fn counted(customer: &CustomerId, flags: DeviceFlags) -> Key {
    Builder::of(Table::Counter)
        .byte(5)
        .text(customer.as_str())
        .byte(flags.code())
        .end()
}

/// The prefix of the keys of all such counts.
pub(crate) fn counts() -> Key {
    Builder::of(Table::Counter).byte(5).end()
}

/// The flags of a count, from its key.
pub(crate) fn flags_counted(key: &[u8]) -> Option<DeviceFlags> {
    let code = key.last()?;
    DeviceFlags::every().find(|flags| flags.code() == *code)
}

/// The prefixes of the keys of all ICCIDs, IMSIs, MSISDNs and endpoint names, of any customer, that
/// begin with a text.
pub(crate) fn names_beginning(text: &str) -> [Key; 5] {
    [1, 2, 3, super::ENDPOINT, super::COMMON].map(|kind| super::device_name(kind, text))
}

/// The record that a device's actor saved.
pub(crate) fn record(device: DeviceKey) -> Key {
    append(records(), device.as_bytes())
}

/// The prefix of the keys of all device records.
pub(crate) fn records() -> Key {
    Builder::of(Table::Record).end()
}
