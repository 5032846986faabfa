//! Whose is data that names nobody? The device's that has the address it comes from.
//!
//! There is one question about an address at a time, and what comes meanwhile waits behind it: so
//! what a device says keeps its order.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use engine::datagram::Arrival;
use engine::registry::{self, Behind, Sorted};

use super::arbiter::Wanted;
use super::{Arbiter, Turn, Unread};

/// Data from one address that may wait: little, so that there is more.
const WAITING_MAX: usize = 3;

/// Data whose device is being looked up, by the address it comes from.
#[derive(Default)]
pub(super) struct Lanes {
    lane_by_address: BTreeMap<IpAddr, Lane>,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<(u64, Arrival)>,
    /// How many of them the open question is for.
    asked: usize,
}

impl Lanes {
    /// How much waits in all lanes.
    pub(super) fn waiting(&self) -> usize {
        let lanes = self.lane_by_address.values();
        lanes.map(|lane| lane.waiting.len()).sum()
    }
}

impl Arbiter {
    /// Finds the device that has the address some data comes from.
    pub(super) fn look_behind(&mut self, number: u64, arrival: Arrival, turn: &mut Turn<'_>) {
        let peer = arrival.peer();
        let lane = self.lanes.lane_by_address.entry(peer.ip()).or_default();
        if lane.waiting.len() >= WAITING_MAX {
            let put_off = Sorted::ToAddress(arrival).put_off();
            return self.dispatch(number, peer, put_off, turn);
        }
        lane.waiting.push_back((number, arrival));
        if lane.asked == 0 {
            lane.asked = 1;
            self.look_up(Wanted::Behind(peer.ip()), None, turn);
        }
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
        let lanes = &mut self.lanes.lane_by_address;
        let lane = lanes.get_mut(&address).expect("somebody waits for this");
        let later = lane.waiting.split_off(lane.asked.min(lane.waiting.len()));
        let asked = std::mem::replace(&mut lane.waiting, later);
        lane.asked = lane.waiting.len();
        let is_over = lane.asked == 0;
        if is_over {
            lanes.remove(&address);
        }
        for (number, arrival) in asked {
            self.give(number, arrival, behind, turn);
        }
        if !is_over {
            self.look_up(Wanted::Behind(address), None, turn);
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
