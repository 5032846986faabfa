//! What does a start restore, a range of keys at a time?
//!
//! The rows of a device are in tables of the same order, so they are read side by side: its record
//! and its requests decide whether it is live, and the rest is read if it is. Only the requests
//! themselves have an order of their own and are looked up one by one; most devices have none.

use std::ops::RangeInclusive;

use engine::action::Action;
use engine::device::record::RestoredDevice;
use engine::ids::{ActionId, DeviceKey};
use sled::{Db, IVec, Iter};

use super::actions;
use super::devices::recent_events;
use crate::RestoredPage;
use crate::record::Unreadable;
use crate::record::device::{ObjectListCache, read_one_of_many};
use crate::record::device_flags::read_is_live;
use crate::record::profile::read_profile;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Key};
use crate::sled::kv;
use crate::sled::ledger::SharedHeads;

/// The bytes of the rows of a page: a page takes a few times that in memory. A page ends with the
/// device that reaches it.
const PAGE_BYTES_MAX: usize = 512 * 1_024;

/// Rows skipped one by one on the way to the wanted device; for more, the iterator seeks. A seek
/// costs as much as some rows.
const STEPS_MAX: u32 = 8;

/// The live devices of a range of keys with all their rows.
pub(in crate::sled) fn restored_page(
    db: &Db,
    heads: &SharedHeads,
    keys: &RangeInclusive<DeviceKey>,
    max: u32,
) -> Result<RestoredPage, Fault> {
    let mut live = LiveDevices::within(db, keys)?;
    let mut rest = DeviceRows::within((db, heads), keys)?;
    let mut page = RestoredPage::default();
    for _ in 0..max {
        let Some((device, pending)) = live.next()? else {
            return Ok(page);
        };
        match rest.of(device, &pending) {
            Ok(restored) => page.devices.extend(restored.map(|found| (device, found))),
            Err(fault) if fault.is_fatal() => return Err(fault),
            // One damaged row does not prevent other devices from being restored.
            Err(fault) => tracing::error!(%device, %fault, "a device cannot be restored"),
        }
        if rest.bytes >= PAGE_BYTES_MAX {
            break;
        }
    }
    page.next = live.peek()?;
    Ok(page)
}

/// Which devices have a registration, a silence that is counted, or a pending request, and which
/// requests those are.
struct LiveDevices {
    records: Column,
    pending: Column,
}

impl LiveDevices {
    fn within(db: &Db, keys: &RangeInclusive<DeviceKey>) -> Result<Self, Fault> {
        let mut live = Self {
            records: Column::within(db, key::device::records(), keys)?,
            pending: Column::within(db, key::action::all_pending(), keys)?,
        };
        live.pass_absent()?;
        Ok(live)
    }

    fn next(&mut self) -> Result<Option<(DeviceKey, Vec<ActionId>)>, Fault> {
        let Some(device) = self.peek()? else {
            return Ok(None);
        };
        if self.records.device()? == Some(device) {
            self.records.step()?;
            self.pass_absent()?;
        }
        let mut ids = Vec::new();
        while self.pending.device()? == Some(device) {
            ids.extend(self.pending.request()?);
            self.pending.step()?;
        }
        // The rows are in the order of protocols and statuses.
        ids.sort_unstable();
        Ok(Some((device, ids)))
    }

    fn peek(&self) -> Result<Option<DeviceKey>, Fault> {
        Ok(match (self.records.device()?, self.pending.device()?) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    /// Skips devices from whose record nothing is expected. A device with an unreadable record is
    /// not skipped: the restore reports it.
    fn pass_absent(&mut self) -> Result<(), Fault> {
        while self.records.head.is_some() {
            match self.next_is_live() {
                Ok(false) => self.records.step()?,
                Err(fault) if fault.is_fatal() => return Err(fault),
                Ok(true) | Err(_) => break,
            }
        }
        Ok(())
    }

    fn next_is_live(&self) -> Result<bool, Fault> {
        let record = self.records.value()?;
        let is_live = record.map(|record| read_is_live(&record)).transpose()?;
        Ok(is_live.unwrap_or_default())
    }
}

/// The rows of devices, read in the order of their keys.
struct DeviceRows<'a> {
    db: &'a Db,
    heads: &'a SharedHeads,
    profiles: Column,
    records: Column,
    others: ObjectListCache,
    bytes: usize,
}

impl<'a> DeviceRows<'a> {
    fn within(
        (db, heads): (&'a Db, &'a SharedHeads),
        keys: &RangeInclusive<DeviceKey>,
    ) -> Result<Self, Fault> {
        Ok(Self {
            db,
            heads,
            profiles: Column::within(db, key::device::devices(), keys)?,
            records: Column::within(db, key::device::records(), keys)?,
            others: ObjectListCache::default(),
            bytes: 0,
        })
    }

