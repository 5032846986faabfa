//! Faults beyond the network: the service crashes, an actor panics, the disk is full.

use engine::limits::PANICS_MAX;

use super::{Activity, World};
use crate::event::Event;
use crate::service::InjectedPanic;
use crate::trace::TraceEvent;

impl World {
    /// A fault happens, and the next one is scheduled.
    pub(super) fn inject_fault(&mut self) {
        let at_ms = self.later_ms() + 10 * self.settings.pace_ms;
        self.queue.push(at_ms, Event::Fault);
        if self.activity != Activity::Lively {
            return;
        }
        if self.rng.below(2) == 0 && self.inject_node_fault() {
            return;
        }
        match self.rng.below(10) {
            0 => self.stop(),
            1..3 => self.crash(),
            3..6 => self.injected_panic(),
            6..8 => self.fill_the_disk(),
            _ => self.stall_the_disk(),
        }
    }

    /// The service crashes at any point. The disk may have applied some of the waiting batches
    /// without a receipt; the others are lost.
    pub(crate) fn crash(&mut self) {
        let done = self.rng.below(self.disk.waiting() as u32 + 1);
        self.crash_after(done);
    }

    /// The service crashes after the disk has applied this many of the waiting batches.
    pub(crate) fn crash_after(&mut self, done: u32) {
        if !self.service.is_up() {
            return;
        }
        self.census.crashes += 1;
        self.note(TraceEvent::World("the service crashes"));
        for id in self.service.shard_map().arbiters() {
            self.count_associations(id);
        }
        self.service.crash();
        self.links.clear();
        self.callers.hang_up();
        self.unread_profiles.fill(0);
        for _ in 0..done {
            if let Some(batch) = self.disk.next_batch() {
                self.census.durable_without_receipt += 1;
                self.write(batch);
            }
        }
        while let Some(batch) = self.disk.next_batch() {
            self.census.forgotten += 1;
            self.laws.forgotten(batch.author.step());
        }
        self.disk.busy_until_ms = self.now_ms;
        self.disk.durable.end();
        let verdict = self.laws.crashed(&self.disk.durable);
        self.check(verdict);
        let down_ms = match self.rng.below(4) {
            0 => self.later_ms() - self.now_ms,
            _ => i64::from(self.rng.below(3_000)),
        };
        self.queue.push(self.now_ms + down_ms, Event::Start);
    }

    fn injected_panic(&mut self) {
        let who = self.anybody();
        let injected_panic = match self.rng.below(2) {
            0 => InjectedPanic::Deciding,
            _ => InjectedPanic::Speaking,
        };
        let again = match self.rng.below(8) {
            0 => PANICS_MAX.into(),
            _ => 0,
        };
        self.inject_panic(who, injected_panic, again);
    }

    /// The actor of a device panics at its next opportunity, and at this many after it.
    pub(crate) fn inject_panic(&mut self, who: usize, injected_panic: InjectedPanic, again: u32) {
        self.note(TraceEvent::World("an actor is about to panic"));
        self.service.inject_panic(who, injected_panic, again);
    }

    fn fill_the_disk(&mut self) {
        self.note(TraceEvent::World("the disk is full"));
        let for_ms = (self.later_ms() - self.now_ms).min(60_000);
        self.fill_the_disk_for(for_ms);
    }

    /// The disk is full for a while.
    pub(crate) fn fill_the_disk_for(&mut self, for_ms: i64) {
        self.disk.full_until_ms = self.now_ms + for_ms;
    }

    fn stall_the_disk(&mut self) {
        let for_ms = i64::from(self.rng.below(20_000));
        self.stall_the_disk_for(for_ms);
    }

    /// The disk applies nothing for a while.
    pub(crate) fn stall_the_disk_for(&mut self, for_ms: i64) {
        self.note(TraceEvent::World("the disk stalls"));
        self.disk.busy_until_ms = self.disk.busy_until_ms.max(self.now_ms) + for_ms;
    }
}
