//! Which names, addresses and keys are those of devices? Read when the store is opened; from then
//! on each group adds its own before it is written.

use std::net::{IpAddr, Ipv6Addr};

use engine::known_devices::{DeviceMark, KnownDevices};
use sled::Db;

use super::fault::Fault;
use super::key;
use super::overlay::Overlay;
use crate::record::Unreadable;
use crate::record::number::read_name_owner;

/// Adds the devices that are stored.
pub(super) fn load(db: &Db, known: &KnownDevices) -> Result<(), Fault> {
    for names in key::endpoints() {
        for row in db.scan_prefix(&names) {
            let (key, owner) = row?;
            add_endpoint(&key[names.len()..], &owner, known)?;
        }
    }
    for key in db.scan_prefix(key::device::addresses()).keys() {
        add_address(&key?, known)?;
    }
    known.complete();
    Ok(())
}

/// Adds the devices of a group that is not written yet.
pub(super) fn add(rows: &Overlay<'_>, known: &KnownDevices) -> Result<(), Unreadable> {
    for names in key::endpoints() {
        for (key, owner) in rows.put_under(&names) {
            add_endpoint(&key[names.len()..], owner, known)?;
        }
    }
    for (key, _) in rows.put_under(&key::device::addresses()) {
        add_address(key, known)?;
    }
    Ok(())
}

/// Each device has an endpoint name, so its row stands for the key as well.
fn add_endpoint(name: &[u8], owner: &[u8], known: &KnownDevices) -> Result<(), Unreadable> {
    let name = str::from_utf8(name).ok();
    let name = name.ok_or(Unreadable::Damaged("an endpoint name"))?;
    known.add(DeviceMark::Endpoint(name));
    known.add(DeviceMark::Key(read_name_owner(owner)?.prefix()));
    Ok(())
}

fn add_address(key: &[u8], known: &KnownDevices) -> Result<(), Unreadable> {
    let address = key.strip_prefix(key::device::addresses().as_slice());
    let octets = address.and_then(|address| address.first_chunk::<16>());
    let octets = octets.ok_or(Unreadable::Damaged("an address of a device"))?;
    known.add(DeviceMark::Address(IpAddr::from(Ipv6Addr::from(*octets))));
    Ok(())
}
