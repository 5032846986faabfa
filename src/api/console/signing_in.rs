//! Which handlers open and end sessions of the console?

use actix_web::http::header::SET_COOKIE;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};

use engine::customer::{ApiClient, ClientOwner, SecretDigest};
use engine::directory::customer::issue_token;
use engine::ids::CustomerId;
use store::CommitError;

use crate::api::body::Raw;
use crate::api::error::ApiError;
use crate::api::secret::{draw, same};
use crate::api::session::browser::{BrowserCookie, BrowserTransport};
use crate::api::session::of_call;
use crate::api::session::table::{CODE_LIFETIME_S, Principal, Session, SessionAuthority};
use crate::api::tokens::client_with;
use crate::api::words::{scope_words, scope_words_of};
use crate::api::{Api, ServedRoutes};
use crate::config::PersonGrant;

/// The credentials in the body of a call: those of an API client, of the operator, or a code.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CredentialsBody {
    client_id: Option<String>,
    client_secret: Option<String>,
    operator_token: Option<String>,
    code: Option<String>,
}

/// A session, as its browser sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionBody {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_id: Option<String>,
    scopes: Vec<&'static str>,
    platform: String,
    csrf_token: String,
    idle_s: u32,
    expires: String,
}

/// A one-time code.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeBody {
    code: String,
    expires_in: u32,
}

/// POST: opens a session and gives the browser its cookie.
pub(super) async fn sign_in(
    request: HttpRequest,
    raw: Raw,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let transport = BrowserTransport::of(&request)?;
    api.count_credentials(&request)?;
    let (principal, token) = admitted(&api, &request, credentials_of(&raw)?).await?;
    let session = new_session(&api, principal, SessionAuthority::Token(token))?;
    let body = shown(&api, &session).await?;
    let body = body.ok_or_else(ApiError::credentials_wrong)?;
    let cookie = enter(&api, &request, transport, session)?;
    Ok(HttpResponse::Ok()
        .insert_header((SET_COOKIE, cookie))
        .json(body))
}

/// A session that begins now.
pub(super) fn new_session(
    api: &Api,
    principal: Principal,
    authority: SessionAuthority,
) -> Result<Session, ApiError> {
    let total_s = api.sessions().lifetime().total_s;
    Ok(Session {
        principal,
        authority,
        csrf: drawn()?,
        ends_at: api.clock.now().plus_s(total_s.into()),
    })
}

/// Opens a session in place of the one that the browser has, and returns its cookie.
pub(super) fn enter(
    api: &Api,
    request: &HttpRequest,
    transport: BrowserTransport,
    session: Session,
) -> Result<String, ApiError> {
    let secret = drawn()?;
    let mut sessions = api.sessions();
    if let Some(former) = transport.secret(BrowserCookie::Session, request.headers()) {
        sessions.close(&SecretDigest::of(former));
    }
    sessions.open(SecretDigest::of(&secret), session, api.clock.now());
    Ok(transport.cookie(BrowserCookie::Session, &secret))
}

/// GET: the session of the browser; 204 if it has none.
pub(super) async fn show(
    request: HttpRequest,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let transport = BrowserTransport::of(&request)?;
    let session = transport
        .secret(BrowserCookie::Session, request.headers())
        .and_then(|secret| {
            let sessions = api.sessions();
            sessions
                .find(&SecretDigest::of(secret), api.clock.now())
                .cloned()
        });
    let body = match session {
        Some(session) => shown(&api, &session).await?,
        None => None,
    };
    Ok(body.map_or_else(
        || HttpResponse::NoContent().finish(),
        |body| HttpResponse::Ok().json(body),
    ))
}

/// DELETE: ends the session.
pub(super) async fn sign_out(
    request: HttpRequest,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let (transport, digest, _) = of_call(&api, &request)?;
    api.sessions().close(&digest);
    Ok(signed_out(transport))
}

/// DELETE: ends every session that was opened with the same credentials.
pub(super) async fn sign_out_everywhere(
    request: HttpRequest,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    let (transport, _, session) = of_call(&api, &request)?;
    api.sessions().close_all(&session.principal);
    Ok(signed_out(transport))
}

/// POST: a one-time code, for a link that signs in without showing the secret.
pub(super) async fn create_code(
    request: HttpRequest,
    raw: Raw,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    BrowserTransport::of(&request)?;
    api.count_credentials(&request)?;
    let client = client_of(&api, &credentials_of(&raw)?).await?;
    let client = client.ok_or_else(ApiError::credentials_wrong)?;
    let code = drawn()?;
    let digest = SecretDigest::of(&code);
    api.sessions().add_code(digest, client.id, api.clock.now());
    Ok(HttpResponse::Created().json(CodeBody {
        code,
        expires_in: CODE_LIFETIME_S,
    }))
}

