//! Which entries does the administration log have?
//!
//! The bounds of a window are bounds of ids, because ids sort by time. Entries are stored kind by
//! kind, so a list merges the kinds it wants, newest first; its total, and the number of entries
//! before a page, come from counts (`counts`). Only a list of one SIM reads keys one by one, those
//! of that SIM. An entry is read only if it is shown.

mod counts;
mod time_span;

use std::collections::BinaryHeap;

use engine::admin_log::entry::Entry;
use engine::ids::{CustomerId, EntryId, Iccid};
use engine::limits::LOG_ENTRIES_SEARCHED_MAX;
use engine::query::{EntryKind, LogFilter, LogSearchTooBroad, Page, PageRequest};
use sled::{Db, Iter};

use super::load;
use crate::sled::fault::Fault;
use crate::sled::key::log::Kind;
use crate::sled::key::log::count::BucketSize;
use crate::sled::key::{self, Key};
use crate::sled::record::Unreadable;
use crate::sled::record::counts::read_counts;
use crate::sled::record::entry::{read_entry, read_payload};
use crate::sled::record::number::read_last_entry;

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
    for (id, kind) in wanted {
        let key = key::log::entry_of(&filter.customer, kind, id);
        items.extend(load(db, &key, read_entry)?);
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
    for (id, place) in passing {
        let key = key::log::entry_of(&filter.customer, place, id);
        let entry = load(db, &key, read_entry)?;
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
        let key = key::log::entry_of(customer, kind, id);
        if let Some(found) = load(db, &key, read_entry)? {
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
type Found = (u64, Vec<(EntryId, Kind)>);

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
    ) -> Result<Vec<(EntryId, Kind)>, Fault> {
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
                found.push((id, *kind));
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

    /// The page of entries about one SIM: every entry about it in the window is counted one by one.
    fn page_of_sim(
        &self,
        iccid: &Iccid,
        window: TimeSpan,
        page: PageRequest,
    ) -> Result<Found, Fault> {
        let prefix = key::log::of_iccid(self.customer, iccid);
        let last_wanted = page.skip().saturating_add(u64::from(page.size));
        let mut total = 0;
        let mut wanted = Vec::new();
        for key in self.range(&prefix, window).keys().rev() {
            let (id, kind) =
                key::log::entry_from_iccid(&key?).ok_or(Unreadable::Damaged("an index of logs"))?;
            if !self.kinds.contains(&kind) {
                continue;
            }
            if total >= page.skip() && total < last_wanted {
                wanted.push((id, kind));
            }
            total += 1;
        }
        Ok((total, wanted))
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
