//! Which devices have these names, if many are looked up at once?

use std::collections::HashMap;

use engine::change::{Change, UniqueName};
use engine::directory::import::ExistingDevices;

use super::samples::{acme, customer, device, forgotten, known};
use super::{TestBed, commit, put, wait};

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