/// Whose the credentials are, and the token for the session.
async fn admitted(
    api: &Api,
    request: &HttpRequest,
    body: CredentialsBody,
) -> Result<(Principal, String), ApiError> {
    if let Some(token) = body.operator_token {
        let is_served = request.app_data::<ServedRoutes>() != Some(&ServedRoutes::WithoutOperator);
        let is_its = same(&api.operator.digest, &SecretDigest::of(&token));
        return match is_served && is_its {
            true => Ok((Principal::Operator, token)),
            false => Err(ApiError::credentials_wrong()),
        };
    }
    let client = match &body.code {
        None => client_of(api, &body).await?,
        Some(code) => {
            let digest = SecretDigest::of(code);
            let redeemed = api.sessions().redeem(&digest, api.clock.now());
            match redeemed {
                Some(client) => api.store.client(client).await?,
                None => return Err(ApiError::code_unusable()),
            }
        }
    };
    // The console has nothing for the network side.
    let client = client.filter(|client| customer_of(client).is_some());
    let client = client.ok_or_else(ApiError::credentials_wrong)?;
    let bearer = token_for(api, &client).await?;
    Ok((Principal::Client(client.id), bearer))
}

async fn client_of(api: &Api, body: &CredentialsBody) -> Result<Option<ApiClient>, ApiError> {
    match (&body.client_id, &body.client_secret) {
        (Some(id), Some(secret)) => client_with(api, id, secret).await,
        (None | Some(_), None) | (None, Some(_)) => Ok(None),
    }
}

fn customer_of(client: &ApiClient) -> Option<&CustomerId> {
    match &client.owner {
        ClientOwner::Customer(customer) => Some(customer),
        ClientOwner::Network => None,
    }
}

/// A token of an API client that lasts as long as its session may.
async fn token_for(api: &Api, client: &ApiClient) -> Result<String, ApiError> {
    let token = drawn()?;
    let digest = SecretDigest::of(&token);
    let lifetime_s = api.sessions().lifetime().total_s;
    let moment = api.clock.moment();
    let batch = issue_token(&moment, client, client.scopes, digest, lifetime_s);
    match api.commits.commit(batch).await {
        Ok(()) => Ok(token),
        // The client was removed since it was read.
        Err(CommitError::Conflict) => Err(ApiError::credentials_wrong()),
        Err(error) => Err(ApiError::from(error)),
    }
}

/// The session with what its owner may do now; none if the API client is gone, or the customer of
/// the person.
async fn shown(api: &Api, session: &Session) -> Result<Option<SessionBody>, ApiError> {
    let mut body = SessionBody {
        role: "OPERATOR",
        client_id: None,
        person: None,
        customer_id: None,
        scopes: Vec::new(),
        platform: api.platform.clone(),
        csrf_token: session.csrf.clone(),
        idle_s: api.sessions().lifetime().idle_s,
        expires: session.ends_at.iso().to_string(),
    };
    match (&session.authority, &session.principal) {
        (SessionAuthority::Token(token), Principal::Client(_)) => {
            let digest = SecretDigest::of(token);
            let Some((token, client)) = api.store.token(digest).await? else {
                return Ok(None);
            };
            body.role = "API_CLIENT";
            body.scopes = scope_words_of(&client, token.scopes.common(client.scopes));
            body.customer_id = customer_of(&client).map(ToString::to_string);
            body.client_id = Some(client.id.to_string());
        }
        (SessionAuthority::Token(_), Principal::Operator | Principal::Person(_)) => {}
        (SessionAuthority::Person(person), _) => {
            body.person = Some(person.name.to_string());
            if let PersonGrant::Customer { customer, scopes } = &person.grant {
                if api.store.customer(customer.clone()).await?.is_none() {
                    return Ok(None);
                }
                body.role = "PERSON";
                body.scopes = scope_words(*scopes);
                body.customer_id = Some(customer.to_string());
            }
        }
    }
    Ok(Some(body))
}

fn credentials_of(raw: &Raw) -> Result<CredentialsBody, ApiError> {
    // A form of another site cannot send this media type.
    if raw.media_type != "application/json" {
        return Err(ApiError::unsupported_media("application/json"));
    }
    // What serde says of a body may repeat a part of it.
    serde_json::from_slice(&raw.bytes).map_err(|_| {
        ApiError::malformed(
            "the body must be a JSON object with clientId and clientSecret, operatorToken, or code",
        )
    })
}

fn signed_out(transport: BrowserTransport) -> HttpResponse {
    HttpResponse::NoContent()
        .insert_header((SET_COOKIE, transport.no_cookie(BrowserCookie::Session)))
        .finish()
}

pub(super) fn drawn() -> Result<String, ApiError> {
    draw().map_err(ApiError::internal)
}
