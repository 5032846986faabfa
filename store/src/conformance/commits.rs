//! What does a commit guarantee?

use std::net::IpAddr;
use std::sync::Barrier;
use std::thread;

use engine::action::Status;
use engine::change::{Batch, Change, Counter, CounterDelta, Expect, UniqueName};
use engine::customer::ApiClient;
use engine::ids::CustomerId;
use engine::query::PageRequest;
use engine::query::devices::{DeviceFilter, DevicePageRequest, DeviceTotal};

use super::lists::{everything, whole_log};
use super::samples::{acme, action, batch, client, created, customer, device, entry, moved, saved};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Store};

const RACERS: u64 = 16;

pub(super) fn whole_or_not_at_all(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let request = action(&meter, 10, 1);
    let mut all = created(&request);
    all.changes.push(Change::PutCustomer(customer("acme")));
    all.changes
        .push(Change::AppendEntry(Box::new(entry(&meter, 10, 1))));

    let mut refused = all.clone();
    refused
        .expects
        .push(Expect::Taken(UniqueName::Customer(acme())));
    assert_eq!(commit(&*store, refused), Err(CommitError::Conflict));
    assert_eq!(wait(store.customer(acme())), Ok(None));
    assert_eq!(wait(store.action(request.id)), Ok(None));
    assert_eq!(everything(&*store, &acme()), (vec![], 0));
    assert_eq!(whole_log(&*store, &acme()), (vec![], 0));

    assert_eq!(commit(&*store, all), Ok(()));
    assert_eq!(wait(store.customer(acme())), Ok(Some(customer("acme"))));
    assert_eq!(everything(&*store, &acme()), (vec![request], 1));
    assert_eq!(whole_log(&*store, &acme()), (vec![entry(&meter, 10, 1)], 1));
}

pub(super) fn only_if_expectations_hold(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let request = action(&meter, 10, 1);
    put(
        &*store,
        vec![Change::PutDevice {
            was: None,
            profile: Box::new(meter.clone()),
        }],
    );
    put(
        &*store,
        vec![Change::PutAction {
            was: None,
            action: Box::new(request.clone()),
        }],
    );

    let scheduled = Expect::Status {
        action: request.id,
        is: Status::Scheduled,
    };
    let started = Expect::Status {
        action: request.id,
        is: Status::InProgress,
    };
    let unknown = Expect::Status {
        action: action(&meter, 10, 2).id,
        is: Status::Scheduled,
    };
    let stranger = UniqueName::all_of(&device(&acme(), 2));
    for name in UniqueName::all_of(&meter) {
        check(&*store, Expect::Taken(name.clone()), Ok(()));
        check(&*store, Expect::Free(name), Err(CommitError::Conflict));
    }
    for name in stranger {
        check(&*store, Expect::Free(name.clone()), Ok(()));
        check(&*store, Expect::Taken(name), Err(CommitError::Conflict));
    }
    // Other devices of its customer may have its address, those of another customer may not.
    let address_for = |customer: &str, ip: IpAddr| {
        let customer = CustomerId::parse(customer).expect("an id");
        Expect::Free(UniqueName::Address { ip, customer })
    };
    let ip = meter.ip.expect("the sample has an address");
    check(&*store, address_for("acme", ip), Ok(()));
    check(
        &*store,
        address_for("globex", ip),
        Err(CommitError::Conflict),
    );
    let free = IpAddr::from([10, 9, 9, 9]);
    check(&*store, address_for("globex", free), Ok(()));
    check(&*store, scheduled, Ok(()));
    check(&*store, started, Err(CommitError::Conflict));
    check(&*store, unknown, Err(CommitError::Conflict));

    let script = client(&acme(), "script");
    put(&*store, vec![Change::PutClient(script.clone())]);
    let unchanged = Expect::Client(Box::new(script.clone()));
    check(&*store, unchanged, Ok(()));
    let changed = Expect::Client(Box::new(ApiClient {
        secrets: Vec::new(),
        ..script
    }));
    check(&*store, changed, Err(CommitError::Conflict));
}

