//! What is a destination of a customer's events?

use protocol::mqtt::MqttVersion;

use crate::delivery::backlog::QueuedEvent;
use crate::event::{EventType, Lifecycle};
use crate::ids::{CustomerId, DestinationId};
use crate::moment::Timestamp;
use crate::node::lease::LeaseId;
use crate::sealed::Sealed;

/// A system that the events of a customer are delivered to: a cloud integration, a plugin, or the
/// endpoint of its SMS forwarder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Destination {
    /// Its id.
    pub id: DestinationId,
    /// Its customer.
    pub customer: CustomerId,
    /// Its display name.
    pub name: Box<str>,
    /// Where events are sent.
    pub target: Target,
    /// The types of events it receives.
    pub event_types: EventTypes,
    /// Whether deliveries succeed.
    pub state: DestinationState,
    /// Why it is failed, for the customer; none in another state.
    pub failure: Option<Box<str>>,
    /// Whether its dead letters are being replayed.
    pub replay: Replay,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it or its state last changed.
    pub updated_at: Timestamp,
}

impl Destination {
    /// The lease of the node that delivers to it. A broker is the active node's, which carries out
    /// the commands that come from there.
    pub fn lease(&self) -> LeaseId {
        match self.target {
            Target::Webhook(_) | Target::Plugin(_) | Target::SmsForwarder(_) => {
                LeaseId::Partition(self.id.partition())
            }
            Target::Broker(_) => LeaseId::Active,
        }
    }
}

/// A change of a destination; missing fields keep their value.
#[derive(Clone, Debug, Default)]
pub struct DestinationAmendment {
    /// Its display name.
    pub name: Option<Box<str>>,
    /// Where events are sent.
    pub target: Option<Target>,
    /// The types of events it receives.
    pub event_types: Option<EventTypes>,
}

/// Where the events of a destination are sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// To an endpoint of the customer, by HTTP POST.
    Webhook(Webhook),
    /// To a partner, by HTTP POST.
    Plugin(Plugin),
    /// SMS to an endpoint of the customer, by HTTP POST and PATCH (seed 6).
    SmsForwarder(SmsForwarder),
    /// To a broker of the customer, by MQTT.
    Broker(Box<Broker>),
}

/// An HTTP endpoint of a customer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Webhook {
    /// Its URL, whose placeholders are replaced for each event.
    pub url: Box<str>,
    /// Headers sent with each event, whose placeholders are replaced likewise.
    pub headers: Box<[Header]>,
    /// The secret that signs events (Standard Webhooks), if one is set.
    pub secret: Option<Sealed>,
    /// How payloads of devices that are JSON are sent.
    pub json: JsonPayload,
    /// Whether events are sent several at a time.
    pub batching: Option<EventBatching>,
}

/// How many events are sent in one request, those of several devices together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EventBatching {
    /// The most events of a request, 1 to [`BATCH_EVENTS_MAX`].
    pub events_max: u8,
    /// How long an event waits for others, in milliseconds, up to [`BATCH_WAIT_MS_MAX`].
    pub wait_ms_max: u32,
}

/// The most events of a request that a webhook may ask for.
pub const BATCH_EVENTS_MAX: u8 = 100;

/// How long an event waits for others if a webhook does not say it.
pub const BATCH_WAIT_MS_DEFAULT: u32 = 1_000;

/// The longest that a webhook may have an event wait for others.
pub const BATCH_WAIT_MS_MAX: u32 = 60_000;

/// A partner's server that the customer shares all events with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plugin {
    /// The id of the partner. A later version may not know the partner any more.
    pub partner: Box<str>,
    /// The server, a host with an optional port.
    pub server_domain: Box<str>,
    /// The key that the partner gave the customer.
    pub webhook_key: Sealed,
}

/// An endpoint of the customer that receives its SMS and their delivery reports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SmsForwarder {
    /// Its URL, used exactly as it is.
    pub url: Box<str>,
    /// The integer id of the customer, which is part of each body.
    pub organisation: u64,
}

