//! How devices are restored from the disk, while everything else continues.

use std::ops::RangeInclusive;

use engine::device::record::RestoredDevice;
use engine::ids::DeviceKey;

use super::World;
use crate::disk::RestorePage;
use crate::event::Event;
use crate::service::ArbiterRun;
use crate::trace::TraceEvent;

impl World {
    pub(super) fn start(&mut self) {
        if self.service.is_up() {
            return;
        }
        self.note(TraceEvent::World("the service starts"));
        self.service.start(self.rng.number());
        let begun: Vec<ArbiterRun> = self
            .service
            .shard_map()
            .arbiters()
            .map(|id| self.take_over(id))
            .collect();
        self.apply_policy();
        self.restore_forwarders();
        self.restore_campaigns();
        for at in begun {
            self.serve(at, |arbiter, turn| arbiter.start(turn));
        }
        self.expect_a_rush();
    }

    /// Now and then devices and callers have waited for the service and act while it restores
    /// devices.
    fn expect_a_rush(&mut self) {
        if self.rng.below(3) == 0 {
            let run = self.service.run();
            for _ in 0..self.settings.devices {
                let at_ms = self.now_ms + i64::from(self.rng.below(10_000));
                self.queue.push(at_ms, Event::Rush { run });
            }
        }
    }

    /// The disk reads a page some time after the request, and the page arrives some time after
    /// that.
    pub(super) fn ask_page(&mut self, at: ArbiterRun, keys: RangeInclusive<DeviceKey>) {
        let at_ms = self.now_ms + self.page_ms();
        self.queue.push(at_ms, Event::PageRead { at, keys });
    }

    pub(super) fn page_read(&mut self, at: ArbiterRun, keys: RangeInclusive<DeviceKey>) {
        let first = *keys.start();
        let page = self.disk.durable.page(keys);
        let at_ms = self.now_ms + self.page_ms();
        self.queue.push(at_ms, Event::Paged { at, first, page });
    }

    pub(super) fn paged(&mut self, at: ArbiterRun, first: DeviceKey, mut page: RestorePage) {
        if !self.service.has(at) {
            return;
        }
        self.census.pages += 1;
        self.note(TraceEvent::Paged {
            at: at.id,
            devices: page.devices.len(),
        });
        for (who, restored) in &mut page.devices {
            self.read_again(*who, restored);
        }
        let whom: Vec<usize> = page.devices.iter().map(|(who, _)| *who).collect();
        let is_here = |world: &Self, who| {
            let mut arbiters = world.service.arbiters();
            arbiters.any(|arbiter| arbiter.run() == at && arbiter.looks_after(who))
        };
        let (here, away): (Vec<usize>, Vec<usize>) =
            whom.iter().partition(|who| is_here(self, **who));
        let page = self.read().map(|()| engine::arbiter::input::StartupPage {
            devices: page
                .devices
                .into_iter()
                .map(|(who, it)| (self.disk.durable.key(who), it))
                .collect(),
            next: page.next,
        });
        let is_read = page.is_ok();
        self.serve(at, |arbiter, turn| arbiter.paged(first, page, turn));
        if is_read {
            let left = away.iter().filter(|who| !is_here(self, **who)).count();
            self.census.passed_over_here += here.len() as u64;
            self.census.passed_over_left += left as u64;
        }
    }

    /// How long half a page takes: queries of devices and callers go first.
    fn page_ms(&mut self) -> i64 {
        let most_ms = match self.rng.below(4) {
            0 => 20_000,
            _ => 200,
        };
        self.read_ms() + i64::from(self.rng.below(most_ms))
    }

    /// A page is no snapshot: a part of the data of a device may be newer than the rest.
    fn read_again(&mut self, who: usize, restored: &mut RestoredDevice) {
        if self.rng.below(2) == 0 {
            restored.pending = self.disk.durable.pending(who).cloned().collect();
        }
    }

    pub(super) fn restored(&mut self, at: ArbiterRun, who: usize, restored: &RestoredDevice) {
        self.census.restored += 1;
        self.note(TraceEvent::Restored {
            at: at.id,
            who,
            pending: restored.pending.len(),
        });
        let durable = &self.disk.durable;
        let verdict = self.laws.restored(self.now_ms, who, restored, durable);
        self.check(verdict);
    }
}
