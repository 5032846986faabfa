//! Is a value of any size stored in the log that is fsynced?
//!
//! sled writes what is too large for its log to files of their own, which it does not fsync.

#![allow(clippy::unwrap_used)]

use std::fs;

use engine::PathAndQuery;
use engine::action::{
    Action, CoapRequest, Content, ContentEncoding, Method, Outcome, Protocol, Request, Status,
};
use engine::change::Change;
use engine::delivery::backlog::Sequence;
use engine::event::{Data, Event, EventContent};
use engine::limits::{Limits, STRETCH_BYTES_MAX};
use engine::query::listed::Omitted;
use engine::query::{ActionFilter, HistoryFilter, PageRequest};
use store::conformance::samples::{
    PORT, acme, action, batch, created, definition, device, event, moved, saved,
};
use store::conformance::wait;
use store::{Commit, DeliveryReads, DirectoryReads, Options, SledStore};

/// The longest data of a request by default.
const REQUEST_BYTES: usize = 1_500_000;
const ANSWER_BYTES: usize = 100 * 1_024;
const DEFINITION_BYTES: usize = 256 * 1_024;

#[test]
fn answers_of_100_kib_leave_the_blobs_folder_empty() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let meter = device(&acme(), 1);
    let answered: Vec<Action> = (0..40)
        .map(|rng| answered(&action(&meter, 1, rng), ANSWER_BYTES))
        .collect();
    for done in &answered {
        let request = moved(done, Status::Scheduled);
        assert_eq!(wait(store.commit(created(&request))), Ok(()));
        assert_eq!(wait(store.commit(saved(Some(&request), done))), Ok(()));
    }
    assert_eq!(
        fs::read_dir(home.path().join("rows/blobs"))
            .unwrap()
            .count(),
        0
    );
    drop(store);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    for done in answered {
        assert_eq!(wait(store.action(done.id)), Ok(Some(done)));
    }
    assert_eq!(
        fs::read_dir(home.path().join("rows/blobs"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn definitions_of_256_kib_leave_the_blobs_folder_empty() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let large = |object| definition(&acme(), object, "1.0", DEFINITION_BYTES);
    for object in 0..20 {
        let put = Change::PutDefinition(Box::new(large(object)));
        assert_eq!(wait(store.commit(batch(vec![put]))), Ok(()));
    }
    let blobs = || fs::read_dir(home.path().join("rows/blobs")).unwrap();
    assert_eq!(blobs().count(), 0);
    drop(store);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    for object in 0..20 {
        let definition = large(object);
        let kept = wait(store.definition(definition.id.clone()));
        assert_eq!(kept, Ok(Some(definition)));
    }
    assert_eq!(blobs().count(), 0);
}

#[test]
fn the_longest_requests_and_answers_leave_the_blobs_folder_empty() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let meter = device(&acme(), 1);
    let answer_bytes = Limits::default().answer_bytes_max;
    let mut done = Vec::new();
    for rng in 0..3 {
        let first = Action {
            request: update(rng),
            ..action(&meter, 1, rng)
        };
        let begun = moved(&first, Status::InProgress);
        let answered = answered(&begun, answer_bytes);
        assert_eq!(wait(store.commit(created(&first))), Ok(()));
        assert_eq!(wait(store.commit(saved(Some(&first), &begun))), Ok(()));
        assert_eq!(wait(store.action(first.id)), Ok(Some(begun.clone())));
        assert_eq!(wait(store.commit(saved(Some(&begun), &answered))), Ok(()));
        done.push(answered);
    }
    let blobs = || fs::read_dir(home.path().join("rows/blobs")).unwrap();
    assert_eq!(blobs().count(), 0);
    drop(store);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let page = PageRequest { number: 1, size: 3 };
    let listed = wait(store.actions(ActionFilter::all_of(acme()), page)).unwrap();
    for listed in listed.items {
        let omitted = [Omitted::RequestData, Omitted::ResultPayload];
        assert_eq!(listed.omitted, omitted, "a list leaves out what is long");
        assert_eq!(listed.action.request.data_bytes(), 0);
    }
    for done in done {
        assert_eq!(wait(store.action(done.id)), Ok(Some(done)));
    }
    assert_eq!(blobs().count(), 0);
}

#[test]
fn a_page_of_history_ends_where_it_would_be_too_large() {
    const EVENTS: i64 = 12;
    const DATA_BYTES: usize = 1_024 * 1_024;
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let meter = device(&acme(), 1);
    for second in 1..=EVENTS {
        let event = Event {
            content: data(DATA_BYTES),
            ..event(&meter, second, 1)
        };
        let append = Change::AppendEvent(Box::new(event));
        assert_eq!(wait(store.commit(batch(vec![append]))), Ok(()));
    }
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let filter = HistoryFilter {
            before,
            ..HistoryFilter::all_of(meter.customer.clone(), meter.key())
        };
        let stretch = wait(store.events_of(filter, 100)).unwrap();
        assert!(stretch.events.len() * DATA_BYTES <= STRETCH_BYTES_MAX + DATA_BYTES);
        read.extend(stretch.events.into_iter().map(|event| event.at));
        before = stretch.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(read.len(), 12);
    assert!(read.is_sorted_by(|newer, older| newer > older));
}

#[test]
fn data_of_64_kib_and_of_a_mebibyte_leaves_the_blobs_folder_empty() {
    let home = tempfile::tempdir().unwrap();
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let meter = device(&acme(), 1);
    let events: Vec<Event> = [64 * 1_024, 64 * 1_024 + 1, 1_024 * 1_024]
        .into_iter()
        .zip(1..)
        .map(|(bytes, second)| Event {
            content: data(bytes),
            ..event(&meter, second, 1)
        })
        .collect();
    for event in &events {
        let append = Change::AppendEvent(Box::new(event.clone()));
        assert_eq!(wait(store.commit(batch(vec![append]))), Ok(()));
    }
    let blobs = || fs::read_dir(home.path().join("rows/blobs")).unwrap();
    assert_eq!(blobs().count(), 0);
    drop(store);
    let store = SledStore::open(Options::at(home.path())).unwrap();
    let partition = meter.key().partition();
    let stored = wait(store.waiting(acme(), partition, Sequence::default(), u32::MAX)).unwrap();
    assert_eq!(stored.len(), events.len());
    for (queued, event) in stored.into_iter().zip(events) {
        assert_eq!(wait(store.event(acme(), queued)), Ok(Some(event)));
    }
    assert_eq!(blobs().count(), 0);
}

/// A request of the largest size.
fn update(rng: u64) -> Request {
    let text = format!("{rng:08}").repeat(REQUEST_BYTES / 8);
    let content = Content::parse(ContentEncoding::String, &text).unwrap();
    Request::Coap(CoapRequest {
        method: Method::Put,
        port: PORT,
        target: PathAndQuery::parse("/firmware").unwrap(),
        content: Some(content),
    })
}

fn data(bytes: usize) -> EventContent {
    let bytes = (0..=u8::MAX).cycle().take(bytes).collect();
    EventContent::Data(Box::new(Data {
        source: Protocol::Coap,
        topic: None,
        bytes,
    }))
}

fn answered(request: &Action, bytes: usize) -> Action {
    let payload = request.id.to_string().repeat(bytes / 36);
    let outcome = Outcome {
        payload: Some(payload.into()),
        ..Outcome::default()
    };
    Action {
        outcome: Some(outcome),
        ..moved(request, Status::Succeeded)
    }
}
