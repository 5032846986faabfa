//! Which handlers create, list, inspect, pause and delete schedules?

pub(super) mod described;
mod request_body;
mod response_body;

use actix_web::{HttpResponse, web};

use engine::directory::schedule::removal_of;
use engine::ids::{CustomerId, ScheduleId};
use engine::query::PageRequest;
use engine::schedule::{Schedule, ScheduleChange};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::{Json, Query};
use super::call::Call;
use super::error::ApiError;
use super::idempotency::{self, CreatedResponse, IdempotencyKeyHeader, ResponseKeeper};
use super::page::{PageBody, wanted};
use super::segment::PathSegment;

pub(super) use response_body::{ScheduleBody, ScheduleWithRequestBody};

/// Schedules removed at a time with their customer.
const REMOVED_AT_ONCE: u32 = 100;

/// POST: creates a schedule.
pub(super) async fn create(
    call: Call,
    caller: AuthenticatedCaller,
    named: IdempotencyKeyHeader,
    Json(mut fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let identity = named.read(&["schedule"], &mut fields);
    let (schedule, contents) =
        request_body::new_schedule(&api, call, caller.customer.clone(), fields)?;
    let made_by = api.clone();
    let act = async move |keeper: ResponseKeeper| {
        let location = format!("/management-api/v1/schedules/{}", schedule.id);
        let response = CreatedResponse::of(Some(location), &ScheduleBody::of(&schedule))?;
        let record = keeper.record(&response)?;
        let created = made_by.jobs.create_schedule(schedule, contents, record);
        created.await?;
        Ok(response)
    };
    idempotency::create(&api, Some(&caller), identity, act).await
}

/// GET: lists the schedules of the caller, newest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let page = api.store.schedules_of(caller.customer, wanted).await?;
    Ok(
        HttpResponse::Ok().json(PageBody::of(wanted, page, |schedule| {
            ScheduleBody::of(&schedule)
        })),
    )
}

/// GET one.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<ScheduleId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let schedule = owned(&api, &caller, id).await?;
    let contents = api.store.schedule_contents(id).await?;
    let contents = contents.ok_or_else(|| ApiError::unknown("schedule"))?;
    Ok(HttpResponse::Ok().json(ScheduleWithRequestBody::of(&schedule, &contents)))
}

/// PATCH: pauses or resumes a schedule.
pub(super) async fn amend(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<ScheduleId>,
    Json(fields): Json,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let change = request_body::change(fields)?;
    owned(&api, &caller, id).await?;
    let changed = api.jobs.change_schedule(id, change).await?;
    Ok(HttpResponse::Ok().json(ScheduleBody::of(&changed)))
}

/// DELETE.
pub(super) async fn delete(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<ScheduleId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    owned(&api, &caller, id).await?;
    api.jobs.change_schedule(id, ScheduleChange::Remove).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Removes the schedules of a customer that is being removed.
pub(super) async fn remove_all(api: &Api, customer: &CustomerId) -> Result<(), ApiError> {
    let first = PageRequest {
        number: 1,
        size: REMOVED_AT_ONCE,
    };
    loop {
        let schedules = api.store.schedules_of(customer.clone(), first).await?.items;
        if schedules.is_empty() {
            return Ok(());
        }
        api.commits.commit(removal_of(&schedules)).await?;
    }
}

/// A schedule of the caller; for those of other customers the answer is 404.
async fn owned(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: ScheduleId,
) -> Result<Schedule, ApiError> {
    let schedule = api.store.schedule(caller.customer.clone(), id).await?;
    schedule.ok_or_else(|| ApiError::unknown("schedule"))
}
