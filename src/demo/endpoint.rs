//! How does the demo receive events? As the endpoint of the customer, which accepts each event with
//! a valid signature and every SMS, and as the partner of its plugin. What they receive is passed
//! on to be printed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use actix_web::dev::ServerHandle;
use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use engine::delivery::signature::SigningSecret;
use engine::ids::EventId;
use engine::moment::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The path to which events are posted.
const PATH: &str = "/events";

/// The path to which SMS of devices are posted, and where delivery reports are patched.
const SMS_PATH: &str = "/sms/";

/// The path of the partner, which has the key of the plugin.
const PARTNER_PATH: &str = "/webhook/{key}";

/// Events that may be received and not printed yet: more than the steps cause at once. Further ones
/// are refused, and delivered again.
const UNPRINTED_MAX: usize = 256;

/// The length of a secret.
const SECRET_BYTES: usize = 32;

/// A running endpoint.
pub(super) struct WebhookEndpoint {
    address: SocketAddr,
    secret: String,
    webhook_key: String,
    server: ServerHandle,
    delivered: Receiver<DeliveredEvent>,
}

/// What was received.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeliveredEvent {
    /// How it came.
    pub(super) way: DeliveryWay,
    /// The body.
    pub(super) body: Value,
}

/// How an event is delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DeliveryWay {
    /// By the webhook, with a valid signature.
    Webhook,
    /// By the SMS forwarder: a message of a device.
    SmsMessage,
    /// By the SMS forwarder: the final status of a message to a device.
    SmsReport,
    /// By the plugin, with its key.
    Plugin,
}

/// The state of the request handler.
struct EndpointState {
    secret: SigningSecret,
    webhook_key: String,
    delivered: Sender<DeliveredEvent>,
}

impl WebhookEndpoint {
    /// Opens the endpoint on a free port.
    pub(super) fn open() -> io::Result<Self> {
        let secret = format!("whsec_{}", STANDARD.encode(random_key()?));
        let webhook_key = URL_SAFE_NO_PAD.encode(random_key()?);
        let (sender, delivered) = mpsc::channel(UNPRINTED_MAX);
        let parsed = SigningSecret::parse(&secret).map_err(io::Error::other)?;
        let door = web::Data::new(EndpointState {
            secret: parsed,
            webhook_key: webhook_key.clone(),
            delivered: sender,
        });
        let app = move || {
            let events = web::resource(PATH).route(web::post().to(take));
            let sms = web::resource(SMS_PATH)
                .route(web::post().to(take_sms))
                .route(web::patch().to(take_sms));
            let partner = web::resource(PARTNER_PATH).route(web::post().to(take_as_partner));
            let app = App::new().app_data(door.clone());
            app.service(events).service(sms).service(partner)
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
            webhook_key,
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

    /// The URL for the SMS forwarder.
    pub(super) fn sms_url(&self) -> String {
        format!("http://{}{SMS_PATH}", self.address)
    }

    /// The domain of the partner, for its plugin.
    pub(super) fn partner_domain(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The key of the plugin.
    pub(super) fn webhook_key(&self) -> &str {
        &self.webhook_key
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
    pass_on(&door, delivered)
}

async fn take_sms(
    request: HttpRequest,
    web::Json(body): web::Json<Value>,
    door: web::Data<EndpointState>,
) -> HttpResponse {
    let way = match *request.method() {
        Method::PATCH => DeliveryWay::SmsReport,
        _ => DeliveryWay::SmsMessage,
    };
    pass_on(&door, DeliveredEvent { way, body })
}

async fn take_as_partner(
    key: web::Path<String>,
    web::Json(body): web::Json<Value>,
    door: web::Data<EndpointState>,
) -> HttpResponse {
    if *key != door.webhook_key {
        return HttpResponse::Unauthorized().finish();
    }
    let way = DeliveryWay::Plugin;
    pass_on(&door, DeliveredEvent { way, body })
}

fn pass_on(door: &EndpointState, delivered: DeliveredEvent) -> HttpResponse {
    match door.delivered.try_send(delivered) {
        Ok(()) => HttpResponse::NoContent().finish(),
        Err(_) => HttpResponse::ServiceUnavailable().finish(),
    }
}

fn random_key() -> io::Result<[u8; SECRET_BYTES]> {
    let mut key = [0; SECRET_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    Ok(key)
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
        way: DeliveryWay::Webhook,
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
        assert_eq!(taken.way, DeliveryWay::Webhook);
        assert_eq!(taken.body["type"], "TELEMETRY_DATA");
        assert_eq!(read(&signed(&other), BODY, &secret), None);
        assert_eq!(read(&signed(&secret), b"{}", &secret), None);
        assert_eq!(read(&HeaderMap::new(), BODY, &secret), None);
    }
}
