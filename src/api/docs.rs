//! `/docs`: what is the API, for people? One page with a guide and every operation, made of the
//! OpenAPI document when the service starts.
//!
//! Everything it needs is in the program: it works without the internet, and its policy lets a
//! browser fetch nothing from elsewhere.

pub(super) mod described;
mod markup;
mod operation;
mod page;
mod sample;
mod schema;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpResponse, web};

use super::Api;
use super::openapi::Node;

const STYLE: &str = include_str!("docs/style.css");

const SCRIPT: &str = include_str!("docs/script.js");

/// Nothing from elsewhere, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The page of this document.
pub(super) fn page_of(document: &Node) -> web::Bytes {
    page::page(document).into()
}

/// GET: the page.
pub(super) async fn page(api: web::Data<Api>) -> HttpResponse {
    file("text/html; charset=utf-8", api.docs.clone())
}

/// GET: what it looks like.
pub(super) async fn style() -> HttpResponse {
    file(
        "text/css; charset=utf-8",
        web::Bytes::from_static(STYLE.as_bytes()),
    )
}

/// GET: what searches and copies in it.
pub(super) async fn script() -> HttpResponse {
    file(
        "text/javascript; charset=utf-8",
        web::Bytes::from_static(SCRIPT.as_bytes()),
    )
}

fn file(media: &str, bytes: web::Bytes) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(media)
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(bytes)
}
