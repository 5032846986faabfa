//! What do failures look like? For the document of the API.

use crate::api::openapi::{Schema, names};

/// The body of every failure.
pub(in crate::api) fn error() -> Schema {
    failed().named("Error")
}

/// The body of a failure that has no other codes than these.
pub(in crate::api) fn error_of(codes: &[&'static str]) -> Schema {
    let code = Schema::one_of_words(codes.to_vec());
    let faults = Schema::of_items(Schema::of_property("code", code));
    Schema::all_of([error(), Schema::of_property("errors", faults)])
}

/// The body of a failure that came when part of a call was granted, with what came of that part.
pub(in crate::api) fn error_with(granted: Schema) -> Schema {
    failed().including(granted)
}

/// One thing wrong with a call.
pub(in crate::api) fn fault() -> Schema {
    let code = Schema::text().pattern("^[A-Z][A-Z0-9_]*$");
    Schema::object()
        .must("code", code.example("OUT_OF_RANGE"), "For programs.")
        .must(
            "message",
            Schema::text().example("must be from 1 to 5"),
            "For people.",
        )
        .may(
            "field",
            Schema::text().example("sendAttempts"),
            "The property or parameter it is about, where it is about one.",
        )
        .named("Fault")
}

/// The body of the one failure of another shape.
pub(in crate::api) fn bad_credentials() -> Schema {
    Schema::object()
        .must("statusCode", Schema::whole(401..=401), "The status again.")
        .must("errorCode", Schema::only("BadCredentials"), "For programs.")
        .must("message", Schema::text(), "For people.")
        .named("BadCredentials")
}

fn failed() -> Schema {
    Schema::object()
        .must(
            "statusCode",
            Schema::whole(400..=599).example(400_u64),
            "The status again.",
        )
        .must(
            "statusText",
            Schema::text().example("Bad Request"),
            "What the status is called.",
        )
        .must(
            "errors",
            Schema::list(fault()).at_least_one(),
            "Everything that is wrong.",
        )
        .must(
            "traceId",
            names::trace(),
            "What the operator finds the call by in the service's log.",
        )
}
