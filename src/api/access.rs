//! How are calls authorised? By bearer tokens (RFC 6750) and their scopes.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::{FromRequest, HttpMessage, HttpRequest};

use engine::customer::{ClientOwner, Scope, Scopes, SecretDigest};
use engine::ids::{ClientId, CustomerId};

use crate::config::PersonGrant;
use crate::operator::OperatorToken;

use super::Api;
use super::error::ApiError;
use super::secret::same;
use super::words::{NETWORK_SCOPE, Word};

/// Who may call a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    /// Anybody.
    Open,
    /// The operator.
    Operator,
    /// The operator, or a client of the network.
    Network,
    /// A client of a customer that has the scope.
    Customer(Scope),
}

/// The customer's API client of an authorised call, or the person who made it at the console.
#[derive(Clone, Debug)]
pub(super) struct AuthenticatedCaller {
    /// The customer whose data the call uses.
    pub(super) customer: CustomerId,
    /// What the caller may do.
    pub(super) scopes: Scopes,
    /// The access that the call required.
    access: Access,
    /// The API client with its token; none if a person calls.
    client: Option<(ClientId, SecretDigest)>,
    /// The session of the console that the call was made for, if it was.
    session: Option<SecretDigest>,
}

impl AuthenticatedCaller {
    /// The same caller, who called for a session of the console.
    pub(super) fn of_session(self, session: Option<SecretDigest>) -> Self {
        Self { session, ..self }
    }

    /// Whether a session of the console makes the call.
    pub(super) fn is_of_session(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the same call would be authorised now. A response that takes long asks again.
    pub(super) async fn is_still_authorised(&self, api: &Api) -> bool {
        let is_authorised = match &self.client {
            Some((_, token)) => authorise_token(api, self.access, *token).await.is_ok(),
            None => self.has_customer(api).await.unwrap_or(false),
        };
        is_authorised && self.is_signed_in(api)
    }

    /// Whether the API client was removed, or the session of the person has ended, however long ago
    /// the call was authorised.
    pub(super) async fn is_revoked(&self, api: &Api) -> Result<bool, ApiError> {
        match &self.client {
            Some((client, _)) => Ok(api.store.client(client.clone()).await?.is_none()),
            None => Ok(!self.is_signed_in(api) || !self.has_customer(api).await?),
        }
    }

    async fn has_customer(&self, api: &Api) -> Result<bool, ApiError> {
        Ok(api.store.customer(self.customer.clone()).await?.is_some())
    }

    fn is_signed_in(&self, api: &Api) -> bool {
        let is_open =
            |session: &SecretDigest| api.sessions().find(session, api.clock.now()).is_some();
        self.session.as_ref().is_none_or(is_open)
    }
}

/// The API client, if the route is one of customers; an error if the call is not authorised.
pub(super) async fn authorise(
    api: &Api,
    access: Access,
    headers: &HeaderMap,
) -> Result<Option<AuthenticatedCaller>, ApiError> {
    if access == Access::Open {
        return Ok(None);
    }
    authorise_token(api, access, SecretDigest::of(bearer(headers)?)).await
}

/// An error unless the operator calls.
pub(super) fn authorise_operator(
    operator: &OperatorToken,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    match same(&operator.digest, &SecretDigest::of(bearer(headers)?)) {
        true => Ok(()),
        false => Err(ApiError::token_invalid()),
    }
}

/// The caller for a person who calls a route of customers.
pub(super) async fn authorise_person(
    api: &Api,
    access: Access,
    grant: PersonGrant,
) -> Result<Option<AuthenticatedCaller>, ApiError> {
    match (access, grant) {
        (Access::Open, _) | (Access::Operator | Access::Network, PersonGrant::Operator) => Ok(None),
        (Access::Customer(scope), PersonGrant::Customer { customer, scopes })
            if scopes.has(scope) =>
        {
            // The session of a person ends with the customer, as the clients of that do.
            let found = api.store.customer(customer).await?;
            let customer = found.ok_or_else(ApiError::session_missing)?.id;
            Ok(Some(AuthenticatedCaller {
                customer,
                scopes,
                access,
                client: None,
                session: None,
            }))
        }
        (Access::Customer(scope), _) => Err(ApiError::scope_missing(scope.word())),
        (Access::Operator | Access::Network, PersonGrant::Customer { .. }) => {
            Err(ApiError::operator_only())
        }
    }
}

async fn authorise_token(
    api: &Api,
    access: Access,
    digest: SecretDigest,
) -> Result<Option<AuthenticatedCaller>, ApiError> {
    let is_for_operator = matches!(access, Access::Operator | Access::Network);
    if is_for_operator && same(&api.operator.digest, &digest) {
        return Ok(None);
    }
    let found = api.store.token(digest).await?;
    let now = api.clock.now();
    let found = found.filter(|(token, _)| now < token.expires_at);
    let (token, client) = found.ok_or_else(ApiError::token_invalid)?;
    let scopes = token.scopes.common(client.scopes);
    match (access, client.owner) {
        (Access::Network, ClientOwner::Network) | (Access::Open, _) => Ok(None),
        (Access::Customer(scope), ClientOwner::Customer(customer)) if scopes.has(scope) => {
            Ok(Some(AuthenticatedCaller {
                customer,
                scopes,
                access,
                client: Some((client.id, digest)),
                session: None,
            }))
        }
        (Access::Customer(scope), _) => Err(ApiError::scope_missing(scope.word())),
        (Access::Network, ClientOwner::Customer(_)) => Err(ApiError::scope_missing(NETWORK_SCOPE)),
        (Access::Operator, ClientOwner::Network) => Err(ApiError::operator_only()),
        (Access::Operator, ClientOwner::Customer(_)) => Err(ApiError::token_invalid()),
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
