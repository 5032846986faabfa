//! Does every error response have the common shape, with the headers that its status requires?

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::{Value, json};

use store::CommitError;

use crate::api::console::is_built;
use crate::api::tests::scripted::ScriptedStore;
use crate::api::tests::test_service::{CallAnswer, OPERATOR, TestService};
use crate::config::Config;

const CUSTOMERS: &str = "/operator-api/v1/customers";
const DEVICES: &str = "/management-api/v1/devices";
const LOGS: &str = "/management-api/v1/administrationLogs";

#[actix_web::test]
async fn an_unknown_path_is_not_found() {
    let setup = TestService::new();
    for path in ["/nothing", "/management-api/v1/devices/", "/livez/", "/%ff"] {
        let answer = setup.call(TestService::request("GET", path)).await;
        shaped(&answer, StatusCode::NOT_FOUND, "Not Found");
    }
}

#[actix_web::test]
async fn a_path_in_another_case_is_not_found_and_named() {
    let setup = TestService::new();
    let path = "/management-api/v1/integrate/devices/meter-7/actions/lwm2m";
    let answer = setup.call(TestService::request("POST", path)).await;
    shaped(&answer, StatusCode::NOT_FOUND, "Not Found");
    let known = "/management-api/v1/integrate/devices/{device}/actions/LWM2M";
    let message = answer.json()["errors"][0]["message"].clone();
    assert!(message.as_str().unwrap().ends_with(known), "{message}");
}

#[actix_web::test]
async fn an_unsupported_method_is_answered_with_the_supported_ones() {
    let setup = TestService::new();
    let answer = setup.call(TestService::request("PUT", DEVICES)).await;
    shaped(
        &answer,
        StatusCode::METHOD_NOT_ALLOWED,
        "Method Not Allowed",
    );
    assert_eq!(answer.header("allow"), Some("POST, GET, HEAD"));
    let answer = setup.call(TestService::request("POST", "/livez")).await;
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
}

#[actix_web::test]
async fn a_call_with_two_authorization_headers_is_refused() {
    let setup = TestService::new();
    for (path, second) in [
        (CUSTOMERS, OPERATOR),
        (CUSTOMERS, "Bearer x"),
        ("/livez", OPERATOR),
    ] {
        let call = TestService::request("GET", path)
            .append_header((AUTHORIZATION, OPERATOR))
            .append_header((AUTHORIZATION, second));
        let answer = setup.call(call).await;
        shaped(&answer, StatusCode::BAD_REQUEST, "Bad Request");
        let expected = [("REPEATED".to_owned(), "authorization".to_owned())];
        assert_eq!(answer.faults(), expected);
    }
}

