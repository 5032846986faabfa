//! How is a device asked to do something? For the document of the API.

use engine::action::{Mode, Operation, Protocol, Status};
use engine::limits::{ACTION_DATA_BYTES_MAX, SEND_ATTEMPTS_MAX};
use engine::promise::KEY_CHARACTERS_MAX;
use engine::query::ActionOrder;

use super::asked::EXPIRY_S_MAX;
use crate::api::action::described::{action, followed};
use crate::api::once::HEADER;
use crate::api::openapi::rules::retried_sometimes;
use crate::api::openapi::{Operation as Described, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};
use crate::api::words::Word;

/// A number of an object, an instance or a resource.
const NUMBER: &str = "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}\
                      |655[0-2][0-9]|6553[0-5])";

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = "Queues a request and answers at once; the answer promises that the request \
                survives a crash of the service. What came of it stands in the request later: \
                follow it by its `id`.\n\nWith `SEND_NOW` the request leaves as soon as the \
                device can hear it; a device that sleeps hears it when it next wakes. With \
                `SEND_WHEN_ACTIVE` it waits for the device's next sign of life. Requests of a \
                device leave one at a time, oldest first.";
    let refused = "The device is not registered and the request was to be sent now, or too many \
                   requests of the device wait already; or the key names another call, or one \
                   that is under way (see `Retry-After`).";
    let codes = [
        "DEVICE_NOT_REGISTERED",
        "QUEUE_FULL",
        "IDEMPOTENCY_KEY_IN_USE",
        "IDEMPOTENCY_KEY_REUSED",
    ];
    let operation = Described::new("createAction", Tag::Actions, "Ask a device to do something")
        .description(text)
        .path(
            "protocol",
            Schema::only(Protocol::Lwm2m.word()),
            "How the device is asked. This version speaks LwM2M; `UDP` and `COAP` are answered 400 \
             `NOT_SUPPORTED_YET`.",
        )
        .header(HEADER, key(), ONCE)
        .json(lwm2m(), "What the device is to do.")
        .faults(&["NOT_SUPPORTED_YET"])
        .answer(202, accepted(), "The request is queued.")
        .leads_to(
            202,
            &["getAction", "cancelAction"],
            &[("request", "$response.body#/id")],
        )
        .refusal(409, &codes, refused);
    retried_sometimes(operation, 409)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    let text = "Asks the same of several devices. What one of them refuses does not concern the \
                others: the answer says which devices were asked, by which requests, and why each \
                of the others was not.";
    let refused = "The key names another call, or one that is under way (see `Retry-After`).";
    let codes = ["IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_KEY_REUSED"];
    let asked = "Every device was asked, or it is said why not.";
    let summary = "Ask several devices to do something";
    let operation = Described::new("createActions", Tag::Actions, summary)
        .description(text)
        .path(
            "protocol",
            Schema::only(Protocol::Lwm2m.word()),
            "How the devices are asked. This version speaks LwM2M; `UDP` and `COAP` are answered \
             400 `NOT_SUPPORTED_YET`.",
        )
        .header(HEADER, key(), ONCE)
        .json(lwm2m_of_many(), "What the devices are to do.")
        .faults(&["NOT_SUPPORTED_YET"])
        .answer(202, many(), asked)
        .refusal(409, &codes, refused);
    retried_sometimes(operation, 409)
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

fn lwm2m() -> Schema {
    Schema::one_of(lwm2m_cases().map(when)).named("Lwm2mAction")
}

fn lwm2m_of_many() -> Schema {
    let devices = Schema::list(names::device_id())
        .many(1..=BULK_DEVICES)
        .unique();
    let with_devices = |(case, title)| {
        let why = "The devices, each once. The operator may allow another number of them.";
        let body: Schema = when(case).must("deviceIds", devices.clone(), why);
        body.titled(title)
    };
    // Programs are made of this document that name their types by these titles, each once.
    let titles = [
        "Read or observe on several devices",
        "Write to several devices",
        "Execute on several devices",
    ];
    let cases = lwm2m_cases().into_iter().zip(titles);
    Schema::one_of(cases.map(with_devices)).named("Lwm2mActions")
}

fn lwm2m_cases() -> [Schema; 3] {
    let look = Schema::one_of_words(vec![
        Operation::Read.word(),
        Operation::ObserveStart.word(),
        Operation::ObserveEnd.word(),
    ]);
    let read = Schema::closed()
        .must(
            "action",
            look,
            "Read a value, be told each later one, or no more.",
        )
        .must("resourceAddress", anything(), ANY_ADDRESS)
        .titled("Read or observe");
    let value = format!(
        "The value as a text, of at most {ACTION_DATA_BYTES_MAX} bytes in UTF-8: `21.5`, `true`, \
         base64 for OPAQUE, ISO 8601 or seconds since 1970 for TIME, `o:i` for OBJLINK."
    );
    let write = Schema::closed()
        .must(
            "action",
            Schema::only(Operation::Write.word()),
            "Write a value.",
        )
        .must("resourceAddress", resource_or_instance(), ADDRESS)
        .must("data", data().example("21.5"), &value)
        .titled("Write");
    let execute = Schema::closed()
        .must(
            "action",
            Schema::only(Operation::Execute.word()),
            "Run something.",
        )
        .must("resourceAddress", resource().example("/3/0/4"), ADDRESS)
        .may("data", data(), "Arguments of the execution.")
        .titled("Execute");
    [read, write, execute]
}

const ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535.";

const ANY_ADDRESS: &str = "`/object/instance/resource`, each a number from 0 to 65535; an object, \
                           an instance of one or an instance of a resource will do as well.";

/// Devices of one call where the operator says nothing.
const BULK_DEVICES: u64 = 100;

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

fn anything() -> Schema {
    let any = format!("^(/{NUMBER}){{1,4}}$");
    Schema::text().pattern(&any).example("/3303/0/5700")
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
