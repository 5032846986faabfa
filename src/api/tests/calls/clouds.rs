//! Are webhooks stored as given, and are invalid ones refused?

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use engine::delivery::destination::Destination;
use engine::ids::DestinationId;
use engine::limits::INTEGRATIONS_MAX;
use engine::supervision::Unserved;

use crate::api::tests::test_service::{CallAnswer, OPERATOR, TestCredentials, TestService};
use crate::config::Config;

const WEBHOOKS: &str = "/management-api/v1/integrate/clouds/webhooks";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[actix_web::test]
async fn a_webhook_gets_all_events_but_results_by_default() {
    let (setup, acme) = acme().await;
    let made = create(
        &setup,
        &acme,
        json!({"name": "Here", "url": "https://example.com/in"}),
    );
    let made = made.await;
    assert_eq!(made.status, StatusCode::CREATED);
    let body = made.json();
    let path = format!("{WEBHOOKS}/{}", body["id"].as_str().unwrap());
    assert_eq!(made.header("location"), Some(path.as_str()));
    let usual = ["TELEMETRY_DATA", "LIFECYCLE", "ERROR"].map(|it| json!({"type": it}));
    assert_eq!(body["eventTypes"], json!(usual));
    assert_eq!(body["headers"], json!({}));
    assert_eq!(body["jsonPayloadEnabled"], false);
    assert_eq!(body["secretSet"], false);
    assert_eq!(body["state"], "ROLLOUT_DONE");
    assert_eq!(body["replaying"], false);
    let mut shown = setup.get(&path, &acme.bearer).await.json();
    let backlog = json!({"waiting": 0, "deadLetters": 0});
    assert_eq!(
        shown.as_object_mut().unwrap().remove("backlog"),
        Some(backlog)
    );
    assert_eq!(shown, body);
}

#[actix_web::test]
async fn a_webhook_is_returned_as_given_without_its_secret_and_the_values_of_its_headers() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let mut expected = whole();
    expected.as_object_mut().unwrap().remove("secret");
    expected["headers"] = json!({"Authorization": "***", "X-Device": "***"});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(made[name], *value, "{name}");
    }
    assert_eq!(made["secretSet"], true);
    let list = setup.get(WEBHOOKS, &acme.bearer).await;
    assert_eq!(list.json()["items"], json!([made]));
    assert!(!String::from_utf8_lossy(&list.bytes).contains(SECRET));
}

#[actix_web::test]
async fn a_webhook_of_a_customer_deleted_meanwhile_is_not_created() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let id = DestinationId::parse(made["id"].as_str().unwrap()).unwrap();
    let before = setup.store.destination(id).await.unwrap().unwrap();
    let removed = setup.delete("/operator-api/v1/customers/acme", OPERATOR);
    assert_eq!(removed.await.status, StatusCode::NO_CONTENT);
    let late = Destination {
        id: DestinationId::from_bytes([7; 16]),
        ..before
    };
    let created = setup.state.0.deliveries.create(late.clone(), None).await;
    assert_eq!(created, Err(Unserved::Unknown));
    assert_eq!(setup.store.destination(late.id).await, Ok(None));
}

#[actix_web::test]
async fn the_secrets_of_a_webhook_are_stored_encrypted() {
    let (setup, acme) = acme().await;
    create(&setup, &acme, whole()).await;
    let customer = engine::ids::CustomerId::parse("acme").unwrap();
    let stored = setup.store.customer_settings(customer).await.unwrap();
    assert_eq!(stored.destinations.len(), 1);
    let webhook = stored.destinations[0].target.webhook().unwrap();
    let sealed = webhook.headers.iter().map(|header| &header.value);
    let sealed: Vec<_> = sealed.chain(&webhook.secret).collect();
    assert_eq!(sealed.len(), 3);
    for sealed in sealed {
        for plain in ["Bearer 7b0cf", ":deviceId:", SECRET] {
            let holds = |window: &[u8]| window == plain.as_bytes();
            assert!(
                !sealed.as_bytes().windows(plain.len()).any(holds),
                "{plain}"
            );
        }
    }
}

