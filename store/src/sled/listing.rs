//! Under which flags is a device listed? It moves in the group that changes its record, and only if
//! that changes its flags.

use engine::device::record::DeviceRecord;
use engine::ids::DeviceKey;
use engine::profile::Profile;
use sled::IVec;

use super::device_log;
use super::fault::Fault;
use super::key::{self, Key};
use super::kv::{self, Value};
use super::overlay::Overlay;
use crate::record::device::write_device;
use crate::record::device_flags::{DeviceFlags, read_device_flags};
use crate::record::last_entries::{LastEntries, read_before, write_before};
use crate::record::number::write_name_owner;
use crate::record::profile::read_profile;

/// A device record to be put.
pub(super) struct DeviceRow {
    device: DeviceKey,
    key: Key,
    record: Vec<u8>,
    flags: DeviceFlags,
}

impl DeviceRow {
    /// A device record to be put.
    pub(super) fn of(device: DeviceKey, record: &DeviceRecord) -> Self {
        Self {
            device,
            key: key::device::record(device),
            record: write_device(record),
            flags: DeviceFlags::of(record),
        }
    }

    /// The memory it takes while it is queued.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.record.len()
    }

    /// Replaces the record and lists the device by it.
    pub(super) fn put(self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let stored = kv::load(rows, &self.key)?;
        let before = flags_in(self.device, stored.as_deref());
        let profile = match stored.is_some() && before == self.flags {
            true => None,
            false => known(self.device, rows)?,
        };
        let last = match (&stored, &profile) {
            (Some(value), _) => read_before(value).map_or_else(
                |why| {
                    tracing::error!(device = %self.device, %why, "a record cannot be read");
                    LastEntries::default()
                },
                |(last, _)| last,
            ),
            (None, Some(profile)) => device_log::take_last(profile, rows)?,
            (None, None) => LastEntries::default(),
        };
        let value = Value::cut(&self.key, &write_before(&last, &self.record));
        rows.replace(self.key.into(), value)?;
        if let Some(profile) = profile.filter(|_| before != self.flags) {
            unlist(&profile, before, rows)?;
            list(&profile, self.flags, rows)?;
        }
        Ok(())
    }
}

/// Removes a device from all lists, while its record is still there.
pub(super) fn remove(profile: &Profile, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    for tag in profile.tags.as_slice() {
        rows.remove(key::device::tagged_device(
            &profile.customer,
            tag,
            &profile.device,
        ));
        rows.add(
            key::device::tagged_counted(&profile.customer, tag).into(),
            -1,
        )?;
    }
    let flags = flags_of(profile.key(), rows)?;
    unlist(profile, flags, rows)
}

fn list(profile: &Profile, flags: DeviceFlags, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let listed = key::device::device_of(&profile.customer, flags, &profile.device);
    rows.put(listed.into(), IVec::from(&write_name_owner(profile.key())));
    rows.add(key::device::counted(&profile.customer, flags).into(), 1)
}

fn unlist(profile: &Profile, flags: DeviceFlags, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let listed = key::device::device_of(&profile.customer, flags, &profile.device);
    rows.remove(listed);
    rows.add(key::device::counted(&profile.customer, flags).into(), -1)
}

/// The flags a device is listed under. Its record may be unreadable; then it is in a wrong list,
/// and other devices are not affected.
fn flags_of(device: DeviceKey, rows: &Overlay<'_>) -> Result<DeviceFlags, Fault> {
    let record = kv::load(rows, &key::device::record(device))?;
    Ok(flags_in(device, record.as_deref()))
}

fn flags_in(device: DeviceKey, record: Option<&[u8]>) -> DeviceFlags {
    let Some(record) = record else {
        return DeviceFlags::NONE;
    };
    read_device_flags(record).unwrap_or_else(|why| {
        tracing::error!(%device, %why, "the record of a device cannot be read");
        DeviceFlags::NONE
    })
}

/// The profile of a device; nothing for a device that does not exist, or whose row is unreadable.
fn known(device: DeviceKey, rows: &Overlay<'_>) -> Result<Option<Profile>, Fault> {
    let Some(profile) = kv::load(rows, &key::device::device(device))? else {
        return Ok(None);
    };
    let read = read_profile(&profile).inspect_err(|why| {
        tracing::error!(%device, %why, "the profile of a device cannot be read");
    });
    Ok(read.ok())
}
