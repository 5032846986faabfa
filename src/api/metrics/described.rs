//! How are the figures of the service read? For the document of the API.

use crate::api::openapi::{Operation, Schema, Tag};

/// GET.
pub(in crate::api) fn show() -> Operation {
    let text = "In the text format that Prometheus scrapes. Names no customer and no device.";
    Operation::new(
        "getMetrics",
        Tag::Service,
        "Read the figures of the service",
    )
    .description(text)
    .answer_in(200, vec![("text/plain", Schema::text())], "The figures.")
    .never_fails()
}
