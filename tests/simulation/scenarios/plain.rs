//! Devices of plain CoAP and UDP: published once, requested in turn, identified by address.

use std::num::NonZeroU16;

use engine::PathAndQuery;
use engine::action::{
    CoapRequest, Content, ContentEncoding, Method, NewAction, Protocol, Request, Status, UdpRequest,
};
use engine::arbiter::input::DeviceCommand;
use harness::device::resource::AnswerMode as Manner;
use protocol::coap::message::MessageKind;

use super::{HOUR, MINUTE, S, World, ZONE, attempts, now, read};
use crate::fleet::{COAP_PORT, PLAIN_PATHS, SHARING};
use crate::settings::{Kinds, Shared, WorldSettings};

/// A device without LwM2M.
const PUMP: usize = 2;

/// The port that requests to it go to.
const PORT: u16 = 5_003;

#[test]
fn posted_data_is_published_once() {
    let mut world = plain(Shared::No);
    world.faults.repeated_percent = 50;
    for filling in [0, 3_000] {
        let bytes = world.new_bytes(filling);
        world.posts(PUMP, MessageKind::Confirmable, ("flow", &bytes));
        world.pass(10 * MINUTE);
        assert_eq!(world.times_published(PUMP, Protocol::Coap, &bytes), 1);
    }
}

#[test]
fn data_is_not_acknowledged_before_it_is_published() {
    let mut world = plain(Shared::No);
    world.stall_the_disk_for(20 * S);
    let bytes = world.new_bytes(0);
    world.posts(PUMP, MessageKind::Confirmable, ("flow", &bytes));
    world.pass(S);
    world.crash_after(0);
    assert_eq!(world.times_published(PUMP, Protocol::Coap, &bytes), 0);
    world.pass(2 * MINUTE);
    assert_eq!(world.times_published(PUMP, Protocol::Coap, &bytes), 1);
}

#[test]
fn a_body_in_blocks_is_published_whole_or_not_at_all() {
    let mut world = plain(Shared::No);
    world.faults.lost_percent = 20;
    let whole = world.new_bytes(5_000);
    world.posts(PUMP, MessageKind::Confirmable, ("flow", &whole));
    world.pass(HOUR);
    assert_eq!(world.times_published(PUMP, Protocol::Coap, &whole), 1);
    // The service loses the part it received; the answer says so, and the device does not begin
    // again.
    world.faults.lost_percent = 0;
    let cut_off = world.new_bytes(50_000);
    world.posts(PUMP, MessageKind::Confirmable, ("flow", &cut_off));
    world.pass(3 * S);
    world.crash_after(0);
    world.pass(HOUR);
    assert_eq!(world.times_published(PUMP, Protocol::Coap, &cut_off), 0);
}

#[test]
fn unfinished_bodies_have_a_bound() {
    let mut world = plain(Shared::No);
    let fits = world.new_bytes(3_000);
    world.posts(PUMP, MessageKind::Confirmable, ("flow", &fits));
    world.pass(MINUTE);
    let dropped = |world: &World| -> u64 {
        let arbiters = world.service.arbiters();
        arbiters.map(|it| it.bodies_dropped()).sum()
    };
    assert_eq!(world.times_published(PUMP, Protocol::Coap, &fits), 1);
    assert_eq!(dropped(&world), 0);
    let exceeds = world.new_bytes(6_000);
    world.posts(PUMP, MessageKind::Confirmable, ("flow", &exceeds));
    world.pass(MINUTE);
    assert_eq!(world.times_published(PUMP, Protocol::Coap, &exceeds), 0);
    assert_eq!(dropped(&world), 1);
}

#[test]
fn data_of_several_possible_devices_is_published_for_none() {
    let mut world = plain(Shared::Yes);
    let (one, other) = SHARING;
    for who in [one, other] {
        let bytes = world.new_bytes(0);
        world.posts(who, MessageKind::Confirmable, ("flow", &bytes));
        world.throws(who, &bytes);
        world.pass(MINUTE);
        for by in [one, other] {
            assert_eq!(world.times_published(by, Protocol::Coap, &bytes), 0);
            assert_eq!(world.times_published(by, Protocol::Udp, &bytes), 0);
            assert_eq!(world.disk.durable.first_contacts(by), 0);
        }
    }
    assert_eq!(world.census.ambiguous, 2, "each post is refused");
}

#[test]
fn any_uplink_releases_what_waits() {
    let mut world = plain(Shared::No);
    let fetched = world.create_for(PUMP, coap(Method::Get, None));
    let thrown = world.create_for(PUMP, udp("go"));
    let changed = world.create_for(PUMP, coap(Method::Put, Some("22")));
    for id in [fetched, thrown, changed] {
        assert_eq!(world.status_for(PUMP, id), Status::Scheduled);
    }
    world.throws(PUMP, b"");
    world.pass(MINUTE);
    for id in [fetched, thrown, changed] {
        assert_eq!(world.status_for(PUMP, id), Status::Succeeded);
    }
    let held = world.fleet.member(PUMP).machine.content(PLAIN_PATHS[0]);
    assert_eq!(held, Some(b"22".as_slice()));
    assert_eq!(world.disk.durable.first_contacts(PUMP), 1);
}

