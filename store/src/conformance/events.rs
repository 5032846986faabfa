//! Are events stored in order and for their retention, with the last value of each path?

use std::collections::BTreeMap;

use engine::action::{Outcome, PayloadType, Protocol, ResultPayload, Status};
use engine::change::Change;
use engine::delivery::backlog::Sequence;
use engine::event::{
    ActionResult, Cause, DeviceInfo, ErrorReport, Event, EventContent, EventType, Lifecycle,
    PayloadKept, Telemetry,
};
use engine::ids::{ActionId, EntryId, Iccid, SmsId};
use engine::limits::{LAST_VALUES_MAX, VALUE_BYTES_MAX};
use engine::profile::Profile;
use engine::query::series::{Sample, SampleFilter, SampleNumber, SamplePage};
use engine::query::{HistoryFilter, KnownValue};
use engine::sms::{MultiPartInfo, ReceivedSms, SmsEndpoint, SmsReport, SmsStatus};
use engine::{ObjectLink, Path, Value, discovery};

use super::outbox::all_waiting;
use super::restoring::keep;
use super::rng::Rng;
use super::samples::{self, acme, at, batch, customer, device, forgotten, known, record};
use super::{TestBed, commit, wait};
use crate::{Retention, Store};

pub(super) fn are_read_newest_first_from_any_point(ground: &TestBed<'_>) {
    let store = ground.open();
    let (one, other) = two_devices(&*store);
    let events: Vec<Event> = (1..=5).map(|second| registered(&one, second)).collect();
    for event in &events {
        append(&*store, event);
    }
    append(&*store, &registered(&other, 3));
    let read = |before, max| {
        let filter = HistoryFilter {
            before,
            ..HistoryFilter::all_of(acme(), one.key())
        };
        wait(store.events_of(filter, max)).expect("events").events
    };
    let newest_first: Vec<Event> = events.iter().rev().cloned().collect();
    assert_eq!(read(None, 100), newest_first);
    assert_eq!(read(None, 2), newest_first[..2]);
    let numbers = numbers_of(&*store, &one);
    assert_eq!(read(Some(numbers[1]), 2), newest_first[2..4]);
    assert_eq!(read(Some(numbers[4]), 2), []);
    let next = |max| {
        wait(store.events_of(HistoryFilter::all_of(acme(), one.key()), max))
            .expect("events")
            .next
    };
    assert_eq!(
        [next(4), next(5), next(100)],
        [Some(numbers[3]), None, None]
    );
    // A number that is no event of the device, or of none at all.
    let foreign = numbers_of(&*store, &other)[0];
    for number in [foreign, Sequence::default(), Sequence(u64::MAX)] {
        assert_eq!(read(Some(number), 2), []);
    }
}

pub(super) fn are_found_by_time_type_and_path(ground: &TestBed<'_>) {
    let store = ground.open();
    let (one, other) = two_devices(&*store);
    let path = |resource| Path::resource(3303, 0, resource);
    let sent = |second, resource| {
        let values = vec![(path(resource), Value::Integer(second))];
        event(
            &one,
            second,
            EventContent::Telemetry(telemetry(Cause::Send, values)),
        )
    };
    let events = [
        registered(&one, 1),
        sent(2, 5700),
        sent(3, 5701),
        registered(&one, 4),
        sent(5, 5700),
    ];
    for event in &events {
        append(&*store, event);
    }
    append(&*store, &registered(&other, 3));
    let found = |filter: HistoryFilter| {
        let page = wait(store.events_of(filter, 100)).expect("events");
        assert_eq!(page.next, None);
        let place = |found: &Event| events.iter().position(|event| event == found);
        page.events.iter().map(place).collect::<Vec<_>>()
    };
    let all = HistoryFilter::all_of(acme(), one.key());
    let times = HistoryFilter {
        from: Some(at(2)),
        to: Some(at(4)),
        ..all.clone()
    };
    assert_eq!(found(times.clone()), [Some(3), Some(2), Some(1)]);
    let before = HistoryFilter {
        before: Some(numbers_of(&*store, &one)[1]),
        ..times
    };
    assert_eq!(found(before), [Some(2), Some(1)]);
    let lifecycle = HistoryFilter {
        event_type: Some(EventType::Lifecycle),
        ..all.clone()
    };
    assert_eq!(found(lifecycle), [Some(3), Some(0)]);
    let of_path = |path| HistoryFilter {
        path: Some(path),
        ..all.clone()
    };
    assert_eq!(found(of_path(path(5700))), [Some(4), Some(1)]);
    assert_eq!(
        found(of_path(Path::object(3303))),
        [Some(4), Some(2), Some(1)]
    );
    assert_eq!(found(of_path(Path::object(3))), []);
    let nothing = HistoryFilter {
        from: Some(at(4)),
        to: Some(at(2)),
        ..all
    };
    assert_eq!(found(nothing), []);
}

