//! What does the store do when the disk is full, the disk fails, or the committer is slow?

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::action::Status;
use engine::admin_log::entry::Entry;
use engine::admin_log::payload::EntryPayload;
use engine::change::{Change, Counter};
use engine::delivery::backlog::{DeadLetter, PendingRetry, ProgressUpdate, Sequence};
use engine::ids::ActionId;
use engine::moment::Timestamp;
use engine::profile::Profile;
use engine::setting::{Setting, SettingName, SettingState};

use super::*;
use crate::conformance::idempotency::{once, record_of};
use crate::conformance::samples::{
    acme, action, at, batch, client, created, customer, definition, destination, device, entry,
    event, forgotten, known, links, moved, record, saved, token,
};
use crate::conformance::wait;
use crate::{DeliveryReads, DeviceReads, DirectoryReads};

#[test]
fn a_full_disk_and_its_recovery_are_noticed_without_a_commit() {
    let home = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(2_000));
    let options = Options {
        disk_reserve_bytes: 1_000,
        ..Options::at(home.path())
    };
    let seen = Arc::clone(&free);
    let store = started(&options, Box::new(move |_| Ok(seen.load(Ordering::SeqCst))));
    assert_eq!(wait(store.commit(request(1))), Ok(()));
    free.store(999, Ordering::SeqCst);
    assert_eq!(wait(store.commit(request(2))), Err(CommitError::Full));
    assert_eq!(store.pressure(), Pressure::DiskFull);
    // A service can still start and remove what is old, as long as half of the reserve is free.
    assert_eq!(wait(store.take_over()), Ok(1));
    assert_eq!(
        wait(store.sweep(Retention::NOTHING, 10)),
        Ok(SweepReport::default())
    );
    free.store(499, Ordering::SeqCst);
    assert_eq!(wait(store.sweep(Retention::NOTHING, 10)), Err(Unavailable));
    assert_eq!(wait(store.take_over()), Err(Unavailable));
    free.store(1_000, Ordering::SeqCst);
    until(|| store.pressure() == Pressure::Open);
    assert_eq!(wait(store.commit(request(2))), Ok(()));
}

#[test]
fn every_commit_is_refused_once_fsync_has_failed() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let opened = open::open(&options).unwrap();
    // Not a file that can be synced.
    let opened = Opened {
        file: File::open("/dev/null").unwrap(),
        ..opened
    };
    let store = SledStore::start(opened, &options, disk::free_bytes()).unwrap();
    assert_eq!(wait(store.customer(acme())), Ok(None));
    assert_eq!(
        wait(store.commit(request(1))),
        Err(CommitError::Unavailable)
    );
    assert_eq!(store.pressure(), Pressure::Failed);
    assert_eq!(
        wait(store.commit(Batch::default())),
        Err(CommitError::Unavailable)
    );
    assert_eq!(wait(store.customer(acme())), Err(Unavailable));
    assert_eq!(wait(store.take_over()), Err(Unavailable));
    assert_eq!(wait(store.sweep(Retention::NOTHING, 10)), Err(Unavailable));
}

#[test]
fn a_notifier_reports_nothing_that_is_not_durable() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let erp = Change::PutDestination(Box::new(destination(&acme(), 1)));
    let append_event = || Change::AppendEvent(Box::new(event(&device(&acme(), 1), 10, 1)));
    let store = started(&options, disk::free_bytes());
    commit(&store, batch(vec![erp]));
    let notifier = store.subscribe(acme());
    commit(&store, batch(vec![append_event()]));
    assert_eq!(notifier.take().len(), 1);
    drop(store);

    let opened = open::open(&options).unwrap();
    // Not a file that can be synced.
    let opened = Opened {
        file: File::open("/dev/null").unwrap(),
        ..opened
    };
    let store = SledStore::start(opened, &options, disk::free_bytes()).unwrap();
    let notifier = store.subscribe(acme());
    let refused = wait(store.commit(batch(vec![append_event()])));
    assert_eq!(refused, Err(CommitError::Unavailable));
    assert_eq!(notifier.take(), []);
}