#[actix_web::test]
async fn no_answer_is_stored_or_sniffed_and_only_the_documentation_is_cached() {
    let setup = TestService::new();
    let stored = [
        ("/livez", "no-store"),
        ("/openapi.json", "no-store"),
        (CUSTOMERS, "no-store"),
        ("/nothing", "no-store"),
        ("/", "no-store"),
        ("/docs", "max-age=600"),
        ("/docs/style.css", "max-age=600"),
    ];
    for (path, cached) in stored {
        let answer = setup.call(TestService::request("GET", path)).await;
        assert_eq!(answer.header("cache-control"), Some(cached), "{path}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
    }
}

#[actix_web::test]
async fn the_front_leads_to_the_console_or_else_to_the_documentation() {
    let answer = TestService::new()
        .call(TestService::request("GET", "/"))
        .await;
    assert_eq!(answer.status, StatusCode::FOUND);
    let location = if is_built() { "/console" } else { "/docs" };
    assert_eq!(answer.header("location"), Some(location));
}

#[actix_web::test]
async fn a_call_without_a_token_is_challenged() {
    let setup = TestService::new();
    for path in [DEVICES, LOGS, CUSTOMERS] {
        let answer = setup.call(TestService::request("GET", path)).await;
        shaped(&answer, StatusCode::UNAUTHORIZED, "Unauthorized");
        assert_eq!(
            answer.header("www-authenticate"),
            Some("Bearer realm=\"signalbox\"")
        );
    }
    let answer = setup.get(CUSTOMERS, "Bearer the-operato").await;
    shaped(&answer, StatusCode::UNAUTHORIZED, "Unauthorized");
    assert!(
        answer
            .header("www-authenticate")
            .unwrap()
            .contains("invalid_token")
    );
}

#[actix_web::test]
async fn a_body_longer_than_allowed_is_not_read() {
    let config = Config {
        json_body_bytes_max: 64,
        ..Config::of_defaults()
    };
    let setup = TestService::with(config);
    let answer = setup
        .post(CUSTOMERS, OPERATOR, json!({"name": "x".repeat(64)}))
        .await;
    shaped(&answer, StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large");
    let answer = setup.post(CUSTOMERS, OPERATOR, json!({"name": "x"})).await;
    assert_eq!(answer.status, StatusCode::CREATED);
}

#[actix_web::test]
async fn a_body_without_the_json_media_type_is_not_read() {
    let setup = TestService::new();
    for media_type in ["text/plain", "application/xml", ""] {
        let request =
            TestService::request("POST", CUSTOMERS).insert_header((AUTHORIZATION, OPERATOR));
        let request = request.insert_header((CONTENT_TYPE, media_type));
        let answer = setup.call(request.set_payload("{\"name\":\"x\"}")).await;
        shaped(
            &answer,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Unsupported Media Type",
        );
    }
    let request = TestService::request("POST", CUSTOMERS).insert_header((AUTHORIZATION, OPERATOR));
    let request = request.insert_header((CONTENT_TYPE, "Application/JSON; charset=utf-8"));
    let answer = setup.call(request.set_payload("{\"name\":\"x\"}")).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let request = TestService::request("POST", CUSTOMERS).insert_header((AUTHORIZATION, OPERATOR));
    let request = request.insert_header((CONTENT_ENCODING, "gzip"));
    let answer = setup.call(request.set_json(json!({"name": "x"}))).await;
    shaped(
        &answer,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Unsupported Media Type",
    );
}

#[actix_web::test]
async fn a_body_that_is_not_json_is_a_bad_request() {
    let setup = TestService::new();
    for body in ["", "{", "[]", "null"] {
        let request =
            TestService::request("POST", CUSTOMERS).insert_header((AUTHORIZATION, OPERATOR));
        let request = request.insert_header((CONTENT_TYPE, "application/json"));
        let answer = setup.call(request.set_payload(body)).await;
        shaped(&answer, StatusCode::BAD_REQUEST, "Bad Request");
        assert_eq!(answer.faults()[0].0, "MALFORMED_BODY");
    }
}

#[actix_web::test]
async fn every_fault_of_a_query_is_reported_at_once() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["logs:read"]).await;
    let query = "?pageSize=26&page=0&type=NEWS&category=bad&startDateTime=today&sort=x&iccid=a/b";
    let answer = setup.get(&format!("{LOGS}{query}"), &acme.bearer).await;
    shaped(&answer, StatusCode::BAD_REQUEST, "Bad Request");
    let faults = answer.faults();
    for (code, field) in [
        ("OUT_OF_RANGE", "pageSize"),
        ("OUT_OF_RANGE", "page"),
        ("INVALID_VALUE", "type"),
        ("INVALID_VALUE", "category"),
        ("INVALID_VALUE", "startDateTime"),
        ("INVALID_VALUE", "iccid"),
        ("UNKNOWN_PARAMETER", "sort"),
    ] {
        assert!(
            faults.contains(&(code.to_owned(), field.to_owned())),
            "{code} {field}: {faults:?}"
        );
    }
    assert_eq!(faults.len(), 7);
}

#[actix_web::test]
async fn a_window_that_ends_before_it_starts_is_a_bad_request() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["logs:read"]).await;
    let start = "startDateTime=2026-11-21T00:00:00.001";
    let reversed = format!("{LOGS}?{start}&endDateTime=2026-11-21T00:00:00.000");
    let answer = setup.get(&reversed, &acme.bearer).await;
    assert_eq!(
        answer.faults(),
        [("INVALID_VALUE".to_owned(), "startDateTime".to_owned())]
    );
    let whole = format!("{LOGS}?{start}&endDateTime=2026-11-21T00:00:00.001&pageSize=25&page=9");
    let answer = setup.get(&whole, &acme.bearer).await;
    assert_eq!(
        answer.json(),
        json!({"items": [], "page": 9, "pageAmount": 1})
    );
}

#[actix_web::test]
async fn a_customer_over_its_rate_limit_gets_retry_after() {
    let config = Config {
        rate_limit: 1,
        ..Config::of_defaults()
    };
    let setup = TestService::with(config);
    let acme = setup.customer("acme", &["devices:read"]).await;
    let umbrella = setup.customer("umbrella", &["devices:read"]).await;
    let quota = |answer: &CallAnswer| {
        ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]
            .map(|name| answer.header(name).map(str::to_owned))
    };
    let first = setup.get(DEVICES, &acme.bearer).await;
    assert_eq!(quota(&first), ["2", "1", "1"].map(|it| Some(it.to_owned())));
    let refused = loop {
        let answer = setup.get(DEVICES, &acme.bearer).await;
        if answer.status != StatusCode::OK {
            break answer;
        }
    };
    shaped(&refused, StatusCode::TOO_MANY_REQUESTS, "Too Many Requests");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(
        quota(&refused),
        ["2", "0", "1"].map(|it| Some(it.to_owned()))
    );
    let open = setup.call(TestService::request("GET", "/livez")).await;
    assert_eq!(quota(&open), [const { None }; 3]);
    assert_eq!(
        setup.get(DEVICES, &umbrella.bearer).await.status,
        StatusCode::OK
    );
}

