//! One arbiter: whose datagram, whose question, and who is at home here?

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use engine::datagram::{Arrival, Datagram};
use engine::device::Device;
use engine::ids::{DeviceKey, Endpoint};
use engine::location::Location;
use engine::peer::Peer;
use engine::registry::homes::{ArbiterId, Homes};
use engine::registry::lanes::Lanes;
use engine::registry::router::{Hint, Parcel, Route, Router};
use engine::registry::{self, Panics, Sorted};
use engine::terms::Terms;

use super::addressing::{self, Numbered};
use super::resident::{self, Resident};
use super::restoring::Starting;
use super::{Act, Curse, Directory, End, Heard, Input, Pressure, Turn};

/// Datagrams whose device is being looked up; more are answered 5.03. Few, so that there are more.
const LOOKUPS_MAX: usize = 4;

/// The registry of an arbiter and the actors it looks after.
pub(crate) struct Arbiter {
    pub(super) here: ArbiterId,
    pub(super) homes: Homes,
    pub(super) terms: Arc<Terms>,
    pub(super) directory: Arc<Directory>,
    pub(super) router: Router,
    /// There is a place for every device: one that is handed something away from home lives there.
    pub(super) residents: Vec<Resident>,
    pub(super) panics: Vec<Panics>,
    /// Which actor falls over at its next opportunity, and at how many after it.
    pub(super) curse: Option<(usize, Curse, u32)>,
    /// Until every device is back.
    pub(super) starting: Option<Starting>,
    /// Who is to be brought back a little later.
    pub(super) soon: BTreeSet<usize>,
    pub(super) epoch: u64,
    pub(super) lookups: BTreeMap<u64, Lookup>,
    /// Data whose device is being looked up by its address.
    pub(super) lanes: Lanes<Numbered>,
    outgoing: BTreeMap<ArbiterId, Post>,
}

/// A question to the disk whose something is.
pub(super) struct Lookup {
    pub(super) wanted: Wanted,
    /// The datagram it is about; what comes from an address waits in its lane.
    pub(super) about: Option<(u64, Datagram)>,
}

/// Which device is looked up.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Bearer(Endpoint),
    At(Location),
    /// The one with an address.
    Behind(IpAddr),
}

/// What one arbiter hands another.
#[derive(Debug, Default)]
pub(crate) struct Post {
    pub(crate) parcels: Vec<(u64, Parcel)>,
    pub(crate) hints: Vec<Hint>,
}

/// The disk did not answer a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread;

impl Arbiter {
    pub(super) fn new(
        here: ArbiterId,
        homes: Homes,
        terms: Arc<Terms>,
        directory: Arc<Directory>,
        epoch: u64,
    ) -> Self {
        Self {
            here,
            homes,
            terms,
            router: Router::new(here, homes),
            residents: directory.keys.iter().map(|_| Resident::Away).collect(),
            panics: vec![Panics::default(); directory.keys.len()],
            curse: None,
            starting: None,
            soon: BTreeSet::new(),
            epoch,
            lookups: BTreeMap::new(),
            lanes: addressing::lanes(),
            outgoing: BTreeMap::new(),
            directory,
        }
    }

    /// Takes a datagram from the socket.
    pub(crate) fn hear(&mut self, number: u64, from: Peer, bytes: &[u8], turn: &mut Turn<'_>) {
        let sorted = registry::sort(from, bytes);
        let whose = self.directory.whose(from, &sorted);
        turn.acts.push(Act::Sorted { number, whose });
        self.dispatch(number, from, sorted, turn);
    }

    pub(super) fn dispatch(
        &mut self,
        number: u64,
        from: Peer,
        sorted: Sorted,
        turn: &mut Turn<'_>,
    ) {
        let sorted = match self.is_overloaded(turn) {
            true => sorted.put_off(),
            false => sorted,
        };
        match sorted {
            Sorted::ToEndpoint(endpoint, datagram) => {
                self.look_up(Wanted::Bearer(endpoint), Some((number, datagram)), turn);
            }
            Sorted::ToLocation(location, datagram) => {
                let route = self.router.to_location(location, datagram);
                self.follow(number, route, turn);
            }
            Sorted::ToPeer(datagram) => {
                let route = self.router.to_peer(datagram);
                self.follow(number, route, turn);
            }
            Sorted::ToAddress(arrival) => self.look_behind(number, arrival, turn),
            Sorted::Answered { datagram, fate } => {
                let end = End::Turned(fate);
                turn.acts.push(Act::Ended { number, end });
                turn.acts.push(Act::Send {
                    step: None,
                    who: None,
                    to: from,
                    datagram,
                });
            }
            Sorted::Ignored(fate) => {
                let end = End::Turned(fate);
                turn.acts.push(Act::Ended { number, end });
            }
        }
    }

    pub(super) fn follow(&mut self, number: u64, route: Route, turn: &mut Turn<'_>) {
        match route {
            Route::Device(key, arrival) => self.hand_heard(key, number, arrival, turn),
            Route::At(location, datagram) => match self.key_at(location) {
                Some(key) => self.hand_heard(key, number, Arrival::Message(datagram), turn),
                None => self.look_up(Wanted::At(location), Some((number, datagram)), turn),
            },
            Route::Elsewhere(to, parcel) => {
                turn.acts.push(Act::Forwarded { number, to });
                let post = self.outgoing.entry(to).or_default();
                post.parcels.push((number, parcel));
            }
            Route::Nobody(datagram) => {
                let peer = datagram.peer;
                let told = registry::unknown_peer(datagram, turn.of_devices);
                self.dispatch(number, peer, told, turn);
            }
        }
    }

