//! What does a sweep remove?

use engine::action::{Action, Status};
use engine::change::Change;
use engine::customer::SecretDigest;
use engine::ids::CustomerId;
use engine::query::HistoryFilter;

use super::idempotency::{once, record_of, records_of};
use super::lists::{everything, whole_log};
use super::samples::{
    acme, action, at, client, created, customer, device, entry, event, forgotten, known, moved,
    saved, token,
};
use super::{TestBed, commit, put, wait};
use crate::{Retention, Store, SweepReport};

/// Each kind of thing is due at a different instant.
const RETENTION: fn() -> Retention = || Retention {
    actions_before: at(100),
    entries_before: at(200),
    tokens_before: at(300),
    idempotency_before: at(400),
    ..Retention::NOTHING
};

pub(super) fn removes_what_is_due(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let script = client(&acme(), "script");
    assert_eq!(commit(&*store, known(&meter)), Ok(()));
    put(
        &*store,
        vec![
            Change::PutCustomer(customer("acme")),
            Change::PutClient(script.clone()),
            Change::PutToken(token(&script, "expired", at(299))),
            Change::PutToken(token(&script, "good", at(300))),
            Change::AppendEntry(Box::new(entry(&meter, 199, 1))),
            Change::AppendEntry(Box::new(entry(&meter, 200, 2))),
        ],
    );
    let waiting = action(&meter, 99, 1);
    let done = action(&meter, 99, 2);
    let recent = action(&meter, 100, 3);
    for request in [&waiting, &done, &recent] {
        assert_eq!(commit(&*store, created(request)), Ok(()));
    }
    finish(&*store, &done);
    let recent = finish(&*store, &recent);

    let swept = wait(store.sweep(RETENTION(), 100));
    assert_eq!(
        swept,
        Ok(SweepReport {
            removed: 3,
            more: false
        })
    );
    assert_eq!(wait(store.action(done.id)), Ok(None));
    assert_eq!(everything(&*store, &acme()), (vec![recent, waiting], 2));
    assert_eq!(
        whole_log(&*store, &acme()),
        (vec![entry(&meter, 200, 2)], 1)
    );
    assert_eq!(wait(store.token(SecretDigest::of("expired"))), Ok(None));
    assert!(
        wait(store.token(SecretDigest::of("good")))
            .expect("an answer")
            .is_some()
    );
    let again = wait(store.sweep(RETENTION(), 100));
    assert_eq!(
        again,
        Ok(SweepReport {
            removed: 0,
            more: false
        })
    );
}

pub(super) fn stops_at_its_bound(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    for rng in 0..10 {
        let request = action(&meter, 10, rng);
        assert_eq!(commit(&*store, created(&request)), Ok(()));
        finish(&*store, &request);
        put(
            &*store,
            vec![Change::AppendEntry(Box::new(entry(&meter, 10, rng)))],
        );
    }
    for left in [13, 6] {
        let swept = wait(store.sweep(RETENTION(), 7));
        assert_eq!(
            swept,
            Ok(SweepReport {
                removed: 7,
                more: true
            })
        );
        assert_eq!(
            everything(&*store, &acme()).1 + whole_log(&*store, &acme()).1,
            left
        );
    }
    drop(store);
    let store = ground.open();
    let swept = wait(store.sweep(RETENTION(), 7));
    assert_eq!(
        swept,
        Ok(SweepReport {
            removed: 6,
            more: false
        })
    );
    assert_eq!(everything(&*store, &acme()), (vec![], 0));
    assert_eq!(whole_log(&*store, &acme()), (vec![], 0));
}

pub(super) fn takes_of_every_kind(ground: &TestBed<'_>) {
    let store = ground.open();
    let (meter, gone) = (device(&acme(), 1), device(&acme(), 2));
    let script = client(&acme(), "script");
    for device in [&meter, &gone] {
        assert_eq!(commit(&*store, known(device)), Ok(()));
    }
    put(&*store, vec![Change::PutClient(script.clone())]);
    let token_of = |number: u64| token(&script, &number.to_string(), at(10));
    let once_of = |number: u64| once(&number.to_string());
    for number in 0..20 {
        let done = moved(&action(&meter, 10, number), Status::Succeeded);
        assert_eq!(commit(&*store, created(&done)), Ok(()));
        let changes = vec![
            Change::PutToken(token_of(number)),
            Change::PutIdempotencyRecord(record_of(once_of(number), &meter, 10)),
            Change::AppendEntry(Box::new(entry(&meter, 10, number))),
            Change::AppendEvent(Box::new(event(&meter, 10, number))),
            Change::AppendEvent(Box::new(event(&gone, 10, number))),
            Change::AppendEntry(Box::new(entry(&device(&gone_too(), 3), 500, number))),
        ];
        put(&*store, changes);
    }
    assert_eq!(commit(&*store, forgotten(&gone)), Ok(()));
    put(&*store, vec![Change::RemoveCustomer(gone_too())]);

    let left = || {
        let has_token = |number: &u64| {
            let digest = token_of(*number).digest;
            wait(store.token(digest)).expect("an answer").is_some()
        };
        let has_record = |number: &u64| !records_of(&*store, once_of(*number)).is_empty();
        [
            (0..20).filter(has_token).count(),
            (0..20).filter(has_record).count(),
            everything(&*store, &acme()).0.len(),
            whole_log(&*store, &acme()).0.len(),
            wait(store.events_of(
                HistoryFilter::all_of(meter.customer.clone(), meter.key()),
                20,
            ))
            .expect("an answer")
            .events
            .len(),
        ]
    };
    assert_eq!(left(), [20; 5]);
    let due = Retention {
        events_before: at(100),
        ..RETENTION()
    };
    let swept = wait(store.sweep(due, 35)).expect("a sweep");
    assert_eq!((swept.removed, swept.more), (35, true));
    assert!(left().iter().all(|left| *left < 20), "{:?}", left());
    let mut removed = 35;
    loop {
        let swept = wait(store.sweep(due, 35)).expect("a sweep");
        removed += swept.removed;
        if !swept.more {
            break;
        }
    }
    assert_eq!((removed, left()), (7 * 20, [0; 5]));
}

/// A customer that is removed.
fn gone_too() -> CustomerId {
    customer("globex").id
}

fn finish(store: &dyn Store, request: &Action) -> Action {
    let done = moved(request, Status::Succeeded);
    assert_eq!(commit(store, saved(Some(request), &done)), Ok(()));
    done
}
