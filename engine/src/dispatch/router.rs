//! Which arbiter is a datagram for? The kernel distributes datagrams by the peer's address, but the
//! hash in its key decides which arbiter owns a device, and an address does not reveal a key.
//!
//! A registration or an update names its device, so its owner is known and it goes there at once.
//! Any other datagram is looked up by peer: first at the arbiter that the route cache has for the
//! peer, then at the other arbiters one after the other. Each arbiter binds the peers of its
//! devices before a datagram is sent to them, so no answer of a device is lost. While an arbiter
//! restores devices, one that it does not know may be one of them: what was looked up there says so
//! from then on ([`Datagram::restoration`]), and is never answered as a stranger's.

use std::collections::HashMap;

use crate::datagram::{Datagram, Inbound, Restoration};
use crate::dispatch;
use crate::dispatch::peer_table::{PeerBinding, PeerTable};
use crate::dispatch::route_cache::RouteCache;
use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::ids::{DeviceKey, Shard};
use crate::location::Location;
use crate::peer::Peer;

/// The routing state of one arbiter.
#[derive(Debug)]
pub struct Router {
    arbiter: ArbiterId,
    shard_map: ShardMap,
    peer_table: PeerTable,
    /// Whether the table has the peers of all devices of this arbiter.
    restoration: Restoration,
    route_cache: RouteCache,
    /// Which arbiter has the session that a device of this arbiter was last heard over.
    association_homes: HashMap<DeviceKey, ArbiterId>,
}

/// A datagram forwarded from one arbiter to another.
#[derive(Clone, Debug)]
pub struct ForwardedDatagram {
    /// The datagram and who gets it.
    pub recipient: DatagramRecipient,
    /// Where it was received.
    pub received_by: ReceivedBy,
}

/// The arbiter that received a datagram from its socket.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedBy {
    /// The arbiter.
    pub arbiter: ArbiterId,
    /// Whether it does not know that a device is registered at the peer.
    pub needs_hint: bool,
}

/// A datagram and its recipient, as far as it is known.
#[derive(Clone, Debug)]
pub enum DatagramRecipient {
    /// A device.
    Device(DeviceKey, Inbound),
    /// The device at a location.
    Location(Location, Datagram),
    /// The device at the peer.
    Peer {
        /// The datagram.
        datagram: Datagram,
        /// How many arbiters did not look the peer up yet.
        arbiters_left: u16,
    },
}

impl ForwardedDatagram {
    /// The numbers of all its datagrams.
    pub fn numbers(&self) -> Vec<u64> {
        match &self.recipient {
            DatagramRecipient::Device(_, arrival) => arrival.numbers().collect(),
            DatagramRecipient::Location(_, datagram) | DatagramRecipient::Peer { datagram, .. } => {
                vec![datagram.number]
            }
        }
    }
}

/// Where a datagram goes.
#[derive(Debug)]
pub enum RouteDecision {
    /// To a device that this arbiter owns.
    Device(DeviceKey, Inbound),
    /// To the device at a location that this arbiter owns.
    Location(Location, Datagram),
    /// To another arbiter.
    Forward(ArbiterId, ForwardedDatagram),
    /// To no device: there is none at its peer.
    Unknown(Datagram),
}

/// What an arbiter tells the one that forwarded a datagram after a search: which arbiter owns the
/// device at the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RouteHint {
    /// The arbiter to tell.
    pub to: ArbiterId,
    /// The peer of the device.
    pub peer: Peer,
    /// The arbiter that owns the device.
    pub arbiter: ArbiterId,
}

impl Router {
    /// The router of one arbiter.
    pub fn new(here: ArbiterId, shard_map: ShardMap) -> Self {
        Self {
            arbiter: here,
            shard_map,
            peer_table: PeerTable::default(),
            restoration: Restoration::UnderWay,
            route_cache: RouteCache::among(shard_map),
            association_homes: HashMap::new(),
        }
    }

    /// The arbiter that it routes for.
    pub fn arbiter(&self) -> ArbiterId {
        self.arbiter
    }

