//! How does the demo receive events? As the webhook endpoint of the customer: it accepts each event
//! with a valid signature and passes it on to be printed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use actix_web::dev::ServerHandle;
use actix_web::http::header::HeaderMap;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::delivery::signature::SigningSecret;
use engine::ids::EventId;
use engine::moment::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The path to which events are posted.
const PATH: &str = "/events";

/// Events that may be received and not printed yet: more than the steps cause at once. Further ones
/// are refused, and delivered again.
const UNPRINTED_MAX: usize = 256;

/// The length of a secret.
const SECRET_BYTES: usize = 32;

/// A running endpoint.
pub(super) struct WebhookEndpoint {
    address: SocketAddr,
    secret: String,
    server: ServerHandle,
    delivered: Receiver<DeliveredEvent>,
}

/// A received event with a valid signature.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeliveredEvent {
    /// The event id, the same at each attempt.
    pub(super) id: String,
    /// The body.
    pub(super) body: Value,
}

/// The state of the request handler.
struct EndpointState {
    secret: SigningSecret,
    delivered: Sender<DeliveredEvent>,
}

impl WebhookEndpoint {
    /// Opens the endpoint on a free port.
    pub(super) fn open() -> io::Result<Self> {
        let mut key = [0; SECRET_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let secret = format!("whsec_{}", STANDARD.encode(key));
        let (sender, delivered) = mpsc::channel(UNPRINTED_MAX);
        let parsed = SigningSecret::parse(&secret).map_err(io::Error::other)?;
        let door = web::Data::new(EndpointState {
            secret: parsed,
            delivered: sender,
        });
        let app = move || {
            let events = web::resource(PATH).route(web::post().to(take));
            App::new().app_data(door.clone()).service(events)
        };
        let server = HttpServer::new(app).workers(1).disable_signals();
        let server = server.bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = server.addrs().first().copied();
        let address = address.ok_or_else(|| io::Error::other("no address to listen on"))?;
        let running = server.run();
        let handle = running.handle();
        actix_rt::spawn(running);
        Ok(Self {
            address,
            secret,
            server: handle,
            delivered,
        })
    }

    /// The URL for the webhook.
    pub(super) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The secret for the webhook.
    pub(super) fn secret(&self) -> &str {
        &self.secret
    }

    /// The next event that was received already, if there is one.
    pub(super) fn arrived(&mut self) -> Option<DeliveredEvent> {
        self.delivered.try_recv().ok()
    }

    /// Closes the endpoint.
    pub(super) async fn close(self) {
        self.server.stop(false).await;
    }
}

async fn take(
    request: HttpRequest,
    body: web::Bytes,
    door: web::Data<EndpointState>,
) -> HttpResponse {
    let Some(delivered) = read(request.headers(), &body, &door.secret) else {
        return HttpResponse::Unauthorized().finish();
    };
    match door.delivered.try_send(delivered) {
        Ok(()) => HttpResponse::NoContent().finish(),
        Err(_) => HttpResponse::ServiceUnavailable().finish(),
    }
}

/// The event, if its signature is valid.
fn read(headers: &HeaderMap, body: &[u8], secret: &SigningSecret) -> Option<DeliveredEvent> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let id = EventId::parse(header("webhook-id")?).ok()?;
    let at_s: i64 = header("webhook-timestamp")?.parse().ok()?;
    let at = Timestamp::from_ms(at_s.checked_mul(1_000)?);
    let [_, _, (_, expected)] = secret.sign(&id, at, body);
    if header("webhook-signature")? != expected {
        return None;
    }
    Some(DeliveredEvent {
        id: id.to_string(),
        body: serde_json::from_slice(body).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    const BODY: &[u8] = br#"{"type":"TELEMETRY_DATA"}"#;

    #[test]
    fn only_events_signed_with_the_secret_are_accepted() {
        let secret = SigningSecret::parse(&STANDARD.encode([1; SECRET_BYTES])).unwrap();
        let other = SigningSecret::parse(&STANDARD.encode([2; SECRET_BYTES])).unwrap();
        let id = EventId::parse("0198c0de-0000-7000-8000-000000000001").unwrap();
        let signed = |by: &SigningSecret| -> HeaderMap {
            let headers = by.sign(&id, Timestamp::from_ms(1_763_726_400_999), BODY);
            let headers = headers.into_iter().map(|(name, value)| {
                let value = HeaderValue::from_str(&value).unwrap();
                (HeaderName::from_static(name), value)
            });
            headers.collect()
        };
        let taken = read(&signed(&secret), BODY, &secret).unwrap();
        assert_eq!(taken.id, id.to_string());
        assert_eq!(taken.body["type"], "TELEMETRY_DATA");
        assert_eq!(read(&signed(&other), BODY, &secret), None);
        assert_eq!(read(&signed(&secret), b"{}", &secret), None);
        assert_eq!(read(&HeaderMap::new(), BODY, &secret), None);
    }
}
