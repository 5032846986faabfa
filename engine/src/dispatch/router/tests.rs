//! Does every datagram reach its device, whichever arbiter receives it, and after how many hops?

use std::net::{Ipv4Addr, SocketAddr};

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::{Datagram, Inbound, Location, Peer, PeerBinding, RouteDecision, Router};
use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::firmware::image_key::ImageKey;
use crate::ids::{CampaignId, CustomerId, DeviceId, DeviceKey};

const SALT: u32 = 17;

/// The routers of all arbiters of a process.
struct Process {
    shard_map: ShardMap,
    routers: Vec<Router>,
}

/// Where a datagram ended, and after how many hops between arbiters.
#[derive(Debug, Eq, PartialEq)]
struct Ended {
    at: ArbiterId,
    device: Option<DeviceKey>,
    hops: u16,
}

impl Process {
    fn of(arbiters: usize) -> Self {
        let shard_map = ShardMap::among(arbiters);
        let router = |here| Router::new(here, shard_map);
        Self {
            shard_map,
            routers: shard_map.arbiters().map(router).collect(),
        }
    }

    fn binds(&mut self, key: DeviceKey, peer: Peer) {
        let owner = self.shard_map.arbiter_of(key.shard());
        self.routers[owner.index()].rebind(
            key,
            Some(peer),
            Some(peer),
            &mut PeerBinding::default(),
        );
    }

    fn exchanges_at(&mut self, key: DeviceKey, peer: Peer) {
        let owner = self.shard_map.arbiter_of(key.shard());
        self.routers[owner.index()].rebind(key, None, Some(peer), &mut PeerBinding::default());
    }

    fn receives_update(&mut self, at: ArbiterId, key: DeviceKey, peer: Peer) -> Ended {
        let location = Location::new(key, SALT);
        let route = self.routers[at.index()].to_location(location, datagram(peer));
        self.follow(at, route, key)
    }

    fn receives_registration(&mut self, at: ArbiterId, key: DeviceKey, peer: Peer) -> Ended {
        let route = self.routers[at.index()].to_device(key, Inbound::Message(datagram(peer)));
        self.follow(at, route, key)
    }

    fn receives_answer(&mut self, at: ArbiterId, key: DeviceKey, peer: Peer) -> Ended {
        let route = self.routers[at.index()].to_peer(datagram(peer));
        self.follow(at, route, key)
    }

    fn receives_request(&mut self, at: ArbiterId, key: DeviceKey, peer: Peer) -> Ended {
        let id = MessageId(1);
        let message = Message::request(MessageKind::Confirmable, Code::POST, id, Token::EMPTY);
        let route = self.routers[at.index()].to_peer(Datagram::new(0, peer, message));
        self.follow(at, route, key)
    }

    fn follow(
        &mut self,
        received_by: ArbiterId,
        mut route: RouteDecision,
        expected: DeviceKey,
    ) -> Ended {
        let (mut at, mut hops) = (received_by, 0);
        loop {
            match route {
                RouteDecision::Device(key, _) => {
                    assert_eq!(
                        self.shard_map.arbiter_of(key.shard()),
                        at,
                        "the arbiter owns it"
                    );
                    let device = Some(key);
                    return Ended { at, device, hops };
                }
                RouteDecision::Location(location, _) => {
                    assert_eq!(location, Location::new(expected, SALT));
                    assert_eq!(
                        self.shard_map.arbiter_of(expected.shard()),
                        at,
                        "the arbiter owns it"
                    );
                    let device = Some(expected);
                    return Ended { at, device, hops };
                }
                RouteDecision::Unknown(_) => {
                    let device = None;
                    return Ended { at, device, hops };
                }
                RouteDecision::Forward(next, forwarded) => {
                    hops += 1;
                    assert!(
                        hops <= self.shard_map.count(),
                        "no datagram goes in circles"
                    );
                    at = next;
                    let (onward, hint) = self.routers[next.index()].route_forwarded(forwarded);
                    if let Some(hint) = hint {
                        assert_eq!(hint.to, received_by);
                        self.routers[hint.to.index()].note_hint(hint);
                    }
                    route = onward;
                }
            }
        }
    }
}

#[test]
fn the_arbiter_that_receives_from_a_peer_learns_that_a_device_is_registered_there() {
    type Receives = fn(&mut Process, ArbiterId, DeviceKey, Peer) -> Ended;
    let all: [Receives; 4] = [
        Process::receives_update,
        Process::receives_registration,
        Process::receives_answer,
        Process::receives_request,
    ];
    for (receives, at) in all
        .iter()
        .flat_map(|receives| ShardMap::among(3).arbiters().map(move |at| (receives, at)))
    {
        let mut process = Process::of(3);
        // A registration that is refused names the device as well.
        process.receives_registration(at, key(1), peer(1));
        assert!(!process.routers[at.index()].knows(peer(1)));
        process.binds(key(1), peer(1));
        receives(&mut process, at, key(1), peer(1));
        assert!(process.routers[at.index()].knows(peer(1)));
        assert!(!process.routers[at.index()].knows(peer(2)));
    }
}

#[test]
fn a_request_from_the_peer_of_an_exchange_is_not_of_that_device() {
    for arbiters in [1, 2, 8] {
        let mut process = Process::of(arbiters);
        for (number, at) in (0..64).zip(process.shard_map.arbiters().cycle()) {
            let (in_exchange, registered, peer) = (key(number), key(number + 64), peer(number));
            process.exchanges_at(in_exchange, peer);
            assert_eq!(process.receives_request(at, in_exchange, peer).device, None);
            process.binds(registered, peer);
            let ended = process.receives_request(at, registered, peer);
            assert_eq!(ended.device, Some(registered));
        }
    }
}

