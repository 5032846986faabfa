//! How many entries does the log have, and about how many devices? Counted with every entry that is
//! written or removed, in the same group.

use engine::admin_log::entry::{Category, Entry};
use engine::ids::{CustomerId, DeviceKey, EntryId};
use sled::IVec;

use super::device_log;
use super::fault::Fault;
use super::key;
use super::key::log::count::{self, BucketSize};
use super::kv::Rows;
use super::overlay::Overlay;
use crate::record::counts::{KindCounts, read_counts, write_counts};
use crate::record::entry_place::EntryPlace;
use crate::record::last_entries::LastEntries;

/// The parts of an entry that are counted.
pub(super) struct CountedEntry {
    customer: CustomerId,
    category: Category,
    place: EntryPlace,
    device: Option<DeviceKey>,
}

impl CountedEntry {
    /// The counted parts of this entry.
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            customer: entry.customer.clone(),
            category: entry.category,
            place: EntryPlace::of(entry),
            device: entry.about.as_ref().map(|about| about.key),
        }
    }

    /// The memory it takes while it is queued, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.customer.as_str().len()
    }

    /// Counts an entry that is written. Returns the last entries about its device before it.
    pub(super) fn enter(&self, rows: &mut Overlay<'_>) -> Result<LastEntries, Fault> {
        self.count(1, rows)?;
        self.change_last(|last| last.with(self.category, self.place), rows)
    }

    /// Counts an entry that is removed.
    pub(super) fn leave(&self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        self.count(-1, rows)?;
        let removed = |last: LastEntries| last.without(self.category, self.place);
        self.change_last(removed, rows).map(drop)
    }

    fn count(&self, delta: i64, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let place = self.place.kind.place();
        for span in BucketSize::ALL {
            let key = IVec::from(count::entries(
                &self.customer,
                span,
                span.bucket_of(self.place.id),
            ));
            let mut counts = match rows.row(&key)? {
                Some(row) => read_counts(&row)?,
                None => KindCounts::default(),
            };
            let was_zero = counts.are_zero();
            counts.add(place, delta);
            let is_zero = counts.are_zero();
            if is_zero {
                rows.remove(key);
            } else {
                rows.put(key, IVec::from(write_counts(&counts)));
            }
            if span == BucketSize::FiveSeconds && was_zero != is_zero {
                self.list_bucket(!is_zero, rows);
            }
        }
        Ok(())
    }

    /// Lists the bucket of the entry by its age while it has entries.
    fn list_bucket(&self, has_entries: bool, rows: &mut Overlay<'_>) {
        let bucket = BucketSize::FiveSeconds.bucket_of(self.place.id);
        let by_age = key::log::by_age(bucket, &self.customer);
        match has_entries {
            true => rows.put(by_age.into(), IVec::default()),
            false => rows.remove(by_age),
        }
    }

    /// Changes the last entries about the device, and returns what they were.
    fn change_last(
        &self,
        change: impl FnOnce(LastEntries) -> LastEntries,
        rows: &mut Overlay<'_>,
    ) -> Result<LastEntries, Fault> {
        let Some(device) = self.device else {
            return Ok(LastEntries::default());
        };
        let (before, after) = device_log::change_last(&self.customer, device, change, rows)?;
        for among in [None, Some(Category::Error), Some(Category::Info)] {
            self.move_device(among, before.among(among), after.among(among), rows)?;
        }
        Ok(before)
    }

    /// Counts the device by the quarter of an hour of its last entry.
    fn move_device(
        &self,
        among: Option<Category>,
        before: Option<EntryId>,
        after: Option<EntryId>,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let quarter = |last| BucketSize::Quarter.bucket_of(last);
        let (before, after) = (before.map(quarter), after.map(quarter));
        if before == after {
            return Ok(());
        }
        for (quarter, delta) in [(before, -1), (after, 1)] {
            if let Some(quarter) = quarter {
                let key = count::devices_in(&self.customer, among, quarter);
                rows.add(IVec::from(key), delta)?;
            }
        }
        Ok(())
    }
}
