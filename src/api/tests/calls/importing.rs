//! What does an import do if the store rejects its batches?

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use engine::change::UniqueName;
use engine::ids::Endpoint;
use store::CommitError::{Conflict, Fenced, Full, Unavailable};

use crate::api::tests::scripted::ScriptedStore;
use crate::api::tests::test_service::{CallAnswer, TestService};

#[actix_web::test]
async fn a_batch_is_decided_again_until_its_commit_succeeds() {
    let (setup, store) = scripted();
    let bearer = setup.customer("acme", &["all"]).await.bearer;
    let cases: [(&str, &[_]); 3] = [
        ("a", &[Some(Conflict), Some(Conflict), Some(Conflict)]),
        ("b", &[Some(Full), Some(Full)]),
        ("c", &[None, Some(Full), Some(Conflict)]),
    ];
    for (name, verdicts) in cases {
        store.expect(verdicts);
        let answer = import(&setup, &bearer, &lines(name, 600)).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.json()["created"], 600, "{verdicts:?}");
        assert_eq!(store.left(), 0, "{verdicts:?}");
    }
}

#[actix_web::test]
async fn a_batch_whose_commits_fail_is_settled_line_by_line() {
    let (setup, store) = scripted();
    let bearer = setup.customer("acme", &["all"]).await.bearer;
    // The first commit assumes that names are free, three follow a read, then each line is
    // committed alone: the second line never succeeds.
    let mut verdicts = vec![Some(Conflict); 4];
    verdicts.extend([None, Some(Conflict), Some(Conflict), Some(Conflict), None]);
    store.expect(&verdicts);
    let answer = import(&setup, &bearer, &lines("device", 3)).await;
    assert_eq!(answer.status, StatusCode::OK);
    let response = answer.json();
    assert_eq!(
        (&response["created"], &response["through"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(response["refusals"][0]["line"], 2);
    assert_eq!(response["refusals"][0]["errors"][0]["code"], "UNAVAILABLE");
    assert_eq!(store.left(), 0);
    assert!(is_known(&setup, "device-0").await);
    assert!(!is_known(&setup, "device-1").await);
}

#[actix_web::test]
async fn an_import_stopped_by_the_store_reports_the_last_durable_line() {
    for refusal in [Unavailable, Fenced] {
        let (setup, store) = scripted();
        let bearer = setup.customer("acme", &["all"]).await.bearer;
        store.expect(&[None, Some(refusal), None]);
        let answer = import(&setup, &bearer, &lines("device", 1_200)).await;
        assert_eq!(answer.status, 503);
        let response = answer.json();
        assert_eq!(response["statusCode"], 503);
        assert_eq!(response["through"], 512, "{response}");
        // The third batch was in flight: its devices are counted, but come after a gap.
        let created = response["created"].as_u64().unwrap();
        assert!([512, 688].contains(&created), "{response}");
        assert_eq!(response["lines"], created);
        assert!(is_known(&setup, "device-511").await);
        assert!(!is_known(&setup, "device-512").await);
        let again = import(&setup, &bearer, &lines("device", 1_200))
            .await
            .json();
        assert_eq!(
            (&again["unchanged"], &again["created"]),
            (&json!(created), &json!(1_200 - created))
        );
    }
}

fn scripted() -> (TestService, Arc<ScriptedStore>) {
    let mut made = None;
    let setup = TestService::over(|store| {
        let store = Arc::new(ScriptedStore::new(store));
        made = Some(Arc::clone(&store));
        store
    });
    (setup, made.unwrap())
}

async fn import(setup: &TestService, bearer: &str, text: &str) -> CallAnswer {
    let request = TestService::request("POST", "/management-api/v1/devices/import")
        .insert_header((AUTHORIZATION, bearer))
        .insert_header((CONTENT_TYPE, "application/x-ndjson"));
    setup.call(request.set_payload(text.to_owned())).await
}

/// Whether the customer has a device with this id.
async fn is_known(setup: &TestService, id: &str) -> bool {
    let endpoint = Endpoint::parse(id).unwrap();
    setup
        .store
        .device_by_name(UniqueName::Endpoint(endpoint))
        .await
        .unwrap()
        .is_some()
}

fn lines(name: &str, count: usize) -> String {
    let lines = (0..count).map(|number| format!("{{\"deviceId\":\"{name}-{number}\"}}\n"));
    lines.collect()
}
