//! What do lists show? Compared with a naive model over random data, filters and pages.

use engine::action::{Action, Protocol, Status};
use engine::admin_log::entry::{Category, Entry, Subject};
use engine::admin_log::window::TimeWindow;
use engine::change::Change;
use engine::ids::CustomerId;
use engine::limits::LOG_ENTRIES_SEARCHED_MAX;
use engine::moment::Timestamp;
use engine::query::devices::{DeviceFilter, DevicePageRequest};
use engine::query::{
    ActionFilter, ActionOrder, EntryKind, LogFilter, LogSearchTooBroad, PageRequest, Statuses,
};

use super::fleet::profiles;
use super::model::Model;
use super::rng::Rng;
use super::samples::{
    acme, action, at, batch, created, customer, device, entry, forgotten, known, moved, requests,
    saved,
};
use super::{TestBed, put, wait};
use crate::{Receipt, Retention, Store};

const STEPS: u64 = 600;
const QUESTIONS: u64 = 300;
const SUBJECTS: [Subject; 4] = [
    Subject::Device,
    Subject::Lifecycle,
    Subject::Integration,
    Subject::General,
];
const CATEGORIES: [Category; 2] = [Category::Error, Category::Info];

pub(super) fn agree_with_model(ground: &TestBed<'_>) {
    let mut rng = Rng::from_seed_asked_for();
    let mut model = Model::default();
    let store = ground.open();
    let receipts: Vec<_> = (0..STEPS)
        .filter_map(|step| take_step(step, &*store, &mut model, &mut rng))
        .collect();
    for receipt in receipts {
        assert_eq!(wait(receipt), Ok(()));
    }
    compare(&*store, &model, &mut rng);
    drop(store);
    let store = ground.open();
    compare(&*store, &model, &mut rng);
    remove_actions(&acme(), &*store);
    model.remove_actions(&acme());
    compare(&*store, &model, &mut rng);
}

pub(super) fn search_of_log_is_bounded(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let [failed, expired] = ["ActionRequestFailed", "ActionRequestExpired"]
        .map(|kind| EntryKind::parse(kind).expect("a kind"));
    let window = |until| TimeWindow { from: at(0), until };
    let filter = |until| LogFilter {
        customer: acme(),
        window: window(until),
        iccid: None,
        category: None,
        subject: None,
    };
    let append = |second, number| {
        let entries = (0..number).map(|rng| entry(&meter, second, rng));
        let changes = entries.map(|entry| Change::AppendEntry(Box::new(entry)));
        let committed = wait(store.commit(batch(changes.collect())));
        assert_eq!(committed, Ok(()));
    };
    let page = |number| PageRequest { number, size: 2 };
    let ask = |until, kind: &EntryKind, number| {
        wait(store.entries_of_kind(filter(until), kind.clone(), page(number))).expect("an answer")
    };
    append(1, 1);
    append(2, 2);
    let first = ask(at(9), &failed, 1).expect("few entries");
    let times: Vec<_> = first.items.iter().map(|entry| entry.at).collect();
    assert_eq!((times, first.total), (vec![at(2), at(2)], 3));
    let second = ask(at(9), &failed, 2).expect("few entries");
    assert_eq!((second.items.len(), second.items[0].at), (1, at(1)));
    let others = ask(at(9), &expired, 1).expect("few entries");
    assert_eq!((others.items, others.total), (Vec::new(), 0));

    for second in 10..30 {
        append(second, u64::from(LOG_ENTRIES_SEARCHED_MAX / 20));
    }
    assert_eq!(ask(at(99), &failed, 1), Err(LogSearchTooBroad));
    assert_eq!(ask(at(9), &failed, 1), Ok(first));
}

/// All requests of a customer, and their total.
pub(super) fn everything(store: &dyn Store, customer: &CustomerId) -> (Vec<Action>, u64) {
    let filter = ActionFilter::all_of(customer.clone());
    let page = wait(store.actions(filter, ALL)).expect("an answer");
    let actions = page.items.into_iter().map(|listed| listed.action);
    (actions.collect(), page.total)
}

/// The whole log of a customer, and its total.
pub(super) fn whole_log(store: &dyn Store, customer: &CustomerId) -> (Vec<Entry>, u64) {
    let filter = LogFilter {
        customer: customer.clone(),
        window: TimeWindow {
            from: at(-1_000_000),
            until: at(1_000_000),
        },
        iccid: None,
        category: None,
        subject: None,
    };
    let page = wait(store.entries(filter, ALL)).expect("an answer");
    (page.items, page.total)
}

const ALL: PageRequest = PageRequest {
    number: 1,
    size: 1_000_000,
};

