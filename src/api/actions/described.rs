//! Which operations create, read, list and cancel action requests? The OpenAPI descriptions.

pub(in crate::api) mod coap;
pub(in crate::api) mod lwm2m;
pub(in crate::api) mod udp;

use engine::action::{Mode, Protocol, Status, WakeUp};
use engine::limits::SEND_ATTEMPTS_MAX;
use engine::query::ActionOrder;

use super::request_body::EXPIRY_S_MAX;
use crate::api::action::described::{action, followed};
use crate::api::devices::described::filter;
use crate::api::jobs::described as jobs;
use crate::api::openapi::{ApiOperation as Described, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};
use crate::api::words::Word;

/// POST for one device, over any protocol.
fn create(
    id: &'static str,
    summary: &'static str,
    text: &str,
    body: Schema,
    refusal: (&'static str, &str),
) -> Described {
    let (code, refused) = refusal;
    let refused = format!(
        "`{code}`: {refused}. `ADDRESS_FORBIDDEN`: the address of the device is one of the \
         service itself, or a loopback, link-local or metadata address that the device was not \
         heard from and the mode is `SEND_NOW`. `QUEUE_FULL`: too many requests, or too many \
         bytes of data, or too many SMS, wait for the device. With `wakeUp`: \
         `DEVICE_HAS_NO_MSISDN`: the device has no `msisdn`. `NO_WAKE_UP_MESSAGE`: neither the \
         device nor the customer has a wake-up message. `WAKE_UP_LIMIT`: {{{{wake_up_sms_max}}}} \
         SMS woke the device within the last hour."
    );
    let codes = [
        code,
        "ADDRESS_FORBIDDEN",
        "QUEUE_FULL",
        "DEVICE_HAS_NO_MSISDN",
        "NO_WAKE_UP_MESSAGE",
        "WAKE_UP_LIMIT",
    ];
    Described::new(id, Tag::Actions, summary)
        .description(format!("{text}\n\n{QUEUED}"))
        .json(body, "The request to create.")
        .answer(202, accepted(), "The request is stored.")
        .leads_to(
            202,
            &["getAction", "cancelAction"],
            &[("request", "$response.body#/id")],
        )
        .once(&codes, &refused)
}

/// POST for several devices, over any protocol.
fn create_many(id: &'static str, summary: &'static str, body: Schema) -> Described {
    let text = "Creates the same request for several devices: those in `deviceIds`, or those that \
                match a `filter`. Each device is accepted or rejected on its own.\n\nWith \
                `deviceIds` the response lists the created requests and the reason for each \
                rejected device.\n\nWith `filter` the call creates a job and returns its id: the \
                requests are created one after the other in the background, at most one for each \
                device, also after a crash of the service. `filter` has the \
                conditions of `listDevices`, and every device matches an empty one. The devices \
                are those that match when the job is created, at most {{job_devices_max}}; if more \
                match, the response is 400 `TOO_MANY_DEVICES`. `dryRun` only counts them, and has \
                the same limit.";
    let created = "With `deviceIds` the created requests and the rejected devices, with `filter` \
                   the job.";
    let counted = "With `dryRun`: how many devices match, and the first of them.";
    let too_many = "{{jobs_running_max}} jobs of the customer are running.";
    Described::new(id, Tag::Actions, summary)
        .description(text)
        .json(body, "The request to create, and the devices.")
        .answer(200, jobs::dry_run(), counted)
        .answer(202, Schema::any_of([many(), jobs::created()]), created)
        .leads_to(
            202,
            &["getJob", "listJobDevices", "cancelJob"],
            &[("job", "$response.body#/jobId")],
        )
        .faults(&["TOO_BROAD", "TOO_MANY_DEVICES"])
        .once(&["TOO_MANY_JOBS"], too_many)
}

/// GET one.
pub(in crate::api) fn show() -> Described {
    Described::new("getAction", Tag::Actions, "Get an action request")
        .description(
            "Requests are deleted {{action_retention_days}} after creation, even if their device \
             was deleted before.",
        )
        .answer(200, followed(), "The request with its timeline.")
}

/// GET all.
pub(in crate::api) fn list() -> Described {
    let operation = Described::new("listActions", Tag::Actions, "List action requests")
        .description(
            "The requests of all devices of the customer, also of devices that were deleted.",
        );
    listed(operation)
}

/// GET those that are not final.
pub(in crate::api) fn active() -> Described {
    let summary = "List active action requests";
    let operation = Described::new("listActiveActions", Tag::Actions, summary)
        .description("The requests in status `SCHEDULED` or `IN_PROGRESS`.");
    listed(operation)
}

/// GET those that are final.
pub(in crate::api) fn archived() -> Described {
    let summary = "List archived action requests";
    let operation = Described::new("listArchivedActions", Tag::Actions, summary)
        .description("The requests in status `SUCCEEDED`, `FAILED` or `CANCELLED`.");
    listed(operation)
}

fn listed(operation: Described) -> Described {
    let device = "Only requests of devices that have or had this id. The list is empty if there \
                  are none.";
    let newest_first = ActionOrder::CreatedDescending.word();
    let operation = operation
        .query("deviceId", names::device_id(), device)
        .query(
            "protocol",
            Schema::word::<Protocol>(),
            "Only requests over this protocol.",
        )
        .query(
            "status",
            Schema::word::<Status>(),
            "Only requests in this status.",
        )
        .query(
            "sort",
            Schema::word::<ActionOrder>().default(newest_first),
            "Sort by creation or by last change. `-` sorts newest first.",
        );
    paged(operation).answer(200, page_of(action()), "A page of requests.")
}

/// DELETE one.
pub(in crate::api) fn cancel() -> Described {
    let refused = "The request is in progress or final.";
    Described::new("cancelAction", Tag::Actions, "Cancel an action request")
        .description("Cancels a `SCHEDULED` request. A cancelled request is never sent.")
        .answer(200, cancelled(), "The request is cancelled.")
        .refusal(409, &["REQUEST_NOT_SCHEDULED"], refused)
}

/// DELETE of a device.
pub(in crate::api) fn cancel_all() -> Described {
    let summary = "Cancel all scheduled action requests of a device";
    let cancelled = Schema::list(cancelled());
    Described::new("cancelActions", Tag::Actions, summary)
        .description("Requests in progress continue.")
        .answer(200, cancelled, "The cancelled requests. May be empty.")
}

/// Why a `SEND_NOW` request over UDP or CoAP is refused.
const NO_ADDRESS: (&str, &str) = (
    "DEVICE_HAS_NO_ADDRESS",
    "the mode is `SEND_NOW` and the device has neither an `ip` nor a registration",
);

/// Where a `SEND_NOW` request over UDP or CoAP goes, and when.
const SENT_NOW: &str = "With `SEND_NOW` the request is sent immediately to the `ip` of the device \
                        or, if it has none, to the address of its registration. If the device is \
                        registered in queue mode and asleep, the request waits until it wakes.";

const QUEUED: &str = "The call returns as soon as the request is durably stored: a request \
                      answered with 202 survives a crash of the service. Poll `getAction` with \
                      the returned `id` for the result. A `SEND_WHEN_ACTIVE` request waits for \
                      the next message from the device, over any protocol. The service sends \
                      requests to a device one at a time, oldest first. A request is `SCHEDULED` \
                      until it is sent, and can be cancelled until then; it is `IN_PROGRESS` \
                      from its first attempt on.";

/// A body that is one of these cases, each with its title.
fn one_of(cases: impl IntoIterator<Item = (Schema, &'static str)>, name: &'static str) -> Schema {
    let cases = cases.into_iter().map(|(case, title)| case.titled(title));
    Schema::one_of(cases).named(name)
}

/// The same for several devices.
fn one_of_many(
    cases: impl IntoIterator<Item = (Schema, &'static str)>,
    name: &'static str,
) -> Schema {
    let dry_run = "Only count the devices that match the filter.";
    let both = |(case, title): (Schema, &str)| {
        let [named, selected] = to_devices(case, title);
        [named, selected.may("dryRun", Schema::truth(), dry_run)]
    };
    Schema::one_of(cases.into_iter().flat_map(both)).named(name)
}

/// The same body for devices that are named, and for those that match a filter.
fn to_devices(body: Schema, title: &str) -> [Schema; 2] {
    let devices = Schema::list(names::device_id())
        .at_least_one()
        .bounded_by("maxItems", "bulk_devices_max")
        .unique();
    let why = "The devices, without duplicates.";
    let named = body.clone().must("deviceIds", devices, why);
    let selected = body.must("filter", filter(), "The devices that match all conditions.");
    [
        named.titled(title),
        selected.titled(&format!("{title} that match a filter")),
    ]
}

/// The request of a schedule, over any protocol.
pub(in crate::api) fn scheduled() -> Schema {
    let of = |protocol: Protocol| {
        move |(case, title): (Schema, &str)| {
            let only = Schema::only(protocol.word());
            to_devices(case.must("protocol", only, "The protocol."), title)
        }
    };
    let lwm2m = [
        "Scheduled read, list or end of an observation of devices",
        "Scheduled write to devices",
        "Scheduled execution on devices",
        "Scheduled creation on devices",
        "Scheduled deletion on devices",
        "Scheduled write of attributes to devices",
        "Scheduled write of an object instance to devices",
        "Scheduled read of several paths of devices",
        "Scheduled write of several paths to devices",
        "Scheduled observation of devices",
        "Scheduled observation of several paths of devices",
        "Scheduled end of an observation of several paths of devices",
    ];
    let coap = [
        "Scheduled CoAP request to devices",
        "Scheduled CoAP request with text to devices",
        "Scheduled CoAP request with bytes to devices",
    ];
    let udp = [
        "Scheduled text datagram to devices",
        "Scheduled binary datagram to devices",
    ];
    let lwm2m = lwm2m::kinds().into_iter().zip(lwm2m);
    let coap = coap::kinds().into_iter().zip(coap);
    let udp = udp::kinds().into_iter().zip(udp);
    let cases = lwm2m.flat_map(of(Protocol::Lwm2m));
    let cases = cases.chain(coap.flat_map(of(Protocol::Coap)));
    let cases = cases.chain(udp.flat_map(of(Protocol::Udp)));
    Schema::one_of(cases).named("ScheduledRequest")
}

/// The same body with the optional properties of every request.
fn when(body: Schema) -> Schema {
    body.may(
        "requestMode",
        Schema::word::<Mode>().default(Mode::SendNow.word()),
        "`SEND_NOW`: send as soon as the device is reachable. `SEND_WHEN_ACTIVE`: wait for the \
         next message from the device.",
    )
    .may(
        "expiresIn",
        Schema::whole(1..=u64::from(EXPIRY_S_MAX)),
        "The request fails if it is not final after this time, in seconds. Default: \
         {{action_expiry_s}}.",
    )
    .may(
        "wakeUp",
        Schema::word::<WakeUp>(),
        "`SMS`: if the device sleeps, it is sent its wake-up message once, and the request waits \
         for the next message from the device. A device sleeps if it is registered in queue mode \
         and its awake window is over, or if it is not registered and was not heard from for as \
         long. Not together with `notBefore`.",
    )
}

/// The same body with the time before which the request is not sent.
fn later(body: Schema) -> Schema {
    body.may(
        "notBefore",
        names::log_time(),
        "The request is not sent before this time (UTC), whatever the device does; it must be \
         before the request expires. At that time `SEND_NOW` sends the request if the device is \
         reachable. `SEND_WHEN_ACTIVE` waits for the first message from the device after it. The \
         device need not be registered or have an address before. A past time has no effect.",
    )
}

/// The same body with the number of attempts, for protocols in which the device responds.
fn as_often(body: Schema) -> Schema {
    let attempts = Schema::whole(1..=u64::from(SEND_ATTEMPTS_MAX)).default(1_u64);
    body.may(
        "sendAttempts",
        attempts,
        "The maximum number of attempts. An attempt that gets no response is repeated after the \
         next message from the device.",
    )
}

/// A port of a device.
fn port(example: u64) -> Schema {
    Schema::whole(1..=u64::from(u16::MAX)).example(example)
}

/// A base64 string (RFC 4648 section 4), with or without padding.
fn base64() -> Schema {
    const DIGIT: &str = "[A-Za-z0-9+/]";
    let one = format!("{DIGIT}[AQgw](==)?");
    let two = format!("{DIGIT}{{2}}[AEIMQUYcgkosw048]=?");
    let pattern = format!("^({DIGIT}{{4}})*({one}|{two})?$");
    Schema::text().pattern(&pattern).example("AQID")
}

fn many() -> Schema {
    let id = || Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    let accepted = Schema::object()
        .must("deviceId", names::device_id(), "The device.")
        .must("requestId", id(), "The id of the created request.")
        .named("AcceptedRequest");
    let rejected = Schema::object()
        .must("deviceId", names::device_id(), "The device.")
        .must(
            "code",
            Schema::text().example("DEVICE_NOT_REGISTERED"),
            "The error code, as in the error response of a call for one device.",
        )
        .must(
            "message",
            Schema::text().example("there is no such device"),
            "The reason, for people.",
        )
        .named("RejectedReason");
    Schema::object()
        .must(
            "acceptedRequests",
            Schema::list(accepted),
            "The devices with a created request, in the order given.",
        )
        .must(
            "rejectedDevices",
            Schema::list(names::device_id()),
            "The rejected devices, in the order given.",
        )
        .must(
            "message",
            Schema::text().example("Action requests scheduled: 1; devices rejected: 1."),
            "A summary for people.",
        )
        .must(
            "rejectedReasons",
            Schema::list(rejected),
            "The reason for each rejected device.",
        )
        .named("ActionsAccepted")
}

fn accepted() -> Schema {
    let id = Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    Schema::object()
        .must("id", id, "The id of the created request.")
        .must(
            "message",
            Schema::text().example("The action request was scheduled."),
            "A confirmation for people.",
        )
}

fn cancelled() -> Schema {
    let id = Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    Schema::object()
        .must("id", id, "The id of the request.")
        .must(
            "status",
            Schema::only(Status::Cancelled.word()),
            "The new status.",
        )
        .named("CancelledRequest")
}
