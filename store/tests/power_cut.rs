//! Does everything acknowledged survive a power cut, and is nothing stored in part?
//!
//! A power cut between two acknowledgements leaves either the old or the new content of each page
//! written in between, in any combination. So the file is copied after each of two commits, and
//! stores are opened on random mixtures of the two copies.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use engine::action::{Action, Outcome, Status};
use engine::change::{Batch, Change};
use engine::delivery::backlog::{ProgressUpdate, Sequence};
use engine::device::record::DeviceRecord;
use engine::ids::EventId;
use engine::profile::Profile;
use engine::query::listed::ListedAction;
use engine::query::{ActionFilter, PageRequest};
use store::conformance::rng::Rng;
use store::conformance::samples::{
    acme, action, batch, created, destination, device, event, known, links, moved, record, saved,
};
use store::conformance::wait;
use store::{Commit, DirectoryReads, Options, SledStore, Store};

const PAGE_BYTES: usize = 4_096;
const COMMITS: u64 = 120;
/// A power cut happens during one in this many commits.
const CUT_EVERY: u64 = 10;
const MIXTURES: u64 = 4;
/// The largest answer: many rows, so that the file grows and its parts are used again.
const ANSWER_BYTES_MAX: u64 = 20_000;

#[test]
fn a_power_cut_loses_nothing_acknowledged_and_leaves_no_partial_batch() {
    let mut rng = Rng::from_seed_asked_for();
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let rows = home.path().join("rows");
    let mut story = ExpectedState::new();
    for number in 0..COMMITS {
        let cut = number % CUT_EVERY == CUT_EVERY - 1;
        let before = cut.then(|| (story.clone(), fs::read(rows.join("db")).unwrap()));
        let batch = story.go_on(number, &mut rng);
        assert_eq!(wait(store.commit(batch)), Ok(()));
        if let Some((was, old)) = before {
            let new = fs::read(rows.join("db")).unwrap();
            for _ in 0..MIXTURES {
                let mixed = mix(&old, &new, &mut rng);
                cut_twice(&rows, &mixed, [&was, &story], &mut rng);
            }
        }
    }
}

/// Opens a store after a power cut, and again after a second one during the opening.
fn cut_twice(others: &Path, mixed: &[u8], either: [&ExpectedState; 2], rng: &mut Rng) {
    let first = tempfile::tempdir().unwrap();
    let rows = first.path().join("rows");
    lay_out(others, mixed, &rows);
    let store = SledStore::open(Options::at(first.path())).unwrap();
    let opened = fs::read(rows.join("db")).unwrap();

    let second = tempfile::tempdir().unwrap();
    // What sled writes when it opens may have reached the disk or not.
    let others = if rng.below(2) == 0 { others } else { &rows };
    lay_out(
        others,
        &mix(mixed, &opened, rng),
        &second.path().join("rows"),
    );
    let state = check(&store, either);
    drop(store);
    let store = SledStore::open(Options::at(second.path())).unwrap();
    check(&store, [&state, &state]);
}

/// What the store should hold.
#[derive(Clone, Debug, PartialEq)]
struct ExpectedState {
    meter: Profile,
    record: Option<DeviceRecord>,
    requests: Vec<Action>,
    /// The queued events, and how many of them its destination is not done with.
    waiting: Vec<EventId>,
    backlog: u64,
}

impl ExpectedState {
    fn new() -> Self {
        Self {
            meter: device(&acme(), 1),
            record: None,
            requests: Vec::new(),
            waiting: Vec::new(),
            backlog: 0,
        }
    }

    /// One commit: a new request, an answer to an old one, a record of some size, and a queued
    /// event.
    fn go_on(&mut self, number: u64, rng: &mut Rng) -> Batch {
        let second = i64::try_from(number).unwrap();
        let new = action(&self.meter, second, number);
        let mut batch = created(&new);
        if number == 0 {
            batch.changes.splice(..0, known(&self.meter).changes);
        }
        let pending = self
            .requests
            .iter_mut()
            .filter(|request| request.status.is_pending());
        if let Some(old) = pending.last() {
            let done = Action {
                outcome: Some(Outcome {
                    payload: Some(text(rng).into()),
                    ..Outcome::default()
                }),
                ..moved(old, Status::Succeeded)
            };
            let answered = saved(Some(&*old), &done);
            batch.changes.extend(answered.changes);
            batch.adds.extend(answered.adds);
            *old = done;
        }
        self.requests.push(new);
        let record = record(second, &links(rng.below(1_000)));
        self.record = Some(record.clone());
        let device = self.meter.key();
        batch.changes.push(Change::PutRecord {
            device,
            record: Box::new(record),
        });
        self.tell(number, &mut batch);
        batch
    }

