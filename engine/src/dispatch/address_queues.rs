//! Who waits to be told whose its address is? Data by the address it comes from, in order.
//!
//! There is one question about an address at a time, and what comes meanwhile waits behind it: so
//! what a device says keeps its order. An answer is for those that were there when its question was
//! asked: what came later may be of a device that was given the address in between.
//!
//! Bare datagrams that waited together are handed over together. A device that throws many at once
//! has them kept in few commits, and does not lose those that would find its mailbox full.

use std::collections::{HashMap, VecDeque};

use crate::datagram::Inbound;
use crate::limits::{LANE_MAX, LANES_BYTES_MAX};
use crate::peer::PeerIdentity;

/// Bare datagrams that are handed over together: as many as a commit takes without being felt.
const BURST_MAX: usize = 256;

/// Data whose device is being looked up, by what shows who sent it.
#[derive(Debug)]
pub struct AddressQueues {
    lane_by_identity: HashMap<PeerIdentity, AddressQueue>,
    limits: AddressQueueLimits,
    waiting: usize,
    bytes: usize,
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub struct AddressQueueLimits {
    /// Of one identity. What goes beyond is told to come later.
    pub queue_max: usize,
    /// Bytes of all identities together.
    pub bytes_max: usize,
}

impl Default for AddressQueueLimits {
    fn default() -> Self {
        Self {
            queue_max: LANE_MAX,
            bytes_max: LANES_BYTES_MAX,
        }
    }
}

#[derive(Debug, Default)]
struct AddressQueue {
    waiting: VecDeque<Inbound>,
    /// How many of them the open question is for; none while it is still to be asked.
    asked: usize,
}

/// What is to be done for data that was put into a lane.
#[derive(Debug)]
pub enum Enqueued {
    /// The question is to be asked.
    First,
    /// It is its turn later.
    Queued,
    /// There is no room for it.
    Full(Inbound),
}

impl AddressQueues {
    /// Nobody waits yet.
    pub fn within(bounds: AddressQueueLimits) -> Self {
        Self {
            lane_by_identity: HashMap::new(),
            limits: bounds,
            waiting: 0,
            bytes: 0,
        }
    }

    /// Puts data behind what waits of its identity.
    pub fn enqueue(&mut self, arrival: Inbound) -> Enqueued {
        let bytes = self.bytes.saturating_add(arrival.bytes());
        if bytes > self.limits.bytes_max {
            return Enqueued::Full(arrival);
        }
        let identity = arrival.peer().identity();
        let lane = self.lane_by_identity.entry(identity).or_default();
        if lane.waiting.len() >= self.limits.queue_max {
            return Enqueued::Full(arrival);
        }
        self.bytes = bytes;
        self.waiting = self.waiting.saturating_add(1);
        lane.waiting.push_back(arrival);
        match lane.waiting.len() {
            1 => Enqueued::First,
            _ => Enqueued::Queued,
        }
    }

    /// Notes that the question about an identity is asked, for all that are there.
    pub fn ask(&mut self, identity: PeerIdentity) {
        if let Some(lane) = self.lane_by_identity.get_mut(&identity) {
            lane.asked = lane.waiting.len();
        }
    }