#[actix_web::test]
async fn properties_absent_from_an_update_stay() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let path = format!("{WEBHOOKS}/{}", made["id"].as_str().unwrap());
    let untouched = setup.patch(&path, &acme.bearer, json!({})).await;
    assert_eq!(
        without_updated(untouched.json()),
        without_updated(made.clone())
    );
    for (name, value) in [
        ("name", json!("Other")),
        ("url", json!("https://example.org/:iccid:")),
        ("headers", json!({"X-Other": "1"})),
        ("eventTypes", json!([{"type": "ACTION_RESULT"}])),
        (
            "eventTypes",
            json!([{"type": "LIFECYCLE", "kinds": ["EXPIRED", "AWAKE"]}]),
        ),
        ("jsonPayloadEnabled", json!(false)),
    ] {
        let before = setup.get(&path, &acme.bearer).await.json();
        let amended = setup.patch(&path, &acme.bearer, json!({name: value})).await;
        assert_eq!(amended.status, StatusCode::OK, "{name}");
        let mut expected = before;
        expected[name] = match name {
            "headers" => json!({"X-Other": "***"}),
            _ => value,
        };
        expected.as_object_mut().unwrap().remove("backlog");
        assert_eq!(
            without_updated(amended.json()),
            without_updated(expected),
            "{name}"
        );
    }
    for (secret, is_set) in [
        (json!(null), false),
        (json!(null), false),
        (json!(SECRET), true),
    ] {
        let amended = setup
            .patch(&path, &acme.bearer, json!({"secret": secret}))
            .await;
        assert_eq!(amended.json()["secretSet"], is_set);
    }
}

#[actix_web::test]
async fn entries_for_lifecycle_events_add_up() {
    let (setup, acme) = acme().await;
    let cases = [
        (
            json!([{"type": "LIFECYCLE"}, {"type": "LIFECYCLE"}]),
            json!([{"type": "LIFECYCLE"}]),
        ),
        (
            json!([{"type": "LIFECYCLE", "kinds": ["ASLEEP"]},
                {"type": "LIFECYCLE", "kinds": ["BACK", "BACK"]}]),
            json!([{"type": "LIFECYCLE", "kinds": ["BACK", "ASLEEP"]}]),
        ),
        (
            json!([{"type": "LIFECYCLE", "kinds": ["AWAKE"]}, {"type": "LIFECYCLE"}]),
            json!([{"type": "LIFECYCLE", "kinds": ["FIRST_CONTACT", "REGISTERED", "UPDATED",
                "DEREGISTERED", "EXPIRED", "OFFLINE", "BACK", "AWAKE", "BOOTSTRAPPED"]}]),
        ),
    ];
    for (given, shown) in cases {
        let mut body = named("Here");
        body["eventTypes"] = given;
        let made = create(&setup, &acme, body).await.json();
        assert_eq!(made["eventTypes"], shown);
    }
}

#[actix_web::test]
async fn every_fault_of_a_new_webhook_is_reported_at_once() {
    let (setup, acme) = acme().await;
    let empty = create(&setup, &acme, json!({})).await;
    faulty(&empty, &[("REQUIRED", "name"), ("REQUIRED", "url")]);
    let body = json!({
        "name": " ", "url": "ftp://example.com", "secret": "short", "jsonPayloadEnabled": "yes",
        "headers": {"Host": "x", "X-Fine": "1", "X-Number": 1, "webhook-id": "1"},
        "eventTypes": [{"type": "TEST"}, {"type": "ERROR", "only": true}, {},
            {"type": "LIFECYCLE", "kinds": ["AWAKE", "SNORING"]},
            {"type": "LIFECYCLE", "kinds": []}, {"type": "ERROR", "kinds": ["BACK"]},
            {"type": "LIFECYCLE", "kinds": "AWAKE"}, "LIFECYCLE"], "colour": "red",
    });
    let refused = create(&setup, &acme, body).await;
    let expected = [
        ("INVALID_VALUE", "eventTypes[0].type"),
        ("INVALID_VALUE", "eventTypes[3].kinds"),
        ("INVALID_VALUE", "eventTypes[4].kinds"),
        ("INVALID_VALUE", "eventTypes[5].kinds"),
        ("INVALID_VALUE", "headers.Host"),
        ("INVALID_VALUE", "headers.webhook-id"),
        ("INVALID_VALUE", "name"),
        ("INVALID_VALUE", "secret"),
        ("INVALID_VALUE", "url"),
        ("REQUIRED", "eventTypes[2].type"),
        ("UNKNOWN_PROPERTY", "colour"),
        ("UNKNOWN_PROPERTY", "eventTypes[1].only"),
        ("WRONG_TYPE", "eventTypes[6].kinds"),
        ("WRONG_TYPE", "eventTypes[7]"),
        ("WRONG_TYPE", "headers.X-Number"),
        ("WRONG_TYPE", "jsonPayloadEnabled"),
    ];
    faulty(&refused, &expected);
    let none = json!({"name": "x", "url": "https://example.com", "eventTypes": []});
    let refused = create(&setup, &acme, none).await;
    faulty(&refused, &[("INVALID_VALUE", "eventTypes")]);
    let list = setup.get(WEBHOOKS, &acme.bearer).await.json();
    assert_eq!(list["items"], json!([]), "nothing was kept");
}