pub(super) fn have_samples_of_a_path(ground: &TestBed<'_>) {
    let store = ground.open();
    let (one, other) = two_devices(&*store);
    let (path, another) = (Path::resource(3303, 0, 5700), Path::resource(3303, 1, 5700));
    let sent = |device: &Profile, second, measured_at: Option<i64>, path| {
        let values = vec![(path, Value::Integer(second))];
        let telemetry = Telemetry {
            measured_at: measured_at.map(at),
            ..telemetry(Cause::Send, values)
        };
        event(device, second, EventContent::Telemetry(telemetry))
    };
    // The device of the fifth has a clock that is ahead.
    let events = [
        sent(&one, 1, None, path),
        sent(&one, 2, None, path),
        registered(&one, 3),
        sent(&one, 4, Some(-9), path),
        sent(&one, 5, Some(99), path),
        sent(&one, 6, None, another),
        sent(&other, 7, None, path),
    ];
    for event in &events {
        append(&*store, event);
    }
    let filter = SampleFilter {
        customer: acme(),
        device: one.key(),
        path,
        from: at(2),
        at: None,
    };
    let read = |at, max| {
        let filter = SampleFilter {
            at,
            ..filter.clone()
        };
        wait(store.samples_of(filter, max)).expect("samples")
    };
    let sample = |second, number| Sample::new(at(second), SampleNumber::Integer(number));
    let whole = [sample(5, 5), sample(-9, 4), sample(2, 2)];
    let page = read(None, 100);
    assert_eq!((&*page.samples, page.examined), (&whole[..], 5));
    assert_eq!(page.next, None);
    let numbers = numbers_of(&*store, &one);
    let first = read(None, 3);
    assert_eq!((&*first.samples, first.examined), (&whole[..2], 3));
    assert_eq!(first.next, Some(numbers[3]));
    let second = read(first.next, 3);
    assert_eq!((&*second.samples, second.next), (&whole[2..], None));
    // A number that is no event of the device, or of none at all.
    let foreign = numbers_of(&*store, &other)[0];
    for number in [foreign, Sequence::default(), Sequence(u64::MAX)] {
        assert_eq!(read(Some(number), 3), SamplePage::default());
    }
}

fn newest(store: &dyn Store) -> Sequence {
    wait(store.newest_durable()).expect("an answer")
}

pub(super) fn that_are_durable_have_numbers_up_to_the_newest(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let (one, other) = two_devices(&*store);
    for second in 1..=20 {
        let before = newest(&*store);
        let device = [&one, &other][usize::try_from(second % 2).expect("it is small")];
        append(&*store, &registered(device, second));
        assert!(newest(&*store) > before);
        let waiting = all_waiting(&*store, &acme()).into_iter();
        let greatest = waiting.map(|queued| queued.sequence).max();
        assert_eq!(greatest, Some(newest(&*store)));
        if second % 5 == 0 {
            let before = newest(&*store);
            drop(store);
            store = ground.open();
            assert_eq!(newest(&*store), before);
        }
    }
}

