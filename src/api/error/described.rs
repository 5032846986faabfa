//! Which properties does an error response have? The OpenAPI schemas.

use crate::api::openapi::{Schema, names};

/// The body of every error response.
pub(in crate::api) fn error() -> Schema {
    failed().named("Error")
}

/// The body of an error response with one of these codes.
pub(in crate::api) fn error_of(codes: &[&'static str]) -> Schema {
    let code = Schema::one_of_words(codes.to_vec());
    let faults = Schema::of_items(Schema::of_property("code", code));
    Schema::all_of([error(), Schema::of_property("errors", faults)])
}

/// The body of an error response to a call that took effect in part, with the result of that part.
pub(in crate::api) fn error_with(granted: Schema) -> Schema {
    failed().including(granted)
}

/// One fault of a call.
pub(in crate::api) fn fault() -> Schema {
    // The code of RFC 6749 section 5.2 has its own spelling.
    let code = Schema::text().pattern("^([A-Z][A-Z0-9_]*|invalid_scope)$");
    Schema::object()
        .must("code", code.example("OUT_OF_RANGE"), "The error code.")
        .must(
            "message",
            Schema::text().example("must be from 1 to 5"),
            "The description of the fault, for people. The wording can change.",
        )
        .may(
            "field",
            Schema::text().example("sendAttempts"),
            "The property, parameter or header with the fault.",
        )
        .named("Fault")
}

/// The body of the only error response of another shape.
pub(in crate::api) fn bad_credentials() -> Schema {
    Schema::object()
        .must("statusCode", Schema::whole(401..=401), "The HTTP status.")
        .must(
            "errorCode",
            Schema::only("BadCredentials"),
            "The error code.",
        )
        .must("message", Schema::text(), "The description, for people.")
        .named("BadCredentials")
}

fn failed() -> Schema {
    Schema::object()
        .must(
            "statusCode",
            Schema::whole(400..=599).example(400_u64),
            "The HTTP status.",
        )
        .must(
            "statusText",
            Schema::text().example("Bad Request"),
            "The reason phrase of the HTTP status.",
        )
        .must(
            "errors",
            Schema::list(fault()).at_least_one(),
            "All faults of the call.",
        )
        .must(
            "traceId",
            names::trace(),
            "The trace id of the call, by which the operator finds it in the log.",
        )
}
