//! Whose is what comes without a registration? The address says, if it is one device's alone.

use protocol::coap::code::Code;
use serde_json::json;

use super::{ELSEWHERE, ID, IP, Scene};
use crate::metrics::devices::are;
use crate::scene::{error_codes, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::http::Request;
use crate::vocabulary::plain::{Told, UdpDevice, answer, coap, data, datagram};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{Wire, deregister};

const STRANGER: &str = "CoAP[UnauthorizedDevice]";

#[test]
fn an_address_that_no_device_has_is_nobody_s() {
    let mut scene = Scene::new();
    let stranger = Wire::from(ELSEWHERE, &scene.service);
    let silent = UdpDevice::from(ELSEWHERE, &scene.service);
    for id in 1..=20 {
        assert_eq!(
            stranger.ask(&data("t", "21.5", id)).code,
            Code::UNAUTHORIZED
        );
        silent.say(b"21.5");
    }
    scene.post("mine");
    scene.udp.say(b"mine");
    let told = scene.caller.once_told(ID, 2);
    assert_eq!(told, [Told::over_coap("t", "mine"), Told::over_udp("mine")]);
    assert_eq!(scene.logged(ID, STRANGER), 0, "it is nobody's");
    assert_eq!(silent.heard(), Vec::<Vec<u8>>::new(), "UDP is not answered");
}

#[test]
fn an_address_that_several_devices_have_is_nobody_s() {
    let mut scene = Scene::new();
    let rival = Caller::of_new_customer(&scene.service, "Umbrella");
    scene.post("mine");
    scene.udp.say(b"mine");
    scene.caller.once_told(ID, 2);
    rival.create_device("theirs", IP);
    for id in 101..=120 {
        assert_eq!(
            scene.coap.ask(&data("t", "whose?", id)).code,
            Code::UNAUTHORIZED
        );
        scene.udp.say(b"whose?");
    }
    // Each was judged before the address is the device's alone again.
    let dropped = ("signalbox_datagrams_turned_away_total", &[][..], 20.0);
    are(&scene.service, &[dropped]);
    let logged = |caller: &Caller| {
        let entries = caller.log_entries().into_iter();
        entries.filter(|entry| entry["message"] == STRANGER).count()
    };
    assert_eq!(logged(&scene.caller) + logged(&rival), 1, "once a minute");
    assert_eq!(rival.told("theirs"), []);
    assert_eq!(scene.caller.told(ID).len(), 2);

    rival.move_device("theirs", Some(ELSEWHERE));
    scene.post("mine again");
    let theirs = Wire::from(ELSEWHERE, &scene.service);
    assert_eq!(theirs.ask(&data("t", "theirs", 1)).code, Code::CHANGED);
    assert_eq!(rival.told("theirs"), [Told::over_coap("t", "theirs")]);
    assert_eq!(scene.caller.told(ID)[2], Told::over_coap("t", "mine again"));
    scene.udp.say(b"mine again");
    let told = scene.caller.once_told(ID, 4);
    assert_eq!(
        told[2..],
        [
            Told::over_coap("t", "mine again"),
            Told::over_udp("mine again")
        ]
    );
}

#[test]
fn a_device_is_known_by_its_address_of_now() {
    let mut scene = Scene::new();
    scene.post("old");
    scene.caller.move_device(ID, Some(ELSEWHERE));
    let moved = Wire::from(ELSEWHERE, &scene.service);
    let moved_udp = UdpDevice::from(ELSEWHERE, &scene.service);
    assert_eq!(
        scene.coap.ask(&data("t", "left", 101)).code,
        Code::UNAUTHORIZED
    );
    scene.udp.say(b"left");
    assert_eq!(moved.ask(&data("t", "new", 1)).code, Code::CHANGED);
    moved_udp.say(b"new");
    let told = ["old", "new"].map(|it| Told::over_coap("t", it));
    let told: Vec<_> = told.into_iter().chain([Told::over_udp("new")]).collect();
    assert_eq!(scene.caller.once_told(ID, 3), told);
    scene.crash();
    assert_eq!(
        moved.ask_until_answered(&data("t", "after", 2)).code,
        Code::CHANGED
    );
    let left = scene.coap.ask_until_answered(&data("t", "left", 102));
    assert_eq!(left.code, Code::UNAUTHORIZED);

    scene.caller.move_device(ID, None);
    assert_eq!(moved.ask(&data("t", "nowhere", 3)).code, Code::UNAUTHORIZED);
    scene.caller.move_device(ID, Some(IP));
    scene.post("home");
    let device = format!("{API}/devices/{ID}");
    assert_eq!(scene.caller.request("DELETE", &device).status, 204);
    assert_eq!(
        scene.coap.ask(&data("t", "gone", 104)).code,
        Code::UNAUTHORIZED
    );
    scene.caller.create_device("heir", IP);
    assert_eq!(scene.coap.ask(&data("t", "heir", 105)).code, Code::CHANGED);
    assert_eq!(scene.caller.told("heir"), [Told::over_coap("t", "heir")]);
}

#[test]
fn where_a_device_is_registered_it_is_known_without_an_address_of_its_own() {
    let (service, caller) = start(&[("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")]);
    let body = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &body).expect(201);
    let wire = Wire::from(IP, &service);
    assert_eq!(wire.ask(&data("t", "before", 1)).code, Code::UNAUTHORIZED);
    let location = wire.register(ID, 2);
    assert_eq!(wire.ask(&data("t", "registered", 3)).code, Code::CHANGED);
    let other_port = Wire::from(IP, &service);
    assert_eq!(
        other_port.ask(&data("t", "another", 1)).code,
        Code::UNAUTHORIZED
    );
    assert_eq!(wire.ask(&deregister(&location, 4)).code, Code::DELETED);
    assert_eq!(wire.ask(&data("t", "after", 5)).code, Code::UNAUTHORIZED);
    assert_eq!(caller.told(ID), [Told::over_coap("t", "registered")]);
}

