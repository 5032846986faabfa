//! Is everything acknowledged there, and nothing half, after the process was killed?
//!
//! The test runs itself as another process, which commits from several threads and prints what
//! was acknowledged, and kills it with SIGKILL at a random time, also while it opens the store.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use engine::action::Action;
use engine::admin_log::window::Window;
use engine::change::{Batch, Change};
use engine::device::record::DeviceRecord;
use engine::ids::{ActionId, CustomerId, TraceId};
use engine::profile::Profile;
use engine::query::{ActionFilter, LogFilter, Page, PageWanted};
use store::conformance::chance::Chance;
use store::conformance::given::{action, at, created, customer, device, entry, links, record};
use store::conformance::wait;
use store::{Options, SledStore, Store};

const TEST: &str = "what_was_acknowledged_survives_kill_9";
const DIRECTORY: &str = "STORE_KILL9_DIRECTORY";
const ROUND: &str = "STORE_KILL9_ROUND";
const ROUNDS: u64 = 24;
const WRITERS: u64 = 6;
/// The longest a child works.
const LIFE_MS_MAX: u64 = 500;
/// The longest a child lives that shall not get far.
const YOUNG_MS_MAX: u64 = 80;
/// The longest a child needs to get to work on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);
/// What a child prints before the id of an acknowledged request.
const ACKNOWLEDGED: &str = "acknowledged ";

#[test]
fn what_was_acknowledged_survives_kill_9() {
    if let (Ok(directory), Ok(round)) = (env::var(DIRECTORY), env::var(ROUND)) {
        return commit_until_killed(Path::new(&directory), round.parse().unwrap());
    }
    let mut chance = Chance::from_seed_asked_for();
    let directory = tempfile::tempdir().unwrap();
    let mut kept = Vec::new();
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(directory.path(), round, &mut chance);
        let store = SledStore::open(Options::at(directory.path())).unwrap();
        kept.push(check(&store, round, &acknowledged));
        for (round, count) in (0..).zip(&kept) {
            assert_eq!(
                listed(&store, &owner(round), 1).total,
                *count,
                "of round {round}"
            );
        }
    }
    let total: u64 = kept.iter().sum();
    assert!(total > ROUNDS, "the children got to work");
    eprintln!("{total} commits kept");
}

/// Lets a child commit for a random time and gives back what was acknowledged.
fn run_and_kill(directory: &Path, round: u64, chance: &mut Chance) -> Vec<ActionId> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(DIRECTORY, directory)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let heard = listen(child.stdout.take().unwrap());
    // One in four dies young, perhaps while it opens the store; the others get to work first.
    let mut acknowledged = Vec::new();
    if round % 4 == 3 {
        collect_until(
            after_ms(chance.below(YOUNG_MS_MAX)),
            &heard,
            &mut acknowledged,
        );
    } else {
        acknowledged.push(heard.recv_timeout(START_MAX).expect("a child gets to work"));
        collect_until(
            after_ms(chance.below(LIFE_MS_MAX)),
            &heard,
            &mut acknowledged,
        );
    }
    assert!(is_running(&mut child), "a child stopped by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged.extend(heard.iter());
    acknowledged
}

fn listen(stdout: ChildStdout) -> Receiver<ActionId> {
    let (heard, acknowledged) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            // What was cut off in the middle was not said.
            let Ok(line) = line else { return };
            let id = line
                .strip_prefix(ACKNOWLEDGED)
                .and_then(|id| ActionId::parse(id).ok());
            if id.is_some_and(|id| heard.send(id).is_err()) {
                return;
            }
        }
    });
    acknowledged
}

