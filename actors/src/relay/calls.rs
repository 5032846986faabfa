//! Who answers a call at a node that stands by? The active node: the call is passed on to it as it
//! is, and its response is returned as it is. While there is no active node that can be reached, a
//! call waits for the next one, which may be this node.

use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use futures_core::Stream;
use reqwest::{Body, Client};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;

use super::identity::NodeIdentity;
use super::links::LinkState;
use super::{ActiveNode, client_of};

/// The header of a relayed call that says how its caller reached the relaying node.
pub const RELAYED: &str = "signalbox-relayed";

/// What a node does not pass on: it is of the connection (RFC 9110 section 7.6.1), or it is written
/// anew.
const OWN_HEADERS: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "strict-transport-security",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The answer of a node that is not the active one.
const MISDIRECTED: reqwest::StatusCode = reqwest::StatusCode::MISDIRECTED_REQUEST;

/// Parts of the body of a request that may wait until the active node takes them.
const PARTS_MAX: usize = 4;

/// The pause before a node that could not be reached is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// How a caller reached a node that relayed its call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RelayedCall {
    /// The address of the caller.
    pub caller: SocketAddr,
    /// Whether the call came over TLS.
    pub is_secure: bool,
    /// What is served at the address that it called, in a word.
    pub served: String,
}

/// The text is not that of a relayed call.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the header signalbox-relayed cannot be read")]
pub struct InvalidRelayedCall;

impl fmt::Display for RelayedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{} {scheme} {}", self.caller, self.served)
    }
}

impl FromStr for RelayedCall {
    type Err = InvalidRelayedCall;

    fn from_str(text: &str) -> Result<Self, InvalidRelayedCall> {
        let mut words = text.split(' ');
        let mut next = || words.next().ok_or(InvalidRelayedCall);
        let (caller, scheme, served) = (next()?, next()?, next()?);
        Ok(Self {
            caller: caller.parse().map_err(|_| InvalidRelayedCall)?,
            is_secure: match scheme {
                "https" => true,
                "http" => false,
                _ => return Err(InvalidRelayedCall),
            },
            served: served.to_owned(),
        })
    }
}

/// Why a call was not answered by the active node.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RelayFault {
    /// There is no active node, or it cannot be reached: nothing was done.
    #[error("the active node cannot be reached")]
    Unreachable,
    /// The connection ended before the response.
    #[error("the active node did not answer: whether the call was carried out is not known")]
    Unanswered,
    /// The caller has left before the call was passed on.
    #[error("the caller has left")]
    Left,
}

/// Passes calls on to the active node.
#[derive(Clone)]
pub struct CallRelay {
    client: Client,
    active: ActiveNode,
    connection: LinkState,
    own: SocketAddr,
    hold_max: Duration,
}

impl CallRelay {
    /// Relays from the node at this address to the active one. A call waits so long for one to
    /// which datagrams are relayed, too: that one ends their streams before it stops to answer
    /// calls.
    pub fn new(
        identity: &NodeIdentity,
        own: SocketAddr,
        (active, connection): (ActiveNode, LinkState),
        hold_max: Duration,
    ) -> Result<Self, reqwest::Error> {
        let client = client_of(identity)?;
        Ok(Self {
            client,
            active,
            connection,
            own,
            hold_max,
        })
    }