#[actix_web::test]
async fn every_fault_of_an_update_is_reported_at_once_and_nothing_changes() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let path = format!("{WEBHOOKS}/{}", made["id"].as_str().unwrap());
    let body = json!({
        "name": null, "url": null, "headers": null, "eventTypes": null, "id": "x",
        "jsonPayloadEnabled": null, "secret": "x", "state": "INTEGRATION_ACTIVE", "tint": null,
    });
    let refused = setup.patch(&path, &acme.bearer, body).await;
    let expected = [
        ("INVALID_VALUE", "secret"),
        ("READ_ONLY", "id"),
        ("READ_ONLY", "state"),
        ("UNKNOWN_PROPERTY", "tint"),
        ("WRONG_TYPE", "eventTypes"),
        ("WRONG_TYPE", "headers"),
        ("WRONG_TYPE", "jsonPayloadEnabled"),
        ("WRONG_TYPE", "name"),
        ("WRONG_TYPE", "url"),
    ];
    faulty(&refused, &expected);
    let stored = setup.get(WEBHOOKS, &acme.bearer).await.json();
    assert_eq!(stored["items"], json!([made]));
}

#[actix_web::test]
async fn headers_that_differ_only_in_case_are_duplicates() {
    let (setup, acme) = acme().await;
    let mut body = whole();
    body["headers"] = json!({"X-Key": "1", "x-key": "2"});
    faulty(
        &create(&setup, &acme, body).await,
        &[("INVALID_VALUE", "headers")],
    );
}

#[actix_web::test]
async fn a_url_to_a_private_address_is_refused_unless_the_operator_allows_it() {
    let (setup, acme) = acme().await;
    let allowing = TestService::with(Config {
        allow_private_destinations: true,
        ..Config::of_defaults()
    });
    let allowed = allowing.customer("acme", &["all"]).await;
    for url in [
        "http://example.com/",
        "https://localhost/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://10.0.0.7/",
        "https://169.254.169.254/latest/meta-data",
    ] {
        let body = json!({"name": "x", "url": url});
        let refused = create(&setup, &acme, body.clone()).await;
        faulty(&refused, &[("INVALID_VALUE", "url")]);
        let taken = create(&allowing, &allowed, body).await;
        assert_eq!(taken.status, StatusCode::CREATED, "{url}");
    }
    for url in [
        "https://me:secret@example.com/",
        "ftp://example.com/",
        "/in",
        "https://",
    ] {
        let body = json!({"name": "x", "url": url});
        let refused = create(&allowing, &allowed, body).await;
        faulty(&refused, &[("INVALID_VALUE", "url")]);
    }
}

#[actix_web::test]
async fn the_webhooks_of_a_customer_are_bounded() {
    let (setup, acme) = acme().await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    for number in 0..INTEGRATIONS_MAX {
        let made = create(&setup, &acme, named(&number.to_string())).await;
        assert_eq!(made.status, StatusCode::CREATED);
    }
    let refused = create(&setup, &acme, named("one more")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.faults()[0].0, "TOO_MANY_DESTINATIONS");
    let others = create(&setup, &umbrella, named("first")).await;
    assert_eq!(others.status, StatusCode::CREATED);
    let second = format!("{WEBHOOKS}?page=2&pageSize=15");
    let second = setup.get(&second, &acme.bearer).await.json();
    let names = second["items"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["15", "16", "17", "18", "19"]);
    assert_eq!(second["pageAmount"], 2);
    let last = &second["items"][4]["id"];
    let last = format!("{WEBHOOKS}/{}", last.as_str().unwrap());
    let removed = setup.delete(&last, &acme.bearer);
    assert_eq!(removed.await.status, StatusCode::NO_CONTENT);
    let made = create(&setup, &acme, named("one more")).await;
    assert_eq!(made.status, StatusCode::CREATED);
}

