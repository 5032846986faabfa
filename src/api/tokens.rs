//! Which handler issues access tokens (RFC 6749 section 4.4)?

pub(super) mod described;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, PRAGMA};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::Value;

use engine::base64_text;
use engine::customer::{ApiClient, ClientOwner, ClientSecret, Scopes, SecretDigest};
use engine::directory::customer::issue_token;
use engine::ids::ClientId;
use store::CommitError;

use super::Api;
use super::access::credentials;
use super::body::Raw;
use super::error::{ApiError, ErrorDetail, bad_credentials};
use super::fields::properties::{Properties, unread};
use super::secret::{draw, same};
use super::words::{NETWORK_SCOPE, read_scopes, scope_words_of};

/// The parameters of the token endpoint.
const PARAMETERS: [&str; 4] = ["grant_type", "client_id", "client_secret", "scope"];

const GRANT: &str = "client_credentials";

/// The error code of RFC 6749 section 5.2, in its spelling.
const INVALID_SCOPE: &str = "invalid_scope";

/// Issues a token.
pub(super) async fn issue(
    request: HttpRequest,
    raw: Raw,
    api: web::Data<Api>,
) -> Result<HttpResponse, ApiError> {
    api.count_credentials(&request)?;
    let mut token_request = TokenRequest::read(request.headers(), &raw)?;
    let wanted = token_request.scope.take().unwrap_or_default();
    let Some(client) = known_client(&api, token_request).await? else {
        return Ok(bad_credentials());
    };
    let scopes = granted(&wanted, &client)?;
    let token = draw().map_err(ApiError::internal)?;
    let digest = SecretDigest::of(&token);
    let lifetime_s = api.token_lifetime_s;
    let batch = issue_token(&api.clock.moment(), &client, scopes, digest, lifetime_s);
    match api.commits.commit(batch).await {
        Ok(()) => Ok(issued(token, &client, scopes, lifetime_s)),
        // The client was removed since it was read.
        Err(CommitError::Conflict) => Ok(bad_credentials()),
        Err(error) => Err(ApiError::from(error)),
    }
}

/// The credentials, the grant type and the wanted scopes of a call.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct TokenRequest {
    id: Option<String>,
    secret: Option<String>,
    grant: Option<String>,
    scope: Option<String>,
}

impl TokenRequest {
    /// Reads the Authorization header and the body; parameters that it does not know, or that have
    /// no value, are ignored (RFC 6749 section 3.2), and the others come once.
    fn read(headers: &HeaderMap, raw: &Raw) -> Result<Self, ApiError> {
        let mut token_request = Self::default();
        let mut faults = Vec::new();
        for (name, value) in pairs(raw)?
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
        {
            let known = match name.as_str() {
                "grant_type" => &mut token_request.grant,
                "client_id" => &mut token_request.id,
                "client_secret" => &mut token_request.secret,
                "scope" => &mut token_request.scope,
                _ => continue,
            };
            if known.replace(value).is_some() {
                faults.push(ErrorDetail::of(
                    "REPEATED",
                    &name,
                    "must be given only once",
                ));
            }
        }
        if !faults.is_empty() {
            return Err(ApiError::invalid(faults));
        }
        if let Some(basic) = credentials(headers, "Basic") {
            let (id, secret) = basic_pair(basic).unzip();
            // RFC 6749 section 2.3: one method of authentication; section 3.2.1: the id may be in
            // the body as well.
            let is_other = token_request.id.is_some() && token_request.id != id;
            if token_request.secret.is_some() || is_other {
                return Err(ApiError::invalid(vec![ErrorDetail::of(
                    "REPEATED",
                    "client_id",
                    "must be given only once: in the Authorization header or in the body",
                )]));
            }
            token_request = Self {
                id,
                secret,
                ..token_request
            };
        }
        match token_request.grant.as_deref() {
            Some(GRANT) => Ok(token_request),
            Some(_) => Err(ApiError::invalid(vec![ErrorDetail::of(
                "UNSUPPORTED_GRANT_TYPE",
                "grant_type",
                format!("must be {GRANT}"),
            )])),
            None => Err(ApiError::invalid(vec![ErrorDetail::of(
                "REQUIRED",
                "grant_type",
                "is required",
            )])),
        }
    }
}

