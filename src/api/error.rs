//! How does the API say no? The only place that knows the status codes of failures.
//!
//! What went wrong has two faces: what the caller is told, and what the operator reads in the log.
//! A failure says the first; an inner message, where there is one, goes to the log alone.

pub(super) mod described;

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::Serialize;

use engine::change::Name;
use engine::delivery::forwarding::{NotActive, ReplayUnderWay};
use engine::device::queue::{CancelRefusal, SubmitRefusal};
use engine::directory::Refusal;
use engine::directory::device::Nameless;
use engine::ids::TraceId;
use engine::query::devices::TooBroad;
use engine::supervision::Unserved;
use store::{CommitError, Unavailable};

/// When a caller that came too early may come again: what has queued is done by then.
const BUSY_RETRY_S: u32 = 1;

/// When to come again after the store failed: somebody has to look at it first.
const STORE_RETRY_S: u32 = 5;

/// Faults that an answer tells one by one: more than people read, and more than the devices that
/// one call may name. Of the others it says how many there are, so that no body is answered by a
/// much longer one.
const FAULTS_MAX: usize = 100;

/// Why a call is not granted.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    status: StatusCode,
    faults: Vec<Fault>,
    /// A header the status requires.
    header: Option<(HeaderName, String)>,
    /// What the operator should know and the caller not.
    inner: Option<String>,
}

/// One thing wrong with a call.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Fault {
    /// What programs look at.
    pub(super) code: &'static str,
    /// What people read.
    pub(super) message: String,
    /// The property or parameter it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
}

impl Fault {
    /// A fault of the whole call.
    pub(super) fn new(code: &'static str, message: impl fmt::Display) -> Self {
        Self {
            code,
            message: message.to_string(),
            field: None,
        }
    }

    /// A fault of one property or parameter.
    pub(super) fn of(code: &'static str, field: &str, message: impl fmt::Display) -> Self {
        Self {
            code,
            message: message.to_string(),
            field: Some(field.to_owned()),
        }
    }
}

impl Failure {
    /// What was asked cannot be understood or is out of range; every fault at once, or the first
    /// of very many.
    pub(super) fn invalid(mut faults: Vec<Fault>) -> Self {
        let more = faults.len().saturating_sub(FAULTS_MAX);
        if more > 0 {
            faults.truncate(FAULTS_MAX);
            let message = format!("faults that are not listed: {more}");
            faults.push(Fault::new("MORE_FAULTS", message));
        }
        Self::new(StatusCode::BAD_REQUEST, faults)
    }

    /// The body is not what it says it is.
    pub(super) fn malformed(message: impl fmt::Display) -> Self {
        Self::invalid(vec![Fault::new("MALFORMED_BODY", message)])
    }

    /// No token came with the call.
    pub(super) fn token_missing() -> Self {
        let fault = Fault::new("UNAUTHORIZED", "an access token is required");
        Self::new(StatusCode::UNAUTHORIZED, vec![fault])
            .with(WWW_AUTHENTICATE, "Bearer realm=\"signalbox\"")
    }

    /// The token is none, or not any more.
    pub(super) fn token_invalid() -> Self {
        let fault = Fault::new(
            "UNAUTHORIZED",
            "the access token is unknown, revoked or expired",
        );
        Self::new(StatusCode::UNAUTHORIZED, vec![fault]).with(
            WWW_AUTHENTICATE,
            "Bearer realm=\"signalbox\", error=\"invalid_token\"",
        )
    }

    /// The client may not do this.
    pub(super) fn scope_missing(scope: &str) -> Self {
        let message = format!("the access token lacks the scope {scope}");
        let challenge =
            format!("Bearer realm=\"signalbox\", error=\"insufficient_scope\", scope=\"{scope}\"");
        Self::new(
            StatusCode::FORBIDDEN,
            vec![Fault::new("FORBIDDEN", message)],
        )
        .with(WWW_AUTHENTICATE, &challenge)
    }

    /// What is addressed does not exist, or not for this caller.
    pub(super) fn unknown(what: &str) -> Self {
        let fault = Fault::new("NOT_FOUND", format!("there is no such {what}"));
        Self::new(StatusCode::NOT_FOUND, vec![fault])
    }

    /// No route has this path.
    pub(super) fn path_unknown() -> Self {
        let fault = Fault::new("NOT_FOUND", "there is nothing at this path");
        Self::new(StatusCode::NOT_FOUND, vec![fault])
    }

