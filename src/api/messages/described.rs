//! What does the history of a device look like? For the document of the API.

use serde_json::json;

use engine::action::{Protocol, Status};
use engine::admin_log::entry::Subject;
use engine::event::Lifecycle;
use engine::limits::TOPIC_BYTES_MAX;

use crate::api::action::described::result_data;
use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::sized;
use crate::api::words::Word;

/// GET.
pub(in crate::api) fn list() -> Operation {
    let text = "What the device said and did in the last days, newest first. Follow `nextCursor` \
                until there is none: messages that come meanwhile are not shown twice. A stretch \
                of long messages may have fewer than were asked for.";
    let operation = Operation::new("listMessages", Tag::Devices, "Read what a device said")
        .description(text)
        .query("cursor", id(), "The `nextCursor` of the stretch before.");
    sized(operation).answer(200, messages(), "A stretch of the history.")
}

/// One thing a device said or did.
pub(in crate::api) fn message() -> Schema {
    let received = Schema::text().pattern("^[0-9]+$").example("1795780800000");
    let telemetry = happening("TELEMETRY_DATA", "It told values.", &received)
        .may(
            "measured",
            received.clone(),
            "When the device measured them, in milliseconds since 1970, where it says so.",
        )
        .must(
            "source",
            Schema::only(Protocol::Lwm2m.word()),
            "How the values came.",
        )
        .must("cause", cause(), "Why the values came.")
        .must("payload", payload(), "The values.")
        .named("ValuesMessage");
    let data = happening("TELEMETRY_DATA", "It sent data.", &received)
        .must("source", plain(), "How the data came.")
        .must("payload", bytes(), "The data.")
        .named("DataMessage");
    let lifecycle = happening("LIFECYCLE", "It came or went.", &received)
        .must("lifecycle", coming_and_going(), "What it did.")
        .named("LifecycleMessage");
    let failure = happening("ERROR", "Something failed.", &received)
        .must("error", failure(), "What failed.")
        .named("ErrorMessage");
    let result = happening("ACTION_RESULT", "A request is final.", &received)
        .must("action", conclusion(), "The request.")
        .named("ActionResultMessage");
    Schema::one_of([telemetry, data, lifecycle, failure, result]).named("Message")
}

/// What messages of every type have.
fn happening(word: &'static str, text: &'static str, received: &Schema) -> Schema {
    Schema::object()
        .must("id", id(), "The message.")
        .must("type", Schema::only(word), text)
        .must(
            "received",
            received.clone(),
            "When, in milliseconds since 1970.",
        )
        .must("time", names::instant(), "When.")
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
            id(),
            "Where older messages begin, if there are any.",
        )
}

fn cause() -> Schema {
    let observation = Schema::object()
        .must("type", Schema::only("OBSERVATION"), "They are observed.")
        .must(
            "path",
            Schema::text().example("/3303/0/5700"),
            "What is observed.",
        )
        .named("ObservationCause");
    let action = Schema::object()
        .must("type", Schema::only("ACTION"), "A request asked for them.")
        .must("requestId", id(), "The request.")
        .named("ActionCause");
    let unasked = |word, text, name| {
        Schema::object()
            .must("type", Schema::only(word), text)
            .named(name)
    };
    let sent = unasked("SEND", "The device sent them unasked.", "SendCause");
    let why = "They were read because the device registered or updated its registration.";
    let reported = unasked("PASSIVE_REPORT", why, "PassiveReportCause");
    Schema::one_of([observation, action, sent, reported])
}

/// Values by path.
pub(in crate::api) fn payload() -> Schema {
    Schema::object()
        .must("type", Schema::only("JSON"), "How the values are written.")
        .must(
            "value",
            Schema::map(value()).named("ValuesByPath"),
            "The values by path.",
        )
        .named("Payload")
}

/// Data that a device sent over plain CoAP or bare UDP, as it came.
pub(in crate::api) fn bytes() -> Schema {
    Schema::object()
        .must("type", Schema::only("STRING"), "How the data is written.")
        .must(
            "value",
            Schema::text().example("MjEuNQ=="),
            "The bytes that came, in base64.",
        )
        .must("encoding", Schema::only("base64"), "That it is base64.")
        .may("topic", topic(), TOPIC_IS)
        .named("DataPayload")
}

/// What a device says that its data is about.
pub(in crate::api) fn topic() -> Schema {
    Schema::text_of(1..=TOPIC_BYTES_MAX).example("meters/temperature")
}

/// What a topic is told as.
pub(in crate::api) const TOPIC_IS: &str =
    "What the device says that it is about; over UDP it does not say.";

/// The protocols over which data comes.
pub(in crate::api) fn plain() -> Schema {
    Schema::one_of_words(vec![Protocol::Coap.word(), Protocol::Udp.word()])
}

/// What a device did.
pub(in crate::api) fn coming_and_going() -> Schema {
    Schema::object()
        .must("type", Schema::word::<Lifecycle>(), "What the device did.")
        .must("message", Schema::text(), "The same in a sentence.")
        .named("LifecycleEvent")
}

/// An entry of the log that is an error.
pub(in crate::api) fn failure() -> Schema {
    Schema::object()
        .must("id", id(), "The entry of the administration log.")
        .must("type", Schema::word::<Subject>(), "What it is about.")
        .must(
            "message",
            Schema::text().example("Translator[UserPayloadError]"),
            "What failed.",
        )
        .must("description", Schema::text(), "The detail.")
        .must(
            "payloadExists",
            Schema::truth(),
            "Whether the log has the bytes it is about.",
        )
        .named("ErrorEvent")
}

/// How a request ended.
pub(in crate::api) fn conclusion() -> Schema {
    Schema::object()
        .must("requestId", id(), "The request.")
        .must(
            "status",
            Schema::word::<Status>(),
            "Its status, which is final.",
        )
        .must("protocol", Schema::word::<Protocol>(), "How it was sent.")
        .may("resultData", result_data(), "What came of it.")
        .named("ActionResultEvent")
}

fn id() -> Schema {
    Schema::uuid().example("01935c5a-0000-7000-8000-000000000003")
}
