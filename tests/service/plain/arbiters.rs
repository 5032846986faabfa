//! Is a plain device one device, whichever socket receives its datagrams? Four arbiters share each
//! address, and the kernel chooses among their sockets by the port of the device.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;

use super::{FIRST_CONTACT, ID, IP, PlainService};
use crate::vocabulary::blockwise::{blocks, body, size};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{ReportedData, UdpDevice, answer, coap, data, datagram, path_of};
use crate::vocabulary::wire::{DeviceSocket, update};

const FOUR: (&str, &str) = ("SIGNALBOX_ARBITERS", "4");

/// How many ports a device uses. If the kernel chose sockets at random, all ports would reach one
/// arbiter in one run of a million.
const PORTS: usize = 11;

#[test]
fn data_from_many_ports_is_published_in_the_order_of_its_acknowledgements() {
    let setup = PlainService::with(&[FOUR]);
    let mut expected = Vec::new();
    for number in 0..PORTS {
        let (over_coap, over_udp) = (format!("coap {number}"), format!("udp {number}"));
        let wire = DeviceSocket::from(IP, &setup.service);
        let message = data("t", over_coap.clone(), 1);
        assert_eq!(wire.ask(&message).code, Code::CHANGED);
        assert_eq!(wire.ask(&message).code, Code::CHANGED, "it is one message");
        expected.push(ReportedData::over_coap("t", over_coap));
        UdpDevice::from(IP, &setup.service).send(over_udp.as_bytes());
        expected.push(ReportedData::over_udp(over_udp));
        assert_eq!(setup.caller.once_reported(ID, expected.len()), expected);
    }
    assert_eq!(setup.logged(ID, FIRST_CONTACT), 1);
}

#[test]
fn a_device_receives_requests_at_every_port_and_its_answers_find_their_request() {
    let setup = PlainService::with(&[FOUR]);
    for number in 0..PORTS {
        let wire = DeviceSocket::from(IP, &setup.service);
        let id = setup.create_coap(&coap("GET", &format!("/{number}"), wire.port()));
        let request = wire.receive_request();
        assert_eq!(path_of(&request), format!("/{number}"));
        let message = answer(&request, Code::CONTENT)
            .with_content_format(ContentFormat::TEXT)
            .with_payload(number.to_string());
        wire.send(&message.encode());
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
fn an_uplink_from_any_port_releases_the_queue() {
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
fn a_body_in_blocks_is_assembled_whichever_sockets_receive_its_blocks() {
    let setup = PlainService::with(&[FOUR]);
    let mut expected = Vec::new();
    for number in 0..PORTS {
        let whole = body(300 + number);
        let wire = DeviceSocket::from(IP, &setup.service);
        let mut last = None;
        for (id, (block, part)) in (1..).zip(blocks(&whole, size(128))) {
            let message = data("t", part, id).with_block1(block);
            last = Some(wire.ask(&message).code);
        }
        assert_eq!(last, Some(Code::CHANGED));
        expected.push(ReportedData::over_coap("t", whole));
    }
    assert_eq!(setup.caller.reported(ID), expected);
}

#[test]
fn a_registered_device_may_receive_coap_requests_at_its_peer() {
    let setup = PlainService::with(&[FOUR]);
    for number in 0..3 {
        let wire = DeviceSocket::from(IP, &setup.service);
        let location = wire.register(ID, 1);
        let id = setup.create_coap(&coap("GET", "/own", wire.port()));
        let request = wire.receive_request();
        assert_eq!(path_of(&request), "/own");
        wire.send(&answer(&request, Code::CONTENT).encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{number}: {action}");

        // The device updates its registration from one port while it receives a request at another.
        let id = setup.create_coap(&coap("GET", "/aside", setup.coap.port()));
        let request = setup.coap.receive_request();
        let moved = DeviceSocket::from(IP, &setup.service);
        assert_eq!(moved.ask(&update(&location, 2)).code, Code::CHANGED);
        setup.coap.send(&answer(&request, Code::CONTENT).encode());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{number}: {action}");
        assert_eq!(moved.ask(&update(&location, 3)).code, Code::CHANGED);
    }
}
