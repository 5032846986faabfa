//! One destination: what it is told next, what it did not take, and when that is tried again.
//!
//! [`Forwarding`] knows no device but by its key and no event but by its number. It is told which
//! shards have something new, is handed what waits there, and says what to deliver: one event of
//! a device at a time, those of many devices side by side. What a destination does not take is an
//! exception that is kept, so that its place in a shard moves on; whatever else waits for the same
//! device waits with it.
//!
//! ```text
//!               restart
//!   Failed <----------------- (its dead letters wait for a replay)
//!     |  ^ tries of one event used up
//!     v  |
//!   Active <-- RolledOut: the first event was taken
//! ```

mod dead_lettering;
mod device_queues;
mod progress;
mod reading;
mod shard_cursor;
mod task;

pub(super) use task::ForwarderOutput;
pub use task::{DeliveryOutcome, ForwarderTask};

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use crate::admin_log::entry::Entry;
use crate::change::Change;
use crate::delivery::backlog::{
    DeadLetter, DestinationProgress, PendingRetry, QueuedEvent, Sequence,
};
use crate::delivery::destination::{Destination, DestinationAmendment, DestinationState, Replay};
use crate::ids::Shard;
use crate::moment::{Moment, Timestamp};

use device_queues::DeviceQueues;
use progress::Unsaved;
use shard_cursor::{Counted, ShardCursor};

/// How deliveries are made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeliveryRules {
    /// How long after each try but the last the next one comes: there is one try more than waits.
    pub retry_delays_ms: Box<[i64]>,
    /// Deliveries to one destination that may be under way at once.
    pub parallel_max: usize,
    /// Events that may wait for one destination; beyond it its oldest become dead letters.
    pub backlog_max: u64,
}

/// Exceptions of a destination, which are kept one by one; beyond it nothing new is tried.
const RETRYING_MAX: usize = 1_024;

/// Exceptions of one device for no other reason than that they wait behind one; what comes behind
/// these keeps the place of their shard where it is, and no other shard.
const RETRYING_PER_DEVICE_MAX: usize = 64;

/// Dead letters that are taken up again in one go.
const REPLAYED_MAX: u32 = 256;

/// Failures with no success between them after which nothing new is tried until a retry succeeds:
/// an endpoint that is down is not to be called for each device.
const CONSECUTIVE_FAILURES_MAX: u32 = 8;

/// One destination.
pub struct Forwarding {
    rules: Arc<DeliveryRules>,
    destination: Destination,
    /// Where shards without a place begin.
    since: Sequence,
    cursors: BTreeMap<Shard, ShardCursor>,
    /// Shards that may be read on, each of them once.
    to_read: VecDeque<Shard>,
    /// What was asked for of shards and is to come.
    requested: usize,
    queues: DeviceQueues,
    /// Failures since the last success.
    consecutive_failures: u32,
    /// Events yet to be set aside because too many wait.
    excess: u64,
    replay: Replaying,
    unsaved: Unsaved,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Replaying {
    /// There is none.
    No,
    /// The dead letters behind this one are next.
    Behind(Option<Sequence>),
    /// They are being read.
    Reading,
}

/// Dead letters cannot be delivered again while the destination is in failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the integration has failed; restart it first")]
pub struct NotActive;

/// What is being delivered again cannot be discarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a replay is in progress; try again when `replaying` is false")]
pub struct ReplayUnderWay;

impl Forwarding {
    /// Brings a destination back from what was kept of it. What waits in these shards is read
    /// once time was looked at.
    pub fn restore(
        rules: Arc<DeliveryRules>,
        destination: Destination,
        standing: DestinationProgress,
        waiting_in: Vec<Shard>,
    ) -> Self {
        let mut cursors: BTreeMap<Shard, ShardCursor> = BTreeMap::new();
        for (shard, reached) in standing.reached {
            cursors.insert(shard, ShardCursor::at(reached));
        }
        let mut queues = DeviceQueues::default();
        for held in standing.retrying {
            queues.restore(held);
        }
        let replay = match destination.replay {
            Replay::None => Replaying::No,
            Replay::UnderWay => {
                queues.pause_fresh();
                Replaying::Behind(None)
            }
        };
        let mut forwarding = Self {
            rules,
            since: standing.since,
            cursors,
            to_read: VecDeque::new(),
            requested: 0,
            queues,
            consecutive_failures: 0,
            excess: 0,
            replay,
            unsaved: Unsaved::of(&destination),
            destination,
        };
        forwarding.note(waiting_in);
        forwarding
    }

