//! Which datagrams wait for the store to say whose they are?

use std::collections::HashMap;

use crate::arbiter::effect::{LookUp, LookUpId};
use crate::datagram::Datagram;
use crate::ids::Endpoint;
use crate::location::Location;
use crate::registry::lanes::{Bounds, Lanes};
use crate::registry::{self, Sorted};

/// What a datagram is if no device is found for it.
pub(super) type Unknown = fn(&Datagram) -> Sorted;

/// Datagrams whose device is being looked up.
#[derive(Debug)]
pub(super) struct LookUps {
    /// By a name or a location, each for itself.
    datagram_by_id: HashMap<LookUpId, (Datagram, Unknown)>,
    last: u64,
    /// By what shows who sent them, in order.
    pub(super) lanes: Lanes,
}

impl LookUps {
    /// None; so much may wait for identities.
    pub(super) fn within(bounds: Bounds) -> Self {
        Self {
            datagram_by_id: HashMap::new(),
            last: 0,
            lanes: Lanes::within(bounds),
        }
    }

    /// Asks which device has an endpoint name.
    pub(super) fn endpoint(&mut self, endpoint: Endpoint, datagram: Datagram) -> LookUp {
        LookUp::Endpoint(self.wait(datagram, registry::unknown_endpoint), endpoint)
    }

    /// Asks which device is at a location.
    pub(super) fn location(&mut self, location: Location, datagram: Datagram) -> LookUp {
        let id = self.wait(datagram, registry::unknown_location);
        LookUp::Location(id, location.device)
    }

    /// Takes the datagram that waited for an answer.
    pub(super) fn take(&mut self, id: LookUpId) -> Option<(Datagram, Unknown)> {
        self.datagram_by_id.remove(&id)
    }

    /// How many datagrams wait.
    pub(super) fn waiting(&self) -> usize {
        let named = self.datagram_by_id.len();
        named.saturating_add(self.lanes.waiting())
    }

    fn wait(&mut self, datagram: Datagram, unknown: Unknown) -> LookUpId {
        self.last += 1;
        let id = LookUpId(self.last);
        self.datagram_by_id.insert(id, (datagram, unknown));
        id
    }
}
