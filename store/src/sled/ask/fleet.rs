//! Which devices does a customer have?
//!
//! Devices are listed by their ids: by flags, which every device has, and by each of their tags.
//! A list over several combinations of flags merges as many ranges, so its cost grows with what is
//! skipped and shown and not with what exists. Of the ranges that include every device that passes
//! a filter, the smallest is read; what it does not tell is looked up for each of its devices, for
//! at most [`DEVICES_EXAMINED_MAX`] of them: tags and flags in their indexes, whose rows are in the
//! same order, and only the rest in the record. Where the range tells everything, the total is a
//! sum of counts.
//!
//! Devices are searched by name prefix: by id among the customer's own, by other names among all
//! customers' devices, because those names are unique service-wide. If more names have the prefix
//! than the customer has devices in the range, those are read instead.

mod search;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

use engine::change::Counter;
use engine::ids::{DeviceId, DeviceKey};
use engine::limits::{DEVICES_EXAMINED_MAX, RECORDS_EXAMINED_MAX};
use engine::query::devices::{
    DeviceFilter, DevicePage, DevicePageRequest, DeviceTotal, FIRMWARE_VERSION, ListedDevice,
    SearchTooBroad,
};
use engine::tags::Tag;
use sled::{Db, IVec, Iter};

use super::devices::{profile, record};
use super::{count, load};
use crate::record::Unreadable;
use crate::record::device::{ObjectListCache, read_one_of_many};
use crate::record::device_flags::DeviceFlags;
use crate::record::number::read_name_owner;
use crate::sled::fault::Fault;
use crate::sled::key::{self, Key};
use crate::sled::ledger::{SharedHeads, values_of};

/// A page of the devices of a customer that pass a filter.
pub(in crate::sled) fn devices_of(
    (db, heads): (&Db, &SharedHeads),
    filter: &DeviceFilter,
    wanted: &DevicePageRequest,
) -> Result<Result<DevicePage, SearchTooBroad>, Fault> {
    let candidates = Candidates::of((db, heads), filter)?;
    if let Some(prefix) = &filter.name_prefix {
        return search::devices_named(db, prefix, &candidates, wanted);
    }
    let rest = candidates.rest(db)?;
    let page = match rest.is_nothing() && wanted.after.is_none() {
        true => counted_page(db, &candidates, wanted)?,
        false => examined_page(db, &candidates, rest, wanted)?,
    };
    Ok(Ok(page))
}

/// A page of a list whose length is known.
fn counted_page(
    db: &Db,
    candidates: &Candidates<'_>,
    wanted: &DevicePageRequest,
) -> Result<DevicePage, Fault> {
    let (skip, total) = (wanted.page.skip(), candidates.total(db)?);
    let mut chosen = Chosen::default();
    if skip < total {
        let mut devices = candidates.devices(db, After::Prefix(""))?;
        let mut place = 0;
        while let Some(device) = devices.next()? {
            place += 1;
            if place > skip && !chosen.take(device, wanted.page.size) {
                break;
            }
        }
    }
    chosen.page(db, DeviceTotal::Exactly(total))
}

/// A page of a list whose devices are examined one by one.
fn examined_page(
    db: &Db,
    candidates: &Candidates<'_>,
    mut rest: Examination<'_>,
    wanted: &DevicePageRequest,
) -> Result<DevicePage, Fault> {
    let mut devices = candidates.devices(db, After::of(wanted))?;
    let (mut chosen, mut examined, mut passed) = (Chosen::default(), 0, 0);
    let mut last = None;
    while let Some((id, device)) = devices.next()? {
        if examined == DEVICES_EXAMINED_MAX || rest.records_read == RECORDS_EXAMINED_MAX {
            chosen.go_on_behind(last);
            return chosen.page(db, DeviceTotal::AtLeast(passed));
        }
        examined += 1;
        if rest.passes(db, &id, device)? {
            passed += 1;
            if passed > wanted.page.skip() {
                chosen.take((id.clone(), device), wanted.page.size);
            }
        }
        last = Some(id);
    }
    chosen.page(db, DeviceTotal::Exactly(passed))
}

/// The devices on a page.
#[derive(Default)]
struct Chosen {
    devices: Vec<DeviceKey>,
    /// The id of the last one.
    last: Option<IVec>,
    /// Behind this id the list continues.
    next: Option<IVec>,
}

impl Chosen {
    /// Takes a device, and returns whether the page had room for it.
    fn take(&mut self, (id, device): (IVec, DeviceKey), size: u32) -> bool {
        if u32::try_from(self.devices.len()).unwrap_or(u32::MAX) >= size {
            self.next = self.last.clone();
            return false;
        }
        self.devices.push(device);
        self.last = Some(id);
        true
    }

    /// The list continues behind an id, unless it does so earlier.
    fn go_on_behind(&mut self, id: Option<IVec>) {
        self.next = self.next.take().or(id);
    }