pub(super) fn one_racer_wins(ground: &TestBed<'_>) {
    let store = ground.open();
    let wins = race(|racer| {
        let named = Change::PutCustomer(engine::customer::Customer {
            number: racer,
            ..customer("acme")
        });
        let expects = vec![Expect::Free(UniqueName::Customer(acme()))];
        let verdict = commit(
            &*store,
            Batch {
                expects,
                ..batch(vec![named])
            },
        );
        assert!(matches!(verdict, Ok(()) | Err(CommitError::Conflict)));
        verdict.is_ok().then_some(racer)
    });
    let kept = wait(store.customer(acme()))
        .expect("an answer")
        .expect("the winner's customer");
    assert_eq!(wins, vec![kept.number]);
}

pub(super) fn one_status_change_wins(ground: &TestBed<'_>) {
    let store = ground.open();
    let request = action(&device(&acme(), 1), 10, 1);
    assert_eq!(commit(&*store, created(&request)), Ok(()));
    let wins = race(|racer| {
        let to = if racer % 2 == 0 {
            Status::InProgress
        } else {
            Status::Cancelled
        };
        let verdict = commit(&*store, saved(Some(&request), &moved(&request, to)));
        verdict.is_ok().then_some(to)
    });
    let kept = wait(store.action(request.id))
        .expect("an answer")
        .expect("the request");
    assert_eq!(wins, vec![kept.status]);
    assert_eq!(everything(&*store, &acme()), (vec![kept], 1));
}

pub(super) fn adds_commute(ground: &TestBed<'_>) {
    let store = ground.open();
    let counter = Counter::Devices(acme());
    race(|racer| {
        for _ in 0..50 {
            let delta = if racer % 4 == 0 { -1 } else { 2 };
            let adds = vec![CounterDelta {
                counter: counter.clone(),
                delta,
            }];
            assert_eq!(
                commit(
                    &*store,
                    Batch {
                        adds,
                        ..Batch::default()
                    }
                ),
                Ok(())
            );
        }
        None::<()>
    });
    let page = PageRequest { number: 1, size: 1 };
    let all = DeviceFilter::all_of(acme());
    let listed = wait(store.devices_of(all, DevicePageRequest::of(page))).expect("an answer");
    // A quarter of the racers counts down by one, the others up by two.
    let total = listed.map(|page| page.total);
    assert_eq!(total, Ok(DeviceTotal::Exactly(RACERS / 4 * 50 * 5)));
}

pub(super) fn reopening_keeps(ground: &TestBed<'_>) {
    let meter = device(&acme(), 1);
    let requests: Vec<_> = (0..100).map(|rng| action(&meter, 10, rng)).collect();
    let store = ground.open();
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    let receipts: Vec<_> = requests
        .iter()
        .map(|one| store.commit(created(one)))
        .collect();
    for receipt in receipts {
        assert_eq!(wait(receipt), Ok(()));
    }
    drop(store);
    for _ in 0..2 {
        drop(ground.open());
    }
    let store = ground.open();
    assert_eq!(wait(store.customer(acme())), Ok(Some(customer("acme"))));
    let mut newest_first = requests;
    newest_first.sort_by_key(|request| std::cmp::Reverse(request.id));
    assert_eq!(everything(&*store, &acme()), (newest_first, 100));
}

fn check(store: &dyn Store, expect: Expect, verdict: Result<(), CommitError>) {
    let batch = Batch {
        expects: vec![expect.clone()],
        ..Batch::default()
    };
    assert_eq!(commit(store, batch), verdict, "{expect:?}");
}

/// Runs all racers at the same time and collects their results.
fn race<T: Send>(run: impl Fn(u64) -> Option<T> + Sync) -> Vec<T> {
    let start = Barrier::new(usize::try_from(RACERS).expect("a count"));
    thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (run, start) = (&run, &start);
                scope.spawn(move || {
                    start.wait();
                    run(racer)
                })
            })
            .collect();
        racers
            .into_iter()
            .filter_map(|racer| racer.join().expect("no panic"))
            .collect()
    })
}
