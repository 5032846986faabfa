//! Decisions about destinations: which ones a customer may have, and how they are changed.

use protocol::mqtt::MqttVersion;

use crate::customer::Customer;
use crate::delivery::address::plugin::{ServerDomain, WebhookKey};
use crate::delivery::destination::{
    Broker, BrokerCommands, ClientCertificate, Destination, DestinationState, EventBatching,
    EventTypes, Header, JsonPayload, Plugin, Replay, SmsForwarder, Target, Webhook,
};
use crate::delivery::partner::Partner;
use crate::directory::DirectoryRefusal;
use crate::directory::amending::FieldAmendment;
use crate::ids::{CustomerId, DestinationId};
use crate::limits::INTEGRATIONS_MAX;
use crate::moment::Moment;
use crate::sealed::Sealed;

/// A webhook to be created. Its secrets are not sealed yet.
#[derive(Clone, Eq, PartialEq)]
pub struct NewWebhook {
    /// Its display name.
    pub name: Box<str>,
    /// Its URL.
    pub url: Box<str>,
    /// Its headers, name and value.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// The types of events it receives.
    pub event_types: EventTypes,
    /// How payloads of devices that are JSON are sent.
    pub json: JsonPayload,
    /// Whether events are sent several at a time.
    pub batching: Option<EventBatching>,
    /// The secret that signs events.
    pub secret: Option<Box<str>>,
}

/// A plugin to be installed. Its key is not sealed yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewPlugin {
    /// Its partner.
    pub partner: &'static Partner,
    /// The server of the partner.
    pub server_domain: ServerDomain,
    /// The key that the partner gave the customer.
    pub webhook_key: WebhookKey,
}

/// A broker to be created. Its secrets are not sealed yet.
#[derive(Clone, Eq, PartialEq)]
pub struct NewBroker {
    /// Its display name.
    pub name: Box<str>,
    /// Its URL.
    pub url: Box<str>,
    /// What the topics begin with.
    pub topic_prefix: Box<str>,
    /// The version of MQTT.
    pub version: MqttVersion,
    /// The user name.
    pub username: Option<Box<str>>,
    /// The password.
    pub password: Option<Box<str>>,
    /// The CA certificates that are trusted, in PEM.
    pub ca: Option<Box<str>>,
    /// The certificate of the service and its key, in PEM.
    pub certificate: Option<(Box<str>, Box<str>)>,
    /// Whether messages of the broker create action requests.
    pub commands: BrokerCommands,
    /// The types of events it receives.
    pub event_types: Option<EventTypes>,
    /// How payloads of devices that are JSON are sent.
    pub json: JsonPayload,
}

/// A field of a destination that is sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SealedField<'a> {
    /// The value of the header of this name.
    Header(&'a str),
    /// The secret that signs events.
    Secret,
    /// The key of a plugin.
    WebhookKey,
    /// The password at a broker.
    BrokerPassword,
    /// The private key of the certificate for a broker.
    BrokerKey,
}

/// A change of a webhook; missing fields keep their value.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WebhookAmendments {
    /// Its display name.
    pub name: Option<Box<str>>,
    /// Its URL.
    pub url: Option<Box<str>>,
    /// Its headers, which replace all previous ones.
    pub headers: Option<Box<[Header]>>,
    /// The types of events it receives.
    pub event_types: Option<EventTypes>,
    /// How payloads of devices that are JSON are sent.
    pub json: Option<JsonPayload>,
    /// Whether events are sent several at a time.
    pub batching: FieldAmendment<EventBatching>,
    /// The secret that signs events.
    pub secret: FieldAmendment<Sealed>,
}

/// A change of a broker; missing fields keep their value.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BrokerAmendments {
    /// Its display name.
    pub name: Option<Box<str>>,
    /// Its URL.
    pub url: Option<Box<str>>,
    /// What the topics begin with.
    pub topic_prefix: Option<Box<str>>,
    /// The version of MQTT.
    pub version: Option<MqttVersion>,
    /// The user name.
    pub username: FieldAmendment<Box<str>>,
    /// The password.
    pub password: FieldAmendment<Sealed>,
    /// The CA certificates and the certificate of the service, which replace the previous ones.
    pub tls: FieldAmendment<(Option<Box<str>>, Option<ClientCertificate>)>,
    /// Whether messages of the broker create action requests.
    pub commands: Option<BrokerCommands>,
    /// The types of events it receives.
    pub event_types: Option<EventTypes>,
    /// How payloads of devices that are JSON are sent.
    pub json: Option<JsonPayload>,
}

