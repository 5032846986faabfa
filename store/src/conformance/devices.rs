//! What is stored of devices?

use engine::action::{Action, Outcome, Status};
use engine::change::{Change, UniqueName};
use engine::credentials::DeviceCredentials;
use engine::device::record::{DeviceRecord, RestoredDevice};
use engine::ids::Imsi;
use engine::known_devices::DeviceMark;
use engine::profile::Profile;

use super::lists::{everything, whole_log};
use super::restoring::{all_live, keep, one};
use super::samples::{
    acme, action, batch, created, customer, device, entry, forgotten, known, links, moved, record,
    saved,
};
use super::{TestBed, commit, put, wait};
use crate::Store;

pub(super) fn have_their_names(ground: &TestBed<'_>) {
    let store = ground.open();
    let (one, two) = (device(&acme(), 1), device(&acme(), 2));
    assert_eq!(commit(&*store, known(&one)), Ok(()));
    assert_eq!(commit(&*store, known(&two)), Ok(()));
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    for meter in [&one, &two] {
        assert_eq!(wait(store.profile(meter.key())), Ok(Some(meter.clone())));
        for name in UniqueName::all_of(meter) {
            assert_eq!(
                wait(store.device_by_name(name.clone())),
                Ok(Some(meter.key()))
            );
            let found = wait(store.profile_by_name(name));
            assert_eq!(found, Ok(Some(meter.clone())));
        }
    }
    for name in UniqueName::all_of(&device(&acme(), 3)) {
        assert_eq!(wait(store.device_by_name(name.clone())), Ok(None));
        assert_eq!(wait(store.profile_by_name(name)), Ok(None));
    }
    drop(store);
    let store = ground.open();
    let three = device(&acme(), 3);
    assert_eq!(commit(&*store, known(&three)), Ok(()));
    for meter in [&one, &two, &three] {
        let marks = [
            DeviceMark::Endpoint(meter.endpoint.as_str()),
            DeviceMark::Key(meter.key().prefix()),
            DeviceMark::Address(meter.ip.expect("a sample has an address")),
        ];
        assert!(marks.iter().all(|it| store.known_devices().may_have(*it)));
    }
    // A customer has its name, but it is no device.
    assert_eq!(
        wait(store.device_by_name(UniqueName::Customer(acme()))),
        Ok(None)
    );
}

pub(super) fn free_names(ground: &TestBed<'_>) {
    let store = ground.open();
    let was = device(&acme(), 1);
    assert_eq!(commit(&*store, known(&was)), Ok(()));
    let is = Profile {
        imsi: Some(Imsi::parse("901700000000001").expect("an IMSI")),
        msisdn: None,
        credentials: DeviceCredentials::default(),
        ..was.clone()
    };
    replace(&*store, &was, &is);

    assert_eq!(wait(store.profile(was.key())), Ok(Some(is.clone())));
    for name in UniqueName::all_of(&is) {
        assert_eq!(wait(store.device_by_name(name)), Ok(Some(was.key())));
    }
    let kept = UniqueName::all_of(&is);
    let freed = UniqueName::all_of(&was)
        .into_iter()
        .filter(|name| !kept.contains(name));
    assert_eq!(freed.clone().count(), 5);
    for name in freed {
        assert_eq!(wait(store.device_by_name(name.clone())), Ok(None));
        assert_eq!(wait(store.profile_by_name(name)), Ok(None));
    }
    // Another device may take a name that was given up.
    let heir = Profile {
        imsi: was.imsi.clone(),
        ..device(&acme(), 2)
    };
    assert_eq!(commit(&*store, known(&heir)), Ok(()));
    // Whoever removes the device need not know its current names.
    assert_eq!(commit(&*store, forgotten(&was)), Ok(()));
    for name in UniqueName::all_of(&is) {
        assert_eq!(wait(store.device_by_name(name)), Ok(None));
    }
    let inherited = UniqueName::Imsi(heir.imsi.clone().expect("an inherited IMSI"));
    assert_eq!(wait(store.device_by_name(inherited)), Ok(Some(heir.key())));
}

pub(super) fn found_by_prefix(ground: &TestBed<'_>) {
    let store = ground.open();
    let (one, two) = (device(&acme(), 1), device(&acme(), 2));
    assert_eq!(commit(&*store, known(&one)), Ok(()));
    assert_eq!(
        wait(store.device_at(one.key().prefix())),
        Ok(Some(one.key()))
    );
    assert_eq!(wait(store.device_at(two.key().prefix())), Ok(None));
}

