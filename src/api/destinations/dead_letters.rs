//! Which handlers list, replay and delete the dead letters of a destination?

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::delivery::backlog::{DeadLetter, Sequence};
use engine::event::Event;
use engine::ids::{DestinationId, EventId};

use super::{DestinationKind, DestinationSegment, followed, owned, unserved};
use crate::api::Api;
use crate::api::access::AuthenticatedCaller;
use crate::api::body::Query;
use crate::api::error::ApiError;
use crate::api::fields::Fields;
use crate::api::page::{cursor, wanted_size};
use crate::api::records::to_its_end;
use crate::api::segment::{PathSegment, Segment as _};
use crate::api::words::Word;

/// Dead letters that are searched, or deleted, in one step.
const STEP: u32 = 256;

/// A page of dead letters.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct DeadLettersBody {
    items: Vec<DeadLetterBody>,
    /// The cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A dead letter.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct DeadLetterBody {
    /// The event id: the `webhook-id` of each attempt.
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Absent if the event itself has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<String>,
    tries: u8,
    time: String,
    reason: String,
}

/// GET: lists the dead letters of a destination, starting at a cursor.
pub(in crate::api) async fn list<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(DestinationSegment { id, .. }): PathSegment<DestinationSegment<K>>,
    Query(fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    listed::<K>(&api, &caller, id, fields).await
}

/// Lists the dead letters of a destination.
pub(in crate::api) async fn listed<K: DestinationKind>(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: DestinationId,
    mut fields: Fields,
) -> Result<HttpResponse, ApiError> {
    let size = wanted_size(&mut fields);
    let after = fields.optional("cursor", cursor);
    fields.finish(Some(()))?;
    owned::<K>(api, caller, id).await?;
    // One more than a page, to see whether there is a next page.
    let mut letters = api.store.dead_letters(id, after, size + 1).await?;
    let shown = usize::try_from(size).unwrap_or(usize::MAX);
    let more = letters.len() > shown;
    letters.truncate(shown);
    let last = letters.last().filter(|_| more);
    let last = last.map(|letter| letter.queued.sequence);
    let mut items = Vec::with_capacity(letters.len());
    for letter in letters {
        let waiting = letter.queued;
        let event = api.store.event(caller.customer.clone(), waiting).await?;
        items.push(DeadLetterBody::of(&letter, event.as_ref()));
    }
    Ok(HttpResponse::Ok().json(DeadLettersBody::of(items, last)))
}

/// POST: replays the dead letters of a destination.
pub(in crate::api) async fn replay<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(DestinationSegment { id, .. }): PathSegment<DestinationSegment<K>>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    replayed::<K>(&api, &caller, id).await
}

/// Replays the dead letters of a destination.
pub(in crate::api) async fn replayed<K: DestinationKind>(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: DestinationId,
) -> Result<HttpResponse, ApiError> {
    owned::<K>(api, caller, id).await?;
    api.deliveries.replay(id).await.map_err(unserved::<K>)?;
    Ok(HttpResponse::Accepted().json(followed::<K>(api, caller, id).await?))
}

/// DELETE: deletes a dead letter of a destination.
pub(in crate::api) async fn discard<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(DestinationSegment { id, .. }): PathSegment<DestinationSegment<K>>,
    PathSegment(event): PathSegment<EventId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    discarded::<K>(&api, &caller, id, event).await
}

/// Deletes a dead letter of a destination.
pub(in crate::api) async fn discarded<K: DestinationKind>(
    api: &Api,
    caller: &AuthenticatedCaller,
    id: DestinationId,
    event: EventId,
) -> Result<HttpResponse, ApiError> {
    owned::<K>(api, caller, id).await?;
    let found = found(api, id, event).await?;
    let found = found.ok_or_else(|| ApiError::unknown(EventId::NAME))?;
    let discarded = api.deliveries.discard(id, [found].into()).await;
    discarded.map_err(unserved::<K>)??;
    Ok(HttpResponse::NoContent().finish())
}

/// DELETE: deletes all dead letters of a destination.
pub(in crate::api) async fn discard_all<K: DestinationKind>(
    caller: AuthenticatedCaller,
    PathSegment(DestinationSegment { id, .. }): PathSegment<DestinationSegment<K>>,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    all_discarded::<K>(api, caller, id).await
}

/// Deletes all dead letters of a destination.
pub(in crate::api) async fn all_discarded<K: DestinationKind>(
    api: web::Data<Api>,
    caller: AuthenticatedCaller,
    id: DestinationId,
) -> Result<HttpResponse, ApiError> {
    owned::<K>(&api, &caller, id).await?;
    to_its_end(discarded_in_steps::<K>(api, id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The sequence number of the dead letter of an event.
async fn found(api: &Api, id: DestinationId, event: EventId) -> Result<Option<Sequence>, ApiError> {
    let mut after = None;
    loop {
        let letters = api.store.dead_letters(id, after, STEP).await?;
        let letter = letters.iter().find(|it| it.queued.event == event);
        if let Some(letter) = letter {
            return Ok(Some(letter.queued.sequence));
        }
        if !is_whole(&letters) {
            return Ok(None);
        }
        after = letters.last().map(|it| it.queued.sequence);
    }
}

/// Deletes step by step; dead letters added meanwhile may stay.
async fn discarded_in_steps<K: DestinationKind>(
    api: web::Data<Api>,
    id: DestinationId,
) -> Result<(), ApiError> {
    let mut after = None;
    loop {
        let letters = api.store.dead_letters(id, after, STEP).await?;
        let numbers: Box<[Sequence]> = letters.iter().map(|it| it.queued.sequence).collect();
        after = numbers.last().copied();
        api.deliveries
            .discard(id, numbers)
            .await
            .map_err(unserved::<K>)??;
        if !is_whole(&letters) {
            return Ok(());
        }
    }
}

/// Whether a step is full: there may be more.
fn is_whole(letters: &[DeadLetter]) -> bool {
    u32::try_from(letters.len()).is_ok_and(|length| length >= STEP)
}

impl DeadLettersBody {
    /// The items, and the last sequence number if there is a next page.
    pub(in crate::api) fn of(items: Vec<DeadLetterBody>, last: Option<Sequence>) -> Self {
        Self {
            items,
            next_cursor: last.map(|Sequence(number)| number.to_string()),
        }
    }
}

impl DeadLetterBody {
    /// The dead letter with its event, if the event still exists.
    pub(in crate::api) fn of(letter: &DeadLetter, event: Option<&Event>) -> Self {
        Self {
            id: letter.queued.event.to_string(),
            kind: letter.queued.event_type.word(),
            device_id: event.map(|event| event.device_info.device.to_string()),
            received: event.map(|event| event.at.as_ms().to_string()),
            tries: letter.tries,
            time: letter.at.iso().to_string(),
            reason: letter.why.to_string(),
        }
    }
}