fn collect_until(deadline: Instant, heard: &Receiver<ActionId>, all: &mut Vec<ActionId>) {
    while Instant::now() < deadline {
        match heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(id) => all.push(id),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn after_ms(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

/// Fails unless a round left all that was acknowledged and nothing half; counts what it left.
fn check(store: &SledStore, round: u64, acknowledged: &[ActionId]) -> u64 {
    let owner = owner(round);
    let page = listed(store, &owner, u32::MAX);
    assert_eq!(
        page.total,
        u64::try_from(page.items.len()).unwrap(),
        "count and index"
    );
    let present: BTreeSet<ActionId> = page.items.iter().map(|request| request.id).collect();
    let lost = acknowledged
        .iter()
        .filter(|id| !present.contains(id))
        .count();
    assert_eq!(
        lost,
        0,
        "of {} acknowledged in round {round}",
        acknowledged.len()
    );

    let mut traced: Vec<_> = page.items.iter().map(|request| request.trace).collect();
    let mut logged = log_of(store, &owner);
    traced.sort_unstable();
    logged.sort_unstable();
    assert_eq!(traced, logged, "each request has its entry");
    for writer in 0..WRITERS {
        check_device(store, &device(&owner, writer), &page.items);
    }
    page.total
}

fn check_device(store: &SledStore, meter: &Profile, all: &[Action]) {
    let mut requests: Vec<&Action> = all
        .iter()
        .filter(|request| request.device == meter.key())
        .collect();
    requests.reverse();
    let Some(restored) = wait(store.restored(meter.key())).unwrap() else {
        return assert_eq!(requests.len(), 0, "requests of no device");
    };
    assert_eq!(
        restored.pending.iter().collect::<Vec<_>>(),
        requests,
        "what is pending"
    );
    let expected = requests.last().map(|request| record_beside(request));
    assert_eq!(
        Some(restored.record),
        expected,
        "the record beside the last request"
    );
}

fn commit_until_killed(directory: &Path, round: u64) {
    let store = SledStore::open(Options::at(directory)).unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                let meter = device(&owner(round), writer);
                for number in 0.. {
                    let request = action(&meter, number, writer);
                    wait(store.commit(whole(&meter, &request, number))).unwrap();
                    println!("{ACKNOWLEDGED}{}", request.id);
                }
            });
        }
    });
}

/// A batch that touches every kind of row: names, counts, indexes, a log and a value in pieces.
fn whole(meter: &Profile, request: &Action, number: i64) -> Batch {
    let mut batch = created(request);
    let profile = Box::new(meter.clone());
    let was = (number > 0).then(|| profile.clone());
    let mut entry = entry(meter, number, meter.number);
    entry.trace = request.trace;
    batch.changes.push(Change::PutDevice { was, profile });
    batch.changes.push(Change::AppendEntry(Box::new(entry)));
    let record = Box::new(record_beside(request));
    batch.changes.push(Change::PutRecord {
        device: meter.key(),
        record,
    });
    batch
}

/// A device record that is known from the request it was saved with; of up to some KiB.
fn record_beside(request: &Action) -> DeviceRecord {
    let [.., last] = request.id.as_bytes();
    let second = request.created_at.since_ms(at(0)) / 1_000;
    record(second, &links(u64::from(*last) * 4))
}

/// The customer of a round.
fn owner(round: u64) -> CustomerId {
    customer(&format!("round-{round}")).id
}

fn listed(store: &SledStore, owner: &CustomerId, size: u32) -> Page<Action> {
    let filter = ActionFilter::all_of(owner.clone());
    wait(store.actions(filter, PageWanted { number: 1, size })).unwrap()
}

/// The traces of a log.
fn log_of(store: &SledStore, owner: &CustomerId) -> Vec<TraceId> {
    let filter = LogFilter {
        customer: owner.clone(),
        window: Window {
            from: at(0),
            until: at(1_000_000),
        },
        iccid: None,
        category: None,
        subject: None,
    };
    let page = wait(store.entries(
        filter,
        PageWanted {
            number: 1,
            size: u32::MAX,
        },
    ))
    .unwrap();
    assert_eq!(
        page.total,
        u64::try_from(page.items.len()).unwrap(),
        "the counts of the log and its entries"
    );
    page.items.into_iter().map(|entry| entry.trace).collect()
}
