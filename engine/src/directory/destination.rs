//! Decisions about where a customer's events are delivered to: which destinations it may have, and
//! what becomes of one that is amended.

use crate::customer::Customer;
use crate::delivery::destination::{
    Destination, DestinationState, EventTypes, Header, JsonPayload, Replay, Target, Webhook,
};
use crate::directory::DirectoryRefusal;
use crate::directory::amending::FieldAmendment;
use crate::ids::{CustomerId, DestinationId};
use crate::limits::DESTINATIONS_MAX;
use crate::moment::Moment;
use crate::sealed::Sealed;

/// A webhook to be made. What is secret in it is written as its customer writes it.
#[derive(Clone, Eq, PartialEq)]
pub struct NewWebhook {
    /// What people call it.
    pub name: Box<str>,
    /// Where events are posted to.
    pub url: Box<str>,
    /// What is sent with each, name and value.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// What it is told.
    pub event_types: EventTypes,
    /// What becomes of the text of a device that is JSON.
    pub json: JsonPayload,
    /// What events are signed with.
    pub secret: Option<Box<str>>,
}

/// What of a webhook is kept sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SealedField<'a> {
    /// The value of the header of this name.
    Header(&'a str),
    /// What events are signed with.
    Secret,
}

/// What a customer says anew of a webhook; what it does not say stays.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WebhookAmendments {
    /// What people call it.
    pub name: Option<Box<str>>,
    /// Where events are posted to.
    pub url: Option<Box<str>>,
    /// What is sent with each, in place of all that was.
    pub headers: Option<Box<[Header]>>,
    /// What it is told.
    pub event_types: Option<EventTypes>,
    /// What becomes of the text of a device that is JSON.
    pub json: Option<JsonPayload>,
    /// What events are signed with.
    pub secret: FieldAmendment<Sealed>,
}

/// The webhook as it would be made; `seal` seals what belongs to it.
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
    };
    Destination {
        id,
        customer: customer.clone(),
        name: new.name,
        target: Target::Webhook(webhook),
        event_types: new.event_types,
        state: DestinationState::RolledOut,
        replay: Replay::None,
        created_at: m.now(),
        updated_at: m.now(),
    }
}

/// Whether a customer that has `others` already may have one destination more.
pub fn admit_destination(
    customer: Option<&Customer>,
    others: &[Destination],
) -> Result<(), DirectoryRefusal> {
    if customer.is_none() {
        return Err(DirectoryRefusal::CustomerUnknown);
    }
    if others.len() >= DESTINATIONS_MAX {
        let max = DESTINATIONS_MAX;
        return Err(DirectoryRefusal::TooManyDestinations { max });
    }
    Ok(())
}

/// The destination, if it is this customer's.
pub fn destination_of(
    customer: &CustomerId,
    found: Option<Destination>,
) -> Result<Destination, DirectoryRefusal> {
    let found = found.filter(|destination| destination.customer == *customer);
    found.ok_or(DirectoryRefusal::DestinationUnknown)
}

impl WebhookAmendments {
    /// The destination as it is from now on. What waits for it waits on: whatever is not delivered
    /// yet is delivered by what was said last.
    pub fn apply(self, was: Destination) -> Destination {
        let Target::Webhook(webhook) = was.target;
        let webhook = Webhook {
            url: self.url.unwrap_or(webhook.url),
            headers: self.headers.unwrap_or(webhook.headers),
            secret: self.secret.apply(webhook.secret),
            json: self.json.unwrap_or(webhook.json),
        };
        Destination {
            name: self.name.unwrap_or(was.name),
            target: Target::Webhook(webhook),
            event_types: self.event_types.unwrap_or(was.event_types),
            ..was
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventType;
    use crate::moment::Timestamp;

    const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

    #[test]
    fn a_webhook_is_made_with_what_is_secret_sealed_for_it_alone() {
        let made = drafted();
        let Target::Webhook(webhook) = &made.target;
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
    fn a_customer_has_no_more_destinations_than_one_may_have() {
        let mut others = vec![drafted(); DESTINATIONS_MAX - 1];
        assert_eq!(admit_destination(Some(&acme()), &others), Ok(()));
        others.push(drafted());
        let max = DESTINATIONS_MAX;
        let refused = Err(DirectoryRefusal::TooManyDestinations { max });
        assert_eq!(admit_destination(Some(&acme()), &others), refused);
        assert_eq!(
            admit_destination(None, &[]),
            Err(DirectoryRefusal::CustomerUnknown)
        );
    }

    #[test]
    fn a_destination_of_another_customer_is_unknown() {
        let made = drafted();
        let umbrella = CustomerId::parse("umbrella").unwrap();
        assert_eq!(
            destination_of(&acme().id, Some(made.clone())),
            Ok(made.clone())
        );
        let unknown = Err(DirectoryRefusal::DestinationUnknown);
        assert_eq!(destination_of(&umbrella, Some(made)), unknown);
        assert_eq!(destination_of(&umbrella, None), unknown);
    }

    #[test]
    fn what_is_not_said_anew_stays() {
        let failed = Destination {
            state: DestinationState::Failed,
            ..drafted()
        };
        let amended = WebhookAmendments::default().apply(failed.clone());
        assert_eq!(amended, failed);
    }

    #[test]
    fn what_is_said_anew_takes_the_place_of_what_was() {
        let was = drafted();
        let results: EventTypes = [EventType::ActionResult].into_iter().collect();
        let amendments = WebhookAmendments {
            name: Some("Other".into()),
            url: Some("https://example.org/".into()),
            headers: Some(Box::new([])),
            event_types: Some(results),
            json: Some(JsonPayload::Parsed),
            secret: FieldAmendment::Remove,
        };
        let webhook = Webhook {
            url: "https://example.org/".into(),
            headers: Box::new([]),
            secret: None,
            json: JsonPayload::Parsed,
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

    fn new_webhook() -> NewWebhook {
        NewWebhook {
            name: "Warehouse".into(),
            url: "https://example.com/in".into(),
            headers: vec![("X-Key".into(), "open sesame".into())],
            event_types: EventTypes::usual(),
            json: JsonPayload::AsText,
            secret: Some("whsec_abc".into()),
        }
    }

    fn acme() -> Customer {
        Customer {
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
