//! Which operation returns the metrics? The OpenAPI description.

use crate::api::openapi::{ApiOperation, Schema, Tag};

/// GET.
pub(in crate::api) fn show() -> ApiOperation {
    let text = "Returns metrics in the Prometheus text format. They name no customer and no \
                device.";
    ApiOperation::new("getMetrics", Tag::Service, "Get metrics")
        .description(text)
        .answer_in(200, vec![("text/plain", Schema::text())], "The metrics.")
        .never_fails()
}
