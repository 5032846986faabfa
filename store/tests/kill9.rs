//! Is everything acknowledged stored, and nothing stored in part, after the process was killed?
//!
//! The test runs itself as another process, which commits from several threads and prints what was
//! acknowledged, and kills it with SIGKILL at a random time, also while it opens the store.

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
use engine::admin_log::window::TimeWindow;
use engine::change::{Batch, Change};
use engine::delivery::backlog::{DeadLetter, ProgressUpdate, QueuedEvent, Sequence};
use engine::delivery::destination::Destination;
use engine::device::record::DeviceRecord;
use engine::ids::{ActionId, CustomerId, TraceId};
use engine::profile::Profile;
use engine::query::{ActionFilter, HistoryFilter, LogFilter, Page, PageRequest};
use store::conformance::rng::Rng;
use store::conformance::samples::{
    action, at, created, customer, destination, device, entry, event, links, record,
};
use store::conformance::wait;
use store::{Commit, DeliveryReads, DeviceReads, DirectoryReads, Options, SledStore};

const TEST: &str = "acknowledged_commits_survive_kill_9";
const DIRECTORY: &str = "STORE_KILL9_DIRECTORY";
const ROUND: &str = "STORE_KILL9_ROUND";
const ROUNDS: u64 = 24;
const WRITERS: u64 = 6;
/// The longest time a child works.
const LIFE_MS_MAX: u64 = 500;
/// The longest time of a child that is to be killed early.
const YOUNG_MS_MAX: u64 = 80;
/// The longest time a child needs to start work on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);
/// What a child prints before the id of an acknowledged request.
const ACKNOWLEDGED: &str = "acknowledged ";

#[test]
fn acknowledged_commits_survive_kill_9() {
    if let (Ok(directory), Ok(round)) = (env::var(DIRECTORY), env::var(ROUND)) {
        return commit_until_killed(Path::new(&directory), round.parse().unwrap());
    }
    let mut rng = Rng::from_seed_asked_for();
    let directory = tempfile::tempdir().unwrap();
    let mut kept = Vec::new();
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(directory.path(), round, &mut rng);
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

/// Lets a child commit for a random time and returns what was acknowledged.
fn run_and_kill(directory: &Path, round: u64, rng: &mut Rng) -> Vec<ActionId> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(DIRECTORY, directory)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let received = listen(child.stdout.take().unwrap());
    // One in four is killed early, perhaps while it opens the store; the others start work first.
    let mut acknowledged = Vec::new();
    if round % 4 == 3 {
        collect_until(
            after_ms(rng.below(YOUNG_MS_MAX)),
            &received,
            &mut acknowledged,
        );
    } else {
        acknowledged.push(
            received
                .recv_timeout(START_MAX)
                .expect("a child gets to work"),
        );
        collect_until(
            after_ms(rng.below(LIFE_MS_MAX)),
            &received,
            &mut acknowledged,
        );
    }
    assert!(is_running(&mut child), "a child stopped by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged.extend(received.iter());
    acknowledged
}

fn listen(stdout: ChildStdout) -> Receiver<ActionId> {
    let (sender, acknowledged) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            // A line that was cut off does not count.
            let Ok(line) = line else { return };
            let id = line
                .strip_prefix(ACKNOWLEDGED)
                .and_then(|id| ActionId::parse(id).ok());
            if id.is_some_and(|id| sender.send(id).is_err()) {
                return;
            }
        }
    });
    acknowledged
}

