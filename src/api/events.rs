//! Which handler streams the events of a customer? As server-sent events (WHATWG HTML section 9.2).

pub(super) mod described;

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse};
use futures_core::Stream;
use tokio::sync::mpsc;

use actors::delivery::stream::{ReaderKind, StreamOpening, StreamReader};
use actors::web::Connection;
use engine::delivery::body::render;
use engine::delivery::destination::{EventTypes, JsonPayload};
use engine::delivery::stream::position::{InvalidPosition, StreamPosition};
use engine::delivery::stream::{StreamFilter, StreamMessage};
use engine::event::EventType;
use engine::ids::{DeviceId, DeviceKey};
use engine::limits::FILTER_TAGS_MAX;
use engine::tags::Tag;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body::Query;
use super::devices::found;
use super::error::ApiError;
use super::fields::{FieldFault, Fields};
use super::integrations::request_body::type_words;
use super::words::Word;

/// The media type of server-sent events.
const EVENT_STREAM: &str = "text/event-stream";

/// Where the reader was: the `id` of the last message that it received.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// Tells proxies to hand on each message at once.
const UNBUFFERED: (&str, &str) = ("x-accel-buffering", "no");

/// GET: sends the events of the customer as they are stored, until the reader leaves.
pub(super) async fn stream(
    caller: AuthenticatedCaller,
    Query(mut fields): Query,
    request: HttpRequest,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let event_types = fields.several("type", EventType::ALL.len(), types_in);
    let device = fields.optional("deviceId", DeviceId::parse);
    let tags = fields.several("tag", FILTER_TAGS_MAX, Tag::parse);
    let resumed_at = last_position(request.headers(), &mut fields);
    fields.finish(Some(()))?;
    let device = device.map(|device| DeviceKey::of(&caller.customer, &device));
    if let Some(device) = device {
        found(api.store.profile(device).await?)?;
    }
    let mut response = HttpResponse::Ok();
    response
        .content_type(EVENT_STREAM)
        .insert_header(UNBUFFERED);
    // The server would read a body without an end in vain.
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    let event_types = match event_types.is_empty() {
        true => EventTypes::all(),
        false => event_types.into_iter().flatten().collect(),
    };
    let opening = StreamOpening {
        reader_kind: match caller.is_of_session() {
            true => ReaderKind::ConsolePage,
            false => ReaderKind::Program,
        },
        customer: caller.customer.clone(),
        filter: StreamFilter {
            event_types,
            device,
            tags: tags.into(),
        },
        resumed_at,
    };
    let reader = reader_of(caller, &request, &api);
    let messages = api.streams.open(opening, reader).await;
    let messages = messages.map_err(|refusal| ApiError::stream_refused(refusal, LAST_EVENT_ID))?;
    Ok(response.streaming(StreamBody(messages)))
}

/// The types of events that are streamed, separated by commas.
fn types_in(text: &str) -> Result<Vec<EventType>, String> {
    let known = |word: &str| EventType::known(word).filter(|it| it.is_for_integrations());
    let types: Option<_> = text.split(',').map(known).collect();
    types.ok_or_else(|| format!("must be one of {}, or several", type_words().join(", ")))
}

/// Where an earlier stream is resumed. An empty header counts as none.
fn last_position(headers: &HeaderMap, fields: &mut Fields) -> Option<StreamPosition> {
    let name = HeaderName::from_static("last-event-id");
    let mut given = headers.get_all(name);
    let text = given.next()?.to_str().map_err(|_| InvalidPosition);
    if given.next().is_some() {
        fields.fault(LAST_EVENT_ID, FieldFault::repeated());
        return None;
    }
    match text.and_then(|text| match text.is_empty() {
        true => Ok(None),
        false => StreamPosition::parse(text).map(Some),
    }) {
        Ok(position) => position,
        Err(invalid) => {
            fields.fault(LAST_EVENT_ID, invalid);
            None
        }
    }
}

fn reader_of(
    caller: AuthenticatedCaller,
    request: &HttpRequest,
    api: &web::Data<Api>,
) -> StreamReader {
    let api = api.clone();
    let connection = request.conn_data::<Connection>();
    StreamReader {
        is_authorised: Box::new(move || {
            let (caller, api) = (caller.clone(), api.clone());
            Box::pin(async move { caller.is_still_authorised(&api).await })
        }),
        left: match connection {
            Some(connection) => Box::pin(connection.left()),
            None => Box::pin(pending()),
        },
    }
}

/// The body: it ends when the stream does.
struct StreamBody(mpsc::Receiver<StreamMessage>);

impl Stream for StreamBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let message = self.0.poll_recv(cx);
        message.map(|message| message.map(|message| Ok(written(&message))))
    }
}

/// A message as it is sent. One without data moves the reader's last id and is no event.
fn written(message: &StreamMessage) -> Bytes {
    match message {
        StreamMessage::Heartbeat(position) => format!(": heartbeat\nid: {position}\n\n").into(),
        StreamMessage::Event(event, position) => {
            let event_type = event.content.event_type().word();
            let head = format!("id: {position}\nevent: {event_type}\ndata: ");
            // JSON without white space is one line.
            let data = render(event, JsonPayload::AsText);
            Bytes::from([head.as_bytes(), &data, b"\n\n"].concat())
        }
    }
}
