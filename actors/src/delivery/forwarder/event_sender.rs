//! How is one event delivered to a destination? It is read, rendered, signed and sent.

use std::sync::Arc;

use engine::admin_log::entry::AboutDevice;
use engine::delivery::address::broker::BrokerUrl;
use engine::delivery::address::headers::Headers;
use engine::delivery::address::plugin::{ServerDomain, WebhookKey};
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::address::{DestinationUrl, admit};
use engine::delivery::backlog::QueuedEvent;
use engine::delivery::body;
use engine::delivery::body::sms::{render_sms, samples};
use engine::delivery::command::TestOutcome;
use engine::delivery::destination::{
    Broker, Destination, EventBatching, JsonPayload, Plugin, SmsForwarder, Target, Webhook,
};
use engine::delivery::forwarding::{DeliveryOutcome, FailedDelivery};
use engine::delivery::mqtt::link::{MqttLinkRules, Publication};
use engine::delivery::partner::Partner;
use engine::delivery::signature::{self, SigningSecret};
use engine::directory::destination::SealedField;
use engine::event::{DeviceInfo, Event, EventContent, EventType};
use engine::ids::{CustomerId, DestinationId, EventId};
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use engine::sealing::SecretOwner;
use store::sealed::MasterKey;
use store::{DeliveryReads, Unavailable};
use zeroize::Zeroizing;

use super::broker_link::BrokerLink;
use crate::broker::{BrokerAddress, BrokerTls};
use crate::clock::Clock;
use crate::delivery::DeliveryParts;
use crate::http::{HttpClient, HttpMethod, HttpOutcome, HttpRequest};

/// The result of a test that a broker accepted.
const PUBLISHED: &str = "the broker acknowledged the event";

/// Delivers events to one destination.
pub(super) struct EventSender {
    store: Arc<dyn DeliveryReads>,
    http: HttpClient,
    clock: Clock,
    customer: CustomerId,
    /// The destination as it was when this was made.
    of: Target,
    /// The link to the broker, if it is one.
    link: Option<BrokerLink>,
    /// Where to deliver and with what; or why the stored destination cannot be used.
    target: Result<ResolvedTarget, Unusable>,
}

/// A destination ready for deliveries: read, and its secrets opened.
enum ResolvedTarget {
    /// It receives events in their envelope.
    Envelope(EnvelopeTarget),
    /// It receives SMS as seed 6 has them.
    Sms { url: String, organisation: u64 },
    /// It receives events in their envelope by MQTT.
    Broker(Box<BrokerTarget>),
}

/// A broker.
struct BrokerTarget {
    rules: MqttLinkRules,
    address: BrokerAddress,
    /// How JSON text of a device is rendered.
    json: JsonPayload,
}

/// What is sent for an event.
enum OutgoingEvent {
    Http(HttpRequest),
    Mqtt(Publication),
}

/// What the destination said to it.
enum SendResult {
    Http(HttpOutcome),
    Mqtt(Result<(), Box<str>>),
}

/// A destination of events in their envelope.
struct EnvelopeTarget {
    url: DestinationUrl,
    /// How JSON text of a device is rendered.
    json: JsonPayload,
    batching: Option<EventBatching>,
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
    #[error("the partner is no longer supported")]
    Partner,
    #[error("the event is not for this destination")]
    Event,
    #[error("the prefix of the topics is not valid")]
    Prefix,
    #[error("the destination takes one event at a time")]
    Batch,
}

impl EventSender {
    pub(super) fn new(parts: &DeliveryParts, destination: &Destination) -> Self {
        let timeout_ms = i64::try_from(parts.brokers.timeout().as_millis()).unwrap_or(i64::MAX);
        let rules = (parts.policy, timeout_ms);
        let target = ResolvedTarget::of(destination, &parts.master_key, rules);
        let link = match &target {
            Ok(ResolvedTarget::Broker(broker)) => Some(BrokerLink::start(
                parts,
                (destination.id, destination.customer.clone()),
                broker.rules.clone(),
                broker.address.clone(),
            )),
            Ok(ResolvedTarget::Envelope(_) | ResolvedTarget::Sms { .. }) | Err(_) => None,
        };
        Self {
            store: Arc::clone(&parts.store),
            http: parts.http.clone(),
            clock: parts.clock.clone(),
            customer: destination.customer.clone(),
            of: destination.target.clone(),
            link,
            target,
        }
    }

