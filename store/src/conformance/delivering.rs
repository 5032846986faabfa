//! Do the outbox and its counts agree with a naive model after any batches?
//!
//! The model keeps every event that was ever stored and, for each destination, what it did with
//! each event. It takes the sequence numbers from the store and recounts for every comparison.

use std::collections::{BTreeMap, BTreeSet};

use engine::delivery::backlog::{
    DeadLetter, DestinationProgress, PendingRetry, ProgressUpdate, QueuedEvent, Sequence,
};
use engine::delivery::destination::Destination;
use engine::event::Event;
use engine::ids::{CustomerId, Partition};
use engine::profile::Profile;

use super::outbox::{
    all_waiting, append, counts, dead, dead_of, held, make, nothing, progress, sweep_all, unmake,
};
use super::rng::Rng;
use super::samples::{at, batch, customer, destination, device, event};
use super::{TestBed, commit, wait};
use crate::{Retention, Store};

const STEPS: i64 = 700;

pub(super) fn agrees_with_model(ground: &TestBed<'_>) {
    let mut rng = Rng::from_seed_asked_for();
    let mut model = Model::new();
    let mut store = ground.open();
    for step in 0..STEPS {
        model.step(step, &*store, &mut rng);
        if rng.below(60) == 0 {
            drop(store);
            store = ground.open();
        }
        if step % 50 == 0 {
            model.compare(&*store);
        }
    }
    sweep_all(&*store, Retention::NOTHING, 50);
    model.compare(&*store);
}

struct Model {
    devices: Vec<Profile>,
    /// Every event that was ever stored, by customer, in the order of its commit.
    waited: BTreeMap<CustomerId, Vec<QueuedEvent>>,
    tracked: Vec<TrackedDestination>,
    destinations_made: u8,
}

/// A destination and what it did.
struct TrackedDestination {
    destination: Destination,
    since: Sequence,
    reached: BTreeMap<Partition, Sequence>,
    held: BTreeMap<Sequence, PendingRetry>,
    dead: BTreeMap<Sequence, DeadLetter>,
    done: BTreeSet<Sequence>,
}

impl Model {
    fn new() -> Self {
        let customers = ["acme", "acme-2", "b"].map(|id| customer(id).id);
        let devices = customers.iter().flat_map(|customer| {
            let numbers = 0..4;
            numbers.map(|number| device(customer, number))
        });
        Self {
            devices: devices.collect(),
            waited: BTreeMap::new(),
            tracked: Vec::new(),
            destinations_made: 0,
        }
    }

    /// One thing that happens, to the store and to the model.
    fn step(&mut self, step: i64, store: &dyn Store, rng: &mut Rng) {
        match rng.below(20) {
            0 if self.destinations_made < u8::MAX => self.make(store, rng),
            1 if rng.below(3) == 0 => self.unmake(store, rng),
            2 => {
                sweep_all(store, Retention::NOTHING, 30);
            }
            3 => self.sweep_dead(step, store),
            4..12 => self.say(step, store, rng),
            _ => self.go_on(step, store, rng),
        }
    }

    fn make(&mut self, store: &dyn Store, rng: &mut Rng) {
        self.destinations_made += 1;
        let whose = rng.one_of(&self.devices).customer;
        let destination = destination(&whose, self.destinations_made);
        make(store, &destination);
        let since = wait(store.progress_of(destination.id))
            .expect("an answer")
            .since;
        let newest = self.waited.values().flatten().map(|one| one.sequence).max();
        assert!(since >= newest.unwrap_or_default());
        self.tracked.push(TrackedDestination {
            destination,
            since,
            reached: BTreeMap::new(),
            held: BTreeMap::new(),
            dead: BTreeMap::new(),
            done: BTreeSet::new(),
        });
    }

    fn unmake(&mut self, store: &dyn Store, rng: &mut Rng) {
        if self.tracked.is_empty() {
            return;
        }
        let place = usize::try_from(rng.below(self.tracked.len() as u64)).expect("small");
        let gone = self.tracked.swap_remove(place);
        unmake(store, &gone.destination);
    }

    fn sweep_dead(&mut self, step: i64, store: &dyn Store) {
        let letters_before = at(step / 2);
        let due = Retention {
            dead_letters_before: letters_before,
            ..Retention::NOTHING
        };
        sweep_all(store, due, 30);
        for tracked in &mut self.tracked {
            tracked
                .dead
                .retain(|_, dead_letter| dead_letter.at >= letters_before);
        }
    }

    /// A few devices report at once; the events to be queued appear behind the others in the
    /// outbox.
    fn say(&mut self, step: i64, store: &dyn Store, rng: &mut Rng) {
        let events: Vec<Event> = (0..=rng.below(5))
            .map(|number| event(&rng.one_of(&self.devices), step, number))
            .collect();
        let changes = events.iter().map(append).collect();
        assert_eq!(commit(store, batch(changes)), Ok(()));
        for event in events {
            let waited = self.waited.entry(event.customer.clone()).or_default();
            let of_partition = waited.iter().rev();
            let mut of_partition =
                of_partition.filter(|one| one.partition() == event.device.partition());
            let before = of_partition
                .next()
                .map(|one| one.sequence)
                .unwrap_or_default();
            let partition = event.device.partition();
            let next = wait(store.waiting(event.customer.clone(), partition, before, 1));
            let next = next.expect("an answer").pop().expect("it waits");
            assert_eq!((next.device, next.event), (event.device, event.id));
            waited.push(next);
        }
    }

