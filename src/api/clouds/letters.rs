//! Which handlers list, replay and delete the dead letters of a webhook?

use actix_web::{HttpResponse, web};
use serde::Serialize;

use engine::delivery::letter::{DeadLetter, Sequence};
use engine::event::Event;
use engine::ids::{DestinationId, EventId};

use super::{followed, owned, unserved};
use crate::api::Api;
use crate::api::access::Caller;
use crate::api::body::Query;
use crate::api::error::Failure;
use crate::api::page::wanted_size;
use crate::api::records::to_its_end;
use crate::api::segment::{At, Segment as _};
use crate::api::words::Word;

/// Dead letters that are searched, or deleted, in one step.
const STEP: u32 = 256;

/// A page of dead letters.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct LettersBody {
    items: Vec<LetterBody>,
    /// The cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A dead letter.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct LetterBody {
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

/// GET: lists the dead letters of a webhook, starting at a cursor.
pub(in crate::api) async fn list(
    caller: Caller,
    At(id): At<DestinationId>,
    Query(mut fields): Query,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    let size = wanted_size(&mut fields);
    let after = fields.optional("cursor", cursor);
    fields.finish(Some(()))?;
    owned(&api, &caller, id).await?;
    // One more than a page, to see whether there is a next page.
    let mut letters = api.store.dead_letters(id, after, size + 1).await?;
    let shown = usize::try_from(size).unwrap_or(usize::MAX);
    let more = letters.len() > shown;
    letters.truncate(shown);
    let last = letters.last().filter(|_| more);
    let last = last.map(|letter| letter.waiting.sequence);
    let mut items = Vec::with_capacity(letters.len());
    for letter in letters {
        let waiting = letter.waiting;
        let event = api.store.event(waiting.device, waiting.event).await?;
        items.push(LetterBody::of(&letter, event.as_ref()));
    }
    Ok(HttpResponse::Ok().json(LettersBody::of(items, last)))
}

/// POST: replays the dead letters of a webhook.
pub(in crate::api) async fn replay(
    caller: Caller,
    At(id): At<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    owned(&api, &caller, id).await?;
    api.post.replay(id).await.map_err(unserved)??;
    Ok(HttpResponse::Accepted().json(followed(&api, &caller, id).await?))
}

/// DELETE: deletes a dead letter of a webhook.
pub(in crate::api) async fn discard(
    caller: Caller,
    At(id): At<DestinationId>,
    At(event): At<EventId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    owned(&api, &caller, id).await?;
    let found = found(&api, id, event).await?;
    let found = found.ok_or_else(|| Failure::unknown(EventId::NAME))?;
    let discarded = api.post.discard(id, [found].into()).await;
    discarded.map_err(unserved)??;
    Ok(HttpResponse::NoContent().finish())
}

/// DELETE: deletes all dead letters of a webhook.
pub(in crate::api) async fn discard_all(
    caller: Caller,
    At(id): At<DestinationId>,
    api: web::Data<Api>,
) -> Result<HttpResponse, Failure> {
    owned(&api, &caller, id).await?;
    to_its_end(all_discarded(api, id)).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The sequence number of the dead letter of an event.
async fn found(api: &Api, id: DestinationId, event: EventId) -> Result<Option<Sequence>, Failure> {
    let mut after = None;
    loop {
        let letters = api.store.dead_letters(id, after, STEP).await?;
        let letter = letters.iter().find(|it| it.waiting.event == event);
        if let Some(letter) = letter {
            return Ok(Some(letter.waiting.sequence));
        }
        if !is_whole(&letters) {
            return Ok(None);
        }
        after = letters.last().map(|it| it.waiting.sequence);
    }
}

/// Deletes step by step; dead letters added meanwhile may stay.
async fn all_discarded(api: web::Data<Api>, id: DestinationId) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let letters = api.store.dead_letters(id, after, STEP).await?;
        let numbers: Box<[Sequence]> = letters.iter().map(|it| it.waiting.sequence).collect();
        after = numbers.last().copied();
        api.post.discard(id, numbers).await.map_err(unserved)??;
        if !is_whole(&letters) {
            return Ok(());
        }
    }
}

/// Whether a step is full: there may be more.
fn is_whole(letters: &[DeadLetter]) -> bool {
    u32::try_from(letters.len()).is_ok_and(|length| length >= STEP)
}

impl LettersBody {
    /// The items, and the last sequence number if there is a next page.
    pub(in crate::api) fn of(items: Vec<LetterBody>, last: Option<Sequence>) -> Self {
        Self {
            items,
            next_cursor: last.map(|Sequence(number)| number.to_string()),
        }
    }
}

impl LetterBody {
    /// The dead letter with its event, if the event still exists.
    pub(in crate::api) fn of(letter: &DeadLetter, event: Option<&Event>) -> Self {
        Self {
            id: letter.waiting.event.to_string(),
            kind: letter.waiting.event_type.word(),
            device_id: event.map(|event| event.speaker.device.to_string()),
            received: event.map(|event| event.at.as_ms().to_string()),
            tries: letter.tries,
            time: letter.at.iso().to_string(),
            reason: letter.why.to_string(),
        }
    }
}

/// The end of the previous page.
fn cursor(text: &str) -> Result<Sequence, &'static str> {
    let number = text.parse().map(Sequence);
    number.map_err(|_| "must be the nextCursor of the previous page")
}