    /// Takes those that the open question was for.
    pub fn take_asked(&mut self, identity: PeerIdentity) -> VecDeque<Inbound> {
        let Some(lane) = self.lane_by_identity.get_mut(&identity) else {
            return VecDeque::new();
        };
        let later = lane.waiting.split_off(lane.asked.min(lane.waiting.len()));
        lane.asked = 0;
        let taken = std::mem::replace(&mut lane.waiting, later);
        let bytes: usize = taken.iter().map(Inbound::bytes).sum();
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
pub fn together(arrivals: VecDeque<Inbound>) -> Vec<Inbound> {
    let mut joined: Vec<Inbound> = Vec::new();
    for arrival in arrivals {
        match (joined.last_mut(), arrival) {
            (Some(Inbound::UdpBurst(_, more)), Inbound::Udp(bare))
                if more.len() + 1 < BURST_MAX =>
            {
                more.push(bare);
            }
            (_, Inbound::Udp(bare)) => joined.push(Inbound::UdpBurst(bare, Vec::new())),
            (_, other) => joined.push(other),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::*;
    use crate::datagram::UdpDatagram;
    use crate::dispatch::{Classified, classify};
    use crate::peer::Peer;

    #[test]
    fn an_answer_is_for_those_that_were_there_when_it_was_asked_for() {
        let mut lanes = lanes();
        assert!(matches!(lanes.enqueue(bare(1)), Enqueued::First));
        lanes.ask(identity());
        assert!(matches!(lanes.enqueue(bare(2)), Enqueued::Queued));
        assert!(matches!(lanes.enqueue(bare(3)), Enqueued::Queued));
        assert_eq!(taken(&mut lanes), [1]);
        assert!(lanes.has(identity()));
        lanes.ask(identity());
        assert!(matches!(lanes.enqueue(bare(4)), Enqueued::Queued));
        assert_eq!(taken(&mut lanes), [2, 3]);
        lanes.ask(identity());
        assert_eq!(taken(&mut lanes), [4]);
        assert!(!lanes.has(identity()));
        assert!(matches!(lanes.enqueue(bare(5)), Enqueued::First));
    }

    #[test]
    fn what_goes_beyond_the_room_of_an_address_is_told_to_come_later() {
        let mut lanes = lanes();
        for number in 0..LANE_MAX {
            assert!(!matches!(
                lanes.enqueue(bare(number as u8)),
                Enqueued::Full(_)
            ));
        }
        assert!(matches!(lanes.enqueue(bare(0)), Enqueued::Full(_)));
        lanes.ask(identity());
        assert_eq!(taken(&mut lanes).len(), LANE_MAX);
        assert!(matches!(lanes.enqueue(bare(0)), Enqueued::First));
    }

    #[test]
    fn bare_datagrams_that_waited_together_are_handed_over_together_and_in_order() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Classified::ToPeer(message) = classify(0, peer, &[0x40, 0, 0, 1]) else {
            panic!("a ping is for the device behind the peer");
        };
        let waited = [bare(1), bare(2), Inbound::Message(message), bare(3)];
        let joined: Vec<Vec<u8>> = together(waited.into()).iter().map(first_bytes).collect();
        assert_eq!(joined, [vec![1, 2], vec![], vec![3]]);
        let many = (0..=BURST_MAX).map(|_| bare(0)).collect();
        let lengths: Vec<usize> = together(many).iter().map(Inbound::bytes).collect();
        assert_eq!(lengths, [BURST_MAX, 1]);
    }

    #[test]
    fn no_more_bytes_are_held_than_there_is_room_for() {
        const LARGEST: usize = 65_507;
        let mut lanes = lanes();
        let held = (0..u16::MAX).map_while(|number| match lanes.enqueue(large(number, LARGEST)) {
            Enqueued::First | Enqueued::Queued => Some(number),
            Enqueued::Full(_) => None,
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
        assert!(matches!(lanes.enqueue(bare(1)), Enqueued::First));
    }

    #[test]
    fn whatever_part_of_a_message_is_long_counts() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Classified::ToPeer(datagram) = classify(0, peer, b"\x50\x02\0\x01\xd5\x02t=abc\xff6")
        else {
            panic!("it is data about abc");
        };
        assert_eq!(Inbound::Message(datagram).bytes(), 6);
    }

    fn lanes() -> AddressQueues {
        AddressQueues::within(AddressQueueLimits::default())
    }

    fn taken(lanes: &mut AddressQueues) -> Vec<u8> {
        let taken = lanes.take_asked(identity());
        taken.iter().flat_map(first_bytes).collect()
    }

    /// The first byte of each bare datagram.
    fn first_bytes(arrival: &Inbound) -> Vec<u8> {
        match arrival {
            Inbound::Udp(bare) => vec![bare.bytes[0]],
            Inbound::UdpBurst(first, more) => {
                let all = std::iter::once(first).chain(more);
                all.map(|bare| bare.bytes[0]).collect()
            }
            Inbound::Message(_) | Inbound::Ambiguous(_) => Vec::new(),
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

    fn bare(number: u8) -> Inbound {
        arrival(address(), vec![number])
    }

    fn large(number: u16, length: usize) -> Inbound {
        arrival(address_of(number), vec![0; length])
    }

    fn arrival(from: IpAddr, bytes: Vec<u8>) -> Inbound {
        let peer = Peer::bare(SocketAddr::new(from, 4445));
        Inbound::Udp(UdpDatagram {
            number: 0,
            peer,
            bytes,
        })
    }
}
