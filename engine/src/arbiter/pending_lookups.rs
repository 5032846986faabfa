//! Which datagrams wait for the store to say whose they are?

use std::collections::HashMap;

use crate::arbiter::effect::{LookupId, StoreLookup};
use crate::datagram::Datagram;
use crate::dispatch::address_queues::{AddressQueueLimits, AddressQueues};
use crate::dispatch::{self, Classified};
use crate::ids::Endpoint;
use crate::location::Location;

/// What a datagram is if no device is found for it.
pub(super) type Unknown = fn(&Datagram) -> Classified;

/// Datagrams whose device is being looked up.
#[derive(Debug)]
pub(super) struct PendingLookups {
    /// By a name or a location, each for itself.
    datagram_by_id: HashMap<LookupId, (Datagram, Unknown)>,
    last: u64,
    /// By what shows who sent them, in order.
    pub(super) address_queues: AddressQueues,
}

impl PendingLookups {
    /// None; so much may wait for identities.
    pub(super) fn within(bounds: AddressQueueLimits) -> Self {
        Self {
            datagram_by_id: HashMap::new(),
            last: 0,
            address_queues: AddressQueues::within(bounds),
        }
    }

    /// Asks which device has an endpoint name.
    pub(super) fn endpoint(&mut self, endpoint: Endpoint, datagram: Datagram) -> StoreLookup {
        StoreLookup::Endpoint(self.wait(datagram, dispatch::unknown_endpoint), endpoint)
    }

    /// Asks which device is at a location.
    pub(super) fn location(&mut self, location: Location, datagram: Datagram) -> StoreLookup {
        let id = self.wait(datagram, dispatch::unknown_location);
        StoreLookup::Location(id, location.device)
    }

    /// Takes the datagram that waited for an answer.
    pub(super) fn take(&mut self, id: LookupId) -> Option<(Datagram, Unknown)> {
        self.datagram_by_id.remove(&id)
    }

    /// How many datagrams wait.
    pub(super) fn waiting(&self) -> usize {
        let named = self.datagram_by_id.len();
        named.saturating_add(self.address_queues.waiting())
    }

    fn wait(&mut self, datagram: Datagram, unknown: Unknown) -> LookupId {
        self.last += 1;
        let id = LookupId(self.last);
        self.datagram_by_id.insert(id, (datagram, unknown));
        id
    }
}
