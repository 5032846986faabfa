//! Which handlers get, list and cancel action requests (seed 4.4 to 4.7)? `creating` creates them.

mod asked;
pub(super) mod creating;
pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::action::{Action, Protocol, Status};
use engine::device::queue::Cancelled;
use engine::ids::{ActionId, DeviceId, DeviceKey};
use engine::query::{ActionFilter, ActionOrder, Statuses};

use super::Api;
use super::access::Caller;
use super::action::{ActionBody, FollowedBody};
use super::body::Query;
use super::error::Failure;
use super::fields::Fields;
use super::page::{PageBody, wanted};
use super::segment::At;
use super::words::Word;

/// A cancelled request.
#[derive(Serialize)]
struct CancelledBody {
    id: String,
    status: &'static str,
}

/// GET one.
pub(super) async fn show(
    caller: Caller,
    At(request): At<ActionId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let action = owned(&api, &caller, request).await?;
    Ok(HttpResponse::Ok().json(FollowedBody::of(&action)))
}

/// GET: lists the requests of the caller.
pub(super) async fn list(
    caller: Caller,
    query: Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    listed(Statuses::all(), caller, query, &api).await
}

/// GET: lists the requests of the caller that are not final.
pub(super) async fn active(
    caller: Caller,
    query: Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    listed(Statuses::pending(), caller, query, &api).await
}

/// GET: lists the requests of the caller that are final.
pub(super) async fn archived(
    caller: Caller,
    query: Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    listed(Statuses::done(), caller, query, &api).await
}

/// DELETE one: cancels a scheduled request.
pub(super) async fn cancel(
    caller: Caller,
    At(request): At<ActionId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let action = owned(&api, &caller, request).await?;
    let cancelled = api.devices.cancel(action.device, action.id).await??;
    Ok(HttpResponse::Ok().json(CancelledBody::of(cancelled)))
}

/// DELETE by device: cancels every scheduled request of a device.
pub(super) async fn cancel_all(
    caller: Caller,
    At(device): At<DeviceId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let device = DeviceKey::of(&caller.customer, &device);
    let cancelled = api.devices.cancel_all(device).await?;
    let body: Vec<_> = cancelled.into_iter().map(CancelledBody::of).collect();
    Ok(HttpResponse::Ok().json(body))
}

/// A request of the caller; for the requests of other customers the answer is 404.
async fn owned(api: &Api, caller: &Caller, request: ActionId) -> Result<Action, Failure> {
    let action = api.store.action(request).await?;
    let action = action.filter(|action| action.customer == caller.customer);
    action.ok_or_else(|| Failure::unknown("request"))
}

async fn listed(
    statuses: Statuses,
    caller: Caller,
    Query(mut fields): Query,
    api: &Api,
) -> Result<HttpResponse, Failure> {
    let wanted = wanted(&mut fields);
    let filter = filter(statuses, caller, fields)?;
    let page = api.store.actions(filter, wanted).await?;
    Ok(
        HttpResponse::Ok().json(PageBody::of(wanted, page, |listed| {
            ActionBody::listed(&listed)
        })),
    )
}

fn filter(statuses: Statuses, caller: Caller, mut fields: Fields) -> Result<ActionFilter, Failure> {
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
