//! Who gets a token, what does it give access to, and when does it expire?

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};
use actix_web::test::TestRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use engine::change::{Batch, Change};
use engine::customer::{AccessToken, Scopes, SecretDigest};
use engine::ids::ClientId;
use engine::moment::Timestamp;

use crate::api::tests::test_service::{OPERATOR, TestCredentials, TestService};
use crate::config::Config;

const DEVICES: &str = "/management-api/v1/devices";
const PATHS: [&str; 2] = ["/oauth/token", "/management-api/oauth/token"];
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const GRANT: &str = "{\"grant_type\":\"client_credentials\"}";

#[actix_web::test]
async fn credentials_in_json_must_be_strings() {
    let setup = TestService::new();
    let body = json!({"grant_type": 1, "client_id": [], "client_secret": {}, "other": 1});
    let answer = setup.call(ask(PATHS[0], JSON, &body.to_string())).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let wrong = |field: &str| ("WRONG_TYPE".to_owned(), field.to_owned());
    let expected = ["client_id", "client_secret", "grant_type"].map(wrong);
    assert_eq!(answer.faults(), expected);
}

#[actix_web::test]
async fn a_token_request_has_at_most_8_kib() {
    let setup = TestService::new();
    let padded = |bytes: usize| format!("{GRANT:bytes$}");
    for path in PATHS {
        let fits = setup.call(ask(path, JSON, &padded(8_192))).await;
        assert_eq!(fits.status, StatusCode::UNAUTHORIZED, "{path}");
        let answer = setup.call(ask(path, JSON, &padded(8_193))).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        assert_eq!(answer.faults()[0].0, "BODY_TOO_LARGE");
    }
}

#[actix_web::test]
async fn repeated_credentials_are_refused() {
    let setup = TestService::new();
    let json = r#"{"grant_type": "a", "client_id": "b", "client_id": "c", "x": "d", "x": "e"}"#;
    let form = "grant_type=a&client_id=b&client_id=c&x=d&x=e";
    for (media_type, body) in [(JSON, json), (FORM, form)] {
        let answer = setup.call(ask(PATHS[0], media_type, body)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let expected = ("REPEATED".to_owned(), "client_id".to_owned());
        assert_eq!(answer.faults(), [expected], "{media_type}");
    }
}

#[actix_web::test]
async fn a_client_can_send_its_secret_in_every_supported_way() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let TestCredentials { id, secret, .. } = &acme;
    let form = format!("client_id={id}&client_secret={secret}&grant_type=client_credentials");
    let json =
        json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret});
    for path in PATHS {
        let asks = [
            ask(path, JSON, GRANT).insert_header(basic(id, secret)),
            ask(path, FORM, "grant_type=client_credentials").insert_header(basic(id, secret)),
            ask(path, FORM, &form),
            ask(path, JSON, &json.to_string()),
        ];
        for request in asks {
            let answer = setup.call(request).await;
            assert_eq!(answer.status, StatusCode::OK);
            let token = answer.json()["access_token"].as_str().unwrap().to_owned();
            assert_eq!(
                answer.json(),
                json!({
                    "status_code": 200,
                    "access_token": token,
                    "token_type": "bearer",
                    "expires_in": 3600,
                    "userId": id,
                    "scope": "all",
                })
            );
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let opened = setup.get(DEVICES, &format!("bearer {token}")).await;
            assert_eq!(opened.status, StatusCode::OK);
        }
    }
}

#[actix_web::test]
async fn the_credentials_of_a_client_are_sent_in_one_way() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let other = setup.customer("other", &["all"]).await;
    let grant = "grant_type=client_credentials";
    let same = format!("{grant}&client_id={}", acme.id);
    for (form, status) in [
        (same.clone(), StatusCode::OK),
        (format!("{grant}&client_id=&client_secret="), StatusCode::OK),
        (
            format!("{same}&client_secret={}", acme.secret),
            StatusCode::BAD_REQUEST,
        ),
        (
            format!("{grant}&client_id={}", other.id),
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let request = ask(PATHS[0], FORM, &form).insert_header(basic(&acme.id, &acme.secret));
        assert_eq!(setup.call(request).await.status, status, "{form}");
    }
}

