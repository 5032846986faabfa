//! How many entries does the log have, and about how many devices? Counted with every entry that is
//! written or removed, in the same group.

use engine::admin_log::entry::{Category, Entry, Subject};
use engine::ids::{CustomerId, DeviceKey, EntryId};
use sled::IVec;

use super::fault::Fault;
use super::key::log::Kind;
use super::key::log::count::{self, BucketSize};
use super::kv::Rows;
use super::overlay::Overlay;
use super::record::counts::{KindCounts, read_counts, write_counts};
use super::record::last_entries::{LastEntries, read_last_entries, write_last_entries};

/// The parts of an entry that are counted.
pub(super) struct CountedEntry {
    id: EntryId,
    customer: CustomerId,
    category: Category,
    subject: Subject,
    device: Option<DeviceKey>,
}

impl CountedEntry {
    /// The counted parts of this entry.
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            id: entry.id,
            customer: entry.customer.clone(),
            category: entry.category,
            subject: entry.subject,
            device: entry.about.as_ref().map(|about| about.key),
        }
    }

    /// The memory it takes while it is queued, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.customer.as_str().len()
    }

    /// Counts an entry that is written.
    pub(super) fn enter(&self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        self.count(1, rows)?;
        self.tell(|last| last.with(self.category, self.id), rows)
    }

    /// Counts an entry that is removed.
    pub(super) fn leave(&self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        self.count(-1, rows)?;
        self.tell(|last| last.without(self.category, self.id), rows)
    }

    fn count(&self, delta: i64, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let place = Kind::new(self.category, self.subject).place();
        for span in BucketSize::ALL {
            let key = IVec::from(count::entries(
                &self.customer,
                span,
                span.bucket_of(self.id),
            ));
            let mut counts = match rows.row(&key)? {
                Some(row) => read_counts(&row)?,
                None => KindCounts::default(),
            };
            counts.add(place, delta);
            if counts.are_zero() {
                rows.remove(key);
            } else {
                rows.put(key, IVec::from(write_counts(&counts)));
            }
        }
        Ok(())
    }

    /// Updates the last entries about the device.
    fn tell(
        &self,
        change: impl FnOnce(LastEntries) -> LastEntries,
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let Some(device) = self.device else {
            return Ok(());
        };
        let key = IVec::from(count::device(&self.customer, device));
        let before = match rows.row(&key)? {
            Some(row) => read_last_entries(&row)?,
            None => LastEntries::default(),
        };
        let after = change(before);
        if after == before {
            return Ok(());
        }
        for among in [None, Some(Category::Error), Some(Category::Info)] {
            self.move_device(among, before.among(among), after.among(among), rows)?;
        }
        match after.among(None) {
            Some(_) => rows.put(key, IVec::from(write_last_entries(&after).as_slice())),
            None => rows.remove(key),
        }
        Ok(())
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
