//! Which error responses does the API send? The only file that knows their HTTP status codes.
//!
//! A failure has up to two messages: one for the caller, in the response, and optionally an inner
//! one for the operator, in the log only.

pub(super) mod described;

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_RANGE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::Serialize;

use actors::delivery::stream::StreamRefusal;
use actors::jobs::selection::SelectionFailure;
use actors::sms::network::NetworkError;
use engine::action::Mode;
use engine::change::UniqueName;
use engine::delivery::forwarding::ReplayUnderWay;
use engine::device::queue::CancelRefusal;
use engine::device::refusal::SubmitRefusal;
use engine::directory::DirectoryRefusal;
use engine::directory::device::MissingIdentifier;
use engine::directory::sms::SmsRefusal;
use engine::directory::sms::waking::WakeUpRefusal;
use engine::firmware::runner::CampaignRefusal;
use engine::ids::{ActionId, CustomerId, TraceId};
use engine::job::runner::JobRefusal;
use engine::query::LogSearchTooBroad;
use engine::query::devices::{DeviceTotal, SearchTooBroad};
use engine::supervision::Unserved;
use engine::tags::TooManyTags;
use store::{BackupRefused, CommitError, Unavailable};

use super::oidc::SignInProblem;

/// The `Retry-After` of an overloaded service: the queues are empty by then.
const BUSY_RETRY_S: u32 = 1;

/// The `Retry-After` after a failure of the store: the operator has to act first.
const STORE_RETRY_S: u32 = 5;

/// The most faults a response lists: more than people read, and at least as many as one call may
/// name devices. The rest is only counted, so that no response is much longer than its request.
const FAULTS_MAX: usize = 100;

/// Why a call fails.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    faults: Vec<ErrorDetail>,
    /// A header the status requires.
    header: Option<(HeaderName, String)>,
    /// Whether the connection is closed, because the rest of the body is not wanted.
    closes: bool,
    /// The message for the operator's log.
    inner: Option<String>,
}

/// One fault of a call.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct ErrorDetail {
    /// For programs.
    pub(super) code: &'static str,
    /// For people.
    pub(super) message: String,
    /// The property or parameter with the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
}

impl ErrorDetail {
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

impl ApiError {
    /// 400: the request is invalid. Lists every fault, up to the maximum.
    pub(super) fn invalid(mut faults: Vec<ErrorDetail>) -> Self {
        let more = faults.len().saturating_sub(FAULTS_MAX);
        if more > 0 {
            faults.truncate(FAULTS_MAX);
            let message = format!("{more} more faults are not listed");
            faults.push(ErrorDetail::new("MORE_FAULTS", message));
        }
        Self::new(StatusCode::BAD_REQUEST, faults)
    }

    /// 400: the body or the query cannot be parsed.
    pub(super) fn malformed(message: impl fmt::Display) -> Self {
        Self::invalid(vec![ErrorDetail::new("MALFORMED_BODY", message)])
    }

    /// 400: a header that may be sent once was repeated.
    pub(super) fn repeated_header(name: &str) -> Self {
        let message = "must be given only once";
        Self::invalid(vec![ErrorDetail::of("REPEATED", name, message)])
    }

    /// 401: there is no token.
    pub(super) fn token_missing() -> Self {
        let fault = ErrorDetail::new(
            "UNAUTHORIZED",
            "a token is required: send the header Authorization: Bearer <token>",
        );
        Self::new(StatusCode::UNAUTHORIZED, vec![fault])
            .with(WWW_AUTHENTICATE, "Bearer realm=\"signalbox\"")
    }

    /// 401: the token is not valid.
    pub(super) fn token_invalid() -> Self {
        let fault = ErrorDetail::new("UNAUTHORIZED", "the token is unknown, revoked or expired");
        Self::new(StatusCode::UNAUTHORIZED, vec![fault]).with(
            WWW_AUTHENTICATE,
            "Bearer realm=\"signalbox\", error=\"invalid_token\"",
        )
    }

    /// 401: the call has no session of the console, or one that has ended.
    pub(super) fn session_missing() -> Self {
        let fault = ErrorDetail::new("SESSION_ENDED", "the session has ended: sign in again");
        Self::new(StatusCode::UNAUTHORIZED, vec![fault])
    }

    /// 401: nobody has these credentials.
    pub(super) fn credentials_wrong() -> Self {
        let fault = ErrorDetail::new("BAD_CREDENTIALS", "the credentials are wrong");
        Self::new(StatusCode::UNAUTHORIZED, vec![fault])
    }

