//! Is a plain device one device, whichever socket hears it? Four arbiters share each address, and
//! the kernel chooses among their sockets by the port a device comes from.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;

use super::{FIRST_CONTACT, ID, IP, PlainService};
use crate::vocabulary::blockwise::{blocks, body, size};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{ReportedData, UdpDevice, answer, coap, data, datagram, path_of};
use crate::vocabulary::wire::{DeviceSocket, update};

const FOUR: (&str, &str) = ("SIGNALBOX_ARBITERS", "4");

/// Ports a device comes from: were the sockets dealt by lot, all would be one arbiter's in one run
/// of a million.
const PORTS: usize = 11;

#[test]
fn what_a_device_says_from_many_ports_is_told_in_the_order_it_was_thanked_for() {
    let setup = PlainService::with(&[FOUR]);
    let mut expected = Vec::new();
    for number in 0..PORTS {
        let (over_coap, over_udp) = (format!("coap {number}"), format!("udp {number}"));
        let wire = DeviceSocket::from(IP, &setup.service);
        let said = data("t", over_coap.clone(), 1);
        assert_eq!(wire.ask(&said).code, Code::CHANGED);
        assert_eq!(wire.ask(&said).code, Code::CHANGED, "it is one message");
        expected.push(ReportedData::over_coap("t", over_coap));
        UdpDevice::from(IP, &setup.service).send(over_udp.as_bytes());
        expected.push(ReportedData::over_udp(over_udp));
        assert_eq!(setup.caller.once_reported(ID, expected.len()), expected);
    }
    assert_eq!(setup.logged(ID, FIRST_CONTACT), 1);
}

#[test]
fn a_device_is_asked_at_every_port_and_its_answers_find_their_request() {
    let setup = PlainService::with(&[FOUR]);
    for number in 0..PORTS {
        let wire = DeviceSocket::from(IP, &setup.service);
        let id = setup.create_coap(&coap("GET", &format!("/{number}"), wire.port()));
        let asked = wire.receive_request();
        assert_eq!(path_of(&asked), format!("/{number}"));
        let said = answer(&asked, Code::CONTENT)
            .with_content_format(ContentFormat::TEXT)
            .with_payload(number.to_string());
        wire.send(&said.encode());
        let action = setup.caller.final_action(&id);
        let payload = &action["resultData"]["payload"];
        assert_eq!(*payload, number.to_string(), "{action}");
        let udp = UdpDevice::from(IP, &setup.service);
        let id = setup.create_udp(&datagram("now", udp.port()));
        assert_eq!(udp.receive(), b"now");
        assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    }
}

#[test]
fn any_port_wakes_a_device() {
    let setup = PlainService::with(&[FOUR]);
    for number in 0..PORTS {
        let text = format!("number {number}");
        let id = setup.create_udp(&when_active(datagram(&text, setup.udp.port())));
        if number % 2 == 0 {
            UdpDevice::from(IP, &setup.service).send(b"awake");
        } else {
            let wire = DeviceSocket::from(IP, &setup.service);
            assert_eq!(wire.ask(&data("t", "awake", 1)).code, Code::CHANGED);
        }
        assert_eq!(setup.udp.receive(), text.as_bytes());
        assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    }
}

#[test]
fn a_body_in_blocks_is_put_together_wherever_its_blocks_are_heard() {
    let setup = PlainService::with(&[FOUR]);
    let mut expected = Vec::new();
    for number in 0..PORTS {
        let whole = body(300 + number);
        let wire = DeviceSocket::from(IP, &setup.service);
        let mut last = None;
        for (id, (block, part)) in (1..).zip(blocks(&whole, size(128))) {
            let said = data("t", part, id).with_block1(block);
            last = Some(wire.ask(&said).code);
        }
        assert_eq!(last, Some(Code::CHANGED));
        expected.push(ReportedData::over_coap("t", whole));
    }
    assert_eq!(setup.caller.reported(ID), expected);
}

#[test]
fn a_registered_device_may_be_asked_over_coap_where_it_is_registered() {
    let setup = PlainService::with(&[FOUR]);
    for number in 0..3 {
        let wire = DeviceSocket::from(IP, &setup.service);
        let location = wire.register(ID, 1);
        let id = setup.create_coap(&coap("GET", "/own", wire.port()));
        let asked = wire.receive_request();
        assert_eq!(path_of(&asked), "/own");
        wire.send(&answer(&asked, Code::CONTENT).encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{number}: {action}");

        // It updates its registration from another port while it is asked at a third.
        let id = setup.create_coap(&coap("GET", "/aside", setup.coap.port()));
        let asked = setup.coap.receive_request();
        let moved = DeviceSocket::from(IP, &setup.service);
        assert_eq!(moved.ask(&update(&location, 2)).code, Code::CHANGED);
        setup.coap.send(&answer(&asked, Code::CONTENT).encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{number}: {action}");
        assert_eq!(moved.ask(&update(&location, 3)).code, Code::CHANGED);
    }
}