fn collect_until(deadline: Instant, received: &Receiver<ActionId>, all: &mut Vec<ActionId>) {
    while Instant::now() < deadline {
        match received.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
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

/// Fails unless a round left everything acknowledged and nothing in part; returns how much it left.
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
    let waiting: Vec<QueuedEvent> = (0..WRITERS)
        .flat_map(|writer| check_device(store, &device(&owner, writer), &page.items))
        .collect();
    for writer in 0..WRITERS {
        let own = device(&owner, writer).key();
        let steps = page.items.iter().filter(|request| request.device == own);
        check_destination(
            store,
            &destination_of(round, writer),
            &waiting,
            steps.count(),
        );
    }
    page.total
}

/// Fails unless a device has what belongs to its requests; returns its queued events.
fn check_device(store: &SledStore, meter: &Profile, all: &[Action]) -> Vec<QueuedEvent> {
    let mut requests: Vec<&Action> = all
        .iter()
        .filter(|request| request.device == meter.key())
        .collect();
    requests.reverse();
    let Some(restored) = wait(store.restored(meter.key())).unwrap() else {
        assert_eq!(requests.len(), 0, "requests of no device");
        return Vec::new();
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
    let mut events = wait(store.events_of(
        HistoryFilter::all_of(meter.customer.clone(), meter.key()),
        u32::MAX,
    ))
    .unwrap()
    .events;
    events.reverse();
    let (customer, partition) = (meter.customer.clone(), meter.key().partition());
    let waiting = store.waiting(customer, partition, Sequence::default(), u32::MAX);
    let mut waiting = wait(waiting).unwrap();
    waiting.retain(|one| one.device == meter.key());
    assert!(waiting.is_sorted_by(|one, next| one.sequence < next.sequence));
    assert_eq!(events.len(), requests.len(), "each request has its event");
    let events = events.iter().map(|event| event.id);
    let queued = waiting.iter().map(|waiting| waiting.event);
    assert!(events.eq(queued), "each event waits, in order");
    waiting
}

/// Fails unless a destination has as many dead letters as it made steps, and all events wait.
fn check_destination(store: &SledStore, to: &Destination, all: &[QueuedEvent], steps: usize) {
    assert_eq!(
        wait(store.destination(to.id)).unwrap().is_some(),
        steps > 0,
        "a destination of no request"
    );
    if steps == 0 {
        return;
    }
    let since = wait(store.progress_of(to.id)).unwrap().since;
    let queued = all.iter().filter(|one| one.sequence > since).count();
    let backlog = wait(store.backlog(to.id)).unwrap();
    let counted = [queued, steps].map(|count| u64::try_from(count).unwrap());
    assert_eq!(
        [backlog.waiting, backlog.dead],
        counted,
        "what waits, and dead letters"
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
                    let to = destination_of(round, writer);
                    wait(store.commit(whole(&meter, &request, number, &to))).unwrap();
                    println!("{ACKNOWLEDGED}{}", request.id);
                }
            });
        }
    });
}

/// A batch that touches every kind of row: names, counts, indexes, a log, a value in pieces, and a
/// queued event; its destination has one dead letter more.
fn whole(meter: &Profile, request: &Action, number: i64, to: &Destination) -> Batch {
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
    if number == 0 {
        let made = Change::PutDestination(Box::new(to.clone()));
        batch.changes.push(made);
    }
    let event = event(meter, number, meter.number);
    let queued = QueuedEvent::of(Sequence(u64::try_from(number).unwrap()), &event);
    batch.changes.push(Change::AppendEvent(Box::new(event)));
    let dead_letter = DeadLetter {
        queued,
        tries: 5,
        at: at(number),
        why: "It was refused.".into(),
    };
    let step = ProgressUpdate {
        dead_lettered: vec![dead_letter],
        ..ProgressUpdate::none(to.customer.clone(), to.id)
    };
    batch.changes.push(Change::PutProgress(Box::new(step)));
    batch
}

/// The destination of a writer.
fn destination_of(round: u64, writer: u64) -> Destination {
    let number = u8::try_from(round * WRITERS + writer).unwrap();
    destination(&owner(round), number)
}

/// A device record that can be computed from the request it was saved with; of up to some KiB.
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
    let page = wait(store.actions(filter, PageRequest { number: 1, size })).unwrap();
    let items = page.items.into_iter().map(|listed| listed.action);
    Page {
        items: items.collect(),
        total: page.total,
    }
}

/// The traces of a log.
fn log_of(store: &SledStore, owner: &CustomerId) -> Vec<TraceId> {
    let filter = LogFilter {
        customer: owner.clone(),
        window: TimeWindow {
            from: at(0),
            until: at(1_000_000),
        },
        iccid: None,
        category: None,
        subject: None,
    };
    let page = wait(store.entries(
        filter,
        PageRequest {
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
