//! How is a device asked to do something? For the document of the API.

pub(in crate::api) mod coap;
pub(in crate::api) mod lwm2m;
pub(in crate::api) mod udp;

use engine::action::{Mode, Protocol, Status};
use engine::limits::SEND_ATTEMPTS_MAX;
use engine::promise::KEY_CHARACTERS_MAX;
use engine::query::ActionOrder;

use super::asked::EXPIRY_S_MAX;
use crate::api::action::described::{action, followed};
use crate::api::once::HEADER;
use crate::api::openapi::{Operation as Described, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};
use crate::api::words::Word;

/// POST for one device, whatever carries what it is asked.
fn create(
    id: &'static str,
    summary: &'static str,
    text: &str,
    body: Schema,
    refusal: (&'static str, &str),
) -> Described {
    let (code, refused) = refusal;
    let refused = format!(
        "{refused}, or too much waits for the device already; or the key names another call, or \
         one that is under way (see `Retry-After`)."
    );
    let codes = [
        code,
        "QUEUE_FULL",
        "IDEMPOTENCY_KEY_IN_USE",
        "IDEMPOTENCY_KEY_REUSED",
    ];
    Described::new(id, Tag::Actions, summary)
        .description(format!("{text}\n\n{QUEUED}"))
        .header(HEADER, key(), ONCE)
        .json(body, "What the device is to be asked.")
        .answer(202, accepted(), "The request is queued.")
        .leads_to(
            202,
            &["getAction", "cancelAction"],
            &[("request", "$response.body#/id")],
        )
        .refusal(409, &codes, &refused)
        .retried_sometimes(409)
}

/// POST for several devices, whatever carries what they are asked.
fn create_many(id: &'static str, summary: &'static str, body: Schema) -> Described {
    let text = "Asks the same of several devices. What one of them refuses does not concern the \
                others: the answer says which devices were asked, by which requests, and why each \
                of the others was not.";
    let refused = "The key names another call, or one that is under way (see `Retry-After`).";
    let codes = ["IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_KEY_REUSED"];
    let asked = "Every device was asked, or it is said why not.";
    Described::new(id, Tag::Actions, summary)
        .description(text)
        .header(HEADER, key(), ONCE)
        .json(body, "What the devices are to be asked.")
        .answer(202, many(), asked)
        .refusal(409, &codes, refused)
        .retried_sometimes(409)
}

/// GET one.
pub(in crate::api) fn show() -> Described {
    Described::new("getAction", Tag::Actions, "Read an action request")
        .description("Requests are kept for 7 days.")
        .answer(
            200,
            followed(),
            "The request as it stands, with what happened to it.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> Described {
    let operation = Described::new("listActions", Tag::Actions, "List action requests")
        .description("The requests of all devices of the customer.");
    listed(operation)
}

/// GET those that can still change.
pub(in crate::api) fn active() -> Described {
    let summary = "List action requests that are not final";
    let operation = Described::new("listActiveActions", Tag::Actions, summary)
        .description("The requests that are `SCHEDULED` or `IN_PROGRESS`.");
    listed(operation)
}

/// GET those that are final.
pub(in crate::api) fn archived() -> Described {
    let summary = "List action requests that are final";
    let operation = Described::new("listArchivedActions", Tag::Actions, summary)
        .description("The requests that are `SUCCEEDED`, `FAILED` or `CANCELLED`.");
    listed(operation)
}

fn listed(operation: Described) -> Described {
    let device = "Requests of this device alone; of one that does not exist there are none.";
    let newest_first = ActionOrder::CreatedDescending.word();
    let operation = operation
        .query("deviceId", names::device_id(), device)
        .query(
            "protocol",
            Schema::word::<Protocol>(),
            "Requests over this protocol alone.",
        )
        .query(
            "status",
            Schema::word::<Status>(),
            "Requests that stand here alone.",
        )
        .query(
            "sort",
            Schema::word::<ActionOrder>().default(newest_first),
            "The order: by creation or by the last change, with `-` the newest first.",
        );
    paged(operation).answer(200, page_of(action()), "A page of requests.")
}

/// DELETE one.
pub(in crate::api) fn cancel() -> Described {
    let refused = "The request is under way or final.";
    Described::new("cancelAction", Tag::Actions, "Take a request back")
        .description("A request that waits is cancelled, and never sent.")
        .answer(200, cancelled(), "The request is cancelled.")
        .refusal(409, &["REQUEST_NOT_SCHEDULED"], refused)
}

/// DELETE of a device.
pub(in crate::api) fn cancel_all() -> Described {
    let summary = "Take all waiting requests of a device back";
    Described::new("cancelActions", Tag::Actions, summary)
        .description("Cancels what waits; requests under way go on.")
        .answer(
            200,
            Schema::list(cancelled()),
            "The requests that are cancelled; possibly none.",
        )
}

/// How a device that speaks no LwM2M is refused to be asked now.
const NO_ADDRESS: (&str, &str) = (
    "DEVICE_HAS_NO_ADDRESS",
    "Nobody knows where the device is and the request was to be sent now",
);

const QUEUED: &str = "The request is queued and the call answered at once; the answer promises \
                      that the request survives a crash of the service. What came of it stands \
                      in the request later: follow it by its `id`. With `SEND_WHEN_ACTIVE` it \
                      waits for the device's next sign of life over any protocol. Requests of a \
                      device leave one at a time, oldest first.";

/// Devices of one call where the operator says nothing.
const BULK_DEVICES: u64 = 100;

/// The body that one of these is, each with its title.
fn one_of(cases: impl IntoIterator<Item = (Schema, &'static str)>, name: &'static str) -> Schema {
    let cases = cases.into_iter().map(|(case, title)| case.titled(title));
    Schema::one_of(cases).named(name)
}

/// The same for several devices.
fn one_of_many(
    cases: impl IntoIterator<Item = (Schema, &'static str)>,
    name: &'static str,
) -> Schema {
    let devices = Schema::list(names::device_id())
        .many(1..=BULK_DEVICES)
        .unique();
    let why = "The devices, each once. The operator may allow another number of them.";
    let with_devices = |(case, title): (Schema, _)| {
        let body = case.must("deviceIds", devices.clone(), why);
        (body, title)
    };
    one_of(cases.into_iter().map(with_devices), name)
}

/// The same body with what every request may say.
fn when(body: Schema) -> Schema {
    body.may(
        "requestMode",
        Schema::word::<Mode>().default(Mode::SendNow.word()),
        "When it is sent.",
    )
    .may(
        "expiresIn",
        Schema::whole(1..=u64::from(EXPIRY_S_MAX)),
        "Seconds after which a request that still waits fails; 48 hours where nothing is said.",
    )
}

/// The same body with what a request may say that the device answers.
fn as_often(body: Schema) -> Schema {
    let attempts = Schema::whole(1..=u64::from(SEND_ATTEMPTS_MAX)).default(1_u64);
    body.may(
        "sendAttempts",
        attempts,
        "Attempts that are permitted. An attempt ends when the device answers, or does not; \
         the next is made when the device is next heard.",
    )
}

/// A port of a device.
fn port(example: u64) -> Schema {
    Schema::whole(1..=u64::from(u16::MAX)).example(example)
}

/// A text in base64 (RFC 4648 section 4).
fn base64() -> Schema {
    const DIGIT: &str = "[A-Za-z0-9+/]";
    let one = format!("{DIGIT}[AQgw]==");
    let two = format!("{DIGIT}{{2}}[AEIMQUYcgkosw048]=");
    let pattern = format!("^({DIGIT}{{4}})*({one}|{two})?$");
    Schema::text().pattern(&pattern).example("AQID")
}

const ONCE: &str = "Names the call, by 1 to 255 visible ASCII characters. Made again within 24 \
                    hours, it is answered as before and does nothing more. A call that was \
                    refused leaves its key free.";

/// What a call is named by.
fn key() -> Schema {
    let visible = format!("^[!-~]{{1,{KEY_CHARACTERS_MAX}}}$");
    let example = "9f1c5b2e-7d43-4c8a-8a51-0b6d2f3e4a10";
    Schema::text().pattern(&visible).example(example)
}

fn many() -> Schema {
    let id = || Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    let accepted = Schema::object()
        .must("deviceId", names::device_id(), "The device.")
        .must(
            "requestId",
            id(),
            "What to follow and cancel the request by.",
        )
        .named("AcceptedRequest");
    let rejected = Schema::object()
        .must("deviceId", names::device_id(), "The device.")
        .must(
            "code",
            Schema::text().example("DEVICE_NOT_REGISTERED"),
            "For programs: the code it would have as an error.",
        )
        .must(
            "message",
            Schema::text().example("there is no such device"),
            "For people.",
        )
        .named("RejectedReason");
    Schema::object()
        .must(
            "acceptedRequests",
            Schema::list(accepted),
            "The devices that were asked, in the order given.",
        )
        .must(
            "rejectedDevices",
            Schema::list(names::device_id()),
            "The devices that were not asked, in the order given.",
        )
        .must(
            "message",
            Schema::text().example("Action requests scheduled: 1; devices rejected: 1."),
            "For people.",
        )
        .must(
            "rejectedReasons",
            Schema::list(rejected),
            "Why each of them was not.",
        )
        .named("ActionsAccepted")
}

fn accepted() -> Schema {
    let id = Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    Schema::object()
        .must("id", id, "What to follow and cancel the request by.")
        .must(
            "message",
            Schema::text().example("The action request was scheduled."),
            "For people.",
        )
}

fn cancelled() -> Schema {
    let id = Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    Schema::object()
        .must("id", id, "The request.")
        .must(
            "status",
            Schema::only(Status::Cancelled.word()),
            "Where it stands now.",
        )
        .named("CancelledRequest")
}