    /// Whether it delivers to where the destination is now.
    pub(super) fn is_for(&self, destination: &Destination) -> bool {
        self.of == destination.target
    }

    /// Ends the link to a broker, which has one client with this identifier, because the
    /// destination has another target.
    pub(super) fn close(&self, changed: &Destination) {
        match (&self.link, changed.target.leaves_broker_of(&self.of)) {
            (Some(link), true) => link.retire(),
            (Some(link), false) => link.close(),
            (None, _) => {}
        }
    }

    /// Ends the link to a broker, because the destination is removed.
    pub(super) fn retire(&self) {
        if let Some(link) = &self.link {
            link.retire();
        }
    }

    /// Delivers those of these events that the store still has, in one request.
    pub(super) async fn deliver(
        &self,
        queued: Vec<QueuedEvent>,
    ) -> Result<DeliveryOutcome, Unavailable> {
        let events = self.store.events(self.customer.clone(), queued).await?;
        let Some(first) = events.first() else {
            return Ok(DeliveryOutcome::Gone);
        };
        let request = self
            .target()
            .and_then(|it| it.of_events(&events, self.clock.wall()));
        let posted = match request {
            Ok(request) => self.send(request).await,
            Err(unusable) => Err(unusable),
        };
        let (why, pause_ms) = match posted {
            Ok(SendResult::Http(HttpOutcome::Accepted(_)) | SendResult::Mqtt(Ok(()))) => {
                return Ok(DeliveryOutcome::Delivered);
            }
            Ok(SendResult::Http(posted @ HttpOutcome::Deferred { retry_after_s, .. })) => {
                let pause_ms = i64::from(retry_after_s) * 1_000;
                (posted.to_string().into(), pause_ms)
            }
            Ok(SendResult::Http(
                posted @ (HttpOutcome::Refused(_) | HttpOutcome::Unreachable(_)),
            )) => (posted.to_string().into(), 0),
            Ok(SendResult::Mqtt(Err(why))) => (why, 0),
            Err(unusable) => (unusable.to_string().into(), 0),
        };
        Ok(DeliveryOutcome::Failed(FailedDelivery {
            why,
            pause_ms,
            about: Some(Box::new(about(first))),
        }))
    }

    /// Delivers the events of a test; the outcome is that of the first one that is not accepted, or
    /// of the last one.
    pub(super) async fn test(&self, id: EventId, at: Timestamp) -> TestOutcome {
        let requests = self
            .target()
            .and_then(|it| it.of_test(&id, at, self.clock.wall()));
        let mut outcome = None;
        for request in requests.unwrap_or_else(|unusable| {
            outcome = Some(TestOutcome {
                accepted: false,
                status: None,
                message: unusable.to_string(),
            });
            Vec::new()
        }) {
            let sent = tested(self.send(request).await);
            if outcome
                .as_ref()
                .is_none_or(|before: &TestOutcome| before.accepted)
            {
                outcome = Some(sent);
            }
        }
        outcome.expect("a test has at least one request")
    }

    async fn send(&self, outgoing: OutgoingEvent) -> Result<SendResult, Unusable> {
        match (outgoing, &self.link) {
            (OutgoingEvent::Http(request), _) => {
                Ok(SendResult::Http(self.http.send(request).await))
            }
            (OutgoingEvent::Mqtt(publication), Some(link)) => {
                Ok(SendResult::Mqtt(link.publish(publication).await))
            }
            (OutgoingEvent::Mqtt(_), None) => Err(Unusable::Address),
        }
    }

    fn target(&self) -> Result<&ResolvedTarget, Unusable> {
        self.target.as_ref().map_err(|unusable| *unusable)
    }
}

