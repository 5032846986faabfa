//! How are webhooks made, followed and revived? For the document of the API.

use engine::delivery::destination::DestinationState;
use engine::event::EventType;
use engine::limits::{DESTINATIONS_MAX, WEBHOOK_URL_BYTES_MAX};

use crate::api::openapi::{Node, Operation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged, sized};

/// A URL as an example shows it.
const URL_EXAMPLE: &str = "https://example.com/devices/:deviceId:";

/// POST.
pub(in crate::api) fn create() -> Operation {
    let text = "From the answer on, what the devices of the customer say and do is posted to \
                `url`, each event at least once and those of a device in order. What happened \
                before is not told.\n\n`:deviceId:`, `:iccid:`, `:imsi:` and `:ip:` in path and \
                query of `url` and in the values of `headers` are replaced by what the event is \
                about, or by `none` where that is not known. The URL is `https`, without \
                credentials, and leads to a public address, unless the operator allows others; \
                this is judged again at each connection.\n\nWith a `secret`, events are signed as \
                Standard Webhooks says. With `jsonPayloadEnabled`, a text of a device that is JSON \
                stands in the event as what it says and not as a text; values of LwM2M are typed \
                whatever it says.";
    Operation::new("createWebhook", Tag::Clouds, "Make a webhook")
        .description(text)
        .json(new_webhook(), "Where to, and what of.")
        .answer(201, webhook(), "The webhook as it is.")
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
        .refusal(
            409,
            &["TOO_MANY_DESTINATIONS"],
            &format!("The customer has {DESTINATIONS_MAX} webhooks, as many as it may."),
        )
}

/// GET all.
pub(in crate::api) fn list() -> Operation {
    let operation = Operation::new("listWebhooks", Tag::Clouds, "List webhooks")
        .description("The webhooks of the customer, the oldest first.");
    paged(operation).answer(200, page_of(webhook()), "A page of webhooks.")
}

/// GET one.
pub(in crate::api) fn show() -> Operation {
    let text = "The webhook, with how many events it has not taken yet and how many were set \
                aside for it. Headers are shown as they were given, the secret never is.";
    Operation::new("getWebhook", Tag::Clouds, "Follow a webhook")
        .description(text)
        .answer(200, followed(), "The webhook as it is now.")
}

/// PATCH.
pub(in crate::api) fn amend() -> Operation {
    let text = "Changes what you name and nothing else; `headers` and `eventTypes` take the place \
                of all that were. `secret: null` removes the secret. What waits is delivered by \
                what was said last. A webhook in failure stays so until it is restarted.";
    Operation::new("amendWebhook", Tag::Clouds, "Change a webhook")
        .description(text)
        .json(amended_webhook(), "What is to be otherwise.")
        .answer(200, webhook(), "The webhook as it is now.")
        .faults(&["READ_ONLY"])
}

/// DELETE.
pub(in crate::api) fn delete() -> Operation {
    let text = "What waits for it and its dead letters go with it. A delivery under way may still \
                arrive.";
    Operation::new("deleteWebhook", Tag::Clouds, "Remove a webhook")
        .description(text)
        .answer_empty(204, "The webhook is gone.")
}

/// POST test.
pub(in crate::api) fn test() -> Operation {
    let text = "Sends one `TEST_MESSAGE` now, with the headers and the signature of the webhook, \
                and waits for what the endpoint answers. It is tried once, whatever the state of \
                the webhook, and changes nothing of it.";
    Operation::new("testWebhook", Tag::Clouds, "Send a test message")
        .description(text)
        .answer(200, tested(), "What came of it.")
}

/// POST restart.
pub(in crate::api) fn restart() -> Operation {
    let text = "Has events delivered again after `INTEGRATION_FAILED`. What was set aside stays \
                among the dead letters until it is replayed. A webhook that has not failed \
                goes on as it is.";
    Operation::new("restartWebhook", Tag::Clouds, "Restart a webhook")
        .description(text)
        .answer(200, webhook(), "The webhook as it is now.")
}

