//! One destination: which event is delivered next, which events are retried, and when.
//!
//! [`Forwarding`] knows devices only by key and events only by number. Its inputs are the
//! partitions that have new events and the events that were read there. It decides what to deliver:
//! one event of a device at a time, those of many devices in parallel; for a destination that wants
//! batches several in one delivery, those of a device in order. An event that a destination
//! does not accept becomes a stored retry, so that the cursor of its partition moves on; later
//! events of the same device wait behind it.
//!
//! ```text
//!           Failed: its dead letters wait for a replay
//!             |  ^
//!     restart |  | the tries of one event are used up
//!             v  |
//!           Active <-- RolledOut: the first event was accepted
//! ```
//!
//! An SMS forwarder never fails: an event whose tries are used up becomes a dead letter, and the
//! next one is tried.

mod dead_lettering;
mod device_queues;
mod partition_cursor;
mod progress;
mod reading;
mod task;

pub(super) use task::ForwarderOutput;
pub use task::{DeliveryOutcome, FailedDelivery, ForwarderTask};

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use crate::admin_log::entry::Entry;
use crate::change::Change;
use crate::delivery::backlog::{
    DeadLetter, DestinationProgress, PendingRetry, QueuedEvent, Sequence,
};
use crate::delivery::destination::{
    Destination, DestinationAmendment, DestinationState, EventBatching, Replay, Target,
};
use crate::ids::Partition;
use crate::limits::RETRY_AFTER_MS_MAX;
use crate::moment::{Moment, Timestamp};

use device_queues::DeviceQueues;
use partition_cursor::PartitionCursor;
use progress::Unsaved;

/// The settings of deliveries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeliveryRules {
    /// The delay after each try but the last; there is one try more than delays.
    pub retry_delays_ms: Box<[i64]>,
    /// The same for an SMS forwarder. An event is given up when they are used up, or when it is as
    /// old as their sum.
    pub sms_retry_delays_ms: Box<[i64]>,
    /// Deliveries to one destination that may be in flight at once.
    pub parallel_max: usize,
    /// Events that may be queued for one destination; beyond it the oldest become dead letters.
    pub backlog_max: u64,
}

/// Retries of a destination, each of which is a stored row; at the bound nothing fresh is tried.
const RETRYING_MAX: usize = 1_024;

/// Events of one device that become retries only because they wait behind one. Events beyond the
/// bound hold back the cursor of their partition, and of no other partition.
const RETRYING_PER_DEVICE_MAX: usize = 64;

/// Dead letters that a replay reads at once.
const REPLAYED_MAX: u32 = 256;

/// Deliveries of several events to one destination that may be in flight at once: each has up to a
/// hundred events in memory.
const PARALLEL_BATCHES_MAX: usize = 8;

/// Consecutive failures after which nothing fresh is tried until a retry succeeds: an endpoint that
/// is down must not be called for each device.
const CONSECUTIVE_FAILURES_MAX: u32 = 8;

/// One destination.
pub struct Forwarding {
    rules: Arc<DeliveryRules>,
    destination: Destination,
    /// Where partitions without a cursor begin.
    since: Sequence,
    cursors: BTreeMap<Partition, PartitionCursor>,
    /// Partitions that may be read further, each of them once.
    to_read: VecDeque<Partition>,
    /// Events that were requested from partitions and are not read yet.
    requested: usize,
    queues: DeviceQueues,
    batch_wait: BatchWait,
    /// Failures since the last success.
    consecutive_failures: u32,
    /// Events that still have to become dead letters because too many wait.
    excess: u64,
    replay: Replaying,
    unsaved: Unsaved,
}

/// Whether events wait for others to be delivered with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BatchWait {
    None,
    Until(Timestamp),
    /// They have waited long enough.
    Over,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Replaying {
    /// There is none.
    No,
    /// The dead letters after this one are read next.
    Behind(Option<Sequence>),
    /// They are being read.
    Reading,
}

/// Dead letters cannot be discarded during a replay.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a replay is in progress; try again when `replaying` is false")]
pub struct ReplayUnderWay;

