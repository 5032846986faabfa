//! Which is the newest event of each device?
//!
//! Every event is stored with the number of the one before it, so the newest is where the history
//! of a device begins. A row for each device would be written with every event; instead the
//! numbers are in memory, in pages of neighbouring keys. The pages are written one after the other
//! in a rolling checkpoint, one for every so many events, and the events after the last complete
//! checkpoint are read again when the store is opened.

use engine::delivery::backlog::Sequence;
use engine::ids::DeviceKey;
use sled::{IVec, Tree};

use super::recent::RecentEvents;
use crate::record::Unreadable;
use crate::record::heads::{
    CheckpointV1, DeviceHead, read_checkpoint, read_page, write_checkpoint, write_page,
};
use crate::sled::fault::Fault;
use crate::sled::key;
use crate::sled::kv::{self, Value};
use crate::sled::overlay::Overlay;

/// A million devices fill a page with 3 KB, one row.
const PAGES: u16 = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 13;

/// The events for which one page is written: at a million devices, 24 bytes for each.
const EVENTS_PER_PAGE: u64 = 128;

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
    written: CheckpointV1,
    /// The events that no page was written for.
    events: u64,
    pub(super) events_per_page: u64,
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
            None => CheckpointV1::default(),
        };
        Ok(Self {
            written,
            events: 0,
            events_per_page: EVENTS_PER_PAGE,
        })
    }

    /// Up to which number every event is in a page.
    pub(super) fn complete_to(&self) -> Sequence {
        Sequence(self.written.complete_to)
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
        if self.events < self.events_per_page {
            return Ok(());
        }
        while self.events >= self.events_per_page {
            self.events -= self.events_per_page;
            heads.write(self.written.next_page, oldest, rows)?;
            self.written.next_page += 1;
            if self.written.next_page == PAGES {
                self.written = CheckpointV1 {
                    next_page: 0,
                    begun_at: newest.0,
                    complete_to: self.written.begun_at,
                };
            }
        }
        let row = IVec::from(write_checkpoint(&self.written));
        rows.put(key::event::checkpoint().into(), row);
        Ok(())
    }
}

/// The page of a device: the first bits of its key.
fn page_of(device: DeviceKey) -> usize {
    let [high, low, ..] = *device.as_bytes();
    usize::from(u16::from_be_bytes([high, low]) >> (u16::BITS - PAGE_BITS))
}
