//! What is stored of customers and API clients?

use engine::certificate_authorities::CertificateAuthorities;
use engine::change::{Batch, Change, Expect, UniqueName};
use engine::customer::{ApiClient, ClientOwner, Customer, Scopes, SecretDigest};
use engine::ids::{ClientId, CustomerId};
use engine::network::Network;
use engine::query::{Page, PageRequest};
use engine::setting::{Setting, SettingName, SettingState};

use super::lists::whole_log;
use super::samples::{acme, at, batch, client, customer, device, entry, token};
use super::{TestBed, commit, put, wait};
use crate::{CommitError, Retention};

pub(super) fn come_back(ground: &TestBed<'_>) {
    let store = ground.open();
    let script = client(&acme(), "script");
    let other = client(&acme(), "app");
    let gateway = ApiClient {
        owner: ClientOwner::Network,
        scopes: Scopes::NONE,
        ..client(&acme(), "gateway")
    };
    let secret = token(&script, "a token", at(3_600));
    put(
        &*store,
        vec![
            Change::PutCustomer(customer("acme")),
            Change::PutClient(script.clone()),
            Change::PutClient(other.clone()),
            Change::PutClient(gateway.clone()),
            Change::PutToken(secret.clone()),
            Change::PutSetting(setting(&acme(), SettingState::Disabled)),
        ],
    );
    put(
        &*store,
        vec![Change::PutSetting(setting(&acme(), SettingState::Enabled))],
    );

    assert_eq!(wait(store.customer(acme())), Ok(Some(customer("acme"))));
    assert_eq!(
        wait(store.client(script.id.clone())),
        Ok(Some(script.clone()))
    );
    assert_eq!(
        wait(store.clients_of(owned_by(&acme()))),
        Ok(vec![other, script.clone()])
    );
    let of_network = wait(store.clients_of(ClientOwner::Network));
    assert_eq!(of_network, Ok(vec![gateway]));
    assert_eq!(
        wait(store.token(SecretDigest::of("a token"))),
        Ok(Some((secret, script)))
    );
    assert_eq!(wait(store.token(SecretDigest::of("another"))), Ok(None));
    let enabled = setting(&acme(), SettingState::Enabled);
    assert_eq!(wait(store.settings_of(acme())), Ok(vec![enabled]));

    let stranger = customer("acm").id;
    assert_eq!(wait(store.customer(stranger.clone())), Ok(None));
    assert_eq!(wait(store.clients_of(owned_by(&stranger))), Ok(vec![]));
    assert_eq!(wait(store.settings_of(stranger)), Ok(vec![]));
    assert_eq!(
        wait(store.client(ClientId::parse("scrip").expect("an id"))),
        Ok(None)
    );
}

pub(super) fn listed_by_id(ground: &TestBed<'_>) {
    let store = ground.open();
    let ids = ["globex", "acme", "umbrella", "initech", "acme-2"];
    put(
        &*store,
        ids.iter()
            .map(|id| Change::PutCustomer(customer(id)))
            .collect(),
    );
    // A customer put again is the same customer.
    let renamed = Customer {
        networks: ["10.20.0.0/16", "2001:db8::/32"]
            .map(|text| Network::parse(text).expect("a network"))
            .into(),
        name: "Acme".into(),
        authorities: Some(CertificateAuthorities::restore(
            vec![[1; 10].into(), [2; 4_096].into(), [3; 4_096].into()],
            at(7),
        )),
        ..customer("acme")
    };
    put(&*store, vec![Change::PutCustomer(renamed.clone())]);
    let authorities = |id: &str| wait(store.certificate_authorities(customer(id).id));
    assert_eq!(authorities("acme"), Ok(renamed.authorities.clone()));
    assert_eq!(authorities("globex"), Ok(None));
    assert_eq!(authorities("nobody"), Ok(None));
    put(
        &*store,
        vec![Change::RemoveCustomer(customer("umbrella").id)],
    );

    let listed =
        |number, size| wait(store.customers(PageRequest { number, size })).expect("an answer");
    let page = |items| Page { items, total: 4 };
    assert_eq!(listed(1, 2), page(vec![renamed, customer("acme-2")]));
    assert_eq!(
        listed(2, 2),
        page(vec![customer("globex"), customer("initech")])
    );
    assert_eq!(listed(3, 2), page(vec![]));
}