    /// Takes note that something began to wait in these shards.
    pub(super) fn note_ready_shards(
        &mut self,
        m: &mut Moment,
        shards: Vec<Shard>,
        out: &mut ForwarderOutput,
    ) {
        self.note(shards);
        self.go_on(m, out);
    }

    /// Takes what was read of a shard, which was asked for by [`ForwarderTask::Read`].
    pub(super) fn handle_events_read(
        &mut self,
        m: &mut Moment,
        shard: Shard,
        rows: Vec<QueuedEvent>,
        out: &mut ForwarderOutput,
    ) {
        if let Some(cursor) = self.cursors.get_mut(&shard) {
            let asked = cursor.note_read(rows.last().map(|row| row.sequence), rows.len());
            self.requested -= asked as usize;
            self.unsaved.note_moved(m.now(), shard);
        }
        for waiting in rows {
            self.take_up(m, waiting);
        }
        self.queue(shard);
        self.go_on(m, out);
    }

    /// Takes the dead letters that [`ForwarderTask::ReadDeadLetters`] read.
    pub(super) fn handle_dead_letters_read(
        &mut self,
        m: &mut Moment,
        dead_letters: Vec<DeadLetter>,
        out: &mut ForwarderOutput,
    ) {
        if self.replay == Replaying::Reading {
            self.replay = match dead_letters.last() {
                Some(last) if dead_letters.len() >= REPLAYED_MAX as usize => {
                    Replaying::Behind(Some(last.queued.sequence))
                }
                Some(_) | None => Replaying::No,
            };
            for dead_letter in dead_letters {
                self.requeue(m.now(), dead_letter.queued);
            }
            if self.replay == Replaying::No {
                self.destination.replay = Replay::None;
                self.unsaved.put_destination();
                self.queues.resume_fresh();
            }
        }
        self.go_on(m, out);
    }

    /// Takes what came of a delivery.
    pub(super) fn handle_delivered(
        &mut self,
        m: &mut Moment,
        sequence: Sequence,
        delivered: DeliveryOutcome,
        out: &mut ForwarderOutput,
    ) {
        if let Some(waiting) = self.queues.end_delivery(sequence) {
            match delivered {
                DeliveryOutcome::Delivered => self.succeed(m, &waiting),
                DeliveryOutcome::Gone => self.pass(m.now(), &waiting),
                DeliveryOutcome::Failed { why } => self.fail_once(m, waiting, &why, out),
            }
        }
        self.go_on(m, out);
    }

    /// Lines up again an event that could not be read for its delivery: an older one of its device
    /// may have become open meanwhile.
    pub(super) fn put_back(&mut self, sequence: Sequence) {
        self.queues.put_back(sequence);
    }

    /// Does what time asks for.
    pub(super) fn handle_timeout(&mut self, m: &mut Moment, out: &mut ForwarderOutput) {
        self.go_on(m, out);
    }

    /// Takes note of how much waits: beyond the bound the oldest are set aside, and the customer
    /// is told so.
    pub(super) fn note_backlog(&mut self, m: &mut Moment, waiting: u64, out: &mut ForwarderOutput) {
        let room_made = self.rules.backlog_max / 10;
        if waiting <= self.rules.backlog_max - room_made {
            // What is left of an excess was taken meanwhile: nothing new is to be set aside for it.
            self.excess = 0;
        }
        if waiting > self.rules.backlog_max && self.excess == 0 && !self.is_failed() {
            self.excess = waiting - self.rules.backlog_max + room_made;
            self.queue_all();
            let entry = Entry::events_dead_lettered(m, &self.destination, self.excess);
            out.change(Change::AppendEntry(Box::new(entry)));
        }
        self.go_on(m, out);
    }