pub(super) fn restored(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    assert_eq!(wait(store.restored(meter.key())), Ok(None));
    assert_eq!(commit(&*store, known(&meter)), Ok(()));
    let fresh = RestoredDevice {
        profile: meter.clone(),
        record: DeviceRecord::default(),
        pending: vec![],
        recent_events: Box::default(),
    };
    assert_eq!(wait(store.restored(meter.key())), Ok(Some(fresh)));

    let requests: Vec<Action> = [30, 10, 20, 40]
        .map(|second| action(&meter, second, 1))
        .into();
    let others = action(&device(&acme(), 2), 15, 1);
    for request in requests.iter().chain([&others]) {
        assert_eq!(commit(&*store, created(request)), Ok(()));
    }
    let started = moved(&requests[0], Status::InProgress);
    let failed = moved(&requests[3], Status::Failed);
    assert_eq!(commit(&*store, saved(Some(&requests[0]), &started)), Ok(()));
    assert_eq!(commit(&*store, saved(Some(&requests[3]), &failed)), Ok(()));
    let known_of = record(50, "</1/0>,</3/0>,</3303>;ver=1.1,</3303/0>");
    keep(&*store, &meter, &known_of);

    let expected = RestoredDevice {
        profile: meter.clone(),
        record: known_of,
        pending: vec![requests[1].clone(), requests[2].clone(), started],
        recent_events: Box::default(),
    };
    assert_eq!(wait(store.restored(meter.key())), Ok(Some(expected)));
}

pub(super) fn any_size(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    let request = action(&meter, 10, 1);
    assert_eq!(commit(&*store, created(&request)), Ok(()));
    let mut was = request.clone();
    for size in [
        100_000, 0, 5_000, 4_080, 4_081, 4_082, 4_090, 4_096, 70_000, 9_000, 1,
    ] {
        let payload: String = (0..size)
            .map(|at| char::from(b'a' + (at % 23) as u8))
            .collect();
        let outcome = Outcome {
            payload: Some(payload.into()),
            ..Outcome::default()
        };
        let answered = Action {
            status: Status::InProgress,
            outcome: Some(outcome),
            ..request.clone()
        };
        assert_eq!(commit(&*store, saved(Some(&was), &answered)), Ok(()));
        assert_eq!(
            wait(store.action(request.id)),
            Ok(Some(answered.clone())),
            "{size}"
        );
        // Expectations are checked against a large request, too.
        assert_eq!(commit(&*store, saved(Some(&answered), &answered)), Ok(()));
        was = answered;
    }
    let large = record(20, &links(1_000));
    assert_eq!(commit(&*store, known(&meter)), Ok(()));
    keep(&*store, &meter, &large);
    assert_eq!(one(&*store, meter.key()).record, large);
}

pub(super) fn removed(ground: &TestBed<'_>) {
    let store = ground.open();
    let (gone, stays) = (device(&acme(), 1), device(&acme(), 2));
    for meter in [&gone, &stays] {
        assert_eq!(commit(&*store, known(meter)), Ok(()));
        keep(&*store, meter, &record(10, "</3/0>"));
        put(
            &*store,
            vec![Change::AppendEntry(Box::new(entry(
                meter,
                10,
                meter.number,
            )))],
        );
        let requests = [1, 2, 3].map(|rng| action(meter, 10, rng + 10 * meter.number));
        for request in &requests {
            assert_eq!(commit(&*store, created(request)), Ok(()));
        }
        let done = moved(&requests[0], Status::Succeeded);
        assert_eq!(commit(&*store, saved(Some(&requests[0]), &done)), Ok(()));
    }
    assert_eq!(everything(&*store, &acme()).1, 6);
    assert_eq!(commit(&*store, forgotten(&gone)), Ok(()));

    assert_eq!(wait(store.profile(gone.key())), Ok(None));
    assert_eq!(wait(store.restored(gone.key())), Ok(None));
    for name in UniqueName::all_of(&gone) {
        assert_eq!(wait(store.device_by_name(name)), Ok(None));
    }
    assert_eq!(all_live(&*store, 10), [stays.key()]);
    let (left, total) = everything(&*store, &acme());
    assert_eq!((left.len(), total), (4, 4));
    let of_gone: Vec<_> = left.iter().filter(|it| it.device == gone.key()).collect();
    assert_eq!(of_gone.len(), 1);
    assert_eq!(of_gone[0].status, Status::Succeeded, "final ones stay");
    assert_eq!(whole_log(&*store, &acme()).1, 2);
    // A device added again under the same id starts without a history and without requests.
    assert_eq!(commit(&*store, known(&gone)), Ok(()));
    let fresh = RestoredDevice {
        profile: gone.clone(),
        record: DeviceRecord::default(),
        pending: vec![],
        recent_events: Box::default(),
    };
    assert_eq!(wait(store.restored(gone.key())), Ok(Some(fresh)));
}

fn replace(store: &dyn Store, was: &Profile, is: &Profile) {
    let was = Some(Box::new(was.clone()));
    let change = Change::PutDevice {
        was,
        profile: Box::new(is.clone()),
    };
    assert_eq!(commit(store, batch(vec![change])), Ok(()));
}