pub(super) fn client_takes_tokens(ground: &TestBed<'_>) {
    let store = ground.open();
    let (script, app) = (client(&acme(), "script"), client(&acme(), "app"));
    let kept = token(&app, "kept", at(100));
    put(
        &*store,
        vec![
            Change::PutCustomer(customer("acme")),
            Change::PutClient(script.clone()),
            Change::PutClient(app.clone()),
            Change::PutToken(token(&script, "one", at(100))),
            Change::PutToken(token(&script, "two", at(200))),
            Change::PutToken(kept.clone()),
        ],
    );
    // A token that was read is read again with its client as it is then.
    for scopes in [Scopes::ALL, Scopes::NONE] {
        let changed = ApiClient {
            scopes,
            ..script.clone()
        };
        put(&*store, vec![Change::PutClient(changed.clone())]);
        for _ in 0..2 {
            let found = wait(store.token(SecretDigest::of("one")));
            let found = found.map(|it| it.map(|(_, client)| client));
            assert_eq!(found, Ok(Some(changed.clone())));
        }
    }
    put(&*store, vec![Change::RemoveClient(script.id.clone())]);

    assert_eq!(wait(store.token(SecretDigest::of("one"))), Ok(None));
    assert_eq!(wait(store.client(script.id.clone())), Ok(None));
    assert_eq!(
        wait(store.clients_of(owned_by(&acme()))),
        Ok(vec![app.clone()])
    );
    assert_eq!(
        wait(store.token(SecretDigest::of("kept"))),
        Ok(Some((kept, app)))
    );
    // A client created again under the same id does not restore the tokens.
    put(&*store, vec![Change::PutClient(script)]);
    assert_eq!(wait(store.token(SecretDigest::of("one"))), Ok(None));
    assert_eq!(wait(store.token(SecretDigest::of("two"))), Ok(None));
}

pub(super) fn customer_takes_everything(ground: &TestBed<'_>) {
    let store = ground.open();
    let globex = customer("globex");
    for owner in [customer("acme"), globex.clone()] {
        put(&*store, rows_of_customer(&owner));
    }
    // A batch sees its own changes.
    let late = client(&acme(), "late");
    put(
        &*store,
        vec![
            Change::PutClient(late.clone()),
            Change::PutToken(token(&late, "late", at(100))),
            Change::RemoveCustomer(acme()),
        ],
    );

    assert_eq!(wait(store.customer(acme())), Ok(None));
    assert_eq!(wait(store.clients_of(owned_by(&acme()))), Ok(vec![]));
    assert_eq!(wait(store.client(late.id)), Ok(None));
    assert_eq!(wait(store.settings_of(acme())), Ok(vec![]));
    assert_eq!(wait(store.token(SecretDigest::of("late"))), Ok(None));
    assert_eq!(wait(store.token(SecretDigest::of("acme"))), Ok(None));
    assert_eq!(whole_log(&*store, &acme()), (vec![], 0));
    let again = Batch {
        expects: vec![Expect::Taken(UniqueName::Customer(acme()))],
        ..batch(vec![Change::RemoveCustomer(acme())])
    };
    assert_eq!(commit(&*store, again), Err(CommitError::Conflict));

    assert_eq!(
        wait(store.customer(globex.id.clone())),
        Ok(Some(globex.clone()))
    );
    assert_eq!(
        wait(store.clients_of(owned_by(&globex.id))).map(|clients| clients.len()),
        Ok(1)
    );
    assert!(
        wait(store.token(SecretDigest::of("globex")))
            .expect("an answer")
            .is_some()
    );
    assert_eq!(whole_log(&*store, &globex.id).1, 20);
}

pub(super) fn log_is_not_inherited(ground: &TestBed<'_>) {
    let store = ground.open();
    put(&*store, rows_of_customer(&customer("acme")));
    put(&*store, vec![Change::RemoveCustomer(acme())]);
    let fresh = entry(&device(&acme(), 1), 500, 1);
    put(
        &*store,
        vec![
            Change::PutCustomer(customer("acme")),
            Change::AppendEntry(Box::new(fresh.clone())),
        ],
    );
    assert_eq!(whole_log(&*store, &acme()), (vec![fresh.clone()], 1));

    let nothing = Retention::NOTHING;
    let mut removed = 0;
    while removed < 20 {
        let swept = wait(store.sweep(nothing, 8)).expect("an answer");
        assert!(swept.removed > 0 && swept.removed <= 8);
        removed += swept.removed;
        assert_eq!(whole_log(&*store, &acme()), (vec![fresh.clone()], 1));
    }
    let swept = wait(store.sweep(nothing, 8)).expect("an answer");
    assert_eq!((removed, swept.removed, swept.more), (20, 0, false));
    assert_eq!(whole_log(&*store, &acme()), (vec![fresh], 1));
}

fn owned_by(customer: &CustomerId) -> ClientOwner {
    ClientOwner::Customer(customer.clone())
}

/// A customer with a client, a token, a setting and a log of twenty entries.
fn rows_of_customer(customer: &Customer) -> Vec<Change> {
    let script = client(&customer.id, &format!("{}-script", customer.id));
    let mut all = vec![
        Change::PutCustomer(customer.clone()),
        Change::PutClient(script.clone()),
        Change::PutToken(token(&script, customer.id.as_str(), at(100))),
        Change::PutSetting(setting(&customer.id, SettingState::Enabled)),
    ];
    let meter = device(&customer.id, 1);
    all.extend((0..20).map(|number| {
        let second = i64::try_from(number).expect("small");
        Change::AppendEntry(Box::new(entry(&meter, second, number)))
    }));
    all
}

fn setting(customer: &CustomerId, state: SettingState) -> Setting {
    Setting {
        customer: customer.clone(),
        name: SettingName::Lwm2mPassiveReporting,
        state,
    }
}
