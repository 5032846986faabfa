//! Which entries does the administration log have?
//!
//! The bounds of a window are bounds of ids, because ids sort by time. Entries are stored kind by
//! kind, so a list merges the kinds it wants, newest first; its total, and the number of entries
//! before a page, come from counts (`counts`). An entry is read only if it is shown. Only a list of
//! one SIM reads entries one by one, those of its devices, from the newest back.

mod counts;
mod time_span;

use std::collections::BinaryHeap;

use engine::admin_log::entry::Entry;
use engine::ids::{CustomerId, EntryId, Iccid};
use engine::limits::LOG_ENTRIES_SEARCHED_MAX;
use engine::query::{EntryKind, LogFilter, LogSearchTooBroad, Page, PageRequest};
use sled::{Db, Iter};

use super::load;
use crate::record::Unreadable;
use crate::record::counts::read_counts;
use crate::record::entry::{read_payload, unlink};
use crate::record::entry_place::{EntryPlace, Kind};
use crate::record::number::read_last_entry;
use crate::sled::device_log;
use crate::sled::fault::Fault;
use crate::sled::key::log::count::BucketSize;
use crate::sled::key::{self, Key};
use crate::sled::kv;
use crate::sled::log_entries::read_entry;

use counts::WindowCounts;
pub(super) use time_span::TimeSpan;

/// A page of the entries that pass a filter.
pub(in crate::sled) fn entries(
    db: &Db,
    filter: &LogFilter,
    page: PageRequest,
) -> Result<Page<Entry>, Fault> {
    let kinds = Kind::all(filter.category, filter.subject);
    let log = Log::of(db, &filter.customer, kinds)?;
    let window = TimeSpan::of(&filter.window);
    let (total, wanted) = match &filter.iccid {
        Some(iccid) => log.page_of_sim(iccid, window, page)?,
        None => log.page(window, page)?,
    };
    let mut items = Vec::new();
    for place in wanted {
        let key = key::log::entry(&filter.customer, place);
        items.extend(load(db, &key, |value| read_entry(&key, value))?);
    }
    Ok(Page { items, total })
}

/// A page of the entries of a kind that pass a filter. Their messages are in the entries alone, so
/// each that passes is read, up to a bound.
pub(in crate::sled) fn entries_of_kind(
    db: &Db,
    filter: &LogFilter,
    kind: &EntryKind,
    page: PageRequest,
) -> Result<Result<Page<Entry>, LogSearchTooBroad>, Fault> {
    let kinds = Kind::all(filter.category, filter.subject);
    let log = Log::of(db, &filter.customer, kinds)?;
    let window = TimeSpan::of(&filter.window);
    let all = PageRequest {
        number: 1,
        size: LOG_ENTRIES_SEARCHED_MAX + 1,
    };
    let passing = match &filter.iccid {
        Some(iccid) => log.page_of_sim(iccid, window, all)?.1,
        None => log.newest(window, 0, all.size)?,
    };
    if passing.len() > LOG_ENTRIES_SEARCHED_MAX as usize {
        return Ok(Err(LogSearchTooBroad));
    }
    let mut found = Page {
        items: Vec::new(),
        total: 0,
    };
    let wanted = page.skip()..page.skip().saturating_add(u64::from(page.size));
    for place in passing {
        let key = key::log::entry(&filter.customer, place);
        let entry = load(db, &key, |value| read_entry(&key, value))?;
        if let Some(entry) = entry.filter(|entry| kind.is_of(&entry.message)) {
            if wanted.contains(&found.total) {
                found.items.push(entry);
            }
            found.total += 1;
        }
    }
    Ok(Ok(found))
}

