//! Which operation returns the OpenAPI document? The OpenAPI description.

use super::{ApiOperation, JSON, Schema, Tag};

/// GET.
pub(in crate::api) fn show() -> ApiOperation {
    let text = "Returns the OpenAPI 3.1 document of this service.";
    ApiOperation::new("getOpenapi", Tag::Service, "Get the OpenAPI document")
        .description(text)
        .answer_in(200, vec![(JSON, Schema::object())], "The document.")
        .never_fails()
}
