//! Which operations have webhooks and plugins in common? The OpenAPI descriptions of dead letters.

use engine::event::EventType;

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{cursor, sized};

/// A kind of destination in descriptions.
#[derive(Clone, Copy)]
pub(in crate::api) struct DescribedKind {
    /// The tag of its operations.
    pub(in crate::api) tag: Tag,
    /// What it is called.
    pub(in crate::api) noun: &'static str,
    /// The word of its failed state.
    pub(in crate::api) failed: &'static str,
}

/// Why a destination is failed.
pub(in crate::api) const FAILURE_REASON: &str =
    "Why the last attempt failed that was allowed for an event. Absent unless all attempts failed.";

/// An event type.
pub(in crate::api) const TYPE: &str = "An event type.";

const WAITING: &str = "Events not yet delivered. Events of other types count until the service has \
                       read past them.";

impl DescribedKind {
    /// GET dead letters.
    pub(in crate::api) fn letters(self, id: &'static str) -> ApiOperation {
        let text = "Returns the events that were not delivered, oldest first. Dead letters are \
                    deleted after {{dead_letter_retention_days}}. To read the next page, pass \
                    `nextCursor` as `cursor` until a page has none.";
        let operation = ApiOperation::new(id, self.tag, "List dead letters")
            .description(text)
            .query("cursor", cursor(), "The `nextCursor` of the previous page.");
        sized(operation).answer(200, letters_body(), "A page of dead letters.")
    }

    /// DELETE one dead letter.
    pub(in crate::api) fn discard(self, id: &'static str) -> ApiOperation {
        let text = "Deletes a dead letter that is never accepted. The event is not replayed and \
                    no longer blocks the events behind it. It stays in the message history of \
                    its device.";
        let operation = ApiOperation::new(id, self.tag, "Delete a dead letter");
        let operation = operation.description(text);
        unless_replayed(operation.answer_empty(204, "The dead letter is deleted."))
    }

    /// DELETE all dead letters.
    pub(in crate::api) fn discard_all(self, id: &'static str) -> ApiOperation {
        let text = format!("Deletes all dead letters of the {}.", self.noun);
        let operation = ApiOperation::new(id, self.tag, "Delete all dead letters");
        let operation = operation.description(text);
        unless_replayed(operation.answer_empty(204, "The dead letters are deleted."))
    }

    /// POST replay.
    pub(in crate::api) fn replay(self, id: &'static str, followed: Schema) -> ApiOperation {
        let Self { tag, noun, failed } = self;
        let text = format!(
            "Queues the dead letters for delivery, in order and ahead of new events. Each event \
             keeps its `webhook-id` and gets the full number of attempts. While the state is \
             `{failed}`, `replaying` stays `true` and the dead letters are queued once the {noun} \
             is restarted, so that no new event overtakes them. Calling this again during a \
             replay has no effect."
        );
        ApiOperation::new(id, tag, "Replay dead letters")
            .description(text)
            .answer(202, followed, "The dead letters will be delivered again.")
    }
}

/// The representation of a destination with its backlog.
pub(in crate::api) fn with_backlog(body: Schema) -> Schema {
    let backlog = Schema::object()
        .must("waiting", Schema::count(), WAITING)
        .must("deadLetters", Schema::count(), "Dead letters.")
        .named("Backlog");
    body.must("backlog", backlog, "The number of undelivered events.")
}

fn unless_replayed(operation: ApiOperation) -> ApiOperation {
    let why = "A replay is in progress. Try again when `replaying` is `false`.";
    operation.refusal(409, &["REPLAY_UNDER_WAY"], why)
}

fn letters_body() -> Schema {
    let received = Schema::text().pattern("^[0-9]+$").example("1795780800000");
    let letter = Schema::object()
        .must(
            "id",
            Schema::uuid(),
            "The id of the event: its `webhook-id`.",
        )
        .must("type", Schema::word::<EventType>(), TYPE)
        .may(
            "deviceId",
            names::device_id(),
            "The device of the event. Absent if the event itself has expired.",
        )
        .may(
            "received",
            received,
            "The time of the event, in Unix milliseconds. Absent if the event has expired.",
        )
        .must("tries", Schema::count(), "The number of delivery attempts.")
        .must(
            "time",
            names::instant(),
            "When the event became a dead letter.",
        )
        .must("reason", Schema::text(), "Why the event was not delivered.")
        .named("DeadLetter");
    Schema::object()
        .must("items", Schema::list(letter), "The dead letters.")
        .may(
            "nextCursor",
            cursor(),
            "The cursor of the next page. Absent on the last page.",
        )
}