#[actix_web::test]
async fn a_deleted_webhook_is_not_found() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let path = format!("{WEBHOOKS}/{}", made["id"].as_str().unwrap());
    let removed = setup.delete(&path, &acme.bearer).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    for answer in [
        setup.get(&path, &acme.bearer).await,
        setup.delete(&path, &acme.bearer).await,
        setup.patch(&path, &acme.bearer, json!({})).await,
        setup
            .post(&format!("{path}/restart"), &acme.bearer, json!({}))
            .await,
        setup
            .post(&format!("{path}/test"), &acme.bearer, json!({}))
            .await,
        setup
            .get(&format!("{path}/deadletters"), &acme.bearer)
            .await,
        setup
            .delete(&format!("{path}/deadletters"), &acme.bearer)
            .await,
        setup
            .post(
                &format!("{path}/deadletters/replay"),
                &acme.bearer,
                json!({}),
            )
            .await,
    ] {
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(answer.faults()[0].0, "NOT_FOUND");
    }
    let list = setup.get(WEBHOOKS, &acme.bearer).await.json();
    assert_eq!(list["items"], json!([]));
}

#[actix_web::test]
async fn an_active_webhook_stays_active_when_it_is_restarted_or_replayed() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let path = format!("{WEBHOOKS}/{}", made["id"].as_str().unwrap());
    let restarted = setup
        .post(&format!("{path}/restart"), &acme.bearer, json!({}))
        .await;
    assert_eq!(restarted.status, StatusCode::OK);
    assert_eq!(restarted.json(), made);
    let letters = setup
        .get(&format!("{path}/deadletters"), &acme.bearer)
        .await;
    assert_eq!(letters.json(), json!({"items": []}));
    let replay = format!("{path}/deadletters/replay");
    let replayed = setup.post(&replay, &acme.bearer, json!({}));
    let replayed = replayed.await;
    assert_eq!(replayed.status, StatusCode::ACCEPTED);
    assert_eq!(
        replayed.json()["backlog"],
        json!({"waiting": 0, "deadLetters": 0})
    );
}

#[actix_web::test]
async fn an_unknown_dead_letter_is_not_found_and_discarding_all_of_none_succeeds() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let path = format!("{WEBHOOKS}/{}/deadletters", made["id"].as_str().unwrap());
    for letter in ["01935c5a-0000-7000-8000-000000000001", "none"] {
        let unknown = setup
            .delete(&format!("{path}/{letter}"), &acme.bearer)
            .await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        assert_eq!(unknown.faults()[0].0, "NOT_FOUND");
    }
    let discarded = setup.delete(&path, &acme.bearer).await;
    assert_eq!(discarded.status, StatusCode::NO_CONTENT);
}

#[actix_web::test]
async fn an_invalid_cursor_is_refused() {
    let (setup, acme) = acme().await;
    let made = create(&setup, &acme, whole()).await.json();
    let path = format!("{WEBHOOKS}/{}/deadletters", made["id"].as_str().unwrap());
    for cursor in ["x", "-1", "1.5", "99999999999999999999"] {
        let refused = setup
            .get(&format!("{path}?cursor={cursor}"), &acme.bearer)
            .await;
        faulty(&refused, &[("INVALID_VALUE", "cursor")]);
    }
    let behind = setup
        .get(&format!("{path}?cursor=7&pageSize=1"), &acme.bearer)
        .await;
    assert_eq!(behind.json(), json!({"items": []}));
}

async fn acme() -> (TestService, TestCredentials) {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    (setup, acme)
}

async fn create(setup: &TestService, by: &TestCredentials, body: Value) -> CallAnswer {
    setup.post(WEBHOOKS, &by.bearer, body).await
}

fn named(name: &str) -> Value {
    json!({"name": name, "url": "https://example.com/"})
}

/// A webhook with every property.
fn whole() -> Value {
    json!({
        "name": "Warehouse",
        "url": "https://example.com/in/:deviceId:?sim=:iccid:",
        "headers": {"Authorization": "Bearer 7b0cf", "X-Device": ":deviceId:"},
        "eventTypes": [{"type": "TELEMETRY_DATA"}, {"type": "ACTION_RESULT"}],
        "jsonPayloadEnabled": true,
        "secret": SECRET,
    })
}

fn without_updated(mut body: Value) -> Value {
    body.as_object_mut().unwrap().remove("updated");
    body
}

/// Checks that a refusal has exactly these faults.
fn faulty(answer: &CallAnswer, expected: &[(&str, &str)]) {
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let mut faults = answer.faults();
    faults.sort();
    let owned = |(code, field): &(&str, &str)| ((*code).to_owned(), (*field).to_owned());
    assert_eq!(faults, expected.iter().map(owned).collect::<Vec<_>>());
}
