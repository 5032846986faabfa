//! What becomes of queued events that every destination is past?

use engine::delivery::backlog::{ProgressUpdate, QueuedEvent};
use engine::ids::CustomerId;

use super::outbox::{all_waiting, held, make, past, progress, say, sweep_all, unmake, waiting_in};
use super::samples::{acme, customer, destination, device};
use super::waiting::meters;
use super::{TestBed, wait};
use crate::Retention;

pub(super) fn are_removed_when_all_are_past(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let meters = meters(4);
    let [fast, slow] = [1, 2].map(|number| destination(&acme(), number));
    make(&*store, &fast);
    make(&*store, &slow);
    for (second, meter) in (1..).zip(meters.iter().cycle().take(40)) {
        say(&*store, meter, second);
    }
    let all = all_waiting(&*store, &acme());
    progress(&*store, past(&fast, &all));
    assert_eq!(sweep_all(&*store, Retention::NOTHING, 100), 0);
    assert_eq!(all_waiting(&*store, &acme()), all);

    // The slow one is past half of each shard and retries one event, which is stored with the
    // destination.
    let half: Vec<QueuedEvent> = meters
        .iter()
        .flat_map(|meter| {
            waiting_in(&*store, &acme(), meter.key().shard())
                .into_iter()
                .take(5)
        })
        .collect();
    let step = ProgressUpdate {
        retrying: vec![held(half[0], 1)],
        ..past(&slow, &half)
    };
    progress(&*store, step);
    let left: Vec<QueuedEvent> = all
        .iter()
        .filter(|one| !half.contains(one))
        .copied()
        .collect();
    assert_eq!(sweep_all(&*store, Retention::NOTHING, 7), 20);
    for _ in 0..2 {
        assert_eq!(all_waiting(&*store, &acme()), left);
        assert_eq!(wait(store.shards_waiting(fast.id)), Ok(vec![]));
        let standing = wait(store.progress_of(slow.id)).expect("an answer");
        assert_eq!(standing.retrying, [held(half[0], 1)]);
        drop(store);
        store = ground.open();
        assert_eq!(sweep_all(&*store, Retention::NOTHING, 7), 0);
    }
    // Without the slow one, no destination needs the rest.
    unmake(&*store, &slow);
    assert_eq!(sweep_all(&*store, Retention::NOTHING, 7), 20 + 1);
    assert_eq!(all_waiting(&*store, &acme()), []);
}

pub(super) fn are_removed_with_the_last_destination(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = meters(4);
    let [old, new] = [1, 2].map(|number| destination(&acme(), number));
    make(&*store, &old);
    for (second, meter) in (1..).zip(meters.iter().cycle().take(40)) {
        say(&*store, meter, second);
    }
    unmake(&*store, &old);
    let swept = wait(store.sweep(Retention::NOTHING, 15)).expect("a sweep");
    assert_eq!((swept.removed, swept.more), (15, true));
    make(&*store, &new);
    say(&*store, &meters[0], 50);
    drop(store);
    let store = ground.open();
    assert_eq!(
        wait(store.shards_waiting(new.id)),
        Ok(vec![meters[0].key().shard()])
    );
    assert_eq!(sweep_all(&*store, Retention::NOTHING, 15), 25);
    assert_eq!(all_waiting(&*store, &acme()).len(), 1);
}

pub(super) fn are_removed_customer_by_customer(ground: &TestBed<'_>) {
    let store = ground.open();
    let customers = ["a", "b", "c"].map(|id| customer(id).id);
    for (customer, number) in customers.iter().zip(1..) {
        let erp = destination(customer, number);
        make(&*store, &erp);
        let meter = device(customer, u64::from(number));
        for second in 0..60 {
            say(&*store, &meter, second);
        }
        let all = all_waiting(&*store, customer);
        progress(&*store, past(&erp, &all));
    }
    let left = |customer: &CustomerId| all_waiting(&*store, customer).len();
    for _ in 0..customers.len() {
        let swept = wait(store.sweep(Retention::NOTHING, 20)).expect("a sweep");
        assert_eq!((swept.removed, swept.more), (20, true));
    }
    assert!(customers.iter().all(|customer| left(customer) < 60));
    assert_eq!(sweep_all(&*store, Retention::NOTHING, 20), 120);
    assert!(customers.iter().all(|customer| left(customer) == 0));
}
