//! `/metrics`: the metrics of the service, for Prometheus.
//!
//! They contain no customer, device or secret and need no token, because scrapers rarely have one.
//! They still show how busy the service is, so the path should not be reachable from the internet.

pub(super) mod described;

use actix_web::HttpResponse;

use crate::telemetry;

/// The text format that every Prometheus reads.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// GET: all metrics.
pub(super) async fn show() -> HttpResponse {
    HttpResponse::Ok()
        .content_type(TEXT)
        .body(telemetry::metrics())
}
