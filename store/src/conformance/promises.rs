//! What is remembered of a call that must not happen twice?

use engine::change::{Batch, Change, Expect};
use engine::profile::Profile;
use engine::promise::{Fingerprint, KeyText, Once, OnceKey, Promise};

use super::given::{acme, action, at, batch, device};
use super::{Ground, commit, wait};
use crate::{CommitError, Retention, Store, Swept};

pub(super) fn come_back(ground: &Ground<'_>) {
    let mut store = ground.open();
    let meters = [1, 2].map(|number| device(&acme(), number));
    let (one, other) = (once("one"), once("other"));
    let kept = [
        promised(one, &meters[0], 10),
        promised(one, &meters[1], 10),
        promised(other, &meters[0], 20),
    ];
    for promise in kept {
        assert_eq!(commit(&*store, keeping(promise)), Ok(()));
    }
    for _ in 0..2 {
        let told = told_of(&*store, one);
        assert!(told.len() == 2 && told.contains(&kept[0]) && told.contains(&kept[1]));
        assert_eq!(told_of(&*store, other), [kept[2]]);
        assert_eq!(told_of(&*store, once("unheard-of")), []);
        drop(store);
        store = ground.open();
    }
}

pub(super) fn once_for_each_device(ground: &Ground<'_>) {
    let store = ground.open();
    let meters = [1, 2].map(|number| device(&acme(), number));
    let first = promised(once("one"), &meters[0], 10);
    assert_eq!(commit(&*store, keeping(first)), Ok(()));
    let again = promised(once("one"), &meters[0], 20);
    assert_eq!(commit(&*store, keeping(again)), Err(CommitError::Conflict));
    let elsewhere = promised(once("one"), &meters[1], 20);
    assert_eq!(commit(&*store, keeping(elsewhere)), Ok(()));
    let anew = Promise {
        number: first.number + 7,
        ..promised(once("one"), &meters[0], 30)
    };
    assert_eq!(commit(&*store, keeping(anew)), Ok(()), "made anew");
    let kept = told_of(&*store, first.once);
    assert_eq!(kept.len(), 3);
    let each = [&first, &elsewhere, &anew];
    assert!(each.iter().all(|promise| kept.contains(promise)));
}

pub(super) fn go_when_they_are_old(ground: &Ground<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let [old, recent] =
        [("old", 99), ("recent", 100)].map(|(name, second)| promised(once(name), &meter, second));
    assert_eq!(commit(&*store, keeping(old)), Ok(()));
    assert_eq!(commit(&*store, keeping(recent)), Ok(()));
    let due = Retention {
        promises_before: at(100),
        ..Retention::NOTHING
    };
    for removed in [1, 0] {
        let swept = Swept {
            removed,
            more: false,
        };
        assert_eq!(wait(store.sweep(due, 9)), Ok(swept));
    }
    assert_eq!(told_of(&*store, old.once), []);
    assert_eq!(told_of(&*store, recent.once), [recent]);
    let again = promised(old.once, &meter, 101);
    assert_eq!(commit(&*store, keeping(again)), Ok(()));
}

pub(super) fn told_of(store: &dyn Store, once: Once) -> Vec<Promise> {
    wait(store.promises_under(once.key)).expect("an answer")
}

pub(super) fn once(name: &str) -> Once {
    Once {
        key: OnceKey::of(4_711, &KeyText::parse(name).expect("a key")),
        call: Fingerprint::of(&[name.as_bytes()]),
    }
}

pub(super) fn promised(once: Once, device: &Profile, second: i64) -> Promise {
    Promise {
        once,
        device: device.key(),
        number: device.number,
        action: action(device, second, device.number).id,
        at: at(second),
    }
}

fn keeping(promise: Promise) -> Batch {
    let Promise {
        once,
        device,
        number,
        ..
    } = promise;
    let key = once.key;
    Batch {
        expects: vec![Expect::Unpromised {
            key,
            device,
            number,
        }],
        ..batch(vec![Change::KeepPromise(promise)])
    }
}
