//! Which operation streams events? The OpenAPI description.

use engine::limits::STREAM_TAGS_MS;

use super::{EVENT_STREAM, LAST_EVENT_ID};
use crate::api::integrations::request_body::type_words;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};

const EXAMPLE: &str = "AQsAAAAAAAAAAAAAAAAAAAAA";

/// GET.
pub(in crate::api) fn stream() -> ApiOperation {
    let tags_s = STREAM_TAGS_MS / 1_000;
    let text = format!(
        "Sends events as they are stored, as server-sent events, until the connection ends. \
         `event` is the type of the event and `data` the JSON that webhooks receive: one of \
         `WebhookTelemetryData`, `WebhookLifecycle`, `WebhookError` and `WebhookActionResult`. \
         The events of a device come in their order.\n\n`id` is a position. Send the last one as \
         `{LAST_EVENT_ID}`, with the same filters, to continue behind it: no event is lost or \
         repeated. A position that is older than {{{{history_retention_days}}}} continues with \
         the oldest event that is stored. Without `{LAST_EVENT_ID}` the stream begins now. At the \
         beginning, and after {{{{event_stream_heartbeat_ms}}}} without an event, a comment with \
         an `id` is sent.\n\nA connection that does not take what is sent is closed. The stream \
         ends when the token expires or is revoked, when the session of the console ends, and \
         when the service stops. A customer has {{{{event_streams_max}}}} streams at most; those \
         of the console are counted apart."
    );
    let types = Schema::text()
        .pattern(&types_pattern())
        .example("LIFECYCLE,ERROR");
    let types = Schema::any_of([types.clone(), Schema::list(types).at_least_one()]);
    let tags = Schema::list(names::tag()).at_least_one();
    ApiOperation::new("streamEvents", Tag::Clouds, "Stream events")
        .description(text)
        .query(
            "type",
            types,
            "Only events of this type. Several are separated by commas, or given one by one.",
        )
        .query(
            "deviceId",
            names::device_id(),
            "Only events of this device.",
        )
        .query(
            "tag",
            tags,
            &format!(
                "Only events of devices with this tag. With several, only of devices with all of \
                 them. Changed tags count after {tags_s} seconds at most; a removed device has \
                 none."
            ),
        )
        .header(
            LAST_EVENT_ID,
            Schema::text().example(EXAMPLE),
            "The `id` of the last message that was received.",
        )
        .answer_in(
            200,
            vec![(EVENT_STREAM, Schema::text())],
            "The events, each with the lines `id`, `event` and `data`.",
        )
        .refusal(404, &["NOT_FOUND"], "There is no device `deviceId`.")
        .refusal(
            409,
            &["TOO_MANY_STREAMS"],
            "{{event_streams_max}} streams of the customer are open.",
        )
}

fn types_pattern() -> String {
    let words = type_words().join("|");
    format!("^({words})(,({words}))*$")
}
