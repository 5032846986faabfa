//! Which entries of the log are about a device, and about a SIM?
//!
//! Each entry names the one of its device before it, in the order of ids, and [`LastEntries`] the
//! newest. They are in the row of the device's record, which most entries change as well, or in a
//! row of their own while a device has no record. The entries about a SIM are those of the device
//! that has it, and of those that had it.
//!
//! ```text
//!  record of meter 1: last info 31, last error 17
//!    entry 31 of meter 1   previous 26
//!    entry 26 of meter 1   previous 17
//!    entry 17 of meter 1   previous -
//! ```

use engine::admin_log::entry::Entry;
use engine::change::UniqueName;
use engine::ids::{CustomerId, DeviceKey, Iccid};
use engine::profile::Profile;
use sled::{Db, IVec};

use super::fault::Fault;
use super::key;
use super::key::log::count;
use super::kv::{self, Rows, Value};
use super::names::owner_of;
use super::overlay::Overlay;
use crate::record::device::with_last_entries;
use crate::record::last_entries::{
    LastEntries, read_before, read_last_entries, write_last_entries,
};
use crate::record::number::{read_last_entry, write_last_entry};
use crate::record::profile::read_profile;

/// Changes the last entries about a device; returns them before and after.
pub(super) fn change_last(
    customer: &CustomerId,
    device: DeviceKey,
    change: impl FnOnce(LastEntries) -> LastEntries,
    rows: &mut Overlay<'_>,
) -> Result<(LastEntries, LastEntries), Fault> {
    let record = key::device::record(device);
    if let Some(value) = kv::load(rows, &record)? {
        let (before, _) = read_before(&value)?;
        let after = change(before);
        if after != before {
            let value = Value::cut(&record, &with_last_entries(&value, &after)?);
            rows.replace(record.into(), value)?;
        }
        return Ok((before, after));
    }
    let key = count::device(customer, device);
    let before = match rows.row(&key)? {
        Some(row) => read_last_entries(&row)?,
        None => LastEntries::default(),
    };
    let after = change(before);
    match after.newest() {
        Some(_) => rows.put(key.into(), IVec::from(write_last_entries(&after))),
        None => rows.remove(key),
    }
    Ok((before, after))
}

/// The last entries about a device.
pub(super) fn last_of(
    customer: &CustomerId,
    device: DeviceKey,
    rows: &impl Rows,
) -> Result<LastEntries, Fault> {
    if let Some(value) = kv::load(rows, &key::device::record(device))? {
        return Ok(read_before(&value)?.0);
    }
    match rows.row(&count::device(customer, device))? {
        Some(row) => Ok(read_last_entries(&row)?),
        None => Ok(LastEntries::default()),
    }
}

/// Removes the row with the last entries about a device, which gets a record, and returns them.
pub(super) fn take_last(profile: &Profile, rows: &mut Overlay<'_>) -> Result<LastEntries, Fault> {
    let key = count::device(&profile.customer, profile.key());
    let Some(row) = rows.row(&key)? else {
        return Ok(LastEntries::default());
    };
    rows.remove(key);
    Ok(read_last_entries(&row)?)
}

/// Notes that a device no longer has its SIM.
pub(super) fn leave_sim(
    customer: &CustomerId,
    device: DeviceKey,
    iccid: &Iccid,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    if let Some(newest) = last_of(customer, device, rows)?.newest() {
        let row = IVec::from(&write_last_entry(newest.id));
        rows.put(key::log::former_sim(customer, iccid, device).into(), row);
    }
    Ok(())
}

/// Notes the last entries about a device that is being removed, before its record is.
pub(super) fn leave_device(profile: &Profile, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let (customer, device) = (&profile.customer, profile.key());
    leave_sim(customer, device, &profile.iccid, rows)?;
    let last = last_of(customer, device, rows)?;
    if last.newest().is_some() {
        let row = IVec::from(write_last_entries(&last));
        rows.put(count::device(customer, device).into(), row);
    }
    Ok(())
}

/// Removes the note of a SIM with the last entry that it may be needed for.
pub(super) fn forget_sim(entry: &Entry, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let Some(about) = &entry.about else {
        return Ok(());
    };
    let key = key::log::former_sim(&entry.customer, &about.iccid, about.key);
    if let Some(row) = rows.row(&key)?
        && read_last_entry(&row)? <= entry.id
    {
        rows.remove(key);
    }
    Ok(())
}

/// The devices that have or had a SIM.
pub(super) fn devices_of(
    customer: &CustomerId,
    iccid: &Iccid,
    db: &Db,
) -> Result<Vec<DeviceKey>, Fault> {
    let mut devices = Vec::new();
    for key in db
        .scan_prefix(key::log::former_sims(customer, iccid))
        .keys()
    {
        devices.extend(key::last_id(&key?).map(DeviceKey::from_bytes));
    }
    let Some(owner) = owner_of(&**db, &UniqueName::Iccid(iccid.clone()))? else {
        return Ok(devices);
    };
    let profile = kv::load(&**db, &key::device::device(owner))?;
    let profile = profile.map(|value| read_profile(&value)).transpose()?;
    if profile.is_some_and(|it| it.customer == *customer) && !devices.contains(&owner) {
        devices.push(owner);
    }
    Ok(devices)
}
