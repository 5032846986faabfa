//! How is an entry of the log appended and removed? Linked to the one before it of its device, and
//! counted.

use engine::admin_log::entry::Entry;
use engine::ids::{CustomerId, DeviceKey, Iccid};

use super::counting::CountedEntry;
use super::device_log;
use super::fault::Fault;
use super::key;
use super::kv::{self, Rows, Value};
use super::overlay::Overlay;
use crate::record::Unreadable;
use crate::record::entry::{link, unlink, write_entry};
use crate::record::entry_place::EntryPlace;

/// An entry to be appended.
pub(super) struct EntryRow {
    customer: CustomerId,
    place: EntryPlace,
    about: Option<(DeviceKey, Iccid)>,
    counted: CountedEntry,
    entry: Vec<u8>,
}

impl EntryRow {
    /// An entry to be appended.
    pub(super) fn of(entry: &Entry) -> Self {
        let about = entry.about.as_ref();
        Self {
            customer: entry.customer.clone(),
            place: EntryPlace::of(entry),
            about: about.map(|about| (about.key, about.iccid.clone())),
            counted: CountedEntry::of(entry),
            entry: write_entry(entry),
        }
    }

    /// The memory it takes while it is queued, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.counted.bytes() + self.entry.len()
    }

    /// Appends the entry and counts it.
    pub(super) fn append(self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let before = self.counted.enter(rows)?;
        let previous = self.previous(before.newest(), rows)?;
        put(
            &self.customer,
            self.place,
            link(previous, &self.entry),
            rows,
        )?;
        match &self.about {
            Some((device, iccid)) => note_unknown(&self.customer, *device, iccid, rows),
            None => Ok(()),
        }
    }

    /// The entry before it of its device. An entry that was committed late is inserted before
    /// those that were made after it.
    fn previous(
        &self,
        newest: Option<EntryPlace>,
        rows: &mut Overlay<'_>,
    ) -> Result<Option<EntryPlace>, Fault> {
        let (mut next, mut previous) = (None, newest);
        while let Some(newer) = previous.filter(|it| *it > self.place) {
            let Some(value) = kv::load(rows, &key::log::entry(&self.customer, newer))? else {
                previous = None;
                break;
            };
            previous = unlink(&value)?.0;
            next = Some((newer, value));
        }
        if let Some((newer, value)) = next {
            let (_, entry) = unlink(&value)?;
            let linked = link(Some(self.place), entry);
            put(&self.customer, newer, linked, rows)?;
        }
        Ok(previous)
    }
}

/// Removes an entry with its payload, and counts it out.
pub(super) fn remove_entry(key: &[u8], rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let Some(value) = kv::load(rows, key)? else {
        return Ok(());
    };
    let entry: Entry = read_entry(key, &value)?;
    device_log::forget_sim(&entry, rows)?;
    if entry.payload.is_some() {
        rows.erase(key::log::payload(&entry.customer, entry.id))?;
    }
    rows.erase(key)?;
    CountedEntry::of(&entry).leave(rows)
}

/// Reads an entry from the key and the value of its row.
pub(super) fn read_entry(key: &[u8], value: &[u8]) -> Result<Entry, Unreadable> {
    let place = key::log::place_of(key).ok_or(Unreadable::Damaged("the key of an entry"))?;
    let ((customer, place), (_, entry)) = (place, unlink(value)?);
    crate::record::entry::read_entry(customer, place, entry)
}

/// Notes the SIM of a device that is not known: the entry was committed after its removal.
fn note_unknown(
    customer: &CustomerId,
    device: DeviceKey,
    iccid: &Iccid,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let is_known = rows.row(&key::device::record(device))?.is_some()
        || rows.row(&key::device::device(device))?.is_some();
    if is_known {
        return Ok(());
    }
    device_log::leave_sim(customer, device, iccid, rows)
}

fn put(
    customer: &CustomerId,
    place: EntryPlace,
    value: Vec<u8>,
    rows: &mut Overlay<'_>,
) -> Result<(), Fault> {
    let key = key::log::entry(customer, place);
    let value = Value::cut(&key, &value);
    rows.replace(key.into(), value)
}
