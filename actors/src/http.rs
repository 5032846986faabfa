//! How are customers' systems called? The only outgoing HTTP on behalf of customers.
//!
//! A customer chooses whom the service calls, so nobody who is called is trusted: each connection
//! is checked by the address it leads to, redirects are not followed, proxies of the environment
//! are not used, and time and size of a response are bounded. Only the status of a response and
//! its `Retry-After` count: the rest is dropped.

pub(crate) mod fault;
pub mod identity_provider;
pub(crate) mod resolver;
pub mod trust;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::address::{UrlFault, admit};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, Response, redirect};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::lease;

use self::resolver::{GuardedResolver, HostLookup, SystemResolver};

/// How long an unused connection is kept open. Node and Apache close theirs after five seconds, and
/// a request in flight at that moment gets no response.
const IDLE_FOR: Duration = Duration::from_secs(4);

/// The bytes of a response body that are read and dropped so that the connection can be reused;
/// with a longer body the connection is closed.
const ANSWER_BYTES_MAX: usize = 16_384;

/// How long reading them may take. The status is known by then, and the next event waits.
const ANSWER_FOR: Duration = Duration::from_secs(1);

/// The options of outgoing requests.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Which addresses may be called.
    pub policy: AddressPolicy,
    /// How long a request may take until its status is known.
    pub timeout: Duration,
    /// How much of that the connection may take.
    pub connect_timeout: Duration,
    /// How many connections to one host are kept open between requests: as many as there may be
    /// requests to it at once; otherwise each burst opens new ones.
    pub idle_per_host_max: usize,
    /// CA certificates (PEM) that are trusted in addition to those of the system.
    pub authorities: Option<Vec<u8>>,
}

/// Calls customers' systems. All requests run on the arbiter of the first one, which owns the
/// connections.
#[derive(Clone)]
pub struct HttpClient {
    client: Client,
    /// The authorities that it trusts.
    pub(crate) roots: Arc<RootCertStore>,
    pub(crate) policy: AddressPolicy,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
}

/// One request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The URL.
    pub url: String,
    /// The headers; of two with one name the later counts.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The methods of deliveries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpMethod {
    /// POST.
    Post,
    /// PATCH.
    Patch,
    /// PUT.
    Put,
}

/// The outcome of a request. Its text is for the customer and reveals nothing about the network of
/// the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpOutcome {
    /// The response has this status, a success.
    Accepted(u16),
    /// The response has this status, not a success.
    Refused(u16),
    /// The response has the status 429 or 503, and asks for a pause.
    Deferred {
        /// The status.
        status: u16,
        /// The `Retry-After`.
        retry_after_s: u32,
    },
    /// There was no response.
    Unreachable(UnreachableReason),
}

/// Why a request got no response.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UnreachableReason {
    /// The address may not be called.
    #[error("the address is private, and private addresses may not be called")]
    Forbidden,
    /// The URL is plain HTTP, which is not allowed.
    #[error("the URL does not begin with https://")]
    NotHttps,
    /// The URL or a header cannot be encoded.
    #[error("the URL or a header cannot be sent")]
    NotSendable,
    /// The name has no known address.
    #[error("the host name cannot be resolved")]
    NameUnknown,
    /// No connection was established.
    #[error("the host does not accept connections")]
    NoConnection,
    /// The certificate is no longer valid, or not yet.
    #[error("the certificate of the host has expired or is not valid yet")]
    CertificateExpired,
    /// The certificate is for another host.
    #[error("the certificate of the host is valid for another name only")]
    CertificateOfAnother,
    /// The certificate is not issued by a trusted authority.
    #[error("the certificate of the host is not issued by a trusted authority")]
    CertificateUntrusted,
    /// No TLS connection was established.
    #[error("the host does not accept TLS connections")]
    NoTls,
    /// It took too long.
    #[error("the endpoint did not respond in time")]
    Timeout,
    /// The connection ended first, or the response is not HTTP.
    #[error("the connection was closed without an HTTP response")]
    NoAnswer,
}

/// Why no request can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The CA certificates cannot be read.
    #[error("the CA certificates cannot be read: {0}")]
    Authorities(String),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[from] reqwest::Error),
}

impl HttpOptions {
    /// Options whose timeouts are those that customers are promised.
    pub fn under(policy: AddressPolicy) -> Self {
        Self {
            policy,
            timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(10),
            idle_per_host_max: 64,
            authorities: None,
        }
    }
}

