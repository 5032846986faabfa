//! Which data waits for the look-up of the device at its address? Data is queued by address, in
//! order.
//!
//! There is one look-up of an address at a time, and later data waits behind it, so that the data
//! of a device stays in order. A result applies only to the data that was queued when its look-up
//! began: later data may be from a device that got the address in the meantime.
//!
//! Bare datagrams that waited together go to the device together. A burst of a device then needs
//! few commits, and does not fill the mailbox of the device.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::datagram::Inbound;
use crate::limits::{ADDRESS_QUEUE_MAX, ADDRESS_QUEUES_BYTES_MAX};

/// Bare datagrams that go to a device together: few enough that one commit stays short.
const BURST_MAX: usize = 256;

/// Data whose device is being looked up, by the address of its sender.
#[derive(Debug)]
pub struct AddressQueues {
    queue_by_address: HashMap<IpAddr, AddressQueue>,
    limits: AddressQueueLimits,
    waiting: usize,
    bytes: usize,
}

/// The bounds of the queues.
#[derive(Clone, Copy, Debug)]
pub struct AddressQueueLimits {
    /// Data from one address; what exceeds it is answered 5.03 or dropped.
    pub queue_max: usize,
    /// Bytes from all addresses in total.
    pub bytes_max: usize,
}

impl Default for AddressQueueLimits {
    fn default() -> Self {
        Self {
            queue_max: ADDRESS_QUEUE_MAX,
            bytes_max: ADDRESS_QUEUES_BYTES_MAX,
        }
    }
}

#[derive(Debug, Default)]
struct AddressQueue {
    waiting: VecDeque<Inbound>,
    /// How many of them the current look-up is for; zero before it begins.
    looked_up: usize,
}

/// The result of queueing data.
#[derive(Debug)]
pub enum Enqueued {
    /// It is the first: a look-up has to begin.
    First,
    /// It waits for its turn.
    Queued,
    /// There is no room for it.
    Full(Inbound),
}

impl AddressQueues {
    /// Empty queues with these bounds.
    pub fn within(bounds: AddressQueueLimits) -> Self {
        Self {
            queue_by_address: HashMap::new(),
            limits: bounds,
            waiting: 0,
            bytes: 0,
        }
    }

    /// Adds data to the queue of its address.
    pub fn enqueue(&mut self, arrival: Inbound) -> Enqueued {
        let bytes = self.bytes.saturating_add(arrival.bytes());
        if bytes > self.limits.bytes_max {
            return Enqueued::Full(arrival);
        }
        let address = arrival.peer().ip();
        let queue = self.queue_by_address.entry(address).or_default();
        if queue.waiting.len() >= self.limits.queue_max {
            return Enqueued::Full(arrival);
        }
        self.bytes = bytes;
        self.waiting = self.waiting.saturating_add(1);
        queue.waiting.push_back(arrival);
        match queue.waiting.len() {
            1 => Enqueued::First,
            _ => Enqueued::Queued,
        }
    }

    /// Notes that the look-up of an address begins, for all data that is queued.
    pub fn ask(&mut self, address: IpAddr) {
        if let Some(queue) = self.queue_by_address.get_mut(&address) {
            queue.looked_up = queue.waiting.len();
        }
    }

    /// Takes the data that the current look-up is for.
    pub fn take_asked(&mut self, address: IpAddr) -> VecDeque<Inbound> {
        let Some(queue) = self.queue_by_address.get_mut(&address) else {
            return VecDeque::new();
        };
        let later = queue
            .waiting
            .split_off(queue.looked_up.min(queue.waiting.len()));
        queue.looked_up = 0;
        let taken = std::mem::replace(&mut queue.waiting, later);
        let bytes: usize = taken.iter().map(Inbound::bytes).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        self.waiting = self.waiting.saturating_sub(taken.len());
        if queue.waiting.is_empty() {
            self.queue_by_address.remove(&address);
        }
        taken
    }

    /// Whether data from an address is queued.
    pub fn has(&self, address: IpAddr) -> bool {
        self.queue_by_address.contains_key(&address)
    }

    /// How many inputs from all addresses are queued.
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}

