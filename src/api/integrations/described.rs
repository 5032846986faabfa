//! Which operations manage webhooks and their dead letters? The OpenAPI descriptions.

use engine::delivery::destination::{
    BATCH_EVENTS_MAX, BATCH_WAIT_MS_DEFAULT, BATCH_WAIT_MS_MAX, DestinationState,
};
use engine::event::Lifecycle;
use engine::limits::{INTEGRATIONS_MAX, WEBHOOK_URL_BYTES_MAX};

use super::request_body::type_words;
use crate::api::destinations::MASKED;
use crate::api::destinations::described::{DescribedKind, FAILURE_REASON, TYPE, with_backlog};
use crate::api::openapi::{ApiOperation, Node, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// The URL in examples.
const URL_EXAMPLE: &str = "https://example.com/devices/:deviceId:";

/// Webhooks in descriptions.
const WEBHOOK: DescribedKind = DescribedKind {
    tag: Tag::Clouds,
    noun: "webhook",
    failed: "INTEGRATION_FAILED",
};

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "The service POSTs each event of the customer's devices to `url` as JSON. Delivery \
                is at least once and in order per device. Events from before the creation are not \
                delivered.\n\nThe placeholders `:deviceId:`, `:iccid:`, `:imsi:` and `:ip:` in \
                the path and query of `url` and in header values are replaced by the values of \
                the event's device, or by `none` if a value is unknown. The URL must use `https`, \
                must not contain credentials, and must resolve to a public address, which is \
                checked at each connection. The operator can allow `http` and private \
                addresses.\n\nWith a `secret`, deliveries are signed as Standard Webhooks \
                specifies.";
    ApiOperation::new("createWebhook", Tag::Clouds, "Create a webhook")
        .description(text)
        .json(new_webhook(), "The webhook to create.")
        .answer(201, webhook(), "The created webhook.")
        .answer_header(201, "Location", Schema::text(), "The path of the webhook.")
        .leads_to(
            201,
            &[
                "getWebhook",
                "amendWebhook",
                "restartWebhook",
                "listDeadLetters",
                "replayDeadLetters",
            ],
            &[("webhook", "$response.body#/id")],
        )
        .once(
            &["TOO_MANY_DESTINATIONS"],
            &format!("the customer has {INTEGRATIONS_MAX} webhooks and brokers, the maximum."),
        )
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let operation = ApiOperation::new("listWebhooks", Tag::Clouds, "List webhooks")
        .description("Returns the webhooks of the customer, oldest first.");
    paged(operation).answer(200, page_of(webhook()), "A page of webhooks.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    let text = "Returns the webhook with its backlog. Header values are returned as they were \
                given. The secret is never returned.";
    ApiOperation::new("getWebhook", Tag::Clouds, "Get a webhook")
        .description(text)
        .answer(200, followed(), "The webhook and its backlog.")
}

/// PATCH.
pub(in crate::api) fn amend() -> ApiOperation {
    let text = "Changes only the given fields. `headers` and `eventTypes` replace the previous \
                values as a whole, so send `headers` with their values or leave them out. \
                `\"secret\": null` removes the secret, `\"batch\": null` ends batches. Events \
                that wait for delivery use the new values. A webhook in state \
                `INTEGRATION_FAILED` stays in that state until it is restarted.";
    ApiOperation::new("amendWebhook", Tag::Clouds, "Update a webhook")
        .description(text)
        .json(amended_webhook(), "The fields to change.")
        .answer(200, webhook(), "The updated webhook.")
        .faults(&["READ_ONLY"])
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    let text = "Also deletes its waiting events and its dead letters. A delivery in progress may \
                still arrive.";
    ApiOperation::new("deleteWebhook", Tag::Clouds, "Delete a webhook")
        .description(text)
        .answer_empty(204, "The webhook is deleted.")
}

/// POST test.
pub(in crate::api) fn test() -> ApiOperation {
    let text = "Sends one `TEST_MESSAGE` with the headers and the signature of the webhook, and \
                waits for the response of the endpoint. There is one attempt, in any state of \
                the webhook, and the state does not change.";
    ApiOperation::new("testWebhook", Tag::Clouds, "Send a test event")
        .description(text)
        .answer(200, tested(), "The result of the delivery.")
}

/// POST restart.
pub(in crate::api) fn restart() -> ApiOperation {
    let text = "Resumes delivery after `INTEGRATION_FAILED`. Dead letters stay until they are \
                replayed. In any other state this has no effect.";
    ApiOperation::new("restartWebhook", Tag::Clouds, "Restart a webhook")
        .description(text)
        .answer(200, webhook(), "The webhook.")
}

/// GET dead letters.
pub(in crate::api) fn letters() -> ApiOperation {
    WEBHOOK.letters("listDeadLetters")
}

/// DELETE one dead letter.
pub(in crate::api) fn discard() -> ApiOperation {
    WEBHOOK.discard("discardDeadLetter")
}

/// DELETE all dead letters.
pub(in crate::api) fn discard_all() -> ApiOperation {
    WEBHOOK.discard_all("discardDeadLetters")
}

/// POST replay.
pub(in crate::api) fn replay() -> ApiOperation {
    WEBHOOK.replay("replayDeadLetters", followed())
}

fn new_webhook() -> Schema {
    Schema::closed()
        .must("name", names::label(), NAME)
        .must("url", url(), URL)
        .may("headers", headers(), HEADERS)
        .may(
            "eventTypes",
            requested_types(),
            &format!("{TYPES} Default: all but `ACTION_RESULT`."),
        )
        .may(
            "jsonPayloadEnabled",
            Schema::truth(),
            &format!("{JSON_PAYLOAD} Default: `false`."),
        )
        .may("batch", batch(), &format!("{BATCH} Default: none."))
        .may("secret", secret(), SECRET)
        .named("NewWebhook")
}

fn amended_webhook() -> Schema {
    Schema::closed()
        .may_never_null("name", names::label(), NAME)
        .may_never_null("url", url(), URL)
        .may_never_null("headers", headers(), HEADERS)
        .may_never_null("eventTypes", requested_types(), TYPES)
        .may_never_null("jsonPayloadEnabled", Schema::truth(), JSON_PAYLOAD)
        .may("batch", batch(), BATCH)
        .may("secret", secret(), SECRET)
        .named("AmendedWebhook")
}

/// The display name.
pub(in crate::api) const NAME: &str = "The display name.";

const URL: &str = "The URL that events are POSTed to.";

/// The types of events.
pub(in crate::api) const TYPES: &str = "The event types to deliver.";

/// How JSON of devices is delivered.
pub(in crate::api) const JSON_PAYLOAD: &str = concat!(
    "If `true`, UDP and CoAP data that is valid JSON is delivered as JSON instead of a base64 ",
    "string. LwM2M values are always typed."
);

const HEADERS: &str = "HTTP headers sent with each event, as a map of names to values. At most 20 \
                       headers, 4 KiB each, 8 KiB in total. `Authorization`, `Content-Type`, \
                       `Accept` and `User-Agent` replace the defaults of the service. Headers \
                       that HTTP itself uses, such as `Host`, and names that begin with \
                       `webhook-` or `proxy-` are rejected.";

const SECRET: &str = "The signing secret (Standard Webhooks): `whsec_` followed by 24 to 64 bytes \
                      in base64. Without a secret, events are not signed.";

/// A webhook in responses.
fn webhook() -> Schema {
    webhook_body().named("Webhook")
}

fn followed() -> Schema {
    with_backlog(webhook_body()).named("FollowedWebhook")
}

fn webhook_body() -> Schema {
    let shown = Schema::map(Schema::only(MASKED));
    Schema::object()
        .must("id", Schema::uuid(), "The id of the webhook.")
        .must("name", names::label(), NAME)
        .must("url", Schema::text().example(URL_EXAMPLE), URL)
        .must(
            "headers",
            shown,
            "The names of the HTTP headers sent with each event. Values are not shown.",
        )
        .must("eventTypes", types_shown(), TYPES)
        .must("jsonPayloadEnabled", Schema::truth(), JSON_PAYLOAD)
        .may("batch", batch_shown(), BATCH)
        .must("secretSet", Schema::truth(), "Whether a secret is set.")
        .must("state", Schema::word::<DestinationState>(), STATE)
        .may("failureReason", Schema::text(), FAILURE_REASON)
        .must(
            "replaying",
            Schema::truth(),
            "Whether a replay is queueing dead letters. `false` means that all of them are \
             queued, not that they are delivered.",
        )
        .must("created", names::instant(), "The creation time.")
        .must(
            "updated",
            names::instant(),
            "The time of the last change of the webhook or its state.",
        )
}

const STATE: &str = "`ROLLOUT_DONE`: no event was delivered yet. `INTEGRATION_ACTIVE`: events are \
                     delivered or retried. `INTEGRATION_FAILED`: all attempts for an event \
                     failed; events go to the dead letters until the webhook is restarted.";

const BATCH: &str = "If set, events of several devices are sent in one request: \
                     `{\"events\": […]}`, each as it would be sent alone, those of a device in \
                     order. Only the status of the response counts, for all of them. \
                     `webhook-id` is the id of the request, and placeholders are replaced by \
                     `none`.";

fn batch() -> Schema {
    let events = Schema::whole(1..=BATCH_EVENTS_MAX.into());
    let wait = Schema::whole(0..=BATCH_WAIT_MS_MAX.into());
    Schema::closed()
        .may(
            "maxEvents",
            events,
            &format!("{BATCH_EVENTS} Default: {BATCH_EVENTS_MAX}."),
        )
        .may(
            "maxWaitMs",
            wait,
            &format!("{BATCH_WAIT} Default: {BATCH_WAIT_MS_DEFAULT}."),
        )
        .named("WantedBatch")
}

fn batch_shown() -> Schema {
    let events = Schema::whole(1..=BATCH_EVENTS_MAX.into());
    let wait = Schema::whole(0..=BATCH_WAIT_MS_MAX.into());
    Schema::object()
        .must("maxEvents", events, BATCH_EVENTS)
        .must("maxWaitMs", wait, BATCH_WAIT)
        .named("Batch")
}

const BATCH_EVENTS: &str = "The most events of a request.";

const BATCH_WAIT: &str = "How long an event waits for others, in milliseconds.";

fn url() -> Schema {
    let url = Schema::text_of(1..=WEBHOOK_URL_BYTES_MAX);
    let url = url.pattern(r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\]+$");
    url.example(URL_EXAMPLE)
}

fn headers() -> Schema {
    let example = serde_json::json!({ "Authorization": "Bearer 7b0cf", "X-Device": ":deviceId:" });
    Schema::map(Schema::text()).example(Node::from(example))
}

/// The types of events in a request.
pub(in crate::api) fn requested_types() -> Schema {
    let event_type = Schema::closed()
        .must("type", Schema::one_of_words(type_words()), TYPE)
        .may("kinds", kinds().at_least_one(), KINDS);
    types_of(event_type.named("WantedEventType"))
}

/// The types of events in a response.
pub(in crate::api) fn types_shown() -> Schema {
    let event_type = Schema::object()
        .must("type", Schema::one_of_words(type_words()), TYPE)
        .may("kinds", kinds(), KINDS);
    types_of(event_type.named("EventType"))
}

fn kinds() -> Schema {
    let example = serde_json::json!(["REGISTERED", "AWAKE"]);
    Schema::list(Schema::word::<Lifecycle>()).example(Node::from(example))
}

const KINDS: &str = "Of `LIFECYCLE` alone: the kinds of events. Default: all but `AWAKE` and \
                     `ASLEEP`, which only integrations receive that name them.";

fn types_of(event_type: Schema) -> Schema {
    let example = serde_json::json!([{ "type": "TELEMETRY_DATA" }, { "type": "LIFECYCLE" }]);
    let types = Schema::list(event_type).at_least_one();
    types.example(Node::from(example))
}

fn secret() -> Schema {
    let secret = Schema::text().pattern("^(whsec_)?[A-Za-z0-9+/]{32,86}={0,2}$");
    secret.example("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
}

/// The result of a test event.
pub(in crate::api) fn tested() -> Schema {
    let status = Schema::whole(100..=599);
    Schema::object()
        .must(
            "delivered",
            Schema::truth(),
            "Whether the endpoint answered with a 2xx status, or the broker with a PUBACK.",
        )
        .may(
            "statusCode",
            status.example(204_u64),
            "The HTTP status of the endpoint's response, if there was one.",
        )
        .must("message", Schema::text(), "The result, for people.")
        .named("TestedWebhook")
}