impl HttpClient {
    /// Makes requests with these options, to hosts that the system can resolve.
    pub fn new(outbound: HttpOptions) -> Result<Self, HttpError> {
        Self::by(outbound, Arc::new(SystemResolver))
    }

    fn by(outbound: HttpOptions, lookup: Arc<dyn HostLookup>) -> Result<Self, HttpError> {
        let HttpOptions {
            policy,
            timeout,
            connect_timeout,
            idle_per_host_max,
            authorities,
        } = outbound;
        let roots = Arc::new(trust::roots(authorities.as_deref())?);
        let tls = trust::trusting(Arc::clone(&roots)).with_no_client_auth();
        let client = client_builder(tls)
            .dns_resolver(GuardedResolver::new(policy, lookup))
            .connect_timeout(connect_timeout)
            .pool_max_idle_per_host(idle_per_host_max)
            .build()?;
        Ok(Self {
            client,
            roots,
            policy,
            connect_timeout,
            timeout,
        })
    }

    /// Sends the request.
    pub async fn send(&self, request: HttpRequest) -> HttpOutcome {
        match self.status_of(request).await {
            Ok((status @ 200..=299, _)) => HttpOutcome::Accepted(status),
            Ok((status @ (429 | 503), Some(retry_after_s))) => HttpOutcome::Deferred {
                status,
                retry_after_s,
            },
            Ok((status, _)) => HttpOutcome::Refused(status),
            Err(why) => HttpOutcome::Unreachable(why),
        }
    }

    /// The status of the response, and its `Retry-After` in seconds.
    async fn status_of(
        &self,
        request: HttpRequest,
    ) -> Result<(u16, Option<u32>), UnreachableReason> {
        lease::held().await;
        // Names are checked when they are resolved; an address in the URL never is resolved.
        let url = admit(&request.url, self.policy).map_err(UnreachableReason::from)?;
        let request = self
            .client
            .request(request.method.into(), url)
            .headers(header_map(&request.headers)?)
            .body(request.body);
        let sent = timeout(self.timeout, request.send()).await;
        let answer = sent.map_err(|_elapsed| UnreachableReason::Timeout)?;
        let answer = answer.map_err(|error| fault::of(&error))?;
        let status = answer.status().as_u16();
        let retry_after_s = retry_after_s(answer.headers());
        // A slower response still counts, but its connection is closed.
        let _elapsed = timeout(ANSWER_FOR, read_away(answer)).await;
        Ok((status, retry_after_s))
    }
}

/// A client that sends each request once, to whom it names and by no proxy.
pub(crate) fn client_builder(tls: ClientConfig) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .http1_only()
        .pool_idle_timeout(IDLE_FOR)
        .user_agent(concat!("signalbox/", env!("CARGO_PKG_VERSION")))
}

/// The `Retry-After` in seconds. A date, which RFC 9110 section 10.2.3 allows instead, is ignored:
/// it would be measured by the clock of somebody else.
fn retry_after_s(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

async fn read_away(mut answer: Response) {
    let mut left = ANSWER_BYTES_MAX;
    while let Ok(Some(part)) = answer.chunk().await {
        match left.checked_sub(part.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, UnreachableReason> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(UnreachableReason::NotSendable);
        };
        map.insert(name, value);
    }
    Ok(map)
}

impl From<HttpMethod> for reqwest::Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Post => Self::POST,
            HttpMethod::Patch => Self::PATCH,
            HttpMethod::Put => Self::PUT,
        }
    }
}

impl From<UrlFault> for UnreachableReason {
    fn from(fault: UrlFault) -> Self {
        match fault {
            UrlFault::Private(_) => Self::Forbidden,
            UrlFault::NotHttps => Self::NotHttps,
            UrlFault::TooLong { .. }
            | UrlFault::Malformed
            | UrlFault::NotHttp
            | UrlFault::UserInfo
            | UrlFault::Fragment => Self::NotSendable,
        }
    }
}

impl fmt::Display for HttpOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status @ 300..=399) => {
                write!(
                    f,
                    "the endpoint answered {status}, and redirects are not followed"
                )
            }
            Self::Accepted(status) | Self::Refused(status) | Self::Deferred { status, .. } => {
                write!(f, "the endpoint answered {status}")
            }
            Self::Unreachable(why) => why.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