/// GET dead letters.
pub(in crate::api) fn letters() -> Operation {
    let text = "The events that were set aside because the endpoint did not take them, the oldest \
                first. They are kept for some days, seven unless the operator says otherwise. \
                Follow `nextCursor` until there is none.";
    let cursor = Schema::text().pattern("^[0-9]{1,19}$").example("4711");
    let operation = Operation::new("listDeadLetters", Tag::Clouds, "List dead letters")
        .description(text)
        .query("cursor", cursor, "The `nextCursor` of the stretch before.");
    sized(operation).answer(200, letters_body(), "A stretch of the dead letters.")
}

/// DELETE one dead letter.
pub(in crate::api) fn discard() -> Operation {
    let text = "Gives the event up for good: it is not replayed, and what is behind it no longer \
                waits for it. For an event that the endpoint refuses for ever. It stays in the \
                history of its device.";
    let operation = Operation::new("discardDeadLetter", Tag::Clouds, "Discard a dead letter");
    unless_replayed(operation.description(text).answer_empty(204, "It is gone."))
}

/// DELETE all dead letters.
pub(in crate::api) fn discard_all() -> Operation {
    let text = "Gives up for good all that was set aside until now.";
    let operation = Operation::new(
        "discardDeadLetters",
        Tag::Clouds,
        "Discard all dead letters",
    );
    unless_replayed(
        operation
            .description(text)
            .answer_empty(204, "They are gone."),
    )
}

fn unless_replayed(operation: Operation) -> Operation {
    let why = "The dead letters are being taken up for a replay: come again when `replaying` is \
               false.";
    operation.refusal(409, &["REPLAY_UNDER_WAY"], why)
}

/// POST replay.
pub(in crate::api) fn replay() -> Operation {
    let text = "Has the dead letters delivered again, in order and before anything new, each with \
                all its tries and the `webhook-id` it had. Asked again while that goes on, it \
                changes nothing.";
    Operation::new("replayDeadLetters", Tag::Clouds, "Replay dead letters")
        .description(text)
        .answer(
            202,
            followed(),
            "The webhook as it is now; they are on their way.",
        )
        .refusal(
            409,
            &["INTEGRATION_FAILED"],
            "The webhook is in failure: restart it first.",
        )
}

fn new_webhook() -> Schema {
    Schema::closed()
        .must("name", names::label(), "What people call it.")
        .must("url", url(), "Where events are posted to.")
        .may("headers", headers(), HEADERS)
        .may(
            "eventTypes",
            types_asked(),
            "What it is told; all but `ACTION_RESULT` where nothing is said.",
        )
        .may("jsonPayloadEnabled", Schema::truth(), JSON_PAYLOAD)
        .may("secret", secret(), SECRET)
        .named("NewWebhook")
}

fn amended_webhook() -> Schema {
    Schema::closed()
        .may_never_null("name", names::label(), "What people call it.")
        .may_never_null("url", url(), "Where events are posted to.")
        .may_never_null("headers", headers(), HEADERS)
        .may_never_null("eventTypes", types_asked(), "What it is told.")
        .may_never_null("jsonPayloadEnabled", Schema::truth(), JSON_PAYLOAD)
        .may("secret", secret(), SECRET)
        .named("AmendedWebhook")
}

const JSON_PAYLOAD: &str = "Whether a text of a device that is JSON stands in the event as what it \
                            says; `false` where nothing is said.";

const HEADERS: &str = "Values by the names of headers, sent with each event: at most 20 of 4 KiB, \
                       8 KiB together. `Authorization`, `Content-Type`, `Accept` and `User-Agent` \
                       take the place of the service's own; those by which HTTP works, \
                       `webhook-…` and `proxy-…` are refused.";

const SECRET: &str = "What events are signed with (Standard Webhooks): `whsec_` and 24 to 64 bytes \
                      in base64. Without one they are not signed.";

/// A webhook as it is shown.
fn webhook() -> Schema {
    webhook_body().named("Webhook")
}

fn followed() -> Schema {
    let backlog = Schema::object()
        .must("waiting", Schema::count(), "Events it is not done with.")
        .must(
            "deadLetters",
            Schema::count(),
            "Events that were set aside.",
        )
        .named("WebhookBacklog");
    webhook_body()
        .must("backlog", backlog, "What waits for it.")
        .named("FollowedWebhook")
}