impl ResolvedTarget {
    fn of(
        to: &Destination,
        key: &MasterKey,
        (policy, timeout_ms): (AddressPolicy, i64),
    ) -> Result<Self, Unusable> {
        match &to.target {
            Target::Broker(broker) => Self::of_broker((to.id, broker), key, (policy, timeout_ms)),
            Target::Webhook(webhook) => Self::of_webhook(to.id, webhook, key, policy),
            Target::Plugin(plugin) => Self::of_plugin(to.id, plugin, key, policy),
            Target::SmsForwarder(forwarder) => Self::of_sms_forwarder(forwarder, policy),
        }
    }

    fn of_sms_forwarder(forwarder: &SmsForwarder, policy: AddressPolicy) -> Result<Self, Unusable> {
        admit(&forwarder.url, policy).map_err(|_| Unusable::Address)?;
        Ok(Self::Sms {
            url: forwarder.url.to_string(),
            organisation: forwarder.organisation,
        })
    }

    fn of_webhook(
        id: DestinationId,
        webhook: &Webhook,
        key: &MasterKey,
        policy: AddressPolicy,
    ) -> Result<Self, Unusable> {
        let url = DestinationUrl::parse(&webhook.url, policy).map_err(|_| Unusable::Address)?;
        let secret = webhook.secret.as_ref().map(|sealed| {
            let secret = Zeroizing::new(open(key, sealed, id, SealedField::Secret)?);
            SigningSecret::parse(&secret).map_err(|_| Unusable::Sealed)
        });
        Ok(Self::Envelope(EnvelopeTarget {
            url,
            json: webhook.json,
            batching: webhook.batching,
            headers: headers_of(id, webhook, key)?,
            secret: secret.transpose()?,
        }))
    }

    fn of_plugin(
        id: DestinationId,
        plugin: &Plugin,
        key: &MasterKey,
        policy: AddressPolicy,
    ) -> Result<Self, Unusable> {
        let partner = Partner::find(&plugin.partner).ok_or(Unusable::Partner)?;
        let server = ServerDomain::parse(&plugin.server_domain, policy);
        let server = server.map_err(|_| Unusable::Address)?;
        let opened = Zeroizing::new(open(key, &plugin.webhook_key, id, SealedField::WebhookKey)?);
        let webhook_key = WebhookKey::parse(&opened).map_err(|_| Unusable::Sealed)?;
        Ok(Self::Envelope(EnvelopeTarget {
            url: partner.url(&server, &webhook_key),
            json: partner.json,
            batching: None,
            headers: Headers::default(),
            secret: None,
        }))
    }

    fn of_broker(
        (id, broker): (DestinationId, &Broker),
        key: &MasterKey,
        (policy, timeout_ms): (AddressPolicy, i64),
    ) -> Result<Self, Unusable> {
        let opened = |sealed: &Sealed, field| open(key, sealed, id, field);
        let url = BrokerUrl::parse(&broker.url, policy).map_err(|_| Unusable::Address)?;
        let password = broker.password.as_ref();
        let password = password.map(|sealed| opened(sealed, SealedField::BrokerPassword));
        let certificate = broker.certificate.as_ref().map(|shown| {
            let key = opened(&shown.key, SealedField::BrokerKey)?;
            Ok((shown.chain.to_string(), key))
        });
        let rules = MqttLinkRules::of((id, broker), password.transpose()?, timeout_ms);
        Ok(Self::Broker(Box::new(BrokerTarget {
            rules: rules.map_err(|_| Unusable::Prefix)?,
            address: BrokerAddress {
                url,
                tls: BrokerTls {
                    ca: broker.ca.as_deref().map(Into::into),
                    certificate: certificate.transpose()?,
                },
            },
            json: broker.json,
        })))
    }