#[actix_web::test]
async fn without_the_secret_of_a_client_no_token_is_issued() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let asks = [
        ask(PATHS[0], JSON, GRANT),
        ask(PATHS[0], JSON, GRANT).insert_header(basic(&acme.id, "wrong")),
        ask(PATHS[0], JSON, GRANT).insert_header(basic("nobody", &acme.secret)),
        ask(PATHS[0], JSON, GRANT).insert_header(basic("no/body", &acme.secret)),
        ask(PATHS[0], JSON, GRANT).insert_header((AUTHORIZATION, "Basic ????")),
        ask(PATHS[0], JSON, GRANT).insert_header((AUTHORIZATION, acme.bearer.as_str())),
    ];
    for request in asks {
        let answer = setup.call(request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(
            answer.json(),
            json!({
                "statusCode": 401,
                "errorCode": "BadCredentials",
                "message": "The client id or the client secret is wrong.",
            })
        );
    }
}

#[actix_web::test]
async fn only_the_client_credentials_grant_is_supported() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    for (media_type, body, code) in [
        (JSON, "{}", "REQUIRED"),
        (
            JSON,
            "{\"grant_type\":\"password\"}",
            "UNSUPPORTED_GRANT_TYPE",
        ),
        (FORM, "", "REQUIRED"),
        (JSON, "[", "MALFORMED_BODY"),
    ] {
        let request = ask(PATHS[0], media_type, body).insert_header(basic(&acme.id, &acme.secret));
        let answer = setup.call(request).await;
        assert_eq!(
            (answer.status, answer.faults()[0].0.as_str()),
            (StatusCode::BAD_REQUEST, code)
        );
    }
    let answer = setup.call(ask(PATHS[0], "text/plain", GRANT)).await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[actix_web::test]
async fn a_token_has_the_scopes_of_its_client() {
    let setup = TestService::new();
    let reader = setup.customer("acme", &["devices:read"]).await;
    assert_eq!(
        setup.get(DEVICES, &reader.bearer).await.status,
        StatusCode::OK
    );
    let refused = setup
        .post(DEVICES, &reader.bearer, json!({"deviceId": "meter"}))
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(refused.json()["errors"][0]["code"], "FORBIDDEN");
    assert!(
        refused
            .header("www-authenticate")
            .unwrap()
            .contains("insufficient_scope")
    );
    let refused = setup
        .get("/operator-api/v1/customers", &reader.bearer)
        .await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        setup.get(DEVICES, OPERATOR).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[actix_web::test]
async fn the_secret_of_a_client_is_changed_without_a_gap() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let status_of = async |secret: &str| {
        let request = ask(PATHS[0], JSON, GRANT).insert_header(basic(&acme.id, secret));
        setup.call(request).await.status
    };
    let clients = "/operator-api/v1/customers/acme/clients";
    let secrets = format!("{clients}/{}/secrets", acme.id);
    let added = setup
        .post(&secrets, OPERATOR, json!({"expiresIn": 3600}))
        .await;
    assert_eq!(added.status, StatusCode::CREATED);
    let second = added.json();
    let second_secret = second["clientSecret"].as_str().unwrap();
    assert_eq!(status_of(&acme.secret).await, StatusCode::OK);
    assert_eq!(status_of(second_secret).await, StatusCode::OK);
    let refused = setup.post(&secrets, OPERATOR, json!({})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.faults()[0].0, "TOO_MANY_SECRETS");

    let listed = setup.get(clients, OPERATOR).await.json();
    let listed = listed["items"][0]["secrets"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1]["secretId"], second["secretId"]);
    assert_eq!(listed[1]["expires"], second["expires"]);
    let path =
        |secret: &serde_json::Value| format!("{secrets}/{}", secret["secretId"].as_str().unwrap());
    let deleted = setup.delete(&path(&listed[0]), OPERATOR).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(status_of(&acme.secret).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status_of(second_secret).await, StatusCode::OK);
    // The token that was created with it is valid until it expires.
    let still = setup.get(DEVICES, &acme.bearer).await;
    assert_eq!(still.status, StatusCode::OK);
    let last = setup.delete(&path(&second), OPERATOR).await;
    assert_eq!(last.status, StatusCode::CONFLICT);
    assert_eq!(last.faults()[0].0, "LAST_SECRET");
    let again = setup.delete(&path(&listed[0]), OPERATOR).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}

