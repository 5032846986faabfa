//! Whose is data that names nobody? The device's that has the address it comes from.
//!
//! There is one question about an address at a time, and what comes meanwhile waits behind it: so
//! what a device says keeps its order. An answer is for those that were there when its question was
//! asked: what came later may be of a device that was given the address in between.
//!
//! Bare datagrams that waited together are handed over together. A device that throws many at once
//! has them kept in few commits, and does not lose those that would find its mailbox full.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use actix::{ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _};
use engine::datagram::{Arrival, Bare};
use engine::registry::{self, Behind, Sorted};
use store::Unavailable;

use crate::registry::Registry;

/// Data from one address that waits to be told whose it is: a device throws its readings of a day
/// at once, and not more. What goes beyond is told to come later.
const LANE_MAX: usize = 2_048;

/// Bare datagrams that are handed over together: as many as a commit takes without being felt.
const BURST_MAX: usize = 256;

/// How long what came behind a question waits for the next one, so that it is handed over together:
/// about as long as a commit takes.
const PAUSE: Duration = Duration::from_millis(4);

/// Bytes of such data that are held for all addresses together: whoever sends them is not known
/// yet, and a datagram may be as large as sixty of the usual ones.
const LANES_BYTES_MAX: usize = 16 << 20;

/// Data whose device is being looked up, by the address it comes from.
#[derive(Default)]
pub(super) struct Lanes {
    lane_by_address: HashMap<IpAddr, Lane>,
    bytes: usize,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Arrival>,
    /// How many of them the open question is for; none while it is to be asked after a pause.
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
        if bytes > LANES_BYTES_MAX {
            return Joined::Crowded(arrival);
        }
        let lane = self.lane_by_address.entry(arrival.peer().ip()).or_default();
        if lane.waiting.len() >= LANE_MAX {
            return Joined::Crowded(arrival);
        }
        self.bytes = bytes;
        lane.waiting.push_back(arrival);
        match lane.waiting.len() {
            1 => Joined::First,
            _ => Joined::Behind,
        }
    }

    /// Asks for all that are there.
    fn ask(&mut self, address: IpAddr) {
        if let Some(lane) = self.lane_by_address.get_mut(&address) {
            lane.asked = lane.waiting.len();
        }
    }

    /// Takes those that the open question was for.
    fn take_asked(&mut self, address: IpAddr) -> VecDeque<Arrival> {
        let Some(lane) = self.lane_by_address.get_mut(&address) else {
            return VecDeque::new();
        };
        let later = lane.waiting.split_off(lane.asked.min(lane.waiting.len()));
        lane.asked = 0;
        let taken = std::mem::replace(&mut lane.waiting, later);
        self.bytes -= taken.iter().map(bytes_of).sum::<usize>();
        if lane.waiting.is_empty() {
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
        self.lanes.ask(address);
        let behind = self.home.store.at_address(address);
        ctx.spawn(behind.into_actor(self).map(move |behind, registry, ctx| {
            let taken = registry.lanes.take_asked(address);
            registry.lookups -= taken.len();
            registry.give_all(taken, behind, ctx);
            if registry.lanes.has(address) {
                ctx.run_later(PAUSE, move |registry, ctx| {
                    registry.ask_behind(address, ctx)
                });
            }
            registry.end_turn();
        }));
    }

    fn give_all(
        &mut self,
        taken: VecDeque<Arrival>,
        behind: Result<Behind, Unavailable>,
        ctx: &mut Context<Self>,
    ) {
        match behind {
            Ok(Behind::One(key)) => {
                for arrival in together(taken) {
                    let route = self.router().to_device(key, arrival);
                    self.follow(route, ctx);
                }
            }
            Ok(Behind::Several(key)) => {
                for arrival in taken {
                    let peer = arrival.peer();
                    match registry::ambiguous(arrival) {
                        Ok(arrival) => {
                            let route = self.router().to_device(key, arrival);
                            self.follow(route, ctx);
                        }
                        Err(fate) => self.dispatch(peer, Sorted::Ignored(fate), ctx),
                    }
                }
            }
            Ok(Behind::Nobody) => {
                for arrival in taken {
                    let told = registry::unknown_address(&arrival);
                    self.dispatch(arrival.peer(), told, ctx);
                }
            }
            Err(Unavailable) => {
                for arrival in taken {
                    let peer = arrival.peer();
                    self.dispatch(peer, Sorted::ToAddress(arrival).put_off(), ctx);
                }
            }
        }
    }
}