    fn of(
        &mut self,
        device: DeviceKey,
        pending: &[ActionId],
    ) -> Result<Option<RestoredDevice>, Fault> {
        let Some(profile) = self.profiles.value_of(device)? else {
            return Ok(None);
        };
        let record = self.records.value_of(device)?;
        self.bytes += profile.len() + record.as_ref().map_or(0, |record| record.len());
        let profile = read_profile(&profile)?;
        let record = record.map(|record| read_one_of_many(&record, &mut self.others));
        let record = record.transpose()?;
        let pending = self.requests(pending)?;
        Ok(Some(RestoredDevice {
            profile,
            record: record.unwrap_or_default(),
            pending,
            recent_events: recent_events(self.db, self.heads, device)?,
        }))
    }

    fn requests(&mut self, ids: &[ActionId]) -> Result<Vec<Action>, Fault> {
        let mut requests = Vec::with_capacity(ids.len());
        for id in ids {
            let request = actions::action(self.db, *id)?;
            // Its data and its fixed parts, roughly.
            self.bytes += 256;
            requests.extend(request.filter(|request| request.status.is_pending()));
        }
        Ok(requests)
    }
}

/// The rows of a table whose keys begin with a device.
struct Column {
    db: Db,
    table: Key,
    end: Key,
    rows: Iter,
    head: Option<(IVec, IVec)>,
}

impl Column {
    fn within(db: &Db, table: Key, keys: &RangeInclusive<DeviceKey>) -> Result<Self, Fault> {
        let first = key::append(table.clone(), keys.start().as_bytes());
        let end = key::behind(key::append(table.clone(), keys.end().as_bytes()));
        let mut column = Self {
            rows: db.range(first..end.clone()),
            db: db.clone(),
            table,
            end,
            head: None,
        };
        column.step()?;
        Ok(column)
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.head = self.rows.next().transpose()?;
        Ok(())
    }

    /// The value of a device, if it has a row here; rows before it are skipped.
    fn value_of(&mut self, device: DeviceKey) -> Result<Option<IVec>, Fault> {
        self.advance_to(device)?;
        if self.device()? == Some(device) {
            self.value()
        } else {
            Ok(None)
        }
    }

    /// The value of the next row.
    fn value(&self) -> Result<Option<IVec>, Fault> {
        match &self.head {
            Some((key, value)) if kv::pieces_behind(value) > 0 => kv::load(&*self.db, key),
            Some((_, value)) => Ok(Some(value.clone())),
            None => Ok(None),
        }
    }

    fn advance_to(&mut self, device: DeviceKey) -> Result<(), Fault> {
        let is_before = |found: Option<DeviceKey>| found.is_some_and(|found| found < device);
        for _ in 0..STEPS_MAX {
            if !is_before(self.device()?) {
                return Ok(());
            }
            self.step()?;
        }
        if is_before(self.device()?) {
            let first = key::append(self.table.clone(), device.as_bytes());
            self.rows = self.db.range(first..self.end.clone());
            self.step()?;
        }
        Ok(())
    }

    /// The device of the next row.
    fn device(&self) -> Result<Option<DeviceKey>, Fault> {
        let Some((key, _)) = &self.head else {
            return Ok(None);
        };
        let bytes = key::first_id(key::rest_of(key, &self.table));
        let bytes = bytes.ok_or(Unreadable::Damaged("a key without device"))?;
        Ok(Some(DeviceKey::from_bytes(bytes)))
    }

    /// The request at the end of the next row's key.
    fn request(&self) -> Result<Option<ActionId>, Fault> {
        let Some((key, _)) = &self.head else {
            return Ok(None);
        };
        let bytes = key::last_id(key).ok_or(Unreadable::Damaged("an index of actions"))?;
        Ok(Some(ActionId::from_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use engine::change::Change;

    use super::*;
    use crate::conformance::samples::{acme, batch, device, known, record};
    use crate::conformance::wait;
    use crate::sled::kv::Value;
    use crate::sled::open;
    use crate::{Commit, Options, SledStore};

    #[test]
    fn a_damaged_row_does_not_prevent_other_restores() {
        let home = tempfile::tempdir().unwrap();
        let options = Options::at(home.path());
        let store = SledStore::open(options.clone()).unwrap();
        let meters = [1, 2, 3].map(|number| device(&acme(), number));
        for meter in &meters {
            assert_eq!(wait(store.commit(known(meter))), Ok(()));
            let change = Change::PutRecord {
                device: meter.key(),
                record: Box::new(record(10, "</3/0>")),
            };
            assert_eq!(wait(store.commit(batch(vec![change]))), Ok(()));
        }
        drop(store);
        let mut keys = meters.map(|meter| meter.key());
        keys.sort();
        let opened = open::open(&options).unwrap();
        let heads = opened.ledger.heads();
        // One row has other bytes than were written, another has lost all but its beginning.
        let large = Value::cut(b"", &[1; 10_000]).head;
        for damaged in [IVec::from(b"\x01?"), large] {
            let record = key::device::record(keys[1]);
            opened.db.insert(record, damaged).unwrap();
            let page = restored_page(&opened.db, &heads, &(keys[0]..=keys[2]), 2).unwrap();
            let found: Vec<_> = page.devices.iter().map(|(key, _)| *key).collect();
            assert_eq!((found, page.next), (vec![keys[0]], Some(keys[2])));
        }
        let page = restored_page(&opened.db, &heads, &(keys[2]..=keys[2]), 2).unwrap();
        assert_eq!((page.devices.len(), page.next), (1, None));
    }
}