#[actix_web::test]
async fn the_tokens_of_a_revoked_client_are_invalid_immediately() {
    let setup = TestService::new();
    let first = setup.customer("acme", &["all"]).await;
    let second = setup.client("acme", &["all"]).await;
    let path = format!("/operator-api/v1/customers/acme/clients/{}", first.id);
    assert_eq!(
        setup.delete(&path, OPERATOR).await.status,
        StatusCode::NO_CONTENT
    );
    let refused = setup.get(DEVICES, &first.bearer).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        setup.get(DEVICES, &second.bearer).await.status,
        StatusCode::OK
    );
    assert_eq!(
        setup.delete(&path, OPERATOR).await.status,
        StatusCode::NOT_FOUND
    );
}

#[actix_web::test]
async fn a_token_has_the_wanted_scopes_of_its_client_and_no_others() {
    let setup = TestService::new();
    let some = ["devices:read", "logs:read"];
    let acme = setup.customer("acme", &some).await;
    let wanting = async |scope: &str| {
        let body = format!("grant_type=client_credentials&scope={scope}");
        let request = ask(PATHS[0], FORM, &body).insert_header(basic(&acme.id, &acme.secret));
        setup.call(request).await
    };
    let granted = [
        ("", "logs:read devices:read"),
        ("devices:read+logs:read", "logs:read devices:read"),
        ("devices:read", "devices:read"),
    ];
    for (scope, expected) in granted {
        assert_eq!(wanting(scope).await.json()["scope"], expected, "{scope:?}");
    }
    let token = wanting("devices:read").await.json();
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
    assert_eq!(setup.get(DEVICES, &bearer).await.status, StatusCode::OK);
    let logs = setup.get("/management-api/v1/administrationLogs", &bearer);
    assert_eq!(logs.await.status, StatusCode::FORBIDDEN);
    for scope in ["all", "devices:write", "devices:read+devices:write", "x"] {
        let answer = wanting(scope).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{scope}");
        let expected = ("invalid_scope".to_owned(), "scope".to_owned());
        assert_eq!(answer.faults(), [expected], "{scope}");
    }
}

#[actix_web::test]
async fn the_operator_sets_the_lifetime_of_tokens() {
    let setup = TestService::with(Config {
        token_lifetime_s: 120,
        ..Config::of_defaults()
    });
    let acme = setup.customer("acme", &["all"]).await;
    let request = ask(PATHS[0], JSON, GRANT).insert_header(basic(&acme.id, &acme.secret));
    let answer = setup.call(request).await.json();
    assert_eq!(answer["expires_in"], 120);
    let digest = SecretDigest::of(answer["access_token"].as_str().unwrap());
    let (token, _) = setup.store.token(digest).await.unwrap().unwrap();
    let lifetime_ms = token.expires_at.since_ms(setup.state.0.clock.now());
    assert!((60_000..=120_000).contains(&lifetime_ms), "{lifetime_ms}");
}

#[actix_web::test]
async fn a_token_expires_after_an_hour() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let put = Change::PutToken(AccessToken {
        digest: SecretDigest::of("stale"),
        client: ClientId::parse(&acme.id).unwrap(),
        scopes: Scopes::ALL,
        expires_at: Timestamp::from_ms(1),
    });
    setup
        .store
        .commit(Batch {
            changes: vec![put],
            ..Batch::default()
        })
        .await
        .unwrap();
    assert_eq!(
        setup.get(DEVICES, "Bearer stale").await.status,
        StatusCode::UNAUTHORIZED
    );
}

fn ask(path: &str, media_type: &str, body: &str) -> TestRequest {
    let request = TestService::request("POST", path).insert_header((CONTENT_TYPE, media_type));
    request.set_payload(body.to_owned())
}

fn basic(id: &str, secret: &str) -> (&'static str, String) {
    (
        "authorization",
        format!("basic {}", STANDARD.encode(format!("{id}:{secret}"))),
    )
}