/// One entry: its id does not tell its kind, and there are a few. Entries of a former customer with
/// the same id are not shown.
pub(in crate::sled) fn entry(
    db: &Db,
    customer: &CustomerId,
    id: EntryId,
) -> Result<Option<Entry>, Fault> {
    let log = Log::of(db, customer, Kind::all(None, None))?;
    if log.removed.is_some_and(|last| id <= last) {
        return Ok(None);
    }
    for kind in log.kinds {
        let key = key::log::entry(customer, EntryPlace { id, kind });
        if let Some(found) = load(db, &key, |value| read_entry(&key, value))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The payload of an entry. Payloads of a former customer with the same id are not shown.
pub(in crate::sled) fn payload(
    db: &Db,
    customer: &CustomerId,
    entry: EntryId,
) -> Result<Option<Box<[u8]>>, Fault> {
    let log = Log::of(db, customer, Vec::new())?;
    if log.removed.is_some_and(|last| entry <= last) {
        return Ok(None);
    }
    load(db, &key::log::payload(customer, entry), read_payload)
}

/// The entries of some kinds in a customer's log.
pub(super) struct Log<'a> {
    db: &'a Db,
    customer: &'a CustomerId,
    kinds: Vec<Kind>,
    /// Up to here it is the log of a former customer with the same id, not swept yet.
    pub(super) removed: Option<EntryId>,
}

/// How many entries there are, and which of them are on the page.
type Found = (u64, Vec<EntryPlace>);

impl<'a> Log<'a> {
    /// The log of a customer.
    pub(super) fn of(
        db: &'a Db,
        customer: &'a CustomerId,
        kinds: Vec<Kind>,
    ) -> Result<Self, Fault> {
        let removed = load(db, &key::log::removed_of(customer), read_last_entry)?;
        Ok(Self {
            db,
            customer,
            kinds,
            removed,
        })
    }

    /// Calls a function with the id of each entry in a time span, in no order.
    pub(super) fn each(
        &self,
        stretch: TimeSpan,
        mut look: impl FnMut(EntryId),
    ) -> Result<(), Fault> {
        for range in self.ranges(stretch) {
            for key in range.keys() {
                look(last_id(&key?)?);
            }
        }
        Ok(())
    }

    /// Calls a function with each entry in a time span, in no order.
    pub(super) fn each_entry(
        &self,
        stretch: TimeSpan,
        mut look: impl FnMut(Entry),
    ) -> Result<(), Fault> {
        for range in self.ranges(stretch) {
            for key in range.keys() {
                let key = key?;
                if let Some(entry) = load(self.db, &key, |value| read_entry(&key, value))? {
                    look(entry);
                }
            }
        }
        Ok(())
    }

    /// Calls a function with each count in a time span of whole buckets, oldest first: the bucket,
    /// and how many entries of these kinds it has.
    pub(super) fn each_count(
        &self,
        span: BucketSize,
        stretch: TimeSpan,
        mut look: impl FnMut(u32, u64),
    ) -> Result<(), Fault> {
        let [first, end] = [stretch.from, stretch.end]
            .map(|at| key::log::count::entries(self.customer, span, span.bucket(at)));
        for row in self.db.range::<&[u8], _>(first.as_slice()..end.as_slice()) {
            let (key, row) = row?;
            let bucket = key::log::count::counted(&key);
            let bucket = bucket.ok_or(Unreadable::Damaged("a count of the log"))?;
            let counts = read_counts(&row)?;
            let numbers = self.kinds.iter().map(|kind| counts.at(kind.place()));
            look(bucket, numbers.sum());
        }
        Ok(())
    }

    fn page(&self, window: TimeSpan, page: PageRequest) -> Result<Found, Fault> {
        // What a removed customer left is still in the counts, so every entry is read.
        let (total, rest, skip) = match self.removed {
            Some(_) => (self.number_in(window)?, window, page.skip()),
            None => {
                let counts = WindowCounts::of(self, window)?;
                let (rest, skip) = counts.behind(page.skip())?;
                (counts.total(), rest, skip)
            }
        };
        if page.skip() >= total {
            return Ok((total, Vec::new()));
        }
        Ok((total, self.newest(rest, skip, page.size)?))
    }

    /// How many entries a time span has, counted one by one.
    fn number_in(&self, stretch: TimeSpan) -> Result<u64, Fault> {
        let mut number = 0;
        self.each(stretch, |_| number += 1)?;
        Ok(number)
    }

    /// Whether a time span has no entry.
    fn is_empty(&self, stretch: TimeSpan) -> Result<bool, Fault> {
        for mut range in self.ranges(stretch) {
            if range.next().transpose()?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The newest entries of a time span after the first few.
    fn newest(
        &self,
        stretch: TimeSpan,
        mut skip: u64,
        size: u32,
    ) -> Result<Vec<EntryPlace>, Fault> {
        let mut ranges: Vec<(Kind, Iter)> = self
            .kinds
            .iter()
            .copied()
            .zip(self.ranges(stretch))
            .collect();
        let mut heads = BinaryHeap::new();
        for (number, (_, range)) in ranges.iter_mut().enumerate() {
            heads.extend(newest_of(range)?.map(|id| (id, number)));
        }
        let mut found = Vec::new();
        while let Some((id, number)) = heads.pop() {
            let Some((kind, range)) = ranges.get_mut(number) else {
                continue;
            };
            if skip > 0 {
                skip -= 1;
            } else {
                found.push(EntryPlace { id, kind: *kind });
            }
            if u32::try_from(found.len()).unwrap_or(u32::MAX) >= size {
                break;
            }
            heads.extend(newest_of(range)?.map(|id| (id, number)));
        }
        Ok(found)
    }

    /// The entries of a time span, kind by kind.
    fn ranges(&self, stretch: TimeSpan) -> impl Iterator<Item = Iter> {
        self.kinds.iter().map(move |kind| {
            let prefix = key::log::of_kind(key::log::of_customer(self.customer), *kind);
            self.range(&prefix, stretch)
        })
    }

    /// The keys of a time span under a prefix, without those of a removed customer.
    fn range(&self, prefix: &[u8], stretch: TimeSpan) -> Iter {
        let mut first = key::ids_from(prefix.to_vec(), stretch.from);
        if let Some(last) = self.removed {
            first = first.max(key::behind(key::append(prefix.to_vec(), last.as_bytes())));
        }
        let end: Key = key::ids_after(prefix.to_vec(), stretch.end.plus_ms(-1)).max(first.clone());
        self.db.range::<&[u8], _>(first.as_slice()..end.as_slice())
    }

    /// The page of entries about one SIM: every entry of its devices in the window is read.
    fn page_of_sim(
        &self,
        iccid: &Iccid,
        window: TimeSpan,
        page: PageRequest,
    ) -> Result<Found, Fault> {
        let mut passing = Vec::new();
        for device in device_log::devices_of(self.customer, iccid, self.db)? {
            let newest = device_log::last_of(self.customer, device, &**self.db)?.newest();
            self.each_of_device(newest, window, |entry| {
                let is_of_sim = entry.about.as_ref().is_some_and(|it| it.iccid == *iccid);
                passing.extend(is_of_sim.then(|| EntryPlace::of(entry)));
            })?;
        }
        passing.sort_unstable_by(|one, other| other.cmp(one));
        let total = u64::try_from(passing.len()).unwrap_or(u64::MAX);
        let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
        let wanted = passing.into_iter().skip(skip);
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        Ok((total, wanted.take(size).collect()))
    }

    /// Calls a function with each entry of these kinds about a device in a time span, newest first.
    fn each_of_device(
        &self,
        newest: Option<EntryPlace>,
        stretch: TimeSpan,
        mut look: impl FnMut(&Entry),
    ) -> Result<(), Fault> {
        let mut next = newest;
        while let Some(place) = next {
            let made_at = key::made_at(*place.id.as_bytes());
            let is_removed = self.removed.is_some_and(|last| place.id <= last);
            if made_at < stretch.from || is_removed {
                break;
            }
            // What an entry names may have been removed for its age.
            let key = key::log::entry(self.customer, place);
            let Some(value) = kv::load(&**self.db, &key)? else {
                break;
            };
            next = unlink(&value)?.0;
            if made_at < stretch.end && self.kinds.contains(&place.kind) {
                look(&read_entry(&key, &value)?);
            }
        }
        Ok(())
    }
}

fn newest_of(range: &mut Iter) -> Result<Option<EntryId>, Fault> {
    match range.next_back() {
        Some(row) => last_id(&row?.0).map(Some),
        None => Ok(None),
    }
}

fn last_id(key: &[u8]) -> Result<EntryId, Fault> {
    let id = key::last_id(key).ok_or(Unreadable::Damaged("a log key"))?;
    Ok(EntryId::from_bytes(id))
}