#[test]
fn data_releases_requests_over_lwm2m() {
    let mut world = plain(Shared::No);
    let both = 1;
    let zone = world.create_for(both, read(ZONE));
    let socket = world.fleet.plain_socket_of(both).expect("it has one");
    let bytes = world.new_bytes(0);
    world.posts(socket, MessageKind::Confirmable, ("flow", &bytes));
    world.pass(MINUTE);
    assert_eq!(world.status_for(both, zone), Status::Succeeded);
}

#[test]
fn nothing_goes_to_another_address() {
    let mut world = plain(Shared::No);
    world.answer_plain(PUMP, Manner::Silent);
    let id = world.create_for(PUMP, now(coap(Method::Get, None)));
    world.pass(S);
    // A repetition could reach whichever device has the address now.
    world.readdress(PUMP);
    world.pass(5 * MINUTE);
    assert_eq!(world.laws.attempts_sent(id), 1);
    assert_eq!(world.status_for(PUMP, id), Status::Failed);
}

#[test]
fn a_datagram_leaves_once_or_fails() {
    let mut world = plain(Shared::No);
    world.faults.refused_percent = 100;
    let refused = world.create_for(PUMP, now(udp("go")));
    assert_eq!(world.status_for(PUMP, refused), Status::Failed);
    world.faults.refused_percent = 0;
    // The disk applied the batch before the datagram, but no receipt was sent.
    world.create_for(PUMP, now(udp("first")));
    world.stall_the_disk_for(20 * S);
    let call = world.ask(PUMP, DeviceCommand::Submit(now(udp("again"))));
    world.pass(S);
    world.crash_after(1);
    world.pass(MINUTE);
    assert_eq!(world.callers.answer(call), None);
    let actions = world.disk.durable.actions(PUMP);
    let statuses: Vec<Status> = actions.map(|action| action.status).collect();
    assert_eq!(
        statuses,
        [Status::Failed, Status::Succeeded, Status::Failed]
    );
}

#[test]
fn each_attempt_over_coap_waits_for_an_uplink() {
    let mut world = plain(Shared::No);
    world.answer_plain(PUMP, Manner::AcknowledgeOnly);
    let id = world.create_for(PUMP, now(attempts(3, coap(Method::Get, None))));
    for round in 1..=4 {
        world.pass(10 * MINUTE);
        assert_eq!(world.laws.attempts_sent(id), round.min(3));
        world.throws(PUMP, b"");
    }
    assert_eq!(world.status_for(PUMP, id), Status::Failed);
}

#[test]
fn an_incomplete_body_is_given_up() {
    let mut world = plain(Shared::No);
    let text = "a line ".repeat(500);
    let id = world.create_for(PUMP, now(coap(Method::Put, Some(&text))));
    world.pass(S / 5);
    world.switch_off(PUMP);
    world.pass(4 * MINUTE);
    assert_eq!(world.status_for(PUMP, id), Status::InProgress);
    world.pass(2 * MINUTE);
    assert_eq!(world.status_for(PUMP, id), Status::Failed);
    assert_eq!(world.census.transfers_given_up, 1);
}

#[test]
fn a_plain_device_leaves_nothing_in_memory() {
    let mut world = plain(Shared::No);
    let bytes = world.new_bytes(3_000);
    world.posts(PUMP, MessageKind::Confirmable, ("flow", &bytes));
    world.create_for(PUMP, now(coap(Method::Get, None)));
    world.pass(S);
    assert!(world.service.machine(PUMP).is_some());
    world.pass(MINUTE);
    // A body whose further blocks never come.
    let bytes = world.new_bytes(30_000);
    world.posts(PUMP, MessageKind::Confirmable, ("flow", &bytes));
    world.pass(2 * S);
    world.switch_off(PUMP);
    world.pass(26 * HOUR);
    assert!(world.service.machine(PUMP).is_none(), "it is offline");
}

/// A still world of five devices of many kinds, all of them switched on.
fn plain(shared: Shared) -> World {
    let mut world = World::with(WorldSettings {
        kinds: Kinds::Many,
        shared,
        ..WorldSettings::still(5)
    });
    for who in 0..world.fleet.count() {
        world.switch_on(who);
    }
    world.pass(MINUTE);
    world
}

fn coap(method: Method, text: Option<&str>) -> NewAction {
    let content = text.map(content);
    let request = CoapRequest {
        method,
        port: port(),
        target: PathAndQuery::parse(PLAIN_PATHS[0]).unwrap(),
        content,
    };
    let request = Request::Coap(request);
    NewAction {
        request,
        ..read(ZONE)
    }
}

fn udp(text: &str) -> NewAction {
    let (content, port) = (content(text), port());
    let request = Request::Udp(UdpRequest { content, port });
    NewAction {
        request,
        ..read(ZONE)
    }
}

fn content(text: &str) -> Content {
    Content::parse(ContentEncoding::String, text).unwrap()
}

fn port() -> NonZeroU16 {
    assert_ne!(PORT, COAP_PORT);
    NonZeroU16::new(PORT).unwrap()
}

impl World {
    fn times_published(&self, who: usize, protocol: Protocol, bytes: &[u8]) -> usize {
        self.disk
            .durable
            .history(who)
            .times_published(protocol, bytes)
    }

    fn answer_plain(&mut self, who: usize, behaviour: Manner) {
        let machine = &mut self.fleet.member_mut(who).machine;
        machine.answer_plain_with(PLAIN_PATHS[0], behaviour);
    }
}
