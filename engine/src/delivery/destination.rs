//! Where are the events of a customer delivered to?

use crate::event::EventType;
use crate::ids::{CustomerId, DestinationId};
use crate::moment::Timestamp;
use crate::sealed::Sealed;

/// A system of a customer that is told of its devices: a cloud integration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Destination {
    /// Its id.
    pub id: DestinationId,
    /// Whose it is.
    pub customer: CustomerId,
    /// What people call it.
    pub name: Box<str>,
    /// How it is reached.
    pub target: Target,
    /// What it is told.
    pub event_types: EventTypes,
    /// Whether it takes what it is told.
    pub state: DestinationState,
    /// Whether its dead letters are being delivered again.
    pub replay: Replay,
    /// When it was made.
    pub created_at: Timestamp,
    /// When somebody changed it last, or its state did.
    pub updated_at: Timestamp,
}

/// What a customer changes of a destination; what is missing stays.
#[derive(Clone, Debug, Default)]
pub struct DestinationAmendment {
    /// What people call it.
    pub name: Option<Box<str>>,
    /// How it is reached.
    pub target: Option<Target>,
    /// What it is told.
    pub event_types: Option<EventTypes>,
}

/// How a destination is reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target {
    /// By HTTP POST.
    Webhook(Webhook),
}

/// An HTTP endpoint of a customer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Webhook {
    /// Its URL; what stands for a device in it is replaced for each event.
    pub url: Box<str>,
    /// Headers sent with each event, name and value, where likewise a device may be stood for.
    pub headers: Box<[Header]>,
    /// What events are signed with (Standard Webhooks), where a secret was set.
    pub secret: Option<Sealed>,
    /// What becomes of the text of a device that is JSON.
    pub json: JsonPayload,
}

/// A header of HTTP; its value may be a credential.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header {
    /// Its name.
    pub name: Box<str>,
    /// Its value, sealed.
    pub value: Sealed,
}

/// What becomes of the text of a device that is JSON.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum JsonPayload {
    /// It stays a text.
    #[default]
    AsText,
    /// It stands in the event as what it says.
    Parsed,
}

/// Whether a destination takes what it is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DestinationState {
    /// Nothing was delivered yet.
    RolledOut,
    /// It took the last that was tried with all its tries, or is still being tried.
    Active,
    /// It did not: what is for it goes to its dead letters until it is restarted.
    Failed,
}

/// Whether the dead letters of a destination are being delivered again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Replay {
    /// They are not.
    #[default]
    None,
    /// Somebody asked for it, and some are left.
    UnderWay,
}

/// A set of types of events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EventTypes(u8);

impl EventTypes {
    /// What a destination is told that does not choose: all but the results of requests.
    pub fn usual() -> Self {
        EventType::ALL
            .into_iter()
            .filter(|event_type| *event_type != EventType::ActionResult)
            .collect()
    }

    /// The set of these bits, as [`EventTypes::bits`] gives them; unknown bits are dropped.
    pub fn from_bits(bits: u8) -> Self {
        let known: Self = EventType::ALL.into_iter().collect();
        Self(bits & known.0)
    }

    /// The set as bits, to keep.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether the set has it.
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
    fn a_destination_is_told_all_but_results_unless_it_says_otherwise() {
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
