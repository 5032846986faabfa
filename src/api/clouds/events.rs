//! What is posted to webhooks? For the document of the API, which tells of it beside the calls.

use engine::action::Protocol;

use crate::api::messages::described::{
    TOPIC_IS, bytes, coming_and_going, conclusion, failure, payload, topic,
};
use crate::api::openapi::{Node, Schema, names};

/// The version of the envelope.
const VERSION: &str = "1.0.0";

/// Something that is posted to webhooks.
pub(in crate::api) struct Told {
    /// Its name for programs.
    pub(in crate::api) id: &'static str,
    /// Its name for people.
    pub(in crate::api) summary: &'static str,
    /// When it is told.
    pub(in crate::api) why: &'static str,
    /// Its body.
    pub(in crate::api) body: Schema,
}

/// Everything that is.
pub(in crate::api) fn all() -> [Told; 5] {
    [
        Told {
            id: "telemetryData",
            summary: "A device told values or sent data",
            why: "One for each time at which values were measured, and one for each message of \
                  data over plain CoAP or UDP.",
            body: telemetry(),
        },
        Told {
            id: "lifecycle",
            summary: "A device came or went",
            why: "Whenever a device registers, deregisters, or is not heard in time.",
            body: lifecycle(),
        },
        Told {
            id: "error",
            summary: "Something failed",
            why: "One for each entry of category `error` in the administration log that is about \
                  a device.",
            body: error(),
        },
        Told {
            id: "actionResult",
            summary: "A request is final",
            why: "To webhooks that ask for `ACTION_RESULT`.",
            body: action_result(),
        },
        Told {
            id: "testMessage",
            summary: "A test of the webhook",
            why: "Whenever somebody asks for it.",
            body: test_message(),
        },
    ]
}

/// The headers of each, with why they are there.
pub(in crate::api) fn headers() -> [(&'static str, Schema, &'static str); 3] {
    let time = Schema::text().pattern("^[0-9]+$").example("1795780800");
    let signature = Schema::text().example("v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=");
    [
        (
            "webhook-id",
            Schema::uuid(),
            "The event: the same at each try. Whoever has seen it passes it over.",
        ),
        (
            "webhook-timestamp",
            time,
            "When it was sent, in seconds since 1970.",
        ),
        (
            "webhook-signature",
            signature,
            "The signature of Standard Webhooks over id, time and body, where there is a secret.",
        ),
    ]
}

fn telemetry() -> Schema {
    let received = epoch_ms();
    envelope("TELEMETRY_DATA")
        .may(
            "measured",
            received,
            "When the values were measured, where the device says so.",
        )
        .must("source", Schema::word::<Protocol>(), "How it came.")
        .must("payload", told(), "What the device told.")
        .named("WebhookTelemetryData")
}

/// Values by path, data as it came, or data as the JSON it is.
fn told() -> Schema {
    let json = Schema::object()
        .must("type", Schema::only("JSON"), "How the data is written.")
        .must("value", Schema::anything(), "The JSON that came.")
        .may("topic", topic(), TOPIC_IS)
        .named("JsonDataPayload");
    Schema::any_of([payload(), bytes(), json])
}

fn lifecycle() -> Schema {
    envelope("LIFECYCLE")
        .must("lifecycle", coming_and_going(), "What the device did.")
        .named("WebhookLifecycle")
}

fn error() -> Schema {
    envelope("ERROR")
        .must("error", failure(), "What failed.")
        .named("WebhookError")
}

fn action_result() -> Schema {
    envelope("ACTION_RESULT")
        .must("action", conclusion(), "How the request ended.")
        .named("WebhookActionResult")
}

fn test_message() -> Schema {
    let test = Schema::object()
        .must("message", Schema::text(), "That it is a test.")
        .named("TestEvent");
    envelope("TEST_MESSAGE")
        .must("test", test, "That it is a test.")
        .named("WebhookTestMessage")
}

/// What every event has.
fn envelope(event_type: &str) -> Schema {
    let device = Schema::object()
        .may("deviceId", names::device_id(), "What it is called.")
        .may("iccid", names::iccid(), "Its SIM.")
        .may(
            "imsi",
            names::imsi(),
            "The subscriber of its SIM, where known.",
        )
        .may("ip", names::ip(), "Its address, where known.")
        .named("EventDevice");
    Schema::object()
        .must("id", Schema::uuid(), "The event.")
        .must("type", Schema::only(event_type), "Its type.")
        .must(
            "received",
            epoch_ms(),
            "When it happened, in milliseconds since 1970.",
        )
        .must(
            "version",
            Schema::only(VERSION),
            "The version of this form.",
        )
        .must(
            "device",
            device,
            "The device it is about; of a test message none.",
        )
}

fn epoch_ms() -> Schema {
    Schema::text().pattern("^[0-9]+$").example("1795780800000")
}

impl Told {
    /// What the document says of it beside its body.
    pub(in crate::api) fn node(&self) -> Node {
        Node::object()
            .with("operationId", self.id)
            .with("summary", self.summary)
            .with("description", self.why)
    }
}