/// Puts bare datagrams together that came one behind the other; the order stays.
fn together(arrivals: VecDeque<Arrival>) -> Vec<Arrival> {
    let mut joined: Vec<Arrival> = Vec::new();
    for arrival in arrivals {
        match (joined.last_mut(), arrival) {
            (Some(Arrival::Burst(_, more)), Arrival::Bare(bare)) if more.len() + 1 < BURST_MAX => {
                more.push(bare);
            }
            (_, Arrival::Bare(bare)) => joined.push(Arrival::Burst(bare, Vec::new())),
            (_, other) => joined.push(other),
        }
    }
    joined
}

/// How long the data is.
fn bytes_of(arrival: &Arrival) -> usize {
    match arrival {
        Arrival::Message(datagram) | Arrival::Ambiguous(datagram) => {
            let message = &datagram.message;
            let options = message.options().map(|(_, value)| value.len());
            options.sum::<usize>().saturating_add(message.payload.len())
        }
        Arrival::Bare(bare) => bare.bytes.len(),
        Arrival::Burst(first, more) => {
            let all = std::iter::once(first).chain(more);
            all.map(|bare: &Bare| bare.bytes.len()).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use engine::peer::Peer;

    use super::*;

    #[test]
    fn an_answer_is_for_those_that_were_there_when_it_was_asked_for() {
        let mut lanes = Lanes::default();
        assert!(matches!(lanes.join(bare(1)), Joined::First));
        lanes.ask(address());
        assert!(matches!(lanes.join(bare(2)), Joined::Behind));
        assert!(matches!(lanes.join(bare(3)), Joined::Behind));
        assert_eq!(taken(&mut lanes), [1]);
        assert!(lanes.has(address()));
        lanes.ask(address());
        assert!(matches!(lanes.join(bare(4)), Joined::Behind));
        assert_eq!(taken(&mut lanes), [2, 3]);
        lanes.ask(address());
        assert_eq!(taken(&mut lanes), [4]);
        assert!(!lanes.has(address()));
        assert!(matches!(lanes.join(bare(5)), Joined::First));
    }

    #[test]
    fn what_goes_beyond_the_room_of_an_address_is_told_to_come_later() {
        let mut lanes = Lanes::default();
        for number in 0..LANE_MAX {
            assert!(!matches!(
                lanes.join(bare(number as u8)),
                Joined::Crowded(_)
            ));
        }
        assert!(matches!(lanes.join(bare(0)), Joined::Crowded(_)));
        lanes.ask(address());
        assert_eq!(taken(&mut lanes).len(), LANE_MAX);
        assert!(matches!(lanes.join(bare(0)), Joined::First));
    }

    #[test]
    fn bare_datagrams_that_waited_together_are_handed_over_together_and_in_order() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Sorted::ToPeer(message) = registry::sort(peer, &[0x40, 0, 0, 1]) else {
            panic!("a ping is for the device behind the peer");
        };
        let waited = [bare(1), bare(2), Arrival::Message(message), bare(3)];
        let joined: Vec<Vec<u8>> = together(waited.into()).iter().map(first_bytes).collect();
        assert_eq!(joined, [vec![1, 2], vec![], vec![3]]);
        let many = (0..=BURST_MAX).map(|_| bare(0)).collect();
        let lengths: Vec<usize> = together(many).iter().map(bytes_of).collect();
        assert_eq!(lengths, [BURST_MAX, 1]);
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
        assert_eq!(held.len(), LANES_BYTES_MAX / LARGEST);
        for number in held {
            lanes.ask(address_of(number));
            assert_eq!(lanes.take_asked(address_of(number)).len(), 1);
        }
        assert_eq!(lanes.bytes, 0);
        assert!(matches!(lanes.join(bare(1)), Joined::First));
    }

    #[test]
    fn whatever_part_of_a_message_is_long_counts() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Sorted::ToPeer(datagram) = registry::sort(peer, b"\x50\x02\0\x01\xd5\x02t=abc\xff6")
        else {
            panic!("it is data about abc");
        };
        assert_eq!(bytes_of(&Arrival::Message(datagram)), 6);
    }

    fn taken(lanes: &mut Lanes) -> Vec<u8> {
        let taken = lanes.take_asked(address());
        taken.iter().flat_map(first_bytes).collect()
    }

    /// The first byte of each bare datagram.
    fn first_bytes(arrival: &Arrival) -> Vec<u8> {
        match arrival {
            Arrival::Bare(bare) => vec![bare.bytes[0]],
            Arrival::Burst(first, more) => {
                let all = std::iter::once(first).chain(more);
                all.map(|bare| bare.bytes[0]).collect()
            }
            Arrival::Message(_) | Arrival::Ambiguous(_) => Vec::new(),
        }
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