    /// What delivers events: several only if they are sent in batches.
    fn of_events(&self, events: &[Event], at: Timestamp) -> Result<OutgoingEvent, Unusable> {
        match (self, events) {
            (Self::Envelope(target), _) if target.batching.is_some() => {
                let body = body::render_batch(events, target.json);
                let request = target.request(body::batch_id(events), at, None, body);
                Ok(OutgoingEvent::Http(request))
            }
            (Self::Envelope(target), [event]) => {
                let body = body::render(event, target.json);
                let request = target.request(event.id, at, Some(&event.device_info), body);
                Ok(OutgoingEvent::Http(request))
            }
            (Self::Sms { url, organisation }, [event]) => {
                let request = sms_request(url, &event.content, *organisation);
                request.map(OutgoingEvent::Http).ok_or(Unusable::Event)
            }
            (Self::Broker(broker), [event]) => {
                let prefix = broker.rules.prefix();
                let event_type = event.content.event_type();
                Ok(OutgoingEvent::Mqtt(Publication {
                    topic: prefix.of_events(&event.device_info.device, event_type),
                    payload: body::render(event, broker.json),
                }))
            }
            (_, [] | [_, _, ..]) => Err(Unusable::Batch),
        }
    }

    /// The requests of a test.
    fn of_test(
        &self,
        id: &EventId,
        made_at: Timestamp,
        at: Timestamp,
    ) -> Result<Vec<OutgoingEvent>, Unusable> {
        match self {
            Self::Envelope(target) => {
                let body = body::render_test(id, made_at);
                let request = target.request(*id, at, None, body);
                Ok(vec![OutgoingEvent::Http(request)])
            }
            Self::Sms { url, organisation } => {
                let samples = samples(made_at);
                let requests = samples.iter().map(|it| sms_request(url, it, *organisation));
                let requests = requests.map(|it| it.map(OutgoingEvent::Http));
                requests.collect::<Option<_>>().ok_or(Unusable::Event)
            }
            Self::Broker(broker) => Ok(vec![OutgoingEvent::Mqtt(Publication {
                topic: broker.rules.prefix().of_tests(),
                payload: body::render_test(id, made_at),
            })]),
        }
    }
}

