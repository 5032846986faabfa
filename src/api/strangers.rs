//! Which handler lists the senders that are no known device?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::strangers::Stranger;

use super::Api;
use super::body::Query;
use super::error::ApiError;
use super::page::{PageBody, wanted};
use super::words::Word;

/// A sender that is no known device.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StrangerBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<Box<str>>,
    address: String,
    protocol: &'static str,
    operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    first_seen: String,
    last_seen: String,
    count: u64,
}

/// GET: lists them, the latest first.
pub(super) async fn list(
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let page = wanted.page_of(api.devices.strangers().await);
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, StrangerBody::of)))
}

impl StrangerBody {
    pub(super) fn of(stranger: Stranger) -> Self {
        Self {
            endpoint: stranger.endpoint,
            address: stranger.address.to_string(),
            protocol: stranger.protocol.word(),
            operation: stranger.operation.word(),
            answer: stranger.answer.map(|code| code.to_string()),
            first_seen: stranger.first_at.iso().to_string(),
            last_seen: stranger.last_at.iso().to_string(),
            count: stranger.count,
        }
    }
}