    /// The path has other methods.
    pub(super) fn method_not_allowed(allowed: &str) -> Self {
        let fault = Fault::new("METHOD_NOT_ALLOWED", format!("this path allows {allowed}"));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, vec![fault]).with(ALLOW, allowed)
    }

    /// What was asked does not go with how things are.
    pub(super) fn conflict(faults: Vec<Fault>) -> Self {
        Self::new(StatusCode::CONFLICT, faults)
    }

    /// It does not in one way.
    fn clash(code: &'static str, why: impl fmt::Display) -> Self {
        Self::conflict(vec![Fault::new(code, why)])
    }

    /// A call under the same key is under way, and may yet be refused.
    pub(super) fn key_in_use(header: &str) -> Self {
        let message = "a call with this key is under way; make it again to hear what came of it";
        Self::conflict(vec![Fault::of("IDEMPOTENCY_KEY_IN_USE", header, message)])
            .with(RETRY_AFTER, &BUSY_RETRY_S.to_string())
    }

    /// The key names another call.
    pub(super) fn key_reused(header: &str) -> Self {
        let message = "the key was given for another call within the last 24 hours";
        Self::conflict(vec![Fault::of("IDEMPOTENCY_KEY_REUSED", header, message)])
    }

    /// The body is longer than any is read.
    pub(super) fn body_too_large() -> Self {
        let fault = Fault::new("BODY_TOO_LARGE", "the body is too long");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, vec![fault])
    }

    /// The body has more lines than are read.
    pub(super) fn too_many_lines(message: impl fmt::Display) -> Self {
        let fault = Fault::new("TOO_MANY_LINES", message);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, vec![fault])
    }

    /// The body is of a kind that is not read.
    pub(super) fn unsupported_media(wanted: &str) -> Self {
        let fault = Fault::new(
            "UNSUPPORTED_MEDIA_TYPE",
            format!("the body must be {wanted}"),
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, vec![fault])
    }

    /// The customer calls more often than it may.
    pub(super) fn too_many_calls(retry_after_s: u32) -> Self {
        let fault = Fault::new("TOO_MANY_REQUESTS", "too many requests; try again later");
        Self::new(StatusCode::TOO_MANY_REQUESTS, vec![fault])
            .with(RETRY_AFTER, &retry_after_s.to_string())
    }

    /// The service cannot take this now.
    pub(super) fn busy() -> Self {
        Self::try_later(
            BUSY_RETRY_S,
            "the service has too much to do; try again later",
        )
    }

    /// The service is starting or stopping.
    pub(super) fn not_ready() -> Self {
        Self::try_later(BUSY_RETRY_S, "the service is starting or stopping")
    }

    /// Something of ours is broken; the caller learns no more than that.
    pub(super) fn internal(inner: impl fmt::Display) -> Self {
        let fault = Fault::new("INTERNAL", "the service failed");
        let failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, vec![fault]);
        Self {
            inner: Some(inner.to_string()),
            ..failure
        }
    }

    /// The answer to the call with this trace.
    pub(super) fn response(&self, trace: TraceId) -> HttpResponse {
        self.begun_response().json(self.body(trace))
    }

    /// The answer to a call that was granted in part, with what came of that part.
    pub(super) fn response_with(&self, trace: TraceId, granted: &impl Serialize) -> HttpResponse {
        self.begun_response().json(PartlyGrantedBody {
            error: self.body(trace),
            granted,
        })
    }

    /// What the caller is told, in the shape of every failure.
    pub(super) fn body(&self, trace: TraceId) -> ErrorBody<'_> {
        ErrorBody {
            status_code: self.status.as_u16(),
            status_text: self.status.canonical_reason().unwrap_or_default(),
            errors: &self.faults,
            trace_id: trace.to_string(),
        }
    }

    /// Whether the same call may be granted a moment later.
    pub(super) fn is_temporary(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// What was wrong, to be told in another place.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        self.faults
    }

    /// What the caller is told.
    #[cfg(test)]
    pub(super) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// What the operator should know and the caller not.
    pub(super) fn inner(&self) -> Option<&str> {
        self.inner.as_deref()
    }

    fn begun_response(&self) -> HttpResponseBuilder {
        let mut response = HttpResponse::build(self.status);
        if let Some((name, value)) = &self.header {
            response.insert_header((name.clone(), value.as_str()));
        }
        response
    }

    fn try_later(retry_after_s: u32, message: &str) -> Self {
        let fault = Fault::new("UNAVAILABLE", message);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, vec![fault])
            .with(RETRY_AFTER, &retry_after_s.to_string())
    }

    fn new(status: StatusCode, faults: Vec<Fault>) -> Self {
        Self {
            status,
            faults,
            header: None,
            inner: None,
        }
    }

    fn with(self, name: HeaderName, value: &str) -> Self {
        Self {
            header: Some((name, value.to_owned())),
            ..self
        }
    }
}

/// The body of every failure.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorBody<'a> {
    status_code: u16,
    status_text: &'a str,
    errors: &'a [Fault],
    trace_id: String,
}

/// The body of a failure that came when part of a call was granted.
#[derive(Serialize)]
struct PartlyGrantedBody<'a, T> {
    #[serde(flatten)]
    error: ErrorBody<'a>,
    #[serde(flatten)]
    granted: &'a T,
}

/// The body of the one failure whose shape is that of the service callers come from.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BadCredentialsBody {
    status_code: u16,
    error_code: &'static str,
    message: &'static str,
}

