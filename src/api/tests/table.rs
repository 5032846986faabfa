//! Does every route have the right access, and can every route be reached?

use actix_web::http::Method;

use crate::api::ServedRoutes;
use crate::api::access::Access;
use crate::api::routes::{ROUTES, Route};
use crate::api::words::Word;

const OPERATOR: &str = "/operator-api/v1/";
const MANAGEMENT: &str = "/management-api/v1/";

/// The routes without authorisation.
const OPEN: [&str; 11] = [
    "/",
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/docs/style.css",
    "/docs/script.js",
    "/oauth/token",
    "/management-api/oauth/token",
    "/firmware/{campaign}/{key}",
];

#[test]
fn only_health_metrics_and_tokens_need_no_token() {
    for route in ROUTES {
        assert_eq!(
            route.access == Access::Open,
            OPEN.contains(&route.path),
            "{}",
            route.path
        );
    }
}

#[test]
fn the_operator_api_is_the_operators_and_the_management_api_the_customers() {
    for route in ROUTES.iter().filter(|route| !OPEN.contains(&route.path)) {
        match route.access {
            Access::Operator | Access::Network => {
                assert!(route.path.starts_with(OPERATOR), "{}", route.path);
            }
            Access::Customer(_) => assert!(route.path.starts_with(MANAGEMENT), "{}", route.path),
            Access::Open => unreachable!("open routes were left out"),
        }
    }
}

#[test]
fn every_change_requires_a_write_scope() {
    for route in ROUTES {
        if let Access::Customer(scope) = route.access {
            let right = if route.method == Method::GET {
                ":read"
            } else {
                ":write"
            };
            assert!(
                scope.word().ends_with(right),
                "{} {}",
                route.method,
                route.path
            );
        }
    }
}

#[test]
fn a_scope_has_the_subject_of_its_path() {
    let subject = |path: &str| match path {
        path if path.contains("/integrate/clouds/") => "integrations",
        path if path.contains("/partners/") => "plugins",
        path if path.contains("/sms") => "sms",
        path if path.contains("/actions/") => "actions",
        path if path.contains("/jobs") => "actions",
        path if path.contains("/schedules") => "actions",
        path if path.contains("/devices") || path.contains("/dtls") => "devices",
        path if path.ends_with("/bootstrap") || path.contains("/firmware/") => "devices",
        path if path.contains("/events/") => "devices",
        path if path.contains("/settings/") => "settings",
        path if path.ends_with("/presence") => "settings",
        path if path.ends_with("/activity") => "devices",
        path if path.contains("/lwm2m/objects") => "settings",
        path if path.contains("/administrationLogs") => "logs",
        path => panic!("a route about something new: {path}"),
    };
    for route in ROUTES {
        if let Access::Customer(scope) = route.access {
            let (named, _) = scope.word().split_once(':').unwrap();
            assert_eq!(named, subject(route.path), "{}", route.path);
        }
    }
}

#[test]
fn no_route_is_shadowed_by_an_earlier_one() {
    let paths = ServedRoutes::All.paths();
    for (place, path) in paths.iter().enumerate() {
        let earlier = paths[..place].iter().find(|earlier| covers(earlier, path));
        assert_eq!(earlier, None, "{path} cannot be reached");
    }
}

#[test]
fn no_route_is_listed_twice() {
    let same = |one: &Route, other: &Route| one.path == other.path && one.method == other.method;
    for (place, route) in ROUTES.iter().enumerate() {
        assert!(
            !ROUTES[..place].iter().any(|earlier| same(earlier, route)),
            "{}",
            route.path
        );
    }
}

/// Whether every call to `path` would also match `pattern`.
fn covers(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    let takes = |(pattern, path): (&&str, &&str)| pattern.starts_with('{') || pattern == path;
    pattern.len() == path.len() && pattern.iter().zip(&path).all(takes)
}
