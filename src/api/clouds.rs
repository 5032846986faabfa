//! Which handlers manage webhooks?
//!
//! Changes go to the forwarders; reads go to the store.

mod asked;
pub(super) mod described;
pub(super) mod events;
pub(super) mod letters;
mod sealing;
mod shown;

use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, web};

use engine::delivery::destination::{Amended, Destination};
use engine::directory::Refusal;
use engine::directory::destination::{
    NewWebhook, Part, WebhookAmendments, admit_destination, destination_of, draft_webhook,
};
use engine::ids::DestinationId;
use engine::query::{Page, PageWanted};
use engine::supervision::Unserved;

use super::Api;
use super::access::Caller;
use super::body::{Json, Query};
use super::error::Failure;
use super::page::{PageBody, wanted};
use super::records::to_its_end;
use super::segment::{At, Segment};

pub(super) use shown::{FollowedBody, TestedBody, WebhookBody};

/// POST: creates a webhook.
pub(super) async fn create(
    caller: Caller,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let new = asked::new_webhook(fields, api.policy)?;
    let made = to_its_end(made(api.clone(), caller, new)).await?;
    let location = format!("/management-api/v1/integrate/clouds/webhooks/{}", made.id);
    Ok(HttpResponse::Created()
        .insert_header((LOCATION, location))
        .json(WebhookBody::of(&made, api.opener())))
}

/// GET: lists the webhooks of the caller, oldest first.
pub(super) async fn list(
    caller: Caller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let mut all = api.store.destinations_of(caller.customer).await?;
    all.sort_by_key(|it| (it.created_at, it.id));
    let show = |it: Destination| WebhookBody::of(&it, api.opener());
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page_of(all, wanted), show)))
}

/// GET one, with its backlog.
pub(super) async fn show(
    caller: Caller,
    At(id): At<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    Ok(HttpResponse::Ok().json(followed(&api, &caller, id).await?))
}

/// PATCH: updates a webhook.
pub(super) async fn amend(
    caller: Caller,
    At(id): At<DestinationId>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let seal = |part: Part<'_>, text: &str| api.seal_for(id, part, text);
    let amendments = asked::amendments(fields, api.policy, seal)?;
    let amended = to_its_end(amended(api.clone(), caller, id, amendments)).await?;
    Ok(HttpResponse::Ok().json(WebhookBody::of(&amended, api.opener())))
}

/// DELETE: deletes a webhook with its backlog.
pub(super) async fn delete(
    caller: Caller,
    At(id): At<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    to_its_end(removed(api, caller, id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST: restarts a failed webhook.
pub(super) async fn restart(
    caller: Caller,
    At(id): At<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    owned(&api, &caller, id).await?;
    let restarted = api.post.restart(id).await.map_err(unserved)?;
    Ok(HttpResponse::Ok().json(WebhookBody::of(&restarted, api.opener())))
}

/// POST: sends a test event and returns the result.
pub(super) async fn test(
    caller: Caller,
    At(id): At<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    owned(&api, &caller, id).await?;
    let tested = api.post.test(id).await.map_err(unserved)?;
    Ok(HttpResponse::Ok().json(TestedBody::of(tested)))
}

async fn made(
    api: web::Data<Api>,
    caller: Caller,
    new: NewWebhook,
) -> Result<Destination, Failure> {
    // One at a time, so that the maximum holds.
    let _turn = api.changing_webhooks.lock().await;
    let customer = api.store.customer(caller.customer.clone()).await?;
    let others = api.store.destinations_of(caller.customer.clone()).await?;
    admit_destination(customer.as_ref(), &others)?;
    let seal = |id, part: Part<'_>, text: &str| api.seal_for(id, part, text);
    let drafted = draft_webhook(&mut api.clock.moment(), &caller.customer, new, seal);
    let created = api.post.create(drafted.clone()).await;
    created.map_err(|why| match why {
        Unserved::Unknown => Failure::from(Refusal::CustomerUnknown),
        Unserved::Busy | Unserved::Failed => unserved(why),
    })?;
    api.devices.take_terms(caller.customer).await?;
    Ok(drafted)
}

async fn amended(
    api: web::Data<Api>,
    caller: Caller,
    id: DestinationId,
    amendments: WebhookAmendments,
) -> Result<Destination, Failure> {
    // One at a time, so that concurrent updates do not overwrite each other.
    let _turn = api.changing_webhooks.lock().await;
    let amended = amendments.apply(owned(&api, &caller, id).await?);
    let amended = Amended {
        name: Some(amended.name),
        target: Some(amended.target),
        wants: Some(amended.wants),
    };
    let amended = api.post.amend(id, amended).await.map_err(unserved)?;
    api.devices.take_terms(caller.customer).await?;
    Ok(amended)
}

async fn removed(api: web::Data<Api>, caller: Caller, id: DestinationId) -> Result<(), Failure> {
    owned(&api, &caller, id).await?;
    api.post.remove(id).await.map_err(unserved)?;
    Ok(api.devices.take_terms(caller.customer).await?)
}

/// The webhook, if it is the caller's.
async fn owned(api: &Api, caller: &Caller, id: DestinationId) -> Result<Destination, Failure> {
    let found = api.store.destination(id).await?;
    Ok(destination_of(&caller.customer, found)?)
}

/// The webhook with its backlog. The state is read last: with an empty backlog, it is the state
/// after the last delivery.
async fn followed(api: &Api, caller: &Caller, id: DestinationId) -> Result<FollowedBody, Failure> {
    let backlog = api.store.backlog(id).await?;
    let found = owned(api, caller, id).await?;
    Ok(FollowedBody::of(&found, backlog, api.opener()))
}

/// The forwarder of the webhook did not respond.
fn unserved(unserved: Unserved) -> Failure {
    match unserved {
        Unserved::Unknown => Failure::unknown(DestinationId::NAME),
        Unserved::Busy => Failure::busy(),
        Unserved::Failed => Failure::internal("the forwarder of the webhook failed"),
    }
}

/// A page of a short list.
fn page_of(all: Vec<Destination>, wanted: PageWanted) -> Page<Destination> {
    let total = all.len() as u64;
    let size = usize::try_from(wanted.size).unwrap_or(usize::MAX);
    let pages_before = usize::try_from(wanted.number).unwrap_or(usize::MAX) - 1;
    let items = all.into_iter().skip(pages_before.saturating_mul(size));
    Page {
        items: items.take(size).collect(),
        total,
    }
}
