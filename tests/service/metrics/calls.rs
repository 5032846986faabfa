//! Are calls counted by route, method and status, and not by arbitrary input of callers?

use serde_json::json;

use super::{scrape, sum_of};
use crate::test_service::{ID, TestService, start};
use crate::vocabulary::caller::API;
use crate::vocabulary::http::Request;

const CALLS: &str = "signalbox_http_requests_total";

const DEVICE: &str = "/management-api/v1/devices/{device}";

#[test]
fn a_call_is_counted_by_its_route_and_its_status() {
    let setup = TestService::new();
    for (id, status) in [(ID, 200), ("stranger", 404), ("stranger", 404)] {
        let path = format!("{API}/devices/{id}");
        setup.caller.request("GET", &path).expect(status);
    }
    let path = format!("{API}/devices/{ID}");
    setup.caller.request("PUT", &path).expect(405);

    let scraped = scrape(&setup.service);
    let calls = |method, status| {
        let labels = [("method", method), ("route", DEVICE), ("status", status)];
        scraped.sum(CALLS, &labels)
    };
    assert_eq!(calls("GET", "200"), 1.0);
    assert_eq!(calls("GET", "404"), 2.0);
    assert_eq!(calls("PUT", "405"), 1.0);
    let timed = [("method", "GET"), ("route", DEVICE)];
    let timed = scraped.sum("signalbox_http_request_seconds_count", &timed);
    assert_eq!(timed, 3.0);
}

#[test]
fn unknown_methods_and_routes_share_one_label() {
    let (service, _caller) = start(&[]);
    for path in ["/nothing", "/nothing/at/all", "/management-api/v2/devices"] {
        Request::new("GET", path).send(service.http).expect(404);
    }
    Request::new("BREW", "/nothing")
        .send(service.http)
        .expect(404);

    let scraped = scrape(&service);
    let of = |method| sum_of(&scraped, CALLS, &[("method", method), ("route", "other")]);
    assert_eq!(of("GET"), 3.0);
    assert_eq!(of("other"), 1.0);
    let methods = scraped.values_of(CALLS, "method");
    assert!(!methods.contains("BREW"), "{methods:?}");
    let routes = scraped.values_of(CALLS, "route");
    assert!(
        routes.iter().all(|it| !it.contains("nothing")),
        "{routes:?}"
    );
}

#[test]
fn a_call_without_a_token_is_counted_and_nothing_is_left_in_flight() {
    let (service, caller) = start(&[]);
    let path = format!("{API}/devices");
    Request::new("POST", &path)
        .json(&json!({}))
        .send(service.http)
        .expect(401);
    caller.post(&path, &json!({ "deviceId": ID })).expect(201);

    let scraped = scrape(&service);
    for (status, count) in [("401", 1.0), ("201", 1.0)] {
        let labels = [("method", "POST"), ("status", status)];
        let labels = [labels[0], ("route", path.as_str()), labels[1]];
        assert_eq!(scraped.sum(CALLS, &labels), count, "{status}");
    }
    // The scrape itself is in flight.
    assert_eq!(scraped.sum("signalbox_http_requests_in_flight", &[]), 1.0);
}
