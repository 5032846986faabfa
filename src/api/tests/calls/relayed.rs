//! Is a call that another node relays served as its caller made it?

use actix_web::http::StatusCode;
use actix_web::http::header::AUTHORIZATION;
use actix_web::test::TestRequest;
use serde_json::json;

use crate::api::tests::test_service::{OPERATOR, TestService};
use crate::config::Config;

const CUSTOMERS: &str = "/operator-api/v1/customers";
const DEVICES: &str = "/management-api/v1/devices";
const STREAM: &str = "/v1/datagrams/01935c5a-0000-7000-8000-000000000001/0";

fn relayed(method: &str, path: &str, how: &str) -> TestRequest {
    TestService::request(method, path).insert_header(("signalbox-relayed", how))
}

#[actix_web::test]
async fn what_is_served_is_that_of_the_address_that_the_caller_called() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["devices:read"]).await;
    for (served, customers, devices) in [
        ("all", 200, 200),
        ("without-operator", 404, 200),
        ("operator", 200, 404),
    ] {
        let how = format!("10.0.0.7:4711 http {served}");
        for (path, bearer, expected) in [
            (CUSTOMERS, OPERATOR, customers),
            (DEVICES, &acme.bearer, devices),
        ] {
            let call = relayed("GET", path, &how).insert_header((AUTHORIZATION, bearer));
            let answer = setup.call_of_node(call).await;
            assert_eq!(answer.status.as_u16(), expected, "{path} at {served}");
        }
    }
}

#[actix_web::test]
async fn a_relayed_call_is_no_call_of_a_node_and_a_node_makes_no_others() {
    let setup = TestService::new();
    let call = relayed("POST", STREAM, "10.0.0.7:4711 http all");
    let answer = setup.call_of_node(call).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    for how in ["", "10.0.0.7:4711 http", "10.0.0.7:4711 http everything"] {
        for (method, path) in [("POST", STREAM), ("GET", "/livez")] {
            let answer = setup.call_of_node(relayed(method, path, how)).await;
            assert_eq!(
                answer.status,
                StatusCode::NOT_FOUND,
                "{method} {path} {how}"
            );
        }
    }
    let own = TestService::request("GET", CUSTOMERS).insert_header((AUTHORIZATION, OPERATOR));
    let answer = setup.call_of_node(own).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let unknown = TestService::request("POST", "/v1/datagrams/node/0");
    let answer = setup.call_of_node(unknown).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[actix_web::test]
async fn the_caller_of_a_relayed_call_is_who_called_the_other_node() {
    let setup = TestService::with(Config {
        address_rate_limit: 1,
        ..Config::of_defaults()
    });
    let guess = |address: &str| {
        let how = format!("{address}:4711 http all");
        relayed("GET", DEVICES, &how).insert_header((AUTHORIZATION, "Bearer wrong"))
    };
    for (address, expected) in [
        ("198.51.100.7", StatusCode::UNAUTHORIZED),
        ("198.51.100.7", StatusCode::UNAUTHORIZED),
        ("198.51.100.7", StatusCode::TOO_MANY_REQUESTS),
        ("198.51.100.8", StatusCode::UNAUTHORIZED),
    ] {
        let answer = setup.call_of_node(guess(address)).await;
        assert_eq!(answer.status, expected, "{address}");
    }
}

#[actix_web::test]
async fn nobody_signs_in_to_the_console_over_http_through_another_node() {
    let setup = TestService::new();
    for (scheme, expected) in [
        ("http", StatusCode::FORBIDDEN),
        ("https", StatusCode::UNAUTHORIZED),
    ] {
        let how = format!("10.0.0.7:4711 {scheme} all");
        let call = relayed("POST", "/console/session", &how)
            .insert_header(("host", "devices.example.com"))
            .insert_header(("origin", "https://devices.example.com"))
            .set_json(json!({ "operatorToken": "a-token-that-nobody-has-been-given" }));
        let answer = setup.call_of_node(call).await;
        assert_eq!(answer.status, expected, "{scheme}");
    }
}
