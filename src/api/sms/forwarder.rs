//! Which handlers configure and test the SMS forwarder of a customer?

use actix_web::{HttpResponse, web};

use engine::delivery::address::exact;
use engine::delivery::destination::{Destination, DestinationAmendment};
use engine::directory::DirectoryRefusal;
use engine::directory::destination::{draft_sms_forwarder, sms_forwarder_of};
use engine::ids::{CustomerId, DestinationId, EventId};

use super::ForwarderBody;
use crate::api::Api;
use crate::api::access::AuthenticatedCaller;
use crate::api::body::{Json, Query};
use crate::api::destinations::{
    DestinationKind, TestedBody, dead_letters, followed, removed, shown, unserved,
};
use crate::api::error::ApiError;
use crate::api::records::to_its_end;
use crate::api::segment::PathSegment;

/// SMS forwarders as a kind of destination.
pub(in crate::api) struct SmsForwarders;

impl DestinationKind for SmsForwarders {
    const NAME: &'static str = "SMS forwarder";
    const PATH: &'static str = "/management-api/v1/sms/forwarder";

    type Body = ForwarderBody;

    fn body(destination: &Destination) -> Option<ForwarderBody> {
        let forwarder = destination.target.sms_forwarder()?;
        Some(ForwarderBody::of(destination, forwarder))
    }
}

/// GET: shows the forwarder with its backlog.
pub(in crate::api) async fn show(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let id = known(&api, &caller).await?;
    Ok(HttpResponse::Ok().json(followed::<SmsForwarders>(&api, &caller, id).await?))
}

/// PUT: creates the forwarder, or changes its URL.
pub(in crate::api) async fn put(
    caller: AuthenticatedCaller,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let url = fields.required("url", |text| exact(text, api.policy));
    let url = fields.finish(url)?;
    let put = to_its_end(put_url(api.clone(), caller.customer, url)).await?;
    Ok(HttpResponse::Ok().json(shown::<SmsForwarders>(&put)?))
}

/// DELETE: deletes the forwarder with its backlog.
pub(in crate::api) async fn delete(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let id = known(&api, &caller).await?;
    to_its_end(removed::<SmsForwarders>(api, caller, id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// POST: sends one event of each kind and returns the result.
pub(in crate::api) async fn test(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let id = known(&api, &caller).await?;
    let tested = api.deliveries.test(id).await;
    let tested = tested.map_err(unserved::<SmsForwarders>)?;
    Ok(HttpResponse::Ok().json(TestedBody::of(tested)))
}

/// GET: lists the dead letters of the forwarder.
pub(in crate::api) async fn letters(
    caller: AuthenticatedCaller,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let id = known(&api, &caller).await?;
    dead_letters::listed::<SmsForwarders>(&api, &caller, id, fields).await
}

/// POST: replays the dead letters of the forwarder.
pub(in crate::api) async fn replay(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let id = known(&api, &caller).await?;
    dead_letters::replayed::<SmsForwarders>(&api, &caller, id).await
}

/// DELETE: deletes a dead letter of the forwarder.
pub(in crate::api) async fn discard(
    caller: AuthenticatedCaller,
    PathSegment(event): PathSegment<EventId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let id = known(&api, &caller).await?;
    dead_letters::discarded::<SmsForwarders>(&api, &caller, id, event).await
}

/// DELETE: deletes all dead letters of the forwarder.
pub(in crate::api) async fn discard_all(
    caller: AuthenticatedCaller,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let id = known(&api, &caller).await?;
    dead_letters::all_discarded::<SmsForwarders>(api, caller, id).await
}

async fn put_url(
    api: web::Data<Api>,
    customer: CustomerId,
    url: Box<str>,
) -> Result<Destination, ApiError> {
    // One at a time, so that a customer has one.
    let _turn = api.changing_destinations.lock().await;
    let owner = api.store.customer(customer.clone()).await?;
    let owner = owner.ok_or(DirectoryRefusal::CustomerUnknown)?;
    let Some(id) = found(&api, customer).await? else {
        let drafted = draft_sms_forwarder(&mut api.clock.moment(), &owner, url);
        let created = api.deliveries.create(drafted.clone(), None).await;
        created.map_err(unserved::<SmsForwarders>)?;
        return Ok(drafted);
    };
    let amendment = DestinationAmendment {
        target: Some(sms_forwarder_of(&owner, url)),
        ..DestinationAmendment::default()
    };
    let amended = api.deliveries.amend(id, amendment).await;
    amended.map_err(unserved::<SmsForwarders>)
}

/// The forwarder of the caller.
async fn known(api: &Api, caller: &AuthenticatedCaller) -> Result<DestinationId, ApiError> {
    let found = found(api, caller.customer.clone()).await?;
    found.ok_or_else(|| ApiError::unknown(SmsForwarders::NAME))
}

async fn found(api: &Api, customer: CustomerId) -> Result<Option<DestinationId>, ApiError> {
    let all = api.store.destinations_of(customer).await?;
    let forwarder = all.iter().find(|it| it.target.sms_forwarder().is_some());
    Ok(forwarder.map(|it| it.id))
}