/// An MQTT broker of a customer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broker {
    /// Its URL.
    pub url: Box<str>,
    /// What the topics begin with.
    pub topic_prefix: Box<str>,
    /// The version of MQTT.
    pub version: MqttVersion,
    /// The user name.
    pub username: Option<Box<str>>,
    /// The password.
    pub password: Option<Sealed>,
    /// The CA certificates (PEM) that are trusted instead of those of the system.
    pub ca: Option<Box<str>>,
    /// The certificate that the service shows, if it has one.
    pub certificate: Option<ClientCertificate>,
    /// Whether messages of the broker create action requests.
    pub commands: BrokerCommands,
    /// How payloads of devices that are JSON are sent.
    pub json: JsonPayload,
}

/// The certificate that the service shows to a broker.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientCertificate {
    /// The certificate and those between it and its CA (PEM).
    pub chain: Box<str>,
    /// Its private key (PEM).
    pub key: Sealed,
}

/// Whether messages of a broker create action requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BrokerCommands {
    /// They do not: nothing is subscribed.
    #[default]
    Off,
    /// They do.
    On,
}

/// An HTTP header; its value may be a credential.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header {
    /// Its name.
    pub name: Box<str>,
    /// Its value, sealed.
    pub value: Sealed,
}

/// How payloads of devices that are JSON are sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum JsonPayload {
    /// As text.
    #[default]
    AsText,
    /// As JSON within the event.
    Parsed,
}

/// The state of the deliveries to a destination.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DestinationState {
    /// Nothing was delivered yet.
    RolledOut,
    /// Deliveries succeed, or are being retried.
    Active,
    /// All tries of an event failed: its events become dead letters until it is restarted.
    Failed,
}

/// Whether the dead letters of a destination are being replayed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Replay {
    /// No.
    #[default]
    None,
    /// A caller started a replay, and some are left.
    UnderWay,
}

impl Target {
    /// Whether events are sent several at a time.
    pub fn batching(&self) -> Option<EventBatching> {
        match self {
            Self::Webhook(webhook) => webhook.batching,
            Self::Plugin(_) | Self::SmsForwarder(_) | Self::Broker(_) => None,
        }
    }

    /// Whether a destination with this target instead of an earlier one leaves a broker.
    pub fn leaves_broker_of(&self, was: &Self) -> bool {
        let is_at = |was: &Broker| self.broker().is_some_and(|is| is.url == was.url);
        was.broker().is_some_and(|was| !is_at(was))
    }

    /// The webhook, if it is one.
    pub fn webhook(&self) -> Option<&Webhook> {
        match self {
            Self::Webhook(webhook) => Some(webhook),
            Self::Plugin(_) | Self::SmsForwarder(_) | Self::Broker(_) => None,
        }
    }

    /// The plugin, if it is one.
    pub fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Plugin(plugin) => Some(plugin),
            Self::Webhook(_) | Self::SmsForwarder(_) | Self::Broker(_) => None,
        }
    }

    /// The SMS forwarder, if it is one.
    pub fn sms_forwarder(&self) -> Option<&SmsForwarder> {
        match self {
            Self::SmsForwarder(forwarder) => Some(forwarder),
            Self::Webhook(_) | Self::Plugin(_) | Self::Broker(_) => None,
        }
    }

    /// The broker, if it is one.
    pub fn broker(&self) -> Option<&Broker> {
        match self {
            Self::Broker(broker) => Some(broker),
            Self::Webhook(_) | Self::Plugin(_) | Self::SmsForwarder(_) => None,
        }
    }
}

/// A set of types of events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EventTypes {
    types: u8,
    /// The kinds of lifecycle events; the usual ones if none are named.
    kinds: Option<LifecycleKinds>,
}

/// A set of kinds of lifecycle events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LifecycleKinds(u16);

impl EventTypes {
    /// The default of webhooks: all that are for integrations but the results of requests.
    pub fn usual() -> Self {
        let all = EventType::ALL
            .into_iter()
            .filter(|it| it.is_for_integrations());
        all.filter(|it| *it != EventType::ActionResult).collect()
    }

    /// Every type that is for integrations.
    pub fn all() -> Self {
        let all = EventType::ALL.into_iter();
        all.filter(|it| it.is_for_integrations()).collect()
    }

    /// The types that an SMS forwarder receives.
    pub fn of_sms() -> Self {
        [EventType::SmsReceived, EventType::SmsReport]
            .into_iter()
            .collect()
    }

    /// The set of these bits, as [`EventTypes::bits`] gives them; unknown bits are dropped.
    pub fn from_bits(bits: u8) -> Self {
        let known: Self = EventType::ALL.into_iter().collect();
        Self {
            types: bits & known.types,
            kinds: None,
        }
    }

