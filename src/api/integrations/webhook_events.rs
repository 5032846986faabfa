//! Which events are POSTed to webhooks? The `webhooks` section of the OpenAPI document.

use engine::action::Protocol;

use crate::api::messages::described::{
    TOPIC_IS, bytes, coming_and_going, conclusion, failure, payload, topic,
};
use crate::api::openapi::{Node, Schema, Tag, names};

/// The version of the envelope.
const VERSION: &str = "1.0.0";

/// An event that is sent to an endpoint of a customer.
pub(in crate::api) struct WebhookEvent {
    /// The operation id.
    pub(in crate::api) id: &'static str,
    /// The summary.
    pub(in crate::api) summary: &'static str,
    /// The description: when it is sent.
    pub(in crate::api) why: &'static str,
    /// The tag.
    pub(in crate::api) tag: Tag,
    /// The method, in lower case.
    pub(in crate::api) method: &'static str,
    /// The headers, with their descriptions.
    pub(in crate::api) headers: Vec<DescribedHeader>,
    /// The body.
    pub(in crate::api) body: Schema,
}

/// The name of a header, its value, and its description.
type DescribedHeader = (&'static str, Schema, &'static str);

/// Every event.
pub(in crate::api) fn all() -> [WebhookEvent; 5] {
    [
        posted(
            "telemetryData",
            "Device data",
            "LwM2M values, one event per measurement time, or data that a device sent over \
                  CoAP or UDP, one event per message.",
            telemetry(),
        ),
        posted(
            "lifecycle",
            "Device lifecycle",
            "A device registered or deregistered, or its registration expired.",
            lifecycle(),
        ),
        posted(
            "error",
            "Device error",
            "An entry of category `error` about a device was added to the administration \
                  log.",
            error(),
        ),
        posted(
            "actionResult",
            "Action result",
            "An action request became final. Only for webhooks with `ACTION_RESULT` in their \
                  `eventTypes`.",
            action_result(),
        ),
        posted(
            "testMessage",
            "Test event",
            "Sent by `testWebhook`.",
            test_message(),
        ),
    ]
}

fn posted(
    id: &'static str,
    summary: &'static str,
    why: &'static str,
    body: Schema,
) -> WebhookEvent {
    WebhookEvent {
        id,
        summary,
        why,
        tag: Tag::Clouds,
        method: "post",
        headers: headers().into(),
        body,
    }
}

/// The headers of each event, with their descriptions.
fn headers() -> [DescribedHeader; 3] {
    let time = Schema::text().pattern("^[0-9]+$").example("1795780800");
    let signature = Schema::text().example("v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=");
    [
        (
            "webhook-id",
            Schema::uuid(),
            "The id of the event, identical in every attempt. Use it to discard duplicates.",
        ),
        (
            "webhook-timestamp",
            time,
            "The time of this attempt, in Unix seconds.",
        ),
        (
            "webhook-signature",
            signature,
            "The Standard Webhooks signature over id, timestamp and body. Present if the webhook \
             has a secret.",
        ),
    ]
}

fn telemetry() -> Schema {
    let received = epoch_ms();
    envelope("TELEMETRY_DATA")
        .may(
            "measured",
            received,
            "The measurement time reported by the device, in Unix milliseconds.",
        )
        .must("source", Schema::word::<Protocol>(), "The protocol.")
        .must("payload", payload_data(), "The data.")
        .named("WebhookTelemetryData")
}

/// Values by path, data as received, or data as JSON.
fn payload_data() -> Schema {
    let json = Schema::object()
        .must("type", Schema::only("JSON"), "The data is JSON.")
        .must("value", Schema::anything(), "The JSON value.")
        .may("topic", topic(), TOPIC_IS)
        .named("JsonDataPayload");
    Schema::any_of([payload(), bytes(), json])
}

fn lifecycle() -> Schema {
    envelope("LIFECYCLE")
        .must("lifecycle", coming_and_going(), "The lifecycle event.")
        .named("WebhookLifecycle")
}

fn error() -> Schema {
    envelope("ERROR")
        .must("error", failure(), "The error.")
        .named("WebhookError")
}

fn action_result() -> Schema {
    envelope("ACTION_RESULT")
        .must("action", conclusion(), "The result of the request.")
        .named("WebhookActionResult")
}

fn test_message() -> Schema {
    let test = Schema::object()
        .must("message", Schema::text(), "A fixed text.")
        .named("TestEvent");
    envelope("TEST_MESSAGE")
        .must("test", test, "The test event.")
        .named("WebhookTestMessage")
}

/// The properties of every event.
fn envelope(event_type: &str) -> Schema {
    let device = Schema::object()
        .may("deviceId", names::device_id(), "The id of the device.")
        .may("iccid", names::iccid(), "The ICCID of the SIM.")
        .may("imsi", names::imsi(), "The IMSI of the SIM, if known.")
        .may("ip", names::ip(), "The IP address, if known.")
        .named("EventDevice");
    Schema::object()
        .must("id", Schema::uuid(), "The id of the event.")
        .must("type", Schema::only(event_type), "The event type.")
        .must(
            "received",
            epoch_ms(),
            "The time of the event, in Unix milliseconds.",
        )
        .must(
            "version",
            Schema::only(VERSION),
            "The version of this format.",
        )
        .must("device", device, "The device. Empty in a test event.")
}

fn epoch_ms() -> Schema {
    Schema::text().pattern("^[0-9]+$").example("1795780800000")
}

impl WebhookEvent {
    /// Its operation in the document, without the body.
    pub(in crate::api) fn node(&self) -> Node {
        Node::object()
            .with("operationId", self.id)
            .with("summary", self.summary)
            .with("description", self.why)
    }
}
