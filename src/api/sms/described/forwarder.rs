//! Which operations configure the SMS forwarder? The OpenAPI descriptions.

use engine::limits::WEBHOOK_URL_BYTES_MAX;

use super::{received_sms, sms_report};
use crate::api::destinations::described::{DescribedKind, with_backlog};
use crate::api::integrations::described::tested;
use crate::api::integrations::webhook_events::WebhookEvent;
use crate::api::openapi::{ApiOperation, Schema, Tag, names};

/// The SMS forwarder in descriptions.
const FORWARDER: DescribedKind = DescribedKind {
    tag: Tag::Sms,
    noun: "forwarder",
    failed: "INTEGRATION_FAILED",
};

/// GET.
pub(in crate::api) fn show() -> ApiOperation {
    let operation = ApiOperation::new("getSmsForwarder", Tag::Sms, "Get the SMS forwarder")
        .description("Returns the SMS forwarder of the customer with its backlog.")
        .answer(200, followed(), "The forwarder and its backlog.");
    unless_unknown(operation)
}

/// PUT.
pub(in crate::api) fn put() -> ApiOperation {
    let text = "Sets the URL that receives SMS of devices (POST) and the final status of SMS to \
                devices (PATCH). It is used exactly as given. The requests have no header of \
                authentication. Any 2xx accepts an event. The events of a device are delivered in \
                order; one that is not accepted for a day is given up, logged, and kept as a dead \
                letter. Events from before are not delivered. Events that wait use the new URL.";
    ApiOperation::new("setSmsForwarder", Tag::Sms, "Set the SMS forwarder")
        .description(text)
        .json(
            Schema::closed()
                .must("url", url(), "The URL of your endpoint.")
                .named("NewSmsForwarder"),
            "The forwarder.",
        )
        .answer(200, forwarder(), "The forwarder.")
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    let text = "Also deletes its waiting events and its dead letters. A delivery in progress may \
                still arrive.";
    let operation = ApiOperation::new("deleteSmsForwarder", Tag::Sms, "Delete the SMS forwarder")
        .description(text)
        .answer_empty(204, "The forwarder is deleted.");
    unless_unknown(operation)
}

/// POST test.
pub(in crate::api) fn test() -> ApiOperation {
    let text = "Sends one message of a device (POST) and one delivery report (PATCH), both with \
                made-up values, and waits for the responses. There is one attempt each. The \
                result is that of the first one that is not accepted.";
    let operation = ApiOperation::new("testSmsForwarder", Tag::Sms, "Send test events")
        .description(text)
        .answer(200, tested(), "The result of the deliveries.");
    unless_unknown(operation)
}

/// GET dead letters.
pub(in crate::api) fn letters() -> ApiOperation {
    unless_unknown(FORWARDER.letters("listSmsDeadLetters"))
}

/// DELETE one dead letter.
pub(in crate::api) fn discard() -> ApiOperation {
    FORWARDER.discard("discardSmsDeadLetter")
}

/// DELETE all dead letters.
pub(in crate::api) fn discard_all() -> ApiOperation {
    unless_unknown(FORWARDER.discard_all("discardSmsDeadLetters"))
}

/// POST replay.
pub(in crate::api) fn replay() -> ApiOperation {
    unless_unknown(FORWARDER.replay("replaySmsDeadLetters", followed()))
}

/// What the endpoint of a forwarder receives.
pub(in crate::api) fn events() -> [WebhookEvent; 2] {
    [
        WebhookEvent {
            id: "smsReceived",
            summary: "SMS of a device",
            why: "POSTed to the SMS forwarder for each message that a device sent. Each part of a \
                  long SMS is one message.",
            tag: Tag::Sms,
            method: "post",
            headers: Vec::new(),
            body: received_sms(),
        },
        WebhookEvent {
            id: "smsReport",
            summary: "Final status of an SMS",
            why: "PATCHed to the SMS forwarder, at the same URL, when the status of an SMS to a \
                  device is final.",
            tag: Tag::Sms,
            method: "patch",
            headers: Vec::new(),
            body: sms_report(),
        },
    ]
}

/// A customer may have no forwarder, which no part of a path names.
fn unless_unknown(operation: ApiOperation) -> ApiOperation {
    operation.refusal(404, &["NOT_FOUND"], "The customer has no SMS forwarder.")
}

fn url() -> Schema {
    let url = Schema::text_of(1..=WEBHOOK_URL_BYTES_MAX).pattern("^https?://[^ ]+$");
    url.example("https://example.com:8443/sms/")
}

fn properties() -> Schema {
    let state = Schema::one_of_words(vec!["ROLLOUT_DONE", "INTEGRATION_ACTIVE"]);
    Schema::object()
        .must("url", url(), "The URL of your endpoint.")
        .must(
            "state",
            state,
            "`ROLLOUT_DONE` until the first event was accepted.",
        )
        .must(
            "replaying",
            Schema::truth(),
            "Whether dead letters are being replayed.",
        )
        .must("created", names::instant(), "When it was created.")
        .must(
            "updated",
            names::instant(),
            "When it or its state last changed.",
        )
}

fn forwarder() -> Schema {
    properties().named("SmsForwarder")
}

fn followed() -> Schema {
    with_backlog(properties()).named("SmsForwarderWithBacklog")
}