pub(super) fn of_every_kind_are_read_as_they_were_written(ground: &TestBed<'_>) {
    let store = ground.open();
    let (device, _) = two_devices(&*store);
    let path = Path::resource(3, 0, 9);
    let action = ActionId::from_bytes([7; 16]);
    let lifecycle = Lifecycle::ALL.map(EventContent::Lifecycle);
    let happenings = [
        EventContent::Telemetry(telemetry(Cause::Observation(path), values())),
        EventContent::Telemetry(telemetry(
            Cause::CompositeObservation(ActionId::from_bytes([7; 16])),
            values(),
        )),
        EventContent::Telemetry(telemetry(Cause::Action(action), values())),
        EventContent::Telemetry(Telemetry {
            measured_at: Some(at(-5)),
            ..telemetry(Cause::Send, values())
        }),
        EventContent::Telemetry(telemetry(Cause::PassiveReport, values())),
        EventContent::Error(Box::new(failure(PayloadKept::Yes))),
        EventContent::Error(Box::new(failure(PayloadKept::No))),
        EventContent::ActionResult(Box::new(conclusion(None))),
        EventContent::ActionResult(Box::new(conclusion(Some(ResultPayload::Text(
            "21.5".into(),
        ))))),
        EventContent::ActionResult(Box::new(conclusion(Some(listed())))),
        EventContent::ActionResult(Box::new(conclusion(Some(ResultPayload::Values(
            values().into(),
        ))))),
        EventContent::SmsReceived(Box::new(ReceivedSms {
            id: sms_id(),
            payload: "größer".into(),
            submitted_at: at(7),
            dest: "1234".into(),
            source: "882285100000001".into(),
            dcs: 8,
            pid: 0x41,
            part: MultiPartInfo {
                number: 2,
                total: 255,
                identifier: 65_535,
            },
            endpoint: endpoint(),
        })),
        EventContent::SmsReport(Box::new(SmsReport {
            id: sms_id(),
            submitted_at: at(7),
            final_at: at(8),
            status: SmsStatus::Expired,
            endpoint: endpoint(),
        })),
    ];
    for (happening, second) in happenings.into_iter().chain(lifecycle).zip(1..) {
        let event = event(&device, second, happening);
        append(&*store, &event);
        let read = wait(store.events_of(HistoryFilter::all_of(acme(), device.key()), 1))
            .map(|it| it.events);
        assert_eq!(read, Ok(vec![event]));
    }
}

pub(super) fn contain_the_ids_of_their_device(ground: &TestBed<'_>) {
    let store = ground.open();
    let (device, _) = two_devices(&*store);
    let id = device.device.as_str();
    let device_infos = [
        DeviceInfo {
            iccid: Iccid::parse(id).expect("a device id may stand for one"),
            ..registered(&device, 1).device_info
        },
        DeviceInfo {
            imsi: None,
            ip: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
            ..registered(&device, 1).device_info
        },
        DeviceInfo {
            ip: None,
            ..registered(&device, 1).device_info
        },
    ];
    for (device_info, second) in device_infos.into_iter().zip(1..) {
        let event = Event {
            device_info,
            ..registered(&device, second)
        };
        append(&*store, &event);
        let queued = all_waiting(&*store, &acme()).into_iter();
        let queued = queued.max_by_key(|queued| queued.sequence).expect("one");
        let read = wait(store.event(acme(), queued));
        assert_eq!(read, Ok(Some(event)));
    }
}

pub(super) fn leave_the_last_value_of_each_path(ground: &TestBed<'_>) {
    let store = ground.open();
    let (device, other) = two_devices(&*store);
    let append_values = |second, values| {
        let telemetry = telemetry(Cause::Action(ActionId::from_bytes([7; 16])), values);
        append(
            &*store,
            &event(&device, second, EventContent::Telemetry(telemetry)),
        );
    };
    let (first, second) = (Path::resource(3, 0, 9), Path::resource_instance(3, 0, 6, 1));
    append_values(
        1,
        vec![(first, Value::Integer(87)), (second, Value::Integer(1))],
    );
    append_values(2, vec![(first, Value::Integer(86))]);
    let last = |path, value, second| KnownValue {
        path,
        value: Value::Integer(value),
        at: at(second),
    };
    let expected = vec![last(second, 1, 1), last(first, 86, 2)];
    assert_eq!(wait(store.values_of(device.key())), Ok(expected));
    assert_eq!(wait(store.values_of(other.key())), Ok(vec![]));
}

pub(super) fn leave_the_value_that_was_measured_last(ground: &TestBed<'_>) {
    let store = ground.open();
    let (device, _) = two_devices(&*store);
    let path = Path::resource(3303, 0, 5700);
    let known_after = |second, measured_second: Option<i64>, value| {
        let telemetry = Telemetry {
            measured_at: measured_second.map(at),
            ..telemetry(Cause::Send, vec![(path, value)])
        };
        append(
            &*store,
            &event(&device, second, EventContent::Telemetry(telemetry)),
        );
        let known = wait(store.values_of(device.key())).expect("values");
        let known = known.into_iter().next().expect("one is known");
        (known.value, known.at)
    };
    let number = Value::Integer;
    let long = Value::String("x".repeat(VALUE_BYTES_MAX + 1));
    assert_eq!(known_after(10, Some(5), number(1)), (number(1), at(5)));
    assert_eq!(
        known_after(11, Some(4), number(2)),
        (number(1), at(5)),
        "older"
    );
    assert_eq!(
        known_after(12, Some(4), long),
        (number(1), at(5)),
        "and long"
    );
    assert_eq!(
        known_after(13, Some(5), number(3)),
        (number(3), at(5)),
        "as old"
    );
    assert_eq!(
        known_after(14, Some(99), number(4)),
        (number(4), at(14)),
        "ahead"
    );
    assert_eq!(
        known_after(15, None, number(5)),
        (number(5), at(15)),
        "received now"
    );
}

