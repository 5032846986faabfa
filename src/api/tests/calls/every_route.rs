//! Does every route refuse an invalid call in the same way?

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};

use engine::customer::Scope;
use serde_json::json;

use crate::api::ServedRoutes;
use crate::api::access::Access;
use crate::api::routes::{ROUTES, Route};
use crate::api::tests::test_service::{OPERATOR, TestCredentials, TestService};
use crate::api::words::Word;
use crate::config::Config;

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Takes lines instead of JSON, with limits of its own.
const IMPORT: &str = "/management-api/v1/devices/import";

/// Takes bytes, with a limit of its own.
const IMAGES: &str = "/management-api/v1/firmware/images";

/// Takes XML.
const OBJECTS: &str = "/management-api/v1/lwm2m/objects";

#[actix_web::test]
async fn an_unsupported_method_is_answered_with_the_supported_ones() {
    let setup = TestService::new();
    for path in ServedRoutes::All.paths() {
        let known: Vec<_> = ROUTES
            .iter()
            .filter(|route| route.path == path)
            .flat_map(|route| match route.method.as_str() {
                "GET" => vec!["GET", "HEAD"],
                other => vec![other],
            })
            .collect();
        for method in METHODS.iter().filter(|method| !known.contains(method)) {
            let answer = setup.call(TestService::request(method, &named(path))).await;
            assert_eq!(
                answer.status,
                StatusCode::METHOD_NOT_ALLOWED,
                "{method} {path}"
            );
            let allowed = known.join(", ");
            assert_eq!(answer.header("allow"), Some(allowed.as_str()), "{path}");
            assert_eq!(answer.faults()[0].0, "METHOD_NOT_ALLOWED");
        }
    }
}

#[actix_web::test]
async fn every_get_route_answers_head() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    // No device runs in this fixture, so none can be inspected.
    let is_there = |route: &&Route| !route.path.ends_with("/{device}");
    let read = ROUTES.iter().filter(|route| route.method == "GET");
    for route in read.filter(is_there) {
        let whole = setup.call(request(route, &acme)).await;
        let head = request(route, &acme).method(actix_web::http::Method::HEAD);
        let head = setup.call(head).await;
        assert_eq!(head.status, whole.status, "{}", route.path);
        assert_ne!(head.status, StatusCode::METHOD_NOT_ALLOWED);
        let media = whole.header("content-type");
        assert_eq!(head.header("content-type"), media, "{}", route.path);
    }
}

#[actix_web::test]
async fn no_route_accepts_another_media_type() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    for route in reading() {
        let request = request(route, &acme).insert_header((CONTENT_TYPE, "text/plain"));
        let answer = setup.call(request.set_payload("{}")).await;
        let expected = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        assert_eq!(answer.status, expected, "{} {}", route.method, route.path);
        assert_eq!(answer.faults()[0].0, "UNSUPPORTED_MEDIA_TYPE");
    }
}

#[actix_web::test]
async fn no_route_accepts_a_body_that_is_too_long() {
    let config = Config {
        json_body_bytes_max: 256,
        ..Config::of_defaults()
    };
    let setup = TestService::with(config);
    let acme = setup.customer("acme", &["all"]).await;
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(256));
    for route in reading().filter(|route| ![IMPORT, IMAGES].contains(&route.path)) {
        let request = request(route, &acme).insert_header((CONTENT_TYPE, "application/json"));
        let answer = setup.call(request.set_payload(long.clone())).await;
        let expected = StatusCode::PAYLOAD_TOO_LARGE;
        assert_eq!(answer.status, expected, "{} {}", route.method, route.path);
        assert_eq!(answer.faults()[0].0, "BODY_TOO_LARGE");
    }
}

#[actix_web::test]
async fn only_open_routes_are_served_without_a_token() {
    let setup = TestService::new();
    for route in ROUTES.iter().filter(|route| route.access != Access::Open) {
        let request = TestService::request(route.method.as_str(), &named(route.path));
        let answer = setup.call(request).await;
        let expected = StatusCode::UNAUTHORIZED;
        assert_eq!(answer.status, expected, "{} {}", route.method, route.path);
        assert_eq!(answer.faults()[0].0, "UNAUTHORIZED");
    }
}

