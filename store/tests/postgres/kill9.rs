//! Is everything acknowledged stored, and nothing that was refused, after the server was killed?
//!
//! The server is killed with SIGKILL while several threads commit, and started again; the store
//! stays open and connects again by itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use engine::change::{Batch, Change};
use engine::ids::ActionId;
use engine::profile::Profile;
use engine::query::HistoryFilter;
use store::conformance::rng::Rng;
use store::conformance::samples::{acme, action, created, device, event, known};
use store::conformance::wait;
use store::{Commit, CommitError, DirectoryReads, PostgresStore};

use crate::open;
use crate::postgres::PostgresServer;

const ROUNDS: u64 = 6;
const WRITERS: u64 = 6;
/// After at most so many commits the server is killed.
const COMMITS_MAX: u64 = 400;
/// How long a writer waits for the store after the server was killed.
const BACK_MAX: Duration = Duration::from_secs(120);

#[test]
fn acknowledged_commits_survive_a_server_that_is_killed() {
    let mut rng = Rng::from_seed_asked_for();
    let mut server = PostgresServer::start();
    let store = open(&server, "kill9");
    let meter = device(&acme(), 1);
    assert_eq!(wait(store.commit(known(&meter))), Ok(()));
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let committed = commit_while_the_server_is_killed(&mut server, &store, round, &mut rng);
        for (id, verdict) in committed {
            let kept = wait(store.action(id)).unwrap();
            match verdict {
                Ok(()) => {
                    assert!(kept.is_some(), "{id} was acknowledged");
                    acknowledged += 1;
                }
                Err(CommitError::Full | CommitError::Unavailable) => {
                    assert_eq!(kept, None, "{id} was refused");
                }
                Err(other) => panic!("{id}: {other}"),
            }
        }
        assert_eq!(events_of(&store, &meter), acknowledged, "in round {round}");
    }
    assert!(acknowledged > ROUNDS as usize, "the writers got to work");
}

/// How many events a device has.
fn events_of(store: &PostgresStore, device: &Profile) -> usize {
    let mut filter = HistoryFilter::all_of(device.customer.clone(), device.key());
    let mut count = 0;
    loop {
        let page = wait(store.events_of(filter.clone(), 500)).unwrap();
        count += page.events.len();
        filter.before = page.next;
        if page.next.is_none() {
            return count;
        }
    }
}

/// Commits from several threads until each was answered after the server was back; returns what
/// each batch was answered.
fn commit_while_the_server_is_killed(
    server: &mut PostgresServer,
    store: &PostgresStore,
    round: u64,
    rng: &mut Rng,
) -> Vec<(ActionId, Result<(), CommitError>)> {
    let commits = rng.below(COMMITS_MAX);
    let (acknowledge, acknowledged) = channel();
    let (is_back, number) = (AtomicBool::new(false), AtomicU64::new(1_000_000 * round));
    let meter = device(&acme(), 1);
    thread::scope(|scope| {
        let write = |acknowledge: Sender<()>| {
            let (mut committed, begun) = (Vec::new(), Instant::now());
            loop {
                let was_back = is_back.load(Ordering::SeqCst);
                let number = number.fetch_add(1, Ordering::SeqCst);
                let request = action(&meter, 10, number);
                let mut batch: Batch = created(&request);
                let event = event(&meter, 10, number);
                batch.changes.push(Change::AppendEvent(Box::new(event)));
                let verdict = wait(store.commit(batch));
                committed.push((request.id, verdict));
                if verdict == Ok(()) {
                    let _ = acknowledge.send(());
                }
                if was_back && verdict == Ok(()) {
                    return committed;
                }
                assert!(begun.elapsed() < BACK_MAX, "the store does not come back");
            }
        };
        let writers = (0..WRITERS).map(|_| {
            let acknowledge = acknowledge.clone();
            scope.spawn(move || write(acknowledge))
        });
        let writers: Vec<_> = writers.collect();
        for _ in 0..commits {
            acknowledged.recv_timeout(BACK_MAX).unwrap();
        }
        server.kill();
        server.start_again();
        is_back.store(true, Ordering::SeqCst);
        let committed = writers.into_iter().flat_map(|it| it.join().unwrap());
        committed.collect()
    })
}
