//! Which operation reads the message history of a device? The OpenAPI description.

use serde_json::json;

use engine::action::{Protocol, Status};
use engine::admin_log::entry::Subject;
use engine::event::{EventType, Lifecycle};
use engine::limits::TOPIC_BYTES_MAX;

use crate::api::action::described::result_data;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{cursor, sized};
use crate::api::sms::described::{received_sms, sms_report};
use crate::api::words::Word;

/// GET.
pub(in crate::api) fn list() -> ApiOperation {
    let text = "Returns the messages of a device, newest first: data, lifecycle events, errors, \
                action results and SMS. Messages are deleted after \
                {{history_retention_days}}. To read the next page, pass `nextCursor` as `cursor` \
                until a page has none. A page can have fewer than `pageSize` items, or none, \
                although more follow.";
    let operation = ApiOperation::new(
        "listMessages",
        Tag::Devices,
        "List the messages of a device",
    )
    .description(text)
    .query("cursor", cursor(), "The `nextCursor` of the previous page.")
    .query(
        "from",
        names::log_time(),
        "Only messages from this time on (UTC): `2026-11-24T12:00:00.000`. The milliseconds and \
         a final `Z` are optional.",
    )
    .query(
        "to",
        names::log_time(),
        "Only messages up to this time, in the same format.",
    )
    .query(
        "type",
        Schema::word::<EventType>(),
        "Only messages of this type.",
    )
    .query(
        "path",
        Schema::text()
            .pattern("^(/[0-9]{1,5}){1,4}$")
            .example("/3303/0/5700"),
        "Only messages with a value of this object, instance, resource or resource instance.",
    );
    sized(operation).answer(200, messages(), "A page of messages.")
}

/// One message of a device.
pub(in crate::api) fn message() -> Schema {
    let received = Schema::text().pattern("^[0-9]+$").example("1795780800000");
    let telemetry = happening("TELEMETRY_DATA", "LwM2M values.", &received)
        .may(
            "measured",
            received.clone(),
            "The measurement time reported by the device, in Unix milliseconds.",
        )
        .must(
            "source",
            Schema::only(Protocol::Lwm2m.word()),
            "The protocol.",
        )
        .must("cause", cause(), "Why the device sent the values.")
        .must("payload", payload(), "The values.")
        .named("ValuesMessage");
    let data = happening("TELEMETRY_DATA", "CoAP or UDP data.", &received)
        .must("source", plain(), "The protocol.")
        .must("payload", bytes(), "The data.")
        .named("DataMessage");
    let lifecycle = happening("LIFECYCLE", "A lifecycle event.", &received)
        .must("lifecycle", coming_and_going(), "The lifecycle event.")
        .named("LifecycleMessage");
    let failure = happening("ERROR", "An error.", &received)
        .must("error", failure(), "The error.")
        .named("ErrorMessage");
    let result = happening("ACTION_RESULT", "A final action request.", &received)
        .must("action", conclusion(), "The result of the request.")
        .named("ActionResultMessage");
    let received_sms = happening(
        "SMS_RECEIVED",
        "An SMS of the device, or a part of one.",
        &received,
    )
    .must(
        "sms",
        received_sms(),
        "The SMS, as the SMS forwarder sends it.",
    )
    .named("SmsReceivedMessage");
    let report = happening(
        "SMS_REPORT",
        "The final status of an SMS to the device.",
        &received,
    )
    .must(
        "sms",
        sms_report(),
        "The report, as the SMS forwarder sends it.",
    )
    .named("SmsReportMessage");
    let all = [
        telemetry,
        data,
        lifecycle,
        failure,
        result,
        received_sms,
        report,
    ];
    Schema::one_of(all).named("Message")
}

/// The properties of every message.
fn happening(word: &'static str, text: &'static str, received: &Schema) -> Schema {
    Schema::object()
        .must("id", id(), "The id of the message.")
        .must("type", Schema::only(word), text)
        .must(
            "received",
            received.clone(),
            "The time of the message, in Unix milliseconds.",
        )
        .must("time", names::instant(), "The same time in ISO 8601.")
}

/// The value of a resource.
pub(in crate::api) fn value() -> Schema {
    let texts = Schema::text().example("21.5");
    let cases = [
        Schema::number().example(json!(21.5)),
        Schema::truth(),
        texts,
    ];
    Schema::any_of(cases).or_null().named("Value")
}

