//! Are plugins installed as given, and are invalid ones refused?

use actix_web::http::StatusCode;
use serde_json::{Value, json};

use engine::delivery::partner::PARTNERS;

use crate::api::tests::test_service::{CallAnswer, TestCredentials, TestService};
use crate::config::Config;

const PARTNERS_PATH: &str = "/management-api/v1/partners";
const PLUGINS: &str = "/management-api/v1/partners/plugins";
const WEBHOOKS: &str = "/management-api/v1/integrate/clouds/webhooks";
const KEY: &str = "7b0cf/1";

#[actix_web::test]
async fn a_plugin_is_returned_as_installed_with_its_key_masked() {
    let (setup, acme) = acme().await;
    let made = install(&setup, &acme, "gateway", whole()).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let body = made.json();
    let path = format!("{PLUGINS}/{}", body["id"].as_str().unwrap());
    assert_eq!(made.header("location"), Some(path.as_str()));
    assert_eq!(body["partner"], "gateway");
    assert_eq!(body["serverDomain"], "gateway.example.com:8443");
    assert_eq!(body["webhookKey"], "***");
    assert_eq!(body["status"], "INSTALLED");
    let shown = setup.get(&path, &acme.bearer).await;
    assert!(!String::from_utf8_lossy(&shown.bytes).contains(KEY));
    let backlog = json!({"waiting": 0, "deadLetters": 0});
    let mut shown = shown.json();
    assert_eq!(
        shown.as_object_mut().unwrap().remove("backlog"),
        Some(backlog)
    );
    assert_eq!(shown, body);
}

#[actix_web::test]
async fn the_key_of_a_plugin_is_stored_encrypted() {
    let (setup, acme) = acme().await;
    install(&setup, &acme, "gateway", whole()).await;
    let customer = engine::ids::CustomerId::parse("acme").unwrap();
    let stored = setup.store.customer_settings(customer).await.unwrap();
    let plugin = stored.destinations[0].target.plugin().unwrap();
    let sealed = plugin.webhook_key.as_bytes();
    assert!(
        !sealed
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes())
    );
}

#[actix_web::test]
async fn a_customer_has_one_plugin_of_each_partner() {
    let (setup, acme) = acme().await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    for partner in &PARTNERS {
        let made = install(&setup, &acme, partner.id, whole()).await;
        assert_eq!(made.status, StatusCode::CREATED);
        let second = install(&setup, &acme, partner.id, whole()).await;
        assert_eq!(second.status, StatusCode::CONFLICT);
        assert_eq!(second.faults()[0].0, "PLUGIN_EXISTS");
        let of_another = install(&setup, &umbrella, partner.id, whole()).await;
        assert_eq!(of_another.status, StatusCode::CREATED);
        let path = format!("{PLUGINS}/{}", made.json()["id"].as_str().unwrap());
        let removed = setup.delete(&path, &acme.bearer).await;
        assert_eq!(removed.status, StatusCode::NO_CONTENT);
        assert_eq!(
            setup.get(&path, &acme.bearer).await.status,
            StatusCode::NOT_FOUND
        );
        let again = install(&setup, &acme, partner.id, whole()).await;
        assert_eq!(again.status, StatusCode::CREATED);
    }
}

#[actix_web::test]
async fn plugins_are_listed_all_together_and_by_partner() {
    let (setup, acme) = acme().await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let webhook = json!({"name": "x", "url": "https://example.com/"});
    setup.post(WEBHOOKS, &acme.bearer, webhook).await;
    let gateway = install(&setup, &acme, "gateway", whole()).await.json();
    let dashboard = install(&setup, &acme, "dashboard", whole()).await.json();
    let of_partner = |partner: &str| format!("{PARTNERS_PATH}/{partner}/plugins");
    for (path, expected) in [
        (PLUGINS.to_owned(), json!([gateway, dashboard])),
        (of_partner("gateway"), json!([gateway])),
        (of_partner("dashboard"), json!([dashboard])),
    ] {
        let list = setup.get(&path, &acme.bearer).await;
        assert_eq!(list.json()["items"], expected, "{path}");
        let others = setup.get(&path, &umbrella.bearer).await;
        assert_eq!(others.json()["items"], json!([]), "{path}");
    }
}

#[actix_web::test]
async fn an_unknown_partner_is_not_found() {
    let (setup, acme) = acme().await;
    let made = install(&setup, &acme, "nobody", whole()).await;
    assert_eq!(made.status, StatusCode::NOT_FOUND);
    let path = format!("{PARTNERS_PATH}/nobody/plugins");
    assert_eq!(
        setup.get(&path, &acme.bearer).await.status,
        StatusCode::NOT_FOUND
    );
}

