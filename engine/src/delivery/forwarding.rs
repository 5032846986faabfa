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

mod aside;
mod errand;
mod lanes;
mod place;
mod progress;
mod reading;

pub(super) use errand::Errands;
pub use errand::{Delivered, Errand};

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use crate::admin_log::entry::Entry;
use crate::change::Change;
use crate::delivery::destination::{Amended, Destination, DestinationState, Replay};
use crate::delivery::letter::{DeadLetter, Held, Sequence, Standing, Waiting};
use crate::ids::Shard;
use crate::moment::{Moment, Timestamp};

use lanes::Lanes;
use place::{Counted, Place};
use progress::Unsaved;

/// How deliveries are made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeliveryRules {
    /// How long after each try but the last the next one comes: there is one try more than waits.
    pub waits_ms: Box<[i64]>,
    /// Deliveries to one destination that may be under way at once.
    pub parallel_max: usize,
    /// Events that may wait for one destination; beyond it its oldest become dead letters.
    pub backlog_max: u64,
}

/// Exceptions of a destination, which are kept one by one; beyond it nothing new is tried.
const HELD_MAX: usize = 1_024;

/// Exceptions of one device for no other reason than that they wait behind one; what comes behind
/// these keeps the place of their shard where it is, and no other shard.
const HELD_PER_DEVICE_MAX: usize = 64;

/// Dead letters that are taken up again in one go.
const REPLAYED_MAX: u32 = 256;

/// Failures with no success between them after which nothing new is tried until a retry succeeds:
/// an endpoint that is down is not to be called for each device.
const DOUBTS_MAX: u32 = 8;