    /// 401: a one-time code that is unknown, used or too old.
    pub(super) fn code_unusable() -> Self {
        let message = "the link was used before, or is older than 10 minutes";
        Self::new(
            StatusCode::UNAUTHORIZED,
            vec![ErrorDetail::new("CODE_UNUSABLE", message)],
        )
    }

    /// 401: the identity provider sends back a browser that was not sent there.
    pub(super) fn sign_in_attempt_unknown() -> Self {
        let message = "this sign-in was begun in another browser, more than 10 minutes ago, or is \
                       already finished: sign in again";
        Self::new(
            StatusCode::UNAUTHORIZED,
            vec![ErrorDetail::new("SIGN_IN_UNKNOWN", message)],
        )
    }

    /// 403: a rule for a group names a customer that does not exist.
    pub(super) fn customer_of_group_unknown(customer: &CustomerId) -> Self {
        let message =
            format!("your group belongs to the customer {customer}, which does not exist");
        Self::new(
            StatusCode::FORBIDDEN,
            vec![ErrorDetail::new("CUSTOMER_UNKNOWN", message)],
        )
    }

    /// 403: the operator API is served elsewhere.
    pub(super) fn operator_elsewhere() -> Self {
        let message = "you may do what the operator may, which is not served at this address: \
                       sign in at the address of the operator API";
        Self::new(
            StatusCode::FORBIDDEN,
            vec![ErrorDetail::new("OPERATOR_ELSEWHERE", message)],
        )
    }

    /// 403: a call of a session without its CSRF token.
    pub(super) fn csrf_token_missing(header: &str) -> Self {
        let message = format!("the header {header} must have the CSRF token of the session");
        Self::new(
            StatusCode::FORBIDDEN,
            vec![ErrorDetail::new("CSRF_TOKEN_MISSING", message)],
        )
    }

    /// 403: credentials could be read on the way.
    pub(super) fn insecure_transport() -> Self {
        let message = "signing in needs https, or http on the machine of the service itself, at \
                       localhost: over this connection credentials could be read on the way";
        Self::new(
            StatusCode::FORBIDDEN,
            vec![ErrorDetail::new("INSECURE_TRANSPORT", message)],
        )
    }

    /// 403: the token lacks a scope.
    pub(super) fn scope_missing(scope: &str) -> Self {
        let message = format!("the access token lacks the scope {scope}");
        let challenge =
            format!("Bearer realm=\"signalbox\", error=\"insufficient_scope\", scope=\"{scope}\"");
        Self::new(
            StatusCode::FORBIDDEN,
            vec![ErrorDetail::new("FORBIDDEN", message)],
        )
        .with(WWW_AUTHENTICATE, &challenge)
    }

    /// 403: the token is one of the network.
    pub(super) fn operator_only() -> Self {
        let message = "the token of the operator is required";
        Self::new(
            StatusCode::FORBIDDEN,
            vec![ErrorDetail::new("FORBIDDEN", message)],
        )
        .with(
            WWW_AUTHENTICATE,
            "Bearer realm=\"signalbox\", error=\"insufficient_scope\"",
        )
    }

    /// 404: the object does not exist, or belongs to another customer.
    pub(super) fn unknown(what: &str) -> Self {
        let fault = ErrorDetail::new("NOT_FOUND", format!("there is no such {what}"));
        Self::new(StatusCode::NOT_FOUND, vec![fault])
    }

    /// 404: no route has this path.
    pub(super) fn path_unknown() -> Self {
        let fault = ErrorDetail::new("NOT_FOUND", "this path does not exist");
        Self::new(StatusCode::NOT_FOUND, vec![fault])
    }

    /// 404: the path does not exist, but one does that differs from it in upper and lower case.
    pub(super) fn path_in_other_case(known: &str) -> Self {
        let message = format!("this path does not exist; upper and lower case count: {known}");
        Self::new(
            StatusCode::NOT_FOUND,
            vec![ErrorDetail::new("NOT_FOUND", message)],
        )
    }

    /// 404: the log entry exists and has no payload.
    pub(super) fn no_payload() -> Self {
        let fault = ErrorDetail::new("NOT_FOUND", "this log entry has no payload");
        Self::new(StatusCode::NOT_FOUND, vec![fault])
    }

