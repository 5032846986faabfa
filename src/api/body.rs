//! How are the body and the query of a call read? In full, and within their bounds.

use std::future::{Future, Ready, poll_fn, ready};
use std::pin::Pin;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_core::Stream;

use super::Api;
use super::access::AuthenticatedCaller;
use super::body_budget::{BodyOwner, BodyReservation, BudgetExceeded};
use super::error::ApiError;
use super::fields::Fields;

/// The longest time for a body to arrive: connections are not kept open for longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much more of a body that is refused is received, and for how long.
const DISCARDED_BYTES_MAX: usize = 256 * 1_024;
const DISCARD_PATIENCE: Duration = Duration::from_secs(1);

/// A body in JSON.
pub(super) struct Json(pub(super) Fields);

/// The query of the call.
pub(super) struct Query(pub(super) Fields);

/// The bytes of a body with their media type.
pub(super) struct Raw {
    /// The media type without its parameters, in lower case; empty if there is none.
    pub(super) media_type: String,
    /// The body.
    pub(super) bytes: web::Bytes,
}

impl FromRequest for Raw {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let media_type = media_type(request.headers());
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            expect_plain(request.headers())?;
            let bytes = tokio::time::timeout(PATIENCE, received(&request, &mut payload)).await;
            match bytes.map_err(|_| late())? {
                Ok(bytes) => Ok(Self { media_type, bytes }),
                Err(refused) => {
                    discard(&mut payload).await;
                    Err(refused)
                }
            }
        })
    }
}

/// The longest body of a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimit(pub(super) usize);

/// Receives a body. What it takes of the budget is released when the call is answered.
async fn received(request: &HttpRequest, payload: &mut Payload) -> Result<web::Bytes, ApiError> {
    let limit = request.app_data::<BodyLimit>().map(|limit| limit.0);
    let max = limit.ok_or_else(|| ApiError::internal("a route has no limit for its body"))?;
    let mut reservation = reservation(request)?;
    let stated = request.headers().get(CONTENT_LENGTH);
    let stated = stated.and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if stated.is_some_and(|bytes| bytes > max) {
        return Err(ApiError::body_too_large(max));
    }
    reservation.has_room(stated.unwrap_or_default())?;
    let mut body = web::BytesMut::new();
    while let Some(part) = next_part(payload).await {
        let part = part.map_err(|_| incomplete())?;
        if body.len() + part.len() > max {
            return Err(ApiError::body_too_large(max));
        }
        reservation.take(part.len())?;
        body.extend_from_slice(&part);
    }
    request.extensions_mut().insert(reservation);
    Ok(body.freeze())
}

/// Receives a little more of a body that is refused: a caller that is still sending would not read
/// the response if the connection were reset.
async fn discard(payload: &mut Payload) {
    let discarded = async {
        let mut bytes = 0;
        while let Some(Ok(part)) = next_part(payload).await {
            bytes += part.len();
            if bytes > DISCARDED_BYTES_MAX {
                break;
            }
        }
    };
    // A caller that sends slowly reads the response while it does.
    let _ = tokio::time::timeout(DISCARD_PATIENCE, discarded).await;
}

async fn next_part(payload: &mut Payload) -> Option<Result<web::Bytes, PayloadError>> {
    poll_fn(|cx| Pin::new(&mut *payload).poll_next(cx)).await
}

fn reservation(request: &HttpRequest) -> Result<BodyReservation, ApiError> {
    let api = request.app_data::<web::Data<Api>>();
    let api = api.ok_or_else(|| ApiError::internal("a route has no state"))?;
    let address = request.peer_addr().map(|peer| peer.ip());
    let extensions = request.extensions();
    let caller = extensions.get::<AuthenticatedCaller>();
    let customer = caller.map(|caller| BodyOwner::Customer(caller.customer.clone()));
    let owners = address.map(BodyOwner::Address).into_iter().chain(customer);
    Ok(api.bodies.open(owners.collect()))
}

impl From<BudgetExceeded> for ApiError {
    fn from(_: BudgetExceeded) -> Self {
        Self::busy().closing()
    }
}

impl FromRequest for Json {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let raw = Raw::from_request(request, payload);
        Box::pin(async move {
            let raw = raw.await?;
            if raw.media_type != "application/json" {
                return Err(ApiError::unsupported_media("application/json"));
            }
            Fields::of_json(&raw.bytes).map(Self)
        })
    }
}

impl FromRequest for Query {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
        let fields = pairs.map(|pairs| Self(Fields::of_query(pairs.into_inner())));
        ready(fields.map_err(|_| ApiError::malformed("the query is not URL-encoded")))
    }
}

/// The media type of the body without its parameters, in lower case; empty if there is none.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    essence(value)
}

/// A media type without its parameters, in lower case.
pub(super) fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Refuses a body with a `Content-Encoding`.
pub(super) fn expect_plain(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(ApiError::unsupported_encoding());
    }
    Ok(())
}

/// The connection ended before the body did.
pub(super) fn incomplete() -> ApiError {
    ApiError::malformed("the body is incomplete").closing()
}

/// The body did not arrive in time.
fn late() -> ApiError {
    ApiError::malformed("the body was not received in time").closing()
}
