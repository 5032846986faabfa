//! Which handler lists the messages of a device?

pub(super) mod described;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::Path;
use engine::delivery::backlog::Sequence;
use engine::delivery::body::EventContentBody;
use engine::delivery::destination::JsonPayload;
use engine::event::{Cause, Event, EventContent, EventType};
use engine::ids::{DeviceId, DeviceKey};
use engine::query::HistoryFilter;
use engine::query::listed::HistoryPage;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Query;
use super::error::ApiError;
use super::fields::instant;
use super::page::{cursor, wanted_size};
use super::segment::PathSegment;
use super::words::Word;

/// A page of messages.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessagesBody {
    items: Vec<MessageBody>,
    /// The cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A message.
#[derive(Serialize)]
pub(super) struct MessageBody {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Milliseconds since 1970, as in events sent to integrations.
    received: String,
    time: String,
    /// When the device measured it, like `received`.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<String>,
    /// For LwM2M values only; webhook events do not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<CauseBody>,
    #[serde(flatten)]
    happening: EventContentBody,
}

/// Why a device sent values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CauseBody {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// GET: lists the messages of a device, newest first, starting at a cursor.
pub(super) async fn list(
    caller: AuthenticatedCaller,
    PathSegment(device): PathSegment<DeviceId>,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let size = wanted_size(&mut fields);
    let device = DeviceKey::of(&caller.customer, &device);
    let filter = HistoryFilter {
        customer: caller.customer.clone(),
        device,
        before: fields.optional("cursor", cursor),
        from: fields.optional("from", instant),
        to: fields.optional("to", instant),
        event_type: fields.optional("type", EventType::read),
        path: fields.optional("path", Path::parse),
    };
    if filter
        .from
        .zip(filter.to)
        .is_some_and(|(from, to)| from > to)
    {
        fields.fault("from", "must not be later than `to`");
    }
    fields.finish(Some(()))?;
    let known = api.store.profile(device).await?;
    known.ok_or_else(|| ApiError::unknown("device"))?;
    let HistoryPage { events, next } = api.store.events_of(filter, size).await?;
    let items = events.iter().map(MessageBody::of).collect();
    Ok(HttpResponse::Ok().json(MessagesBody::of(items, next)))
}

impl MessagesBody {
    /// The items, and the last number if there is a next page.
    pub(super) fn of(items: Vec<MessageBody>, last: Option<Sequence>) -> Self {
        Self {
            items,
            next_cursor: last.map(|Sequence(number)| number.to_string()),
        }
    }
}

impl MessageBody {
    /// The message of an event.
    pub(super) fn of(event: &Event) -> Self {
        let measured_at = event.content.measured_at();
        Self {
            id: event.id.to_string(),
            kind: event.content.event_type().word(),
            received: event.at.as_ms().to_string(),
            time: event.at.iso().to_string(),
            measured: measured_at.map(|at| at.as_ms().to_string()),
            cause: CauseBody::of(&event.content),
            happening: EventContentBody::of(&event.content, JsonPayload::AsText),
        }
    }
}

impl CauseBody {
    /// None for everything but LwM2M values.
    fn of(happening: &EventContent) -> Option<Self> {
        match happening {
            EventContent::Telemetry(telemetry) => Some(Self::of_values(telemetry.cause)),
            EventContent::Data(_)
            | EventContent::Lifecycle(_)
            | EventContent::Error(_)
            | EventContent::ActionResult(_)
            | EventContent::SmsReceived(_)
            | EventContent::SmsReport(_) => None,
        }
    }

    fn of_values(cause: Cause) -> Self {
        match cause {
            Cause::Observation(path) => Self {
                kind: "OBSERVATION",
                path: Some(path.to_string()),
                request_id: None,
            },
            Cause::CompositeObservation(id) => Self {
                kind: "COMPOSITE_OBSERVATION",
                path: None,
                request_id: Some(id.to_string()),
            },
            Cause::Action(id) => Self {
                kind: "ACTION",
                path: None,
                request_id: Some(id.to_string()),
            },
            Cause::Send => Self::unasked("SEND"),
            Cause::PassiveReport => Self::unasked("PASSIVE_REPORT"),
        }
    }

    /// A cause without path and request.
    fn unasked(kind: &'static str) -> Self {
        Self {
            kind,
            path: None,
            request_id: None,
        }
    }
}
