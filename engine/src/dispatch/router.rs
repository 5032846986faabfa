//! Which arbiter is a datagram for? The kernel deals datagrams out by the peer's address, devices
//! live where the hash of their key says, and an address says nothing about a key.
//!
//! A registration or an update names its device, so its home is known and it goes there at once.
//! Anything else is its peer's: the home of the device behind the peer is asked, as far as it is
//! remembered, and then the other arbiters one after the other. Each knows its own devices' peers
//! for certain, before a datagram is sent to them, so nothing that a device answers is lost.

use crate::datagram::{Datagram, Inbound};
use crate::dispatch::peer_table::{PeerBinding, PeerTable};
use crate::dispatch::route_cache::RouteCache;
use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::ids::{DeviceKey, Shard};
use crate::location::Location;
use crate::peer::Peer;

/// What one arbiter knows about where devices are.
#[derive(Debug)]
pub struct Router {
    arbiter: ArbiterId,
    shard_map: ShardMap,
    peer_table: PeerTable,
    route_cache: RouteCache,
}

/// A datagram on its way from one arbiter to another.
#[derive(Clone, Debug)]
pub struct ForwardedDatagram {
    recipient: Recipient,
    received_by: ArbiterId,
}

/// A datagram, and whose it is, as far as that is known.
#[derive(Clone, Debug)]
enum Recipient {
    Device(DeviceKey, Inbound),
    Location(Location, Datagram),
    /// The device behind the peer; so many arbiters were not asked yet.
    Peer {
        datagram: Datagram,
        arbiters_left: u16,
    },
}

impl ForwardedDatagram {
    /// The numbers of all datagrams it came in.
    pub fn numbers(&self) -> Vec<u64> {
        match &self.recipient {
            Recipient::Device(_, arrival) => arrival.numbers().collect(),
            Recipient::Location(_, datagram) | Recipient::Peer { datagram, .. } => {
                vec![datagram.number]
            }
        }
    }
}

/// Where a datagram goes.
#[derive(Debug)]
pub enum RouteDecision {
    /// To a device that is at home here.
    Device(DeviceKey, Inbound),
    /// To the device at a location whose home is here.
    Location(Location, Datagram),
    /// To another arbiter.
    Forward(ArbiterId, ForwardedDatagram),
    /// To nobody: no device is behind its peer.
    Unknown(Datagram),
}

/// What an arbiter tells another that had to search: who is behind the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RouteHint {
    /// Whom to tell.
    pub to: ArbiterId,
    /// Behind which peer the device is.
    pub peer: Peer,
    /// Where the device is at home.
    pub arbiter: ArbiterId,
}

impl Router {
    /// The router of one arbiter.
    pub fn new(here: ArbiterId, shard_map: ShardMap) -> Self {
        Self {
            arbiter: here,
            shard_map,
            peer_table: PeerTable::default(),
            route_cache: RouteCache::among(shard_map),
        }
    }

    /// Routes a datagram whose device is known.
    pub fn to_device(&mut self, key: DeviceKey, arrival: Inbound) -> RouteDecision {
        let home = self.shard_map.arbiter_of(key.shard());
        self.route_cache.note(arrival.peer(), home);
        if home == self.arbiter {
            return RouteDecision::Device(key, arrival);
        }
        self.forward(home, Recipient::Device(key, arrival))
    }

    /// Routes a datagram that names a registration.
    pub fn to_location(&mut self, location: Location, datagram: Datagram) -> RouteDecision {
        let [first, second, ..] = location.device;
        let home = self.shard_map.arbiter_of(Shard::of([first, second]));
        self.route_cache.note(datagram.peer, home);
        if home == self.arbiter {
            return RouteDecision::Location(location, datagram);
        }
        self.forward(home, Recipient::Location(location, datagram))
    }

    /// Routes a datagram that names nobody.
    pub fn to_peer(&mut self, datagram: Datagram) -> RouteDecision {
        let remembered = self.route_cache.arbiter_of(datagram.peer, self.shard_map);
        let unasked = self.shard_map.count();
        match remembered {
            Some(home) if home != self.arbiter => self.forward(
                home,
                Recipient::Peer {
                    datagram,
                    arbiters_left: unasked,
                },
            ),
            Some(_) | None => self.route_here(datagram, unasked, self.arbiter).0,
        }
    }

    /// Routes what another arbiter heard, and says whom to tell where the device is at home.
    pub fn route_forwarded(
        &mut self,
        forwarded: ForwardedDatagram,
    ) -> (RouteDecision, Option<RouteHint>) {
        let ForwardedDatagram {
            recipient: what,
            received_by: heard_by,
        } = forwarded;
        match what {
            Recipient::Device(key, arrival) => (RouteDecision::Device(key, arrival), None),
            Recipient::Location(location, datagram) => {
                (RouteDecision::Location(location, datagram), None)
            }
            Recipient::Peer {
                datagram,
                arbiters_left: unasked,
            } => self.route_here(datagram, unasked, heard_by),
        }
    }

    /// Remembers what another arbiter found.
    pub fn note_hint(&mut self, hint: RouteHint) {
        self.route_cache.note(hint.peer, hint.arbiter);
    }

    /// Lets the datagrams of `to` reach a device, and those of `from` no longer.
    pub fn rebind(
        &mut self,
        device: DeviceKey,
        from: Option<Peer>,
        to: Option<Peer>,
        binding: &mut PeerBinding,
    ) {
        self.peer_table.rebind(device, from, to, binding);
    }

    /// Forgets the exchange of a device that ends in the middle of it.
    pub fn abandon(&mut self, device: DeviceKey, binding: &mut PeerBinding) {
        self.peer_table.abandon(device, binding);
    }

    /// Looks behind the peer here, and goes on to the next arbiter that was not asked.
    fn route_here(
        &mut self,
        datagram: Datagram,
        unasked: u16,
        heard_by: ArbiterId,
    ) -> (RouteDecision, Option<RouteHint>) {
        let unasked = unasked.saturating_sub(1);
        let behind = match datagram.message.code.is_request() {
            true => self.peer_table.device_at(datagram.peer),
            false => self.peer_table.device_answering_from(datagram.peer),
        };
        if let Some(key) = behind {
            // Found at the first look, it was no surprise to whoever heard it.
            let searched = unasked.saturating_add(1) < self.shard_map.count();
            let hint = searched.then(|| self.found(datagram.peer, heard_by));
            return (
                RouteDecision::Device(key, Inbound::Message(datagram)),
                hint.flatten(),
            );
        }
        if unasked == 0 {
            return (RouteDecision::Unknown(datagram), None);
        }
        let next = self.shard_map.next(self.arbiter);
        let what = Recipient::Peer {
            datagram,
            arbiters_left: unasked,
        };
        let forwarded = ForwardedDatagram {
            recipient: what,
            received_by: heard_by,
        };
        (RouteDecision::Forward(next, forwarded), None)
    }

    /// Remembers here, or has it remembered where the datagram was heard, whose the peer is.
    fn found(&mut self, peer: Peer, heard_by: ArbiterId) -> Option<RouteHint> {
        if heard_by == self.arbiter {
            self.route_cache.note(peer, self.arbiter);
            return None;
        }
        Some(RouteHint {
            to: heard_by,
            peer,
            arbiter: self.arbiter,
        })
    }

    fn forward(&self, home: ArbiterId, what: Recipient) -> RouteDecision {
        let heard_by = self.arbiter;
        RouteDecision::Forward(
            home,
            ForwardedDatagram {
                recipient: what,
                received_by: heard_by,
            },
        )
    }
}

#[cfg(test)]
mod tests;
