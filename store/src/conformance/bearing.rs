//! What is told of many names at once?

use std::collections::HashMap;

use engine::change::{Change, Name};
use engine::directory::import::Known;

use super::given::{acme, customer, device, forgotten, known};
use super::{Ground, commit, put, wait};

pub(super) fn many_names_at_once(ground: &Ground<'_>) {
    let store = ground.open();
    let [one, two, absent] = [1, 2, 3].map(|number| device(&acme(), number));
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    for meter in [&one, &two] {
        assert_eq!(commit(&*store, known(meter)), Ok(()));
    }
    let borne: Vec<Name> = [&one, &two].into_iter().flat_map(Name::all_of).collect();
    let mut asked = Name::all_of(&absent);
    asked.extend(borne.clone());
    // A customer bears its name, but it is no device.
    asked.push(Name::Customer(acme()));
    let expected = Known {
        borne: borne.into_iter().collect(),
        profile_by_key: HashMap::from([(one.key(), one.clone()), (two.key(), two.clone())]),
    };
    assert_eq!(wait(store.known(asked)), Ok(expected));

    // A device is not told for another name of it.
    let iccid = Name::Iccid(one.iccid.clone());
    let expected = Known {
        borne: [iccid.clone()].into(),
        ..Known::default()
    };
    assert_eq!(wait(store.known(vec![iccid.clone()])), Ok(expected));

    assert_eq!(commit(&*store, forgotten(&one)), Ok(()));
    let gone = wait(store.known(vec![iccid, Name::Device(one.key())]));
    assert_eq!(gone, Ok(Known::default()));
    assert_eq!(wait(store.known(vec![])), Ok(Known::default()));
}
