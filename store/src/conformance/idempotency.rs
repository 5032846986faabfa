//! What is stored of a call that must not take effect twice?

use std::slice::from_ref;

use engine::change::{Batch, Change, Expect};
use engine::idempotency::{
    CallFingerprint, CreatedByCall, IdempotencyKey, IdempotencyKeyText, IdempotencyRecord,
    IdempotentCall, IdentifiedDevice,
};
use engine::profile::Profile;
use engine::sealed::Sealed;

use super::samples::{acme, action, at, batch, device};
use super::{TestBed, commit, wait};
use crate::{CommitError, Retention, Store, SweepReport};

pub(super) fn come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let meters = [1, 2].map(|number| device(&acme(), number));
    let (one, other) = (once("one"), once("other"));
    let stored = [
        record_of(one, &meters[0], 10),
        record_of(one, &meters[1], 10),
        record_of(other, &meters[0], 20),
    ];
    for record in &stored {
        assert_eq!(commit(&*store, keeping(record.clone())), Ok(()));
    }
    let response = answered(once("response"), b"{}");
    assert_eq!(commit(&*store, keeping(response.clone())), Ok(()));
    let again = commit(&*store, keeping(response.clone()));
    assert_eq!(again, Err(CommitError::Conflict));
    for _ in 0..2 {
        let records = records_of(&*store, one);
        assert!(records.len() == 2 && records.contains(&stored[0]) && records.contains(&stored[1]));
        assert_eq!(records_of(&*store, other), [stored[2].clone()]);
        assert_eq!(records_of(&*store, response.call), from_ref(&response));
        assert_eq!(records_of(&*store, once("unheard-of")), []);
        drop(store);
        store = ground.open();
    }
}

pub(super) fn once_for_each_device(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = [1, 2].map(|number| device(&acme(), number));
    let first = record_of(once("one"), &meters[0], 10);
    assert_eq!(commit(&*store, keeping(first.clone())), Ok(()));
    let again = record_of(once("one"), &meters[0], 20);
    assert_eq!(commit(&*store, keeping(again)), Err(CommitError::Conflict));
    let elsewhere = record_of(once("one"), &meters[1], 20);
    assert_eq!(commit(&*store, keeping(elsewhere.clone())), Ok(()));
    let made_anew = Profile {
        number: meters[0].number + 7,
        ..meters[0].clone()
    };
    let anew = record_of(once("one"), &made_anew, 30);
    assert_eq!(commit(&*store, keeping(anew.clone())), Ok(()));
    let records = records_of(&*store, first.call);
    assert_eq!(records.len(), 3);
    let each = [&first, &elsewhere, &anew];
    assert!(each.iter().all(|record| records.contains(record)));
}

pub(super) fn go_when_they_are_old(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let [old, recent] =
        [("old", 99), ("recent", 100)].map(|(name, second)| record_of(once(name), &meter, second));
    assert_eq!(commit(&*store, keeping(old.clone())), Ok(()));
    assert_eq!(commit(&*store, keeping(recent.clone())), Ok(()));
    let due = Retention {
        idempotency_before: at(100),
        ..Retention::NOTHING
    };
    for removed in [1, 0] {
        let swept = SweepReport {
            removed,
            more: false,
        };
        assert_eq!(wait(store.sweep(due, 9)), Ok(swept));
    }
    assert_eq!(records_of(&*store, old.call), []);
    assert_eq!(records_of(&*store, recent.call), [recent]);
    let again = record_of(old.call, &meter, 101);
    assert_eq!(commit(&*store, keeping(again)), Ok(()));
}

pub(super) fn records_of(store: &dyn Store, once: IdempotentCall) -> Vec<IdempotencyRecord> {
    wait(store.idempotency_records(once.key)).expect("an answer")
}

pub(crate) fn once(name: &str) -> IdempotentCall {
    IdempotentCall {
        key: IdempotencyKey::of(4_711, &IdempotencyKeyText::parse(name).expect("a key")),
        fingerprint: CallFingerprint::of(&[name.as_bytes()]),
    }
}

pub(crate) fn record_of(once: IdempotentCall, device: &Profile, second: i64) -> IdempotencyRecord {
    let number = device.number;
    let key = device.key();
    IdempotencyRecord {
        call: once,
        created: CreatedByCall::Action {
            device: IdentifiedDevice { key, number },
            action: action(device, second, number).id,
        },
        at: at(second),
    }
}

fn answered(once: IdempotentCall, response: &[u8]) -> IdempotencyRecord {
    IdempotencyRecord {
        call: once,
        created: CreatedByCall::Answered(Sealed::from_bytes(response.into())),
        at: at(10),
    }
}

fn keeping(record: IdempotencyRecord) -> Batch {
    Batch {
        expects: vec![Expect::no_record_like(&record)],
        ..batch(vec![Change::PutIdempotencyRecord(record)])
    }
}