#[test]
fn a_rolled_back_batch_stores_no_event_and_no_destination() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let opened = open::open(&options).unwrap();
    let count = crate::sled::key::counter(&Counter::Devices(acme()));
    opened.db.insert(count, b"damaged").unwrap();
    let store = SledStore::start(opened, &options, disk::free_bytes()).unwrap();
    let meter = device(&acme(), 1);
    let erp = destination(&acme(), 1);
    let append_event = |second| Change::AppendEvent(Box::new(event(&meter, second, 1)));
    let made = || Change::PutDestination(Box::new(erp.clone()));
    let removed = Change::RemoveDestination {
        customer: acme(),
        destination: erp.id,
    };
    let fails = |change| {
        let mut failing = known(&meter);
        failing.changes.splice(0..0, [change, append_event(1)]);
        let verdict = wait(store.commit(failing));
        assert_eq!(verdict, Err(CommitError::Unavailable));
    };
    let partition = meter.key().partition();
    let waiting = || wait(store.waiting(acme(), partition, Sequence::default(), 99)).unwrap();
    fails(made());
    assert_eq!(wait(store.destination(erp.id)), Ok(None));
    commit(&store, batch(vec![append_event(2)]));
    assert_eq!(
        waiting().len(),
        1,
        "the event of the failed batch is not there"
    );
    commit(&store, batch(vec![made()]));
    fails(removed);
    commit(&store, batch(vec![append_event(3)]));
    assert_eq!(waiting().len(), 2);
    let backlog = wait(store.backlog(erp.id)).unwrap();
    assert_eq!(backlog.waiting, 1, "nothing else was stored");
}

#[test]
fn a_batch_that_meets_a_damaged_row_fails_alone() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let opened = open::open(&options).unwrap();
    let count = crate::sled::key::counter(&Counter::Devices(acme()));
    opened.db.insert(count, b"damaged").unwrap();
    let store = SledStore::start(opened, &options, disk::free_bytes()).unwrap();
    let meter = device(&acme(), 1);
    let failed = wait(store.commit(known(&meter)));
    assert_eq!(failed, Err(CommitError::Unavailable));
    assert_eq!(wait(store.profile(meter.key())), Ok(None), "all or nothing");
    assert_eq!(wait(store.commit(request(1))), Ok(()), "others go on");
    assert_eq!(store.pressure(), Pressure::Open);
}

#[test]
fn an_unreadable_event_is_skipped_so_that_others_are_delivered() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let meter = device(&acme(), 1);
    let events = [1, 2, 3].map(|number| event(&meter, 10, number));
    let partition = meter.key().partition();
    let waiting = |store: &SledStore| {
        wait(store.waiting(acme(), partition, Sequence::default(), 99)).unwrap()
    };
    let store = started(&options, disk::free_bytes());
    for event in &events[..2] {
        let append_event = Change::AppendEvent(Box::new(event.clone()));
        commit(&store, batch(vec![append_event]));
    }
    let [damaged, whole] = waiting(&store).try_into().unwrap();
    drop(store);

    let opened = open::open(&options).unwrap();
    let row = crate::sled::key::event::block(&acme(), partition, damaged.sequence);
    opened.db.insert(row, b"damaged").unwrap();
    drop(opened);
    let store = started(&options, disk::free_bytes());
    let append_event = Change::AppendEvent(Box::new(events[2].clone()));
    commit(&store, batch(vec![append_event]));
    let left = waiting(&store);
    assert_eq!(left[0], whole);
    let event_of = |queued| wait(store.event(acme(), queued));
    assert_eq!(event_of(damaged), Ok(None));
    assert_eq!(event_of(whole), Ok(Some(events[1].clone())));
    assert_eq!(event_of(left[1]), Ok(Some(events[2].clone())));
    // It goes with the next sweep, because its age is unknown.
    let due = Retention {
        events_before: at(0),
        ..Retention::NOTHING
    };
    let swept = wait(store.sweep(due, 10)).map(|swept| swept.removed);
    assert_eq!((swept, waiting(&store)), (Ok(1), left));
}