    fn page(self, db: &Db, total: DeviceTotal) -> Result<DevicePage, Fault> {
        let mut items = Vec::with_capacity(self.devices.len());
        for device in self.devices {
            if let Some(profile) = profile(db, device)? {
                let record = record(db, device)?.unwrap_or_default();
                items.push(ListedDevice { profile, record });
            }
        }
        Ok(DevicePage {
            items,
            total,
            next: self.next.map(|id| device_id(&id)).transpose()?,
        })
    }
}

/// The smallest range that includes all devices that pass a filter.
struct Candidates<'f> {
    filter: &'f DeviceFilter,
    heads: &'f SharedHeads,
    /// The tag that all of them have; none if they are listed by flags.
    tag: Option<&'f Tag>,
    count: u64,
}

impl<'f> Candidates<'f> {
    fn of((db, heads): (&Db, &'f SharedHeads), filter: &'f DeviceFilter) -> Result<Self, Fault> {
        let customer = &filter.customer;
        let mut smallest = Self {
            filter,
            heads,
            tag: None,
            count: 0,
        };
        for flags in wanted(filter) {
            smallest.count += count(db, &key::device::counted(customer, flags))?;
        }
        for tag in &filter.tags {
            let count = count(db, &key::device::tagged_counted(customer, tag))?;
            if smallest.count >= count {
                let tag = Some(tag);
                smallest = Self {
                    filter,
                    heads,
                    tag,
                    count,
                };
            }
        }
        Ok(smallest)
    }

    /// What has to be examined of each.
    fn rest(&self, db: &Db) -> Result<Examination<'f>, Fault> {
        let mut rest = Examination::of((db, self.heads), self.filter)?;
        match self.tag {
            Some(known) => rest.tags.retain(|(tag, _)| *tag != known),
            None => rest.flags = None,
        }
        Ok(rest)
    }

    fn total(&self, db: &Db) -> Result<u64, Fault> {
        let customer = &self.filter.customer;
        if *self.filter == DeviceFilter::all_of(customer.clone()) {
            return count(db, &key::counter(&Counter::Devices(customer.clone())));
        }
        Ok(self.count)
    }

    /// The devices, in the order of their ids.
    fn devices(&self, db: &Db, after: After<'_>) -> Result<DevicesById, Fault> {
        let customer = &self.filter.customer;
        let ranges = match self.tag {
            Some(tag) => vec![Range::of(db, key::device::tagged(customer, tag), after)],
            None => {
                let prefixes = most_common_flags(db, self.filter)?.into_iter();
                prefixes
                    .map(|prefix| Range::of(db, prefix, after))
                    .collect()
            }
        };
        DevicesById::merging(ranges)
    }
}

fn wanted(filter: &DeviceFilter) -> impl Iterator<Item = DeviceFlags> {
    DeviceFlags::every().filter(|flags| flags.pass(filter))
}

/// What has to be looked up of a device to know whether it passes a filter.
struct Examination<'f> {
    filter: &'f DeviceFilter,
    heads: &'f SharedHeads,
    /// The tags it must have, each with the prefix of its index rows.
    tags: Vec<(&'f Tag, Key)>,
    /// The prefixes of the index rows by flags of which it must have one, the most common first;
    /// none if any will do.
    flags: Option<Vec<Key>>,
    /// Whether its record tells more.
    record: bool,
    records_read: u32,
    objects: ObjectListCache,
}

