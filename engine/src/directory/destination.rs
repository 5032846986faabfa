//! Decisions about destinations: which ones a customer may have, and how they are changed.

use crate::customer::Customer;
use crate::delivery::destination::{
    Destination, DestinationState, EventTypes, Header, JsonPayload, Replay, Target, Webhook,
};
use crate::directory::DirectoryRefusal;
use crate::directory::amending::FieldAmendment;
use crate::ids::{CustomerId, DestinationId};
use crate::limits::WEBHOOKS_MAX;
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
    /// The secret that signs events.
    pub secret: Option<Box<str>>,
}

/// A field of a webhook that is sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SealedField<'a> {
    /// The value of the header of this name.
    Header(&'a str),
    /// The secret that signs events.
    Secret,
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
    /// The secret that signs events.
    pub secret: FieldAmendment<Sealed>,
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

/// Whether a customer that has `others` already may have one more destination.
pub fn admit_webhook(
    customer: Option<&Customer>,
    others: &[Destination],
) -> Result<(), DirectoryRefusal> {
    if customer.is_none() {
        return Err(DirectoryRefusal::CustomerUnknown);
    }
    if others.len() >= WEBHOOKS_MAX {
        let max = WEBHOOKS_MAX;
        return Err(DirectoryRefusal::TooManyWebhooks { max });
    }
    Ok(())
}

/// The destination, if it belongs to this customer.
pub fn destination_of(
    customer: &CustomerId,
    found: Option<Destination>,
) -> Result<Destination, DirectoryRefusal> {
    let found = found.filter(|destination| destination.customer == *customer);
    found.ok_or(DirectoryRefusal::DestinationUnknown)
}

impl WebhookAmendments {
    /// The destination after the change. Queued events stay queued and are delivered with the new
    /// settings.
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
    fn a_webhook_is_created_with_its_secrets_sealed_for_it_alone() {
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
    fn the_destinations_of_a_customer_have_a_bound() {
        let mut others = vec![drafted(); WEBHOOKS_MAX - 1];
        assert_eq!(admit_webhook(Some(&acme()), &others), Ok(()));
        others.push(drafted());
        let max = WEBHOOKS_MAX;
        let refused = Err(DirectoryRefusal::TooManyWebhooks { max });
        assert_eq!(admit_webhook(Some(&acme()), &others), refused);
        assert_eq!(
            admit_webhook(None, &[]),
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
            networks: Box::default(),
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
