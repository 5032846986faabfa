//! Is every route refused in the same way where a call cannot be one of its?

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};

use crate::api::access::Access;
use crate::api::tests::world::{Credentials, OPERATOR, World};
use crate::api::{ROUTES, Route, paths};
use crate::config::Config;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Takes lines in place of a body in JSON, and has bounds of its own.
const IMPORT: &str = "/management-api/v1/devices/import";

#[actix_web::test]
async fn a_method_that_a_path_has_not_is_told_those_it_has() {
    let world = World::new();
    for path in paths() {
        let known: Vec<_> = ROUTES
            .iter()
            .filter(|route| route.path == path)
            .map(|route| route.method.as_str())
            .collect();
        for method in METHODS.iter().filter(|method| !known.contains(method)) {
            let answer = world.call(World::request(method, &named(path))).await;
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
async fn a_body_of_another_kind_is_read_by_no_route() {
    let world = World::new();
    let acme = world.customer("acme", &["all"]).await;
    for route in reading() {
        let request = request(route, &acme).insert_header((CONTENT_TYPE, "text/plain"));
        let answer = world.call(request.set_payload("{}")).await;
        let expected = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        assert_eq!(answer.status, expected, "{} {}", route.method, route.path);
        assert_eq!(answer.faults()[0].0, "UNSUPPORTED_MEDIA_TYPE");
    }
}

#[actix_web::test]
async fn a_body_that_is_too_long_is_read_by_no_route() {
    let config = Config {
        json_body_bytes_max: 256,
        ..Config::of_defaults()
    };
    let world = World::with(config);
    let acme = world.customer("acme", &["all"]).await;
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(256));
    for route in reading().filter(|route| route.path != IMPORT) {
        let request = request(route, &acme).insert_header((CONTENT_TYPE, "application/json"));
        let answer = world.call(request.set_payload(long.clone())).await;
        let expected = StatusCode::PAYLOAD_TOO_LARGE;
        assert_eq!(answer.status, expected, "{} {}", route.method, route.path);
        assert_eq!(answer.faults()[0].0, "BODY_TOO_LARGE");
    }
}

/// The routes that read a body.
fn reading() -> impl Iterator<Item = &'static Route> {
    ROUTES
        .iter()
        .filter(|route| ["POST", "PATCH", "PUT"].contains(&route.method.as_str()))
}

/// A call to a route by somebody who may make it.
fn request(route: &Route, acme: &Credentials) -> actix_web::test::TestRequest {
    let request = World::request(route.method.as_str(), &named(route.path));
    match route.access {
        Access::Open => request,
        Access::Operator => request.insert_header((AUTHORIZATION, OPERATOR)),
        Access::Customer(_) => request.insert_header((AUTHORIZATION, acme.bearer.clone())),
    }
}

/// The path with a name in each of its places.
fn named(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment {
        "{customer}" => "acme",
        "{platform}" => "signalbox",
        "{protocol}" => "LWM2M",
        "{setting}" => "LWM2M_PASSIVE_REPORTING",
        "{request}" | "{entry}" => "01935c5a-0000-7000-8000-000000000001",
        segment if segment.starts_with('{') => "some",
        segment => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}