impl<'f> Examination<'f> {
    /// Everything that a filter is about, apart from the customer and a prefix.
    fn of((db, heads): (&Db, &'f SharedHeads), filter: &'f DeviceFilter) -> Result<Self, Fault> {
        let customer = &filter.customer;
        let tags = filter.tags.iter();
        let is_by_flags = filter.registered.is_some() || filter.protocols_seen.is_some();
        Ok(Self {
            filter,
            heads,
            tags: tags
                .map(|tag| (tag, key::device::tagged(customer, tag)))
                .collect(),
            flags: is_by_flags
                .then(|| most_common_flags(db, filter))
                .transpose()?,
            record: filter.version.is_some()
                || filter.object.is_some()
                || filter.last_seen_before.is_some()
                || filter.last_seen_after.is_some()
                || filter.online.is_some(),
            records_read: 0,
            objects: ObjectListCache::default(),
        })
    }

    fn is_nothing(&self) -> bool {
        let is_by_index = !self.tags.is_empty() || self.flags.is_some();
        !is_by_index && !self.record && self.filter.firmware.is_none()
    }

    fn passes(&mut self, db: &Db, id: &[u8], device: DeviceKey) -> Result<bool, Fault> {
        for (_, tagged) in &self.tags {
            if !is_listed(db, tagged, id)? {
                return Ok(false);
            }
        }
        if let Some(flags) = &self.flags {
            let mut is_any = false;
            for listed in flags {
                is_any = is_any || is_listed(db, listed, id)?;
            }
            if !is_any {
                return Ok(false);
            }
        }
        if !self.record && self.filter.firmware.is_none() {
            return Ok(true);
        }
        self.records_read += 1;
        Ok(self.has_wanted_record(db, device)? && self.has_wanted_firmware(db, device)?)
    }

    fn has_wanted_record(&mut self, db: &Db, device: DeviceKey) -> Result<bool, Fault> {
        if !self.record {
            return Ok(true);
        }
        let read = |value: &[u8]| read_one_of_many(value, &mut self.objects);
        let record = load(db, &key::device::record(device), read)?;
        Ok(self.filter.wants_record(&record.unwrap_or_default()))
    }

    fn has_wanted_firmware(&self, db: &Db, device: DeviceKey) -> Result<bool, Fault> {
        if self.filter.firmware.is_none() {
            return Ok(true);
        }
        let values = values_of(db, self.heads, device)?;
        let version = values.iter().find(|known| known.path == FIRMWARE_VERSION);
        let version = version.map(|known| &known.value);
        Ok(self.filter.wants_firmware(version))
    }
}

/// The prefixes of the index rows by the flags that pass a filter, the most common first.
fn most_common_flags(db: &Db, filter: &DeviceFilter) -> Result<Vec<Key>, Fault> {
    let customer = &filter.customer;
    let mut counted = Vec::new();
    for flags in wanted(filter) {
        let count = count(db, &key::device::counted(customer, flags))?;
        if count > 0 {
            counted.push((count, key::device::devices_of(customer, flags)));
        }
    }
    counted.sort_by_key(|(count, _)| Reverse(*count));
    Ok(counted.into_iter().map(|(_, prefix)| prefix).collect())
}

fn is_listed(db: &Db, prefix: &[u8], id: &[u8]) -> Result<bool, Fault> {
    Ok(db.contains_key(key::append(prefix.to_vec(), id))?)
}

/// Where in the order of device ids a range begins.
#[derive(Clone, Copy)]
enum After<'a> {
    /// It has only the ids with a prefix.
    Prefix(&'a str),
    /// It has only the ids behind this one.
    Id(&'a DeviceId),
}

impl<'a> After<'a> {
    fn of(wanted: &'a DevicePageRequest) -> Self {
        wanted.after.as_ref().map_or(Self::Prefix(""), Self::Id)
    }
}

/// Some devices of a customer, in the order of their ids.
struct Range {
    rows: Iter,
    /// The length of a key before the id.
    before_id: usize,
}

impl Range {
    fn of(db: &Db, devices: Key, after: After<'_>) -> Self {
        let before_id = devices.len();
        let end = key::behind(devices.clone());
        let rows = match after {
            After::Prefix(prefix) => {
                let first = key::append(devices, prefix.as_bytes());
                super::rows_of(db, &first)
            }
            After::Id(id) => {
                let last = key::append(devices, id.as_str().as_bytes());
                let bounds = (
                    Bound::Excluded(last.as_slice()),
                    Bound::Excluded(end.as_slice()),
                );
                db.range::<&[u8], _>(bounds)
            }
        };
        Self { rows, before_id }
    }

    /// The id of the next device, and its key.
    fn next(&mut self) -> Result<Option<(IVec, IVec)>, Fault> {
        let Some(row) = self.rows.next() else {
            return Ok(None);
        };
        let (key, owner) = row?;
        let id = key.subslice(self.before_id, key.len() - self.before_id);
        Ok(Some((id, owner)))
    }
}

/// Merges ranges, the smallest id first. A device that changes while the list is read may be found
/// twice and is given once.
struct DevicesById {
    ranges: Vec<Range>,
    heads: BinaryHeap<(Reverse<(IVec, IVec)>, usize)>,
    last: Option<IVec>,
}

impl DevicesById {
    fn merging(mut ranges: Vec<Range>) -> Result<Self, Fault> {
        let mut heads = BinaryHeap::new();
        for (number, range) in ranges.iter_mut().enumerate() {
            heads.extend(range.next()?.map(|head| (Reverse(head), number)));
        }
        let last = None;
        Ok(Self {
            ranges,
            heads,
            last,
        })
    }

    /// The id of the next device, and the device.
    fn next(&mut self) -> Result<Option<(IVec, DeviceKey)>, Fault> {
        while let Some((Reverse((id, owner)), number)) = self.heads.pop() {
            if let Some(range) = self.ranges.get_mut(number) {
                self.heads
                    .extend(range.next()?.map(|head| (Reverse(head), number)));
            }
            if self.last.as_ref() == Some(&id) {
                continue;
            }
            self.last = Some(id.clone());
            return Ok(Some((id, read_name_owner(&owner)?)));
        }
        Ok(None)
    }
}

fn device_id(bytes: &[u8]) -> Result<DeviceId, Fault> {
    let text = std::str::from_utf8(bytes).ok();
    let id = text.and_then(|text| DeviceId::parse(text).ok());
    Ok(id.ok_or(Unreadable::Damaged("a device id in a list"))?)
}
