//! Which handlers manage webhooks?

pub(super) mod described;
pub(super) mod request_body;
mod response_body;
pub(super) mod webhook_events;

use actix_web::{HttpResponse, web};

use engine::delivery::destination::{Destination, DestinationAmendment};
use engine::directory::destination::{
    SealedField, WebhookAmendments, admit_integration, draft_webhook,
};
use engine::ids::DestinationId;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Json, Query};
use super::destinations::{
    DestinationKind, DestinationSegment, listed, made, owned, shown, unserved,
};
use super::error::ApiError;
use super::idempotency::{self, IdempotencyKeyHeader};
use super::records::to_its_end;
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
    let (made_by, of) = (api.clone(), caller.clone());
    let act = move |keeper| {
        let (sealing, customer) = (made_by.clone(), of.customer.clone());
        to_its_end(made::<Webhooks>(
            made_by,
            of,
            keeper,
            move |m, known, others| {
                admit_integration(known, others)?;
                let seal =
                    |id, field: SealedField<'_>, text: &str| sealing.seal_for(id, field, text);
                Ok(draft_webhook(m, &customer, new, seal))
            },
        ))
    };
    idempotency::create(&api, Some(&caller), identity, act).await
}

/// GET: lists the webhooks of the caller, oldest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    listed::<Webhooks>(&api, caller, fields, |_| true).await
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
    let amended = to_its_end(amended(api.clone(), caller, id, amendments)).await?;
    Ok(HttpResponse::Ok().json(shown::<Webhooks>(&amended)?))
}

async fn amended(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
    amendments: WebhookAmendments,
) -> Result<Destination, ApiError> {
    // One at a time, so that concurrent updates do not overwrite each other.
    let _turn = api.changing_destinations.lock().await;
    let amended = amendments.apply(owned::<Webhooks>(&api, &caller, id).await?);
    let amended = DestinationAmendment {
        name: Some(amended.name),
        target: Some(amended.target),
        event_types: Some(amended.event_types),
    };
    let amended = api.deliveries.amend(id, amended).await;
    let amended = amended.map_err(unserved::<Webhooks>)?;
    api.devices.take_policy(caller.customer).await?;
    Ok(amended)
}
