//! How devices are brought back from the disk, while everything else goes on.

use std::ops::RangeInclusive;

use engine::device::record::Restored;
use engine::ids::DeviceKey;
use engine::registry::homes::ArbiterId;

use super::World;
use crate::disk::Page;
use crate::event::Event;
use crate::service::PassedOver;
use crate::trace::What;

/// How soon a device whose step was not saved is brought back, and a failing disk asked again.
const STORE_RETRY_MS: i64 = 1_000;

impl World {
    pub(super) fn start(&mut self) {
        if self.service.is_up() {
            return;
        }
        self.note(What::World("the service starts"));
        self.service.start(self.chance.number());
        self.take_terms();
        self.open_desks();
        for at in self.service.homes().arbiters() {
            self.serve(at, |arbiter, turn| arbiter.restore_all(turn));
        }
        self.expect_a_rush();
    }

    /// Now and then many have waited for the service and come while it brings devices back.
    fn expect_a_rush(&mut self) {
        if self.chance.below(3) == 0 {
            let run = self.service.run();
            for _ in 0..self.nature.devices {
                let at_ms = self.now_ms + i64::from(self.chance.below(10_000));
                self.queue.push(at_ms, Event::Rush { run });
            }
        }
    }

    pub(super) fn fetch(&mut self, at: ArbiterId, who: usize, fetch: u64) {
        let at_ms = self.now_ms + self.read_ms();
        self.queue.push(at_ms, Event::Fetched { at, who, fetch });
    }

    pub(super) fn fetched(&mut self, at: ArbiterId, who: usize, fetch: u64) {
        let arbiter = self.service.arbiters().nth(at.index());
        if arbiter.is_some_and(|arbiter| arbiter.awaits(who, fetch)) {
            let found = self.read().map(|()| self.disk.durable.restored(who));
            self.serve(at, |arbiter, turn| arbiter.revive(who, found, turn));
        }
    }

    pub(super) fn be_restored_soon(&mut self, at: ArbiterId, who: usize) {
        let run = self.service.run();
        let at_ms = self.now_ms + STORE_RETRY_MS;
        self.queue.push(at_ms, Event::RestoreSoon { at, who, run });
    }

    pub(super) fn restore_soon(&mut self, at: ArbiterId, who: usize, run: u64) {
        if self.service.is_up_since(run) {
            self.serve(at, |arbiter, turn| arbiter.restore_if_away(who, turn));
        }
    }

    /// The disk reads a page a while after it is asked, and the page arrives a while after that.
    pub(super) fn ask_page(&mut self, at: ArbiterId, keys: RangeInclusive<DeviceKey>) {
        let run = self.service.run();
        let at_ms = self.now_ms + self.page_ms();
        self.queue.push(at_ms, Event::PageRead { at, keys, run });
    }

    pub(super) fn page_read(&mut self, at: ArbiterId, keys: RangeInclusive<DeviceKey>, run: u64) {
        let first = *keys.start();
        let page = self.disk.durable.page(keys);
        let at_ms = self.now_ms + self.page_ms();
        self.queue.push(
            at_ms,
            Event::Paged {
                at,
                first,
                page,
                run,
            },
        );
    }

    pub(super) fn paged(&mut self, at: ArbiterId, first: DeviceKey, mut page: Page, run: u64) {
        if !self.service.is_up_since(run) {
            return;
        }
        self.census.pages += 1;
        self.note(What::Paged {
            at,
            devices: page.devices.len(),
        });
        for (who, restored) in &mut page.devices {
            self.read_again(*who, restored);
        }
        let page = self.read().map(|()| page);
        self.serve(at, |arbiter, turn| arbiter.take_page(first, page, turn));
    }

    /// How long half a page takes: what devices and callers want goes first.
    fn page_ms(&mut self) -> i64 {
        let most_ms = match self.chance.below(4) {
            0 => 20_000,
            _ => 200,
        };
        self.read_ms() + i64::from(self.chance.below(most_ms))
    }

    /// A page is no snapshot: a part of what it says of a device may be younger than the rest.
    fn read_again(&mut self, who: usize, restored: &mut Restored) {
        if self.chance.below(2) == 0 {
            restored.pending = self.disk.durable.pending(who).cloned().collect();
        }
    }

    pub(super) fn ask_page_soon(&mut self, at: ArbiterId, first: DeviceKey) {
        let run = self.service.run();
        let at_ms = self.now_ms + STORE_RETRY_MS;
        self.queue.push(at_ms, Event::PageWanted { at, first, run });
    }

    pub(super) fn page_wanted(&mut self, at: ArbiterId, first: DeviceKey, run: u64) {
        if self.service.is_up_since(run) {
            self.serve(at, |arbiter, turn| arbiter.restore_from(first, turn));
        }
    }

    pub(super) fn passed_over(&mut self, who: usize, why: PassedOver) {
        match why {
            PassedOver::Here => self.census.passed_over_here += 1,
            PassedOver::Left => self.census.passed_over_left += 1,
        }
        self.note(What::PassedOver { who, why });
    }

    pub(super) fn restored(&mut self, at: ArbiterId, who: usize, restored: &Restored) {
        self.census.restored += 1;
        self.note(What::Restored {
            at,
            who,
            pending: restored.pending.len(),
        });
        let durable = &self.disk.durable;
        let verdict = self.judge.restored(self.now_ms, who, restored, durable);
        self.check(verdict);
    }
}
