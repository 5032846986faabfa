//! Which brokers are connected? What the links to them report, for the API.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::delivery::mqtt::link::MqttLinkStatus;
use engine::ids::DestinationId;

/// The connections to the brokers of all destinations.
#[derive(Clone, Default)]
pub struct BrokerConnections {
    known: Arc<Mutex<HashMap<DestinationId, ReportedStatus>>>,
}

/// What one link reports.
#[derive(Clone, Default)]
pub(super) struct ReportedStatus(Arc<Mutex<MqttLinkStatus>>);

impl BrokerConnections {
    /// The connection of a destination; not connected, if it has no link.
    pub fn of(&self, id: DestinationId) -> MqttLinkStatus {
        let reported = locked(&self.known).get(&id).cloned();
        reported.map_or_else(MqttLinkStatus::default, |it| locked(&it.0).clone())
    }

    /// A new link of a destination, whose reports replace those of an earlier one.
    pub(super) fn enter(&self, id: DestinationId) -> ReportedStatus {
        let reported = ReportedStatus::default();
        locked(&self.known).insert(id, reported.clone());
        reported
    }

    /// A link of a destination ended.
    pub(super) fn leave(&self, id: DestinationId, reported: &ReportedStatus) {
        let mut known = locked(&self.known);
        let is_it = |it: &ReportedStatus| Arc::ptr_eq(&it.0, &reported.0);
        if known.get(&id).is_some_and(is_it) {
            known.remove(&id);
        }
    }
}

impl ReportedStatus {
    /// The link has this status now.
    pub(super) fn report(&self, status: MqttLinkStatus) {
        *locked(&self.0) = status;
    }
}

/// No code panics while it holds the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