pub(super) fn leave_no_more_values_than_a_device_may_have(ground: &TestBed<'_>) {
    let store = ground.open();
    let (device, _) = two_devices(&*store);
    let max = u16::try_from(LAST_VALUES_MAX).expect("a bound below 65,536");
    let values = |value| move |id| (Path::resource(3303, 0, id), Value::Integer(value));
    let append_values = |second, values: Vec<(Path, Value)>| {
        let telemetry = telemetry(Cause::Action(ActionId::from_bytes([7; 16])), values);
        append(
            &*store,
            &event(&device, second, EventContent::Telemetry(telemetry)),
        );
    };
    append_values(1, (0..=max).map(values(1)).collect());
    append_values(2, (max..max + 9).chain([0]).map(values(2)).collect());
    let kept = wait(store.values_of(device.key())).expect("values");
    assert_eq!(kept.len(), usize::from(max));
    assert_eq!(kept[0].value, Value::Integer(2), "a known one goes on");
    assert_eq!(kept[1].value, Value::Integer(1));
}

pub(super) fn leave_no_value_that_is_too_long(ground: &TestBed<'_>) {
    let store = ground.open();
    let (device, _) = two_devices(&*store);
    let mut expected = Vec::new();
    let mut append_values = |second, values: Vec<(Path, Value)>| {
        let telemetry = telemetry(Cause::Action(ActionId::from_bytes([7; 16])), values);
        let event = event(&device, second, EventContent::Telemetry(telemetry));
        append(&*store, &event);
        expected.insert(0, event);
    };
    let known = || {
        let values = wait(store.values_of(device.key())).expect("values");
        let known = |known: KnownValue| (known.path, known.value);
        values.into_iter().map(known).collect::<Vec<_>>()
    };
    let path = |id| Path::resource(3303, 0, id);
    let long = VALUE_BYTES_MAX + 1;
    let [text, link] = [long, 5 * long].map(|bytes| "x".repeat(bytes));
    let too_long = [
        (path(0), Value::String(text)),
        (path(1), Value::CoreLink(link)),
        (path(2), Value::Opaque(vec![0; 60_000])),
    ];
    let longest = [
        (path(0), Value::String("x".repeat(VALUE_BYTES_MAX))),
        (path(1), Value::CoreLink("x".repeat(VALUE_BYTES_MAX))),
        (path(2), Value::Opaque(vec![0; VALUE_BYTES_MAX])),
    ];
    let other = (path(3), Value::Integer(1));
    append_values(1, too_long.to_vec());
    assert_eq!(known(), []);
    append_values(
        2,
        [longest.as_slice(), std::slice::from_ref(&other)].concat(),
    );
    assert_eq!(known()[..3], longest);
    // Too long again, and one of them twice: both are removed and counted out once.
    append_values(3, [&too_long, &too_long[..1]].concat());
    assert_eq!(known(), [other]);
    // Each removed value freed its room.
    let max = u16::try_from(LAST_VALUES_MAX).expect("a bound below 65,536");
    let values = |id| (path(id), Value::Integer(2));
    append_values(4, (10..10 + max).map(values).collect());
    assert_eq!(known().len(), usize::from(max));
    append_values(5, vec![(path(10), Value::Opaque(vec![0; long]))]);
    append_values(
        6,
        vec![(path(0), Value::Integer(3)), (path(1), Value::Integer(3))],
    );
    assert_eq!(known().len(), usize::from(max));
    assert_eq!(known()[0], (path(0), Value::Integer(3)));
    assert_eq!(known()[1], (path(3), Value::Integer(1)));
    let read =
        wait(store.events_of(HistoryFilter::all_of(acme(), device.key()), 9)).map(|it| it.events);
    assert_eq!(read, Ok(expected), "the history has all of it");
}