    /// Has the active node answer a call. It ends when that node is not the active one any more; a
    /// response whose end is not known, and a call that waits, also when the caller has left.
    pub async fn relay(
        &self,
        request: &HttpRequest,
        payload: Payload,
        served: &str,
        left: impl Future<Output = ()> + 'static,
    ) -> Result<HttpResponse, RelayFault> {
        let caller = request.peer_addr().ok_or(RelayFault::Unreachable)?;
        let relayed = RelayedCall {
            caller,
            is_secure: request.app_config().secure(),
            served: served.to_owned(),
        };
        let length = body_bytes(request);
        let body = (length != Some(0)).then(|| CallBody::of(payload, length));
        let mut left = Box::pin(left);
        let asked = self.ask((request, body), &relayed, left.as_mut());
        let (response, replaced) = asked.await?;
        let length = response.headers().get(CONTENT_LENGTH.as_str());
        let length = length.and_then(|it| it.to_str().ok()?.parse().ok());
        let mut head = head_of(&response);
        if *self.active.borrow() == Some(self.own) {
            // The next call of this caller needs no relay.
            head.force_close();
        }
        let body = AnswerBody {
            body: Box::pin(response.into()),
            ended: match length {
                Some(_) => replaced,
                None => Box::pin(async {
                    tokio::select! {
                        () = replaced => {}
                        () = left => {}
                    }
                }),
            },
            length,
            is_left_out: request.method() == Method::HEAD,
        };
        Ok(head.body(BoxBody::new(body)))
    }

    /// The response of the active node, with what returns when that has been replaced. A node that
    /// cannot be reached is waited for, or for the next one.
    async fn ask(
        &self,
        (request, body): (&HttpRequest, Option<CallBody>),
        relayed: &RelayedCall,
        mut left: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(reqwest::Response, Ended), RelayFault> {
        let deadline = Instant::now() + self.hold_max;
        loop {
            let reachable = tokio::select! {
                biased;
                reachable = timeout_at(deadline, self.reachable()) => reachable,
                () = &mut left => return Err(RelayFault::Left),
            };
            let Ok(Some(address)) = reachable else {
                return Err(RelayFault::Unreachable);
            };
            let sent = self.request(address, request, body.clone(), relayed).send();
            let mut replaced = self.replaced(address);
            let sent = tokio::select! {
                sent = sent => sent,
                () = &mut replaced => return Err(RelayFault::Unanswered),
            };
            match sent {
                Ok(response) if response.status() != MISDIRECTED => {
                    return Ok((response, replaced));
                }
                // It is not the active node any more, whatever the database said last, and may have
                // taken a part of the body.
                Ok(_) if body.is_some() => return Err(RelayFault::Unreachable),
                Ok(_) => {}
                Err(error) => {
                    debug!(?error, "a call was not relayed");
                    if !error.is_connect() {
                        return Err(RelayFault::Unanswered);
                    }
                }
            }
            if Instant::now() >= deadline {
                return Err(RelayFault::Unreachable);
            }
            tokio::select! {
                () = sleep(RETRY) => {}
                () = &mut left => return Err(RelayFault::Left),
            }
        }
    }

    /// Where the active node is reached, once it is known and answers calls; none, if nobody is
    /// left to say so.
    async fn reachable(&self) -> Option<SocketAddr> {
        let mut active = self.active.clone();
        loop {
            let known = *active.borrow_and_update();
            let is_reached = async {
                match known {
                    Some(address) if address == self.own => {}
                    Some(_) => self.connection.completes().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = is_reached => return known,
                changed = active.changed() => changed.ok()?,
            }
        }
    }

    /// Returns when the active node is not at this address, also if nobody is left to say so.
    fn replaced(&self, address: SocketAddr) -> Ended {
        let mut active = self.active.clone();
        Box::pin(async move {
            let _ = active.wait_for(|active| *active != Some(address)).await;
        })
    }

    fn request(
        &self,
        active: SocketAddr,
        request: &HttpRequest,
        body: Option<CallBody>,
        relayed: &RelayedCall,
    ) -> reqwest::RequestBuilder {
        let target = request.uri().path_and_query().map(|it| it.as_str());
        // That of OPTIONS may be an asterisk.
        let target = target.filter(|it| it.starts_with('/')).unwrap_or("/");
        let method = reqwest::Method::from_bytes(request.method().as_str().as_bytes());
        let method = method.expect("it is a method for the server, too");
        let mut passed = self
            .client
            .request(method, format!("https://{active}{target}"));
        for (name, value) in request.headers() {
            if !is_own(name.as_str()) && name.as_str() != RELAYED {
                passed = passed.header(name.as_str(), value.as_bytes());
            }
        }
        passed = passed.header(RELAYED, relayed.to_string());
        match body {
            Some(body) => passed.body(Body::wrap(body)),
            None => passed,
        }
    }
}

/// The status and the headers of a response of the active node.
fn head_of(response: &reqwest::Response) -> HttpResponseBuilder {
    let status = StatusCode::from_u16(response.status().as_u16());
    let mut head = HttpResponse::build(status.unwrap_or(StatusCode::BAD_GATEWAY));
    for (name, value) in response.headers() {
        if !is_own(name.as_str()) {
            head.append_header((name.as_str(), value.as_bytes()));
        }
    }
    head
}

fn is_own(header: &str) -> bool {
    OWN_HEADERS.contains(&header)
}

/// How long the body of a request is; none, if that is not known.
fn body_bytes(request: &HttpRequest) -> Option<u64> {
    if request.headers().contains_key(TRANSFER_ENCODING) {
        return None;
    }
    let length = request.headers().get(CONTENT_LENGTH);
    length.map_or(Some(0), |it| it.to_str().ok()?.parse().ok())
}

/// The body of a call, read as the active node takes it. Of a node that could not be reached
/// nothing was taken.
#[derive(Clone)]
struct CallBody {
    parts: Arc<Mutex<mpsc::Receiver<io::Result<Bytes>>>>,
    length: Option<u64>,
}

impl CallBody {
    /// The body with this length, if it is known.
    fn of(mut payload: Payload, length: Option<u64>) -> Self {
        let (sender, parts) = mpsc::channel(PARTS_MAX);
        // The payload belongs to this thread, and the request to any.
        actix_rt::spawn(async move {
            while let Some(part) = poll_fn(|cx| Pin::new(&mut payload).poll_next(cx)).await {
                if sender.send(part.map_err(io::Error::other)).await.is_err() {
                    return;
                }
            }
        });
        let parts = Arc::new(Mutex::new(parts));
        Self { parts, length }
    }
}

impl http_body::Body for CallBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<http_body::Frame<Bytes>>>> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part = ready!(parts.poll_recv(cx));
        Poll::Ready(part.map(|part| part.map(http_body::Frame::data)))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let length = self.length.map(http_body::SizeHint::with_exact);
        length.unwrap_or_default()
    }
}