fn webhook_body() -> Schema {
    let shown = Schema::map(Schema::text().or_null());
    Schema::object()
        .must("id", Schema::uuid(), "Its id.")
        .must("name", names::label(), "What people call it.")
        .must(
            "url",
            Schema::text().example(URL_EXAMPLE),
            "Where events are posted to.",
        )
        .must(
            "headers",
            shown,
            "What is sent with each; `null` where the service cannot read a value any more \
             because its master key was replaced.",
        )
        .must("eventTypes", types_shown(), "What it is told.")
        .must("jsonPayloadEnabled", Schema::truth(), JSON_PAYLOAD)
        .must("secretSet", Schema::truth(), "Whether events are signed.")
        .must("state", Schema::word::<DestinationState>(), STATE)
        .must(
            "replaying",
            Schema::truth(),
            "Whether a replay goes on taking up dead letters. `false` says that all of them wait \
             to be delivered again, not that they were.",
        )
        .must("created", names::instant(), "When it was made.")
        .must(
            "updated",
            names::instant(),
            "When it or its state changed last.",
        )
}

const STATE: &str = "`ROLLOUT_DONE`: nothing was delivered yet. `INTEGRATION_ACTIVE`: it takes \
                     what it is told, or is being tried again. `INTEGRATION_FAILED`: it did not \
                     take an event after all its tries; what is for it goes to its dead letters \
                     until it is restarted.";

fn url() -> Schema {
    let url = Schema::text_of(1..=WEBHOOK_URL_BYTES_MAX);
    let url = url.pattern(r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\]+$");
    url.example(URL_EXAMPLE)
}

fn headers() -> Schema {
    let example = serde_json::json!({ "Authorization": "Bearer 7b0cf", "X-Device": ":deviceId:" });
    Schema::map(Schema::text()).example(Node::from(example))
}

fn types_asked() -> Schema {
    let event_type = Schema::closed().must("type", Schema::word::<EventType>(), TYPE);
    types_of(event_type.named("WantedEventType"))
}

fn types_shown() -> Schema {
    let event_type = Schema::object().must("type", Schema::word::<EventType>(), TYPE);
    types_of(event_type.named("EventType"))
}

const TYPE: &str = "A type of events.";

fn types_of(event_type: Schema) -> Schema {
    let example = serde_json::json!([{ "type": "TELEMETRY_DATA" }, { "type": "LIFECYCLE" }]);
    let types = Schema::list(event_type).at_least_one();
    types.example(Node::from(example))
}

fn secret() -> Schema {
    let secret = Schema::text().pattern("^(whsec_)?[A-Za-z0-9+/]{32,86}={0,2}$");
    secret.example("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
}

fn tested() -> Schema {
    let status = Schema::whole(100..=599);
    Schema::object()
        .must(
            "delivered",
            Schema::truth(),
            "Whether the endpoint took it.",
        )
        .may(
            "statusCode",
            status.example(204_u64),
            "What it answered, if it did.",
        )
        .must("message", Schema::text(), "The same in words.")
        .named("TestedWebhook")
}

fn letters_body() -> Schema {
    let received = Schema::text().pattern("^[0-9]+$").example("1795780800000");
    let letter = Schema::object()
        .must("id", Schema::uuid(), "The event; its `webhook-id`.")
        .must("type", Schema::word::<EventType>(), "Its type.")
        .may(
            "deviceId",
            names::device_id(),
            "The device it is about, while the event is kept.",
        )
        .may(
            "received",
            received,
            "When it happened, in milliseconds since 1970.",
        )
        .must("tries", Schema::count(), "How often it was tried.")
        .must("time", names::instant(), "When it was set aside.")
        .must("reason", Schema::text(), "Why.")
        .named("DeadLetter");
    let cursor = Schema::text().pattern("^[0-9]+$").example("4711");
    Schema::object()
        .must("items", Schema::list(letter), "The dead letters.")
        .may(
            "nextCursor",
            cursor,
            "Where later ones begin, if there are any.",
        )
}
