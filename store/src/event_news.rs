//! Which partitions have new events, for the nodes that deliver beside the active one?

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::ids::{CustomerId, Partition};
use tokio::sync::Notify;

/// The partitions of all customers in which events were stored since the last read. One noted
/// several times between two reads is reported once.
#[derive(Debug, Default)]
pub struct EventNews {
    noted: Mutex<BTreeSet<(CustomerId, Partition)>>,
    notify: Notify,
}

impl EventNews {
    /// Notes that partitions have new events.
    pub(crate) fn note(&self, events: &[(CustomerId, Partition)]) {
        self.lock().extend(events.iter().cloned());
        self.notify.notify_one();
    }

    /// Waits until partitions are noted; returns and clears them.
    pub async fn read(&self) -> BTreeSet<(CustomerId, Partition)> {
        loop {
            let noted = self.take();
            if !noted.is_empty() {
                return noted;
            }
            self.notify.notified().await;
        }
    }

    /// Returns and clears the partitions noted so far.
    pub(crate) fn take(&self) -> BTreeSet<(CustomerId, Partition)> {
        std::mem::take(&mut *self.lock())
    }

    /// The lock may be poisoned: a set is always consistent.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<(CustomerId, Partition)>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
