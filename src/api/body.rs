//! What came with the call? Bodies and queries, taken in whole and no longer than allowed.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use actix_web::{FromRequest, HttpRequest, web};

use super::error::Failure;
use super::fields::Fields;

/// A body takes this long at most: connections are not for keeping.
const PATIENCE: Duration = Duration::from_secs(30);

/// A body in JSON.
pub(super) struct Json(pub(super) Fields);

/// The query of the call.
pub(super) struct Query(pub(super) Fields);

/// A body as it came, with what its sender says it is.
pub(super) struct Raw {
    /// The media type without its parameters, in lower case; empty where none is said.
    pub(super) media_type: String,
    /// The body.
    pub(super) bytes: web::Bytes,
}

impl FromRequest for Raw {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let media_type = media_type(request.headers());
        let plain = expect_plain(request.headers());
        let bytes = web::Bytes::from_request(request, payload);
        Box::pin(async move {
            plain?;
            let bytes = tokio::time::timeout(PATIENCE, bytes).await;
            let bytes = bytes.map_err(|_| late())?;
            let bytes = bytes.map_err(|error| unread(&error))?;
            Ok(Self { media_type, bytes })
        })
    }
}

impl FromRequest for Json {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let raw = Raw::from_request(request, payload);
        Box::pin(async move {
            let raw = raw.await?;
            if raw.media_type != "application/json" {
                return Err(Failure::unsupported_media("application/json"));
            }
            Fields::of_json(&raw.bytes).map(Self)
        })
    }
}

impl FromRequest for Query {
    type Error = Failure;
    type Future = Ready<Result<Self, Failure>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
        let fields = pairs.map(|pairs| Self(Fields::of_query(pairs.into_inner())));
        ready(fields.map_err(|_| Failure::malformed("the query is not form-encoded")))
    }
}

/// The media type of the body without its parameters, in lower case; empty where none is said.
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

/// Refuses a body that was packed for its way.
pub(super) fn expect_plain(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(Failure::unsupported_media("sent without Content-Encoding"));
    }
    Ok(())
}

/// The body took too long.
pub(super) fn late() -> Failure {
    Failure::malformed("the body did not come in time")
}

/// The body broke off, or is too long.
pub(super) fn unread(error: &actix_web::Error) -> Failure {
    match error.as_error::<PayloadError>() {
        Some(PayloadError::Overflow) => Failure::body_too_large(),
        _ => Failure::malformed("the body could not be read to its end"),
    }
}