    fn key_at(&self, location: Location) -> Option<DeviceKey> {
        let who = *self.directory.who_by_prefix.get(&location.device)?;
        let is_here = !matches!(self.residents[who], Resident::Away);
        is_here.then(|| self.directory.keys[who])
    }

    fn is_overloaded(&self, turn: &Turn<'_>) -> bool {
        self.lookups.len() + self.lanes.waiting() >= LOOKUPS_MAX || turn.store == Pressure::Full
    }

    pub(super) fn look_up(
        &mut self,
        wanted: Wanted,
        about: Option<(u64, Datagram)>,
        turn: &mut Turn<'_>,
    ) {
        let lookup = turn.number();
        self.lookups.insert(lookup, Lookup { wanted, about });
        turn.acts.push(Act::LookUp { lookup });
    }

    /// What is looked up, if this arbiter still waits for it.
    pub(crate) fn wanted(&self, lookup: u64) -> Option<&Wanted> {
        self.lookups.get(&lookup).map(|lookup| &lookup.wanted)
    }

    /// Takes what the disk found.
    pub(crate) fn found(
        &mut self,
        lookup: u64,
        found: Result<Option<DeviceKey>, Unread>,
        turn: &mut Turn<'_>,
    ) {
        let lookup = self.lookups.remove(&lookup);
        let Lookup { wanted, about } = lookup.expect("what is answered was asked");
        let (number, datagram) = about.expect("an address has a lane");
        let told = match (found, wanted) {
            (Ok(Some(key)), _) => {
                let route = self.router.to_device(key, Arrival::Message(datagram));
                self.follow(number, route, turn);
                return self.end_turn(turn);
            }
            (Ok(None), Wanted::Bearer(_)) => registry::unknown_endpoint(&datagram),
            (Ok(None), Wanted::At(_)) => registry::unknown_location(&datagram),
            (Ok(None), Wanted::Behind(_)) => panic!("an address has a lane"),
            (Err(Unread), _) => registry::overloaded(&datagram),
        };
        self.dispatch(number, datagram.peer, told, turn);
        self.end_turn(turn);
    }

    /// Takes what another arbiter sent.
    pub(crate) fn take_in(&mut self, post: Post, turn: &mut Turn<'_>) {
        for hint in post.hints {
            self.router.take_hint(hint);
        }
        for (number, parcel) in post.parcels {
            let (route, hint) = self.router.take_in(parcel);
            self.follow(number, route, turn);
            if let Some(hint) = hint {
                self.outgoing.entry(hint.to).or_default().hints.push(hint);
            }
        }
        self.end_turn(turn);
    }

    /// Ends a turn: what was heard for neighbours leaves.
    pub(crate) fn end_turn(&mut self, turn: &mut Turn<'_>) {
        for (to, post) in std::mem::take(&mut self.outgoing) {
            turn.acts.push(Act::Post { to, post });
        }
    }

    fn hand_heard(&mut self, key: DeviceKey, number: u64, arrival: Arrival, turn: &mut Turn<'_>) {
        let heard = Box::new(Heard { number, arrival });
        self.hand(self.directory.who(key), Input::Heard(heard), turn);
    }

    /// Hands an input to a device, bringing it back first if need be.
    pub(crate) fn hand(&mut self, who: usize, input: Input, turn: &mut Turn<'_>) {
        if matches!(self.residents[who], Resident::Away) {
            // A device that moved out has no deadline any more.
            if matches!(input, Input::Due) {
                return;
            }
            self.restore(who, turn);
        }
        match &mut self.residents[who] {
            Resident::Live(live) if live.open.is_none() => self.handle(who, input, turn),
            Resident::Live(live) => resident::wait(who, &mut live.mailbox, input, turn),
            Resident::Restoring { waiting, .. } => resident::wait(who, waiting, input, turn),
            Resident::Parked => resident::leave_parked(who, input, turn),
            Resident::Away => panic!("a device that is brought back is not away"),
        }
    }

    /// How many datagrams wait here for something.
    pub(super) fn datagrams_held(&self) -> usize {
        let outgoing: usize = self.outgoing.values().map(|post| post.parcels.len()).sum();
        let waiting = self.residents.iter().map(Resident::waiting);
        let heard = |inputs: &VecDeque<Input>| {
            let heard = |input: &&Input| matches!(input, Input::Heard(_));
            inputs.iter().filter(heard).count()
        };
        let waiting: usize = waiting.flatten().map(heard).sum();
        let named = self.lookups.values().filter(|it| it.about.is_some());
        named.count() + self.lanes.waiting() + outgoing + waiting
    }

    pub(crate) fn here(&self) -> ArbiterId {
        self.here
    }

    pub(crate) fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Whether a device is here, or will be without anybody's doing.
    pub(crate) fn looks_after(&self, who: usize) -> bool {
        !matches!(self.residents[who], Resident::Away) || self.soon.contains(&who)
    }

    /// The machine of a device that is there.
    pub(crate) fn machine(&self, who: usize) -> Option<&Device> {
        match &self.residents[who] {
            Resident::Live(live) => Some(&live.device),
            Resident::Away | Resident::Restoring { .. } | Resident::Parked => None,
        }
    }

    /// Whether nothing is under way for a device.
    pub(super) fn is_at_rest(&self, who: usize) -> bool {
        match &self.residents[who] {
            Resident::Live(live) => live.open.is_none() && live.mailbox.is_empty(),
            Resident::Away => self.starting.is_none() && !self.soon.contains(&who),
            Resident::Restoring { .. } | Resident::Parked => false,
        }
    }
}