#[test]
fn one_read_of_a_block_serves_all_of_its_events_and_every_reader() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let meter = device(&acme(), 1);
    let partition = meter.key().partition();
    let events: Vec<_> = (0..20).map(|number| event(&meter, 10, number)).collect();
    let appended = events.iter().map(|event| Box::new(event.clone()));
    let appended: Vec<_> = appended.map(Change::AppendEvent).collect();
    let store = started(&options, disk::free_bytes());
    commit(&store, batch(appended.clone()));
    commit(&store, batch(appended));
    let first = Sequence::default();
    let waiting = wait(store.waiting(acme(), partition, first, 20)).unwrap();
    // It cannot be read again.
    let block = crate::sled::key::event::block(&acme(), partition, waiting[0].sequence);
    assert!(store.db.remove(block).unwrap().is_some());
    for (queued, event) in waiting.iter().zip(&events) {
        assert_eq!(wait(store.event(acme(), *queued)), Ok(Some(event.clone())));
    }
    assert_eq!(
        wait(store.streamed_events(acme(), waiting.clone())),
        Ok(events.clone())
    );
    drop(store);

    // Without a read of the partition, as for a retry, the first event is read with its block.
    let store = started(&options, disk::free_bytes());
    let rows = wait(store.streamed_rows(acme(), partition, waiting[19].sequence, 20)).unwrap();
    drop(store);
    let store = started(&options, disk::free_bytes());
    assert_eq!(
        wait(store.event(acme(), rows[7])),
        Ok(Some(events[7].clone()))
    );
    let block = crate::sled::key::event::block(&acme(), partition, rows[0].sequence);
    assert!(store.db.remove(block).unwrap().is_some());
    assert_eq!(wait(store.events(acme(), rows)), Ok(events));
}

#[test]
fn a_sweep_that_meets_a_damaged_row_skips_its_kind_and_sweeps_the_others() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let meter = device(&acme(), 1);
    let done = moved(&action(&meter, 10, 1), Status::Succeeded);
    let store = started(&options, disk::free_bytes());
    assert_eq!(wait(store.commit(created(&done))), Ok(()));
    let old = Change::AppendEvent(Box::new(event(&meter, 10, 1)));
    assert_eq!(wait(store.commit(batch(vec![old]))), Ok(()));
    drop(store);
    let opened = open::open(&options).unwrap();
    let damaged = crate::sled::key::action::action(done.id);
    opened.db.insert(damaged, b"damaged").unwrap();
    let store = SledStore::start(opened, &options, disk::free_bytes()).unwrap();
    let due = Retention {
        actions_before: at(1_000),
        events_before: at(1_000),
        ..Retention::NOTHING
    };
    let swept = wait(store.sweep(due, 10)).map(|swept| swept.removed);
    assert_eq!(swept, Ok(1), "the event");
    assert_eq!(wait(store.commit(request(2))), Ok(()), "others go on");
}

#[test]
fn a_full_queue_refuses_and_commits_what_it_accepted() {
    let home = tempfile::tempdir().unwrap();
    let options = Options {
        queue_max: 8,
        ..Options::at(home.path())
    };
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let store = started(&options, behind(&gate));
    let receipts: Vec<_> = (0..100).map(|rng| store.commit(request(rng))).collect();
    assert_eq!(store.pressure(), Pressure::Full);
    drop(closed);
    let verdicts: Vec<_> = receipts.into_iter().map(wait).collect();
    let taken = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
    // The committer holds what it took out of the queue before it met the gate.
    assert!((8..100).contains(&taken), "{taken} of 100");
    assert!(
        verdicts
            .iter()
            .all(|v| matches!(v, Ok(()) | Err(CommitError::Full)))
    );
    assert_eq!(store.pressure(), Pressure::Open);
    for (verdict, rng) in verdicts.iter().zip(0..) {
        let kept = wait(store.action(id(rng))).unwrap();
        assert_eq!(kept.is_some(), verdict.is_ok(), "number {rng}");
    }
}

#[test]
fn a_dropped_store_commits_queued_batches() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let store = started(&options, behind(&gate));
    let receipts: Vec<_> = (0..50).map(|rng| store.commit(request(rng))).collect();
    let dropping = thread::spawn(move || drop(store));
    drop(closed);
    dropping.join().unwrap();
    for receipt in receipts {
        assert_eq!(wait(receipt), Ok(()));
    }
    let store = SledStore::open(options).unwrap();
    assert!((0..50).all(|rng| wait(store.action(id(rng))).unwrap().is_some()));
}