/// Joins consecutive bare datagrams; the order stays.
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
    use std::net::SocketAddr;

    use super::*;
    use crate::datagram::UdpDatagram;
    use crate::dispatch::{Classified, classify};
    use crate::peer::Peer;

    #[test]
    fn a_result_applies_to_the_data_that_was_queued_when_its_look_up_began() {
        let mut queues = queues();
        assert!(matches!(queues.enqueue(bare(1)), Enqueued::First));
        queues.ask(address());
        assert!(matches!(queues.enqueue(bare(2)), Enqueued::Queued));
        assert!(matches!(queues.enqueue(bare(3)), Enqueued::Queued));
        assert_eq!(taken(&mut queues), [1]);
        assert!(queues.has(address()));
        queues.ask(address());
        assert!(matches!(queues.enqueue(bare(4)), Enqueued::Queued));
        assert_eq!(taken(&mut queues), [2, 3]);
        queues.ask(address());
        assert_eq!(taken(&mut queues), [4]);
        assert!(!queues.has(address()));
        assert!(matches!(queues.enqueue(bare(5)), Enqueued::First));
    }

    #[test]
    fn data_beyond_the_bound_of_an_address_is_refused() {
        let mut queues = queues();
        for number in 0..ADDRESS_QUEUE_MAX {
            assert!(!matches!(
                queues.enqueue(bare(number as u8)),
                Enqueued::Full(_)
            ));
        }
        assert!(matches!(queues.enqueue(bare(0)), Enqueued::Full(_)));
        queues.ask(address());
        assert_eq!(taken(&mut queues).len(), ADDRESS_QUEUE_MAX);
        assert!(matches!(queues.enqueue(bare(0)), Enqueued::First));
    }

    #[test]
    fn bare_datagrams_that_waited_together_are_joined_in_order() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Classified::ToPeer(message) = classify(0, peer, &[0x40, 0, 0, 1]) else {
            panic!("a ping is for the device at the peer");
        };
        let waited = [bare(1), bare(2), Inbound::Message(message), bare(3)];
        let joined: Vec<Vec<u8>> = together(waited.into()).iter().map(first_bytes).collect();
        assert_eq!(joined, [vec![1, 2], vec![], vec![3]]);
        let many = (0..=BURST_MAX).map(|_| bare(0)).collect();
        let lengths: Vec<usize> = together(many).iter().map(Inbound::bytes).collect();
        assert_eq!(lengths, [BURST_MAX, 1]);
    }

    #[test]
    fn the_bytes_of_all_queues_have_a_bound() {
        const LARGEST: usize = 65_507;
        let mut queues = queues();
        let queued =
            (0..u16::MAX).map_while(|number| match queues.enqueue(large(number, LARGEST)) {
                Enqueued::First | Enqueued::Queued => Some(number),
                Enqueued::Full(_) => None,
            });
        let queued: Vec<u16> = queued.collect();
        assert_eq!(queued.len(), ADDRESS_QUEUES_BYTES_MAX / LARGEST);
        for number in queued {
            queues.ask(address_of(number));
            assert_eq!(queues.take_asked(address_of(number)).len(), 1);
        }
        assert_eq!((queues.bytes, queues.waiting()), (0, 0));
        assert!(matches!(queues.enqueue(bare(1)), Enqueued::First));
    }

    #[test]
    fn options_and_payload_count_as_bytes() {
        let peer = Peer::plain(SocketAddr::new(address(), 5683));
        let Classified::ToPeer(datagram) = classify(0, peer, b"\x50\x02\0\x01\xd5\x02t=abc\xff6")
        else {
            panic!("it is data about abc");
        };
        assert_eq!(Inbound::Message(datagram).bytes(), 6);
    }

    fn queues() -> AddressQueues {
        AddressQueues::within(AddressQueueLimits::default())
    }

    fn taken(queues: &mut AddressQueues) -> Vec<u8> {
        let taken = queues.take_asked(address());
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
            Inbound::Message(_)
            | Inbound::Ambiguous(_)
            | Inbound::BootstrapOnly(_)
            | Inbound::RefusedHandshake(_) => Vec::new(),
        }
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
