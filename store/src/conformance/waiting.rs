//! Which events are queued, in which order, and who is notified?

use engine::action::{Outcome, Protocol, Status};
use engine::change::{Batch, Change, Expect, Owner, UniqueName};
use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::{ActionResult, ErrorReport, Event, EventContent, EventType, PayloadKept};
use engine::ids::{ActionId, EntryId, Shard};
use engine::profile::Profile;

use super::outbox::{
    all_waiting, append, counts, make, past, progress, removal, say, unmake, waiting_in,
};
use super::samples::{acme, at, batch, customer, destination, device, event, forgotten, known};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Retention};

pub(super) fn are_queued_in_order_shard_by_shard(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = meters(6);
    let erp = destination(&acme(), 1);
    make(&*store, &erp);
    let mut events: Vec<Event> = Vec::new();
    for (second, meter) in (1..).zip(meters.iter().cycle().take(30)) {
        let happening = happening(second);
        events.push(Event {
            content: happening,
            ..event(meter, second, 1)
        });
    }
    for chunk in events.chunks(4) {
        put(&*store, chunk.iter().map(append).collect());
    }
    let mut shards: Vec<Shard> = meters.iter().map(|meter| meter.key().shard()).collect();
    shards.sort_unstable();
    shards.dedup();
    assert_eq!(wait(store.shards_waiting(erp.id)), Ok(shards.clone()));
    for shard in shards {
        let waiting = waiting_in(&*store, &acme(), shard);
        let of_shard = |event: &&Event| event.device.shard() == shard;
        let expected: Vec<_> = events.iter().filter(of_shard).map(spec_of).collect();
        let found: Vec<_> = waiting.iter().map(found).collect();
        assert_eq!(found, expected);
        assert!(waiting.is_sorted_by(|one, next| one.sequence < next.sequence));
        let page = |after, max| wait(store.waiting(acme(), shard, after, max));
        assert_eq!(page(Sequence::default(), 2), Ok(waiting[..2].to_vec()));
        assert_eq!(page(waiting[1].sequence, 2), Ok(waiting[2..4].to_vec()));
        let last = waiting[waiting.len() - 1].sequence;
        assert_eq!(page(last, 2), Ok(vec![]));
        assert_eq!(page(Sequence(u64::MAX), 2), Ok(vec![]));
    }
    assert_eq!(counts(&*store, &erp), (30, 0));
}

pub(super) fn are_queued_only_with_destinations(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let [first, second] = [1, 2].map(|number| destination(&acme(), number));
    let stranger = device(&customer("acme-2").id, 1);
    say(&*store, &meter, 1);
    assert_eq!(all_waiting(&*store, &acme()), []);

    // A refused batch changes nothing.
    let refused = Batch {
        expects: vec![Expect::Taken(UniqueName::Customer(acme()))],
        ..batch(vec![Change::PutDestination(Box::new(first.clone()))])
    };
    assert_eq!(commit(&*store, refused), Err(CommitError::Conflict));
    let epoch = wait(store.take_over()).expect("an epoch") - 1;
    let shard = meter.key().shard();
    let fenced = Batch {
        owner: Owner::Shard { shard, epoch },
        ..batch(vec![Change::PutDestination(Box::new(first.clone()))])
    };
    assert_eq!(commit(&*store, fenced), Err(CommitError::Fenced));
    say(&*store, &meter, 2);
    assert_eq!(all_waiting(&*store, &acme()), []);

    // Within a batch, the order of changes matters.
    let [before, after] = [3, 4].map(|second| event(&meter, second, 1));
    let made = Change::PutDestination(Box::new(first.clone()));
    put(&*store, vec![append(&before), made, append(&after)]);
    say(&*store, &stranger, 5);
    let waiting = all_waiting(&*store, &acme());
    assert_eq!(
        waiting.iter().map(found).collect::<Vec<_>>(),
        [spec_of(&after)]
    );
    assert_eq!(all_waiting(&*store, &stranger.customer), []);

    // A destination added later begins behind the events that exist; one that is put again keeps
    // its start.
    make(&*store, &second);
    make(&*store, &first);
    assert_eq!(counts(&*store, &first), (1, 0));
    assert_eq!(counts(&*store, &second), (0, 0));
    assert_eq!(wait(store.shards_waiting(second.id)), Ok(vec![]));
    assert_eq!(
        wait(store.shards_waiting(first.id)),
        Ok(vec![meter.key().shard()])
    );
    unmake(&*store, &second);
    say(&*store, &meter, 6);
    assert_eq!(counts(&*store, &first), (2, 0));
    assert_eq!(counts(&*store, &second), (0, 0));

    let [before, after] = [7, 8].map(|second| event(&meter, second, 1));
    put(
        &*store,
        vec![append(&before), removal(&first), append(&after)],
    );
    say(&*store, &meter, 9);
    drop(store);
    let store = ground.open();
    say(&*store, &meter, 10);
    let waiting = all_waiting(&*store, &acme());
    assert_eq!(waiting.last().map(found), Some(spec_of(&before)));
}

