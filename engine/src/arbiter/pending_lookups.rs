//! Which datagrams wait for a look-up of their device?

use std::collections::HashMap;

use crate::arbiter::effect::{LookupId, StoreLookup};
use crate::datagram::Datagram;
use crate::dispatch::address_queues::{AddressQueueLimits, AddressQueues};
use crate::ids::Endpoint;
use crate::location::Location;

/// Datagrams that wait for a look-up.
#[derive(Debug)]
pub(super) struct PendingLookups {
    /// By an endpoint name or a location, one look-up for each.
    datagram_by_id: HashMap<LookupId, Datagram>,
    last: u64,
    /// By the identity of the sender, in order.
    pub(super) address_queues: AddressQueues,
}

impl PendingLookups {
    /// Without datagrams; the limits are those for look-ups by address.
    pub(super) fn within(bounds: AddressQueueLimits) -> Self {
        Self {
            datagram_by_id: HashMap::new(),
            last: 0,
            address_queues: AddressQueues::within(bounds),
        }
    }

    /// Begins to look up the device with an endpoint name.
    pub(super) fn endpoint(&mut self, endpoint: Endpoint, datagram: Datagram) -> StoreLookup {
        StoreLookup::Endpoint(self.wait(datagram), endpoint)
    }

    /// Begins to look up the device at a location.
    pub(super) fn location(&mut self, location: Location, datagram: Datagram) -> StoreLookup {
        StoreLookup::Location(self.wait(datagram), location.device)
    }

    /// Takes the datagram that waits for a look-up.
    pub(super) fn take(&mut self, id: LookupId) -> Option<Datagram> {
        self.datagram_by_id.remove(&id)
    }

    /// The number of datagrams that wait.
    pub(super) fn waiting(&self) -> usize {
        let named = self.datagram_by_id.len();
        named.saturating_add(self.address_queues.waiting())
    }

    fn wait(&mut self, datagram: Datagram) -> LookupId {
        self.last += 1;
        let id = LookupId(self.last);
        self.datagram_by_id.insert(id, datagram);
        id
    }
}