fn messages() -> Schema {
    Schema::object()
        .must("items", Schema::list(message()), "The messages.")
        .may(
            "nextCursor",
            cursor(),
            "The cursor of the next, older page. Absent on the last page.",
        )
}

fn cause() -> Schema {
    let observation = Schema::object()
        .must("type", Schema::only("OBSERVATION"), "A notification.")
        .must(
            "path",
            Schema::text().example("/3303/0/5700"),
            "The observed path.",
        )
        .named("ObservationCause");
    let action = Schema::object()
        .must(
            "type",
            Schema::only("ACTION"),
            "The result of an action request.",
        )
        .must("requestId", id(), "The id of the action request.")
        .named("ActionCause");
    let composite = Schema::object()
        .must(
            "type",
            Schema::only("COMPOSITE_OBSERVATION"),
            "A notification of several paths.",
        )
        .must(
            "requestId",
            id(),
            "The request that started the observation.",
        )
        .named("CompositeObservationCause");
    let unasked = |word, text, name| {
        Schema::object()
            .must("type", Schema::only(word), text)
            .named(name)
    };
    let sent = unasked("SEND", "An LwM2M Send operation.", "SendCause");
    let why = "Passive reporting read the values after a registration or update.";
    let reported = unasked("PASSIVE_REPORT", why, "PassiveReportCause");
    Schema::one_of([observation, composite, action, sent, reported])
}

/// Values by path.
pub(in crate::api) fn payload() -> Schema {
    Schema::object()
        .must("type", Schema::only("JSON"), "The data is JSON.")
        .must(
            "value",
            Schema::map(value()).named("ValuesByPath"),
            "A map of each path to its typed value.",
        )
        .named("Payload")
}

/// Data that a device sent over plain CoAP or UDP, as received.
pub(in crate::api) fn bytes() -> Schema {
    Schema::object()
        .must("type", Schema::only("STRING"), "The data is a string.")
        .must(
            "value",
            Schema::text().example("MjEuNQ=="),
            "The received bytes, in base64.",
        )
        .must(
            "encoding",
            Schema::only("base64"),
            "The encoding of `value`.",
        )
        .may("topic", topic(), TOPIC_IS)
        .named("DataPayload")
}

/// The topic of data over plain CoAP.
pub(in crate::api) fn topic() -> Schema {
    Schema::text_of(1..=TOPIC_BYTES_MAX).example("meters/temperature")
}

/// The description of a topic.
pub(in crate::api) const TOPIC_IS: &str = "The topic the device gave. CoAP only.";

/// The protocols for data without LwM2M.
pub(in crate::api) fn plain() -> Schema {
    Schema::one_of_words(vec![Protocol::Coap.word(), Protocol::Udp.word()])
}

/// A lifecycle event.
pub(in crate::api) fn coming_and_going() -> Schema {
    Schema::object()
        .must("type", Schema::word::<Lifecycle>(), "The lifecycle event.")
        .must("message", Schema::text(), "The event, for people.")
        .named("LifecycleEvent")
}

/// A log entry of category `error`.
pub(in crate::api) fn failure() -> Schema {
    Schema::object()
        .must("id", id(), "The id of the log entry.")
        .must(
            "type",
            Schema::word::<Subject>(),
            "The subject of the entry.",
        )
        .must(
            "message",
            Schema::text().example("Translator[UserPayloadError]"),
            "The kind of entry: `Component[Kind]`.",
        )
        .must("description", Schema::text(), "The details, for people.")
        .must(
            "payloadExists",
            Schema::truth(),
            "Whether the log entry has a stored payload.",
        )
        .named("ErrorEvent")
}

/// The result of a final request.
pub(in crate::api) fn conclusion() -> Schema {
    Schema::object()
        .must("requestId", id(), "The id of the request.")
        .must("status", Schema::word::<Status>(), "The final status.")
        .must("protocol", Schema::word::<Protocol>(), "The protocol.")
        .may("resultData", result_data(), "The result.")
        .named("ActionResultEvent")
}

fn id() -> Schema {
    Schema::uuid().example("01935c5a-0000-7000-8000-000000000003")
}
