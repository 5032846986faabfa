//! What becomes of the payloads of log entries?

use engine::admin_log::entry::Entry;
use engine::admin_log::payload::EntryPayload;
use engine::change::Change;
use engine::ids::EntryId;
use engine::limits::LOG_PAYLOAD_BYTES_MAX;

use super::lists::whole_log;
use super::samples::{acme, at, customer, device, entry};
use super::{TestBed, put, wait};
use crate::{Retention, Store};

pub(super) fn of_any_size(ground: &TestBed<'_>) {
    let store = ground.open();
    let sizes = [0, 1, 4_095, 4_096, 10_000, LOG_PAYLOAD_BYTES_MAX];
    let mut written: Vec<(Entry, Vec<u8>)> = Vec::new();
    for (size, rng) in sizes.into_iter().zip(1..) {
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(size).collect();
        let new = about_bytes(10, rng, &bytes);
        append(&*store, &new);
        written.push((new, bytes));
    }
    let bare = entry(&device(&acme(), 1), 10, 99);
    append(&*store, &bare);
    drop(store);

    let store = ground.open();
    for (entry, bytes) in &written {
        assert_eq!(payload(&*store, entry.id), Some(bytes.clone().into()));
        let elsewhere = wait(store.entry_payload(customer("globex").id, entry.id));
        assert_eq!(elsewhere, Ok(None));
        let one = |customer| wait(store.entry(customer, entry.id));
        assert_eq!(one(acme()), Ok(Some(listed(entry))));
        assert_eq!(one(customer("globex").id), Ok(None));
    }
    assert_eq!(payload(&*store, bare.id), None);
    // A list shows the size of a payload, and none of its bytes.
    let mut listed: Vec<Entry> = written.iter().map(|(entry, _)| listed(entry)).collect();
    listed.push(bare);
    listed.sort_by_key(|entry| std::cmp::Reverse(entry.id));
    assert_eq!(whole_log(&*store, &acme()), (listed, 7));
}

pub(super) fn go_with_their_entries(ground: &TestBed<'_>) {
    let store = ground.open();
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    let [old, recent] = [10, 100].map(|second| about_bytes(second, 1, &[7; 9_000]));
    append(&*store, &old);
    append(&*store, &recent);
    let due = Retention {
        entries_before: at(50),
        ..Retention::NOTHING
    };
    assert_eq!(wait(store.sweep(due, 9)).map(|swept| swept.removed), Ok(1));
    assert_eq!(payload(&*store, old.id), None);
    assert!(payload(&*store, recent.id).is_some());

    // A customer never sees the payloads of a former customer with the same id.
    put(&*store, vec![Change::RemoveCustomer(acme())]);
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    let fresh = about_bytes(200, 1, &[8; 9_000]);
    append(&*store, &fresh);
    for swept in [1, 0] {
        assert_eq!(payload(&*store, recent.id), None);
        assert_eq!(wait(store.entry(acme(), recent.id)), Ok(None));
        assert_eq!(payload(&*store, fresh.id), Some([8; 9_000].into()));
        let removed = wait(store.sweep(due, 9)).map(|swept| swept.removed);
        assert_eq!(removed, Ok(swept));
    }
}

/// An entry with a payload.
fn about_bytes(second: i64, rng: u64, bytes: &[u8]) -> Entry {
    Entry {
        payload: Some(EntryPayload::of(bytes)),
        ..entry(&device(&acme(), 1), second, rng)
    }
}

/// The entry as a list shows it.
fn listed(entry: &Entry) -> Entry {
    Entry {
        payload: entry.payload.as_ref().map(EntryPayload::without_bytes),
        ..entry.clone()
    }
}

fn append(store: &dyn Store, entry: &Entry) {
    put(store, vec![Change::AppendEntry(Box::new(entry.clone()))]);
}

fn payload(store: &dyn Store, entry: EntryId) -> Option<Box<[u8]>> {
    wait(store.entry_payload(acme(), entry)).expect("an answer")
}