#[test]
fn a_datagram_that_names_its_device_is_forwarded_once_at_most() {
    for arbiters in [1, 2, 3, 8] {
        let mut process = Process::of(arbiters);
        for (number, at) in (0..64).zip(process.shard_map.arbiters().cycle()) {
            let (key, peer) = (key(number), peer(number));
            let owner = process.shard_map.arbiter_of(key.shard());
            let there = Ended {
                at: owner,
                device: Some(key),
                hops: u16::from(owner != at),
            };
            assert_eq!(process.receives_registration(at, key, peer), there);
            assert_eq!(process.receives_update(at, key, peer), there);
        }
    }
}

#[test]
fn an_answer_of_a_device_seen_before_is_forwarded_once_at_most() {
    let mut process = Process::of(8);
    let arbiters: Vec<ArbiterId> = process.shard_map.arbiters().collect();
    for (number, at) in (0..64).zip(arbiters.iter().copied().cycle()) {
        let (key, peer) = (key(number), peer(number));
        process.receives_update(at, key, peer);
        process.binds(key, peer);
        let ended = process.receives_answer(at, key, peer);
        assert_eq!(ended.device, Some(key));
        assert!(ended.hops <= 1, "{ended:?}");
    }
}

#[test]
fn an_answer_without_a_cached_route_is_routed_by_search_and_then_cached() {
    let mut process = Process::of(8);
    let arbiters: Vec<ArbiterId> = process.shard_map.arbiters().collect();
    for (number, at) in (0..64).zip(arbiters.iter().copied().cycle()) {
        let (key, peer) = (key(number), peer(number));
        process.binds(key, peer);
        assert_eq!(process.receives_answer(at, key, peer).device, Some(key));
        let again = process.receives_answer(at, key, peer);
        assert_eq!(again.device, Some(key));
        assert!(again.hops <= 1, "{again:?}");
    }
}

#[test]
fn an_unknown_peer_is_looked_up_at_every_arbiter_once() {
    let mut process = Process::of(5);
    let at = process.shard_map.arbiters().nth(2).unwrap();
    let ended = process.receives_answer(at, key(0), peer(0));
    assert_eq!((ended.device, ended.hops), (None, 4));
}

#[test]
fn a_wrongly_claimed_name_does_not_hide_the_device_at_the_peer() {
    let mut process = Process::of(8);
    let arbiters: Vec<ArbiterId> = process.shard_map.arbiters().collect();
    let (device, peer) = (key(0), peer(0));
    process.binds(device, peer);
    for (number, at) in (1..64).zip(arbiters.iter().copied().cycle()) {
        process.receives_update(at, key(number), peer);
        assert_eq!(
            process.receives_answer(at, device, peer).device,
            Some(device)
        );
    }
}

#[test]
fn of_two_devices_at_a_peer_the_one_seen_last_is_looked_up_first() {
    let mut process = Process::of(2);
    let at = process.shard_map.arbiters().next().unwrap();
    let early = (0..)
        .map(key)
        .find(|key| process.shard_map.arbiter_of(key.shard()) == at);
    let late = (0..)
        .map(key)
        .find(|key| process.shard_map.arbiter_of(key.shard()) != at);
    let (early, late) = (early.unwrap(), late.unwrap());
    for device in [early, late, early, late] {
        process.receives_update(at, device, peer(0));
        process.binds(device, peer(0));
        assert_eq!(
            process.receives_answer(at, device, peer(0)).device,
            Some(device)
        );
    }
}

#[test]
fn a_device_is_reached_over_the_session_that_it_speaks_over_and_not_over_one_for_downloads() {
    let shard_map = ShardMap::among(3);
    let arbiter = |number| shard_map.numbered(number).unwrap();
    let mut router = Router::new(arbiter(0), shard_map);
    let mut heard = |at: u16, path: &[&str]| {
        let token = Token::from_u64(7);
        let message = Message::request(MessageKind::Confirmable, Code::GET, MessageId(1), token);
        let message = message.with_uri_path(path.iter().copied());
        let number = arbiter(at).datagram_number(1);
        let datagram = Datagram::new(number, peer(1).of_device(key(1)), message);
        router.note_association(key(1), &Inbound::BootstrapOnly(datagram));
        router.association_home(key(1)).map(ArbiterId::number)
    };
    let campaign = CampaignId::from_bytes([7; 16]).to_string();
    let image = ImageKey::of(&[1; 16], 3).to_string();
    let download = ["firmware", &campaign, &image];
    assert_eq!(heard(2, &download), None);
    assert_eq!(heard(1, &["rd"]), Some(1));
    assert_eq!(heard(2, &download), Some(1));
    assert_eq!(heard(2, &["rd"]), Some(2));
}

fn key(number: u32) -> DeviceKey {
    let customer = CustomerId::parse("acme").unwrap();
    let device = DeviceId::parse(&format!("meter-{number}")).unwrap();
    DeviceKey::of(&customer, &device)
}

fn peer(number: u32) -> Peer {
    Peer::plain(SocketAddr::from((
        Ipv4Addr::from_bits(0x0A00_0000 + number),
        5683,
    )))
}

fn datagram(peer: Peer) -> Datagram {
    let message = Message::acknowledgement(MessageId(1));
    Datagram::new(0, peer, message)
}