    /// Becomes what its customer makes of it.
    pub(super) fn amend(
        &mut self,
        m: &mut Moment,
        amended: DestinationAmendment,
        out: &mut ForwarderOutput,
    ) {
        let destination = &mut self.destination;
        let DestinationAmendment {
            name,
            target,
            event_types: wants,
        } = amended;
        destination.name = name.unwrap_or(mem::take(&mut destination.name));
        destination.event_types = wants.unwrap_or(destination.event_types);
        if let Some(target) = target {
            destination.target = target;
        }
        destination.updated_at = m.now();
        self.unsaved.put_destination();
        self.go_on(m, out);
    }

    /// Is removed with all that waits for it.
    pub(super) fn remove(&self, out: &mut ForwarderOutput) {
        out.change(Change::RemoveDestination {
            customer: self.destination.customer.clone(),
            destination: self.destination.id,
        });
    }

    /// Takes up deliveries again after a failure, if there was one.
    pub(super) fn restart(&mut self, m: &mut Moment, out: &mut ForwarderOutput) {
        if self.is_failed() {
            self.consecutive_failures = 0;
            self.become_state(m, DestinationState::Active);
            let entry = Entry::integration_restarted(m, &self.destination);
            out.change(Change::AppendEntry(Box::new(entry)));
        }
        self.go_on(m, out);
    }

    /// Delivers its dead letters again, in order and before anything new.
    pub(super) fn replay(
        &mut self,
        m: &mut Moment,
        out: &mut ForwarderOutput,
    ) -> Result<(), NotActive> {
        if self.is_failed() {
            return Err(NotActive);
        }
        if self.replay == Replaying::No {
            self.replay = Replaying::Behind(None);
            self.queues.pause_fresh();
            self.destination.replay = Replay::UnderWay;
            self.unsaved.put_destination();
        }
        self.go_on(m, out);
        Ok(())
    }

    /// When [`Forwarding::handle_timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        let retry = self.queues.next_due();
        [retry, self.unsaved.due_at()].into_iter().flatten().min()
    }

    /// The destination, as it stands.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Deliveries under way.
    pub fn in_flight(&self) -> usize {
        self.queues.in_flight()
    }

    /// Events in memory.
    pub fn open(&self) -> usize {
        self.queues.open()
    }

    fn is_failed(&self) -> bool {
        self.destination.state == DestinationState::Failed
    }

    /// An event behind one that is tried again is an exception, too, as long as there is room: the
    /// other devices of its shard do not wait for it. One behind an event that is none is none
    /// either: if the service falls it would be known before what comes first is read again.
    /// While dead letters are delivered again it waits for those that are not read yet.
    fn retry_behind(&mut self, now: Timestamp, waiting: QueuedEvent) {
        let has_room = self.queues.retrying() < RETRYING_MAX
            && self.queues.open_of(waiting.device) <= RETRYING_PER_DEVICE_MAX
            && self.replay == Replaying::No;
        if has_room && self.queues.waits_behind_retry(&waiting) {
            self.schedule_retry(waiting, 0, now);
        }
    }

    fn schedule_retry(&mut self, waiting: QueuedEvent, tries: u8, due_at: Timestamp) {
        self.queues.schedule_retry(waiting.sequence, due_at);
        self.note_retrying(waiting, tries, due_at);
    }

    fn note_retrying(&mut self, waiting: QueuedEvent, tries: u8, due_at: Timestamp) {
        self.unsaved.retry(PendingRetry {
            queued: waiting,
            tries,
            due_at,
        });
        if let Some(cursor) = self.cursors.get_mut(&waiting.shard()) {
            cursor.exclude(waiting.sequence);
        }
        self.queue(waiting.shard());
    }

