//! Which is the newest event of each device?
//!
//! Every event is stored with the number of the one before it, so the newest is where the history
//! of a device begins. A row for each device would be written with every event; instead the
//! numbers are in memory, in pages of neighbouring keys. The pages that changed are written one
//! after the other in a rolling checkpoint, about as many bytes as there are of new events, and so
//! are those with the last known values of the same devices (values.rs). The events since the page
//! that is written next was last written are read again when the store is opened: as many as the
//! fleet has devices, and not many more.

use engine::delivery::backlog::Sequence;
use engine::ids::{DeviceKey, Partition};
use engine::limits::PARTITIONS;
use sled::{IVec, Tree};

use super::recent::RecentEvents;
use super::values::{Report, Reports, write_page as write_value_page};
use super::{PAGES, page_of};
use crate::record::Unreadable;
use crate::record::heads::{
    CheckpointV2, DeviceHead, SECTIONS, read_checkpoint, read_page, write_checkpoint, write_page,
};
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::kv::{self, Value};
use crate::sled::overlay::Overlay;

/// The pages of the devices of a partition.
const PAGES_OF_PARTITION: u16 = PAGES / PARTITIONS as u16;

/// The pages of a section.
const SECTION_PAGES: usize = PAGES as usize / SECTIONS;

/// The fewest bytes of new events for which a page is written: a row costs as much as so many bytes
/// in it.
const PAGE_COST_MIN: i64 = 4_096;

/// For how many bytes an event counts beside its values, and so does a number in a page: a page is
/// written for as many events as it has devices.
pub(super) const EVENT_BYTES: usize = 64;

/// By how many devices a page grows at once.
const GROWTH: usize = 4;

/// The newest events of all devices, and what they reported since their pages were written.
pub(in crate::sled) struct Heads {
    pages: Vec<Page>,
    /// The last known values a device may have; nothing if they do not follow from the events.
    values_max: Option<u32>,
    /// The pages whose reports are in rows once the group is durable.
    written: Vec<u16>,
    /// The last events before the store was opened.
    pub(super) recent: RecentEvents,
}

/// Those of devices with neighbouring keys, in the order of the keys.
#[derive(Clone, Default)]
struct Page {
    heads: Vec<DeviceHead>,
    /// Whether it has changes that are not written.
    is_changed: bool,
    /// What is not in its last known values.
    reports: Reports,
}

/// How far the pages are written.
pub(super) struct Checkpoint {
    written: CheckpointV2,
    /// The bytes of new events that no page was written for; less than none after a large page.
    due: i64,
}

impl Heads {
    /// Reads the pages; the events after [`Checkpoint::complete_to`] must follow.
    pub(super) fn load(tree: &Tree, values_max: Option<u32>) -> Result<Self, Fault> {
        let mut pages = vec![Page::default(); usize::from(PAGES)];
        for key in tree.scan_prefix(key::event::head_pages()).keys() {
            let key = key?;
            let place = key::event::page_of_key(&key);
            let page = place.and_then(|place| pages.get_mut(usize::from(place)));
            let page = page.ok_or(Unreadable::Damaged("a page of no devices"))?;
            if let Some(value) = kv::load(tree, &key)? {
                page.heads = read_page(&value)?;
            }
        }
        Ok(Self {
            pages,
            values_max,
            written: Vec::new(),
            recent: RecentEvents::default(),
        })
    }

    /// The newest event of a device.
    pub(in crate::sled) fn newest(&self, device: DeviceKey) -> Option<Sequence> {
        let heads = &self.pages.get(usize::from(page_of(device)))?.heads;
        let place = heads.binary_search_by_key(&device, |head| head.0).ok()?;
        heads.get(place).map(|head| head.1)
    }

    /// Records an event of a device, unless a newer one is known.
    pub(super) fn record(&mut self, device: DeviceKey, number: Sequence) {
        let Some(page) = self.pages.get_mut(usize::from(page_of(device))) else {
            return;
        };
        match page.heads.binary_search_by_key(&device, |head| head.0) {
            Ok(place) => {
                if let Some(head) = page.heads.get_mut(place).filter(|head| head.1 < number) {
                    head.1 = number;
                    page.is_changed = true;
                }
            }
            Err(place) => {
                if page.heads.len() == page.heads.capacity() {
                    page.heads.reserve_exact(GROWTH);
                }
                page.heads.insert(place, (device, number));
                page.is_changed = true;
            }
        }
    }

    /// Records a report, which may be in a page up to a number already.
    pub(super) fn report(&mut self, report: &Report<'_>) {
        let page = self.pages.get_mut(usize::from(page_of(report.device)));
        if let Some(page) = page.filter(|_| self.values_max.is_some()) {
            page.reports.push(report);
        }
    }

    /// Drops what a device reported up to a number, because it was removed then.
    pub(super) fn forget_reports(&mut self, device: DeviceKey, last: Sequence) {
        if let Some(page) = self.pages.get_mut(usize::from(page_of(device))) {
            page.reports.forget(device, last);
        }
    }

    /// What a device reported that is not in its page.
    pub(super) fn reports_of(&self, device: DeviceKey) -> Reports {
        let page = self.pages.get(usize::from(page_of(device)));
        page.map_or_else(Reports::default, |page| page.reports.of(device))
    }

    /// The last known values a device may have.
    pub(super) fn values_max(&self) -> u32 {
        self.values_max.unwrap_or(u32::MAX)
    }