#[actix_web::test]
async fn wrong_credentials_slow_their_address_and_no_valid_ones() {
    let config = Config {
        address_rate_limit: 1,
        ..Config::of_defaults()
    };
    let setup = TestService::with(config);
    let acme = setup.customer("acme", &["devices:read"]).await;
    let from = |address: [u8; 4], path: &str, bearer: &str| {
        let request = TestService::request("GET", path);
        let request = request.insert_header((AUTHORIZATION, bearer.to_owned()));
        request.peer_addr((address, 4_711).into())
    };
    let (guesser, other) = ([198, 51, 100, 7], [198, 51, 100, 8]);
    for path in [DEVICES, CUSTOMERS] {
        let answer = setup.call(from(guesser, path, "Bearer wrong")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    for path in [DEVICES, CUSTOMERS] {
        let refused = setup.call(from(guesser, path, "Bearer wrong")).await;
        shaped(&refused, StatusCode::TOO_MANY_REQUESTS, "Too Many Requests");
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    let token = TestService::request("POST", "/oauth/token").peer_addr((guesser, 1).into());
    let refused = setup.call(token.set_json(json!({}))).await;
    shaped(&refused, StatusCode::TOO_MANY_REQUESTS, "Too Many Requests");
    let valid = setup.call(from(guesser, DEVICES, &acme.bearer)).await;
    assert_eq!(valid.status, StatusCode::OK);
    let elsewhere = setup.call(from(other, DEVICES, "Bearer wrong")).await;
    assert_eq!(elsewhere.status, StatusCode::UNAUTHORIZED);
}

#[actix_web::test]
async fn a_store_failure_is_answered_without_detail_and_with_retry_after() {
    let mut made = None;
    let setup = TestService::over(|store| {
        let store = Arc::new(ScriptedStore::new(store));
        made = Some(Arc::clone(&store));
        store
    });
    let store = made.unwrap();
    let status = StatusCode::SERVICE_UNAVAILABLE;
    for error in [
        CommitError::Unavailable,
        CommitError::Full,
        CommitError::Fenced,
    ] {
        store.expect(&[Some(error)]);
        let answer = setup.post(CUSTOMERS, OPERATOR, json!({"name": "x"})).await;
        shaped(&answer, status, status.canonical_reason().unwrap());
        assert_eq!(answer.header("retry-after"), Some("5"), "{error:?}");
        assert!(!answer.json().to_string().contains("fence"), "{error:?}");
        assert_eq!(store.left(), 0);
    }
}

#[actix_web::test]
async fn the_service_is_ready_between_start_and_stop() {
    let setup = TestService::new();
    let readyz = async || setup.call(TestService::request("GET", "/readyz")).await;
    let starting = readyz().await;
    shaped(
        &starting,
        StatusCode::SERVICE_UNAVAILABLE,
        "Service Unavailable",
    );
    assert!(starting.header("retry-after").is_some());
    setup.state.set_ready();
    assert_eq!(readyz().await.json(), json!({"status": "ok"}));
    setup.state.set_leaving();
    assert_eq!(readyz().await.status, StatusCode::SERVICE_UNAVAILABLE);
    let answered = setup
        .call(TestService::request("GET", "/openapi.json"))
        .await;
    assert_eq!(answered.status, StatusCode::OK);
    setup.state.set_draining();
    assert_eq!(readyz().await.status, StatusCode::SERVICE_UNAVAILABLE);
    let alive = setup.call(TestService::request("GET", "/livez")).await;
    assert_eq!(alive.status, StatusCode::OK);
}

/// Checks that an answer has the shape of every error response.
fn shaped(answer: &CallAnswer, status: StatusCode, text: &str) {
    assert_eq!(answer.status, status);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let body = answer.json();
    let names: Vec<_> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(names, ["errors", "statusCode", "statusText", "traceId"]);
    assert_eq!(
        (&body["statusCode"], &body["statusText"]),
        (&json!(status.as_u16()), &json!(text))
    );
    assert!(engine::ids::TraceId::parse(body["traceId"].as_str().unwrap()).is_ok());
    for fault in body["errors"].as_array().unwrap() {
        let has = |name: &str| fault[name].as_str().is_some_and(|text| !text.is_empty());
        assert!(has("code") && has("message"), "{fault}");
        assert!(fault["field"] == Value::Null || has("field"), "{fault}");
    }
    assert_ne!(body["errors"], json!([]));
}