#[test]
fn removed_and_swept_things_leave_no_row() {
    let home = tempfile::tempdir().unwrap();
    let options = Options::at(home.path());
    let store = SledStore::open(options.clone()).unwrap();
    let script = client(&acme(), "script");
    for meter in [device(&acme(), 1), device(&acme(), 2)] {
        live(&store, &meter);
    }
    deliver_in_part(&store);
    let blocks = 2 + 1;
    commit(
        &store,
        batch(vec![
            Change::PutCustomer(customer("acme")),
            Change::PutSetting(Setting {
                customer: acme(),
                name: SettingName::Lwm2mPassiveReporting,
                state: SettingState::Enabled,
            }),
            Change::PutClient(script.clone()),
            Change::PutToken(token(&script, "expired", at(10))),
            Change::PutToken(token(&script, "good", at(500))),
            // Only the sweep can remove the tokens of a client that does not exist.
            Change::PutToken(token(&client(&acme(), "ghost"), "another", at(10))),
        ]),
    );

    let before = at(100);
    let old = Retention {
        actions_before: before,
        entries_before: before,
        tokens_before: before,
        ..Retention::NOTHING
    };
    assert_eq!(
        wait(store.sweep(old, 100)).map(|swept| swept.removed),
        Ok(4 + 4 + 2)
    );
    commit(&store, forgotten(&device(&acme(), 1)));
    commit(&store, forgotten(&device(&acme(), 2)));
    commit(&store, batch(vec![Change::RemoveActions(acme())]));
    commit(&store, batch(vec![Change::RemoveCustomer(acme())]));
    // The log, the blocks of events, the definition, one retry and one dead letter.
    assert_eq!(
        wait(store.sweep(Retention::NOTHING, 100)).map(|swept| swept.removed),
        Ok(2 + blocks + 1 + 2)
    );
    // What says that there may be old requests goes when these would be due.
    let actions_due = Retention {
        actions_before: at(600),
        ..Retention::NOTHING
    };
    let swept = wait(store.sweep(actions_due, 100));
    assert_eq!(swept.map(|swept| swept.removed), Ok(0));
    drop(store);

    let opened = open::open(&options).unwrap();
    let left: Vec<_> = opened.db.iter().keys().collect::<Result<_, _>>().unwrap();
    let kept = [
        crate::sled::key::format(),
        crate::sled::key::event::newest_number(),
        crate::sled::key::last_group(),
    ];
    assert_eq!(left, kept.map(sled::IVec::from));
}

/// Adds a device with requests and events.
pub(super) fn live(store: &SledStore, meter: &Profile) {
    commit(store, known(meter));
    let put = Change::PutRecord {
        device: meter.key(),
        record: Box::new(record(10, &links(900))),
    };
    commit(store, batch(vec![put]));
    for (rng, second) in [(1, 10), (2, 10), (3, 500)] {
        let request = action(meter, second, rng + meter.number * 10);
        commit(store, created(&request));
        let done = moved(&request, Status::Failed);
        commit(store, saved(Some(&request), &done));
        let entry = entry(meter, second, rng + meter.number * 10);
        commit(store, batch(vec![Change::AppendEntry(Box::new(entry))]));
    }
    commit(store, created(&action(meter, 10, 4 + meter.number * 10)));
    let event = event(meter, 10, 5);
    commit(store, batch(vec![Change::AppendEvent(Box::new(event))]));
}

/// Defines an object and has some of a customer's events delivered in part.
pub(super) fn deliver_in_part(store: &SledStore) {
    let erp = destination(&acme(), 1);
    let large = definition(&acme(), 3, "1.0", 50_000);
    commit(
        store,
        batch(vec![
            Change::PutDestination(Box::new(erp.clone())),
            Change::PutDefinition(Box::new(large)),
        ]),
    );
    let meter = device(&acme(), 1);
    let events = (20..24).map(|second| Change::AppendEvent(Box::new(event(&meter, second, 1))));
    commit(store, batch(events.collect()));
    let partition = meter.key().partition();
    let waiting = wait(store.waiting(acme(), partition, Sequence::default(), 99)).unwrap();
    let step = ProgressUpdate {
        reached: vec![(partition, waiting[1].sequence)],
        retrying: vec![PendingRetry {
            queued: waiting[0],
            tries: 1,
            due_at: at(1),
        }],
        dead_lettered: vec![DeadLetter {
            queued: waiting[1],
            tries: 5,
            at: at(1),
            why: "It is gone. ".repeat(1_000).into(),
        }],
        ..ProgressUpdate::none(acme(), erp.id)
    };
    commit(store, batch(vec![Change::PutProgress(Box::new(step))]));
}