fn pairs(raw: &Raw) -> Result<Vec<(String, String)>, ApiError> {
    match raw.media_type.as_str() {
        "application/x-www-form-urlencoded" => {
            let text = std::str::from_utf8(&raw.bytes).ok();
            let pairs = text.and_then(|text| web::Query::from_query(text).ok());
            pairs
                .map(web::Query::into_inner)
                .ok_or_else(|| ApiError::malformed("the body is not form-encoded"))
        }
        "application/json" => {
            let Properties(properties) = serde_json::from_slice(&raw.bytes).map_err(unread)?;
            texts(properties)
        }
        _ if raw.bytes.is_empty() => Ok(Vec::new()),
        _ => Err(ApiError::unsupported_media(
            "application/json or application/x-www-form-urlencoded",
        )),
    }
}

/// The string properties; a known parameter of another type is a fault.
fn texts(properties: Vec<(String, Value)>) -> Result<Vec<(String, String)>, ApiError> {
    let (mut texts, mut faults) = (Vec::new(), Vec::new());
    for (name, value) in properties {
        match value {
            Value::String(text) => texts.push((name, text)),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                if PARAMETERS.contains(&name.as_str()) {
                    faults.push(ErrorDetail::of("WRONG_TYPE", &name, "must be a string"));
                }
            }
        }
    }
    match faults.is_empty() {
        true => Ok(texts),
        false => Err(ApiError::invalid(faults)),
    }
}

fn basic_pair(basic: &str) -> Option<(String, String)> {
    let text = String::from_utf8(base64_text::decode(basic).ok()?).ok()?;
    text.split_once(':')
        .map(|(id, secret)| (id.to_owned(), secret.to_owned()))
}

async fn known_client(
    api: &Api,
    token_request: TokenRequest,
) -> Result<Option<ApiClient>, ApiError> {
    let (Some(id), Some(secret)) = (token_request.id, token_request.secret) else {
        return Ok(None);
    };
    client_with(api, &id, &secret).await
}

/// The API client with this id and this secret.
pub(super) async fn client_with(
    api: &Api,
    id: &str,
    secret: &str,
) -> Result<Option<ApiClient>, ApiError> {
    let Ok(id) = ClientId::parse(id) else {
        return Ok(None);
    };
    let client = api.store.client(id).await?;
    let presented = SecretDigest::of(secret);
    let now = api.clock.now();
    let is_its = |secret: &ClientSecret| secret.is_valid(now) & same(&secret.digest, &presented);
    Ok(client.filter(|client| client.secrets.iter().any(is_its)))
}

/// The scopes of a token: the wanted ones, or all of the client if none is named (RFC 6749 section
/// 3.3).
fn granted(wanted: &str, client: &ApiClient) -> Result<Scopes, ApiError> {
    let words: Vec<_> = wanted.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return Ok(client.scopes);
    }
    let refuse = |why| ApiError::invalid(vec![ErrorDetail::of(INVALID_SCOPE, "scope", why)]);
    let scopes = match client.owner {
        ClientOwner::Customer(_) => Some(read_scopes(&words).map_err(refuse)?),
        ClientOwner::Network => words
            .iter()
            .all(|word| word == NETWORK_SCOPE)
            .then_some(Scopes::NONE),
    };
    let granted = scopes.filter(|scopes| client.scopes.contains(*scopes));
    granted.ok_or_else(|| {
        let has = scope_words_of(client, client.scopes).join(" ");
        refuse(format!("must name only scopes of the client: {has}"))
    })
}

/// The order and spelling of the fields are those of the service that callers migrate from.
#[derive(Serialize)]
struct TokenBody {
    status_code: u16,
    access_token: String,
    token_type: &'static str,
    expires_in: u32,
    #[serde(rename = "userId")]
    user_id: String,
    scope: String,
}

fn issued(token: String, client: &ApiClient, scopes: Scopes, lifetime_s: u32) -> HttpResponse {
    let body = TokenBody {
        status_code: StatusCode::OK.as_u16(),
        access_token: token,
        token_type: "bearer",
        expires_in: lifetime_s,
        user_id: client.id.to_string(),
        scope: scope_words_of(client, scopes).join(" "),
    };
    // RFC 6749 section 5.1, beside the `no-store` of every response.
    let mut response = HttpResponse::Ok();
    response.insert_header((PRAGMA, "no-cache")).json(body)
}
