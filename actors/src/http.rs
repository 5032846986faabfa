//! How are a customer's systems called? The only HTTP that goes out on behalf of customers.
//!
//! A customer chooses whom the service calls, so nothing is believed of who is called: each
//! connection is judged by the address it leads to, redirects are not followed, no proxy of the
//! environment is asked, and time and size of an answer are bounded. Of an answer its status alone
//! counts: what else it says is dropped.

mod fault;
mod resolver;
mod trust;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::address::{UrlFault, admit};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, redirect};
use tokio::time::timeout;

use self::resolver::{GuardedResolver, HostLookup, SystemResolver};

/// How long a connection is kept open unused. Node and Apache close theirs after five seconds, and
/// a call that is on its way then is not answered.
const IDLE_FOR: Duration = Duration::from_secs(4);

/// The bytes of an answer's body that are read away so that its connection can be used again; of a
/// longer one the connection is closed.
const ANSWER_BYTES_MAX: usize = 16_384;

/// How long they may take. The status is known by then, and the next event waits.
const ANSWER_FOR: Duration = Duration::from_secs(1);

/// How calls are made.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Which addresses may be called.
    pub policy: AddressPolicy,
    /// How long a call may take until its status is known.
    pub timeout: Duration,
    /// How long its connection may take of that.
    pub connect_timeout: Duration,
    /// How many connections to one host are kept open between calls: as many as there may be calls
    /// to it at once, or each burst opens new ones.
    pub idle_per_host_max: usize,
    /// Certificates of authorities (PEM) that are trusted beside those of the system.
    pub authorities: Option<Vec<u8>>,
}

/// Calls customers' systems. All calls are made on the arbiter of the first: connections live
/// there.
#[derive(Clone)]
pub struct HttpClient {
    client: Client,
    policy: AddressPolicy,
    timeout: Duration,
}

/// One call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpRequest {
    /// Its method.
    pub method: HttpMethod,
    /// Where it goes.
    pub url: String,
    /// Its headers; of two of one name the later counts.
    pub headers: Vec<(String, String)>,
    /// What it says.
    pub body: Vec<u8>,
}

/// The methods by which customers are told something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpMethod {
    /// Tells something new.
    Post,
    /// Changes something told.
    Patch,
    /// Puts something in the place of another.
    Put,
}

/// What became of a call. As text, it is for the customer, and says nothing of the network that the
/// service stands in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpOutcome {
    /// It was answered with this status, which is one of success.
    Accepted(u16),
    /// It was answered with this status, which is none of success.
    Refused(u16),
    /// It was not answered.
    Unreachable(UnreachableReason),
}

/// Why a call was not answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UnreachableReason {
    /// Its address may not be called.
    #[error("the address is private, and private addresses may not be called")]
    Forbidden,
    /// It is to be called by plain HTTP, which may not be.
    #[error("the URL does not begin with https://")]
    NotHttps,
    /// The URL or a header cannot be written.
    #[error("the URL or a header cannot be sent")]
    NotSendable,
    /// No address is known for the name.
    #[error("the host name cannot be resolved")]
    NameUnknown,
    /// No connection came about.
    #[error("the host does not accept connections")]
    NoConnection,
    /// The certificate is no longer valid, or not yet.
    #[error("the certificate of the host has expired or is not valid yet")]
    CertificateExpired,
    /// The certificate is for another host.
    #[error("the certificate of the host is valid for another name only")]
    CertificateOfAnother,
    /// The certificate is of no authority that is trusted.
    #[error("the certificate of the host is not issued by a trusted authority")]
    CertificateUntrusted,
    /// No TLS connection came about.
    #[error("the host does not accept TLS connections")]
    NoTls,
    /// It took longer than it may.
    #[error("the endpoint did not respond in time")]
    Timeout,
    /// The connection ended first, or what came back is no answer of HTTP.
    #[error("the connection was closed without an HTTP response")]
    NoAnswer,
}

/// Why no call can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The certificates of authorities cannot be read.
    #[error("the CA certificates cannot be read: {0}")]
    Authorities(String),
    /// What makes the calls cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[from] reqwest::Error),
}

impl HttpOptions {
    /// Calls that take no longer than contracts with customers say.
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
    /// Makes calls so, to hosts that the system knows.
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
        let client = Client::builder()
            .tls_backend_preconfigured(trust::tls(authorities.as_deref())?)
            .dns_resolver(GuardedResolver::new(policy, lookup))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .http1_only()
            .connect_timeout(connect_timeout)
            .pool_max_idle_per_host(idle_per_host_max)
            .pool_idle_timeout(IDLE_FOR)
            .user_agent(concat!("signalbox/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            client,
            policy,
            timeout,
        })
    }

    /// Makes the call.
    pub async fn send(&self, letter: HttpRequest) -> HttpOutcome {
        match self.status_of(letter).await {
            Ok(status @ 200..=299) => HttpOutcome::Accepted(status),
            Ok(status) => HttpOutcome::Refused(status),
            Err(why) => HttpOutcome::Unreachable(why),
        }
    }

    async fn status_of(&self, letter: HttpRequest) -> Result<u16, UnreachableReason> {
        // Names are judged when they are resolved; an address in the URL never is.
        let url = admit(&letter.url, self.policy).map_err(UnreachableReason::from)?;
        let request = self
            .client
            .request(letter.method.into(), url)
            .headers(header_map(&letter.headers)?)
            .body(letter.body);
        let sent = timeout(self.timeout, request.send()).await;
        let answer = sent.map_err(|_elapsed| UnreachableReason::Timeout)?;
        let answer = answer.map_err(|error| fault::of(&error))?;
        let status = answer.status().as_u16();
        // Whoever answers slower than that has its connection closed, and answered nevertheless.
        let _elapsed = timeout(ANSWER_FOR, read_away(answer)).await;
        Ok(status)
    }
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
            Self::Accepted(status) | Self::Refused(status) => {
                write!(f, "the endpoint answered {status}")
            }
            Self::Unreachable(why) => why.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
