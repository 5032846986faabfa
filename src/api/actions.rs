//! Which handlers get, list and cancel action requests (seed 4.4 to 4.7)? `creating` creates them.

pub(super) mod creating;
pub(super) mod described;
pub(super) mod request_body;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::action::{Action, Protocol, Status};
use engine::device::queue::{CancelRefusal, Cancelled};
use engine::ids::{ActionId, DeviceId, DeviceKey};
use engine::query::{ActionFilter, ActionOrder, Statuses};
use engine::supervision::Unserved;

use super::Api;
use super::access::AuthenticatedCaller;
use super::action::{ActionBody, ActionWithTimelineBody};
use super::body::Query;
use super::error::ApiError;
use super::fields::Fields;
use super::page::{PageBody, wanted};
use super::segment::PathSegment;
use super::words::Word;

/// A cancelled request.
#[derive(Serialize)]
struct CancelledBody {
    id: String,
    status: &'static str,
}

/// GET one.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(request): PathSegment<ActionId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let action = owned(&api, &caller, request).await?;
    let woken_by = match action.woken_by {
        Some(sms) => api.store.sms(sms).await?,
        None => None,
    };
    let woken_by = woken_by.filter(|sms| sms.customer == action.customer);
    let body = ActionWithTimelineBody::of(&action, woken_by.as_ref());
    Ok(HttpResponse::Ok().json(body))
}

/// GET: lists the requests of the caller.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    query: Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    listed(Statuses::all(), caller, query, &api).await
}

/// GET: lists the requests of the caller that are not final.
pub(super) async fn active(
    caller: AuthenticatedCaller,
    query: Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    listed(Statuses::pending(), caller, query, &api).await
}

/// GET: lists the requests of the caller that are final.
pub(super) async fn archived(
    caller: AuthenticatedCaller,
    query: Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    listed(Statuses::done(), caller, query, &api).await
}

/// DELETE one: cancels a scheduled request.
pub(super) async fn cancel(
    caller: AuthenticatedCaller,
    PathSegment(request): PathSegment<ActionId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let action = owned(&api, &caller, request).await?;
    let cancelled = match api.devices.cancel(action.device, action.id).await {
        // Every request of a device that was removed is final.
        Err(Unserved::Unknown) => Err(CancelRefusal::NotPending),
        answered => answered?,
    };
    Ok(HttpResponse::Ok().json(CancelledBody::of(cancelled?)))
}

/// DELETE by device: cancels every scheduled request of a device.
pub(super) async fn cancel_all(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let device = DeviceKey::of(&caller.customer, &device);
    let cancelled = api.devices.cancel_all(device).await?;
    let body: Vec<_> = cancelled.into_iter().map(CancelledBody::of).collect();
    Ok(HttpResponse::Ok().json(body))
}

/// A request of the caller; for the requests of other customers the answer is 404.
async fn owned(
    api: &Api,
    caller: &AuthenticatedCaller,
    request: ActionId,
) -> Result<Action, ApiError> {
    let action = api.store.action(request).await?;
    let action = action.filter(|action| action.customer == caller.customer);
    action.ok_or_else(|| ApiError::unknown("request"))
}

async fn listed(
    statuses: Statuses,
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: &Api,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    let filter = filter(statuses, caller, fields)?;
    let page = api.store.actions(filter, wanted).await?;
    Ok(
        HttpResponse::Ok().json(PageBody::of(wanted, page, |listed| {
            ActionBody::listed(&listed)
        })),
    )
}

fn filter(
    statuses: Statuses,
    caller: AuthenticatedCaller,
    mut fields: Fields,
) -> Result<ActionFilter, ApiError> {
    let device = fields.optional("deviceId", DeviceId::parse);
    let protocol = fields.optional("protocol", Protocol::read);
    let status = fields.optional("status", Status::read);
    let order = fields.optional("sort", ActionOrder::read);
    fields.finish(Some(ActionFilter {
        device: device.map(|device| DeviceKey::of(&caller.customer, &device)),
        customer: caller.customer,
        protocol,
        statuses: status.map_or(statuses, |status| statuses.only(status)),
        order: order.unwrap_or(ActionOrder::CreatedDescending),
    }))
}

impl CancelledBody {
    fn of(cancelled: Cancelled) -> Self {
        Self {
            id: cancelled.id.to_string(),
            status: Status::Cancelled.word(),
        }
    }
}
