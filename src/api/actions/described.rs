//! How is a device asked to do something? For the document of the API.

use engine::action::{Mode, Protocol, Status};
use engine::limits::{ACTION_DATA_BYTES_MAX, SEND_ATTEMPTS_MAX};

use super::{EXPIRY_S_MAX, NEWEST_FIRST};
use crate::api::action::described::action;
use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};
use crate::api::words::Word;

/// A number of an object, an instance or a resource.
const NUMBER: &str = "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}\
                      |655[0-2][0-9]|6553[0-5])";

/// POST for one device.
pub(in crate::api) fn create() -> Operation {
    let text = "Queues a request and answers at once; the answer promises that the request \
                survives a crash of the service. What came of it stands in the request later: \
                follow it by its `id`.\n\nWith `SEND_NOW` the request leaves as soon as the \
                device can hear it; a device that sleeps hears it when it next wakes. With \
                `SEND_WHEN_ACTIVE` it waits for the device's next sign of life. Requests of a \
                device leave one at a time, oldest first.";
    let refused = "The device is not registered and the request was to be sent now, or too many \
                   requests of the device wait already.";
    Operation::new("createAction", Tag::Actions, "Ask a device to do something")
        .description(text)
        .path(
            "protocol",
            Schema::only(Protocol::Lwm2m.word()),
            "How the device is asked. This version speaks LwM2M.",
        )
        .json(lwm2m(), "What the device is to do.")
        .answer(202, accepted(), "The request is queued.")
        .refusal(409, &["DEVICE_NOT_REGISTERED", "QUEUE_FULL"], refused)
}

/// GET one.
pub(in crate::api) fn show() -> Operation {
    Operation::new("getAction", Tag::Actions, "Read an action request")
        .description("Requests are kept for 7 days.")
        .answer(200, action(), "The request as it stands.")
}

/// GET all.
pub(in crate::api) fn list() -> Operation {
    let operation = Operation::new("listActions", Tag::Actions, "List action requests")
        .description("The requests of all devices of the customer.")
        .query(
            "deviceId",
            names::device_id(),
            "Requests of this device alone.",
        )
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
            Schema::only(NEWEST_FIRST).default(NEWEST_FIRST),
            "The order.",
        );
    paged(operation).answer(200, page_of(action()), "A page of requests.")
}

/// DELETE one.
pub(in crate::api) fn cancel() -> Operation {
    let refused = "The request is under way or final.";
    Operation::new("cancelAction", Tag::Actions, "Take a request back")
        .description("A request that waits is cancelled, and never sent.")
        .answer(200, cancelled(), "The request is cancelled.")
        .refusal(409, &["REQUEST_NOT_SCHEDULED"], refused)
}

/// DELETE of a device.
pub(in crate::api) fn cancel_all() -> Operation {
    let summary = "Take all waiting requests of a device back";
    Operation::new("cancelActions", Tag::Actions, summary)
        .description("Cancels what waits; requests under way go on.")
        .answer(
            200,
            Schema::list(cancelled()),
            "The requests that are cancelled; possibly none.",
        )
}

fn lwm2m() -> Schema {
    let read = Schema::closed()
        .must("action", Schema::only("read"), "Read a value.")
        .must("resourceAddress", resource_or_instance(), ADDRESS)
        .titled("Read");
    let write = Schema::closed()
        .must("action", Schema::only("write"), "Write a value.")
        .must("resourceAddress", resource_or_instance(), ADDRESS)
        .must("data", data().example("21.5"), "The value, as a text.")
        .titled("Write");
    let execute = Schema::closed()
        .must("action", Schema::only("execute"), "Run something.")
        .must("resourceAddress", resource().example("/3/0/4"), ADDRESS)
        .may("data", data(), "Arguments of the execution.")
        .titled("Execute");
    Schema::one_of([read, write, execute].map(when)).named("Lwm2mAction")
}

const ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535.";

/// The same body with what every request may say.
fn when(body: Schema) -> Schema {
    let attempts = Schema::whole(1..=u64::from(SEND_ATTEMPTS_MAX)).default(1_u64);
    body.may(
        "requestMode",
        Schema::word::<Mode>().default(Mode::SendNow.word()),
        "When it is sent.",
    )
    .may(
        "sendAttempts",
        attempts,
        "Attempts that are permitted. An attempt ends when the device answers, or does not; \
         the next is made when the device is next heard.",
    )
    .may(
        "expiresIn",
        Schema::whole(1..=u64::from(EXPIRY_S_MAX)),
        "Seconds after which a request that still waits fails; 48 hours where nothing is said.",
    )
}

fn resource() -> Schema {
    let three = format!("^/{NUMBER}/{NUMBER}/{NUMBER}$");
    Schema::text().pattern(&three)
}

fn resource_or_instance() -> Schema {
    let four = format!("^/{NUMBER}/{NUMBER}/{NUMBER}(/{NUMBER})?$");
    Schema::text().pattern(&four).example("/3303/0/5700")
}

/// A value. Its type is that of the resource, so it is a text whatever it means.
fn data() -> Schema {
    Schema::text_of(0..=ACTION_DATA_BYTES_MAX)
}

fn accepted() -> Schema {
    let id = Schema::uuid().example("01935c5a-0000-7000-8000-000000000001");
    Schema::object()
        .must("id", id, "What to follow and cancel the request by.")
        .must("message", Schema::text(), "For people.")
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