/// One destination.
pub struct Forwarding {
    rules: Arc<DeliveryRules>,
    destination: Destination,
    /// Where shards without a place begin.
    since: Sequence,
    places: BTreeMap<Shard, Place>,
    /// Shards that may be read on, each of them once.
    to_read: VecDeque<Shard>,
    /// What was asked for of shards and is to come.
    coming: usize,
    lanes: Lanes,
    /// Failures since the last success.
    doubts: u32,
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
        standing: Standing,
        waiting_in: Vec<Shard>,
    ) -> Self {
        let mut places: BTreeMap<Shard, Place> = BTreeMap::new();
        for (shard, reached) in standing.reached {
            places.insert(shard, Place::at(reached));
        }
        let mut lanes = Lanes::default();
        for held in standing.held {
            lanes.restore(held);
        }
        let replay = match destination.replay {
            Replay::None => Replaying::No,
            Replay::UnderWay => {
                lanes.keep_fresh_back();
                Replaying::Behind(None)
            }
        };
        let mut forwarding = Self {
            rules,
            since: standing.since,
            places,
            to_read: VecDeque::new(),
            coming: 0,
            lanes,
            doubts: 0,
            excess: 0,
            replay,
            unsaved: Unsaved::of(&destination),
            destination,
        };
        forwarding.note(waiting_in);
        forwarding
    }

    /// Takes note that something began to wait in these shards.
    pub(super) fn note_news(&mut self, m: &mut Moment, shards: Vec<Shard>, out: &mut Errands) {
        self.note(shards);
        self.go_on(m, out);
    }

    /// Takes what was read of a shard, which was asked for by [`Errand::Read`].
    pub(super) fn handle_rows(
        &mut self,
        m: &mut Moment,
        shard: Shard,
        rows: Vec<Waiting>,
        out: &mut Errands,
    ) {
        if let Some(place) = self.places.get_mut(&shard) {
            let asked = place.note_read(rows.last().map(|row| row.sequence), rows.len());
            self.coming -= asked as usize;
            self.unsaved.note_moved(m.now(), shard);
        }
        for waiting in rows {
            self.take_up(m, waiting);
        }
        self.queue(shard);
        self.go_on(m, out);
    }

    /// Takes the dead letters that were read, which were asked for by [`Errand::ReadDead`].
    pub(super) fn handle_dead(
        &mut self,
        m: &mut Moment,
        letters: Vec<DeadLetter>,
        out: &mut Errands,
    ) {
        if self.replay == Replaying::Reading {
            self.replay = match letters.last() {
                Some(last) if letters.len() >= REPLAYED_MAX as usize => {
                    Replaying::Behind(Some(last.waiting.sequence))
                }
                Some(_) | None => Replaying::No,
            };
            for letter in letters {
                self.revive(m.now(), letter.waiting);
            }
            if self.replay == Replaying::No {
                self.destination.replay = Replay::None;
                self.unsaved.put_destination();
                self.lanes.let_fresh_go();
            }
        }
        self.go_on(m, out);
    }

    /// Takes what came of a delivery.
    pub(super) fn handle_delivered(
        &mut self,
        m: &mut Moment,
        sequence: Sequence,
        delivered: Delivered,
        out: &mut Errands,
    ) {
        if let Some(waiting) = self.lanes.land(sequence) {
            match delivered {
                Delivered::Taken => self.succeed(m, &waiting),
                Delivered::Gone => self.pass(m.now(), &waiting),
                Delivered::NotTaken { why } => self.fail_once(m, waiting, &why, out),
            }
        }
        self.go_on(m, out);
    }

    /// Lines up again an event that could not be read for its delivery: an older one of its device
    /// may have become open meanwhile.
    pub(super) fn put_back(&mut self, sequence: Sequence) {
        self.lanes.put_back(sequence);
    }

    /// Does what time asks for.
    pub(super) fn handle_timeout(&mut self, m: &mut Moment, out: &mut Errands) {
        self.go_on(m, out);
    }

    /// Takes note of how much waits: beyond the bound the oldest are set aside, and the customer
    /// is told so.
    pub(super) fn note_backlog(&mut self, m: &mut Moment, waiting: u64, out: &mut Errands) {
        let room_made = self.rules.backlog_max / 10;
        if waiting <= self.rules.backlog_max - room_made {
            // What is left of an excess was taken meanwhile: nothing new is to be set aside for it.
            self.excess = 0;
        }
        if waiting > self.rules.backlog_max && self.excess == 0 && !self.is_failed() {
            self.excess = waiting - self.rules.backlog_max + room_made;
            self.queue_all();
            let entry = Entry::events_set_aside(m, &self.destination, self.excess);
            out.change(Change::AppendEntry(Box::new(entry)));
        }
        self.go_on(m, out);
    }

    /// Becomes what its customer makes of it.
    pub(super) fn amend(&mut self, m: &mut Moment, amended: Amended, out: &mut Errands) {
        let destination = &mut self.destination;
        let Amended {
            name,
            target,
            wants,
        } = amended;
        destination.name = name.unwrap_or(mem::take(&mut destination.name));
        destination.wants = wants.unwrap_or(destination.wants);
        if let Some(target) = target {
            destination.target = target;
        }
        destination.updated_at = m.now();
        self.unsaved.put_destination();
        self.go_on(m, out);
    }

    /// Is removed with all that waits for it.
    pub(super) fn remove(&self, out: &mut Errands) {
        out.change(Change::RemoveDestination {
            customer: self.destination.customer.clone(),
            destination: self.destination.id,
        });
    }

    /// Takes up deliveries again after a failure, if there was one.
    pub(super) fn restart(&mut self, m: &mut Moment, out: &mut Errands) {
        if self.is_failed() {
            self.doubts = 0;
            self.become_state(m, DestinationState::Active);
            let entry = Entry::integration_restarted(m, &self.destination);
            out.change(Change::AppendEntry(Box::new(entry)));
        }
        self.go_on(m, out);
    }

    /// Delivers its dead letters again, in order and before anything new.
    pub(super) fn replay(&mut self, m: &mut Moment, out: &mut Errands) -> Result<(), NotActive> {
        if self.is_failed() {
            return Err(NotActive);
        }
        if self.replay == Replaying::No {
            self.replay = Replaying::Behind(None);
            self.lanes.keep_fresh_back();
            self.destination.replay = Replay::UnderWay;
            self.unsaved.put_destination();
        }
        self.go_on(m, out);
        Ok(())
    }

    /// When [`Forwarding::handle_timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Timestamp> {
        let retry = self.lanes.next_due();
        [retry, self.unsaved.due_at()].into_iter().flatten().min()
    }

    /// The destination, as it stands.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Deliveries under way.
    pub fn in_flight(&self) -> usize {
        self.lanes.in_flight()
    }

    /// Events in memory.
    pub fn open(&self) -> usize {
        self.lanes.open()
    }

    fn is_failed(&self) -> bool {
        self.destination.state == DestinationState::Failed
    }

    /// An event behind one that is tried again is an exception, too, as long as there is room: the
    /// other devices of its shard do not wait for it. One behind an event that is none is none
    /// either: if the service falls it would be known before what comes first is read again.
    /// While dead letters are delivered again it waits for those that are not read yet.
    fn hold_behind(&mut self, now: Timestamp, waiting: Waiting) {
        let has_room = self.lanes.held() < HELD_MAX
            && self.lanes.open_of(waiting.device) <= HELD_PER_DEVICE_MAX
            && self.replay == Replaying::No;
        if has_room && self.lanes.waits_behind_held(&waiting) {
            self.hold(waiting, 0, now);
        }
    }

    fn hold(&mut self, waiting: Waiting, tries: u8, due_at: Timestamp) {
        self.lanes.hold(waiting.sequence, due_at);
        self.note_held(waiting, tries, due_at);
    }

    fn note_held(&mut self, waiting: Waiting, tries: u8, due_at: Timestamp) {
        self.unsaved.hold(Held {
            waiting,
            tries,
            due_at,
        });
        if let Some(place) = self.places.get_mut(&waiting.shard()) {
            place.except(waiting.sequence);
        }
        self.queue(waiting.shard());
    }

    fn revive(&mut self, now: Timestamp, waiting: Waiting) {
        self.lanes.add(waiting);
        let place = self.places.get_mut(&waiting.shard());
        let counted = place.map_or(Counted::Yes, |place| place.revive(waiting.sequence));
        self.unsaved.revive(waiting.sequence, counted);
        self.hold(waiting, 0, now);
    }

    fn succeed(&mut self, m: &Moment, waiting: &Waiting) {
        self.doubts = 0;
        if self.destination.state == DestinationState::RolledOut {
            self.become_state(m, DestinationState::Active);
        }
        self.pass(m.now(), waiting);
    }

    /// Is done with an open event.
    fn pass(&mut self, now: Timestamp, waiting: &Waiting) {
        match self.lanes.remove(waiting.sequence) {
            Some(done) if done.is_held() => self.release(now, waiting),
            Some(_) | None => self.pass_over(now, waiting),
        }
    }

    /// Is done with an exception.
    fn release(&mut self, now: Timestamp, waiting: &Waiting) {
        let place = self.places.get_mut(&waiting.shard());
        let counted = place.map_or(Counted::Yes, |place| place.release(waiting.sequence));
        self.unsaved.release(now, waiting, counted);
    }

    /// Is done with an event that is no exception.
    fn pass_over(&mut self, now: Timestamp, waiting: &Waiting) {
        if let Some(place) = self.places.get_mut(&waiting.shard()) {
            place.pass(waiting.sequence);
        }
        self.unsaved.pass(now, waiting.shard());
        self.queue(waiting.shard());
    }

    fn fail_once(&mut self, m: &mut Moment, waiting: Waiting, why: &str, out: &mut Errands) {
        self.doubts = self.doubts.saturating_add(1);
        let tries = self.lanes.count_try(waiting.sequence);
        if self.is_failed() {
            self.pass(m.now(), &waiting);
            return self.bury(m.now(), waiting, tries, why);
        }
        let waits = self
            .rules
            .waits_ms
            .get(usize::from(tries.saturating_sub(1)));
        match waits.copied() {
            Some(wait_ms) => {
                self.hold(waiting, tries, m.now().plus_ms(wait_ms));
                self.hold_followers(m.now(), &waiting);
            }
            None => self.fail(m, waiting.sequence, why, out),
        }
    }

    fn hold_followers(&mut self, now: Timestamp, head: &Waiting) {
        for follower in self.lanes.unheld_behind(head) {
            self.hold_behind(now, follower);
        }
    }

    fn become_state(&mut self, m: &Moment, state: DestinationState) {
        self.destination.state = state;
        self.destination.updated_at = m.now();
        self.unsaved.put_destination();
    }

    /// Does what may be done now: delivers, reads on, and saves what has to be.
    fn go_on(&mut self, m: &mut Moment, out: &mut Errands) {
        self.lanes.wake(m.now());
        match self.is_failed() {
            true => self.set_landed_aside(m.now()),
            false => self.deliver(out),
        }
        self.read_on(out);
        let places = &mut self.places;
        self.unsaved.save(m.now(), &self.destination, places, out);
    }

    fn deliver(&mut self, out: &mut Errands) {
        while self.lanes.in_flight() < self.rules.parallel_max {
            let is_doubted = self.doubts >= DOUBTS_MAX && self.lanes.tried() > 0;
            let next = match is_doubted {
                true => self.lanes.take_off_tried(),
                false => self.lanes.take_off(),
            };
            let Some(waiting) = next else {
                break;
            };
            out.errand(Errand::Deliver(waiting));
        }
    }
}
