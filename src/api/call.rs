//! The middleware of every call: a trace id, a log span, authorisation, the error format, and the
//! headers of every response.

use std::future::{Ready, ready};

use actix_web::body::BoxBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    AUTHORIZATION, CACHE_CONTROL, HeaderName, HeaderValue, TRANSFER_ENCODING,
    X_CONTENT_TYPE_OPTIONS,
};
use actix_web::http::{ConnectionType, StatusCode};
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, Route, web};
use tracing::Instrument;

use actors::web::{Connection, ConnectionUse};
use engine::ids::TraceId;
use engine::network::network_of_host;

use super::Api;
use super::access::{Access, authorise, authorise_person};
use super::error::ApiError;
use super::health::silence;
use super::meters::UnderWay;
use super::rate_limit::{CallQuota, RateExceeded};
use super::session;
use super::session::table::{Session, SessionAuthority};

/// The trace id of the call, by which the operator finds it in the log.
const TRACE: HeaderName = HeaderName::from_static("x-trace-id");

/// The rate limit of the customer: the calls that may come at once, those that still may, and the
/// seconds until more may (draft-ietf-httpapi-ratelimit-headers-07).
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// What is answered without the lease, too.
const STEADY: [&str; 2] = ["/livez", "/metrics"];

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The id shared by everything that the call causes.
    pub(super) trace: TraceId,
}

/// How callers prove who they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CallCredentials {
    /// By a token in the Authorization header.
    Bearer,
    /// By the cookie of a session of the console.
    Session,
}

impl CallCredentials {
    /// Whether a route is served for these credentials: what is open to anybody needs no session.
    pub(super) fn suit(self, access: Access) -> bool {
        self == Self::Bearer || access != Access::Open
    }
}

/// The access check of a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteGuard {
    /// Who may call the route.
    pub(super) access: Access,
    /// How callers prove who they are.
    pub(super) credentials: CallCredentials,
    /// The path pattern of the route, for the metrics.
    pub(super) route: &'static str,
}

impl RouteGuard {
    /// The guard of a path that anybody may call.
    pub(super) fn open(path: &'static str) -> Self {
        Self {
            access: Access::Open,
            credentials: CallCredentials::Bearer,
            route: path,
        }
    }

    /// Puts this guard and the rest of what every call gets before a route.
    pub(super) fn before(self, route: Route) -> Route {
        route.wrap(from_fn(move |request, next| serve(self, request, next)))
    }
}

/// Serves a call.
async fn serve(
    guard: RouteGuard,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let api = request.app_data::<web::Data<Api>>().cloned();
    let api = api.expect("whoever mounts the routes gives them their state");
    let trace = TraceId::new(api.clock.moment().uuid());
    let method = request.method();
    let under_way = UnderWay::begin(method, guard.route);
    let connection = request.conn_data::<Connection>().cloned();
    if let Some(connection) = &connection {
        connection.serve();
    }
    // Such a body may never end.
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    // The span exists at every log level, so that each line names its call.
    let span = tracing::error_span!("call", %trace, %method, path = request.path());
    let answer = answer(api.clone(), Call { trace }, guard, request, next);
    let mut response = answer.instrument(span).await?;
    if api.readiness.is_leaving() {
        let head = response.response_mut().head_mut();
        head.set_connection_type(ConnectionType::Close);
    }
    let trace_header = HeaderValue::try_from(trace.to_string()).expect("an id has plain letters");
    let headers = response.headers_mut();
    headers.insert(TRACE, trace_header);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    under_way.answered(response.status());
    let Some(connection) = connection else {
        return Ok(response);
    };
    let response = response.map_body(|_, body| connection.answer(body));
    if is_chunked && (response.status().is_client_error() || response.status().is_server_error()) {
        connection.end_soon();
    }
    Ok(response)
}