impl Forwarding {
    /// Restores a destination from its stored state. The events in these partitions are read at the
    /// first timeout.
    pub fn restore(
        rules: Arc<DeliveryRules>,
        destination: Destination,
        progress: DestinationProgress,
        waiting_in: Vec<Partition>,
    ) -> Self {
        let mut cursors: BTreeMap<Partition, PartitionCursor> = BTreeMap::new();
        for (partition, reached) in progress.reached {
            cursors.insert(partition, PartitionCursor::at(reached));
        }
        let mut queues = DeviceQueues::default();
        for retry in progress.retrying {
            queues.restore(retry);
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
            since: progress.since,
            cursors,
            to_read: VecDeque::new(),
            requested: 0,
            queues,
            batch_wait: BatchWait::None,
            consecutive_failures: 0,
            excess: 0,
            replay,
            unsaved: Unsaved::of(&destination),
            destination,
        };
        forwarding.note(waiting_in);
        forwarding
    }

    /// Notes that these partitions have new events.
    pub(super) fn note_ready_partitions(
        &mut self,
        m: &mut Moment,
        partitions: Vec<Partition>,
        out: &mut ForwarderOutput,
    ) {
        self.note(partitions);
        self.advance(m, out);
    }

    /// Handles the events of a partition that [`ForwarderTask::Read`] read.
    pub(super) fn handle_events_read(
        &mut self,
        m: &mut Moment,
        partition: Partition,
        rows: Vec<QueuedEvent>,
        out: &mut ForwarderOutput,
    ) {
        if let Some(cursor) = self.cursors.get_mut(&partition) {
            let requested = cursor.note_read(rows.last().map(|row| row.sequence), rows.len());
            self.requested -= requested as usize;
            self.unsaved.note_moved(m.now(), partition);
        }
        for queued in rows {
            self.admit(m, queued);
        }
        self.queue(partition);
        self.advance(m, out);
    }

