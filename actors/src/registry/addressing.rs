//! Whose is data that names nobody? The device's that has the address it comes from.
//!
//! There is one question about an address at a time, and what comes meanwhile waits behind it: so
//! what a device says keeps its order. An answer is for those that were there when its question was
//! asked: what came later may be of a device that was given the address in between.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use actix::{ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _};
use engine::datagram::Arrival;
use engine::registry::{self, Behind, Sorted};
use store::Unavailable;

use crate::device::INPUTS_MAX;
use crate::registry::Registry;

/// Data from one address that waits to be told whose it is: as much as may wait for a device. What
/// goes beyond is told to come later.
const WAITING_MAX: usize = INPUTS_MAX;

/// Bytes of such data that are held for all addresses together: whoever sends them is not known
/// yet, and a datagram may be as large as sixty of the usual ones.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Data whose device is being looked up, by the address it comes from.
#[derive(Default)]
pub(super) struct Lanes {
    lane_by_address: HashMap<IpAddr, Lane>,
    bytes: usize,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Arrival>,
    /// How many of them the open question is for.
    asked: usize,
}

/// What is to be done for data that was put into a lane.
enum Joined {
    /// The question is to be asked.
    First,
    /// It is its turn later.
    Behind,
    /// There is no room for it.
    Crowded(Arrival),
}

impl Lanes {
    fn join(&mut self, arrival: Arrival) -> Joined {
        let bytes = self.bytes.saturating_add(bytes_of(&arrival));
        if bytes > WAITING_BYTES_MAX {
            return Joined::Crowded(arrival);
        }
        let lane = self.lane_by_address.entry(arrival.peer().ip()).or_default();
        if lane.waiting.len() >= WAITING_MAX {
            return Joined::Crowded(arrival);
        }
        self.bytes = bytes;
        lane.waiting.push_back(arrival);
        if lane.asked > 0 {
            return Joined::Behind;
        }
        lane.asked = 1;
        Joined::First
    }

    /// Takes those that the open question was for.
    fn take_asked(&mut self, address: IpAddr) -> VecDeque<Arrival> {
        let Some(lane) = self.lane_by_address.get_mut(&address) else {
            return VecDeque::new();
        };
        let later = lane.waiting.split_off(lane.asked.min(lane.waiting.len()));
        lane.asked = later.len();
        let taken = std::mem::replace(&mut lane.waiting, later);
        self.bytes -= taken.iter().map(bytes_of).sum::<usize>();
        if lane.asked == 0 {
            self.lane_by_address.remove(&address);
        }
        taken
    }

    /// Whether somebody at an address waits for an answer.
    fn has(&self, address: IpAddr) -> bool {
        self.lane_by_address.contains_key(&address)
    }
}

impl Registry {
    /// Finds the device that has the address some data comes from.
    pub(super) fn look_behind(&mut self, arrival: Arrival, ctx: &mut Context<Self>) {
        let peer = arrival.peer();
        match self.lanes.join(arrival) {
            Joined::First => {
                self.lookups += 1;
                self.ask_behind(peer.ip(), ctx);
            }
            Joined::Behind => self.lookups += 1,
            Joined::Crowded(arrival) => {
                self.dispatch(peer, Sorted::ToAddress(arrival).put_off(), ctx);
            }
        }
    }

    fn ask_behind(&mut self, address: IpAddr, ctx: &mut Context<Self>) {
        let behind = self.home.store.at_address(address);
        ctx.spawn(behind.into_actor(self).map(move |behind, registry, ctx| {
            for arrival in registry.lanes.take_asked(address) {
                registry.lookups -= 1;
                registry.give(arrival, behind, ctx);
            }
            if registry.lanes.has(address) {
                registry.ask_behind(address, ctx);
            }
            registry.end_turn();
        }));
    }

