//! What is a destination of a customer's events?

use crate::event::EventType;
use crate::ids::{CustomerId, DestinationId};
use crate::moment::Timestamp;
use crate::sealed::Sealed;

/// A system that the events of a customer are delivered to: a cloud integration or a plugin.
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
}

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
    /// The webhook, if it is one.
    pub fn webhook(&self) -> Option<&Webhook> {
        match self {
            Self::Webhook(webhook) => Some(webhook),
            Self::Plugin(_) => None,
        }
    }

    /// The plugin, if it is one.
    pub fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Plugin(plugin) => Some(plugin),
            Self::Webhook(_) => None,
        }
    }
}

/// A set of types of events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EventTypes(u8);

impl EventTypes {
    /// The default: all but the results of requests.
    pub fn usual() -> Self {
        EventType::ALL
            .into_iter()
            .filter(|event_type| *event_type != EventType::ActionResult)
            .collect()
    }

    /// Every type.
    pub fn all() -> Self {
        EventType::ALL.into_iter().collect()
    }

    /// The set of these bits, as [`EventTypes::bits`] gives them; unknown bits are dropped.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits & Self::all().0)
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
            assert_eq!(usual.has(event_type), !is_result);
            let only: EventTypes = [event_type].into_iter().collect();
            for other in EventType::ALL {
                assert_eq!(only.has(other), other == event_type);
            }
        }
        assert_eq!(EventTypes::from_bits(usual.bits() | 0xf0), usual);
    }
}