    /// Handles the dead letters that [`ForwarderTask::ReadDeadLetters`] read.
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
        self.advance(m, out);
    }

    /// Handles the outcome of the delivery that begins with an event.
    pub(super) fn handle_delivered(
        &mut self,
        m: &mut Moment,
        first: Sequence,
        delivered: DeliveryOutcome,
        out: &mut ForwarderOutput,
    ) {
        let events = self.queues.end_delivery(first);
        if !events.is_empty() {
            match delivered {
                DeliveryOutcome::Delivered => self.succeed(m, &events),
                DeliveryOutcome::Gone => self.pass_all(m.now(), &events),
                DeliveryOutcome::Failed(failure) => self.fail_once(m, &events, &failure, out),
            }
        }
        self.advance(m, out);
    }

    /// Queues the events of a delivery again that could not be read: an older one of a device may
    /// have become open in the meantime.
    pub(super) fn put_back(&mut self, events: &[QueuedEvent]) {
        if let Some(first) = events.first() {
            self.queues.put_back(first.sequence);
        }
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, m: &mut Moment, out: &mut ForwarderOutput) {
        self.advance(m, out);
    }

    /// Notes the size of the backlog. Beyond the bound, the oldest events become dead letters,
    /// which is logged for the customer.
    pub(super) fn note_backlog(&mut self, m: &mut Moment, queued: u64, out: &mut ForwarderOutput) {
        let room_made = self.rules.backlog_max / 10;
        if queued <= self.rules.backlog_max - room_made {
            // The rest of an excess was accepted in the meantime: nothing new becomes a dead letter
            // for it.
            self.excess = 0;
        }
        if queued > self.rules.backlog_max && self.excess == 0 && !self.is_failed() {
            self.excess = queued - self.rules.backlog_max + room_made;
            self.queue_all();
            let entry = Entry::events_dead_lettered(m, &self.destination, self.excess);
            out.change(Change::AppendEntry(Box::new(entry)));
        }
        self.advance(m, out);
    }

    /// Applies the changes of its customer.
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
        self.advance(m, out);
    }

    /// Removes the destination with all that is queued for it.
    pub(super) fn remove(&self, out: &mut ForwarderOutput) {
        out.change(Change::RemoveDestination {
            customer: self.destination.customer.clone(),
            destination: self.destination.id,
        });
    }

    /// Resumes deliveries after a failure, if there was one.
    pub(super) fn restart(&mut self, m: &mut Moment, out: &mut ForwarderOutput) {
        if self.is_failed() {
            self.consecutive_failures = 0;
            self.destination.failure = None;
            self.become_state(m, DestinationState::Active);
            let entry = Entry::integration_restarted(m, &self.destination);
            out.change(Change::AppendEntry(Box::new(entry)));
        }
        self.advance(m, out);
    }

    /// Delivers its dead letters again, in order and before anything new; if it has failed, once it
    /// is restarted.
    pub(super) fn replay(&mut self, m: &mut Moment, out: &mut ForwarderOutput) {
        if self.replay == Replaying::No {
            self.replay = Replaying::Behind(None);
            self.queues.pause_fresh();
            self.destination.replay = Replay::UnderWay;
            self.unsaved.put_destination();
        }
        self.advance(m, out);
    }

    /// When [`Forwarding::handle_timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        let retry = self.queues.next_due();
        let batch = match self.batch_wait {
            BatchWait::Until(due_at) => Some(due_at),
            BatchWait::None | BatchWait::Over => None,
        };
        let due = [retry, batch, self.unsaved.due_at()];
        due.into_iter().flatten().min()
    }

    /// The destination in its current state.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Events in flight.
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

    /// Makes an event behind a retry of its device a retry, too, as long as there is room: the
    /// other devices of its partition do not wait for it. An event behind one that is not a retry
    /// does not become one: after a crash it would be restored before the earlier one is read
    /// again. During a replay it waits for the dead letters that are not read yet.
    fn retry_behind(&mut self, now: Timestamp, queued: QueuedEvent) {
        let has_room = self.queues.retrying() < RETRYING_MAX
            && self.queues.open_of(queued.device) <= RETRYING_PER_DEVICE_MAX
            && self.replay == Replaying::No;
        if has_room && self.queues.waits_behind_retry(&queued) {
            self.schedule_retry(queued, 0, now);
        }
    }

    fn schedule_retry(&mut self, queued: QueuedEvent, tries: u8, due_at: Timestamp) {
        self.queues.schedule_retry(queued.sequence, due_at);
        self.note_retrying(queued, tries, due_at);
    }

    fn note_retrying(&mut self, queued: QueuedEvent, tries: u8, due_at: Timestamp) {
        self.unsaved.retry(PendingRetry {
            queued,
            tries,
            due_at,
        });
        if let Some(cursor) = self.cursors.get_mut(&queued.partition()) {
            cursor.exclude(queued.sequence);
        }
        self.queue(queued.partition());
    }

    fn requeue(&mut self, now: Timestamp, queued: QueuedEvent) {
        self.queues.add(queued);
        if let Some(cursor) = self.cursors.get_mut(&queued.partition()) {
            cursor.requeue(queued.sequence);
        }
        self.unsaved.requeue(queued.sequence);
        self.schedule_retry(queued, 0, now);
    }

    fn succeed(&mut self, m: &Moment, events: &[QueuedEvent]) {
        self.consecutive_failures = 0;
        if self.destination.state == DestinationState::RolledOut {
            self.become_state(m, DestinationState::Active);
        }
        self.pass_all(m.now(), events);
    }

    fn pass_all(&mut self, now: Timestamp, events: &[QueuedEvent]) {
        for queued in events {
            self.pass(now, queued);
        }
    }

    /// Marks an open event as done.
    fn pass(&mut self, now: Timestamp, queued: &QueuedEvent) {
        match self.queues.remove(queued.sequence) {
            Some(done) if done.is_retrying() => self.release(now, queued),
            Some(_) | None => self.pass_over(now, queued),
        }
    }

    /// Marks a retry as done.
    fn release(&mut self, now: Timestamp, queued: &QueuedEvent) {
        if let Some(cursor) = self.cursors.get_mut(&queued.partition()) {
            cursor.release(queued.sequence);
        }
        self.unsaved.release(now, queued);
    }

    /// Marks an event as done that is not a retry.
    fn pass_over(&mut self, now: Timestamp, queued: &QueuedEvent) {
        if let Some(cursor) = self.cursors.get_mut(&queued.partition()) {
            cursor.pass(queued.sequence);
        }
        self.unsaved.pass(now, queued.partition());
        self.queue(queued.partition());
    }

    /// Counts a try of each of the events of a delivery. They are retried together, after the
    /// delay of the one with the most tries.
    fn fail_once(
        &mut self,
        m: &mut Moment,
        events: &[QueuedEvent],
        failure: &FailedDelivery,
        out: &mut ForwarderOutput,
    ) {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        let count = |queued: &QueuedEvent| (*queued, self.queues.count_try(queued.sequence));
        let tried: Vec<(QueuedEvent, u8)> = events.iter().map(count).collect();
        if self.is_failed() {
            for (queued, tries) in tried {
                self.pass(m.now(), &queued);
                self.dead_letter(m.now(), queued, tries, &failure.why);
            }
            return;
        }
        let mut delays_ms = tried.iter().map(|it| self.next_delay_ms(m.now(), it));
        match delays_ms.try_fold(0, |most: i64, delay_ms| Some(most.max(delay_ms?))) {
            Some(delay_ms) => {
                let delay_ms = delay_ms.max(failure.pause_ms.min(RETRY_AFTER_MS_MAX));
                for (queued, tries) in &tried {
                    self.schedule_retry(*queued, *tries, m.now().plus_ms(delay_ms));
                }
                for (queued, _) in &tried {
                    self.retry_followers(m.now(), queued);
                }
            }
            None => match &self.destination.target {
                Target::Webhook(_) | Target::Plugin(_) | Target::Broker(_) => {
                    self.fail(m, &tried, &failure.why, out);
                }
                Target::SmsForwarder(_) => {
                    for (queued, tries) in tried {
                        self.give_up(m, queued, (tries, failure), out);
                    }
                }
            },
        }
    }

    /// The delay before the next try of an event, if it has one. An SMS that waited behind another
    /// one is not worth a whole round of tries of its own.
    fn next_delay_ms(&self, now: Timestamp, (queued, tries): &(QueuedEvent, u8)) -> Option<i64> {
        let delays_ms = match &self.destination.target {
            Target::Webhook(_) | Target::Plugin(_) | Target::Broker(_) => {
                &self.rules.retry_delays_ms
            }
            Target::SmsForwarder(_) => {
                let delays_ms = &self.rules.sms_retry_delays_ms;
                let age_ms = now.since_ms(queued.event.made_at());
                if age_ms >= delays_ms.iter().sum() {
                    return None;
                }
                delays_ms
            }
        };
        delays_ms.get(usize::from(tries.saturating_sub(1))).copied()
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

    /// Does what is possible now: delivers, reads further, and saves what is due.
    fn advance(&mut self, m: &mut Moment, out: &mut ForwarderOutput) {
        self.queues.wake(m.now());
        if let BatchWait::Until(due_at) = self.batch_wait
            && due_at <= m.now()
        {
            self.batch_wait = BatchWait::Over;
        }
        match self.is_failed() {
            true => self.dead_letter_idle(m.now()),
            false => self.deliver(m, out),
        }
        self.read_on(out);
        let cursors = &mut self.cursors;
        self.unsaved.save(m.now(), &self.destination, cursors, out);
    }

    fn deliver(&mut self, m: &Moment, out: &mut ForwarderOutput) {
        let batching = self.destination.target.batching();
        let (events_max, parallel_max) = match batching {
            None => (1, self.rules.parallel_max),
            Some(batching) => (
                usize::from(batching.events_max),
                self.rules.parallel_max.min(PARALLEL_BATCHES_MAX),
            ),
        };
        while self.queues.deliveries() < parallel_max {
            let is_backing_off =
                self.consecutive_failures >= CONSECUTIVE_FAILURES_MAX && self.queues.tried() > 0;
            let mut events = self.queues.begin_retries(events_max);
            if events.is_empty() && !is_backing_off && self.is_batch_ready(m.now(), batching) {
                events = self.queues.begin_untried(events_max);
            }
            if events.is_empty() {
                break;
            }
            out.task(ForwarderTask::Deliver(events));
        }
    }

    /// Whether enough events wait for a delivery, or one has waited long enough.
    fn is_batch_ready(&mut self, now: Timestamp, batching: Option<EventBatching>) -> bool {
        let Some(batching) = batching else {
            return true;
        };
        let events_max = usize::from(batching.events_max);
        let ready = self.queues.ready(events_max);
        let is_over = match self.batch_wait {
            _ if ready == 0 || ready == events_max => true,
            BatchWait::None => batching.wait_ms_max == 0,
            BatchWait::Until(_) => false,
            BatchWait::Over => true,
        };
        self.batch_wait = match self.batch_wait {
            _ if is_over => BatchWait::None,
            BatchWait::None => BatchWait::Until(now.plus_ms(batching.wait_ms_max.into())),
            wait @ (BatchWait::Until(_) | BatchWait::Over) => wait,
        };
        is_over
    }
}
