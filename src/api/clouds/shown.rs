//! How is a webhook shown to its customer? As it was asked for, but for its secret.

use std::collections::BTreeMap;

use serde::Serialize;

use engine::delivery::destination::{Destination, EventTypes, JsonPayload, Replay, Target};
use engine::delivery::letter::Backlog;
use engine::delivery::question::Tested;
use engine::event::EventType;
use engine::ids::DestinationId;
use engine::sealed::Sealed;

use crate::api::words::Word;

/// A webhook.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct WebhookBody {
    id: String,
    name: String,
    url: String,
    /// A value that does not open any more is null: whoever replaced the master key gives it anew.
    headers: BTreeMap<String, Option<String>>,
    event_types: Vec<TypeBody>,
    json_payload_enabled: bool,
    secret_set: bool,
    state: &'static str,
    replaying: bool,
    created: String,
    updated: String,
}

/// A webhook with what waits for it.
#[derive(Serialize)]
pub(in crate::api) struct FollowedBody {
    #[serde(flatten)]
    webhook: WebhookBody,
    backlog: BacklogBody,
}

/// A type of events.
#[derive(Serialize)]
struct TypeBody {
    #[serde(rename = "type")]
    word: &'static str,
}

/// What waits for a webhook, in numbers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BacklogBody {
    waiting: u64,
    dead_letters: u64,
}

/// What came of a test message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct TestedBody {
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_code: Option<u16>,
    message: String,
}

impl WebhookBody {
    /// The webhook as it is shown; `open` opens what was sealed for it.
    pub(in crate::api) fn of(
        destination: &Destination,
        open: impl Fn(DestinationId, &str, &Sealed) -> Option<String>,
    ) -> Self {
        let Target::Webhook(webhook) = &destination.target;
        let opened = webhook.headers.iter().map(|header| {
            let value = open(destination.id, &header.name, &header.value);
            (header.name.to_string(), value)
        });
        Self {
            id: destination.id.to_string(),
            name: destination.name.to_string(),
            url: webhook.url.to_string(),
            headers: opened.collect(),
            event_types: types_of(destination.wants),
            json_payload_enabled: webhook.json == JsonPayload::Parsed,
            secret_set: webhook.secret.is_some(),
            state: destination.state.word(),
            replaying: destination.replay == Replay::UnderWay,
            created: destination.created_at.iso().to_string(),
            updated: destination.updated_at.iso().to_string(),
        }
    }
}

impl FollowedBody {
    /// The webhook as it is shown with this much waiting.
    pub(in crate::api) fn of(
        destination: &Destination,
        backlog: Backlog,
        open: impl Fn(DestinationId, &str, &Sealed) -> Option<String>,
    ) -> Self {
        Self {
            webhook: WebhookBody::of(destination, open),
            backlog: BacklogBody {
                waiting: backlog.waiting,
                dead_letters: backlog.dead,
            },
        }
    }
}

impl TestedBody {
    /// What is told of it.
    pub(in crate::api) fn of(tested: Tested) -> Self {
        Self {
            delivered: tested.accepted,
            status_code: tested.status,
            message: tested.message,
        }
    }
}

fn types_of(wants: EventTypes) -> Vec<TypeBody> {
    let wanted = EventType::ALL.into_iter().filter(|it| wants.has(*it));
    let body = |it: EventType| TypeBody { word: it.word() };
    wanted.map(body).collect()
}