    fn tell(&mut self, number: u64, batch: &mut Batch) {
        let to = destination(&acme(), 1);
        let event = event(&self.meter, 0, number);
        self.waiting.push(event.id);
        if number == 0 {
            let made = Change::PutDestination(Box::new(to.clone()));
            batch.changes.push(made);
        }
        batch.changes.push(Change::AppendEvent(Box::new(event)));
        self.backlog += 1;
        let mut step = ProgressUpdate::none(to.customer, to.id);
        if number % 3 == 2 {
            let reached = (self.meter.key().partition(), Sequence(number + 1));
            step.reached.push(reached);
            self.backlog = 0;
        }
        batch.changes.push(Change::PutProgress(Box::new(step)));
    }

    /// Reads what a store holds.
    fn of(store: &dyn Store) -> Self {
        let mut state = Self::new();
        let restored = wait(store.restored(state.meter.key())).unwrap();
        state.record = restored.map(|restored| restored.record);
        let filter = ActionFilter::all_of(acme());
        let page = PageRequest {
            number: 1,
            size: u32::MAX,
        };
        let listed = wait(store.actions(filter, page)).unwrap();
        assert_eq!(listed.total, u64::try_from(listed.items.len()).unwrap());
        let whole = |listed: ListedAction| wait(store.action(listed.action.id)).unwrap();
        state.requests = listed.items.into_iter().filter_map(whole).collect();
        state.requests.reverse();
        let partition = state.meter.key().partition();
        let waiting = store.waiting(acme(), partition, Sequence::default(), u32::MAX);
        let waiting = wait(waiting).unwrap();
        assert!(waiting.is_sorted_by(|one, next| one.sequence < next.sequence));
        state.waiting = waiting.iter().map(|waiting| waiting.event).collect();
        let backlog = wait(store.backlog(destination(&acme(), 1).id)).unwrap();
        state.backlog = backlog.waiting;
        state
    }
}

/// Fails unless a store holds one of two states and can go on; returns the state it holds.
fn check(store: &SledStore, either: [&ExpectedState; 2]) -> ExpectedState {
    let state = ExpectedState::of(store);
    assert!(
        either.contains(&&state),
        "half a commit, or less than was acknowledged"
    );
    let next = action(&state.meter, 1_000_000, 1);
    assert_eq!(wait(store.commit(created(&next))), Ok(()));
    assert_eq!(wait(store.action(next.id)), Ok(Some(next)));
    let event = event(&state.meter, 1_000_000, 1);
    let append = Change::AppendEvent(Box::new(event.clone()));
    assert_eq!(wait(store.commit(batch(vec![append]))), Ok(()));
    let waiting = ExpectedState::of(store).waiting;
    assert_eq!(waiting.split_last(), Some((&event.id, &*state.waiting)));
    state
}

/// Takes every page from either of two images, and the length of either.
fn mix(old: &[u8], new: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut mixed = Vec::with_capacity(new.len());
    for start in (0..new.len()).step_by(PAGE_BYTES) {
        let page = |image: &[u8]| {
            let mut page = [0; PAGE_BYTES];
            let there = image.get(start..).unwrap_or_default();
            let there = &there[..there.len().min(PAGE_BYTES)];
            page[..there.len()].copy_from_slice(there);
            page
        };
        mixed.extend_from_slice(&page(if rng.below(2) == 0 { old } else { new }));
    }
    let length = if rng.below(2) == 0 {
        old.len()
    } else {
        new.len()
    };
    mixed.truncate(length);
    mixed
}

/// Creates the files of a tree: this one with the rows, and the others from elsewhere.
fn lay_out(others: &Path, db: &[u8], to: &Path) {
    fs::create_dir_all(to.join("blobs")).unwrap();
    for entry in fs::read_dir(others).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() && entry.file_name() != "db" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    fs::write(to.join("db"), db).unwrap();
}

fn text(rng: &mut Rng) -> String {
    let letters = b"abcdefghijklmnopqrstuvwxyz012345";
    let length = rng.below(ANSWER_BYTES_MAX);
    (0..length)
        .map(|_| char::from(rng.one_of(letters)))
        .collect()
}
