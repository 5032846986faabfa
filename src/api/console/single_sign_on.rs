//! Which handlers sign people in with the identity provider? They are called by navigations of a
//! browser, so a refusal is a page.

use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE,
};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use engine::customer::SecretDigest;

use crate::api::docs::markup::Html;
use crate::api::error::ApiError;
use crate::api::oidc::attempts::SignInAttempt;
use crate::api::oidc::{IdentityProvider, SignInProblem, SignedInPerson, is_error_code};
use crate::api::secret::same;
use crate::api::session::browser::{BrowserCookie, BrowserTransport};
use crate::api::session::table::{Principal, SessionAuthority};
use crate::api::{Api, ServedRoutes};
use crate::config::PersonGrant;

use super::signing_in::{drawn, enter, new_session};
use super::{CONSOLE, OIDC_CALLBACK, bundle};

/// The page of a refusal loads the style of the console alone.
const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// With what people sign in.
#[derive(Serialize)]
struct SingleSignOnBody<'a> {
    name: &'a str,
}

/// What a person wants to see.
#[derive(Default, Deserialize)]
struct BeginQuery {
    to: Option<String>,
}

/// What the provider says (RFC 6749 section 4.1.2, RFC 9207).
#[derive(Default, Deserialize)]
struct CallbackQuery {
    #[serde(default)]
    state: String,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

/// GET: the identity provider that the sign-in page offers; 204 if there is none.
pub(super) async fn show(api: web::Data<Api>) -> HttpResponse {
    match &api.identity_provider {
        Some(provider) => HttpResponse::Ok().json(SingleSignOnBody {
            name: provider.name(),
        }),
        None => HttpResponse::NoContent().finish(),
    }
}

/// GET: sends the browser to the identity provider.
pub(super) async fn begin(request: HttpRequest, api: web::Data<Api>) -> HttpResponse {
    begun(&api, &request).await.unwrap_or_else(refusal)
}

/// GET: the identity provider sends the browser back.
pub(super) async fn finish(request: HttpRequest, api: web::Data<Api>) -> HttpResponse {
    finished(&api, &request).await.unwrap_or_else(refusal)
}

async fn begun(api: &Api, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
    let provider = provider_of(api)?;
    let transport = BrowserTransport::of(request)?;
    api.count_credentials(request)?;
    let origin = match provider.console() {
        Some(origin) => origin.to_owned(),
        None => transport.origin(request.headers())?,
    };
    let (state, secret) = (drawn()?, drawn()?);
    let attempt = SignInAttempt {
        browser: SecretDigest::of(&secret),
        nonce: drawn()?,
        verifier: drawn()?,
        redirect_uri: format!("{origin}{OIDC_CALLBACK}"),
        view: view_of(request),
    };
    let location = provider.authorization_url(&state, &attempt).await;
    let location = location.map_err(told)?;
    let state = SecretDigest::of(&state);
    api.sign_in_attempts().add(state, attempt, api.clock.now());
    let cookie = transport.cookie(BrowserCookie::SignInAttempt, &secret);
    Ok(HttpResponse::SeeOther()
        .insert_header((LOCATION, location))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((SET_COOKIE, cookie))
        .finish())
}

async fn finished(api: &Api, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
    let provider = provider_of(api)?;
    let transport = BrowserTransport::of(request)?;
    api.count_credentials(request)?;
    let query = web::Query::<CallbackQuery>::from_query(request.query_string());
    let query = query.map(web::Query::into_inner).unwrap_or_default();
    let attempt = attempt_of(api, request, transport, &query)?;
    let code = code_of(provider, query).map_err(told)?;
    let person = provider.person(&code, &attempt).await.map_err(told)?;
    expect_usable(api, request, &person).await?;
    let subject = &person.subject;
    match &person.grant {
        PersonGrant::Operator => info!(%subject, "a person signed in as the operator"),
        PersonGrant::Customer { customer, .. } => {
            info!(%subject, %customer, "a person signed in");
        }
    }
    let principal = Principal::Person(person.subject.clone());
    let session = new_session(api, principal, SessionAuthority::Person(person))?;
    let cookie = enter(api, request, transport, session)?;
    Ok(HttpResponse::SeeOther()
        .insert_header((LOCATION, attempt.view))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .append_header((SET_COOKIE, cookie))
        .append_header((
            SET_COOKIE,
            transport.no_cookie(BrowserCookie::SignInAttempt),
        ))
        .finish())
}

fn provider_of(api: &Api) -> Result<&IdentityProvider, ApiError> {
    api.identity_provider
        .as_ref()
        .ok_or_else(ApiError::path_unknown)
}

/// The view of the console that a person wants; none is at another origin.
fn view_of(request: &HttpRequest) -> String {
    let query = web::Query::<BeginQuery>::from_query(request.query_string());
    let to = query.map(web::Query::into_inner).unwrap_or_default().to;
    let is_view = |path: &String| {
        let rest = path.strip_prefix(CONSOLE);
        let is_inside = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        is_inside && path.bytes().all(|byte| byte.is_ascii_graphic())
    };
    to.filter(is_view).unwrap_or_else(|| CONSOLE.to_owned())
}

/// The attempt that the provider answers, if this browser began it.
fn attempt_of(
    api: &Api,
    request: &HttpRequest,
    transport: BrowserTransport,
    query: &CallbackQuery,
) -> Result<SignInAttempt, ApiError> {
    let state = SecretDigest::of(&query.state);
    let attempt = api.sign_in_attempts().take(&state, api.clock.now());
    let secret = transport.secret(BrowserCookie::SignInAttempt, request.headers());
    let browser = secret.map(SecretDigest::of);
    let is_its = |attempt: &SignInAttempt| browser.is_some_and(|it| same(&it, &attempt.browser));
    attempt
        .filter(is_its)
        .ok_or_else(ApiError::sign_in_attempt_unknown)
}

fn code_of(provider: &IdentityProvider, query: CallbackQuery) -> Result<String, SignInProblem> {
    if query.iss.is_some_and(|issuer| issuer != provider.issuer()) {
        let why = "its response names another issuer (iss)";
        return Err(SignInProblem::Provider(why.to_owned()));
    }
    match (query.error, query.code) {
        (Some(error), _) if is_error_code(&error) => Err(SignInProblem::Refused(error)),
        (Some(_), _) => Err(SignInProblem::Refused("it does not say why".to_owned())),
        (None, Some(code)) => Ok(code),
        (None, None) => {
            let why = "its response has no code";
            Err(SignInProblem::Provider(why.to_owned()))
        }
    }
}

/// Refuses a person whose rule leads nowhere.
async fn expect_usable(
    api: &Api,
    request: &HttpRequest,
    person: &SignedInPerson,
) -> Result<(), ApiError> {
    match &person.grant {
        PersonGrant::Operator => match request.app_data::<ServedRoutes>() {
            Some(ServedRoutes::WithoutOperator) => Err(ApiError::operator_elsewhere()),
            Some(ServedRoutes::All | ServedRoutes::Operator) | None => Ok(()),
        },
        PersonGrant::Customer { customer, .. } => {
            let found = api.store.customer(customer.clone()).await?;
            let unknown = || ApiError::customer_of_group_unknown(customer);
            found.map(drop).ok_or_else(unknown)
        }
    }
}

/// The refusal for a problem, which the operator finds in the log.
fn told(problem: SignInProblem) -> ApiError {
    match problem {
        SignInProblem::Provider(_) | SignInProblem::IdToken(_) => {
            warn!(%problem, "a person cannot sign in with the identity provider");
        }
        SignInProblem::Refused(_) | SignInProblem::Code | SignInProblem::NoGroup(_) => {
            info!(%problem, "a person was not signed in");
        }
    }
    problem.into()
}

/// A refusal as a page.
fn refusal(error: ApiError) -> HttpResponse {
    let mut page = Html::default();
    page.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.raw("<meta name=\"viewport\" content=\"width=device-width\">");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">");
    page.element("title", "", "Not signed in – signalbox");
    if let Some(style) = bundle::style() {
        page.raw("<link rel=\"stylesheet\" href=\"/console/assets/");
        page.text(style);
        page.raw("\">");
    }
    page.raw("</head><body><main class=\"sign-in\"><div class=\"card stack\">");
    page.element("h1", "", "Not signed in");
    for message in error.messages() {
        page.element("p", "", &sentence(message));
    }
    page.raw("<p><a href=\"/console\">Back to signing in</a></p></div></main></body></html>");
    let mut response = error.page(page.into_text());
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let first: String = first.collect();
    format!("{first}{}.", letters.as_str())
}
