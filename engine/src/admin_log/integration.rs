//! Which log entries concern the integrations and plugins of a customer?

use super::entry::{Category, Entry, Subject};
use crate::delivery::destination::{Destination, Target};
use crate::delivery::forwarding::FailedDelivery;
use crate::ids::{EntryId, TraceId};
use crate::moment::Moment;

impl Entry {
    /// All attempts to deliver an event failed, and delivery to the destination has stopped.
    pub fn integration_disabled(m: &mut Moment, to: &Destination, why: &str) -> Self {
        let kind = kind_of(to);
        let description = format!(
            "The {kind} {} ({}) has failed: all attempts to deliver an event failed (last \
             attempt: {why}). Events become dead letters until you restart the {kind}.",
            to.name, to.id
        );
        let message = match to.target {
            Target::Webhook(_) | Target::Broker(_) => "CloudIntegrator[IntegrationDisabled]",
            Target::Plugin(_) => "CloudIntegrator[PluginDisabled]",
            Target::SmsForwarder(_) => "SmsForwarder[DeliveryFailed]",
        };
        Self::of_integration(m, to, Category::Error, message, description)
    }

    /// Delivery to a destination was resumed.
    pub fn integration_restarted(m: &mut Moment, to: &Destination) -> Self {
        let description = format!(
            "The {} {} ({}) was restarted. Replay its dead letters to deliver them.",
            kind_of(to),
            to.name,
            to.id
        );
        let message = "CloudIntegrator[IntegrationRestarted]";
        Self::of_integration(m, to, Category::Info, message, description)
    }

    /// Too many events wait for a destination: the oldest became dead letters.
    ///
    /// Unspecified (the list of messages): a kind of its own, because no other one fits.
    pub fn events_dead_lettered(m: &mut Moment, to: &Destination, events: u64) -> Self {
        let description = format!(
            "Too many events are waiting for the {} {} ({}): the oldest {events} were moved to its \
             dead letters. Replay them to deliver them.",
            kind_of(to),
            to.name,
            to.id
        );
        let message = "CloudIntegrator[EventsDeadLettered]";
        Self::of_integration(m, to, Category::Error, message, description)
    }

    /// The forwarder of a destination panicked repeatedly and is not restored.
    ///
    /// Unspecified (the list of messages): a kind of its own, because no other one fits.
    pub fn integration_parked(m: &mut Moment, to: &Destination) -> Self {
        let description = format!(
            "The service failed repeatedly while it delivered events to the {} {} ({}). The events \
             wait until the service is restarted.",
            kind_of(to),
            to.name,
            to.id
        );
        let message = "CloudIntegrator[IntegrationParked]";
        Self::of_integration(m, to, Category::Error, message, description)
    }

    /// All attempts to deliver an SMS or a delivery report failed; the following ones are tried.
    pub fn sms_not_delivered(m: &mut Moment, to: &Destination, failure: &FailedDelivery) -> Self {
        let description = format!(
            "The SMS forwarder ({}) has given up an event of the device: all attempts to deliver \
             it failed (last attempt: {}). It is a dead letter; replay it to deliver it.",
            to.id, failure.why
        );
        let message = "SmsForwarder[DeliveryFailed]";
        Self {
            about: failure.about.as_deref().cloned(),
            ..Self::of_integration(m, to, Category::Error, message, description)
        }
    }

    fn of_integration(
        m: &mut Moment,
        to: &Destination,
        category: Category,
        message: &str,
        description: String,
    ) -> Self {
        Self {
            id: EntryId::new(m.uuid()),
            customer: to.customer.clone(),
            at: m.now(),
            subject: Subject::Integration,
            category,
            message: message.into(),
            description: description.into(),
            trace: TraceId::new(m.uuid()),
            about: None,
            payload: None,
        }
    }
}

fn kind_of(to: &Destination) -> &'static str {
    match to.target {
        Target::Webhook(_) | Target::Broker(_) => "integration",
        Target::Plugin(_) => "plugin",
        Target::SmsForwarder(_) => "forwarder",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::destination::{
        DestinationState, EventTypes, JsonPayload, Plugin, Replay, Target, Webhook,
    };
    use crate::ids::{CustomerId, DestinationId};
    use crate::moment::Timestamp;
    use crate::sealed::Sealed;

    #[test]
    fn an_entry_of_a_destination_names_it_and_has_no_device() {
        let m = &mut Moment::new(Timestamp::from_ms(1_000), 7);
        let to = destination();
        let cases = [
            (
                Entry::integration_disabled(m, &to, "was not answered"),
                "CloudIntegrator[IntegrationDisabled]",
                Category::Error,
            ),
            (
                Entry::integration_restarted(m, &to),
                "CloudIntegrator[IntegrationRestarted]",
                Category::Info,
            ),
            (
                Entry::events_dead_lettered(m, &to, 3),
                "CloudIntegrator[EventsDeadLettered]",
                Category::Error,
            ),
            (
                Entry::integration_parked(m, &to),
                "CloudIntegrator[IntegrationParked]",
                Category::Error,
            ),
        ];
        for (entry, message, category) in cases {
            assert_eq!(&*entry.message, message);
            assert_eq!(entry.category, category, "{message}");
            assert_eq!(entry.subject, Subject::Integration, "{message}");
            assert_eq!(entry.customer, to.customer, "{message}");
            assert_eq!(entry.at, Timestamp::from_ms(1_000), "{message}");
            assert_eq!(entry.about, None, "{message}");
            let name = format!("Warehouse ({})", to.id);
            assert!(entry.description.contains(&name), "{}", entry.description);
        }
    }

    #[test]
    fn a_failed_plugin_is_logged_as_a_plugin() {
        let m = &mut Moment::new(Timestamp::from_ms(1_000), 7);
        let target = Target::Plugin(Plugin {
            partner: "gateway".into(),
            server_domain: "gateway.example.com".into(),
            webhook_key: Sealed::from_bytes([7; 60].into()),
        });
        let to = Destination {
            name: "Gateway".into(),
            target,
            ..destination()
        };
        let failed = Entry::integration_disabled(m, &to, "was not answered");
        assert_eq!(&*failed.message, "CloudIntegrator[PluginDisabled]");
        let restarted = Entry::integration_restarted(m, &to);
        assert_eq!(&*restarted.message, "CloudIntegrator[IntegrationRestarted]");
        for entry in [failed, restarted, Entry::integration_parked(m, &to)] {
            let name = format!("plugin Gateway ({})", to.id);
            assert!(entry.description.contains(&name), "{}", entry.description);
            assert!(!entry.description.contains("integration"));
        }
    }

    fn destination() -> Destination {
        Destination {
            id: DestinationId::from_bytes([5; 16]),
            customer: CustomerId::parse("acme").unwrap(),
            name: "Warehouse".into(),
            target: Target::Webhook(Webhook {
                url: "https://example.com/".into(),
                headers: Box::default(),
                secret: None,
                json: JsonPayload::AsText,
                batching: None,
            }),
            event_types: EventTypes::usual(),
            state: DestinationState::Active,
            failure: None,
            replay: Replay::None,
            created_at: Timestamp::from_ms(0),
            updated_at: Timestamp::from_ms(0),
        }
    }
}
