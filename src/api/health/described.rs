//! Which operations report the health of the service? The OpenAPI descriptions.

use crate::api::openapi::{ApiOperation, Schema, Tag, names};

/// GET `/livez`.
pub(in crate::api) fn livez() -> ApiOperation {
    ApiOperation::new("getLiveness", Tag::Service, "Check liveness")
        .description(
            "Returns 200 unless only a restart can help. Use it as the liveness check of a \
             supervisor.",
        )
        .answer(200, ok(), "The service is alive.")
        .refusal(
            503,
            &["UNAVAILABLE"],
            "The store has failed; restart the service.",
        )
        .retried(503)
}

/// GET `/readyz`.
pub(in crate::api) fn readyz() -> ApiOperation {
    let text = "Returns 200 while the service accepts calls, and its store responds and has room. \
                Use it as the health check of a load balancer.";
    ApiOperation::new("getReadiness", Tag::Service, "Check readiness")
        .description(text)
        .answer(200, ready(), "The service accepts calls.")
        .refusal(
            503,
            &["UNAVAILABLE"],
            "The service is starting or stopping, or its store does not respond or has no room: \
             then reading still works.",
        )
        .retried(503)
}

fn ready() -> Schema {
    let lost = Schema::object()
        .must(
            "groups",
            Schema::count().example(3_u64),
            "The number of groups of commits.",
        )
        .must(
            "from",
            names::instant(),
            "When the last group that is left was written.",
        )
        .must(
            "until",
            names::instant(),
            "When the last group that is lost was written.",
        );
    ok().may(
        "lost",
        lost,
        "What was lost from the end of the store before it was started with `--accept-loss`. \
         Absent otherwise.",
    )
    .may(
        "smpp",
        Schema::one_of_words(vec!["bound", "unbound"]),
        "Whether the link to the SMS centre is up. Without it SMS wait, and everything else works. \
         Absent if no link is configured.",
    )
}

fn ok() -> Schema {
    Schema::object().must("status", Schema::only("ok"), "Always `ok`.")
}