    /// 405: the path does not support the method.
    pub(super) fn method_not_allowed(allowed: &str) -> Self {
        let message = format!("this path supports only {allowed}");
        let fault = ErrorDetail::new("METHOD_NOT_ALLOWED", message);
        Self::new(StatusCode::METHOD_NOT_ALLOWED, vec![fault]).with(ALLOW, allowed)
    }

    /// 408: the body arrives more slowly than the least rate. The connection ends with it.
    pub(super) fn body_too_slow() -> Self {
        let message = "the body arrives too slowly; send at least 1 KiB a second, and the whole \
                       within an hour";
        let fault = ErrorDetail::new("BODY_TOO_SLOW", message);
        Self::new(StatusCode::REQUEST_TIMEOUT, vec![fault]).closing()
    }

    /// 409: the current state does not allow the call.
    pub(super) fn conflict(faults: Vec<ErrorDetail>) -> Self {
        Self::new(StatusCode::CONFLICT, faults)
    }

    /// 409 with one fault.
    fn clash(code: &'static str, why: impl fmt::Display) -> Self {
        Self::conflict(vec![ErrorDetail::new(code, why)])
    }

    /// 409: the images of the customer would exceed its quota.
    pub(super) fn image_quota(bytes: u64) -> Self {
        let why = format!(
            "the images of a customer take at most {bytes} bytes and are at most 1,000; delete one \
             (SIGNALBOX_IMAGES_BYTES_MAX)"
        );
        Self::clash("IMAGE_QUOTA", why)
    }

    /// 409: a campaign that has not ended uses the image.
    pub(super) fn image_in_use() -> Self {
        let why = "a campaign that has not ended uses the image";
        Self::clash("IMAGE_IN_USE", why)
    }

    /// 409: the customer has too many campaigns that have not ended.
    pub(super) fn too_many_campaigns(max: u32) -> Self {
        let why = format!("a customer has at most {max} campaigns, and none of them has ended");
        Self::clash("TOO_MANY_CAMPAIGNS", why)
    }

    /// 409: a call with the same idempotency key is in progress.
    pub(super) fn key_in_use(header: &str) -> Self {
        let message = "a call with this key is in progress; repeat the call to get its result";
        Self::conflict(vec![ErrorDetail::of(
            "IDEMPOTENCY_KEY_IN_USE",
            header,
            message,
        )])
        .with(RETRY_AFTER, &BUSY_RETRY_S.to_string())
    }

    /// 409: the idempotency key was used for a different call.
    pub(super) fn key_reused(header: &str) -> Self {
        let message = "this key was used for a different call not long ago; use a new key";
        Self::conflict(vec![ErrorDetail::of(
            "IDEMPOTENCY_KEY_REUSED",
            header,
            message,
        )])
    }

    /// 409: a request of an earlier run of a schedule is not final.
    pub(super) fn request_open(action: ActionId) -> Self {
        let message = format!("the request {action} of an earlier run is not final");
        Self::clash("REQUEST_OPEN", message)
    }

    /// A stream is not opened; the header has the position where it was to be resumed.
    pub(super) fn stream_refused(refusal: StreamRefusal, header: &str) -> Self {
        match refusal {
            StreamRefusal::TooMany { .. } => {
                let why = format!("{refusal} (SIGNALBOX_EVENT_STREAMS_MAX)");
                Self::clash("TOO_MANY_STREAMS", why)
            }
            StreamRefusal::PositionUnknown => {
                Self::invalid(vec![ErrorDetail::of("INVALID_VALUE", header, refusal)])
            }
            StreamRefusal::StoreSilent => Self::from(Unavailable),
            StreamRefusal::Stopping => Self::not_ready(),
        }
    }

    /// 400: the filter of a job matches too many devices.
    fn too_many_devices(matched: DeviceTotal, max: u32) -> Self {
        let matched = match matched {
            DeviceTotal::Exactly(count) => count.to_string(),
            DeviceTotal::AtLeast(count) => format!("at least {count}"),
        };
        let message = format!(
            "matches {matched} devices, and a job can have at most {max} \
             (SIGNALBOX_JOB_DEVICES_MAX)"
        );
        Self::invalid(vec![ErrorDetail::of("TOO_MANY_DEVICES", "filter", message)])
    }

    /// 400: more names have the prefix in the filter of a job than a search reads.
    fn filter_too_broad(broad: SearchTooBroad) -> Self {
        Self::invalid(vec![ErrorDetail::of("TOO_BROAD", "filter.q", broad)])
    }

