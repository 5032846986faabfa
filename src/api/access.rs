//! How are calls authorised? By bearer tokens (RFC 6750) and their scopes.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::{FromRequest, HttpMessage, HttpRequest};

use engine::customer::{Scope, Scopes, SecretDigest};
use engine::ids::{ClientId, CustomerId};

use super::Api;
use super::error::ApiError;
use super::secret::same;
use super::words::Word;

/// Who may call a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    /// Anybody.
    Open,
    /// The operator.
    Operator,
    /// A client of a customer that has the scope.
    Customer(Scope),
}

/// The API client of an authorised call.
#[derive(Clone, Debug)]
pub(super) struct AuthenticatedCaller {
    /// The customer whose data the call uses.
    pub(super) customer: CustomerId,
    /// The API client.
    pub(super) client: ClientId,
    /// What its token may do.
    pub(super) scopes: Scopes,
}

/// The API client, if the route needs one; an error if the call is not authorised.
pub(super) async fn authorise(
    api: &Api,
    access: Access,
    headers: &HeaderMap,
) -> Result<Option<AuthenticatedCaller>, ApiError> {
    match access {
        Access::Open => Ok(None),
        Access::Operator => {
            let presented = SecretDigest::of(bearer(headers)?);
            let known = same(&api.operator.digest, &presented);
            if known {
                Ok(None)
            } else {
                Err(ApiError::token_invalid())
            }
        }
        Access::Customer(scope) => {
            let digest = SecretDigest::of(bearer(headers)?);
            let found = api.store.token(digest).await?;
            let now = api.clock.now();
            let found = found.filter(|(token, _)| now < token.expires_at);
            let (token, client) = found.ok_or_else(ApiError::token_invalid)?;
            if !(client.scopes.has(scope) && token.scopes.has(scope)) {
                return Err(ApiError::scope_missing(scope.word()));
            }
            Ok(Some(AuthenticatedCaller {
                customer: client.customer,
                client: client.id,
                scopes: token.scopes.common(client.scopes),
            }))
        }
    }
}

impl FromRequest for AuthenticatedCaller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<Self>().cloned();
        ready(caller.ok_or_else(|| ApiError::internal("a route without a customer asked for one")))
    }
}

/// The credentials of a scheme (RFC 9110 section 11.4); the scheme's case does not matter.
pub(super) fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (named, credentials) = value.trim().split_once(' ')?;
    named
        .eq_ignore_ascii_case(scheme)
        .then(|| credentials.trim())
}

fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let token = credentials(headers, "Bearer").filter(|token| !token.is_empty());
    token.ok_or_else(ApiError::token_missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    #[test]
    fn the_scheme_is_case_insensitive_and_the_token_is_unchanged() {
        for value in ["Bearer aB1", "bearer aB1", "BEARER  aB1 "] {
            assert_eq!(bearer(&headers(value)).unwrap(), "aB1", "{value}");
        }
    }

    #[test]
    fn only_a_bearer_token_is_accepted() {
        for value in ["", "Bearer", "Bearer ", "Basic aB1", "aB1", "Bearer\taB1"] {
            assert!(bearer(&headers(value)).is_err(), "{value:?}");
        }
        assert!(bearer(&HeaderMap::new()).is_err());
    }

    fn headers(authorization: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
        headers
    }
}
