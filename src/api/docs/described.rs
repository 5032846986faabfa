//! How is the page for people read? For the document of the API.

use crate::api::openapi::{Operation, Schema, Tag};

/// GET the page.
pub(in crate::api) fn page() -> Operation {
    let text = "A guide and every operation, for people. Needs nothing from anywhere else.";
    file("getDocs", "Read the documentation", "text/html").description(text)
}

/// GET what the page looks like.
pub(in crate::api) fn style() -> Operation {
    let text = "What the documentation looks like.";
    file(
        "getDocsStyle",
        "Read the style of the documentation",
        "text/css",
    )
    .description(text)
}

/// GET what the page does.
pub(in crate::api) fn script() -> Operation {
    let text = "What searches and copies in the documentation.";
    file(
        "getDocsScript",
        "Read the script of the documentation",
        "text/javascript",
    )
    .description(text)
}

fn file(id: &'static str, summary: &'static str, media: &'static str) -> Operation {
    Operation::new(id, Tag::Service, summary)
        .answer_in(200, vec![(media, Schema::text())], "The file.")
        .never_fails()
}