pub(super) fn go_when_they_are_too_old_and_hide_with_their_device(ground: &TestBed<'_>) {
    let store = ground.open();
    let (one, other) = two_devices(&*store);
    for second in [1, 2, 3] {
        for device in [&one, &other] {
            let telemetry = telemetry(Cause::Observation(Path::object(3)), values());
            append(
                &*store,
                &event(device, second, EventContent::Telemetry(telemetry)),
            );
        }
    }
    let due = |second| Retention {
        events_before: at(second),
        ..Retention::NOTHING
    };
    let swept = wait(store.sweep(due(3), 100)).expect("a sweep");
    assert_eq!((swept.removed, swept.more), (4, false));
    let kept = values().len() - 1; // One of them is too long.
    let left = |device: &Profile| {
        let events = wait(store.events_of(HistoryFilter::all_of(acme(), device.key()), 9))
            .expect("events")
            .events;
        let values = wait(store.values_of(device.key())).expect("values");
        (events.len(), values.len())
    };
    assert_eq!(left(&one), (1, kept), "the last values stay");
    let removal = Change::RemoveDevice(one.key());
    assert_eq!(commit(&*store, batch(vec![removal])), Ok(()));
    assert_eq!((left(&one), left(&other)), ((0, 0), (1, kept)));
    let swept = wait(store.sweep(due(3), 100)).expect("a sweep");
    assert_eq!(swept.removed, 0, "its last event has not the age yet");
    let swept = wait(store.sweep(due(4), 100)).expect("a sweep");
    assert_eq!(swept.removed, 2);
    assert_eq!(all_waiting(&*store, &acme()), []);
}

pub(super) fn last_reports_are_known(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let (one, other) = two_devices(&*store);
    let reports = [1, 2, 3].map(|second| {
        let telemetry = telemetry(Cause::Send, values());
        event(&one, second, EventContent::Telemetry(telemetry))
    });
    keep(&*store, &one, &record(10, "</3/0>"));
    for report in &reports {
        append(&*store, report);
        append(&*store, &registered(&one, 4));
    }
    drop(store);
    store = ground.open();
    let ids = reports.map(|report| report.id);
    let recent = |store: &dyn Store, device: &Profile| {
        let restored = wait(store.restored(device.key())).expect("an answer");
        restored.expect("it is there").recent_events
    };
    assert_eq!(*recent(&*store, &one), ids);
    assert!(recent(&*store, &other).is_empty());
    let page = wait(store.restored_page(one.key()..=one.key(), 1)).expect("an answer");
    assert_eq!(*page.devices[0].1.recent_events, ids);
    // Whatever was stored since.
    for second in 5..205 {
        append(&*store, &registered(&other, second));
    }
    drop(store);
    store = ground.open();
    assert_eq!(*recent(&*store, &one), ids);
    // A device added again under the same id has not reported anything.
    assert_eq!(commit(&*store, forgotten(&one)), Ok(()));
    assert_eq!(commit(&*store, known(&one)), Ok(()));
    assert!(recent(&*store, &one).is_empty());
}

pub(super) fn are_not_inherited(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let (one, other) = two_devices(&*store);
    for second in 1..=20 {
        append(&*store, &registered(&one, second));
        append(&*store, &registered(&other, second));
    }
    let old = numbers_of(&*store, &one);
    let remake = |store: &dyn Store, events: &[Event]| {
        assert_eq!(commit(store, forgotten(&one)), Ok(()));
        assert_eq!(history(store, &one, None), []);
        assert_eq!(commit(store, known(&one)), Ok(()));
        for event in events {
            append(store, event);
        }
    };
    remake(&*store, &[registered(&one, 30)]);
    assert_eq!(history(&*store, &one, None).len(), 1);
    // Removed again before anything was swept, and again without an event in between.
    remake(&*store, &[]);
    let fresh = [40, 41].map(|second| registered(&one, second));
    remake(&*store, &fresh);
    let fresh: Vec<Event> = fresh.into_iter().rev().collect();
    // Older than all by its id, newer than all by its number: clocks differ among nodes.
    append(&*store, &registered(&device(&acme(), 3), 0));
    for sweeps in 0..3 {
        assert_eq!(history(&*store, &one, None), fresh);
        let numbers = numbers_of(&*store, &one);
        assert_eq!(history(&*store, &one, Some(numbers[0])), fresh[1..]);
        for before in [numbers[1], old[0], old[19]] {
            assert_eq!(history(&*store, &one, Some(before)), []);
        }
        assert_eq!(history(&*store, &other, None).len(), 20);
        let due = Retention {
            events_before: at(sweeps),
            ..Retention::NOTHING
        };
        wait(store.sweep(due, 100)).expect("a sweep");
        drop(store);
        store = ground.open();
    }
}

