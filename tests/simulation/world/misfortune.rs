//! What goes wrong beyond the network: the service crashes, an actor panics, the disk fills.

use engine::limits::PANICS_MAX;

use super::{Mood, World};
use crate::event::Event;
use crate::service::Curse;
use crate::trace::What;

impl World {
    /// Something goes wrong, and something will go wrong later.
    pub(super) fn misfortune(&mut self) {
        let at_ms = self.later_ms() + 10 * self.nature.pace_ms;
        self.queue.push(at_ms, Event::Misfortune);
        if self.mood != Mood::Lively {
            return;
        }
        match self.chance.below(10) {
            0..3 => self.crash(),
            3..6 => self.curse(),
            6..8 => self.fill_the_disk(),
            _ => self.stall_the_disk(),
        }
    }

    /// The service dies in the middle of everything. Of what the disk had not done, it may have
    /// done a part without anybody being told; the rest is forgotten.
    pub(crate) fn crash(&mut self) {
        let done = self.chance.below(self.disk.waiting() as u32 + 1);
        self.crash_after(done);
    }

    /// The service dies when the disk has done so many of the batches that wait.
    pub(crate) fn crash_after(&mut self, done: u32) {
        if !self.service.is_up() {
            return;
        }
        self.census.crashes += 1;
        self.note(What::World("the service crashes"));
        self.service.crash();
        self.callers.hang_up();
        self.untold.fill(0);
        for _ in 0..done {
            if let Some(batch) = self.disk.next_batch() {
                self.census.durable_without_receipt += 1;
                self.write(batch);
            }
        }
        while let Some(batch) = self.disk.next_batch() {
            self.census.forgotten += 1;
            self.judge.forgotten(batch.author.step());
        }
        self.disk.busy_until_ms = self.now_ms;
        let verdict = self.judge.crashed(&self.disk.durable);
        self.check(verdict);
        let down_ms = match self.chance.below(4) {
            0 => self.later_ms() - self.now_ms,
            _ => i64::from(self.chance.below(3_000)),
        };
        self.queue.push(self.now_ms + down_ms, Event::Start);
    }

    fn curse(&mut self) {
        let who = self.anybody();
        let curse = match self.chance.below(2) {
            0 => Curse::Deciding,
            _ => Curse::Speaking,
        };
        let again = match self.chance.below(8) {
            0 => PANICS_MAX.into(),
            _ => 0,
        };
        self.curse_with(who, curse, again);
    }

    /// The actor of a device falls over at its next opportunity, and at so many after it.
    pub(crate) fn curse_with(&mut self, who: usize, curse: Curse, again: u32) {
        self.note(What::World("an actor is about to panic"));
        self.service.curse(who, curse, again);
    }

    fn fill_the_disk(&mut self) {
        self.note(What::World("the disk is full"));
        let for_ms = (self.later_ms() - self.now_ms).min(60_000);
        self.fill_the_disk_for(for_ms);
    }

    /// The disk takes nothing in for a while.
    pub(crate) fn fill_the_disk_for(&mut self, for_ms: i64) {
        self.disk.full_until_ms = self.now_ms + for_ms;
    }

    fn stall_the_disk(&mut self) {
        let for_ms = i64::from(self.chance.below(20_000));
        self.stall_the_disk_for(for_ms);
    }

    /// The disk does nothing for a while.
    pub(crate) fn stall_the_disk_for(&mut self, for_ms: i64) {
        self.note(What::World("the disk stalls"));
        self.disk.busy_until_ms = self.disk.busy_until_ms.max(self.now_ms) + for_ms;
    }
}
