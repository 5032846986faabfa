//! What does a sweep remove?

use engine::action::{Action, Status};
use engine::change::Change;
use engine::customer::SecretDigest;

use super::given::{
    acme, action, at, client, created, customer, device, entry, known, moved, saved, token,
};
use super::lists::{everything, whole_log};
use super::{Ground, commit, put, wait};
use crate::{Retention, Store, Swept};

/// Each kind of thing is due at an instant of its own.
const RETENTION: fn() -> Retention = || Retention {
    actions_before: at(100),
    entries_before: at(200),
    tokens_before: at(300),
    promises_before: at(400),
    ..Retention::NOTHING
};

pub(super) fn removes_what_is_due(ground: &Ground<'_>) {
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
        Ok(Swept {
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
        Ok(Swept {
            removed: 0,
            more: false
        })
    );
}

pub(super) fn stops_at_its_bound(ground: &Ground<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    for chance in 0..10 {
        let request = action(&meter, 10, chance);
        assert_eq!(commit(&*store, created(&request)), Ok(()));
        finish(&*store, &request);
        put(
            &*store,
            vec![Change::AppendEntry(Box::new(entry(&meter, 10, chance)))],
        );
    }
    for left in [13, 6] {
        let swept = wait(store.sweep(RETENTION(), 7));
        assert_eq!(
            swept,
            Ok(Swept {
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
        Ok(Swept {
            removed: 6,
            more: false
        })
    );
    assert_eq!(everything(&*store, &acme()), (vec![], 0));
    assert_eq!(whole_log(&*store, &acme()), (vec![], 0));
}

fn finish(store: &dyn Store, request: &Action) -> Action {
    let done = moved(request, Status::Succeeded);
    assert_eq!(commit(store, saved(Some(request), &done)), Ok(()));
    done
}
