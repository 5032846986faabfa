//! `/openapi.json`: the API as a document for programs. It is made from the routes when the service
//! starts, so the two cannot differ.

pub(super) mod described;
mod document;
pub(super) mod names;
mod node;
mod operation;
pub(super) mod rules;
mod schema;
mod shown_settings;

use actix_web::{HttpResponse, web};

use super::Api;

pub(super) use document::document;
pub(super) use node::Node;
pub(super) use operation::{ApiOperation, JSON, Tag};
pub(super) use schema::Schema;
pub(super) use shown_settings::ShownSettings;

/// GET: the document.
pub(super) async fn show(api: web::Data<Api>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(JSON)
        .body(api.openapi.clone())
}
