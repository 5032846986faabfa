//! Is a plain device one device, whichever socket hears it? Four arbiters share each address, and
//! the kernel chooses among their sockets by the port a device comes from.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;

use super::{FIRST_CONTACT, ID, IP, Scene};
use crate::vocabulary::blockwise::{blocks, body, size};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{Told, UdpDevice, answer, coap, data, datagram, path_of};
use crate::vocabulary::wire::{Wire, update};

const FOUR: (&str, &str) = ("SIGNALBOX_ARBITERS", "4");

/// Ports a device comes from: were the sockets dealt by lot, all would be one arbiter's in one run
/// of a million.
const PORTS: usize = 11;

#[test]
fn what_a_device_says_from_many_ports_is_told_in_the_order_it_was_thanked_for() {
    let scene = Scene::with(&[FOUR]);
    let mut expected = Vec::new();
    for number in 0..PORTS {
        let (over_coap, over_udp) = (format!("coap {number}"), format!("udp {number}"));
        let wire = Wire::from(IP, &scene.service);
        let said = data("t", over_coap.clone(), 1);
        assert_eq!(wire.ask(&said).code, Code::CHANGED);
        assert_eq!(wire.ask(&said).code, Code::CHANGED, "it is one message");
        expected.push(Told::over_coap("t", over_coap));
        UdpDevice::from(IP, &scene.service).say(over_udp.as_bytes());
        expected.push(Told::over_udp(over_udp));
        assert_eq!(scene.caller.once_told(ID, expected.len()), expected);
    }
    assert_eq!(scene.logged(ID, FIRST_CONTACT), 1);
}

#[test]
fn a_device_is_asked_at_every_port_and_its_answers_find_their_request() {
    let scene = Scene::with(&[FOUR]);
    for number in 0..PORTS {
        let wire = Wire::from(IP, &scene.service);
        let id = scene.ask(&coap("GET", &format!("/{number}"), wire.port()));
        let asked = wire.hear_request();
        assert_eq!(path_of(&asked), format!("/{number}"));
        let said = answer(&asked, Code::CONTENT)
            .with_content_format(ContentFormat::TEXT)
            .with_payload(number.to_string());
        wire.say(&said.encode());
        let action = scene.caller.final_action(&id);
        let payload = &action["resultData"]["payload"];
        assert_eq!(*payload, number.to_string(), "{action}");
        let udp = UdpDevice::from(IP, &scene.service);
        let id = scene.tell(&datagram("now", udp.port()));
        assert_eq!(udp.hear(), b"now");
        assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
    }
}

#[test]
fn any_port_wakes_a_device() {
    let scene = Scene::with(&[FOUR]);
    for number in 0..PORTS {
        let text = format!("number {number}");
        let id = scene.tell(&when_active(datagram(&text, scene.udp.port())));
        if number % 2 == 0 {
            UdpDevice::from(IP, &scene.service).say(b"awake");
        } else {
            let wire = Wire::from(IP, &scene.service);
            assert_eq!(wire.ask(&data("t", "awake", 1)).code, Code::CHANGED);
        }
        assert_eq!(scene.udp.hear(), text.as_bytes());
        assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
    }
}

#[test]
fn a_body_in_blocks_is_put_together_wherever_its_blocks_are_heard() {
    let scene = Scene::with(&[FOUR]);
    let mut expected = Vec::new();
    for number in 0..PORTS {
        let whole = body(300 + number);
        let wire = Wire::from(IP, &scene.service);
        let mut last = None;
        for (id, (block, part)) in (1..).zip(blocks(&whole, size(128))) {
            let said = data("t", part, id).with_block1(block);
            last = Some(wire.ask(&said).code);
        }
        assert_eq!(last, Some(Code::CHANGED));
        expected.push(Told::over_coap("t", whole));
    }
    assert_eq!(scene.caller.told(ID), expected);
}

#[test]
fn a_registered_device_may_be_asked_over_coap_where_it_is_registered() {
    let scene = Scene::with(&[FOUR]);
    for number in 0..3 {
        let wire = Wire::from(IP, &scene.service);
        let location = wire.register(ID, 1);
        let id = scene.ask(&coap("GET", "/own", wire.port()));
        let asked = wire.hear_request();
        assert_eq!(path_of(&asked), "/own");
        wire.say(&answer(&asked, Code::CONTENT).encode());
        let action = scene.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{number}: {action}");

        // It updates its registration from another port while it is asked at a third.
        let id = scene.ask(&coap("GET", "/aside", scene.coap.port()));
        let asked = scene.coap.hear_request();
        let moved = Wire::from(IP, &scene.service);
        assert_eq!(moved.ask(&update(&location, 2)).code, Code::CHANGED);
        scene.coap.say(&answer(&asked, Code::CONTENT).encode());
        let action = scene.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{number}: {action}");
        assert_eq!(moved.ask(&update(&location, 3)).code, Code::CHANGED);
    }
}