#[actix_web::test]
async fn a_plugin_of_another_customer_or_a_webhook_is_no_plugin() {
    let (setup, acme) = acme().await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let id = |answer: CallAnswer| answer.json()["id"].as_str().unwrap().to_owned();
    let plugin = id(install(&setup, &acme, "gateway", whole()).await);
    let webhook = json!({"name": "x", "url": "https://example.com/"});
    let webhook = id(setup.post(WEBHOOKS, &acme.bearer, webhook).await);
    for (path, by) in [
        (format!("{PLUGINS}/{plugin}"), &umbrella),
        (format!("{PLUGINS}/{webhook}"), &acme),
        (format!("{WEBHOOKS}/{plugin}"), &acme),
        (format!("{PLUGINS}/none"), &acme),
    ] {
        let letters = format!("{path}/deadletters");
        for answer in [
            setup.get(&path, &by.bearer).await,
            setup.delete(&path, &by.bearer).await,
            setup
                .post(&format!("{path}/restart"), &by.bearer, json!({}))
                .await,
            setup.get(&letters, &by.bearer).await,
            setup.delete(&letters, &by.bearer).await,
            setup
                .post(&format!("{letters}/replay"), &by.bearer, json!({}))
                .await,
        ] {
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
            assert_eq!(answer.faults()[0].0, "NOT_FOUND");
        }
    }
    let amended = format!("{WEBHOOKS}/{plugin}");
    let amended = setup
        .patch(&amended, &acme.bearer, json!({"name": "y"}))
        .await;
    assert_eq!(amended.status, StatusCode::NOT_FOUND);
    let webhooks = setup.get(WEBHOOKS, &acme.bearer).await.json();
    assert_eq!(webhooks["items"].as_array().unwrap().len(), 1);
}

#[actix_web::test]
async fn every_fault_of_a_new_plugin_is_reported_at_once() {
    let (setup, acme) = acme().await;
    let long = "k".repeat(513);
    for (body, expected) in [
        (
            json!({}),
            [("REQUIRED", "serverDomain"), ("REQUIRED", "webhookKey")].as_slice(),
        ),
        (
            json!({"serverDomain": "https://example.com/in", "webhookKey": "..", "tint": 1}),
            &[
                ("INVALID_VALUE", "serverDomain"),
                ("INVALID_VALUE", "webhookKey"),
                ("UNKNOWN_PROPERTY", "tint"),
            ],
        ),
        (
            json!({"serverDomain": 1, "webhookKey": long}),
            &[
                ("INVALID_VALUE", "webhookKey"),
                ("WRONG_TYPE", "serverDomain"),
            ],
        ),
        (
            json!({"serverDomain": "", "webhookKey": ""}),
            &[
                ("INVALID_VALUE", "serverDomain"),
                ("INVALID_VALUE", "webhookKey"),
            ],
        ),
    ] {
        let refused = install(&setup, &acme, "gateway", body).await;
        faulty(&refused, expected);
    }
    let list = setup.get(PLUGINS, &acme.bearer).await.json();
    assert_eq!(list["items"], json!([]), "nothing was kept");
}

#[actix_web::test]
async fn a_private_server_is_refused_unless_the_operator_allows_it() {
    let (setup, acme) = acme().await;
    let allowing = TestService::with(Config {
        allow_private_destinations: true,
        ..Config::of_defaults()
    });
    for (number, server) in [
        "localhost",
        "127.0.0.1:8080",
        "[::1]",
        "10.0.0.7",
        "http://example.com",
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({"serverDomain": server, "webhookKey": KEY});
        let refused = install(&setup, &acme, "gateway", body.clone()).await;
        faulty(&refused, &[("INVALID_VALUE", "serverDomain")]);
        let allowed = allowing.customer(&format!("acme-{number}"), &["all"]).await;
        let taken = install(&allowing, &allowed, "gateway", body).await;
        assert_eq!(taken.status, StatusCode::CREATED, "{server}");
        assert_eq!(taken.json()["serverDomain"], server);
    }
}

#[actix_web::test]
async fn a_plugin_that_has_not_failed_is_not_changed_by_a_restart() {
    let (setup, acme) = acme().await;
    let made = install(&setup, &acme, "gateway", whole()).await.json();
    let path = format!("{PLUGINS}/{}/restart", made["id"].as_str().unwrap());
    let restarted = setup.post(&path, &acme.bearer, json!({})).await;
    assert_eq!(restarted.status, StatusCode::OK);
    assert_eq!(restarted.json()["plugin"], made);
    assert_eq!(restarted.json()["restartStatus"], "UNCHANGED");
}

async fn acme() -> (TestService, TestCredentials) {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    (setup, acme)
}

async fn install(
    setup: &TestService,
    by: &TestCredentials,
    partner: &str,
    body: Value,
) -> CallAnswer {
    let path = format!("{PARTNERS_PATH}/{partner}/plugins");
    setup.post(&path, &by.bearer, body).await
}

fn whole() -> Value {
    json!({"serverDomain": "gateway.example.com:8443", "webhookKey": KEY})
}

/// Checks that a refusal has exactly these faults.
fn faulty(answer: &CallAnswer, expected: &[(&str, &str)]) {
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let mut faults = answer.faults();
    faults.sort();
    let owned = |(code, field): &(&str, &str)| ((*code).to_owned(), (*field).to_owned());
    assert_eq!(faults, expected.iter().map(owned).collect::<Vec<_>>());
}