    /// The set with these kinds of lifecycle events, or with the usual ones.
    #[must_use]
    pub fn with_kinds(self, kinds: Option<LifecycleKinds>) -> Self {
        Self { kinds, ..self }
    }

    /// The kinds of lifecycle events, if they are named.
    pub fn kinds(self) -> Option<LifecycleKinds> {
        self.kinds
    }

    /// The types as bits, to store.
    pub fn bits(self) -> u8 {
        self.types
    }

    /// Whether the set has the type.
    pub fn has(self, event_type: EventType) -> bool {
        self.types & bit(event_type) != 0
    }

    /// Whether the set has lifecycle events of a kind.
    pub fn has_kind(self, kind: Lifecycle) -> bool {
        let is_named = |kinds: LifecycleKinds| kinds.has(kind);
        self.has(EventType::Lifecycle) && self.kinds.map_or(kind.is_usual(), is_named)
    }

    /// Whether the set has an event.
    pub fn wants(self, queued: &QueuedEvent) -> bool {
        match queued.lifecycle {
            Some(kind) => self.has_kind(kind),
            None => self.has(queued.event_type),
        }
    }
}

impl FromIterator<EventType> for EventTypes {
    fn from_iter<I: IntoIterator<Item = EventType>>(types: I) -> Self {
        Self {
            types: types.into_iter().fold(0, |bits, of| bits | bit(of)),
            kinds: None,
        }
    }
}

impl LifecycleKinds {
    /// The set of these bits, as [`LifecycleKinds::bits`] gives them; unknown bits are dropped.
    pub fn from_bits(bits: u16) -> Self {
        let known: Self = Lifecycle::ALL.into_iter().collect();
        Self(bits & known.0)
    }

    /// The set as bits, to store.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Whether the set has the kind.
    pub fn has(self, kind: Lifecycle) -> bool {
        self.0 & kind_bit(kind) != 0
    }
}

impl FromIterator<Lifecycle> for LifecycleKinds {
    fn from_iter<I: IntoIterator<Item = Lifecycle>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, of| bits | kind_bit(of)))
    }
}

/// Stored, so it never changes its meaning.
fn kind_bit(kind: Lifecycle) -> u16 {
    match kind {
        Lifecycle::FirstContact => 1,
        Lifecycle::Registered => 1 << 1,
        Lifecycle::Updated => 1 << 2,
        Lifecycle::Deregistered => 1 << 3,
        Lifecycle::Expired => 1 << 4,
        Lifecycle::Offline => 1 << 5,
        Lifecycle::Back => 1 << 6,
        Lifecycle::Awake => 1 << 7,
        Lifecycle::Asleep => 1 << 8,
        Lifecycle::Bootstrapped => 1 << 9,
    }
}

fn bit(event_type: EventType) -> u8 {
    1 << event_type as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_receives_all_but_results_by_default() {
        let usual = EventTypes::usual();
        for event_type in EventType::ALL {
            let is_result = event_type == EventType::ActionResult;
            let is_sms = EventTypes::of_sms().has(event_type);
            assert_eq!(usual.has(event_type), !is_result && !is_sms);
            assert_eq!(EventTypes::all().has(event_type), !is_sms);
            let only: EventTypes = [event_type].into_iter().collect();
            for other in EventType::ALL {
                assert_eq!(only.has(other), other == event_type);
            }
        }
        assert_eq!(EventTypes::from_bits(usual.bits() | 0xc0), usual);
    }

    #[test]
    fn a_destination_receives_the_named_kinds_or_all_but_those_of_sleep() {
        let usual = EventTypes::usual();
        let named = [Lifecycle::Awake, Lifecycle::Expired];
        let some = usual.with_kinds(Some(named.into_iter().collect()));
        for kind in Lifecycle::ALL {
            let is_of_sleep = [Lifecycle::Awake, Lifecycle::Asleep].contains(&kind);
            assert_eq!(usual.has_kind(kind), !is_of_sleep);
            assert_eq!(some.has_kind(kind), named.contains(&kind));
        }
        let only_errors: EventTypes = [EventType::Error].into_iter().collect();
        assert!(!only_errors.has_kind(Lifecycle::Registered));
        let kinds = some.kinds().unwrap();
        assert_eq!(LifecycleKinds::from_bits(kinds.bits() | 0xf000), kinds);
    }
}
