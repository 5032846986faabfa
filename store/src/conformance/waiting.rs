//! Which events are queued, in which order, and who is notified?

use engine::action::{Outcome, Protocol, Status};
use engine::change::{Batch, Change, Expect, Owner, UniqueName};
use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::{
    ActionResult, ErrorReport, Event, EventContent, EventType, Lifecycle, PayloadKept,
};
use engine::ids::{ActionId, EntryId, Partition};
use engine::profile::Profile;

use super::outbox::{
    all_waiting, append, counts, make, past, progress, say, unmake, waiting_for, waiting_in,
};
use super::samples::{acme, at, batch, customer, destination, device, event, forgotten, known};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Retention};

pub(super) fn are_queued_in_order_partition_by_partition(ground: &TestBed<'_>) {
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
    let mut partitions: Vec<Partition> =
        meters.iter().map(|meter| meter.key().partition()).collect();
    partitions.sort_unstable();
    partitions.dedup();
    assert_eq!(
        wait(store.partitions_waiting(erp.id)),
        Ok(partitions.clone())
    );
    for partition in partitions {
        let waiting = waiting_in(&*store, &acme(), partition);
        let of_partition = |event: &&Event| event.device.partition() == partition;
        let expected: Vec<_> = events.iter().filter(of_partition).map(spec_of).collect();
        let found: Vec<_> = waiting.iter().map(found).collect();
        assert_eq!(found, expected);
        assert!(waiting.is_sorted_by(|one, next| one.sequence < next.sequence));
        let page = |after, max| wait(store.waiting(acme(), partition, after, max));
        assert_eq!(page(Sequence::default(), 2), Ok(waiting[..2].to_vec()));
        assert_eq!(page(waiting[1].sequence, 2), Ok(waiting[2..4].to_vec()));
        let last = waiting[waiting.len() - 1].sequence;
        assert_eq!(page(last, 2), Ok(vec![]));
        assert_eq!(page(Sequence(u64::MAX), 2), Ok(vec![]));
    }
    assert_eq!(counts(&*store, &erp), (30, 0));
}

pub(super) fn begin_behind_what_there_is(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let [first, second] = [1, 2].map(|number| destination(&acme(), number));
    let stranger = device(&customer("acme-2").id, 1);
    say(&*store, &meter, 1);

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
    assert_eq!(wait(store.destination(first.id)), Ok(None));

    // Within a batch, the order of changes matters.
    let [before, after] = [3, 4].map(|second| event(&meter, second, 1));
    let made = Change::PutDestination(Box::new(first.clone()));
    put(&*store, vec![append(&before), made, append(&after)]);
    say(&*store, &stranger, 5);
    let found_for = |destination| {
        let waiting = waiting_for(&*store, destination);
        waiting.iter().map(found).collect::<Vec<_>>()
    };
    assert_eq!(found_for(&first), [spec_of(&after)]);

    // A destination added later begins behind the events that exist; one that is put again keeps
    // its start.
    make(&*store, &second);
    make(&*store, &first);
    assert_eq!(counts(&*store, &first), (1, 0));
    assert_eq!(counts(&*store, &second), (0, 0));
    assert_eq!(wait(store.partitions_waiting(second.id)), Ok(vec![]));
    assert_eq!(
        wait(store.partitions_waiting(first.id)),
        Ok(vec![meter.key().partition()])
    );
    let newer = say(&*store, &meter, 6);
    assert_eq!(found_for(&second), [spec_of(&newer)]);
    unmake(&*store, &second);
    assert_eq!(counts(&*store, &first), (2, 0));
    assert_eq!(counts(&*store, &second), (0, 0));
}

pub(super) fn numbers_always_rise(ground: &TestBed<'_>) {
    let meter = device(&acme(), 1);
    let partition = meter.key().partition();
    let erp = destination(&acme(), 1);
    let mut last = Sequence::default();
    for round in 0..5 {
        let store = ground.open();
        make(&*store, &erp);
        for second in 0..3 {
            say(&*store, &meter, 10 * round + second);
            let newest = waiting_in(&*store, &acme(), partition)
                .pop()
                .expect("it waits");
            assert!(newest.sequence > last);
            last = newest.sequence;
        }
        // Even when no event is left.
        let everything = all_waiting(&*store, &acme());
        progress(&*store, past(&erp, &everything));
        let due = Retention {
            events_before: at(1_000),
            ..Retention::NOTHING
        };
        wait(store.sweep(due, 100)).expect("a sweep");
        assert_eq!(all_waiting(&*store, &acme()), []);
        assert_eq!(counts(&*store, &erp), (0, 0));
    }
}

pub(super) fn may_be_removed_before_delivery(ground: &TestBed<'_>) {
    let store = ground.open();
    let [gone, stays] = [1, 2].map(|number| device(&acme(), number));
    for meter in [&gone, &stays] {
        assert_eq!(commit(&*store, known(meter)), Ok(()));
    }
    let erp = destination(&acme(), 1);
    make(&*store, &erp);
    let events = [say(&*store, &gone, 10), say(&*store, &stays, 20)];
    let waiting = all_waiting(&*store, &acme());
    assert_eq!(commit(&*store, forgotten(&gone)), Ok(()));
    let place = |event: &Event| {
        let mut waiting = waiting.iter();
        *waiting.find(|one| one.event == event.id).expect("it waits")
    };
    let found = |event| wait(store.event(acme(), place(event))).expect("an answer");
    for event in &events {
        assert_eq!(found(event).as_ref(), Some(event));
    }
    let other = QueuedEvent {
        event: events[1].id,
        ..place(&events[0])
    };
    assert_eq!(wait(store.event(acme(), other)), Ok(None));
    let due = Retention {
        events_before: at(15),
        ..Retention::NOTHING
    };
    wait(store.sweep(due, 100)).expect("a sweep");
    assert_eq!(found(&events[0]), None);
    assert_eq!(found(&events[1]).as_ref(), Some(&events[1]));
    assert_eq!(all_waiting(&*store, &acme()), [place(&events[1])]);
    assert_eq!(counts(&*store, &erp), (1, 0), "what is gone does not wait");
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
    let mut partitions: Vec<Partition> =
        meters.iter().map(|meter| meter.key().partition()).collect();
    partitions.sort_unstable();
    partitions.dedup();
    assert_eq!(wait(notifier.read()), partitions);
    assert_eq!(notifier.take(), []);
    assert_eq!(wait(other.read()), partitions);
    assert_eq!(elsewhere.take(), []);

    // Progress of a destination notifies nobody.
    let everything = all_waiting(&*store, &acme());
    progress(&*store, past(&erp, &everything));
    wait(store.sweep(Retention::NOTHING, 100)).expect("a sweep");
    assert_eq!(notifier.take(), []);
    drop(other);
    say(&*store, &meters[1], 20);
    assert_eq!(wait(notifier.read()), [meters[1].key().partition()]);
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
type QueuedSpec = (
    engine::ids::DeviceKey,
    engine::ids::EventId,
    EventType,
    Option<Lifecycle>,
);

fn spec_of(event: &Event) -> QueuedSpec {
    let content = &event.content;
    (
        event.device,
        event.id,
        content.event_type(),
        content.lifecycle(),
    )
}

fn found(waiting: &QueuedEvent) -> QueuedSpec {
    (
        waiting.device,
        waiting.event,
        waiting.event_type,
        waiting.lifecycle,
    )
}
