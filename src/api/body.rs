//! How are the body and the query of a call read? In full, and within their bounds.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use actix_web::{FromRequest, HttpRequest, web};

use super::error::ApiError;
use super::fields::Fields;

/// The longest time for a body to arrive: connections are not kept open for longer.
const PATIENCE: Duration = Duration::from_secs(30);

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

/// The body did not arrive in time.
pub(super) fn late() -> ApiError {
    ApiError::malformed("the body was not received in time")
}

/// The body is incomplete or too large.
pub(super) fn unread(error: &actix_web::Error) -> ApiError {
    match error.as_error::<PayloadError>() {
        Some(PayloadError::Overflow) => ApiError::body_too_large(),
        _ => ApiError::malformed("the body is incomplete"),
    }
}