pub(super) fn numbers_always_rise(ground: &TestBed<'_>) {
    let meter = device(&acme(), 1);
    let shard = meter.key().shard();
    let erp = destination(&acme(), 1);
    let mut last = Sequence::default();
    for round in 0..5 {
        let store = ground.open();
        make(&*store, &erp);
        for second in 0..3 {
            say(&*store, &meter, 10 * round + second);
            let newest = waiting_in(&*store, &acme(), shard).pop().expect("it waits");
            assert!(newest.sequence > last);
            last = newest.sequence;
        }
        // Even when no row with the newest number is left.
        let everything = all_waiting(&*store, &acme());
        progress(&*store, past(&erp, &everything));
        wait(store.sweep(Retention::NOTHING, 100)).expect("a sweep");
        assert_eq!(all_waiting(&*store, &acme()), []);
        if round % 2 == 0 {
            unmake(&*store, &erp);
            wait(store.sweep(Retention::NOTHING, 100)).expect("a sweep");
        }
    }
}

pub(super) fn may_be_removed_before_delivery(ground: &TestBed<'_>) {
    let store = ground.open();
    let [gone, stays] = [1, 2].map(|number| device(&acme(), number));
    for meter in [&gone, &stays] {
        assert_eq!(commit(&*store, known(meter)), Ok(()));
    }
    make(&*store, &destination(&acme(), 1));
    let events = [say(&*store, &gone, 10), say(&*store, &stays, 20)];
    let waiting = all_waiting(&*store, &acme());
    assert_eq!(commit(&*store, forgotten(&gone)), Ok(()));
    let found = |event: &Event| wait(store.event(event.device, event.id)).expect("an answer");
    for event in &events {
        assert_eq!(found(event).as_ref(), Some(event));
    }
    assert_eq!(wait(store.event(gone.key(), events[1].id)), Ok(None));
    let due = Retention {
        events_before: at(15),
        ..Retention::NOTHING
    };
    wait(store.sweep(due, 100)).expect("a sweep");
    assert_eq!(found(&events[0]), None);
    assert_eq!(found(&events[1]).as_ref(), Some(&events[1]));
    assert_eq!(all_waiting(&*store, &acme()), waiting, "it still waits");
}

pub(super) fn notifiers_report(ground: &TestBed<'_>) {
    let store = ground.open();
    let meters = meters(3);
    let erp = destination(&acme(), 1);
    make(&*store, &erp);
    say(&*store, &meters[0], 1);
    let [notifier, other] = [store.subscribe(acme()), store.subscribe(acme())];
    let elsewhere = store.subscribe(customer("acme-2").id);
    assert_eq!(notifier.take(), [], "earlier events are not reported");
    for (second, meter) in (2..).zip(meters.iter().chain(&meters)) {
        say(&*store, meter, second);
    }
    let mut shards: Vec<Shard> = meters.iter().map(|meter| meter.key().shard()).collect();
    shards.sort_unstable();
    shards.dedup();
    assert_eq!(wait(notifier.read()), shards);
    assert_eq!(notifier.take(), []);
    assert_eq!(wait(other.read()), shards);
    assert_eq!(elsewhere.take(), []);

    // Progress of a destination notifies nobody.
    let everything = all_waiting(&*store, &acme());
    progress(&*store, past(&erp, &everything));
    wait(store.sweep(Retention::NOTHING, 100)).expect("a sweep");
    assert_eq!(notifier.take(), []);
    drop(other);
    say(&*store, &meters[1], 20);
    assert_eq!(wait(notifier.read()), [meters[1].key().shard()]);
    unmake(&*store, &erp);
    say(&*store, &meters[2], 21);
    assert_eq!(notifier.take(), []);
}

/// Devices of a customer.
pub(super) fn meters(count: u64) -> Vec<Profile> {
    (0..count).map(|number| device(&acme(), number)).collect()
}

fn happening(second: i64) -> EventContent {
    match second % 3 {
        0 => EventContent::Error(Box::new(ErrorReport {
            entry: EntryId::from_bytes([3; 16]),
            message: "DeviceController[ActionRequestFailed]".into(),
            description: "It went wrong.".into(),
            payload: PayloadKept::Yes,
        })),
        1 => EventContent::ActionResult(Box::new(ActionResult {
            action: ActionId::from_bytes([4; 16]),
            protocol: Protocol::Lwm2m,
            status: Status::Failed,
            outcome: Some(Outcome {
                error: Some("It timed out.".into()),
                ..Outcome::default()
            }),
        })),
        _ => event(&device(&acme(), 1), second, 1).content,
    }
}

/// What is compared of a queued event.
type QueuedSpec = (engine::ids::DeviceKey, engine::ids::EventId, EventType);

fn spec_of(event: &Event) -> QueuedSpec {
    (event.device, event.id, event.content.event_type())
}

fn found(waiting: &QueuedEvent) -> QueuedSpec {
    (waiting.device, waiting.event, waiting.event_type)
}
