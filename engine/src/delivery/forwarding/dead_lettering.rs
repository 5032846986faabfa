//! What is tried, and what is set aside: because its destination is in failure, or too much waits.

use crate::admin_log::entry::Entry;
use crate::change::Change;
use crate::delivery::backlog::{DeadLetter, QueuedEvent, Sequence};
use crate::delivery::destination::{DestinationState, Replay};
use crate::delivery::forwarding::device_queues::OpenEvent;
use crate::delivery::forwarding::shard_cursor::ShardCursor;
use crate::delivery::forwarding::task::ForwarderOutput;
use crate::delivery::forwarding::{Forwarding, ReplayUnderWay, Replaying};
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
        dead_letters: &[Sequence],
        out: &mut ForwarderOutput,
    ) -> Result<(), ReplayUnderWay> {
        if self.replay != Replaying::No {
            return Err(ReplayUnderWay);
        }
        for sequence in dead_letters {
            self.unsaved.discard(*sequence);
        }
        self.go_on(m, out);
        Ok(())
    }

    /// Takes up an event that was read. One behind its place in the shard may be an exception, of
    /// which it knows.
    pub(super) fn take_up(&mut self, m: &Moment, waiting: QueuedEvent) {
        let sequence = waiting.sequence;
        let cursor = self.cursors.get(&waiting.shard());
        if self.queues.has(sequence) || cursor.is_some_and(|cursor| cursor.is_done_with(sequence)) {
            return;
        }
        if !self.destination.event_types.has(waiting.event_type) {
            // It waited, too.
            self.excess = self.excess.saturating_sub(1);
            return self.pass_over(m.now(), &waiting);
        }
        if self.is_failed() {
            return self.dead_letter_unqueued(m.now(), waiting, 0, IN_FAILURE);
        }
        if self.excess > 0 {
            self.dead_letter_older(m.now(), waiting.shard());
            self.excess = self.excess.saturating_sub(1);
            return self.dead_letter_unqueued(m.now(), waiting, 0, TOO_MANY);
        }
        if let Some(cursor) = self.cursors.get_mut(&waiting.shard()) {
            cursor.open(sequence);
        }
        self.queues.add(waiting);
        self.retry_behind(m.now(), waiting);
    }

    /// Sets aside what is open of a shard: it is older than what is to be.
    fn dead_letter_older(&mut self, now: Timestamp, shard: Shard) {
        for open in self.take_open(now, shard) {
            self.excess = self.excess.saturating_sub(1);
            self.pass(now, &open.queued);
            self.dead_letter(now, open.queued, open.tries, TOO_MANY);
        }
    }

    /// What is open of a shard, but for what is under way: that becomes an exception, so that it
    /// does not keep the place of the shard where it is.
    fn take_open(&mut self, now: Timestamp, shard: Shard) -> Vec<OpenEvent> {
        let cursor = self.cursors.get(&shard);
        let all_open = cursor.map(ShardCursor::all_open).unwrap_or_default();
        let mut landed = Vec::new();
        for sequence in all_open {
            let Some(open) = self.queues.find(sequence) else {
                continue;
            };
            match self.queues.retry_in_flight(sequence) {
                Some(tries) => self.note_retrying(open.queued, tries, now),
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
        out: &mut ForwarderOutput,
    ) {
        self.become_state(m, DestinationState::Failed);
        self.destination.replay = Replay::None;
        self.replay = Replaying::No;
        self.queues.resume_fresh();
        self.excess = 0;
        let entry = Entry::integration_disabled(m, &self.destination, why);
        out.change(Change::AppendEntry(Box::new(entry)));
        let shards: Vec<Shard> = self.cursors.keys().copied().collect();
        for shard in shards {
            self.take_open(m.now(), shard);
        }
        for open in self.queues.idle() {
            let (waiting, tries) = (open.queued, open.tries);
            let why = match waiting.sequence == sequence {
                true => why,
                false => IN_FAILURE,
            };
            self.pass(m.now(), &waiting);
            self.dead_letter(m.now(), waiting, tries, why);
        }
    }

    /// Sets aside what was under way when the destination failed, if the service fell before it
    /// ended: nobody will say how it did.
    pub(super) fn dead_letter_idle(&mut self, now: Timestamp) {
        if self.queues.open() > self.queues.in_flight() {
            for open in self.queues.idle() {
                self.pass(now, &open.queued);
                self.dead_letter(now, open.queued, open.tries, IN_FAILURE);
            }
        }
    }

    /// Sets an event aside that was never open.
    fn dead_letter_unqueued(&mut self, now: Timestamp, waiting: QueuedEvent, tries: u8, why: &str) {
        self.pass_over(now, &waiting);
        self.dead_letter(now, waiting, tries, why);
    }

    pub(super) fn dead_letter(
        &mut self,
        now: Timestamp,
        waiting: QueuedEvent,
        tries: u8,
        why: &str,
    ) {
        self.unsaved.dead_letter(DeadLetter {
            queued: waiting,
            tries,
            at: now,
            why: why.into(),
        });
    }
}
