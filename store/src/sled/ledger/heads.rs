//! Which is the newest event of each device?
//!
//! Every event is stored with the number of the one before it, so the newest is where the history
//! of a device begins. A row for each device would be written with every event; instead the
//! numbers are in memory, in pages of neighbouring keys. The pages that changed are written one
//! after the other in a rolling checkpoint, about a number for each new event. The events since the
//! page that is written next was last written are read again when the store is opened: as many as
//! the fleet has devices, and not many more.

use engine::delivery::backlog::Sequence;
use engine::ids::DeviceKey;
use sled::{IVec, Tree};

use super::recent::RecentEvents;
use crate::record::Unreadable;
use crate::record::heads::{
    CheckpointV2, DeviceHead, SECTIONS, read_checkpoint, read_page, write_checkpoint, write_page,
};
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::kv::{self, Value};
use crate::sled::overlay::Overlay;

/// A million devices fill a page with 3 KB, one row.
const PAGES: u16 = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 13;

/// The pages of a section.
const SECTION_PAGES: usize = PAGES as usize / SECTIONS;

/// The fewest events for which a page is written: a row costs as much as so many numbers in it.
const PAGE_COST_MIN: u64 = 32;

/// By how many devices a page grows at once.
const GROWTH: usize = 4;

/// The newest events of all devices.
pub(in crate::sled) struct Heads {
    pages: Vec<Page>,
    /// The last events before the store was opened.
    pub(super) recent: RecentEvents,
}

/// Those of devices with neighbouring keys, in the order of the keys.
#[derive(Clone, Default)]
struct Page {
    heads: Vec<DeviceHead>,
    /// Whether it has changes that are not written.
    is_changed: bool,
}

/// How far the pages are written.
pub(super) struct Checkpoint {
    written: CheckpointV2,
    /// The events that no page was written for.
    events: u64,
}

impl Heads {
    /// Reads the pages; the events after [`Checkpoint::complete_to`] must follow.
    pub(super) fn load(tree: &Tree) -> Result<Self, Fault> {
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
        let recent = RecentEvents::default();
        Ok(Self { pages, recent })
    }

    /// The newest event of a device.
    pub(in crate::sled) fn newest(&self, device: DeviceKey) -> Option<Sequence> {
        let heads = &self.pages.get(page_of(device))?.heads;
        let place = heads.binary_search_by_key(&device, |head| head.0).ok()?;
        heads.get(place).map(|head| head.1)
    }

    /// Records an event of a device, unless a newer one is known.
    pub(super) fn record(&mut self, device: DeviceKey, number: Sequence) {
        let Some(page) = self.pages.get_mut(page_of(device)) else {
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

    /// The events for which a page is written: as many as it has numbers. One without changes is
    /// not written.
    fn cost(&self, place: usize) -> u64 {
        let page = self.pages.get(place).filter(|page| page.is_changed);
        page.map_or(0, |page| PAGE_COST_MIN.max(page.heads.len() as u64))
    }

    /// Writes a page, if it changed. Devices without an event from a number on are left out: those
    /// events are no longer stored.
    fn write(&mut self, place: u16, oldest: Sequence, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        let Some(page) = self.pages.get_mut(usize::from(place)) else {
            return Ok(());
        };
        if std::mem::take(&mut page.is_changed) {
            page.heads.retain(|head| head.1 >= oldest);
            let key = key::event::head_page(place);
            let value = Value::cut(&key, &write_page(&page.heads));
            rows.replace(key.into(), value)?;
        }
        Ok(())
    }
}

impl Checkpoint {
    /// Reads how far the pages are written.
    pub(super) fn load(tree: &Tree) -> Result<Self, Fault> {
        let written = match tree.get(key::event::checkpoint())? {
            Some(row) => read_checkpoint(&row)?,
            None => CheckpointV2::default(),
        };
        Ok(Self { written, events: 0 })
    }

    /// Up to which number every event is in a page.
    pub(super) fn complete_to(&self) -> Sequence {
        self.written.complete_to()
    }

    /// Writes the pages that are due after some events more. The pages have every event up to
    /// `newest`, and none before `oldest` is stored.
    pub(super) fn advance(
        &mut self,
        events: usize,
        heads: &mut Heads,
        (oldest, newest): (Sequence, Sequence),
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        self.events = self.events.saturating_add(events as u64);
        let before = self.events;
        for _ in 0..PAGES {
            let cost = heads.cost(self.written.next_page.into());
            let Some(left) = self.events.checked_sub(cost) else {
                self.put_after(before, rows);
                return Ok(());
            };
            self.events = left;
            self.write(heads, (oldest, newest), rows)?;
        }
        self.put_after(before, rows);
        self.events = 0;
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

    /// Writes the next page, if it changed.
    fn write(
        &mut self,
        heads: &mut Heads,
        (oldest, newest): (Sequence, Sequence),
        rows: &mut Overlay<'_>,
    ) -> Result<(), Fault> {
        let page = self.written.next_page;
        let place = usize::from(page);
        if place.is_multiple_of(SECTION_PAGES) {
            self.written.begun_at = newest.0;
        }
        heads.write(page, oldest, rows)?;
        self.written.next_page = (page + 1) % PAGES;
        let section = self.written.sections.get_mut(place / SECTION_PAGES);
        if let Some(complete_to) = section
            && (place + 1).is_multiple_of(SECTION_PAGES)
        {
            *complete_to = self.written.begun_at;
        }
        Ok(())
    }

    /// Notes how far the pages are written, if one was.
    fn put_after(&self, events_before: u64, rows: &mut Overlay<'_>) {
        if self.events < events_before {
            let row = IVec::from(write_checkpoint(&self.written));
            rows.put(key::event::checkpoint().into(), row);
        }
    }
}

/// The page of a device: the first bits of its key.
fn page_of(device: DeviceKey) -> usize {
    let [high, low, ..] = *device.as_bytes();
    usize::from(u16::from_be_bytes([high, low]) >> (u16::BITS - PAGE_BITS))
}
