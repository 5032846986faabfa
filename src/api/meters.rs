//! How many calls come, what are they answered, and how long do they take? For whoever measures the
//! service.
//!
//! A call is known by the pattern of its route and never by its path, so that callers cannot make
//! figures up.

use std::time::Instant;

use actix_web::http::{Method, StatusCode};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const CALLS: &str = "signalbox_http_requests_total";
const SECONDS: &str = "signalbox_http_request_seconds";
const IN_FLIGHT: &str = "signalbox_http_requests_in_flight";

/// What a method without a meaning here is called.
const OTHER: &str = "other";

/// Says what the figures are; there is nothing in flight yet.
pub(super) fn describe() {
    describe_counter!(CALLS, "API calls, by method, route and status.");
    describe_histogram!(
        SECONDS,
        "Time from an API call to the start of its response, in seconds."
    );
    describe_gauge!(IN_FLIGHT, "API calls in progress.");
    gauge!(IN_FLIGHT).increment(0.0);
}

/// A call under way; it is over with this value, also if its caller went away.
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

    /// It is answered.
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
