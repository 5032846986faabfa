//! Which operations report the health of the service? The OpenAPI descriptions.

use crate::api::openapi::{ApiOperation, Schema, Tag};

/// GET `/livez`.
pub(in crate::api) fn livez() -> ApiOperation {
    ApiOperation::new("getLiveness", Tag::Service, "Check liveness")
        .description("Returns 200 as long as the process serves HTTP.")
        .answer(200, ok(), "The service is alive.")
        .never_fails()
}

/// GET `/readyz`.
pub(in crate::api) fn readyz() -> ApiOperation {
    let text = "Returns 200 while the service accepts calls and its store responds. Use it as \
                the health check of a load balancer.";
    ApiOperation::new("getReadiness", Tag::Service, "Check readiness")
        .description(text)
        .answer(200, ok(), "The service accepts calls.")
        .refusal(
            503,
            &["UNAVAILABLE"],
            "The service is starting or stopping, or its store does not respond.",
        )
        .retried(503)
}

fn ok() -> Schema {
    Schema::object().must("status", Schema::only("ok"), "Always `ok`.")
}