    /// Drops what the pages have that were written: the group is durable.
    pub(super) fn settle(&mut self) {
        for place in self.written.drain(..) {
            if let Some(page) = self.pages.get_mut(usize::from(place)) {
                page.reports = Reports::default();
            }
        }
    }

    /// Writes the last known values of the devices of a partition that reported something up to a
    /// number: those events are about to be removed.
    pub(super) fn write_values_before(
        &mut self,
        partition: Partition,
        (last, newest): (Sequence, Sequence),
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let first = u16::from(partition.0) * PAGES_OF_PARTITION;
        for place in first..first + PAGES_OF_PARTITION {
            let page = self.pages.get(usize::from(place));
            if page.is_some_and(|page| page.reports.reach_back_to(last)) {
                self.write_values(place, newest, rows)?;
            }
        }
        Ok(())
    }

    /// Writes a page, as far as it changed, and returns the bytes for which it counts. Devices
    /// without an event from the oldest number on are left out: those events are no longer stored.
    fn write(
        &mut self,
        place: u16,
        (oldest, newest): (Sequence, Sequence),
        rows: &mut Overlay<'_>,
    ) -> Result<i64, Fault> {
        let Some(page) = self.pages.get_mut(usize::from(place)) else {
            return Ok(0);
        };
        if !page.is_changed && page.reports.is_empty() {
            return Ok(0);
        }
        let mut bytes = 0;
        if std::mem::take(&mut page.is_changed) {
            page.heads.retain(|head| head.1 >= oldest);
            bytes += page.heads.len() * EVENT_BYTES;
            let key = key::event::head_page(place);
            let value = Value::cut(&key, &write_page(&page.heads));
            rows.replace(key.into(), value)?;
        }
        bytes += self.write_values(place, newest, rows)?;
        Ok(PAGE_COST_MIN.max(i64::try_from(bytes).unwrap_or(i64::MAX)))
    }

    /// Writes the last known values of a page, with what was reported up to a number, and returns
    /// their size. They are in memory until [`Self::settle`].
    fn write_values(
        &mut self,
        place: u16,
        newest: Sequence,
        rows: &mut Overlay<'_>,
    ) -> Result<usize, Fault> {
        let page = self.pages.get(usize::from(place));
        let Some(page) = page.filter(|page| !page.reports.is_empty()) else {
            return Ok(0);
        };
        let bytes = write_value_page(place, (&page.reports, newest), self.values_max(), rows)?;
        self.written.push(place);
        Ok(bytes)
    }
}

impl Checkpoint {
    /// Reads how far the pages are written.
    pub(super) fn load(tree: &Tree) -> Result<Self, Fault> {
        let written = match tree.get(key::event::checkpoint())? {
            Some(row) => read_checkpoint(&row)?,
            None => CheckpointV2::default(),
        };
        Ok(Self { written, due: 0 })
    }

    /// Up to which number every event is in a page.
    pub(super) fn complete_to(&self) -> Sequence {
        self.written.complete_to()
    }

    /// Up to which number every event of a device is in its page.
    pub(super) fn complete_to_of(&self, device: DeviceKey) -> Sequence {
        let section = usize::from(page_of(device)) / SECTION_PAGES;
        let complete_to = self.written.sections.get(section);
        Sequence(complete_to.copied().unwrap_or_default())
    }

    /// Writes the pages that are due after so many bytes of events more. The pages have every event
    /// up to `newest`, and none before `oldest` is stored.
    pub(super) fn advance(
        &mut self,
        bytes: usize,
        heads: &mut Heads,
        (oldest, newest): (Sequence, Sequence),
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.due = self.due.saturating_add(bytes);
        let before = self.due;
        let mut looked_at = 0;
        while self.due >= PAGE_COST_MIN && looked_at < PAGES {
            self.due -= self.write(heads, (oldest, newest), rows)?;
            looked_at += 1;
        }
        if self.due < before {
            let row = IVec::from(write_checkpoint(&self.written));
            rows.put(key::event::checkpoint().into(), row);
        }
        if looked_at == PAGES {
            // Nothing is left to be written.
            self.due = 0;
        }
        Ok(())
    }

    /// Writes pages until so many rows are written, or the last page is; returns whether that is.
    /// None counts as written before all are: a section is complete only with its last page.
    pub(super) fn write_pages(
        &mut self,
        heads: &mut Heads,
        (oldest, newest): (Sequence, Sequence),
        rows_max: usize,
        rows: &mut Overlay<'_>,
    ) -> Result<bool, Fault> {
        while rows.len() < rows_max {
            self.write(heads, (oldest, newest), rows)?;
            if self.written.next_page == 0 {
                let row = IVec::from(write_checkpoint(&self.written));
                rows.put(key::event::checkpoint().into(), row);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the next page, if it changed, and returns the bytes for which it counts.
    fn write(
        &mut self,
        heads: &mut Heads,
        (oldest, newest): (Sequence, Sequence),
        rows: &mut Overlay<'_>,
    ) -> Result<i64, Fault> {
        let page = self.written.next_page;
        let place = usize::from(page);
        if place.is_multiple_of(SECTION_PAGES) {
            self.written.begun_at = newest.0;
        }
        let bytes = heads.write(page, (oldest, newest), rows)?;
        self.written.next_page = (page + 1) % PAGES;
        let section = self.written.sections.get_mut(place / SECTION_PAGES);
        if let Some(complete_to) = section
            && (place + 1).is_multiple_of(SECTION_PAGES)
        {
            *complete_to = self.written.begun_at;
        }
        Ok(bytes)
    }
}
