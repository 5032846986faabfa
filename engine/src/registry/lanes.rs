//! Who waits to be told whose its address is? Data by the address it comes from, in order.
//!
//! There is one question about an address at a time, and what comes meanwhile waits behind it: so
//! what a device says keeps its order. An answer is for those that were there when its question was
//! asked: what came later may be of a device that was given the address in between.
//!
//! Bare datagrams that waited together are handed over together. A device that throws many at once
//! has them kept in few commits, and does not lose those that would find its mailbox full.

use std::collections::{HashMap, VecDeque};

use crate::datagram::Arrival;
use crate::limits::{LANE_MAX, LANES_BYTES_MAX};
use crate::peer::PeerIdentity;

/// Bare datagrams that are handed over together: as many as a commit takes without being felt.
const BURST_MAX: usize = 256;

/// Data whose device is being looked up, by what shows who sent it.
#[derive(Debug)]
pub struct Lanes {
    lane_by_identity: HashMap<PeerIdentity, Lane>,
    bounds: Bounds,
    waiting: usize,
    bytes: usize,
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Of one identity. What goes beyond is told to come later.
    pub lane_max: usize,
    /// Bytes of all identities together.
    pub bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            lane_max: LANE_MAX,
            bytes_max: LANES_BYTES_MAX,
        }
    }
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Arrival>,
    /// How many of them the open question is for; none while it is still to be asked.
    asked: usize,
}

/// What is to be done for data that was put into a lane.
#[derive(Debug)]
pub enum Joined {
    /// The question is to be asked.
    First,
    /// It is its turn later.
    Behind,
    /// There is no room for it.
    Crowded(Arrival),
}

impl Lanes {
    /// Nobody waits yet.
    pub fn within(bounds: Bounds) -> Self {
        Self {
            lane_by_identity: HashMap::new(),
            bounds,
            waiting: 0,
            bytes: 0,
        }
    }

    /// Puts data behind what waits of its identity.
    pub fn join(&mut self, arrival: Arrival) -> Joined {
        let bytes = self.bytes.saturating_add(arrival.bytes());
        if bytes > self.bounds.bytes_max {
            return Joined::Crowded(arrival);
        }
        let identity = arrival.peer().identity();
        let lane = self.lane_by_identity.entry(identity).or_default();
        if lane.waiting.len() >= self.bounds.lane_max {
            return Joined::Crowded(arrival);
        }
        self.bytes = bytes;
        self.waiting = self.waiting.saturating_add(1);
        lane.waiting.push_back(arrival);
        match lane.waiting.len() {
            1 => Joined::First,
            _ => Joined::Behind,
        }
    }

    /// Notes that the question about an identity is asked, for all that are there.
    pub fn ask(&mut self, identity: PeerIdentity) {
        if let Some(lane) = self.lane_by_identity.get_mut(&identity) {
            lane.asked = lane.waiting.len();
        }
    }

    /// Takes those that the open question was for.
    pub fn take_asked(&mut self, identity: PeerIdentity) -> VecDeque<Arrival> {
        let Some(lane) = self.lane_by_identity.get_mut(&identity) else {
            return VecDeque::new();
        };
        let later = lane.waiting.split_off(lane.asked.min(lane.waiting.len()));
        lane.asked = 0;
        let taken = std::mem::replace(&mut lane.waiting, later);
        let bytes: usize = taken.iter().map(Arrival::bytes).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        self.waiting = self.waiting.saturating_sub(taken.len());
        if lane.waiting.is_empty() {
            self.lane_by_identity.remove(&identity);
        }
        taken
    }

    /// Whether somebody of an identity waits for an answer.
    pub fn has(&self, identity: PeerIdentity) -> bool {
        self.lane_by_identity.contains_key(&identity)
    }

    /// How much waits of all identities together.
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}