    /// 413: the body has too many bytes.
    pub(super) fn body_too_large(max: usize) -> Self {
        let message = format!("the body must not be longer than {max} bytes");
        let fault = ErrorDetail::new("BODY_TOO_LARGE", message);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, vec![fault]).closing()
    }

    /// 416: the part begins behind the end of what has so many bytes.
    pub(super) fn range_not_satisfiable(bytes: u64) -> Self {
        let message = format!("the range begins behind the end: there are {bytes} bytes");
        let fault = ErrorDetail::new("RANGE_NOT_SATISFIABLE", message);
        let whole = format!("bytes */{bytes}");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, vec![fault]).with(CONTENT_RANGE, &whole)
    }

    /// 413: the body has too many lines.
    pub(super) fn too_many_lines(message: impl fmt::Display) -> Self {
        let fault = ErrorDetail::new("TOO_MANY_LINES", message);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, vec![fault])
    }

    /// 415: the media type of the body is not supported.
    pub(super) fn unsupported_media(wanted: &str) -> Self {
        Self::unsupported(format!("the Content-Type must be {wanted}"))
    }

    /// 415: the body has a `Content-Encoding`.
    pub(super) fn unsupported_encoding() -> Self {
        Self::unsupported("Content-Encoding is not supported; send the body uncompressed")
    }

    fn unsupported(message: impl fmt::Display) -> Self {
        let fault = ErrorDetail::new("UNSUPPORTED_MEDIA_TYPE", message);
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, vec![fault])
    }

    /// 429: the customer exceeds its rate limit.
    pub(super) fn too_many_calls(retry_after_s: u32) -> Self {
        let message = "the rate limit of the customer is exceeded; try again later";
        let fault = ErrorDetail::new("TOO_MANY_REQUESTS", message);
        Self::new(StatusCode::TOO_MANY_REQUESTS, vec![fault])
            .with(RETRY_AFTER, &retry_after_s.to_string())
    }

    /// 429: the address asks for too many tokens, or calls too often with wrong credentials.
    pub(super) fn too_many_credentials(retry_after_s: u32) -> Self {
        let message = "too many token requests or wrong credentials from this address; try again \
                       later";
        let fault = ErrorDetail::new("TOO_MANY_REQUESTS", message);
        Self::new(StatusCode::TOO_MANY_REQUESTS, vec![fault])
            .with(RETRY_AFTER, &retry_after_s.to_string())
    }

    /// 503: the service is overloaded.
    pub(super) fn busy() -> Self {
        Self::try_later(BUSY_RETRY_S, "the service is overloaded; try again later")
    }

    /// 503: the service is starting or stopping.
    pub(super) fn not_ready() -> Self {
        Self::try_later(
            BUSY_RETRY_S,
            "the service is starting or stopping; try again later",
        )
    }

    /// 406: the caller does not accept what there is.
    pub(super) fn not_acceptable(message: &str) -> Self {
        let fault = ErrorDetail::new("NOT_ACCEPTABLE", message);
        Self::new(StatusCode::NOT_ACCEPTABLE, vec![fault])
    }

    /// 503: a health check fails for this reason.
    pub(super) fn unhealthy(why: &str) -> Self {
        Self::try_later(STORE_RETRY_S, why)
    }

    /// 409: a node cannot be drained, because no other one can take its shards.
    pub(super) fn only_node() -> Self {
        let why = "the embedded store has one node: stop the service instead";
        Self::clash("ONLY_NODE", why)
    }

    /// 500: an internal error. The inner message goes to the log only.
    pub(super) fn internal(inner: impl fmt::Display) -> Self {
        let fault = ErrorDetail::new("INTERNAL", "internal error");
        let failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, vec![fault]);
        Self {
            inner: Some(inner.to_string()),
            ..failure
        }
    }

    /// The response to the call with this trace id.
    pub(super) fn response(&self, trace: TraceId) -> HttpResponse {
        self.begun_response().json(self.body(trace))
    }

    /// The texts for people.
    pub(super) fn messages(&self) -> impl Iterator<Item = &str> {
        self.faults.iter().map(|fault| fault.message.as_str())
    }

    /// The response to a person: a page.
    pub(super) fn page(&self, html: String) -> HttpResponse {
        let mut response = self.begun_response();
        response.content_type("text/html; charset=utf-8").body(html)
    }

    /// The response to a call that took effect in part, with the result of that part.
    pub(super) fn response_with(&self, trace: TraceId, granted: &impl Serialize) -> HttpResponse {
        self.begun_response().json(PartlyGrantedBody {
            error: self.body(trace),
            granted,
        })
    }

    /// The body of the response.
    pub(super) fn body(&self, trace: TraceId) -> ErrorBody<'_> {
        ErrorBody {
            status_code: self.status.as_u16(),
            status_text: self.status.canonical_reason().unwrap_or_default(),
            errors: &self.faults,
            trace_id: trace.to_string(),
        }
    }

    /// Whether the same call can succeed a moment later.
    pub(super) fn is_temporary(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// The same error, and the connection ends with it: the rest of the body is not received.
    pub(super) fn closing(self) -> Self {
        Self {
            closes: true,
            ..self
        }
    }

    /// The first fault, for another response body.
    pub(super) fn into_fault(self) -> ErrorDetail {
        let fault = self.faults.into_iter().next();
        fault.expect("a failure says what is wrong")
    }

    /// The faults, for another response body.
    pub(super) fn into_faults(self) -> Vec<ErrorDetail> {
        self.faults
    }

    /// The faults.
    #[cfg(test)]
    pub(super) fn faults(&self) -> &[ErrorDetail] {
        &self.faults
    }

    /// The message for the operator's log.
    pub(super) fn inner(&self) -> Option<&str> {
        self.inner.as_deref()
    }

    fn begun_response(&self) -> HttpResponseBuilder {
        let mut response = HttpResponse::build(self.status);
        if let Some((name, value)) = &self.header {
            response.insert_header((name.clone(), value.as_str()));
        }
        if self.closes {
            response.force_close();
        }
        response
    }

    fn try_later(retry_after_s: u32, message: &str) -> Self {
        let fault = ErrorDetail::new("UNAVAILABLE", message);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, vec![fault])
            .with(RETRY_AFTER, &retry_after_s.to_string())
    }

    fn new(status: StatusCode, faults: Vec<ErrorDetail>) -> Self {
        Self {
            status,
            faults,
            header: None,
            closes: false,
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

/// The body of every error response.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorBody<'a> {
    status_code: u16,
    status_text: &'a str,
    errors: &'a [ErrorDetail],
    trace_id: String,
}

/// The body of an error response to a call that took effect in part.
#[derive(Serialize)]
struct PartlyGrantedBody<'a, T> {
    #[serde(flatten)]
    error: ErrorBody<'a>,
    #[serde(flatten)]
    granted: &'a T,
}

