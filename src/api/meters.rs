//! How many calls arrive, how are they answered, and how long do they take? The metrics of the API.
//!
//! A call is labelled with the path pattern of its route, never with its path, so that callers
//! cannot create label values.

use std::time::Instant;

use actix_web::http::{Method, StatusCode};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const CALLS: &str = "signalbox_http_requests_total";
const SECONDS: &str = "signalbox_http_request_seconds";
const IN_FLIGHT: &str = "signalbox_http_requests_in_flight";

/// The label of a method that no route has.
const OTHER: &str = "other";

/// Describes the metrics, and sets the gauge of calls in flight to zero.
pub(super) fn describe() {
    describe_counter!(CALLS, "API calls, by method, route and status.");
    describe_histogram!(
        SECONDS,
        "Time from an API call to the start of its response, in seconds."
    );
    describe_gauge!(IN_FLIGHT, "API calls in progress.");
    gauge!(IN_FLIGHT).increment(0.0);
}

/// A call in progress. It ends when this value is dropped, also if the caller disconnects.
pub(super) struct UnderWay {
    method: &'static str,
    route: &'static str,
    begun_at: Instant,
}

impl UnderWay {
    /// A call to a route begins.
    pub(super) fn begin(method: &Method, route: &'static str) -> Self {
        gauge!(IN_FLIGHT).increment(1.0);
        Self {
            method: word(method),
            route,
            begun_at: Instant::now(),
        }
    }

    /// The call is answered.
    pub(super) fn answered(self, status: StatusCode) {
        let Self {
            method,
            route,
            begun_at,
        } = &self;
        let status = status.as_str().to_owned();
        counter!(CALLS, "method" => *method, "route" => *route, "status" => status).increment(1);
        histogram!(SECONDS, "method" => *method, "route" => *route).record(begun_at.elapsed());
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        gauge!(IN_FLIGHT).decrement(1.0);
    }
}

fn word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => OTHER,
    }
}