/// Puts bare datagrams together that came one behind the other; the order stays.
pub fn together(arrivals: VecDeque<Arrival>) -> Vec<Arrival> {
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

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::*;
    use crate::datagram::Bare;
    use crate::peer::Peer;
    use crate::registry::{Sorted, sort};

    #[test]
    fn an_answer_is_for_those_that_were_there_when_it_was_asked_for() {
        let mut lanes = lanes();
        assert!(matches!(lanes.join(bare(1)), Joined::First));
        lanes.ask(identity());
        assert!(matches!(lanes.join(bare(2)), Joined::Behind));
        assert!(matches!(lanes.join(bare(3)), Joined::Behind));
        assert_eq!(taken(&mut lanes), [1]);
        assert!(lanes.has(identity()));
        lanes.ask(identity());
        assert!(matches!(lanes.join(bare(4)), Joined::Behind));
        assert_eq!(taken(&mut lanes), [2, 3]);
        lanes.ask(identity());
        assert_eq!(taken(&mut lanes), [4]);
        assert!(!lanes.has(identity()));
        assert!(matches!(lanes.join(bare(5)), Joined::First));
    }

    #[test]
    fn what_goes_beyond_the_room_of_an_address_is_told_to_come_later() {
        let mut lanes = lanes();
        for number in 0..LANE_MAX {
            assert!(!matches!(
                lanes.join(bare(number as u8)),
                Joined::Crowded(_)
            ));
        }
        assert!(matches!(lanes.join(bare(0)), Joined::Crowded(_)));
        lanes.ask(identity());
        assert_eq!(taken(&mut lanes).len(), LANE_MAX);
        assert!(matches!(lanes.join(bare(0)), Joined::First));
    }

    #[test]
    fn bare_datagrams_that_waited_together_are_handed_over_together_and_in_order() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Sorted::ToPeer(message) = sort(0, peer, &[0x40, 0, 0, 1]) else {
            panic!("a ping is for the device behind the peer");
        };
        let waited = [bare(1), bare(2), Arrival::Message(message), bare(3)];
        let joined: Vec<Vec<u8>> = together(waited.into()).iter().map(first_bytes).collect();
        assert_eq!(joined, [vec![1, 2], vec![], vec![3]]);
        let many = (0..=BURST_MAX).map(|_| bare(0)).collect();
        let lengths: Vec<usize> = together(many).iter().map(Arrival::bytes).collect();
        assert_eq!(lengths, [BURST_MAX, 1]);
    }

    #[test]
    fn no_more_bytes_are_held_than_there_is_room_for() {
        const LARGEST: usize = 65_507;
        let mut lanes = lanes();
        let held = (0..u16::MAX).map_while(|number| match lanes.join(large(number, LARGEST)) {
            Joined::First | Joined::Behind => Some(number),
            Joined::Crowded(_) => None,
        });
        let held: Vec<u16> = held.collect();
        assert_eq!(held.len(), LANES_BYTES_MAX / LARGEST);
        for number in held {
            lanes.ask(PeerIdentity::Address(address_of(number)));
            assert_eq!(
                lanes
                    .take_asked(PeerIdentity::Address(address_of(number)))
                    .len(),
                1
            );
        }
        assert_eq!((lanes.bytes, lanes.waiting()), (0, 0));
        assert!(matches!(lanes.join(bare(1)), Joined::First));
    }

    #[test]
    fn whatever_part_of_a_message_is_long_counts() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Sorted::ToPeer(datagram) = sort(0, peer, b"\x50\x02\0\x01\xd5\x02t=abc\xff6") else {
            panic!("it is data about abc");
        };
        assert_eq!(Arrival::Message(datagram).bytes(), 6);
    }

    fn lanes() -> Lanes {
        Lanes::within(Bounds::default())
    }

    fn taken(lanes: &mut Lanes) -> Vec<u8> {
        let taken = lanes.take_asked(identity());
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

    fn identity() -> PeerIdentity {
        PeerIdentity::Address(address())
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
        Arrival::Bare(Bare {
            number: 0,
            peer,
            bytes,
        })
    }
}