/// Applies one random change to the store and to the model.
fn take_step(step: u64, store: &dyn Store, model: &mut Model, rng: &mut Rng) -> Option<Receipt> {
    let second = i64::try_from(step / 4).expect("a few hundred");
    let devices = model.devices();
    let pending = model.pending();
    match rng.below(40) {
        0 => {
            sweep(
                store,
                model,
                at(i64::try_from(rng.below(150)).expect("small")),
            );
            None
        }
        1 if !devices.is_empty() => {
            let gone = rng.one_of(&devices);
            model.forget(&gone);
            Some(store.commit(forgotten(&gone)))
        }
        2..12 if !devices.is_empty() => {
            let new = Entry {
                subject: rng.one_of(&SUBJECTS),
                category: rng.one_of(&CATEGORIES),
                ..entry(&rng.one_of(&devices), second, step)
            };
            model.append(new.clone());
            Some(store.commit(batch(vec![Change::AppendEntry(Box::new(new))])))
        }
        12..24 if !devices.is_empty() => {
            let new = Action {
                request: rng.one_of(&requests()),
                ..action(&rng.one_of(&devices), second, step)
            };
            model.put(new.clone());
            Some(store.commit(created(&new)))
        }
        24..36 if !pending.is_empty() => {
            let old = rng.one_of(&pending);
            let new = changed(&old, second, rng);
            model.put(new.clone());
            Some(store.commit(saved(Some(&old), &new)))
        }
        _ => {
            let new = device(&rng.one_of(&[acme(), customer("globex").id]), step);
            model.know(new.clone());
            Some(store.commit(known(&new)))
        }
    }
}

/// The request after a change at a second: of its status, or only of its time.
fn changed(old: &Action, second: i64, rng: &mut Rng) -> Action {
    let new = moved(old, rng.one_of(&Status::ALL));
    if new.status.is_untouched() {
        return new;
    }
    Action {
        updated_at: at(second),
        ..new
    }
}

fn sweep(store: &dyn Store, model: &mut Model, before: Timestamp) {
    let retention = Retention {
        actions_before: before,
        entries_before: before,
        tokens_before: before,
        ..Retention::NOTHING
    };
    let mut removed = 0;
    loop {
        let swept = wait(store.sweep(retention, 7)).expect("an answer");
        removed += swept.removed;
        if !swept.more {
            break;
        }
    }
    assert_eq!(removed, model.sweep(before));
}

/// Removes every request of a customer, batch by batch.
fn remove_actions(customer: &CustomerId, store: &dyn Store) {
    let mut left = everything(store, customer).1;
    while left > 0 {
        put(store, vec![Change::RemoveActions(customer.clone())]);
        let before = std::mem::replace(&mut left, everything(store, customer).1);
        assert!(left < before, "a batch removes some");
    }
}

fn compare(store: &dyn Store, model: &Model, rng: &mut Rng) {
    for _ in 0..QUESTIONS {
        let customer = rng.one_of(&[acme(), customer("globex").id]);
        let page = page(rng);
        let all = DeviceFilter::all_of(customer.clone());
        let listed = wait(store.devices_of(all, DevicePageRequest::of(page)));
        let listed = listed.map(|listed| listed.map(profiles));
        assert_eq!(
            listed,
            Ok(Ok(model.devices_of(&customer, page))),
            "{page:?}"
        );

        let filter = action_filter(&customer, model, rng);
        let listed = wait(store.actions(filter.clone(), page));
        assert_eq!(
            listed,
            Ok(model.actions(&filter, page)),
            "{filter:?} {page:?}"
        );

        let filter = log_filter(&customer, model, rng);
        let listed = wait(store.entries(filter.clone(), page));
        assert_eq!(
            listed,
            Ok(model.entries(&filter, page)),
            "{filter:?} {page:?}"
        );
    }
}

fn page(rng: &mut Rng) -> PageRequest {
    let mut below = |bound| u32::try_from(rng.below(bound)).expect("small");
    PageRequest {
        number: 1 + below(6),
        size: 1 + below(40),
    }
}

fn action_filter(customer: &CustomerId, model: &Model, rng: &mut Rng) -> ActionFilter {
    let devices = model.devices_with_actions(customer);
    let device = if devices.is_empty() {
        None
    } else {
        rng.maybe(&devices)
    };
    ActionFilter {
        customer: customer.clone(),
        device,
        protocol: rng.maybe(&Protocol::ALL),
        statuses: statuses(rng),
        order: rng.one_of(&ActionOrder::ALL),
    }
}

fn statuses(rng: &mut Rng) -> Statuses {
    let set = rng.one_of(&[Statuses::all(), Statuses::pending(), Statuses::done()]);
    let one = rng.maybe(&Status::ALL);
    one.map_or(set, |status| set.only(status))
}

fn log_filter(customer: &CustomerId, model: &Model, rng: &mut Rng) -> LogFilter {
    let mut second = || at(i64::try_from(rng.below(160)).expect("small"));
    let (one, other) = (second(), second());
    let devices = model.devices_with_customer(customer);
    let device = if devices.is_empty() {
        None
    } else {
        rng.maybe(&devices)
    };
    LogFilter {
        customer: customer.clone(),
        window: TimeWindow {
            from: one.min(other),
            until: one.max(other),
        },
        iccid: device.map(|device| device.iccid),
        category: rng.maybe(&CATEGORIES),
        subject: rng.maybe(&SUBJECTS),
    }
}
