//! Which operations create, list, inspect, pause and delete schedules? The OpenAPI descriptions.

use engine::limits::SCHEDULE_EVERY_S_MAX;
use engine::schedule::{ScheduleState, SkipReason};

use crate::api::actions::described::scheduled;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};
use crate::api::words::Word;

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "Creates a schedule: at each of its due times the service creates a job, which \
                creates `request` for the devices in `deviceIds`, or for those that match `filter` \
                at that time. With `every` the due times are `start` and every so many seconds \
                after it. With `daily` they are one time of day in a time zone: on a day on which \
                clocks skip it, the end of the gap; on a day that has it twice, the first of \
                both. Due times before the creation do not count.\n\nEach due time creates one job \
                at most, also if the service crashes. A due time at which the service is down, the \
                last job of the schedule is running, or {{jobs_running_max}} jobs of the customer \
                are running, is run once as soon as possible; further due times that pass until \
                then are not run.\n\nA device that has a request of an earlier run which is not \
                final gets none: requests do not pile up at a device that sleeps. The job lists it \
                as `REJECTED` with the code `REQUEST_OPEN`; if all devices have one, there is no \
                job. A due time without a job is shown in `last` with its reason, and the \
                administration log has an entry `Scheduler[RunSkipped]` about the first of them.";
    ApiOperation::new("createSchedule", Tag::Actions, "Create a schedule")
        .description(text)
        .json(new_schedule(), "The schedule to create.")
        .answer(201, schedule(), "The created schedule.")
        .answer_header(201, "Location", Schema::text(), "The path of the schedule.")
        .leads_to(
            201,
            &["getSchedule", "amendSchedule", "deleteSchedule"],
            &[("schedule", "$response.body#/id")],
        )
        .once(
            &["TOO_MANY_SCHEDULES"],
            "the customer has {{schedules_max}} schedules, which is the maximum.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let operation = ApiOperation::new("listSchedules", Tag::Actions, "List schedules")
        .description("The schedules of the customer, newest first, without `request`.");
    paged(operation).answer(200, page_of(schedule()), "A page of schedules.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    ApiOperation::new("getSchedule", Tag::Actions, "Get a schedule")
        .description("The schedule with its request. `getJob` shows the job in `last`.")
        .answer(200, with_request(), "The schedule.")
}

/// PATCH.
pub(in crate::api) fn amend() -> ApiOperation {
    let state = Schema::one_of_words(vec![
        ScheduleState::Active.word(),
        ScheduleState::Paused.word(),
    ]);
    let why = "`PAUSED`: no time is due. `ACTIVE`: the due times after now count again.";
    let body = Schema::closed()
        .must("state", state, why)
        .named("ScheduleChange");
    ApiOperation::new("amendSchedule", Tag::Actions, "Pause or resume a schedule")
        .description(
            "A due time that passed before the pause and was not run yet is not run any more. A \
             job that is running goes on.",
        )
        .json(body, "The new state.")
        .answer(200, schedule(), "The schedule.")
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    ApiOperation::new("deleteSchedule", Tag::Actions, "Delete a schedule")
        .description("Its jobs and their requests stay; a job that is running goes on.")
        .answer_empty(204, "The schedule is deleted.")
}

fn new_schedule() -> Schema {
    let period = Schema::closed().may("name", names::label(), NAME).must(
        "every",
        every().example(3_600_u64),
        EVERY,
    );
    let daily = Schema::closed().may("name", names::label(), NAME).must(
        "daily",
        time_of_day(Schema::closed()),
        DAILY,
    );
    let cases = [(period, "Periodic schedule"), (daily, "Daily schedule")];
    let cases = cases.map(|(case, title)| {
        case.may("start", names::log_time(), START)
            .may("end", names::log_time(), END)
            .must("request", scheduled(), REQUEST)
            .titled(title)
    });
    Schema::one_of(cases).named("NewSchedule")
}

/// A schedule.
fn schedule() -> Schema {
    properties().named("Schedule")
}

fn with_request() -> Schema {
    properties()
        .must("request", scheduled(), REQUEST)
        .named("ScheduleWithRequest")
}

fn properties() -> Schema {
    let state = "`ACTIVE`: it has a next due time. `PAUSED`: it was paused. `ENDED`: it has no due \
                 time left.";
    Schema::object()
        .must("id", Schema::uuid(), "The id of the schedule.")
        .may("name", names::label(), NAME)
        .must("state", Schema::word::<ScheduleState>(), state)
        .may("every", every(), EVERY)
        .may("daily", time_of_day(Schema::object()), DAILY)
        .must("start", names::instant(), START)
        .may("end", names::instant(), END)
        .must(
            "created",
            names::instant(),
            "When the schedule was created.",
        )
        .may(
            "next",
            names::instant(),
            "The next due time; it is past while its run waits.",
        )
        .may("last", run(), "The last due time that was run.")
}

fn run() -> Schema {
    let reason = "Why there is no job. `NO_DEVICE`: no device matches `filter`. \
                  `TOO_MANY_DEVICES`: more than {{job_devices_max}} match. `TOO_BROAD`: the prefix \
                  in `filter` matches too many identifiers. `REQUESTS_OPEN`: each device has a \
                  request of an earlier run that is not final.";
    Schema::object()
        .must(
            "due",
            names::instant(),
            "The due time; of several that passed, the first.",
        )
        .must("time", names::instant(), "When it was run.")
        .may("jobId", Schema::uuid(), "The id of its job.")
        .may("reason", Schema::word::<SkipReason>(), reason)
        .named("ScheduledRun")
}

fn every() -> Schema {
    Schema::whole(1..=u64::from(SCHEDULE_EVERY_S_MAX)).bounded_by("minimum", "schedule_every_min_s")
}

fn time_of_day(object: Schema) -> Schema {
    let at = Schema::text().pattern("^([01][0-9]|2[0-3]):[0-5][0-9]$");
    let zone = Schema::text().pattern("^[A-Za-z0-9_+/-]+$");
    object
        .must("at", at.example("06:30"), "The time of day, `HH:MM`.")
        .must(
            "zone",
            zone.example("Europe/Berlin"),
            "The time zone: an IANA time zone name.",
        )
}

const NAME: &str = "A name for people.";

const EVERY: &str = "The seconds between two due times.";

const DAILY: &str = "A time of day in a time zone.";

const START: &str = "No due time is before (UTC). Default: the creation.";

const END: &str = "No due time is after (UTC).";

const REQUEST: &str = "The request that each job creates, and the devices: the body of a call for \
                       several devices, without `notBefore` and `dryRun`, and with the `protocol`.";
