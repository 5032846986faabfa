//! Which operations serve the documentation page? The OpenAPI descriptions.

use crate::api::openapi::{ApiOperation, Schema, Tag};

/// GET `/`.
pub(in crate::api) fn front() -> ApiOperation {
    ApiOperation::new("getFront", Tag::Service, "Go to the console")
        .description("Redirects to `/console`, or to `/docs` in a build without the console.")
        .answer_empty(302, "The console is at `Location`.")
        .answer_header(302, "Location", Schema::text(), "Either of them.")
        .never_fails()
}

/// GET the page.
pub(in crate::api) fn page() -> ApiOperation {
    let text = "A guide and the API reference as an HTML page. Loads nothing from other hosts.";
    file("getDocs", "Get the documentation", "text/html").description(text)
}

/// GET the style sheet.
pub(in crate::api) fn style() -> ApiOperation {
    let text = "The style sheet of `/docs`.";
    file("getDocsStyle", "Get the style sheet", "text/css").description(text)
}

/// GET the script.
pub(in crate::api) fn script() -> ApiOperation {
    let text = "The script for search and copy buttons in `/docs`.";
    file("getDocsScript", "Get the script", "text/javascript").description(text)
}

fn file(id: &'static str, summary: &'static str, media: &'static str) -> ApiOperation {
    ApiOperation::new(id, Tag::Service, summary)
        .answer_in(200, vec![(media, Schema::text())], "The file.")
        .never_fails()
}
