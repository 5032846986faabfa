//! What is the JSON of a webhook? Its configuration without the secret.

use std::collections::BTreeMap;

use serde::Serialize;

use engine::delivery::destination::{Destination, EventTypes, JsonPayload, Replay, Webhook};
use engine::event::{EventType, Lifecycle};

use crate::api::destinations::MASKED;
use crate::api::words::Word;

/// A webhook.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct WebhookBody {
    id: String,
    name: String,
    url: String,
    /// Values are commonly credentials: only their names are shown.
    headers: BTreeMap<String, &'static str>,
    event_types: Vec<TypeBody>,
    json_payload_enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchBody>,
    secret_set: bool,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    replaying: bool,
    created: String,
    updated: String,
}

/// How many events are sent in one request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchBody {
    max_events: u8,
    max_wait_ms: u32,
}

/// A type of events.
#[derive(Serialize)]
pub(in crate::api) struct TypeBody {
    #[serde(rename = "type")]
    word: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<&'static str>>,
}

impl WebhookBody {
    /// The webhook.
    pub(in crate::api) fn of(destination: &Destination, webhook: &Webhook) -> Self {
        let headers = webhook.headers.iter();
        Self {
            id: destination.id.to_string(),
            name: destination.name.to_string(),
            url: webhook.url.to_string(),
            headers: headers.map(|it| (it.name.to_string(), MASKED)).collect(),
            event_types: types_of(destination.event_types),
            json_payload_enabled: webhook.json == JsonPayload::Parsed,
            batch: webhook.batching.map(|batching| BatchBody {
                max_events: batching.events_max,
                max_wait_ms: batching.wait_ms_max,
            }),
            secret_set: webhook.secret.is_some(),
            state: destination.state.word(),
            failure_reason: destination.failure.as_deref().map(Into::into),
            replaying: destination.replay == Replay::UnderWay,
            created: destination.created_at.iso().to_string(),
            updated: destination.updated_at.iso().to_string(),
        }
    }
}

/// The types of a set.
pub(in crate::api) fn types_of(wants: EventTypes) -> Vec<TypeBody> {
    let wanted = EventType::ALL.into_iter().filter(|it| wants.has(*it));
    let kinds = wants.kinds().map(|kinds| {
        let named = Lifecycle::ALL.into_iter().filter(|it| kinds.has(*it));
        named.map(Lifecycle::word).collect()
    });
    let body = |it: EventType| TypeBody {
        word: it.word(),
        kinds: kinds.clone().filter(|_| it == EventType::Lifecycle),
    };
    wanted.map(body).collect()
}
