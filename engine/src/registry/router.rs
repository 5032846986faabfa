//! Which arbiter is a datagram for? The kernel deals datagrams out by the peer's address, devices
//! live where the hash of their key says, and an address says nothing about a key.
//!
//! A registration or an update names its device, so its home is known and it goes there at once.
//! Anything else is its peer's: the home of the device behind the peer is asked, as far as it is
//! remembered, and then the other arbiters one after the other. Each knows its own devices' peers
//! for certain, before a datagram is sent to them, so nothing that a device answers is lost.

use crate::datagram::{Arrival, Datagram};
use crate::ids::{DeviceKey, Shard};
use crate::location::Location;
use crate::peer::Peer;
use crate::registry::hints::Hints;
use crate::registry::homes::{ArbiterId, Homes};
use crate::registry::peers::{Peers, Said};

/// What one arbiter knows about where devices are.
#[derive(Debug)]
pub struct Router {
    here: ArbiterId,
    homes: Homes,
    peers: Peers,
    hints: Hints,
}

/// A datagram on its way from one arbiter to another.
#[derive(Clone, Debug)]
pub struct Parcel {
    what: Addressed,
    heard_by: ArbiterId,
}

/// A datagram, and whose it is, as far as that is known.
#[derive(Clone, Debug)]
enum Addressed {
    Device(DeviceKey, Arrival),
    Location(Location, Datagram),
    /// The device behind the peer; so many arbiters were not asked yet.
    Peer {
        datagram: Datagram,
        unasked: u16,
    },
}

impl Parcel {
    /// The numbers of all datagrams it came in.
    pub fn numbers(&self) -> Vec<u64> {
        match &self.what {
            Addressed::Device(_, arrival) => arrival.numbers().collect(),
            Addressed::Location(_, datagram) | Addressed::Peer { datagram, .. } => {
                vec![datagram.number]
            }
        }
    }
}

/// Where a datagram goes.
#[derive(Debug)]
pub enum Route {
    /// To a device that is at home here.
    Device(DeviceKey, Arrival),
    /// To the device at a location whose home is here.
    At(Location, Datagram),
    /// To another arbiter.
    Elsewhere(ArbiterId, Parcel),
    /// To nobody: no device is behind its peer.
    Nobody(Datagram),
}

/// What an arbiter tells another that had to search: who is behind the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hint {
    /// Whom to tell.
    pub to: ArbiterId,
    /// Behind which peer the device is.
    pub peer: Peer,
    /// Where the device is at home.
    pub home: ArbiterId,
}

impl Router {
    /// The router of one arbiter.
    pub fn new(here: ArbiterId, homes: Homes) -> Self {
        Self {
            here,
            homes,
            peers: Peers::default(),
            hints: Hints::among(homes),
        }
    }

    /// Routes a datagram whose device is known.
    pub fn to_device(&mut self, key: DeviceKey, arrival: Arrival) -> Route {
        let home = self.homes.of(key.shard());
        self.hints.note(arrival.peer(), home);
        if home == self.here {
            return Route::Device(key, arrival);
        }
        self.parcel(home, Addressed::Device(key, arrival))
    }

    /// Routes a datagram that names a registration.
    pub fn to_location(&mut self, location: Location, datagram: Datagram) -> Route {
        let [first, second, ..] = location.device;
        let home = self.homes.of(Shard::of([first, second]));
        self.hints.note(datagram.peer, home);
        if home == self.here {
            return Route::At(location, datagram);
        }
        self.parcel(home, Addressed::Location(location, datagram))
    }

    /// Routes a datagram that names nobody.
    pub fn to_peer(&mut self, datagram: Datagram) -> Route {
        let remembered = self.hints.home_of(datagram.peer, self.homes);
        let unasked = self.homes.count();
        match remembered {
            Some(home) if home != self.here => {
                self.parcel(home, Addressed::Peer { datagram, unasked })
            }
            Some(_) | None => self.ask_here(datagram, unasked, self.here).0,
        }
    }

    /// Routes what another arbiter heard, and says whom to tell where the device is at home.
    pub fn take_in(&mut self, parcel: Parcel) -> (Route, Option<Hint>) {
        let Parcel { what, heard_by } = parcel;
        match what {
            Addressed::Device(key, arrival) => (Route::Device(key, arrival), None),
            Addressed::Location(location, datagram) => (Route::At(location, datagram), None),
            Addressed::Peer { datagram, unasked } => self.ask_here(datagram, unasked, heard_by),
        }
    }

    /// Remembers what another arbiter found.
    pub fn take_hint(&mut self, hint: Hint) {
        self.hints.note(hint.peer, hint.home);
    }

    /// Lets the datagrams of `to` reach a device, and those of `from` no longer.
    pub fn rebind(
        &mut self,
        device: DeviceKey,
        from: Option<Peer>,
        to: Option<Peer>,
        said: &mut Said,
    ) {
        self.peers.rebind(device, from, to, said);
    }

    /// Forgets the exchange of a device that ends in the middle of it.
    pub fn abandon(&mut self, device: DeviceKey, said: &mut Said) {
        self.peers.abandon(device, said);
    }

    /// Looks behind the peer here, and goes on to the next arbiter that was not asked.
    fn ask_here(
        &mut self,
        datagram: Datagram,
        unasked: u16,
        heard_by: ArbiterId,
    ) -> (Route, Option<Hint>) {
        let unasked = unasked.saturating_sub(1);
        let behind = match datagram.message.code.is_request() {
            true => self.peers.device_at(datagram.peer),
            false => self.peers.device_behind(datagram.peer),
        };
        if let Some(key) = behind {
            // Found at the first look, it was no surprise to whoever heard it.
            let searched = unasked.saturating_add(1) < self.homes.count();
            let hint = searched.then(|| self.found(datagram.peer, heard_by));
            return (
                Route::Device(key, Arrival::Message(datagram)),
                hint.flatten(),
            );
        }
        if unasked == 0 {
            return (Route::Nobody(datagram), None);
        }
        let next = self.homes.next(self.here);
        let what = Addressed::Peer { datagram, unasked };
        let parcel = Parcel { what, heard_by };
        (Route::Elsewhere(next, parcel), None)
    }

    /// Remembers here, or has it remembered where the datagram was heard, whose the peer is.
    fn found(&mut self, peer: Peer, heard_by: ArbiterId) -> Option<Hint> {
        if heard_by == self.here {
            self.hints.note(peer, self.here);
            return None;
        }
        Some(Hint {
            to: heard_by,
            peer,
            home: self.here,
        })
    }

    fn parcel(&self, home: ArbiterId, what: Addressed) -> Route {
        let heard_by = self.here;
        Route::Elsewhere(home, Parcel { what, heard_by })
    }
}

#[cfg(test)]
mod tests;
