//! What does a list show while requests change?

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::action::{Action, Status};
use engine::query::{ActionFilter, ActionOrder, PageRequest};

use super::samples::{acme, action, at, created, device, moved, saved};
use super::{TestBed, commit, wait};
use crate::Store;

const REQUESTS: u64 = 40;
const CHANGES: u64 = 2_000;

/// All requests on one page.
const ALL: PageRequest = PageRequest {
    number: 1,
    size: 1_000,
};

pub(super) fn nothing_twice(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let mut requests: Vec<Action> = (0..REQUESTS).map(|rng| action(&meter, 0, rng)).collect();
    for request in &requests {
        assert_eq!(commit(&*store, created(request)), Ok(()));
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let lists = ActionOrder::ALL.map(|order| {
            let (store, is_over) = (&*store, &is_over);
            scope.spawn(move || list_until(store, order, is_over))
        });
        for change in 0..CHANGES {
            let number = usize::try_from(change % REQUESTS).expect("small");
            let old = &requests[number];
            let new = changed(old, change);
            assert_eq!(commit(&*store, saved(Some(old), &new)), Ok(()));
            requests[number] = new;
        }
        is_over.store(true, Ordering::Relaxed);
        for list in lists {
            list.join().expect("no list showed a request twice");
        }
    });
}

/// Moves the request to the front of the list, and sometimes to another status.
fn changed(old: &Action, change: u64) -> Action {
    let status = match change / REQUESTS % 3 {
        0 | 1 => Status::InProgress,
        _ => Status::Failed,
    };
    let second = i64::try_from(change).expect("small");
    Action {
        updated_at: at(1 + second),
        ..moved(old, status)
    }
}

fn list_until(store: &dyn Store, order: ActionOrder, is_over: &AtomicBool) {
    let filter = ActionFilter {
        order,
        ..ActionFilter::all_of(acme())
    };
    while !is_over.load(Ordering::Relaxed) {
        let page = wait(store.actions(filter.clone(), ALL)).expect("an answer");
        let mut ids = HashSet::new();
        for request in &page.items {
            let id = request.action.id;
            assert!(ids.insert(id), "{order:?}: {id} twice");
        }
    }
}
