//! Whose is data that names nobody? The device's that has the address it comes from, which the disk
//! is asked.

use std::net::IpAddr;

use engine::datagram::Arrival;
use engine::registry::lanes::{Bounds, Joined, Lanes, Waits};
use engine::registry::{self, Behind, Sorted};

use super::arbiter::Wanted;
use super::{Arbiter, Turn, Unread};

/// Little may wait, so that there is more.
const BOUNDS: Bounds = Bounds {
    lane_max: 3,
    bytes_max: 4_096,
};

/// What waits, and the number it is known by.
#[derive(Debug)]
pub(super) struct Numbered(u64, Arrival);

impl Waits for Numbered {
    fn arrival(&self) -> &Arrival {
        &self.1
    }
}

pub(super) fn lanes() -> Lanes<Numbered> {
    Lanes::within(BOUNDS)
}

impl Arbiter {
    /// Finds the device that has the address some data comes from.
    pub(super) fn look_behind(&mut self, number: u64, arrival: Arrival, turn: &mut Turn<'_>) {
        let peer = arrival.peer();
        match self.lanes.join(Numbered(number, arrival)) {
            Joined::First => self.ask_behind(peer.ip(), turn),
            Joined::Behind => {}
            Joined::Crowded(Numbered(number, arrival)) => {
                let put_off = Sorted::ToAddress(arrival).put_off();
                self.dispatch(number, peer, put_off, turn);
            }
        }
    }

    fn ask_behind(&mut self, address: IpAddr, turn: &mut Turn<'_>) {
        self.lanes.ask(address);
        self.look_up(Wanted::Behind(address), None, turn);
    }

    /// Takes what the disk says of an address.
    pub(crate) fn found_behind(
        &mut self,
        lookup: u64,
        address: IpAddr,
        behind: Result<Behind, Unread>,
        turn: &mut Turn<'_>,
    ) {
        self.lookups.remove(&lookup);
        for Numbered(number, arrival) in self.lanes.take_asked(address) {
            self.give(number, arrival, behind, turn);
        }
        if self.lanes.has(address) {
            self.ask_behind(address, turn);
        }
        self.end_turn(turn);
    }

    fn give(
        &mut self,
        number: u64,
        arrival: Arrival,
        behind: Result<Behind, Unread>,
        turn: &mut Turn<'_>,
    ) {
        let peer = arrival.peer();
        let (key, arrival) = match behind {
            Ok(Behind::One(key)) => (key, arrival),
            Ok(Behind::Several(key)) => match registry::ambiguous(arrival) {
                Ok(arrival) => (key, arrival),
                Err(fate) => {
                    return self.dispatch(number, peer, Sorted::Ignored(fate), turn);
                }
            },
            Ok(Behind::Nobody) => {
                let told = registry::unknown_address(&arrival);
                return self.dispatch(number, peer, told, turn);
            }
            Err(Unread) => {
                let put_off = Sorted::ToAddress(arrival).put_off();
                return self.dispatch(number, peer, put_off, turn);
            }
        };
        let route = self.router.to_device(key, arrival);
        self.follow(number, route, turn);
    }
}