/// The body of the only error response of another shape (seed 3).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BadCredentialsBody {
    status_code: u16,
    error_code: &'static str,
    message: &'static str,
}

/// The response to wrong API client credentials.
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

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)
    }
}

/// Gives only the status: `call` adds the body with the trace id.
impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }
}

impl From<SignInProblem> for ApiError {
    fn from(problem: SignInProblem) -> Self {
        let (status, code) = match &problem {
            SignInProblem::Provider(_) => (StatusCode::BAD_GATEWAY, "IDENTITY_PROVIDER"),
            SignInProblem::IdToken(_) => (StatusCode::BAD_GATEWAY, "ID_TOKEN"),
            SignInProblem::Refused(_) => (StatusCode::FORBIDDEN, "SIGN_IN_REFUSED"),
            SignInProblem::Code => (StatusCode::UNAUTHORIZED, "CODE_UNUSABLE"),
            SignInProblem::NoGroup(_) => (StatusCode::FORBIDDEN, "NO_GROUP"),
        };
        Self::new(status, vec![ErrorDetail::new(code, problem)])
    }
}

impl From<Unserved> for ApiError {
    fn from(unserved: Unserved) -> Self {
        match unserved {
            Unserved::Unknown => Self::unknown("device"),
            Unserved::Busy => Self::busy(),
            Unserved::Failed => Self::internal("the actor of the device failed"),
        }
    }
}

impl From<Unavailable> for ApiError {
    fn from(_: Unavailable) -> Self {
        let failure = Self::try_later(STORE_RETRY_S, "the store is unavailable; try again later");
        Self {
            inner: Some("the store did not respond".to_owned()),
            ..failure
        }
    }
}

impl From<NetworkError> for ApiError {
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::UnknownDevice => Self::unknown("device"),
            NetworkError::UnknownSms => Self::unknown("sms"),
            NetworkError::Store(error) => Self::from(error),
        }
    }
}