#[test]
fn devices_that_share_an_address_are_each_known_where_they_registered() {
    let (service, caller) = start(&[]);
    let wires = ["left", "right"].map(|name| {
        caller.create_device(name, IP);
        let wire = Wire::from(IP, &service);
        wire.register(name, 1);
        wire
    });
    for (wire, name) in wires.iter().zip(["left", "right"]) {
        assert_eq!(wire.ask(&data("t", name, 2)).code, Code::CHANGED);
        assert_eq!(caller.told(name), [Told::over_coap("t", name)]);
    }
    let neither = Wire::from(IP, &service);
    assert_eq!(
        neither.ask(&data("t", "whose?", 1)).code,
        Code::UNAUTHORIZED
    );
}

#[test]
fn an_address_may_be_written_as_one_of_the_newer_protocol() {
    let scene = Scene::new();
    scene.caller.create_device("mapped", "::ffff:127.0.0.14");
    let wire = Wire::from("127.0.0.14", &scene.service);
    assert_eq!(wire.ask(&data("t", "here", 1)).code, Code::CHANGED);
    let udp = UdpDevice::from("127.0.0.14", &scene.service);
    udp.say(b"here, too");
    let told = [Told::over_coap("t", "here"), Told::over_udp("here, too")];
    assert_eq!(scene.caller.once_told("mapped", 2), told);
    let body = datagram("there", udp.port());
    scene.caller.create_over("UDP", "mapped", &body);
    assert_eq!(udp.hear(), b"there");
    let body = coap("GET", "/there", wire.port());
    let id = scene.caller.create_over("COAP", "mapped", &body);
    let asked = wire.hear_request();
    wire.say(&answer(&asked, Code::CONTENT).encode());
    assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
}

#[test]
fn a_device_without_an_address_of_its_own_is_reached_where_it_is_registered() {
    let (service, caller) = start(&[("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")]);
    let body = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &body).expect(201);
    let (wire, udp) = (Wire::from(IP, &service), UdpDevice::from(IP, &service));
    let listener = Wire::from(IP, &service);
    let location = wire.register(ID, 1);
    let bodies = [
        ("UDP", datagram("there", udp.port())),
        ("COAP", coap("GET", "/there", listener.port())),
    ];
    let ids = bodies
        .clone()
        .map(|(protocol, body)| caller.create_over(protocol, ID, &body));
    assert_eq!(udp.hear(), b"there");
    let asked = listener.hear_request();
    listener.say(&answer(&asked, Code::CONTENT).encode());
    for id in ids {
        assert_eq!(caller.final_action(&id)["status"], "SUCCEEDED");
    }
    assert_eq!(wire.ask(&deregister(&location, 2)).code, Code::DELETED);
    for (protocol, body) in bodies {
        let refused = caller.try_over(protocol, ID, &body).expect(409);
        assert_eq!(error_codes(&refused), ["DEVICE_HAS_NO_ADDRESS"]);
    }
}

#[test]
fn what_is_dropped_is_counted_for_the_operator() {
    let scene = Scene::new();
    let stranger = UdpDevice::from(ELSEWHERE, &scene.service);
    for _ in 0..5 {
        stranger.say(b"21.5");
    }
    until("a figure", || {
        let told = Request::new("GET", "/metrics").send(scene.service.http);
        let samples = told.text().lines();
        let dropped = samples.filter(|line| line.contains("fate=\"unknown_address\""));
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        (dropped.map(value).sum::<f64>() == 5.0).then_some(())
    });
}
