//! How is one event delivered to a destination? It is read, rendered, signed and sent.

use std::sync::Arc;

use engine::delivery::address::DestinationUrl;
use engine::delivery::address::headers::Headers;
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::backlog::QueuedEvent;
use engine::delivery::body;
use engine::delivery::command::TestOutcome;
use engine::delivery::destination::{Destination, JsonPayload, Target, Webhook};
use engine::delivery::forwarding::DeliveryOutcome;
use engine::delivery::signature::{self, SigningSecret};
use engine::event::DeviceInfo;
use engine::ids::{CustomerId, DestinationId, EventId};
use engine::moment::Timestamp;
use store::sealed::MasterKey;
use store::{DeliveryReads, Unavailable};

use crate::clock::Clock;
use crate::delivery::DeliveryParts;
use crate::http::{HttpClient, HttpMethod, HttpOutcome, HttpRequest};

/// The context a destination's secret is sealed with: moved to another record, it does not open.
pub fn secret_context(id: DestinationId) -> Vec<u8> {
    [b"secret ".as_slice(), id.as_bytes()].concat()
}

/// The context a destination's header is sealed with.
pub fn header_context(id: DestinationId, name: &str) -> Vec<u8> {
    [b"header ".as_slice(), id.as_bytes(), name.as_bytes()].concat()
}

/// Delivers events to one destination.
pub(super) struct EventSender {
    store: Arc<dyn DeliveryReads>,
    http: HttpClient,
    clock: Clock,
    customer: CustomerId,
    /// How JSON text of a device is rendered.
    json: JsonPayload,
    /// Where to deliver and with what; or why the stored destination cannot be used.
    target: Result<ResolvedTarget, Unusable>,
}

/// A destination ready for deliveries: read, and its secrets opened.
struct ResolvedTarget {
    url: DestinationUrl,
    headers: Headers,
    secret: Option<SigningSecret>,
}

/// The stored destination cannot be used.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Unusable {
    #[error("the URL is no longer allowed")]
    Address,
    #[error("the secrets cannot be decrypted with the current master key")]
    Sealed,
    #[error("the headers are not valid")]
    Headers,
}

impl EventSender {
    pub(super) fn new(parts: &DeliveryParts, destination: &Destination) -> Self {
        let Target::Webhook(webhook) = &destination.target;
        Self {
            store: Arc::clone(&parts.store),
            http: parts.http.clone(),
            clock: parts.clock.clone(),
            customer: destination.customer.clone(),
            json: webhook.json,
            target: ResolvedTarget::of(destination, &parts.master_key, parts.policy),
        }
    }

    /// Delivers an event, if the store still has it.
    pub(super) async fn deliver(
        &self,
        waiting: QueuedEvent,
    ) -> Result<DeliveryOutcome, Unavailable> {
        let event = self.store.event(self.customer.clone(), waiting).await?;
        let Some(event) = event else {
            return Ok(DeliveryOutcome::Gone);
        };
        let body = body::render(&event, self.json);
        let posted = self.post(event.id, Some(&event.device_info), body).await;
        let why = match posted {
            Ok(HttpOutcome::Accepted(_)) => return Ok(DeliveryOutcome::Delivered),
            Ok(posted @ (HttpOutcome::Refused(_) | HttpOutcome::Unreachable(_))) => {
                posted.to_string()
            }
            Err(unusable) => unusable.to_string(),
        };
        Ok(DeliveryOutcome::Failed { why: why.into() })
    }

    /// Delivers a test event.
    pub(super) async fn test(&self, id: EventId, at: Timestamp) -> TestOutcome {
        let posted = self.post(id, None, body::render_test(&id, at)).await;
        let (accepted, status) = match &posted {
            Ok(HttpOutcome::Accepted(status)) => (true, Some(*status)),
            Ok(HttpOutcome::Refused(status)) => (false, Some(*status)),
            Ok(HttpOutcome::Unreachable(_)) | Err(_) => (false, None),
        };
        TestOutcome {
            accepted,
            status,
            message: posted.map_or_else(|unusable| unusable.to_string(), |it| it.to_string()),
        }
    }

    async fn post(
        &self,
        id: EventId,
        speaker: Option<&DeviceInfo>,
        body: Vec<u8>,
    ) -> Result<HttpOutcome, Unusable> {
        let target = self.target.as_ref().map_err(|unusable| *unusable)?;
        let request = target.request(id, self.clock.wall(), speaker, body);
        Ok(self.http.send(request).await)
    }
}

impl ResolvedTarget {
    fn of(to: &Destination, key: &MasterKey, policy: AddressPolicy) -> Result<Self, Unusable> {
        let Target::Webhook(webhook) = &to.target;
        let url = DestinationUrl::parse(&webhook.url, policy).map_err(|_| Unusable::Address)?;
        let secret = webhook.secret.as_ref().map(|sealed| {
            let secret = open(key, sealed, &secret_context(to.id))?;
            SigningSecret::parse(&secret).map_err(|_| Unusable::Sealed)
        });
        Ok(Self {
            url,
            headers: headers_of(to.id, webhook, key)?,
            secret: secret.transpose()?,
        })
    }

    fn request(
        &self,
        id: EventId,
        at: Timestamp,
        speaker: Option<&DeviceInfo>,
        body: Vec<u8>,
    ) -> HttpRequest {
        // A header of the customer comes later, and the later one counts.
        let mut headers = vec![("content-type".to_owned(), body::CONTENT_TYPE.to_owned())];
        headers.extend(self.headers.of(speaker));
        let named = |(name, value): (&str, String)| (name.to_owned(), value);
        match &self.secret {
            Some(secret) => headers.extend(secret.sign(&id, at, &body).map(named)),
            None => headers.extend(signature::unsigned(&id, at).map(named)),
        }
        HttpRequest {
            method: HttpMethod::Post,
            url: self.url.of(speaker),
            headers,
            body,
        }
    }
}

fn headers_of(id: DestinationId, webhook: &Webhook, key: &MasterKey) -> Result<Headers, Unusable> {
    let opened = webhook.headers.iter().map(|header| {
        let value = open(key, &header.value, &header_context(id, &header.name))?;
        Ok((header.name.as_ref(), value))
    });
    let opened: Vec<(&str, String)> = opened.collect::<Result<_, Unusable>>()?;
    let given = opened.iter().map(|(name, value)| (*name, value.as_str()));
    Headers::parse(given).map_err(|_| Unusable::Headers)
}

fn open(
    key: &MasterKey,
    sealed: &engine::sealed::Sealed,
    context: &[u8],
) -> Result<String, Unusable> {
    let plain = key.open(sealed, context).map_err(|_| Unusable::Sealed)?;
    String::from_utf8(plain).map_err(|_| Unusable::Sealed)
}