    fn give(
        &mut self,
        arrival: Arrival,
        behind: Result<Behind, Unavailable>,
        ctx: &mut Context<Self>,
    ) {
        let peer = arrival.peer();
        let (key, arrival) = match behind {
            Ok(Behind::One(key)) => (key, arrival),
            Ok(Behind::Several(key)) => match registry::ambiguous(arrival) {
                Ok(arrival) => (key, arrival),
                Err(fate) => return self.dispatch(peer, Sorted::Ignored(fate), ctx),
            },
            Ok(Behind::Nobody) => {
                return self.dispatch(peer, registry::unknown_address(&arrival), ctx);
            }
            Err(Unavailable) => {
                return self.dispatch(peer, Sorted::ToAddress(arrival).put_off(), ctx);
            }
        };
        let route = self.router().to_device(key, arrival);
        self.follow(route, ctx);
    }
}

/// How long the data is.
fn bytes_of(arrival: &Arrival) -> usize {
    match arrival {
        Arrival::Message(datagram) | Arrival::Ambiguous(datagram) => datagram.message.payload.len(),
        Arrival::Bare(bare) => bare.bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use engine::datagram::Bare;
    use engine::peer::Peer;

    use super::*;

    #[test]
    fn an_answer_is_for_those_that_were_there_when_it_was_asked_for() {
        let mut lanes = Lanes::default();
        assert!(matches!(lanes.join(bare(1)), Joined::First));
        assert!(matches!(lanes.join(bare(2)), Joined::Behind));
        assert!(matches!(lanes.join(bare(3)), Joined::Behind));
        assert_eq!(taken(&mut lanes), [1]);
        assert!(lanes.has(address()));
        assert!(matches!(lanes.join(bare(4)), Joined::Behind));
        assert_eq!(taken(&mut lanes), [2, 3]);
        assert_eq!(taken(&mut lanes), [4]);
        assert!(!lanes.has(address()));
        assert!(matches!(lanes.join(bare(5)), Joined::First));
    }

    #[test]
    fn an_address_has_room_for_as_much_as_may_wait_for_a_device() {
        let mut lanes = Lanes::default();
        for number in 0..WAITING_MAX {
            assert!(!matches!(
                lanes.join(bare(number as u8)),
                Joined::Crowded(_)
            ));
        }
        assert!(matches!(lanes.join(bare(0)), Joined::Crowded(_)));
        assert_eq!(taken(&mut lanes), [0]);
        assert!(matches!(lanes.join(bare(0)), Joined::Behind));
        assert_eq!(taken(&mut lanes).len(), WAITING_MAX - 1);
    }

    #[test]
    fn no_more_bytes_are_held_than_there_is_room_for() {
        const LARGEST: usize = 65_507;
        let mut lanes = Lanes::default();
        let held = (0..u16::MAX).map_while(|number| match lanes.join(large(number, LARGEST)) {
            Joined::First | Joined::Behind => Some(number),
            Joined::Crowded(_) => None,
        });
        let held: Vec<u16> = held.collect();
        assert_eq!(held.len(), WAITING_BYTES_MAX / LARGEST);
        for number in held {
            assert_eq!(lanes.take_asked(address_of(number)).len(), 1);
        }
        assert_eq!(lanes.bytes, 0);
        assert!(matches!(lanes.join(bare(1)), Joined::First));
    }

    fn taken(lanes: &mut Lanes) -> Vec<u8> {
        let first = |arrival: Arrival| match arrival {
            Arrival::Bare(bare) => bare.bytes[0],
            Arrival::Message(_) | Arrival::Ambiguous(_) => unreachable!("only bytes were put in"),
        };
        lanes.take_asked(address()).into_iter().map(first).collect()
    }

    fn address() -> IpAddr {
        [10, 0, 0, 1].into()
    }

    fn address_of(number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        [10, 1, high, low].into()
    }

    fn bare(number: u8) -> Arrival {
        arrival(address(), vec![number])
    }

    fn large(number: u16, length: usize) -> Arrival {
        arrival(address_of(number), vec![0; length])
    }

    fn arrival(from: IpAddr, bytes: Vec<u8>) -> Arrival {
        let peer = Peer::bare(SocketAddr::new(from, 4445));
        Arrival::Bare(Bare { peer, bytes })
    }
}
