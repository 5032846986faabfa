//! What does the history of a device look like? For the document of the API.

use serde_json::json;

use engine::action::Protocol;
use engine::event::Lifecycle;

use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::sized;

/// GET.
pub(in crate::api) fn list() -> Operation {
    let text = "What the device said and did in the last days, newest first. Follow `nextCursor` \
                until there is none: messages that come meanwhile are not shown twice.";
    let operation = Operation::new("listMessages", Tag::Devices, "Read what a device said")
        .description(text)
        .query("cursor", id(), "The `nextCursor` of the stretch before.");
    sized(operation).answer(200, messages(), "A stretch of the history.")
}

/// One thing a device said or did.
pub(in crate::api) fn message() -> Schema {
    let received = Schema::text().pattern("^[0-9]+$").example("1795780800000");
    let telemetry = Schema::object()
        .must("id", id(), "The message.")
        .must("type", Schema::only("TELEMETRY_DATA"), "It told values.")
        .must(
            "received",
            received.clone(),
            "When, in milliseconds since 1970.",
        )
        .must("time", names::instant(), "When.")
        .must("source", Schema::word::<Protocol>(), "How the values came.")
        .must("cause", cause(), "Why the values came.")
        .must("payload", payload(), "The values.")
        .named("ValuesMessage");
    let lifecycle = Schema::object()
        .must("id", id(), "The message.")
        .must("type", Schema::only("LIFECYCLE"), "It came or went.")
        .must("received", received, "When, in milliseconds since 1970.")
        .must("time", names::instant(), "When.")
        .must("lifecycle", coming_and_going(), "What it did.")
        .named("LifecycleMessage");
    Schema::one_of([telemetry, lifecycle]).named("Message")
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
    Schema::one_of([observation, action])
}

fn payload() -> Schema {
    Schema::object()
        .must("type", Schema::only("JSON"), "How the values are written.")
        .must(
            "value",
            Schema::map(value()).named("ValuesByPath"),
            "The values by path.",
        )
        .named("Payload")
}

fn coming_and_going() -> Schema {
    Schema::object()
        .must("type", Schema::word::<Lifecycle>(), "What the device did.")
        .must("message", Schema::text(), "The same in a sentence.")
        .named("LifecycleEvent")
}

fn id() -> Schema {
    Schema::uuid().example("01935c5a-0000-7000-8000-000000000003")
}
