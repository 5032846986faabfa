//! Which operations list, inspect and cancel jobs? The OpenAPI descriptions.

use engine::job::{JobDeviceStatus, JobState};

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let operation = ApiOperation::new("listJobs", Tag::Actions, "List jobs").description(
        "The jobs of the customer, newest first. A bulk call with a `filter` creates a job, \
         and so does a schedule. Jobs are deleted {{action_retention_days}} after creation; the \
         requests that they created have the same retention of their own.",
    );
    paged(operation).answer(200, page_of(job()), "A page of jobs.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new("getJob", Tag::Actions, "Get a job")
        .description("Poll it for the progress of the job, until it is no longer `RUNNING`.")
        .answer(200, job(), "The job.")
}

/// GET the devices.
pub(in crate::api) fn devices() -> ApiOperation {
    let operation = ApiOperation::new("listJobDevices", Tag::Actions, "List the devices of a job")
        .description(
            "The devices of the job in the order in which they are asked, each with its request \
             or the reason why it has none.",
        );
    paged(operation).answer(200, page_of(device()), "A page of the devices.")
}

/// DELETE.
pub(in crate::api) fn cancel() -> ApiOperation {
    ApiOperation::new("cancelJob", Tag::Actions, "Cancel a job")
        .description(
            "No further device gets a request. The requests that the job created stay, and can be \
             cancelled one by one.",
        )
        .answer(200, job(), "The job is cancelled.")
        .refusal(409, &["JOB_NOT_RUNNING"], "The job has ended.")
}

/// The response to a creation.
pub(in crate::api) fn created() -> Schema {
    Schema::object()
        .must("jobId", Schema::uuid(), "The id of the job.")
        .must("matched", count(), "How many devices the job has.")
        .named("JobCreated")
}

/// The response to a dry run.
pub(in crate::api) fn dry_run() -> Schema {
    let examples = Schema::list(names::device_id());
    Schema::object()
        .must("matched", count(), "How many devices match the filter.")
        .must("examples", examples, "The first of them, at most 10.")
        .named("JobDryRun")
}

fn job() -> Schema {
    let state = "`RUNNING`: devices are still to be asked. `DONE`: every device was asked. \
                 `CANCELLED`: the job was cancelled before.";
    Schema::object()
        .must("id", Schema::uuid(), "The id of the job.")
        .must("state", Schema::word::<JobState>(), state)
        .must("matched", count(), "How many devices the job has.")
        .must("accepted", count(), "How many of them have a request.")
        .must("rejected", count(), "How many of them were rejected.")
        .must("created", names::instant(), "When the job was created.")
        .may(
            "scheduleId",
            Schema::uuid(),
            "The schedule that created it, if one did.",
        )
        .named("Job")
}

fn device() -> Schema {
    let status = "`PENDING`: the device was not asked, or its answer is not stored yet. \
                  `ACCEPTED`: it has a request. `REJECTED`: it has none, for the reason given. \
                  `CANCELLED`: the job was cancelled before the device was asked.";
    Schema::object()
        .must("deviceId", names::device_id(), "The device.")
        .must("status", Schema::word::<JobDeviceStatus>(), status)
        .may("requestId", Schema::uuid(), "The id of its request.")
        .may(
            "code",
            Schema::text().example("DEVICE_NOT_REGISTERED"),
            "The error code, as in the error response of a call for one device.",
        )
        .may(
            "message",
            Schema::text().example("the device is not registered"),
            "The reason, for people.",
        )
        .named("JobDevice")
}

fn count() -> Schema {
    Schema::count().example(1_u64)
}
