//! Which handlers manage webhooks?

pub(super) mod described;
pub(super) mod request_body;
mod response_body;
pub(super) mod webhook_events;

use actix_web::{HttpResponse, web};

use engine::delivery::destination::Destination;
use engine::directory::destination::{SealedField, admit_integration, draft_webhook};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Json;
use super::destinations::{self, DestinationKind, DestinationSegment};
use super::error::ApiError;
use super::idempotency::IdempotencyKeyHeader;
use super::segment::PathSegment;

pub(super) use response_body::{TypeBody, WebhookBody, types_of};

/// Webhooks as a kind of destination.
pub(super) struct Webhooks;

impl DestinationKind for Webhooks {
    const NAME: &'static str = "webhook";
    const PATH: &'static str = "/management-api/v1/integrate/clouds/webhooks";

    type Body = WebhookBody;

    fn body(destination: &Destination) -> Option<WebhookBody> {
        let webhook = destination.target.webhook()?;
        Some(WebhookBody::of(destination, webhook))
    }
}

/// POST: creates a webhook.
pub(super) async fn create(
    caller: AuthenticatedCaller,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["webhook"], &mut fields);
    let new = request_body::new_webhook(fields, api.policy)?;
    destinations::create::<Webhooks>(&api, caller, identity, move |it| {
        admit_integration(it.customer, it.others)?;
        Ok(draft_webhook(it.moment, it.customer_id, new, it.seal))
    })
    .await
}

/// PATCH: updates a webhook.
pub(super) async fn amend(
    caller: AuthenticatedCaller,
    PathSegment(DestinationSegment { id, .. }): PathSegment<DestinationSegment<Webhooks>>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let seal = |field: SealedField<'_>, text: &str| api.seal_for(id, field, text);
    let amendments = request_body::amendments(fields, api.policy, seal)?;
    destinations::amend::<Webhooks>(api, caller, id, |was| Ok(amendments.apply(was))).await
}