impl EnvelopeTarget {
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

/// The request for an SMS event (seed 6): a POST of a message, a PATCH of a report. It has no
/// header of authentication or signature (seed 5.6).
fn sms_request(url: &str, content: &EventContent, organisation: u64) -> Option<HttpRequest> {
    let method = match content.event_type() {
        EventType::SmsReport => HttpMethod::Patch,
        EventType::SmsReceived
        | EventType::TelemetryData
        | EventType::Lifecycle
        | EventType::Error
        | EventType::ActionResult => HttpMethod::Post,
    };
    Some(HttpRequest {
        method,
        url: url.to_owned(),
        headers: vec![("content-type".to_owned(), body::CONTENT_TYPE.to_owned())],
        body: render_sms(content, organisation)?,
    })
}

fn tested(sent: Result<SendResult, Unusable>) -> TestOutcome {
    let (accepted, status, message) = match sent {
        Ok(SendResult::Http(outcome)) => {
            let (accepted, status) = match &outcome {
                HttpOutcome::Accepted(status) => (true, Some(*status)),
                HttpOutcome::Refused(status) | HttpOutcome::Deferred { status, .. } => {
                    (false, Some(*status))
                }
                HttpOutcome::Unreachable(_) => (false, None),
            };
            (accepted, status, outcome.to_string())
        }
        Ok(SendResult::Mqtt(Ok(()))) => (true, None, PUBLISHED.to_owned()),
        Ok(SendResult::Mqtt(Err(why))) => (false, None, why.into()),
        Err(unusable) => (false, None, unusable.to_string()),
    };
    TestOutcome {
        accepted,
        status,
        message,
    }
}

/// The device of an event, for the log.
fn about(event: &Event) -> AboutDevice {
    AboutDevice {
        key: event.device,
        iccid: event.device_info.iccid.clone(),
        imsi: event.device_info.imsi.clone(),
        ip: event.device_info.ip,
    }
}

fn headers_of(id: DestinationId, webhook: &Webhook, key: &MasterKey) -> Result<Headers, Unusable> {
    let opened = webhook.headers.iter().map(|header| {
        let value = open(key, &header.value, id, SealedField::Header(&header.name))?;
        Ok((header.name.as_ref(), value))
    });
    let opened: Vec<(&str, String)> = opened.collect::<Result<_, Unusable>>()?;
    let given = opened.iter().map(|(name, value)| (*name, value.as_str()));
    Headers::parse(given).map_err(|_| Unusable::Headers)
}

fn open(
    key: &MasterKey,
    sealed: &Sealed,
    id: DestinationId,
    field: SealedField<'_>,
) -> Result<String, Unusable> {
    let opened = key.open(sealed, &SecretOwner::Destination(id, field).context());
    let plain = opened.map_err(|_| Unusable::Sealed)?;
    let text = std::str::from_utf8(&plain).map_err(|_| Unusable::Sealed)?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use engine::action::Protocol;
    use engine::delivery::destination::{DestinationState, EventTypes, Replay};
    use engine::delivery::partner::PARTNERS;
    use engine::event::Data;
    use engine::ids::{DeviceId, DeviceKey, Iccid};

    use super::*;

    const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

    const RULES: (AddressPolicy, i64) = (AddressPolicy::PublicOnly, 20_000);

    /// `UPDATE_GOLDEN=1` rewrites the files.
    #[test]
    fn each_partner_receives_the_request_of_its_golden_file() {
        let key = MasterKey::from_bytes(&[7; 32]);
        for partner in &PARTNERS {
            let target = ResolvedTarget::of(&plugin_of(partner, &key), &key, RULES);
            let target = target.unwrap_or_else(|unusable| panic!("{unusable}"));
            let outgoing = target.of_events(&[event()], NOON.plus_s(7)).unwrap();
            let OutgoingEvent::Http(request) = outgoing else {
                panic!("plugins are called by HTTP");
            };
            check(partner.id, &written(request));
        }
    }

    #[test]
    fn a_key_sealed_for_another_plugin_does_not_open() {
        let key = MasterKey::from_bytes(&[7; 32]);
        let moved = Destination {
            id: DestinationId::from_bytes([9; 16]),
            ..plugin_of(&PARTNERS[0], &key)
        };
        let target = ResolvedTarget::of(&moved, &key, RULES);
        assert!(matches!(target, Err(Unusable::Sealed)));
    }

    /// Compares a request with `tests/partners/<partner>.http`.
    fn check(partner: &str, request: &str) {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/partners");
        let path = golden.join(format!("{partner}.http"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, request).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(golden, request, "{}", path.display());
    }

    fn written(request: HttpRequest) -> String {
        let headers = request.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        let body = String::from_utf8(request.body).unwrap();
        format!("POST {}\n{headers}\n{body}\n", request.url)
    }

    fn plugin_of(partner: &Partner, key: &MasterKey) -> Destination {
        let id = DestinationId::from_bytes([5; 16]);
        let context = SecretOwner::Destination(id, SealedField::WebhookKey).context();
        let plugin = Plugin {
            partner: partner.id.into(),
            server_domain: "partner.example.com:8443".into(),
            webhook_key: key.seal(b"7b0cf/1", &context),
        };
        Destination {
            id,
            customer: acme(),
            name: partner.name.into(),
            target: Target::Plugin(plugin),
            event_types: EventTypes::all(),
            state: DestinationState::RolledOut,
            failure: None,
            replay: Replay::None,
            created_at: NOON,
            updated_at: NOON,
        }
    }

    /// Data that is JSON, and is sent as the definition of the partner says.
    fn event() -> Event {
        let device = DeviceId::parse("meter-7").unwrap();
        let data = Data {
            source: Protocol::Coap,
            topic: None,
            bytes: br#"{"temperature":21.5}"#.as_slice().into(),
        };
        Event {
            id: EventId::parse("01935c5a-0000-7000-8000-000000000003").unwrap(),
            customer: acme(),
            device: DeviceKey::of(&acme(), &device),
            device_info: DeviceInfo {
                device,
                iccid: Iccid::parse("8988280666000000001").unwrap(),
                imsi: None,
                ip: None,
            },
            at: NOON,
            content: EventContent::Data(Box::new(data)),
        }
    }

    fn acme() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }
}
