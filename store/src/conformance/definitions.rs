//! What is stored of a customer's choices: definitions of objects, settings and destinations?

use std::num::NonZeroU32;

use engine::certificate_authorities::CertificateAuthorities;
use engine::change::Change;
use engine::customer::Customer;
use engine::definition::Definition;
use engine::ids::CustomerId;
use engine::policy::CustomerSettings;
use engine::setting::{Setting, SettingName, SettingState};

use super::samples::{acme, at, batch, customer, definition, destination};
use super::{TestBed, commit, put, wait};
use crate::{Retention, Store};

/// The most bytes of a definition.
const LARGE: usize = 256 * 1_024;

pub(super) fn of_any_size(ground: &TestBed<'_>) {
    let store = ground.open();
    let kept = [
        definition(&acme(), 3, "1.0", 10),
        definition(&acme(), 3, "1.1", LARGE),
        definition(&acme(), 33_000, "1.0", 4_096),
    ];
    let elsewhere = definition(&customer("acme-2").id, 3, "1.0", 20);
    for definition in kept.iter().chain([&elsewhere]) {
        define(&*store, definition);
    }
    for _ in 0..2 {
        for definition in kept.iter().chain([&elsewhere]) {
            let found = wait(store.definition(definition.id.clone()));
            assert_eq!(found.as_ref(), Ok(&Some(definition.clone())));
        }
        assert_eq!(definitions_of(&*store, &acme()), kept);
    }
    drop(store);
    let store = ground.open();
    assert_eq!(definitions_of(&*store, &acme()), kept);

    // A smaller definition replaces it.
    let smaller = definition(&acme(), 3, "1.1", 5_000);
    define(&*store, &smaller);
    let [first, _, third] = kept;
    assert_eq!(
        definitions_of(&*store, &acme()),
        [first.clone(), smaller.clone(), third.clone()]
    );
    for _ in 0..2 {
        put(&*store, vec![Change::RemoveDefinition(smaller.id.clone())]);
        assert_eq!(wait(store.definition(smaller.id.clone())), Ok(None));
    }
    assert_eq!(definitions_of(&*store, &acme()), [first, third]);
    let swept = wait(store.sweep(Retention::NOTHING, 100)).expect("a sweep");
    assert_eq!(swept.removed, 0, "a text goes with its definition");
}

pub(super) fn go_with_their_customer(ground: &TestBed<'_>) {
    let store = ground.open();
    let globex = customer("globex").id;
    let elsewhere = definition(&globex, 3, "1.0", 9_000);
    put(&*store, vec![Change::PutCustomer(customer("acme"))]);
    for object in 0..20 {
        define(&*store, &definition(&acme(), object, "1.0", LARGE / 4));
    }
    define(&*store, &elsewhere);
    let removal = vec![Change::RemoveCustomer(acme())];
    put(&*store, removal);
    assert_eq!(definitions_of(&*store, &acme()), []);
    // A customer never sees the definitions of a former customer with the same id.
    let fresh = definition(&acme(), 7, "1.0", 9_000);
    define(&*store, &fresh);
    let mut removed = 0;
    loop {
        assert_eq!(definitions_of(&*store, &acme()), vec![fresh.clone()]);
        assert_eq!(definitions_of(&*store, &globex), vec![elsewhere.clone()]);
        let swept = wait(store.sweep(Retention::NOTHING, 3)).expect("a sweep");
        assert!(swept.removed <= 3);
        removed += swept.removed;
        if !swept.more {
            break;
        }
    }
    assert_eq!(removed, 20);
    assert_eq!(definitions_of(&*store, &acme()), [fresh]);
}

pub(super) fn settings_of_all_customers(ground: &TestBed<'_>) {
    let store = ground.open();
    let setting = |id: &CustomerId| Setting {
        customer: id.clone(),
        name: SettingName::Lwm2mPassiveReporting,
        state: SettingState::Enabled,
    };
    let offline_after_s = NonZeroU32::new(600);
    let [alone, nothing, some, more, most] =
        ["alone", "nothing", "some", "some-more", "the.most"].map(|id| customer(id).id);
    put(
        &*store,
        vec![
            Change::PutCustomer(customer("nothing")),
            Change::PutCustomer(Customer {
                offline_after_s,
                // Together longer than a row.
                authorities: Some(CertificateAuthorities::restore(
                    vec![[1; 4_096].into(), [2; 4_096].into()],
                    at(7),
                )),
                ..customer("alone")
            }),
            Change::PutSetting(setting(&some)),
            Change::PutDefinition(Box::new(definition(&more, 3, "1.0", 9))),
            Change::PutSetting(setting(&most)),
            Change::PutDefinition(Box::new(definition(&most, 3, "1.0", 5_000))),
            Change::PutDestination(Box::new(destination(&most, 2))),
            Change::PutDestination(Box::new(destination(&most, 1))),
        ],
    );
    let none = |customer: &CustomerId| CustomerSettings {
        customer: customer.clone(),
        settings: vec![],
        definitions: vec![],
        destinations: vec![],
        offline_after_s: None,
    };
    let expected = vec![
        CustomerSettings {
            offline_after_s,
            ..none(&alone)
        },
        CustomerSettings {
            settings: vec![setting(&some)],
            ..none(&some)
        },
        CustomerSettings {
            definitions: vec![definition(&more, 3, "1.0", 9)],
            ..none(&more)
        },
        CustomerSettings {
            settings: vec![setting(&most)],
            definitions: vec![definition(&most, 3, "1.0", 5_000)],
            destinations: vec![destination(&most, 1), destination(&most, 2)],
            ..none(&most)
        },
    ];
    assert_eq!(wait(store.all_customer_settings()), Ok(expected.clone()));
    for chosen in expected {
        assert_eq!(
            wait(store.customer_settings(chosen.customer.clone())),
            Ok(chosen)
        );
    }
    assert_eq!(
        wait(store.customer_settings(nothing.clone())),
        Ok(none(&nothing))
    );
}

fn define(store: &dyn Store, definition: &Definition) {
    let change = Change::PutDefinition(Box::new(definition.clone()));
    assert_eq!(commit(store, batch(vec![change])), Ok(()));
}

fn definitions_of(store: &dyn Store, customer: &CustomerId) -> Vec<Definition> {
    let chosen = wait(store.customer_settings(customer.clone()));
    chosen.expect("an answer").definitions
}