impl From<CommitError> for ApiError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict => Self::busy(),
            CommitError::Fenced => Self::try_later(
                STORE_RETRY_S,
                "another node has taken over; try again later",
            ),
            CommitError::Full => {
                Self::try_later(STORE_RETRY_S, "the store is full; try again later")
            }
            CommitError::Unavailable => Self::from(Unavailable),
        }
    }
}

impl From<SubmitRefusal> for ApiError {
    fn from(refusal: SubmitRefusal) -> Self {
        let full = |setting| Self::clash("QUEUE_FULL", format!("{refusal} ({setting})"));
        match refusal {
            SubmitRefusal::NotRegistered => Self::clash("DEVICE_NOT_REGISTERED", refusal),
            SubmitRefusal::NoAddress => Self::clash("DEVICE_HAS_NO_ADDRESS", refusal),
            SubmitRefusal::WakeUp(why) => match why {
                WakeUpRefusal::NoNumber => Self::clash("DEVICE_HAS_NO_MSISDN", why),
                WakeUpRefusal::NoMessage => Self::clash("NO_WAKE_UP_MESSAGE", why),
                WakeUpRefusal::TooOften { .. } => {
                    let why = format!("{why} (SIGNALBOX_WAKE_UP_SMS_MAX)");
                    Self::clash("WAKE_UP_LIMIT", why)
                }
                WakeUpRefusal::TooManyOpen { .. } => full("SIGNALBOX_SMS_OPEN_MAX"),
            },
            SubmitRefusal::AddressForbidden(_) => Self::clash("ADDRESS_FORBIDDEN", refusal),
            SubmitRefusal::QueueFull { mode, .. } => match mode {
                Mode::SendNow => full("SEND_NOW, SIGNALBOX_WAITING_MAX"),
                Mode::SendWhenActive => full("SEND_WHEN_ACTIVE, SIGNALBOX_SCHEDULED_MAX"),
            },
            SubmitRefusal::DataFull { .. } => full("SIGNALBOX_WAITING_BYTES_MAX"),
        }
    }
}

impl From<JobRefusal> for ApiError {
    fn from(refusal: JobRefusal) -> Self {
        match refusal {
            JobRefusal::TooMany { .. } => Self::clash("TOO_MANY_JOBS", refusal),
            JobRefusal::TooManySchedules { .. } => Self::clash("TOO_MANY_SCHEDULES", refusal),
            JobRefusal::ScheduleUnknown => Self::unknown("schedule"),
            JobRefusal::NotRunning => Self::clash("JOB_NOT_RUNNING", refusal),
            JobRefusal::Unserved(Unserved::Busy | Unserved::Unknown) => Self::busy(),
            JobRefusal::Unserved(Unserved::Failed) => {
                Self::internal("the runner of jobs failed, or a job could not be saved")
            }
        }
    }
}

impl From<CampaignRefusal> for ApiError {
    fn from(refusal: CampaignRefusal) -> Self {
        match refusal {
            CampaignRefusal::WrongState => Self::clash("CAMPAIGN_STATE", refusal),
            CampaignRefusal::Unserved(Unserved::Busy | Unserved::Unknown) => Self::busy(),
            CampaignRefusal::Unserved(Unserved::Failed) => {
                Self::internal("the runner of campaigns failed, or a campaign could not be saved")
            }
        }
    }
}