/// The answer to a client that does not show its secret.
pub(super) fn bad_credentials() -> HttpResponse {
    let body = BadCredentialsBody {
        status_code: StatusCode::UNAUTHORIZED.as_u16(),
        error_code: "BadCredentials",
        message: "The client id or the client secret is wrong.",
    };
    let mut response = HttpResponse::Unauthorized();
    response.insert_header((WWW_AUTHENTICATE, "Basic realm=\"signalbox\""));
    response.json(body)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)
    }
}

/// Only the status: whoever serves the call adds the body with its trace.
impl ResponseError for Failure {
    fn status_code(&self) -> StatusCode {
        self.status
    }
}

impl From<Unserved> for Failure {
    fn from(unserved: Unserved) -> Self {
        match unserved {
            Unserved::Unknown => Self::unknown("device"),
            Unserved::Busy => Self::busy(),
            Unserved::Failed => Self::internal("a device could not be asked"),
        }
    }
}

impl From<Unavailable> for Failure {
    fn from(_: Unavailable) -> Self {
        let failure = Self::try_later(STORE_RETRY_S, "the store is unavailable; try again later");
        Self {
            inner: Some("the store did not answer".to_owned()),
            ..failure
        }
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict => Self::busy(),
            CommitError::Fenced => Self::internal("a batch without an owner was fenced"),
            CommitError::Full => {
                Self::try_later(STORE_RETRY_S, "the store is full; try again later")
            }
            CommitError::Unavailable => Self::from(Unavailable),
        }
    }
}

impl From<SubmitRefusal> for Failure {
    fn from(refusal: SubmitRefusal) -> Self {
        let code = match refusal {
            SubmitRefusal::NotRegistered => "DEVICE_NOT_REGISTERED",
            SubmitRefusal::NoAddress => "DEVICE_HAS_NO_ADDRESS",
            SubmitRefusal::QueueFull { .. } | SubmitRefusal::DataFull { .. } => "QUEUE_FULL",
        };
        Self::clash(code, refusal)
    }
}

impl From<CancelRefusal> for Failure {
    fn from(refusal: CancelRefusal) -> Self {
        let code = match refusal {
            CancelRefusal::NotPending | CancelRefusal::NotScheduled => "REQUEST_NOT_SCHEDULED",
        };
        Self::clash(code, refusal)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::CustomerUnknown => Self::unknown("customer"),
            Refusal::ClientUnknown => Self::unknown("client"),
            Refusal::DeviceUnknown => Self::unknown("device"),
            Refusal::DestinationUnknown => Self::unknown("webhook"),
            Refusal::DefinitionUnknown => Self::unknown("definition of an object"),
            Refusal::ObjectReserved { .. } => {
                let element = "Object/ObjectID";
                Self::invalid(vec![Fault::of("OBJECT_RESERVED", element, refusal)])
            }
            Refusal::TooManyDefinitions { .. } => Self::clash("TOO_MANY_DEFINITIONS", refusal),
            Refusal::DefinitionsTooLong { .. } => Self::clash("DEFINITIONS_TOO_LONG", refusal),
            Refusal::CustomerExists => {
                Self::conflict(vec![Fault::of("CUSTOMER_EXISTS", "id", refusal)])
            }
            Refusal::TooManyClients { .. } => Self::clash("TOO_MANY_CLIENTS", refusal),
            Refusal::TooManyDestinations { .. } => Self::clash("TOO_MANY_DESTINATIONS", refusal),
            Refusal::DeviceExists(names) => {
                Self::conflict(names.iter().filter_map(name_taken).collect())
            }
        }
    }
}

impl From<NotActive> for Failure {
    fn from(refusal: NotActive) -> Self {
        Self::clash("INTEGRATION_FAILED", refusal)
    }
}

impl From<ReplayUnderWay> for Failure {
    fn from(refusal: ReplayUnderWay) -> Self {
        Self::clash("REPLAY_UNDER_WAY", refusal)
    }
}

impl From<TooBroad> for Failure {
    fn from(broad: TooBroad) -> Self {
        Self::invalid(vec![Fault::of("TOO_BROAD", "q", broad)])
    }
}

impl From<Nameless> for Failure {
    fn from(nameless: Nameless) -> Self {
        Self::invalid(vec![Fault::of("REQUIRED", "deviceId", nameless)])
    }
}

fn name_taken(name: &Name) -> Option<Fault> {
    let field = match name {
        Name::Device(_) => "deviceId",
        Name::Iccid(_) => "iccid",
        Name::Imsi(_) => "imsi",
        Name::Msisdn(_) => "msisdn",
        Name::Endpoint(_) => "endpoint",
        Name::PskIdentity(_) => "identity",
        Name::Customer(_) | Name::Client(_) => return None,
    };
    Some(Fault::of(
        "DEVICE_EXISTS",
        field,
        format!("another device has this {field}"),
    ))
}