    fn requeue(&mut self, now: Timestamp, waiting: QueuedEvent) {
        self.queues.add(waiting);
        let cursor = self.cursors.get_mut(&waiting.shard());
        let counted = cursor.map_or(Counted::Yes, |cursor| cursor.requeue(waiting.sequence));
        self.unsaved.requeue(waiting.sequence, counted);
        self.schedule_retry(waiting, 0, now);
    }

    fn succeed(&mut self, m: &Moment, waiting: &QueuedEvent) {
        self.consecutive_failures = 0;
        if self.destination.state == DestinationState::RolledOut {
            self.become_state(m, DestinationState::Active);
        }
        self.pass(m.now(), waiting);
    }

    /// Is done with an open event.
    fn pass(&mut self, now: Timestamp, waiting: &QueuedEvent) {
        match self.queues.remove(waiting.sequence) {
            Some(done) if done.is_retrying() => self.release(now, waiting),
            Some(_) | None => self.pass_over(now, waiting),
        }
    }

    /// Is done with an exception.
    fn release(&mut self, now: Timestamp, waiting: &QueuedEvent) {
        let cursor = self.cursors.get_mut(&waiting.shard());
        let counted = cursor.map_or(Counted::Yes, |cursor| cursor.release(waiting.sequence));
        self.unsaved.release(now, waiting, counted);
    }

    /// Is done with an event that is no exception.
    fn pass_over(&mut self, now: Timestamp, waiting: &QueuedEvent) {
        if let Some(cursor) = self.cursors.get_mut(&waiting.shard()) {
            cursor.pass(waiting.sequence);
        }
        self.unsaved.pass(now, waiting.shard());
        self.queue(waiting.shard());
    }

    fn fail_once(
        &mut self,
        m: &mut Moment,
        waiting: QueuedEvent,
        why: &str,
        out: &mut ForwarderOutput,
    ) {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        let tries = self.queues.count_try(waiting.sequence);
        if self.is_failed() {
            self.pass(m.now(), &waiting);
            return self.dead_letter(m.now(), waiting, tries, why);
        }
        let waits = self
            .rules
            .retry_delays_ms
            .get(usize::from(tries.saturating_sub(1)));
        match waits.copied() {
            Some(wait_ms) => {
                self.schedule_retry(waiting, tries, m.now().plus_ms(wait_ms));
                self.retry_followers(m.now(), &waiting);
            }
            None => self.fail(m, waiting.sequence, why, out),
        }
    }

    fn retry_followers(&mut self, now: Timestamp, head: &QueuedEvent) {
        for follower in self.queues.fresh_behind(head) {
            self.retry_behind(now, follower);
        }
    }

    fn become_state(&mut self, m: &Moment, state: DestinationState) {
        self.destination.state = state;
        self.destination.updated_at = m.now();
        self.unsaved.put_destination();
    }

    /// Does what may be done now: delivers, reads on, and saves what has to be.
    fn go_on(&mut self, m: &mut Moment, out: &mut ForwarderOutput) {
        self.queues.wake(m.now());
        match self.is_failed() {
            true => self.dead_letter_idle(m.now()),
            false => self.deliver(out),
        }
        self.read_on(out);
        let cursors = &mut self.cursors;
        self.unsaved.save(m.now(), &self.destination, cursors, out);
    }

    fn deliver(&mut self, out: &mut ForwarderOutput) {
        while self.queues.in_flight() < self.rules.parallel_max {
            let is_doubted =
                self.consecutive_failures >= CONSECUTIVE_FAILURES_MAX && self.queues.tried() > 0;
            let next = match is_doubted {
                true => self.queues.begin_next_retry(),
                false => self.queues.begin_next(),
            };
            let Some(waiting) = next else {
                break;
            };
            out.task(ForwarderTask::Deliver(waiting));
        }
    }
}