pub(super) fn agree_with_a_naive_model(ground: &TestBed<'_>) {
    let mut rng = Rng::from_seed_asked_for();
    let meters: Vec<Profile> = ["acme", "acme-2"]
        .into_iter()
        .flat_map(|id| (0..40).map(move |number| device(&customer(id).id, number)))
        .collect();
    let mut store = ground.open();
    let mut histories: Vec<Vec<Event>> = vec![Vec::new(); meters.len()];
    let mut removed_before = 0;
    for second in 0..60 {
        for _ in 0..4 {
            let mut changes = Vec::new();
            for _ in 0..rng.below(40) {
                let place = usize::try_from(rng.below(meters.len() as u64)).expect("small");
                let event = samples::event(&meters[place], second, rng.below(1 << 40));
                changes.push(Change::AppendEvent(Box::new(event.clone())));
                histories[place].insert(0, event);
            }
            assert_eq!(commit(&*store, batch(changes)), Ok(()));
        }
        match rng.below(8) {
            0 => {
                drop(store);
                store = ground.open();
            }
            1 => {
                removed_before = (second - 20).max(0);
                let due = Retention {
                    events_before: at(removed_before),
                    ..Retention::NOTHING
                };
                while wait(store.sweep(due, 50)).expect("a sweep").more {}
            }
            2 => {
                let place = usize::try_from(rng.below(meters.len() as u64)).expect("small");
                let removal = Change::RemoveDevice(meters[place].key());
                assert_eq!(commit(&*store, known(&meters[place])), Ok(()));
                assert_eq!(commit(&*store, batch(vec![removal])), Ok(()));
                histories[place].clear();
            }
            _ => {}
        }
    }
    for (meter, events) in meters.iter().zip(&histories) {
        let found = history(&*store, meter, None);
        let kept = events.iter().filter(|event| event.at >= at(removed_before));
        assert!(found.len() >= kept.count(), "nothing young is removed");
        assert_eq!(found, events[..found.len()], "of {}", meter.device);
    }
}

pub(super) fn leave_values_that_agree_with_a_naive_model(ground: &TestBed<'_>) {
    let mut rng = Rng::from_seed_asked_for();
    let meters: Vec<Profile> = (0..40).map(|number| device(&acme(), number)).collect();
    let mut store = ground.open();
    for meter in &meters {
        assert_eq!(commit(&*store, known(meter)), Ok(()));
    }
    let mut model: Vec<BTreeMap<Path, KnownValue>> = vec![BTreeMap::new(); meters.len()];
    for second in 0..80 {
        for _ in 0..4 {
            let mut changes = Vec::new();
            for _ in 0..rng.below(40) {
                let place = usize::try_from(rng.below(meters.len() as u64)).expect("small");
                let path = Path::resource(3303, 0, rng.below(5) as u16);
                let value = match rng.below(8) {
                    0 => Value::String("x".repeat(VALUE_BYTES_MAX + 1)),
                    _ => Value::Integer(rng.below(1_000) as i64),
                };
                let known_at = at(second - rng.below(4) as i64);
                let telemetry = Telemetry {
                    measured_at: Some(known_at),
                    ..telemetry(Cause::Send, vec![(path, value.clone())])
                };
                let event = Event {
                    content: EventContent::Telemetry(telemetry),
                    ..samples::event(&meters[place], second, rng.below(1 << 40))
                };
                changes.push(Change::AppendEvent(Box::new(event)));
                let values = &mut model[place];
                if values.get(&path).is_some_and(|known| known.at > known_at) {
                    continue;
                }
                values.remove(&path);
                if !matches!(value, Value::String(_)) {
                    let at = known_at;
                    values.insert(path, KnownValue { path, value, at });
                }
            }
            assert_eq!(commit(&*store, batch(changes)), Ok(()));
        }
        let place = usize::try_from(rng.below(meters.len() as u64)).expect("small");
        match rng.below(8) {
            0 => {
                drop(store);
                store = ground.open();
            }
            1 => {
                // The values stay when their events go.
                let due = Retention {
                    events_before: at(second + 1),
                    ..Retention::NOTHING
                };
                while wait(store.sweep(due, 50)).expect("a sweep").more {}
            }
            2 => {
                let removal = Change::RemoveDevice(meters[place].key());
                assert_eq!(commit(&*store, batch(vec![removal])), Ok(()));
                assert_eq!(commit(&*store, known(&meters[place])), Ok(()));
                model[place].clear();
            }
            _ => {}
        }
        for (meter, values) in meters.iter().zip(&model) {
            let known = wait(store.values_of(meter.key())).expect("values");
            let expected: Vec<KnownValue> = values.values().cloned().collect();
            assert_eq!(known, expected, "of {} in second {second}", meter.device);
        }
    }
}

