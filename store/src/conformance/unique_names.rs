//! Which devices have these names, if many are looked up at once?

use std::collections::HashMap;

use engine::change::{Change, Expect, UniqueName};
use engine::credentials::DeviceCredentials;
use engine::directory::import::ExistingDevices;
use engine::ids::{DeviceKey, Endpoint, Iccid};
use engine::known_devices::DeviceMark;
use engine::profile::Profile;

use super::samples::{acme, batch, customer, device, forgotten, known};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Store};

pub(super) fn many_names_at_once(ground: &TestBed<'_>) {
    let store = ground.open();
    let [one, two, absent] = [1, 2, 3].map(|number| device(&acme(), number));
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    for meter in [&one, &two] {
        assert_eq!(commit(&*store, known(meter)), Ok(()));
    }
    let names: Vec<UniqueName> = [&one, &two]
        .into_iter()
        .flat_map(UniqueName::all_of)
        .collect();
    let mut names_wanted = UniqueName::all_of(&absent);
    names_wanted.extend(names.clone());
    // A customer has its name, but it is no device.
    names_wanted.push(UniqueName::Customer(acme()));
    let expected = ExistingDevices {
        key_by_name: names.into_iter().collect(),
        profile_by_key: HashMap::from([(one.key(), one.clone()), (two.key(), two.clone())]),
    };
    assert_eq!(wait(store.existing_devices(names_wanted)), Ok(expected));

    // A device is not listed for another of its names.
    let iccid = UniqueName::Iccid(one.iccid.clone());
    let expected = ExistingDevices {
        key_by_name: [iccid.clone()].into(),
        ..ExistingDevices::default()
    };
    assert_eq!(
        wait(store.existing_devices(vec![iccid.clone()])),
        Ok(expected)
    );

    assert_eq!(commit(&*store, forgotten(&one)), Ok(()));
    let gone = wait(store.existing_devices(vec![iccid, UniqueName::Device(one.key())]));
    assert_eq!(gone, Ok(ExistingDevices::default()));
    assert_eq!(
        wait(store.existing_devices(vec![])),
        Ok(ExistingDevices::default())
    );
}

pub(super) fn one_text_for_several_names(ground: &TestBed<'_>) {
    let store = ground.open();
    let alike = named(1, "alike", "alike");
    assert_eq!(commit(&*store, known(&alike)), Ok(()));
    drop(store);
    let store = ground.open();
    let mark = DeviceMark::Endpoint("alike");
    assert!(store.known_devices().may_have(mark));
    assert_eq!(owners(&*store, "alike"), [Some(alike.key()); 3]);
    // Whichever of its names another device wants is taken.
    for other in [named(2, "alike", "other"), named(2, "other", "alike")] {
        assert_eq!(commit(&*store, known(&other)), Err(CommitError::Conflict));
    }
    assert_eq!(owners(&*store, "other"), [None; 3]);

    // A name it gives up is free, and those it keeps are not.
    let renamed = named(1, "alike", "renamed");
    assert_eq!(amend(&*store, &alike, &renamed), Ok(()));
    let key = Some(alike.key());
    assert_eq!(owners(&*store, "alike"), [key, None, None]);
    assert_eq!(owners(&*store, "renamed"), [None, key, key]);
    let heir = named(2, "heir", "alike");
    assert_eq!(commit(&*store, known(&heir)), Ok(()));
    let heir_key = Some(heir.key());
    assert_eq!(owners(&*store, "alike"), [key, heir_key, heir_key]);
    let again = amend(&*store, &renamed, &alike);
    assert_eq!(again, Err(CommitError::Conflict));

    // One of the names is enough to take the text from a device that would have it for all.
    let both = named(3, "alike", "alike");
    assert_eq!(commit(&*store, forgotten(&heir)), Ok(()));
    assert_eq!(commit(&*store, known(&both)), Err(CommitError::Conflict));
    assert_eq!(amend(&*store, &renamed, &alike), Ok(()));
    assert_eq!(owners(&*store, "alike"), [key; 3]);
    assert_eq!(owners(&*store, "renamed"), [None; 3]);
    assert_eq!(commit(&*store, forgotten(&alike)), Ok(()));
    assert_eq!(owners(&*store, "alike"), [None; 3]);
    assert_eq!(commit(&*store, known(&both)), Ok(()));
}

/// A device without a key, whose PSK identity is its endpoint name.
fn named(number: u64, iccid: &str, endpoint: &str) -> Profile {
    Profile {
        iccid: Iccid::parse(iccid).expect("an ICCID"),
        endpoint: Endpoint::parse(endpoint).expect("an endpoint name"),
        credentials: DeviceCredentials::default(),
        ..device(&acme(), number)
    }
}

/// Which devices have a text as ICCID, endpoint name and PSK identity.
fn owners(store: &dyn Store, text: &str) -> [Option<DeviceKey>; 3] {
    let names = [
        UniqueName::Iccid(Iccid::parse(text).expect("an ICCID")),
        UniqueName::Endpoint(Endpoint::parse(text).expect("an endpoint name")),
        UniqueName::PskIdentity(text.into()),
    ];
    names.map(|name| wait(store.device_by_name(name)).expect("it can be read"))
}

/// Changes a device if the names it had not are free.
fn amend(store: &dyn Store, was: &Profile, is: &Profile) -> Result<(), CommitError> {
    let had = UniqueName::all_of(was);
    let wanted = UniqueName::all_of(is).into_iter();
    let change = Change::PutDevice {
        was: Some(Box::new(was.clone())),
        profile: Box::new(is.clone()),
    };
    let mut amended = batch(vec![change]);
    let new = wanted.filter(|name| !had.contains(name));
    amended.expects = new.map(Expect::Free).collect();
    commit(store, amended)
}