impl From<SelectionFailure> for ApiError {
    fn from(failure: SelectionFailure) -> Self {
        match failure {
            SelectionFailure::TooMany { matched, max } => Self::too_many_devices(matched, max),
            SelectionFailure::TooBroad(broad) => Self::filter_too_broad(broad),
            SelectionFailure::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<CancelRefusal> for ApiError {
    fn from(refusal: CancelRefusal) -> Self {
        let code = match refusal {
            CancelRefusal::NotPending | CancelRefusal::NotScheduled => "REQUEST_NOT_SCHEDULED",
        };
        Self::clash(code, refusal)
    }
}

impl From<SmsRefusal> for ApiError {
    fn from(refusal: SmsRefusal) -> Self {
        let code = match refusal {
            SmsRefusal::TooManyOpen { .. } => "QUEUE_FULL",
            SmsRefusal::NotCancellable => "NOT_CANCELLABLE",
        };
        Self::conflict(vec![ErrorDetail::new(code, refusal)])
    }
}

impl From<DirectoryRefusal> for ApiError {
    fn from(refusal: DirectoryRefusal) -> Self {
        match refusal {
            DirectoryRefusal::CustomerUnknown => Self::unknown("customer"),
            DirectoryRefusal::ClientUnknown => Self::unknown("API client"),
            DirectoryRefusal::SecretUnknown => Self::unknown("secret"),
            DirectoryRefusal::DeviceUnknown => Self::unknown("device"),
            DirectoryRefusal::KeyUnknown => Self::unknown("key"),
            DirectoryRefusal::DefinitionUnknown => Self::unknown("object definition"),
            DirectoryRefusal::ObjectReserved { .. } => {
                let element = "Object/ObjectID";
                Self::invalid(vec![ErrorDetail::of("OBJECT_RESERVED", element, refusal)])
            }
            DirectoryRefusal::TooManyDefinitions { .. } => {
                Self::clash("TOO_MANY_DEFINITIONS", refusal)
            }
            DirectoryRefusal::DefinitionsTooLong { .. } => {
                Self::clash("DEFINITIONS_TOO_LONG", refusal)
            }
            DirectoryRefusal::CustomerExists => {
                Self::conflict(vec![ErrorDetail::of("CUSTOMER_EXISTS", "id", refusal)])
            }
            DirectoryRefusal::TooManyClients { .. } => Self::clash("TOO_MANY_CLIENTS", refusal),
            DirectoryRefusal::TooManySecrets { .. } => Self::clash("TOO_MANY_SECRETS", refusal),
            DirectoryRefusal::LastSecret => Self::clash("LAST_SECRET", refusal),
            DirectoryRefusal::PluginExists { .. } => Self::clash("PLUGIN_EXISTS", refusal),
            DirectoryRefusal::TooManyIntegrations { .. } => {
                Self::clash("TOO_MANY_DESTINATIONS", refusal)
            }
            DirectoryRefusal::DeviceExists(names) => {
                Self::conflict(names.iter().filter_map(name_taken).collect())
            }
        }
    }
}

impl From<BackupRefused> for ApiError {
    fn from(refusal: BackupRefused) -> Self {
        match refusal {
            BackupRefused::UnderWay => Self::clash("BACKUP_IN_PROGRESS", refusal),
            BackupRefused::Unavailable => Self::from(Unavailable),
            BackupRefused::OfDatabase => Self::clash("BACKUP_OF_DATABASE", refusal),
        }
    }
}

impl From<ReplayUnderWay> for ApiError {
    fn from(refusal: ReplayUnderWay) -> Self {
        Self::clash("REPLAY_UNDER_WAY", refusal)
    }
}

impl From<SearchTooBroad> for ApiError {
    fn from(broad: SearchTooBroad) -> Self {
        Self::invalid(vec![ErrorDetail::of("TOO_BROAD", "q", broad)])
    }
}

impl From<LogSearchTooBroad> for ApiError {
    fn from(broad: LogSearchTooBroad) -> Self {
        Self::invalid(vec![ErrorDetail::of("TOO_BROAD", "kind", broad)])
    }
}

impl From<TooManyTags> for ApiError {
    fn from(refusal: TooManyTags) -> Self {
        Self::invalid(vec![ErrorDetail::of("OUT_OF_RANGE", "tags", refusal)])
    }
}

impl From<MissingIdentifier> for ApiError {
    fn from(nameless: MissingIdentifier) -> Self {
        Self::invalid(vec![ErrorDetail::of("REQUIRED", "deviceId", nameless)])
    }
}

fn name_taken(name: &UniqueName) -> Option<ErrorDetail> {
    let field = match name {
        UniqueName::Address { ip, .. } => {
            let why = format!("a device of another customer has the address {ip}");
            return Some(ErrorDetail::of("ADDRESS_IN_USE", "ip", why));
        }
        UniqueName::Device(_) => "deviceId",
        UniqueName::Iccid(_) => "iccid",
        UniqueName::Imsi(_) => "imsi",
        UniqueName::Msisdn(_) => "msisdn",
        UniqueName::Endpoint(_) => "endpoint",
        UniqueName::PskIdentity(_) => "identity",
        UniqueName::PublicKey(_) => "publicKey",
        UniqueName::Customer(_) | UniqueName::Client(_) => return None,
    };
    Some(ErrorDetail::of(
        "DEVICE_EXISTS",
        field,
        format!("another device has this {field}"),
    ))
}