    /// Whether the devices of this arbiter are restored and have announced their peers.
    pub fn restoration(&self) -> Restoration {
        self.restoration
    }

    /// Notes whether they are.
    pub fn note_restoration(&mut self, restoration: Restoration) {
        self.restoration = restoration;
    }

    /// Routes a datagram whose device is known.
    pub fn to_device(&mut self, key: DeviceKey, arrival: Inbound) -> RouteDecision {
        let owner = self.shard_map.arbiter_of(key.shard());
        // An association names its device.
        if arrival.peer().association.is_none() {
            self.route_cache.note(arrival.peer(), owner);
        }
        if owner == self.arbiter {
            return RouteDecision::Device(key, arrival);
        }
        let peer = arrival.peer();
        self.forward(owner, peer, DatagramRecipient::Device(key, arrival))
    }

    /// Routes a datagram that names a registration.
    pub fn to_location(&mut self, location: Location, datagram: Datagram) -> RouteDecision {
        let [first, second, ..] = location.device;
        let owner = self.shard_map.arbiter_of(Shard::of([first, second]));
        self.route_cache.note(datagram.peer, owner);
        if owner == self.arbiter {
            return RouteDecision::Location(location, datagram);
        }
        let peer = datagram.peer;
        self.forward(owner, peer, DatagramRecipient::Location(location, datagram))
    }

    /// Routes a datagram that names no device.
    pub fn to_peer(&mut self, datagram: Datagram) -> RouteDecision {
        let remembered = self.route_cache.arbiter_of(datagram.peer, self.shard_map);
        let arbiters_left = self.shard_map.count();
        match remembered {
            Some(owner) if owner != self.arbiter => self.forward(
                owner,
                datagram.peer,
                DatagramRecipient::Peer {
                    datagram,
                    arbiters_left,
                },
            ),
            Some(_) | None => {
                // Its own peer table tells which devices are registered here.
                let received_by = ReceivedBy {
                    arbiter: self.arbiter,
                    needs_hint: false,
                };
                self.route_here(datagram, arbiters_left, received_by).0
            }
        }
    }

    /// Routes a datagram that another arbiter received; also returns the hint for that arbiter.
    pub fn route_forwarded(
        &mut self,
        forwarded: ForwardedDatagram,
    ) -> (RouteDecision, Option<RouteHint>) {
        let ForwardedDatagram {
            recipient,
            received_by,
        } = forwarded;
        // Only of a peer at which a device is registered: a name or a location proves nothing.
        let hint_for = |peer| {
            let is_known = self.peer_table.device_at(peer).is_some();
            (received_by.needs_hint && is_known).then_some(RouteHint {
                to: received_by.arbiter,
                peer,
                arbiter: self.arbiter,
            })
        };
        match recipient {
            DatagramRecipient::Device(key, arrival) => {
                let hint = hint_for(arrival.peer());
                (RouteDecision::Device(key, arrival), hint)
            }
            DatagramRecipient::Location(location, datagram) => {
                let hint = hint_for(datagram.peer);
                (RouteDecision::Location(location, datagram), hint)
            }
            DatagramRecipient::Peer {
                datagram,
                arbiters_left,
            } => self.route_here(datagram, arbiters_left, received_by),
        }
    }

    /// Notes the hint of another arbiter.
    pub fn note_hint(&mut self, hint: RouteHint) {
        self.route_cache.note_registered(hint.peer, hint.arbiter);
    }

    /// Whether a device is known to be registered at a peer.
    pub fn knows(&self, peer: Peer) -> bool {
        self.route_cache.has_registered(peer)
            || self.peer_table.device_answering_from(peer).is_some()
    }

