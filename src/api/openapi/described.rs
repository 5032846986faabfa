//! How is the document of the API read? For the document of the API.

use super::{JSON, Operation, Schema, Tag};

/// GET.
pub(in crate::api) fn show() -> Operation {
    let text = "OpenAPI 3.1, made of the routes themselves.";
    Operation::new("getOpenapi", Tag::Service, "Read this document")
        .description(text)
        .answer_in(200, vec![(JSON, Schema::object())], "The document.")
        .never_fails()
}
