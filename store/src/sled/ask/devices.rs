//! Which devices are there, and what is stored of them?

use std::net::IpAddr;

use engine::change::UniqueName;
use engine::device::record::{DeviceRecord, RestoredDevice};
use engine::directory::import::ExistingDevices;
use engine::dispatch::DevicesAtAddress;
use engine::ids::{ActionId, CustomerId, DeviceKey, EventId};
use engine::profile::Profile;
use sled::Db;

use super::{actions, load, rows_of};
use crate::record::Unreadable;
use crate::record::device::read_device;
use crate::record::number::read_sequence;
use crate::record::profile::read_profile;
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::ledger::{SharedHeads, recent_of};
use crate::sled::names::owner_of;

/// A device.
pub(in crate::sled) fn profile(db: &Db, device: DeviceKey) -> Result<Option<Profile>, Fault> {
    load(db, &key::device::device(device), read_profile)
}

/// The device that has a name.
pub(in crate::sled) fn device_by_name(
    db: &Db,
    name: &UniqueName,
) -> Result<Option<DeviceKey>, Fault> {
    match name {
        UniqueName::Customer(_) | UniqueName::Client(_) => Ok(None),
        UniqueName::Device(device) => Ok(db
            .contains_key(key::device::device(*device))?
            .then_some(*device)),
        UniqueName::Iccid(_)
        | UniqueName::Imsi(_)
        | UniqueName::Msisdn(_)
        | UniqueName::Endpoint(_)
        | UniqueName::PskIdentity(_)
        | UniqueName::PublicKey(_) => owner_of(&**db, name),
        UniqueName::Address { ip, customer } => at_address_of_another(db, *ip, customer),
    }
}

/// The profile of the device that has a name, as it is while it has that name.
pub(in crate::sled) fn profile_by_name(
    db: &Db,
    name: &UniqueName,
) -> Result<Option<Profile>, Fault> {
    let Some(device) = device_by_name(db, name)? else {
        return Ok(None);
    };
    let has_name = |profile: &Profile| UniqueName::all_of(profile).contains(name);
    Ok(profile(db, device)?.filter(has_name))
}

/// A device of another customer that has an address.
fn at_address_of_another(
    db: &Db,
    ip: IpAddr,
    customer: &CustomerId,
) -> Result<Option<DeviceKey>, Fault> {
    let first = match at_address(db, ip)? {
        DevicesAtAddress::Nobody => return Ok(None),
        DevicesAtAddress::One(first) | DevicesAtAddress::Several(first) => first,
    };
    let is_another_s = |profile: &Profile| profile.customer != *customer;
    Ok(profile(db, first)?.filter(is_another_s).map(|_| first))
}

/// Those of the names that devices have, and the devices whose ids are among them.
pub(in crate::sled) fn known(db: &Db, names: Vec<UniqueName>) -> Result<ExistingDevices, Fault> {
    let mut known = ExistingDevices::default();
    for name in names {
        let is_borne = match &name {
            UniqueName::Device(key) => match profile(db, *key)? {
                Some(there) => {
                    known.profile_by_key.insert(*key, there);
                    true
                }
                None => false,
            },
            UniqueName::Customer(_)
            | UniqueName::Client(_)
            | UniqueName::Iccid(_)
            | UniqueName::Imsi(_)
            | UniqueName::Msisdn(_)
            | UniqueName::Endpoint(_)
            | UniqueName::PskIdentity(_)
            | UniqueName::PublicKey(_)
            | UniqueName::Address { .. } => device_by_name(db, &name)?.is_some(),
        };
        if is_borne {
            known.key_by_name.insert(name);
        }
    }
    Ok(known)
}

/// The device whose key begins with these bytes.
pub(in crate::sled) fn device_at(db: &Db, prefix: [u8; 8]) -> Result<Option<DeviceKey>, Fault> {
    match rows_of(db, &key::device::devices_at(prefix)).keys().next() {
        Some(found) => Ok(Some(device_in(key::last_id(&found?))?)),
        None => Ok(None),
    }
}

/// Which devices have an address; if several have it, the first.
pub(in crate::sled) fn at_address(db: &Db, ip: IpAddr) -> Result<DevicesAtAddress, Fault> {
    let mut keys = rows_of(db, &key::device::at(ip)).keys();
    let Some(first) = keys.next() else {
        return Ok(DevicesAtAddress::Nobody);
    };
    let first = device_in(key::last_id(&first?))?;
    Ok(match keys.next().transpose()? {
        None => DevicesAtAddress::One(first),
        Some(_) => DevicesAtAddress::Several(first),
    })
}

/// The record that a device's actor saved.
pub(super) fn record(db: &Db, device: DeviceKey) -> Result<Option<DeviceRecord>, Fault> {
    load(db, &key::device::record(device), read_device)
}

/// Everything needed to restore a device.
pub(in crate::sled) fn restored(
    db: &Db,
    heads: &SharedHeads,
    device: DeviceKey,
) -> Result<Option<RestoredDevice>, Fault> {
    let Some(profile) = profile(db, device)? else {
        return Ok(None);
    };
    let record = record(db, device)?.unwrap_or_default();
    let mut pending = Vec::new();
    for of_device in rows_of(db, &key::action::pending_of(device)).keys() {
        let id = key::last_id(&of_device?).ok_or(Unreadable::Damaged("an index of actions"))?;
        let action = actions::action(db, ActionId::from_bytes(id))?;
        pending.extend(action.filter(|action| action.status.is_pending()));
    }
    // The rows are in the order of protocols and statuses.
    pending.sort_unstable_by_key(|action| action.id);
    Ok(Some(RestoredDevice {
        profile,
        record,
        pending,
        recent_events: recent_events(db, heads, device)?,
    }))
}

/// The events of a device from shortly before the store was opened, without those of a former
/// device with the same key.
pub(super) fn recent_events(
    db: &Db,
    heads: &SharedHeads,
    device: DeviceKey,
) -> Result<Box<[EventId]>, Fault> {
    let recent = recent_of(heads, device);
    if recent.is_empty() {
        return Ok(Box::default());
    }
    let removed = load(db, &key::event::removed_of(device), read_sequence)?.unwrap_or_default();
    let kept = recent.into_iter().filter(|(number, _)| *number > removed);
    Ok(kept.map(|(_, event)| event).collect())
}

fn device_in(bytes: Option<[u8; 16]>) -> Result<DeviceKey, Fault> {
    let bytes = bytes.ok_or(Unreadable::Damaged("a key without device"))?;
    Ok(DeviceKey::from_bytes(bytes))
}
