//! What does an import do when the store refuses its batches?

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use engine::change::Name;
use engine::ids::Endpoint;
use store::CommitError::{Conflict, Fenced, Full, Unavailable};

use crate::api::tests::scripted::Scripted;
use crate::api::tests::world::{Answer, World};

#[actix_web::test]
async fn a_batch_is_decided_anew_until_it_holds() {
    let (world, store) = scripted();
    let bearer = world.customer("acme", &["all"]).await.bearer;
    let cases: [(&str, &[_]); 3] = [
        ("a", &[Some(Conflict), Some(Conflict), Some(Conflict)]),
        ("b", &[Some(Full), Some(Full)]),
        ("c", &[None, Some(Full), Some(Conflict)]),
    ];
    for (name, verdicts) in cases {
        store.expect(verdicts);
        let answer = import(&world, &bearer, &lines(name, 600)).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.json()["created"], 600, "{verdicts:?}");
        assert_eq!(store.left(), 0, "{verdicts:?}");
    }
}

#[actix_web::test]
async fn a_batch_that_never_holds_is_settled_line_by_line() {
    let (world, store) = scripted();
    let bearer = world.customer("acme", &["all"]).await.bearer;
    // As if free, three times read first, then the lines: the second is the one that never holds.
    let mut verdicts = vec![Some(Conflict); 4];
    verdicts.extend([None, Some(Conflict), Some(Conflict), Some(Conflict), None]);
    store.expect(&verdicts);
    let answer = import(&world, &bearer, &lines("device", 3)).await;
    assert_eq!(answer.status, StatusCode::OK);
    let told = answer.json();
    assert_eq!((&told["created"], &told["through"]), (&json!(2), &json!(3)));
    assert_eq!(told["refusals"][0]["line"], 2);
    assert_eq!(told["refusals"][0]["errors"][0]["code"], "UNAVAILABLE");
    assert_eq!(store.left(), 0);
    assert!(is_known(&world, "device-0").await);
    assert!(!is_known(&world, "device-1").await);
}

#[actix_web::test]
async fn an_import_that_the_store_stops_says_through_which_line_all_is_durable() {
    for (refusal, status) in [(Unavailable, 503), (Fenced, 500)] {
        let (world, store) = scripted();
        let bearer = world.customer("acme", &["all"]).await.bearer;
        store.expect(&[None, Some(refusal), None]);
        let answer = import(&world, &bearer, &lines("device", 1_200)).await;
        assert_eq!(answer.status.as_u16(), status);
        let told = answer.json();
        assert_eq!(told["statusCode"], status);
        assert_eq!(told["through"], 512, "{told}");
        // The third batch was on its way: what it made counts, and lies behind a gap.
        let created = told["created"].as_u64().unwrap();
        assert!([512, 688].contains(&created), "{told}");
        assert_eq!(told["lines"], created);
        assert!(is_known(&world, "device-511").await);
        assert!(!is_known(&world, "device-512").await);
        let again = import(&world, &bearer, &lines("device", 1_200))
            .await
            .json();
        assert_eq!(
            (&again["unchanged"], &again["created"]),
            (&json!(created), &json!(1_200 - created))
        );
    }
}

fn scripted() -> (World, Arc<Scripted>) {
    let mut made = None;
    let world = World::over(|store| {
        let store = Arc::new(Scripted::new(store));
        made = Some(Arc::clone(&store));
        store
    });
    (world, made.unwrap())
}

async fn import(world: &World, bearer: &str, text: &str) -> Answer {
    let request = World::request("POST", "/management-api/v1/devices/import")
        .insert_header((AUTHORIZATION, bearer))
        .insert_header((CONTENT_TYPE, "application/x-ndjson"));
    world.call(request.set_payload(text.to_owned())).await
}

/// Whether there is a device of the customer, by its names.
async fn is_known(world: &World, id: &str) -> bool {
    let endpoint = Endpoint::parse(id).unwrap();
    world
        .store
        .bearer(Name::Endpoint(endpoint))
        .await
        .unwrap()
        .is_some()
}

fn lines(name: &str, count: usize) -> String {
    let lines = (0..count).map(|number| format!("{{\"deviceId\":\"{name}-{number}\"}}\n"));
    lines.collect()
}
