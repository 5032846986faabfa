//! Which handlers manage webhooks?
//!
//! Changes go to the forwarders; reads go to the store.

pub(super) mod dead_letters;
pub(super) mod described;
mod request_body;
mod response_body;
mod sealing;
pub(super) mod webhook_events;

use actix_web::{HttpResponse, web};

use engine::delivery::destination::{Destination, DestinationAmendment};
use engine::directory::DirectoryRefusal;
use engine::directory::destination::{
    NewWebhook, SealedField, WebhookAmendments, admit_webhook, destination_of, draft_webhook,
};
use engine::ids::DestinationId;
use engine::query::{Page, PageRequest};
use engine::supervision::Unserved;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Json, Query};
use super::error::ApiError;
use super::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use super::page::{PageBody, wanted};
use super::records::to_its_end;
use super::segment::{PathSegment, Segment};

pub(super) use response_body::{TestedBody, WebhookBody, WebhookWithBacklogBody};

/// POST: creates a webhook.
pub(super) async fn create(
    caller: AuthenticatedCaller,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["webhook"], &mut fields);
    let new = request_body::new_webhook(fields, api.policy)?;
    let (deliveries, of) = (api.clone(), caller.clone());
    let act = move |keeper| to_its_end(made(deliveries, of, new, keeper));
    idempotency::create(&api, Some(&caller), identity, act).await
}

/// GET: lists the webhooks of the caller, oldest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let mut all = api.store.destinations_of(caller.customer).await?;
    all.sort_by_key(|it| (it.created_at, it.id));
    let show = |it: Destination| WebhookBody::of(&it);
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page_of(all, wanted), show)))
}

/// GET one, with its backlog.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    Ok(HttpResponse::Ok().json(followed(&api, &caller, id).await?))
}

/// PATCH: updates a webhook.
pub(super) async fn amend(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<DestinationId>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let seal = |part: SealedField<'_>, text: &str| api.seal_for(id, part, text);
    let amendments = request_body::amendments(fields, api.policy, seal)?;
    let amended = to_its_end(amended(api.clone(), caller, id, amendments)).await?;
    Ok(HttpResponse::Ok().json(WebhookBody::of(&amended)))
}

/// DELETE: deletes a webhook with its backlog.
pub(super) async fn delete(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    to_its_end(removed(api, caller, id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST: restarts a failed webhook.
pub(super) async fn restart(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    owned(&api, &caller, id).await?;
    let restarted = api.deliveries.restart(id).await.map_err(unserved)?;
    Ok(HttpResponse::Ok().json(WebhookBody::of(&restarted)))
}

/// POST: sends a test event and returns the result.
pub(super) async fn test(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    owned(&api, &caller, id).await?;
    let tested = api.deliveries.test(id).await.map_err(unserved)?;
    Ok(HttpResponse::Ok().json(TestedBody::of(tested)))
}

async fn made(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    new: NewWebhook,
    keeper: ResponseKeeper,
) -> Result<CreatedResponse, ApiError> {
    // One at a time, so that the maximum holds.
    let _turn = api.changing_webhooks.lock().await;
    let customer = api.store.customer(caller.customer.clone()).await?;
    let others = api.store.destinations_of(caller.customer.clone()).await?;
    admit_webhook(customer.as_ref(), &others)?;
    let seal = |id, part: SealedField<'_>, text: &str| api.seal_for(id, part, text);
    let drafted = draft_webhook(&mut api.clock.moment(), &caller.customer, new, seal);
    let location = format!(
        "/management-api/v1/integrate/clouds/webhooks/{}",
        drafted.id
    );
    let response = CreatedResponse::of(Some(location), &WebhookBody::of(&drafted))?;
    let record = keeper.record(&response)?;
    let created = api.deliveries.create(drafted, record).await;
    created.map_err(|why| match why {
        Unserved::Unknown => ApiError::from(DirectoryRefusal::CustomerUnknown),
        Unserved::Busy | Unserved::Failed => unserved(why),
    })?;
    api.devices.take_policy(caller.customer).await?;
    Ok(response)
}

async fn amended(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
    amendments: WebhookAmendments,
) -> Result<Destination, ApiError> {
    // One at a time, so that concurrent updates do not overwrite each other.
    let _turn = api.changing_webhooks.lock().await;
    let amended = amendments.apply(owned(&api, &caller, id).await?);
    let amended = DestinationAmendment {
        name: Some(amended.name),
        target: Some(amended.target),
        event_types: Some(amended.event_types),
    };
    let amended = api.deliveries.amend(id, amended).await.map_err(unserved)?;
    api.devices.take_policy(caller.customer).await?;
    Ok(amended)
}

async fn removed(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
) -> Result<(), ApiError> {
    owned(&api, &caller, id).await?;
    api.deliveries.remove(id).await.map_err(unserved)?;
    Ok(api.devices.take_policy(caller.customer).await?)
}

/// The webhook, if it is the caller's.
async fn owned(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: DestinationId,
) -> Result<Destination, ApiError> {
    let found = api.store.destination(id).await?;
    Ok(destination_of(&caller.customer, found)?)
}

/// The webhook with its backlog. The state is read last: with an empty backlog, it is the state
/// after the last delivery.
async fn followed(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: DestinationId,
) -> Result<WebhookWithBacklogBody, ApiError> {
    let backlog = api.store.backlog(id).await?;
    let found = owned(api, caller, id).await?;
    Ok(WebhookWithBacklogBody::of(&found, backlog))
}

/// The forwarder of the webhook did not respond.
fn unserved(unserved: Unserved) -> ApiError {
    match unserved {
        Unserved::Unknown => ApiError::unknown(DestinationId::NAME),
        Unserved::Busy => ApiError::busy(),
        Unserved::Failed => ApiError::internal("the forwarder of the webhook failed"),
    }
}

/// A page of a short list.
fn page_of(all: Vec<Destination>, wanted: PageRequest) -> Page<Destination> {
    let total = all.len() as u64;
    let size = usize::try_from(wanted.size).unwrap_or(usize::MAX);
    let pages_before = usize::try_from(wanted.number).unwrap_or(usize::MAX) - 1;
    let items = all.into_iter().skip(pages_before.saturating_mul(size));
    Page {
        items: items.take(size).collect(),
        total,
    }
}