/// The webhook as it would be created; `seal` seals its secrets.
pub fn draft_webhook(
    m: &mut Moment,
    customer: &CustomerId,
    new: NewWebhook,
    seal: impl Fn(DestinationId, SealedField<'_>, &str) -> Sealed,
) -> Destination {
    let id = DestinationId::new(m.uuid());
    let sealed = |(name, value): (Box<str>, Box<str>)| Header {
        value: seal(id, SealedField::Header(&name), &value),
        name,
    };
    let webhook = Webhook {
        url: new.url,
        headers: new.headers.into_iter().map(sealed).collect(),
        secret: new
            .secret
            .map(|secret| seal(id, SealedField::Secret, &secret)),
        json: new.json,
        batching: new.batching,
    };
    let draft = (id, new.name, Target::Webhook(webhook), new.event_types);
    draft_destination(m, customer, draft)
}

/// The plugin as it would be installed; `seal` seals its key. It receives every event.
pub fn draft_plugin(
    m: &mut Moment,
    customer: &CustomerId,
    new: NewPlugin,
    seal: impl Fn(DestinationId, SealedField<'_>, &str) -> Sealed,
) -> Destination {
    let id = DestinationId::new(m.uuid());
    let plugin = Plugin {
        partner: new.partner.id.into(),
        server_domain: new.server_domain.as_str().into(),
        webhook_key: seal(id, SealedField::WebhookKey, new.webhook_key.as_str()),
    };
    let name = new.partner.name.into();
    let draft = (id, name, Target::Plugin(plugin), EventTypes::all());
    draft_destination(m, customer, draft)
}

/// The broker as it would be created; `seal` seals its secrets. Results of requests are among its
/// events if it sends commands.
pub fn draft_broker(
    m: &mut Moment,
    customer: &CustomerId,
    new: NewBroker,
    seal: impl Fn(DestinationId, SealedField<'_>, &str) -> Sealed,
) -> Destination {
    let id = DestinationId::new(m.uuid());
    let sealed = |text: Box<str>| seal(id, SealedField::BrokerPassword, &text);
    let certificate = |(chain, key): (Box<str>, Box<str>)| ClientCertificate {
        key: seal(id, SealedField::BrokerKey, &key),
        chain,
    };
    let broker = Broker {
        url: new.url,
        topic_prefix: new.topic_prefix,
        version: new.version,
        username: new.username,
        password: new.password.map(sealed),
        ca: new.ca,
        certificate: new.certificate.map(certificate),
        commands: new.commands,
        json: new.json,
    };
    let usual = match new.commands {
        BrokerCommands::Off => EventTypes::usual(),
        BrokerCommands::On => EventTypes::all(),
    };
    let event_types = new.event_types.unwrap_or(usual);
    let draft = (id, new.name, Target::Broker(Box::new(broker)), event_types);
    draft_destination(m, customer, draft)
}

/// The SMS forwarder as it would be created. A customer has one at most.
pub fn draft_sms_forwarder(m: &mut Moment, customer: &Customer, url: Box<str>) -> Destination {
    let target = sms_forwarder_of(customer, url);
    let draft = (
        DestinationId::new(m.uuid()),
        "SMS forwarder".into(),
        target,
        EventTypes::of_sms(),
    );
    draft_destination(m, &customer.id, draft)
}

/// The endpoint of a customer's SMS forwarder.
pub fn sms_forwarder_of(customer: &Customer, url: Box<str>) -> Target {
    Target::SmsForwarder(SmsForwarder {
        url,
        organisation: customer.number,
    })
}

/// Whether a customer that has these destinations may have one more webhook or broker.
pub fn admit_integration(
    customer: Option<&Customer>,
    others: &[Destination],
) -> Result<(), DirectoryRefusal> {
    check_known(customer)?;
    let is_integration = |other: &&Destination| match &other.target {
        Target::Webhook(_) | Target::Broker(_) => true,
        Target::Plugin(_) | Target::SmsForwarder(_) => false,
    };
    if others.iter().filter(is_integration).count() >= INTEGRATIONS_MAX {
        let max = INTEGRATIONS_MAX;
        return Err(DirectoryRefusal::TooManyIntegrations { max });
    }
    Ok(())
}

/// Whether a customer that has these destinations may have a plugin of this partner.
pub fn admit_plugin(
    customer: Option<&Customer>,
    others: &[Destination],
    partner: &'static Partner,
) -> Result<(), DirectoryRefusal> {
    check_known(customer)?;
    let mut plugins = others.iter().filter_map(|other| other.target.plugin());
    match plugins.any(|plugin| *plugin.partner == *partner.id) {
        true => Err(DirectoryRefusal::PluginExists {
            partner: partner.id,
        }),
        false => Ok(()),
    }
}

/// The destination, if it belongs to this customer.
pub fn destination_of(customer: &CustomerId, found: Option<Destination>) -> Option<Destination> {
    found.filter(|destination| destination.customer == *customer)
}

impl WebhookAmendments {
    /// The destination after the change. Queued events stay queued and are delivered with the new
    /// settings.
    pub fn apply(self, was: Destination) -> Destination {
        let target = match was.target {
            Target::Webhook(webhook) => Target::Webhook(Webhook {
                url: self.url.unwrap_or(webhook.url),
                headers: self.headers.unwrap_or(webhook.headers),
                secret: self.secret.apply(webhook.secret),
                json: self.json.unwrap_or(webhook.json),
                batching: self.batching.apply(webhook.batching),
            }),
            target @ (Target::Plugin(_) | Target::SmsForwarder(_) | Target::Broker(_)) => target,
        };
        Destination {
            name: self.name.unwrap_or(was.name),
            target,
            event_types: self.event_types.unwrap_or(was.event_types),
            ..was
        }
    }
}

impl BrokerAmendments {
    /// The destination after the change. Queued events stay queued and are delivered with the new
    /// settings.
    pub fn apply(self, was: Destination) -> Destination {
        let target = match was.target {
            Target::Broker(was) => {
                let (ca, certificate) = match self.tls {
                    FieldAmendment::Keep => (was.ca, was.certificate),
                    FieldAmendment::Remove => (None, None),
                    FieldAmendment::Put(tls) => tls,
                };
                Target::Broker(Box::new(Broker {
                    url: self.url.unwrap_or(was.url),
                    topic_prefix: self.topic_prefix.unwrap_or(was.topic_prefix),
                    version: self.version.unwrap_or(was.version),
                    username: self.username.apply(was.username),
                    password: self.password.apply(was.password),
                    ca,
                    certificate,
                    commands: self.commands.unwrap_or(was.commands),
                    json: self.json.unwrap_or(was.json),
                }))
            }
            target @ (Target::Webhook(_) | Target::Plugin(_) | Target::SmsForwarder(_)) => target,
        };
        Destination {
            name: self.name.unwrap_or(was.name),
            target,
            event_types: self.event_types.unwrap_or(was.event_types),
            ..was
        }
    }
}

fn draft_destination(
    m: &Moment,
    customer: &CustomerId,
    (id, name, target, event_types): (DestinationId, Box<str>, Target, EventTypes),
) -> Destination {
    Destination {
        id,
        customer: customer.clone(),
        name,
        target,
        event_types,
        state: DestinationState::RolledOut,
        failure: None,
        replay: Replay::None,
        created_at: m.now(),
        updated_at: m.now(),
    }
}

fn check_known(customer: Option<&Customer>) -> Result<(), DirectoryRefusal> {
    match customer {
        Some(_) => Ok(()),
        None => Err(DirectoryRefusal::CustomerUnknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::address::policy::AddressPolicy;
    use crate::event::EventType;
    use crate::moment::Timestamp;

    const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

    const BATCHING: EventBatching = EventBatching {
        events_max: 20,
        wait_ms_max: 250,
    };

    #[test]
    fn a_webhook_is_created_with_its_secrets_sealed_for_it_alone() {
        let made = drafted();
        let webhook = made.target.webhook().unwrap();
        assert_eq!(made.state, DestinationState::RolledOut);
        assert_eq!((made.created_at, made.updated_at), (NOON, NOON));
        assert_eq!(&*webhook.url, "https://example.com/in");
        let header = Header {
            name: "X-Key".into(),
            value: sealed(made.id, SealedField::Header("X-Key"), "open sesame"),
        };
        assert_eq!(*webhook.headers, [header]);
        assert_eq!(
            webhook.secret,
            Some(sealed(made.id, SealedField::Secret, "whsec_abc"))
        );
        let other = draft_webhook(&mut moment(1), &acme().id, new_webhook(), sealed);
        assert_ne!(made.id, other.id);
        assert_ne!(made.target, other.target, "it is sealed for another");
    }

    #[test]
    fn a_plugin_is_created_with_its_key_sealed_and_receives_every_event() {
        let made = drafted_plugin();
        let plugin = made.target.plugin().unwrap();
        assert_eq!(&*made.name, "Gateway");
        assert_eq!(made.state, DestinationState::RolledOut);
        assert_eq!(made.event_types, EventTypes::all());
        assert_eq!(&*plugin.partner, "gateway");
        assert_eq!(&*plugin.server_domain, "gateway.example.com:8443");
        let key = sealed(made.id, SealedField::WebhookKey, "k-123");
        assert_eq!(plugin.webhook_key, key);
    }

    #[test]
    fn a_customer_has_one_plugin_of_a_partner_beside_its_webhooks() {
        let [gateway, dashboard] = ["gateway", "dashboard"].map(|id| Partner::find(id).unwrap());
        let mut others = vec![drafted(); INTEGRATIONS_MAX];
        assert_eq!(admit_plugin(Some(&acme()), &others, gateway), Ok(()));
        others.push(drafted_plugin());
        let exists = Err(DirectoryRefusal::PluginExists { partner: "gateway" });
        assert_eq!(admit_plugin(Some(&acme()), &others, gateway), exists);
        assert_eq!(admit_plugin(Some(&acme()), &others, dashboard), Ok(()));
        let unknown = Err(DirectoryRefusal::CustomerUnknown);
        assert_eq!(admit_plugin(None, &[], gateway), unknown);
    }

    #[test]
    fn the_integrations_of_a_customer_have_a_bound() {
        let mut others = vec![drafted(); INTEGRATIONS_MAX - 1];
        others.push(drafted_plugin());
        assert_eq!(admit_integration(Some(&acme()), &others), Ok(()));
        others.push(drafted());
        let max = INTEGRATIONS_MAX;
        let refused = Err(DirectoryRefusal::TooManyIntegrations { max });
        assert_eq!(admit_integration(Some(&acme()), &others), refused);
        assert_eq!(
            admit_integration(None, &[]),
            Err(DirectoryRefusal::CustomerUnknown)
        );
    }

    #[test]
    fn a_destination_of_another_customer_is_unknown() {
        let made = drafted();
        let umbrella = CustomerId::parse("umbrella").unwrap();
        assert_eq!(
            destination_of(&acme().id, Some(made.clone())),
            Some(made.clone())
        );
        assert_eq!(destination_of(&umbrella, Some(made)), None);
        assert_eq!(destination_of(&umbrella, None), None);
    }

    #[test]
    fn missing_fields_keep_their_value() {
        let failed = Destination {
            state: DestinationState::Failed,
            ..drafted()
        };
        let amended = WebhookAmendments::default().apply(failed.clone());
        assert_eq!(amended, failed);
    }

    #[test]
    fn given_fields_replace_the_previous_values() {
        let was = drafted();
        let results: EventTypes = [EventType::ActionResult].into_iter().collect();
        let amendments = WebhookAmendments {
            name: Some("Other".into()),
            url: Some("https://example.org/".into()),
            headers: Some(Box::new([])),
            event_types: Some(results),
            json: Some(JsonPayload::Parsed),
            batching: FieldAmendment::Put(BATCHING),
            secret: FieldAmendment::Remove,
        };
        let webhook = Webhook {
            url: "https://example.org/".into(),
            headers: Box::new([]),
            secret: None,
            json: JsonPayload::Parsed,
            batching: Some(BATCHING),
        };
        let expected = Destination {
            name: "Other".into(),
            target: Target::Webhook(webhook),
            event_types: results,
            ..was.clone()
        };
        assert_eq!(amendments.apply(was), expected);
    }

    fn drafted() -> Destination {
        draft_webhook(&mut moment(0), &acme().id, new_webhook(), sealed)
    }

    fn drafted_plugin() -> Destination {
        let server = "gateway.example.com:8443";
        let new = NewPlugin {
            partner: Partner::find("gateway").unwrap(),
            server_domain: ServerDomain::parse(server, AddressPolicy::PublicOnly).unwrap(),
            webhook_key: WebhookKey::parse("k-123").unwrap(),
        };
        draft_plugin(&mut moment(9), &acme().id, new, sealed)
    }

    fn new_webhook() -> NewWebhook {
        NewWebhook {
            name: "Warehouse".into(),
            url: "https://example.com/in".into(),
            headers: vec![("X-Key".into(), "open sesame".into())],
            event_types: EventTypes::usual(),
            json: JsonPayload::AsText,
            batching: None,
            secret: Some("whsec_abc".into()),
        }
    }

    fn acme() -> Customer {
        Customer {
            networks: Box::default(),
            wake_up: None,
            offline_after_s: None,
            authorities: None,
            id: CustomerId::parse("acme").unwrap(),
            number: 1,
            name: "Acme".into(),
            created_at: NOON,
        }
    }

    fn sealed(id: DestinationId, part: SealedField<'_>, text: &str) -> Sealed {
        Sealed::from_bytes(format!("{id} {part:?} {text}").into_bytes().into())
    }

    fn moment(seed: u128) -> Moment {
        Moment::new(NOON, 7 + (seed << 32))
    }
}
