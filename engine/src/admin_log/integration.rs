//! What the log says of the systems of a customer that are told of its devices.

use super::entry::{Category, Entry, Subject};
use crate::delivery::destination::Destination;
use crate::ids::{EntryId, TraceId};
use crate::moment::Moment;

impl Entry {
    /// A destination does not take what it is told, and is told nothing more.
    pub fn integration_disabled(m: &mut Moment, to: &Destination, why: &str) -> Self {
        let description = format!(
            "The integration {} ({}) is in failure: an event was not accepted in any of its tries, \
             the last of which {why}. Events are kept as dead letters until it is restarted.",
            to.name, to.id
        );
        let message = "CloudIntegrator[IntegrationDisabled]";
        Self::of_integration(m, to, Category::Error, message, description)
    }

    /// A destination is told things again.
    pub fn integration_restarted(m: &mut Moment, to: &Destination) -> Self {
        let description = format!(
            "The integration {} ({}) was restarted. Its dead letters wait for a replay.",
            to.name, to.id
        );
        let message = "CloudIntegrator[IntegrationRestarted]";
        Self::of_integration(m, to, Category::Info, message, description)
    }

    /// So much waits for a destination that the oldest of it is set aside.
    ///
    /// Unspecified (the list of messages): a kind of its own, because no other one fits.
    pub fn events_set_aside(m: &mut Moment, to: &Destination, events: u64) -> Self {
        let description = format!(
            "Too many events wait for the integration {} ({}): the oldest {events} became dead \
             letters.",
            to.name, to.id
        );
        let message = "CloudIntegrator[EventsSetAside]";
        Self::of_integration(m, to, Category::Error, message, description)
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
