//! What is a destination of a customer's events?

use protocol::mqtt::MqttVersion;

use crate::event::EventType;
use crate::ids::{CustomerId, DestinationId};
use crate::moment::Timestamp;
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
pub struct EventTypes(u8);

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
        Self(bits & known.0)
    }

    /// The set as bits, to store.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether the set has the type.
    pub fn has(self, event_type: EventType) -> bool {
        self.0 & bit(event_type) != 0
    }
}

impl FromIterator<EventType> for EventTypes {
    fn from_iter<I: IntoIterator<Item = EventType>>(types: I) -> Self {
        Self(types.into_iter().fold(0, |bits, of| bits | bit(of)))
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
}
