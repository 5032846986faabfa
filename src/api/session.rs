//! Which session of the console does a call belong to, and which token is it made with?
//!
//! A browser has the cookie of its session and no token. Routes below `/console/api` are called for
//! the session, with its token or for its person; nothing else heeds the cookie.

pub(super) mod browser;
pub(super) mod table;

use std::sync::{MutexGuard, PoisonError};

use actix_web::HttpRequest;
use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, HeaderName, HeaderValue};

use engine::customer::SecretDigest;

use super::Api;
use super::error::ApiError;
use super::oidc::attempts::AttemptTable;
use super::secret::same;

use browser::{BrowserCookie, BrowserTransport};
use table::{Session, SessionAuthority, SessionTable};

/// Repeats the CSRF token of the session.
const CSRF_TOKEN: HeaderName = HeaderName::from_static("x-csrf-token");

/// Says that a person caused the call, and not a page that refreshes itself.
const USER_ACTIVITY: HeaderName = HeaderName::from_static("x-user-activity");

/// Gives a call of the API under `/console` the token of its session, if that has one, and returns
/// the session with its digest.
pub(super) fn present(
    api: &Api,
    request: &mut ServiceRequest,
) -> Result<(SecretDigest, Session), ApiError> {
    let (_, digest, session) = of_call(api, request.request())?;
    if request.headers().contains_key(USER_ACTIVITY) {
        api.sessions().touch(&digest, api.clock.now());
    }
    match &session.authority {
        SessionAuthority::Token(token) => {
            let bearer = HeaderValue::try_from(format!("Bearer {token}"));
            let bearer = bearer.map_err(ApiError::internal)?;
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        SessionAuthority::Person(_) => {
            request.headers_mut().remove(AUTHORIZATION);
        }
    }
    Ok((digest, session))
}

/// The session of a call. One that may change anything has the session's CSRF token.
pub(super) fn of_call(
    api: &Api,
    request: &HttpRequest,
) -> Result<(BrowserTransport, SecretDigest, Session), ApiError> {
    let transport = BrowserTransport::of(request)?;
    let secret = transport.secret(BrowserCookie::Session, request.headers());
    let digest = secret.map(SecretDigest::of);
    let digest = digest.ok_or_else(ApiError::session_missing)?;
    let session = api.sessions().find(&digest, api.clock.now()).cloned();
    let session = session.ok_or_else(ApiError::session_missing)?;
    let repeated = request.headers().get(CSRF_TOKEN);
    let is_repeated = repeated.and_then(|it| it.to_str().ok()).is_some_and(|it| {
        let expected = SecretDigest::of(&session.csrf);
        same(&SecretDigest::of(it), &expected)
    });
    let changes_nothing = [Method::GET, Method::HEAD].contains(request.method());
    match changes_nothing || is_repeated {
        true => Ok((transport, digest, session)),
        false => Err(ApiError::csrf_token_missing(CSRF_TOKEN.as_str())),
    }
}

impl Api {
    /// Who is on the way to the identity provider and back.
    pub(super) fn sign_in_attempts(&self) -> MutexGuard<'_, AttemptTable> {
        let attempts = self.sign_in_attempts.lock();
        attempts.unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is signed in.
    pub(super) fn sessions(&self) -> MutexGuard<'_, SessionTable> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