#[test]
fn a_sweep_of_everything_leaves_room_for_commits_between_its_parts() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let meter = device(&acme(), 1);
    // An idempotency record has two rows.
    let [most, least] = [sweep::ROWS_MAX, sweep::ROWS].map(|rows| rows as u64 / 2);
    let say = |second, number| {
        let records =
            (0..number).map(|rng| record_of(once(&format!("{second}-{rng}")), &meter, 10));
        let put = Change::PutIdempotencyRecord;
        commit(&store, batch(records.map(put).collect()));
    };
    // If nothing is written, or no sweep left something before, little is removed.
    say(10, 3 * least);
    for (part, removed) in [least, least].into_iter().enumerate() {
        let swept = wait(store.sweep(EVERYTHING, u32::MAX)).unwrap();
        assert_eq!((swept.removed, swept.more), (removed, true), "part {part}");
        commit(&store, request(part as u64));
    }
    // Otherwise as much is removed as was written, up to the maximum.
    for (second, come, removed) in [(20, 2 * least, 2 * least), (30, 2 * most, most)] {
        say(second, come);
        let swept = wait(store.sweep(EVERYTHING, u32::MAX)).unwrap();
        assert!((removed..removed + 9).contains(&swept.removed), "{swept:?}");
    }
    let mut swept = SweepReport {
        removed: 0,
        more: true,
    };
    while swept.more {
        swept = wait(store.sweep(EVERYTHING, u32::MAX)).unwrap();
        assert!(swept.removed <= least);
    }
    let left = wait(store.idempotency_records(once("30-0").key)).unwrap();
    assert_eq!(left, []);
}

#[test]
fn fewer_things_are_swept_at_once_if_each_has_more_rows() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let meter = device(&acme(), 1);
    let long = |rng| Entry {
        payload: Some(EntryPayload::Whole([0; 60_000].into())),
        ..entry(&meter, 10, rng)
    };
    let append = |rng| Change::AppendEntry(Box::new(long(rng)));
    commit(&store, batch((0..60).map(append).collect()));
    // Each has a row and fifteen of its payload; the rows that count it are shared by all.
    for (removed, more) in [(32, true), (28, false)] {
        let swept = wait(store.sweep(EVERYTHING, u32::MAX)).unwrap();
        assert_eq!((swept.removed, swept.more), (removed, more));
    }
}

const EVERYTHING: Retention = Retention {
    actions_before: Timestamp::from_ms(i64::MAX),
    jobs_before: Timestamp::from_ms(i64::MAX),
    entries_before: Timestamp::from_ms(i64::MAX),
    events_before: Timestamp::from_ms(i64::MAX),
    tokens_before: Timestamp::from_ms(i64::MAX),
    idempotency_before: Timestamp::from_ms(i64::MAX),
    dead_letters_before: Timestamp::from_ms(i64::MAX),
    sms_before: Timestamp::from_ms(i64::MAX),
};

pub(super) fn commit(store: &SledStore, batch: Batch) {
    assert_eq!(wait(store.commit(batch)), Ok(()));
}

fn started(options: &Options, free: FreeBytes) -> SledStore {
    SledStore::start(open::open(options).unwrap(), options, free).unwrap()
}

/// A disk with room for everything, which the committer can check while the gate is open.
fn behind(gate: &Arc<Mutex<()>>) -> FreeBytes {
    let gate = Arc::clone(gate);
    Box::new(move |_: &Path| {
        drop(gate.lock().unwrap());
        Ok(u64::MAX)
    })
}

fn request(rng: u64) -> Batch {
    created(&action(&device(&acme(), 1), 10, rng))
}

fn id(rng: u64) -> ActionId {
    action(&device(&acme(), 1), 10, rng).id
}

fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "it never happened");
        thread::yield_now();
    }
}
