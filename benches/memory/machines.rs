//! What does the machine of a device cost, apart from its actor?

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use engine::action::{Lwm2mRequest, Mode, NewAction, Request};
use engine::datagram::Datagram;
use engine::device::Device;
use engine::device::identity::Identity;
use engine::device::objects::ObjectLists;
use engine::device::record::DeviceRecord;
use engine::effect::Effects;
use engine::ids::TraceId;
use engine::location::Location;
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::policy::CustomerPolicy;
use protocol::coap::dedup::DedupWindow;
use protocol::coap::message::{Message, MessageId};

use crate::{fleet, kept, resident, show, talk};

/// The time of the measurement.
const NOW: Timestamp = Timestamp::from_ms(1_795_219_200_000);

/// Measures and prints.
pub(crate) fn run(devices: u32) {
    let sizes = [
        ("`Device`, of that", size_of::<Device>()),
        (
            "- its record with the registration",
            size_of::<DeviceRecord>(),
        ),
        ("- what its peer sent lately", size_of::<DedupWindow>()),
        ("`Identity`, boxed, without its text", size_of::<Identity>()),
    ];
    for (what, bytes) in sizes {
        println!("| {what} | {bytes} |");
    }
    let mut m = Moment::new(NOW, 7);
    let before = resident();
    let lists: Vec<_> = (0..devices).map(|_| kept::links()).collect();
    show("list of objects that nobody shares", before, devices);
    fleet(&mut m, devices);
    drop(lists);
}

fn fleet(m: &mut Moment, devices: u32) {
    let policy = Arc::new(CustomerPolicy::of_rules(Arc::new(kept::rules())));
    let mut lists = ObjectLists::default();
    let mut fleet = Vec::with_capacity(devices as usize);
    let before = resident();
    for number in 0..devices {
        let mut device = Device::restore(m, Arc::clone(&policy), kept::restored(number, NOW));
        device.share_objects(&mut lists);
        fleet.push(device);
    }
    show("machine, restored", before, devices);
    for (device, number) in fleet.iter_mut().zip(0..) {
        update(device, m, number);
    }
    show("machine, after an update", before, devices);
    for (device, number) in fleet.iter_mut().zip(0..) {
        register(device, m, number);
        device.share_objects(&mut lists);
    }
    show("machine, after it registered anew", before, devices);
    for device in &mut fleet {
        let submitted = device.submit(m, read_when_active(), &mut Effects::new());
        submitted.expect("the device takes one");
    }
    show("machine, with a request that waits", before, devices);
}

fn update(device: &mut Device, m: &mut Moment, number: u32) {
    let location = Location::new(device.key(), number).to_string();
    let update = talk::update(["rd", &location], MessageId(1));
    deliver(device, m, number, update);
    let expires_at = device.next_timeout().expect("a registration lapses");
    assert!(expires_at > NOW.plus_s(80_000), "the update counted");
}

fn register(device: &mut Device, m: &mut Moment, number: u32) {
    let out = deliver(device, m, number, talk::register(number, MessageId(2)));
    assert!(out.as_slice().len() > 2, "the registration counted");
}

fn deliver(device: &mut Device, m: &mut Moment, number: u32, message: Message) -> Effects {
    let address = SocketAddr::new(IpAddr::V4(fleet::address(number)), 5_683);
    let datagram = Datagram::new(0, Peer::plain(address), message);
    let mut out = Effects::new();
    device.handle_datagram(m, &datagram, &mut out);
    out
}

fn read_when_active() -> NewAction {
    NewAction {
        request: Request::Lwm2m(Lwm2mRequest::Read(
            "/3303/0/5700".parse().expect("three numbers are a path"),
        )),
        mode: Mode::SendWhenActive,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}