async fn answer(
    api: web::Data<Api>,
    call: Call,
    guard: RouteGuard,
    mut request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let began = api.clock.now();
    request.extensions_mut().insert(call);
    let admitted = match silence().filter(|_| !STEADY.contains(&guard.route)) {
        Some(failure) => Err((failure, None)),
        None => admit(&api, guard, &mut request).await,
    };
    let (response, quota) = match admitted {
        Ok(quota) => (next.call(request).await?, quota),
        Err((failure, quota)) => (request.error_response(failure), quota),
    };
    let response = match guard.access {
        // The token endpoint counts every request.
        Access::Open => response,
        Access::Operator | Access::Network | Access::Customer(_) => slowed(&api, response),
    };
    let mut response = in_one_shape(response, call.trace);
    if let Some(quota) = quota {
        for (name, value) in [
            (RATE_LIMIT, quota.limit),
            (RATE_REMAINING, quota.remaining),
            (RATE_RESET, quota.reset_s),
        ] {
            response.headers_mut().insert(name, value.into());
        }
    }
    let took_ms = api.clock.now().since_ms(began);
    tracing::debug!(
        status = response.status().as_u16(),
        took_ms,
        "call answered"
    );
    Ok(response)
}

/// Admits a call, and returns what its customer may do next; none if it has no limit.
async fn admit(
    api: &Api,
    guard: RouteGuard,
    request: &mut ServiceRequest,
) -> Result<Option<CallQuota>, (ApiError, Option<CallQuota>)> {
    let access = guard.access;
    let connection = request.conn_data::<Connection>();
    let is_reserve = connection.is_some_and(|it| it.purpose() == ConnectionUse::Reserve);
    if is_reserve && matches!(access, Access::Customer(_)) {
        return Err((ApiError::busy().closing(), None));
    }
    let session = match guard.credentials {
        CallCredentials::Bearer => None,
        CallCredentials::Session => {
            Some(session::present(api, request).map_err(|refused| (refused, None))?)
        }
    };
    // Which one counts would depend on who reads them: this service or a proxy before it.
    if request.headers().get_all(AUTHORIZATION).count() > 1 {
        return Err((ApiError::repeated_header(AUTHORIZATION.as_str()), None));
    }
    let (session, authority) = session
        .map_or((None, None), |(digest, Session { authority, .. })| {
            (Some(digest), Some(authority))
        });
    let caller = match authority {
        Some(SessionAuthority::Person(person)) => {
            tracing::debug!(subject = %person.subject, "call of a person");
            authorise_person(api, access, person.grant).await
        }
        Some(SessionAuthority::Token(_)) | None => authorise(api, access, request.headers()).await,
    };
    let Some(caller) = caller.map_err(|refused| (refused, None))? else {
        return Ok(None);
    };
    let quota = api.rate.take(&caller.customer, api.clock.now());
    let quota = quota.map_err(|RateExceeded(quota)| {
        tracing::debug!(customer = %caller.customer, "call refused by the rate limit");
        (ApiError::too_many_calls(quota.reset_s), Some(quota))
    })?;
    request.extensions_mut().insert(caller.of_session(session));
    Ok(quota)
}

/// Refuses wrong credentials otherwise if they come too often from their address. Valid ones are
/// never refused for those of others behind the same address.
fn slowed(api: &Api, response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    if response.status() != StatusCode::UNAUTHORIZED {
        return response;
    }
    match api.count_credentials(response.request()) {
        Ok(()) => response,
        Err(refused) => {
            let (request, _) = response.into_parts();
            ServiceResponse::from_err(refused, request)
        }
    }
}

impl Api {
    /// Counts a token request or wrong credentials of an address, unless there were too many.
    pub(super) fn count_credentials(&self, request: &HttpRequest) -> Result<(), ApiError> {
        let Some(address) = request.peer_addr() else {
            return Ok(());
        };
        let taken = self
            .address_rate
            .take(&network_of_host(address.ip()), self.clock.now());
        taken
            .map(|_| ())
            .map_err(|RateExceeded(quota)| ApiError::too_many_credentials(quota.reset_s))
    }
}

/// Adds the body to an error response; other responses stay unchanged.
fn in_one_shape(response: ServiceResponse<BoxBody>, trace: TraceId) -> ServiceResponse<BoxBody> {
    let Some(error) = response.response().error() else {
        return response;
    };
    let failure = match error.as_error::<ApiError>() {
        Some(failure) => failure.clone(),
        None => ApiError::internal(error),
    };
    if let Some(inner) = failure.inner() {
        tracing::error!(inner, "call failed");
    }
    let (request, _) = response.into_parts();
    ServiceResponse::new(request, failure.response(trace))
}

impl FromRequest for Call {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let call = request.extensions().get::<Self>().copied();
        ready(call.ok_or_else(|| ApiError::internal("a handler was reached past the door")))
    }
}
