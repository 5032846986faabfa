//! Which events become dead letters instead of being tried: those of a failed destination, and
//! those beyond its backlog.

use crate::admin_log::entry::Entry;
use crate::change::Change;
use crate::delivery::backlog::{DeadLetter, QueuedEvent, Sequence};
use crate::delivery::destination::{DestinationState, Replay};
use crate::delivery::forwarding::device_queues::OpenEvent;
use crate::delivery::forwarding::partition_cursor::PartitionCursor;
use crate::delivery::forwarding::task::{FailedDelivery, ForwarderOutput};
use crate::delivery::forwarding::{Forwarding, ReplayUnderWay, Replaying};
use crate::ids::Partition;
use crate::moment::{Moment, Timestamp};

/// Why an event of a failed destination is a dead letter although it has tries left.
const IN_FAILURE: &str = "the integration has failed";

/// Why an event beyond the backlog is a dead letter.
const TOO_MANY: &str = "too many events were waiting";

impl Forwarding {
    /// Deletes these dead letters.
    pub(in crate::delivery) fn discard(
        &mut self,
        m: &mut Moment,
        dead_letters: &[Sequence],
        out: &mut ForwarderOutput,
    ) -> Result<(), ReplayUnderWay> {
        if self.replay != Replaying::No && !self.is_failed() {
            return Err(ReplayUnderWay);
        }
        for sequence in dead_letters {
            self.unsaved.discard(*sequence);
        }
        self.advance(m, out);
        Ok(())
    }

    /// Handles an event that was read. An event after the cursor may be a known retry.
    pub(super) fn admit(&mut self, m: &Moment, queued: QueuedEvent) {
        let sequence = queued.sequence;
        let cursor = self.cursors.get(&queued.partition());
        if self.queues.has(sequence) || cursor.is_some_and(|cursor| cursor.is_done_with(sequence)) {
            return;
        }
        if !self.destination.event_types.wants(&queued) {
            // It was counted in the backlog, too.
            self.excess = self.excess.saturating_sub(1);
            return self.pass_over(m.now(), &queued);
        }
        if self.is_failed() {
            return self.dead_letter_unqueued(m.now(), queued, 0, IN_FAILURE);
        }
        if self.excess > 0 {
            self.dead_letter_older(m.now(), queued.partition());
            self.excess = self.excess.saturating_sub(1);
            return self.dead_letter_unqueued(m.now(), queued, 0, TOO_MANY);
        }
        if let Some(cursor) = self.cursors.get_mut(&queued.partition()) {
            cursor.open(sequence);
        }
        self.queues.add(queued);
        self.retry_behind(m.now(), queued);
    }

    /// Makes the open events of a partition dead letters first: they are older.
    fn dead_letter_older(&mut self, now: Timestamp, partition: Partition) {
        for open in self.take_open(now, partition) {
            self.excess = self.excess.saturating_sub(1);
            self.pass(now, &open.queued);
            self.dead_letter(now, open.queued, open.tries, TOO_MANY);
        }
    }

    /// The open events of a partition that are not in flight. Those in flight become retries, so
    /// that they do not hold back the cursor of the partition.
    fn take_open(&mut self, now: Timestamp, partition: Partition) -> Vec<OpenEvent> {
        let cursor = self.cursors.get(&partition);
        let all_open = cursor.map(PartitionCursor::all_open).unwrap_or_default();
        let mut idle = Vec::new();
        for sequence in all_open {
            let Some(open) = self.queues.find(sequence) else {
                continue;
            };
            match self.queues.retry_in_flight(sequence) {
                Some(tries) => self.note_retrying(open.queued, tries, now),
                None => idle.push(open),
            }
        }
        idle
    }

    /// Marks the destination as failed: all open events that are not in flight become dead letters.
    pub(super) fn fail(
        &mut self,
        m: &mut Moment,
        tried: &[(QueuedEvent, u8)],
        why: &str,
        out: &mut ForwarderOutput,
    ) {
        self.become_state(m, DestinationState::Failed);
        self.destination.failure = Some(why.into());
        self.destination.replay = Replay::None;
        self.replay = Replaying::No;
        self.queues.resume_fresh();
        self.excess = 0;
        let entry = Entry::integration_disabled(m, &self.destination, why);
        out.change(Change::AppendEntry(Box::new(entry)));
        let partitions: Vec<Partition> = self.cursors.keys().copied().collect();
        for partition in partitions {
            self.take_open(m.now(), partition);
        }
        for open in self.queues.idle() {
            let (queued, tries) = (open.queued, open.tries);
            let why = match tried.iter().any(|(failed, _)| *failed == queued) {
                true => why,
                false => IN_FAILURE,
            };
            self.pass(m.now(), &queued);
            self.dead_letter(m.now(), queued, tries, why);
        }
    }

    /// Makes an event a dead letter whose tries are used up, which is logged for the customer. The
    /// next event of its device is tried.
    pub(super) fn give_up(
        &mut self,
        m: &mut Moment,
        queued: QueuedEvent,
        (tries, failure): (u8, &FailedDelivery),
        out: &mut ForwarderOutput,
    ) {
        self.pass(m.now(), &queued);
        self.dead_letter(m.now(), queued, tries, &failure.why);
        let entry = Entry::sms_not_delivered(m, &self.destination, failure);
        out.change(Change::AppendEntry(Box::new(entry)));
    }

    /// Makes events dead letters that were in flight when the destination failed, if the service
    /// crashed before the deliveries ended: their outcome is unknown.
    pub(super) fn dead_letter_idle(&mut self, now: Timestamp) {
        if self.queues.open() > self.queues.in_flight() {
            for open in self.queues.idle() {
                self.pass(now, &open.queued);
                self.dead_letter(now, open.queued, open.tries, IN_FAILURE);
            }
        }
    }

    /// Makes an event a dead letter that was never open.
    fn dead_letter_unqueued(&mut self, now: Timestamp, queued: QueuedEvent, tries: u8, why: &str) {
        self.pass_over(now, &queued);
        self.dead_letter(now, queued, tries, why);
    }

    pub(super) fn dead_letter(
        &mut self,
        now: Timestamp,
        queued: QueuedEvent,
        tries: u8,
        why: &str,
    ) {
        self.unsaved.dead_letter(DeadLetter {
            queued,
            tries,
            at: now,
            why: why.into(),
        });
    }
}
