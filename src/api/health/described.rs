//! How is the service asked whether it is well? For the document of the API.

use crate::api::openapi::{Operation, Schema, Tag};

/// GET `/livez`.
pub(in crate::api) fn livez() -> Operation {
    Operation::new("getLiveness", Tag::Service, "Is the service alive?")
        .description("Answers as long as the process can answer at all.")
        .answer(200, ok(), "It is.")
        .never_fails()
}

/// GET `/readyz`.
pub(in crate::api) fn readyz() -> Operation {
    let text = "Answers while the service takes calls and its store answers. A load balancer \
                asks this.";
    Operation::new("getReadiness", Tag::Service, "Does the service take calls?")
        .description(text)
        .answer(200, ok(), "It does.")
        .refusal(
            503,
            &["UNAVAILABLE"],
            "The service is starting or stopping, or its store does not answer.",
        )
        .retried(503)
}

fn ok() -> Schema {
    Schema::object().must("status", Schema::only("ok"), "That it is well.")
}
