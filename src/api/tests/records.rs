//! Is a decision repeated after a conflicting commit, up to a bound?

use std::cell::Cell;

use engine::change::{Batch, Change, Expect, UniqueName};
use engine::customer::Customer;
use engine::directory::Decision;
use engine::ids::CustomerId;
use engine::moment::Timestamp;

use super::test_service::TestService;
use crate::api::error::ApiError;
use crate::api::records::settle;

#[actix_web::test]
async fn a_decision_without_a_conflict_is_made_once() {
    let (setup, decisions) = (TestService::new(), Cell::new(0));
    let settled = settle(&*setup.store, async || {
        decisions.set(decisions.get() + 1);
        Ok(Decision {
            batch: creation("acme"),
            answer: decisions.get(),
        })
    });
    assert_eq!(settled.await.unwrap(), 1);
    assert!(setup.store.customer(id("acme")).await.unwrap().is_some());
}

#[actix_web::test]
async fn a_decision_is_repeated_after_a_conflict() {
    let (setup, decisions) = (TestService::new(), Cell::new(0));
    setup.store.commit(creation("acme")).await.unwrap();
    let settled = settle(&*setup.store, async || {
        decisions.set(decisions.get() + 1);
        let name = if decisions.get() < 4 {
            "acme"
        } else {
            "umbrella"
        };
        Ok(Decision {
            batch: creation(name),
            answer: decisions.get(),
        })
    });
    assert_eq!(settled.await.unwrap(), 4);
    assert!(
        setup
            .store
            .customer(id("umbrella"))
            .await
            .unwrap()
            .is_some()
    );
}

#[actix_web::test]
async fn a_decision_with_endless_conflicts_is_given_up() {
    let (setup, decisions) = (TestService::new(), Cell::new(0));
    setup.store.commit(creation("acme")).await.unwrap();
    let settled = settle(&*setup.store, async || {
        decisions.set(decisions.get() + 1);
        Ok(Decision {
            batch: creation("acme"),
            answer: (),
        })
    });
    let failure = settled.await.unwrap_err();
    assert_eq!(
        (failure.faults()[0].code, decisions.get()),
        ("UNAVAILABLE", 4)
    );
}

#[actix_web::test]
async fn a_refusal_is_not_repeated() {
    let (setup, decisions) = (TestService::new(), Cell::new(0));
    let settled = settle(&*setup.store, async || {
        decisions.set(decisions.get() + 1);
        Err::<Decision<()>, _>(ApiError::unknown("customer"))
    });
    assert_eq!(
        (settled.await.unwrap_err().faults()[0].code, decisions.get()),
        ("NOT_FOUND", 1)
    );
}

fn creation(customer: &str) -> Batch {
    let customer = Customer {
        networks: Box::default(),
        wake_up: None,
        offline_after_s: None,
        authorities: None,
        id: id(customer),
        number: 1,
        name: customer.into(),
        created_at: Timestamp::from_ms(0),
    };
    Batch {
        expects: vec![Expect::Free(UniqueName::Customer(customer.id.clone()))],
        changes: vec![Change::PutCustomer(customer)],
        ..Batch::default()
    }
}

fn id(text: &str) -> CustomerId {
    CustomerId::parse(text).unwrap()
}
