//! What is tried, and what is set aside: because its destination is in failure, or too much waits.

use crate::admin_log::entry::Entry;
use crate::change::Change;
use crate::delivery::destination::{DestinationState, Replay};
use crate::delivery::forwarding::errand::Errands;
use crate::delivery::forwarding::lanes::Open;
use crate::delivery::forwarding::place::Place;
use crate::delivery::forwarding::{Forwarding, ReplayUnderWay, Replaying};
use crate::delivery::letter::{DeadLetter, Sequence, Waiting};
use crate::ids::Shard;
use crate::moment::{Moment, Timestamp};

/// Why an event is set aside that was not tried, or not to the end.
const IN_FAILURE: &str = "the integration has failed";

/// Why an event is set aside that is one of too many.
const TOO_MANY: &str = "too many events were waiting";

impl Forwarding {
    /// Gives up these dead letters for good.
    pub(in crate::delivery) fn discard(
        &mut self,
        m: &mut Moment,
        letters: &[Sequence],
        out: &mut Errands,
    ) -> Result<(), ReplayUnderWay> {
        if self.replay != Replaying::No {
            return Err(ReplayUnderWay);
        }
        for sequence in letters {
            self.unsaved.discard(*sequence);
        }
        self.go_on(m, out);
        Ok(())
    }

    /// Takes up an event that was read. One behind its place in the shard may be an exception, of
    /// which it knows.
    pub(super) fn take_up(&mut self, m: &Moment, waiting: Waiting) {
        let sequence = waiting.sequence;
        let place = self.places.get(&waiting.shard());
        if self.lanes.has(sequence) || place.is_some_and(|place| place.is_done_with(sequence)) {
            return;
        }
        if !self.destination.wants.has(waiting.event_type) {
            // It waited, too.
            self.excess = self.excess.saturating_sub(1);
            return self.pass_over(m.now(), &waiting);
        }
        if self.is_failed() {
            return self.set_aside(m.now(), waiting, 0, IN_FAILURE);
        }
        if self.excess > 0 {
            self.set_older_aside(m.now(), waiting.shard());
            self.excess = self.excess.saturating_sub(1);
            return self.set_aside(m.now(), waiting, 0, TOO_MANY);
        }
        if let Some(place) = self.places.get_mut(&waiting.shard()) {
            place.open(sequence);
        }
        self.lanes.add(waiting);
        self.hold_behind(m.now(), waiting);
    }

    /// Sets aside what is open of a shard: it is older than what is to be.
    fn set_older_aside(&mut self, now: Timestamp, shard: Shard) {
        for open in self.take_open(now, shard) {
            self.excess = self.excess.saturating_sub(1);
            self.pass(now, &open.waiting);
            self.bury(now, open.waiting, open.tries, TOO_MANY);
        }
    }

    /// What is open of a shard, but for what is under way: that becomes an exception, so that it
    /// does not keep the place of the shard where it is.
    fn take_open(&mut self, now: Timestamp, shard: Shard) -> Vec<Open> {
        let place = self.places.get(&shard);
        let all_open = place.map(Place::all_open).unwrap_or_default();
        let mut landed = Vec::new();
        for sequence in all_open {
            let Some(open) = self.lanes.find(sequence) else {
                continue;
            };
            match self.lanes.except(sequence) {
                Some(tries) => self.note_held(open.waiting, tries, now),
                None => landed.push(open),
            }
        }
        landed
    }

    /// Gives up: whatever is open, and not under way, is set aside.
    pub(super) fn fail(
        &mut self,
        m: &mut Moment,
        sequence: Sequence,
        why: &str,
        out: &mut Errands,
    ) {
        self.become_state(m, DestinationState::Failed);
        self.destination.replay = Replay::None;
        self.replay = Replaying::No;
        self.lanes.let_fresh_go();
        self.excess = 0;
        let entry = Entry::integration_disabled(m, &self.destination, why);
        out.change(Change::AppendEntry(Box::new(entry)));
        let shards: Vec<Shard> = self.places.keys().copied().collect();
        for shard in shards {
            self.take_open(m.now(), shard);
        }
        for open in self.lanes.landed() {
            let (waiting, tries) = (open.waiting, open.tries);
            let why = match waiting.sequence == sequence {
                true => why,
                false => IN_FAILURE,
            };
            self.pass(m.now(), &waiting);
            self.bury(m.now(), waiting, tries, why);
        }
    }

    /// Sets aside what was under way when the destination failed, if the service fell before it
    /// ended: nobody will say how it did.
    pub(super) fn set_landed_aside(&mut self, now: Timestamp) {
        if self.lanes.open() > self.lanes.in_flight() {
            for open in self.lanes.landed() {
                self.pass(now, &open.waiting);
                self.bury(now, open.waiting, open.tries, IN_FAILURE);
            }
        }
    }

    /// Sets an event aside that was never open.
    fn set_aside(&mut self, now: Timestamp, waiting: Waiting, tries: u8, why: &str) {
        self.pass_over(now, &waiting);
        self.bury(now, waiting, tries, why);
    }

    pub(super) fn bury(&mut self, now: Timestamp, waiting: Waiting, tries: u8, why: &str) {
        self.unsaved.bury(DeadLetter {
            waiting,
            tries,
            at: now,
            why: why.into(),
        });
    }
}
