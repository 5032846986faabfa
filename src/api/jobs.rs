//! Which handlers create, list, inspect and cancel jobs? A job is made by a bulk call with a
//! filter, or by a schedule.

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::action::NewAction;
use engine::directory::job::{contents_of, removal_of};
use engine::ids::{CustomerId, DeviceId, JobId};
use engine::job::{Job, JobDevice, JobDeviceStatus, JobOutcome, JobState};
use engine::query::devices::DeviceFilter;
use engine::query::{Page, PageRequest};

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Query;
use super::error::ApiError;
use super::idempotency::{self, CallIdentity, CreatedResponse, ResponseKeeper};
use super::page::{PageBody, wanted};
use super::segment::PathSegment;
use super::words::Word;

/// The devices that a dry run names.
const EXAMPLES: usize = 10;

/// Jobs removed at a time with their customer.
const REMOVED_AT_ONCE: u32 = 100;

/// The response to a creation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobCreatedBody {
    job_id: String,
    matched: u32,
}

/// The response to a dry run.
#[derive(Serialize)]
pub(super) struct DryRunBody {
    matched: usize,
    examples: Vec<String>,
}

/// A job.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobBody {
    id: String,
    state: &'static str,
    matched: u32,
    accepted: u32,
    rejected: u32,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_id: Option<String>,
}

/// A device of a job.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobDeviceBody {
    device_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// GET: lists the jobs of the caller, newest first.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let page = api.store.jobs_of(caller.customer, wanted).await?;
    Ok(HttpResponse::Ok().json(PageBody::of(wanted, page, |job| JobBody::of(&job))))
}

/// GET one.
pub(super) async fn show(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<JobId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let job = owned(&api, &caller, id).await?;
    Ok(HttpResponse::Ok().json(JobBody::of(&job)))
}

/// GET: lists the devices of a job.
pub(super) async fn devices(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<JobId>,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted(&mut fields);
    fields.finish(Some(()))?;
    let job = owned(&api, &caller, id).await?;
    let page = Page {
        items: api.store.job_devices(id, wanted).await?,
        total: job.matched.into(),
    };
    Ok(
        HttpResponse::Ok().json(PageBody::of(wanted, page, |device| {
            JobDeviceBody::of(device, job.state)
        })),
    )
}

/// DELETE: cancels a running job.
pub(super) async fn cancel(
    caller: AuthenticatedCaller,
    PathSegment(id): PathSegment<JobId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    owned(&api, &caller, id).await?;
    let job = api.jobs.cancel(id).await?;
    Ok(HttpResponse::Ok().json(JobBody::of(&job)))
}

/// What a bulk call with this filter would do.
pub(super) async fn dry_run(api: &Api, filter: DeviceFilter) -> Result<HttpResponse, ApiError> {
    let _turn = api.creating_jobs.lock().await;
    let devices = api.jobs.selection.matching(filter).await?;
    Ok(HttpResponse::Ok().json(DryRunBody::of(&devices)))
}

/// Creates a job that makes a request for each device that passes a filter.
pub(super) async fn create(
    api: &web::Data<Api>,
    caller: &AuthenticatedCaller,
    identity: Option<CallIdentity>,
    request: NewAction,
    filter: DeviceFilter,
) -> Result<HttpResponse, ApiError> {
    let (jobs, customer) = (api.clone(), caller.customer.clone());
    let act = async move |keeper: ResponseKeeper| {
        let api = jobs;
        let _turn = api.creating_jobs.lock().await;
        api.jobs.check_room(customer.clone()).await?;
        let devices = api.jobs.selection.matching(filter).await?;
        let matched = u32::try_from(devices.len()).map_err(ApiError::internal)?;
        let job = Job::new(&mut api.clock.moment(), customer, matched);
        let devices = devices.into_iter().map(JobDevice::new).collect();
        for contents in contents_of(job.id, request, devices) {
            api.commits.commit(contents).await?;
        }
        let location = format!("/management-api/v1/jobs/{}", job.id);
        let response = CreatedResponse::of(Some(location), &JobCreatedBody::of(&job))?;
        api.jobs.create(job, keeper.record(&response)?).await?;
        Ok(response)
    };
    let created = idempotency::create_once(api, Some(caller), identity, act).await?;
    Ok(created.accepted())
}

/// Removes the jobs of a customer that is being removed, which no longer run.
pub(super) async fn remove_all(api: &Api, customer: &CustomerId) -> Result<(), ApiError> {
    let first = PageRequest {
        number: 1,
        size: REMOVED_AT_ONCE,
    };
    loop {
        let jobs = api.store.jobs_of(customer.clone(), first).await?.items;
        if jobs.is_empty() {
            return Ok(());
        }
        api.commits.commit(removal_of(&jobs)).await?;
    }
}

/// A job of the caller; for the jobs of other customers the answer is 404.
async fn owned(api: &Api, caller: &AuthenticatedCaller, id: JobId) -> Result<Job, ApiError> {
    let job = api.store.job(id).await?;
    let job = job.filter(|job| job.customer == caller.customer);
    job.ok_or_else(|| ApiError::unknown("job"))
}

impl JobCreatedBody {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            job_id: job.id.to_string(),
            matched: job.matched,
        }
    }
}

impl DryRunBody {
    /// The devices that match.
    pub(super) fn of(matching: &[DeviceId]) -> Self {
        let examples = matching.iter().take(EXAMPLES);
        Self {
            matched: matching.len(),
            examples: examples.map(ToString::to_string).collect(),
        }
    }
}

impl JobBody {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            id: job.id.to_string(),
            state: job.state.word(),
            matched: job.matched,
            accepted: job.accepted,
            rejected: job.rejected,
            created: job.created_at.iso().to_string(),
            schedule_id: job.schedule.map(|schedule| schedule.to_string()),
        }
    }
}

impl JobDeviceBody {
    /// A device of a job in this state.
    pub(super) fn of(device: JobDevice, state: JobState) -> Self {
        let mut body = Self {
            device_id: device.device.to_string(),
            status: JobDeviceStatus::of(device.outcome, state).word(),
            request_id: None,
            code: None,
            message: None,
        };
        let failure = match device.outcome {
            None => return body,
            Some(JobOutcome::Accepted(action)) => {
                body.request_id = Some(action.to_string());
                return body;
            }
            Some(JobOutcome::Refused(refusal)) => ApiError::from(refusal),
            Some(JobOutcome::Unserved(unserved)) => ApiError::from(unserved),
            Some(JobOutcome::RequestOpen(action)) => ApiError::request_open(action),
        };
        let fault = failure.into_fault();
        body.code = Some(fault.code);
        body.message = Some(fault.message);
        body
    }
}
