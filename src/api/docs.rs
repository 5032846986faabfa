//! `/docs`: one HTML page with a guide and every operation, made from the OpenAPI document when the
//! service starts.
//!
//! All assets are part of the program: the page works offline, and its Content-Security-Policy
//! allows no other origin.

pub(super) mod described;
pub(super) mod markup;
mod operation;
mod page;
mod sample;
mod schema;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use actix_web::{HttpResponse, web};

use super::Api;
use super::openapi::{Node, ShownSettings};

const STYLE: &str = include_str!("docs/style.css");

const SCRIPT: &str = include_str!("docs/script.js");

/// No other origin, nothing inline, no framing.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The files change with the program alone; a browser shows a new version within minutes.
const CACHED: &str = "max-age=600";

/// The page of this document, as it is with these settings.
pub(super) fn page_of(document: &Node, settings: &ShownSettings) -> web::Bytes {
    page::page(document, settings).into()
}

/// GET: the page.
pub(super) async fn page(api: web::Data<Api>) -> HttpResponse {
    file("text/html; charset=utf-8", api.docs.clone())
}

/// GET: the style sheet.
pub(super) async fn style() -> HttpResponse {
    file(
        "text/css; charset=utf-8",
        web::Bytes::from_static(STYLE.as_bytes()),
    )
}

/// GET: the script for search and copy buttons.
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
        .insert_header((CACHE_CONTROL, CACHED))
        .body(bytes)
}