#[actix_web::test]
async fn a_route_requires_its_own_scope() {
    let setup = TestService::new();
    setup.customer("acme", &["all"]).await;
    for scope in Scope::ALL {
        let others = Scope::ALL.into_iter().filter(|other| *other != scope);
        let others: Vec<_> = others.map(Word::word).collect();
        let has_it = setup.client("acme", &[scope.word()]).await;
        let lacks_it = setup.client("acme", &others).await;
        let opened = |route: &&Route| route.access == Access::Customer(scope);
        for route in ROUTES.iter().filter(opened) {
            let called = format!("{} {}", route.method, route.path);
            let answer = setup.call(request(route, &lacks_it)).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{called}");
            assert_eq!(answer.faults()[0].0, "FORBIDDEN");
            // No device runs in this fixture: the call uses an invalid device id.
            let path = named(&route.path.replace("{device}", "%FF"));
            let call = TestService::request(route.method.as_str(), &path);
            let call = call.insert_header((AUTHORIZATION, has_it.bearer.clone()));
            let answer = setup.call(call).await;
            let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
            assert!(!refused.contains(&answer.status), "{called}");
        }
    }
}

#[actix_web::test]
async fn a_client_of_the_network_is_refused_beyond_the_network_and_customers_within_it() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let gateway = setup.network_client().await;
    for route in ROUTES.iter().filter(|it| it.access != Access::Open) {
        let called = format!("{} {}", route.method, route.path);
        let status = async |bearer: &str| {
            // No device runs in this fixture: the call uses an invalid device id.
            let path = named(&route.path.replace("{device}", "%FF"));
            let call = TestService::request(route.method.as_str(), &path);
            let answer = setup.call(call.insert_header((AUTHORIZATION, bearer)));
            answer.await.status
        };
        let of_network = status(&gateway).await;
        let of_customer = status(&acme.bearer).await;
        assert_ne!(of_network, StatusCode::UNAUTHORIZED, "{called}");
        match route.access {
            Access::Open => unreachable!("open routes were left out"),
            Access::Operator | Access::Customer(_) => {
                assert_eq!(of_network, StatusCode::FORBIDDEN, "{called}");
            }
            Access::Network => {
                assert_ne!(of_network, StatusCode::FORBIDDEN, "{called}");
                assert_eq!(of_customer, StatusCode::FORBIDDEN, "{called}");
            }
        }
    }
}

#[actix_web::test]
async fn every_json_route_refuses_an_unknown_property() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let unknown = ("UNKNOWN_PROPERTY".to_owned(), "colour".to_owned());
    // The body of a token request may have unknown parameters (RFC 6749 section 3.2).
    let is_judged = |route: &&Route| {
        ![IMPORT, IMAGES, OBJECTS].contains(&route.path) && !route.path.ends_with("/oauth/token")
    };
    for route in reading().filter(is_judged) {
        let call = request(route, &acme).set_json(json!({ "colour": "red" }));
        let answer = setup.call(call).await;
        let called = format!("{} {}", route.method, route.path);
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{called}");
        assert!(answer.faults().contains(&unknown), "{called}");
    }
}

/// The routes that read a body.
fn reading() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| (route.describe)().reads())
}

/// A call to a route with valid credentials.
fn request(route: &Route, acme: &TestCredentials) -> actix_web::test::TestRequest {
    let request = TestService::request(route.method.as_str(), &named(route.path));
    match route.access {
        Access::Open => request,
        Access::Operator | Access::Network => request.insert_header((AUTHORIZATION, OPERATOR)),
        Access::Customer(_) => request.insert_header((AUTHORIZATION, acme.bearer.clone())),
    }
}

/// The path with a value for each path parameter.
fn named(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment {
        "{customer}" => "acme",
        "{platform}" => "signalbox",
        "{object}" => "33000",
        "{version}" => "1.0",
        "{partner}" => "gateway",
        "{sms}" => "890590445567283",
        "{setting}" => "LWM2M_PASSIVE_REPORTING",
        "{request}" | "{entry}" | "{event}" | "{schedule}" | "{webhook}" | "{broker}"
        | "{plugin}" => "01935c5a-0000-7000-8000-000000000001",
        segment if segment.starts_with('{') => "some",
        segment => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}