/// The events of a device from a number back.
fn history(store: &dyn Store, device: &Profile, before: Option<Sequence>) -> Vec<Event> {
    let filter = HistoryFilter {
        before,
        ..HistoryFilter::all_of(device.customer.clone(), device.key())
    };
    let events = wait(store.events_of(filter, u32::MAX)).map(|it| it.events);
    events.expect("events")
}

/// The numbers of the events of a device, newest first.
fn numbers_of(store: &dyn Store, device: &Profile) -> Vec<Sequence> {
    let all = all_waiting(store, &device.customer).into_iter();
    let own = all.filter(|queued| queued.device == device.key());
    let mut numbers: Vec<Sequence> = own.map(|queued| queued.sequence).collect();
    numbers.reverse();
    numbers
}

fn two_devices(store: &dyn Store) -> (Profile, Profile) {
    let [one, other] = [1, 2].map(|number| device(&acme(), number));
    for device in [&one, &other] {
        assert_eq!(commit(store, known(device)), Ok(()));
    }
    (one, other)
}

fn append(store: &dyn Store, event: &Event) {
    let change = Change::AppendEvent(Box::new(event.clone()));
    assert_eq!(commit(store, batch(vec![change])), Ok(()));
}

fn registered(device: &Profile, second: i64) -> Event {
    samples::event(device, second, 5)
}

fn sms_id() -> SmsId {
    SmsId::first_at(at(7))
}

fn endpoint() -> SmsEndpoint {
    SmsEndpoint {
        number: SmsId::MAX,
        name: "in the cellar".into(),
    }
}

fn event(device: &Profile, second: i64, happening: EventContent) -> Event {
    Event {
        content: happening,
        ..registered(device, second)
    }
}

fn failure(payload: PayloadKept) -> ErrorReport {
    ErrorReport {
        entry: EntryId::from_bytes([9; 16]),
        message: "DeviceController[ActionRequestFailed]".into(),
        description: "It timed out.".into(),
        payload,
    }
}

/// How a request ended, well or not.
fn listed() -> ResultPayload {
    let links = br#"</3/0>;ver="1.1";pmin=10,</3/0/6>;dim=2;con"#;
    ResultPayload::Links(discovery::decode_all(links).expect("it is a list").into())
}

fn conclusion(payload: Option<ResultPayload>) -> ActionResult {
    let is_answered = payload.is_some();
    ActionResult {
        action: ActionId::from_bytes([8; 16]),
        protocol: Protocol::Coap,
        status: if is_answered {
            Status::Succeeded
        } else {
            Status::Failed
        },
        outcome: Some(Outcome {
            code: is_answered.then(|| "205".into()),
            payload,
            payload_type: is_answered.then_some(PayloadType::Base64),
            error: (!is_answered).then(|| "It timed out.".into()),
        }),
    }
}

fn telemetry(cause: Cause, values: Vec<(Path, Value)>) -> Telemetry {
    Telemetry {
        source: Protocol::Lwm2m,
        cause,
        measured_at: None,
        values: values.into(),
    }
}

/// A value of each type.
fn values() -> Vec<(Path, Value)> {
    let link = ObjectLink {
        object: 3,
        instance: 65_535,
    };
    let values = [
        Value::Boolean(true),
        Value::CoreLink("</3/0>".into()),
        Value::Float(-2.5),
        Value::Integer(i64::MIN),
        Value::ObjectLink(link),
        Value::Opaque(vec![0; 5_000]),
        Value::String("Grüße".into()),
        Value::Time(1_700_000_000),
        Value::UnsignedInteger(u64::MAX),
    ];
    let at = |(id, value)| (Path::resource(3303, 0, id), value);
    (0..).zip(values).map(at).collect()
}