    /// A destination advances in a partition, or retries what it did not accept.
    fn go_on(&mut self, step: i64, store: &dyn Store, rng: &mut Rng) {
        if self.tracked.is_empty() {
            return;
        }
        let place = usize::try_from(rng.below(self.tracked.len() as u64)).expect("small");
        let tracked = &mut self.tracked[place];
        let partition = rng.one_of(&self.devices).key().partition();
        let waited = self.waited.get(&tracked.destination.customer);
        let ahead: Vec<QueuedEvent> = waited
            .into_iter()
            .flatten()
            .filter(|one| one.partition() == partition && one.sequence > tracked.past(partition))
            .take(usize::try_from(rng.below(6)).expect("small"))
            .copied()
            .collect();
        let mut change = nothing(&tracked.destination);
        tracked.pass(&ahead, step, &mut change, rng);
        tracked.try_again(step, &mut change, rng);
        progress(store, change);
    }

    fn compare(&self, store: &dyn Store) {
        for tracked in &self.tracked {
            let id = tracked.destination.id;
            assert_eq!(wait(store.progress_of(id)), Ok(tracked.progress()));
            let dead_letters: Vec<DeadLetter> = tracked.dead.values().cloned().collect();
            assert_eq!(dead_of(store, id), dead_letters);
            let all = self.waited.get(&tracked.destination.customer);
            let all: Vec<&QueuedEvent> = all.into_iter().flatten().collect();
            let since = all
                .iter()
                .filter(|one| one.sequence > tracked.since)
                .count();
            let expected = (since - tracked.done.len(), tracked.dead.len());
            let (waiting, dead) = counts(store, &tracked.destination);
            assert_eq!((waiting, dead), (expected.0 as u64, expected.1 as u64));
            let ahead = all
                .iter()
                .filter(|one| one.sequence > tracked.past(one.partition()));
            let partitions: BTreeSet<Partition> = ahead.map(|one| one.partition()).collect();
            let partitions: Vec<Partition> = partitions.into_iter().collect();
            assert_eq!(wait(store.partitions_waiting(id)), Ok(partitions));
        }
        for (customer, all) in &self.waited {
            let mut all = all.clone();
            all.sort_by_key(|one| (one.partition(), one.sequence));
            assert_eq!(all_waiting(store, customer), all, "of {customer}");
        }
    }
}

impl TrackedDestination {
    /// Each event that is read is delivered, set to be retried, or dead-lettered.
    fn pass(
        &mut self,
        ahead: &[QueuedEvent],
        step: i64,
        change: &mut ProgressUpdate,
        rng: &mut Rng,
    ) {
        let Some(last) = ahead.last() else {
            return;
        };
        change.reached.push((last.partition(), last.sequence));
        self.reached.insert(last.partition(), last.sequence);
        for waiting in ahead {
            match rng.below(4) {
                0 => self.hold(held(*waiting, 1), change),
                1 => self.bury(dead(*waiting, step), change),
                _ => self.finish(waiting.sequence),
            }
        }
    }

    /// A pending retry or dead letter is delivered, retried, dead-lettered or replayed.
    fn try_again(&mut self, step: i64, change: &mut ProgressUpdate, rng: &mut Rng) {
        let held_now: Vec<PendingRetry> = self.held.values().copied().collect();
        for one in held_now.into_iter().take(4) {
            let sequence = one.queued.sequence;
            // A change has at most one entry for each event.
            if change
                .retrying
                .iter()
                .any(|held| held.queued.sequence == sequence)
            {
                continue;
            }
            match rng.below(4) {
                0 => self.hold(held(one.queued, one.tries.saturating_add(1)), change),
                1 => {
                    self.release(sequence, change);
                    self.finish(sequence);
                }
                2 => {
                    self.release(sequence, change);
                    self.bury(dead(one.queued, step), change);
                }
                _ => {}
            }
        }
        let dead_letters: Vec<DeadLetter> = self.dead.values().cloned().collect();
        for dead_letter in dead_letters.into_iter().take(3) {
            let sequence = dead_letter.queued.sequence;
            if change
                .dead_lettered
                .iter()
                .any(|one| one.queued.sequence == sequence)
            {
                continue;
            }
            if rng.below(4) == 0 {
                self.dead.remove(&sequence);
                self.done.remove(&sequence);
                change.requeued.push(sequence);
                self.hold(held(dead_letter.queued, 0), change);
            }
        }
    }

    fn hold(&mut self, held: PendingRetry, change: &mut ProgressUpdate) {
        self.held.insert(held.queued.sequence, held);
        change.retrying.push(held);
    }

    fn release(&mut self, sequence: Sequence, change: &mut ProgressUpdate) {
        self.held.remove(&sequence);
        change.released.push(sequence);
    }

    fn bury(&mut self, dead_letter: DeadLetter, change: &mut ProgressUpdate) {
        let sequence = dead_letter.queued.sequence;
        self.dead.insert(sequence, dead_letter.clone());
        change.dead_lettered.push(dead_letter);
        self.finish(sequence);
    }

    fn finish(&mut self, sequence: Sequence) {
        assert!(self.done.insert(sequence), "it was not done before");
    }

    fn past(&self, partition: Partition) -> Sequence {
        let reached = self.reached.get(&partition).copied();
        reached.unwrap_or(self.since)
    }

    fn progress(&self) -> DestinationProgress {
        DestinationProgress {
            since: self.since,
            reached: self
                .reached
                .iter()
                .map(|(partition, at)| (*partition, *at))
                .collect(),
            retrying: self.held.values().copied().collect(),
        }
    }
}