    /// Notes over which arbiter's session a device of this arbiter was heard, if over any. It is
    /// not reached over one that it only downloads over.
    pub fn note_association(&mut self, key: DeviceKey, arrival: &Inbound) {
        let is_download = match arrival {
            Inbound::BootstrapOnly(datagram) => dispatch::requests_image(&datagram.message),
            // Those with a key for all go to nobody (`Classified::ToImage`).
            Inbound::Message(_)
            | Inbound::Ambiguous(_)
            | Inbound::Udp(_)
            | Inbound::UdpBurst(..)
            | Inbound::RefusedHandshake(_) => false,
        };
        if arrival.peer().association.is_some() && !is_download {
            let home = ArbiterId::receiver_of(arrival.number());
            self.association_homes.insert(key, home);
        }
    }

    /// Forgets the session of a device that was removed.
    pub fn forget_association(&mut self, key: DeviceKey) {
        self.association_homes.remove(&key);
    }

    /// The arbiter that has the session of a device, as far as is known.
    pub fn association_home(&self, key: DeviceKey) -> Option<ArbiterId> {
        self.association_homes.get(&key).copied()
    }

    /// Routes the datagrams of `to` to a device, and those of `from` no longer. Datagrams over a
    /// security association name their device and are not routed by peer.
    pub fn rebind(
        &mut self,
        device: DeviceKey,
        from: Option<Peer>,
        to: Option<Peer>,
        binding: &mut PeerBinding,
    ) {
        let is_plain = |peer: &Peer| peer.association.is_none();
        match (from.filter(is_plain), to.filter(is_plain)) {
            // It was at its association before.
            (None, Some(to)) if from.is_some() => {
                self.peer_table.rebind(device, Some(to), Some(to), binding);
            }
            (from, to) => self.peer_table.rebind(device, from, to, binding),
        }
    }

    /// Forgets the exchange of a device whose actor ended during it.
    pub fn abandon(&mut self, device: DeviceKey, binding: &mut PeerBinding) {
        self.peer_table.abandon(device, binding);
    }

    /// Looks the peer up here, and goes on to the next arbiter that did not look it up yet.
    fn route_here(
        &mut self,
        mut datagram: Datagram,
        arbiters_left: u16,
        received_by: ReceivedBy,
    ) -> (RouteDecision, Option<RouteHint>) {
        let arbiters_left = arbiters_left.saturating_sub(1);
        let found = match datagram.message.code.is_request() {
            true => self.peer_table.device_at(datagram.peer),
            false => self.peer_table.device_answering_from(datagram.peer),
        };
        if let Some(key) = found {
            // After a hit at the first look-up, the receiving arbiter knows the owner.
            let searched = arbiters_left.saturating_add(1) < self.shard_map.count();
            let needs_hint = searched || received_by.needs_hint;
            let hint = needs_hint.then(|| self.hint_for(datagram.peer, received_by.arbiter));
            return (
                RouteDecision::Device(key, Inbound::Message(datagram)),
                hint.flatten(),
            );
        }
        if self.restoration == Restoration::UnderWay {
            datagram.restoration = Restoration::UnderWay;
        }
        if arbiters_left == 0 {
            return (RouteDecision::Unknown(datagram), None);
        }
        let next = self.shard_map.next(self.arbiter);
        let recipient = DatagramRecipient::Peer {
            datagram,
            arbiters_left,
        };
        let forwarded = ForwardedDatagram {
            recipient,
            received_by,
        };
        (RouteDecision::Forward(next, forwarded), None)
    }

    /// Notes the owner of the peer here, or returns the hint for the arbiter that received the
    /// datagram.
    fn hint_for(&mut self, peer: Peer, received_by: ArbiterId) -> Option<RouteHint> {
        if received_by == self.arbiter {
            self.route_cache.note(peer, self.arbiter);
            return None;
        }
        Some(RouteHint {
            to: received_by,
            peer,
            arbiter: self.arbiter,
        })
    }

    fn forward(&self, owner: ArbiterId, peer: Peer, recipient: DatagramRecipient) -> RouteDecision {
        RouteDecision::Forward(
            owner,
            ForwardedDatagram {
                recipient,
                received_by: ReceivedBy {
                    arbiter: self.arbiter,
                    needs_hint: !self.route_cache.has_registered(peer),
                },
            },
        )
    }
}

#[cfg(test)]
mod tests;