/// Returns when a body ends before its end.
type Ended = Pin<Box<dyn Future<Output = ()>>>;

/// The body of a response of the active node, until it ends.
struct AnswerBody {
    body: Pin<Box<Body>>,
    ended: Ended,
    length: Option<u64>,
    /// Whether the length is that of a body which is not sent.
    is_left_out: bool,
}

impl MessageBody for AnswerBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.length.map_or(BodySize::Stream, BodySize::Sized)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.is_left_out {
            return Poll::Ready(None);
        }
        if self.ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(
                "another node is active, or the caller has left".into()
            )));
        }
        loop {
            let frame = ready!(http_body::Body::poll_frame(self.body.as_mut(), cx));
            match frame {
                Some(Ok(frame)) => {
                    // Trailers are not passed on.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relayed_call_is_read_as_it_was_written() {
        for (served, is_secure, caller) in [
            ("all", true, "10.0.0.7:4711"),
            ("operator", false, "[2001:db8::1]:1"),
        ] {
            let call = RelayedCall {
                caller: caller.parse().unwrap(),
                is_secure,
                served: served.to_owned(),
            };
            assert_eq!(call.to_string().parse(), Ok(call));
        }
        for text in [
            "",
            "10.0.0.7:1",
            "10.0.0.7:1 ftp all",
            "10.0.0.7:1 http",
            "x http all",
        ] {
            assert_eq!(
                text.parse::<RelayedCall>(),
                Err(InvalidRelayedCall),
                "{text}"
            );
        }
    }
}
