//! Which device does data without a registration belong to? The one device with the sender's
//! address.

use protocol::coap::code::Code;
use serde_json::json;

use super::{ELSEWHERE, ID, IP, PlainService};
use crate::metrics::devices::are;
use crate::test_service::{error_codes, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::http::Request;
use crate::vocabulary::plain::{ReportedData, UdpDevice, answer, coap, data, datagram};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, deregister};

const STRANGER: &str = "CoAP[UnauthorizedDevice]";

#[test]
fn data_from_an_unknown_address_is_published_for_no_device() {
    let mut setup = PlainService::new();
    let stranger = DeviceSocket::from(ELSEWHERE, &setup.service);
    let silent = UdpDevice::from(ELSEWHERE, &setup.service);
    for id in 1..=20 {
        assert_eq!(
            stranger.ask(&data("t", "21.5", id)).code,
            Code::UNAUTHORIZED
        );
        silent.send(b"21.5");
    }
    setup.post("mine");
    setup.udp.send(b"mine");
    let reported = setup.caller.once_reported(ID, 2);
    assert_eq!(
        reported,
        [
            ReportedData::over_coap("t", "mine"),
            ReportedData::over_udp("mine")
        ]
    );
    assert_eq!(setup.logged(ID, STRANGER), 0, "it is nobody's");
    assert_eq!(
        silent.received(),
        Vec::<Vec<u8>>::new(),
        "UDP is not answered"
    );
}

#[test]
fn data_from_an_address_of_several_devices_is_published_for_no_device() {
    let mut setup = PlainService::new();
    // Only devices of one customer may have one address.
    let rival = Caller::with_token(&setup.service, setup.caller.token());
    setup.post("mine");
    setup.udp.send(b"mine");
    setup.caller.once_reported(ID, 2);
    rival.create_device("theirs", IP);
    for id in 101..=120 {
        assert_eq!(
            setup.coap.ask(&data("t", "whose?", id)).code,
            Code::UNAUTHORIZED
        );
        setup.udp.send(b"whose?");
    }
    // Each datagram was handled before the address belongs to one device again.
    let dropped = ("signalbox_datagrams_dropped_total", &[][..], 20.0);
    are(&setup.service, &[dropped]);
    let logged = |caller: &Caller| {
        let entries = caller.log_entries().into_iter();
        entries.filter(|entry| entry["message"] == STRANGER).count()
    };
    assert_eq!(logged(&setup.caller), 1, "once a minute");
    assert_eq!(rival.reported("theirs"), []);
    assert_eq!(setup.caller.reported(ID).len(), 2);

    rival.move_device("theirs", Some(ELSEWHERE));
    setup.post("mine again");
    let theirs = DeviceSocket::from(ELSEWHERE, &setup.service);
    assert_eq!(theirs.ask(&data("t", "theirs", 1)).code, Code::CHANGED);
    assert_eq!(
        rival.reported("theirs"),
        [ReportedData::over_coap("t", "theirs")]
    );
    assert_eq!(
        setup.caller.reported(ID)[2],
        ReportedData::over_coap("t", "mine again")
    );
    setup.udp.send(b"mine again");
    let reported = setup.caller.once_reported(ID, 4);
    assert_eq!(
        reported[2..],
        [
            ReportedData::over_coap("t", "mine again"),
            ReportedData::over_udp("mine again")
        ]
    );
}

#[test]
fn a_device_is_identified_by_its_current_address() {
    let mut setup = PlainService::new();
    setup.post("old");
    setup.caller.move_device(ID, Some(ELSEWHERE));
    let moved = DeviceSocket::from(ELSEWHERE, &setup.service);
    let moved_udp = UdpDevice::from(ELSEWHERE, &setup.service);
    assert_eq!(
        setup.coap.ask(&data("t", "left", 101)).code,
        Code::UNAUTHORIZED
    );
    setup.udp.send(b"left");
    assert_eq!(moved.ask(&data("t", "new", 1)).code, Code::CHANGED);
    moved_udp.send(b"new");
    let reported = ["old", "new"].map(|it| ReportedData::over_coap("t", it));
    let reported: Vec<_> = reported
        .into_iter()
        .chain([ReportedData::over_udp("new")])
        .collect();
    assert_eq!(setup.caller.once_reported(ID, 3), reported);
    setup.crash();
    assert_eq!(
        moved.ask_until_answered(&data("t", "after", 2)).code,
        Code::CHANGED
    );
    let left = setup.coap.ask_until_answered(&data("t", "left", 102));
    assert_eq!(left.code, Code::UNAUTHORIZED);

    setup.caller.move_device(ID, None);
    assert_eq!(moved.ask(&data("t", "nowhere", 3)).code, Code::UNAUTHORIZED);
    setup.caller.move_device(ID, Some(IP));
    setup.post("home");
    let device = format!("{API}/devices/{ID}");
    assert_eq!(setup.caller.request("DELETE", &device).status, 204);
    assert_eq!(
        setup.coap.ask(&data("t", "gone", 104)).code,
        Code::UNAUTHORIZED
    );
    setup.caller.create_device("heir", IP);
    assert_eq!(setup.coap.ask(&data("t", "heir", 105)).code, Code::CHANGED);
    assert_eq!(
        setup.caller.reported("heir"),
        [ReportedData::over_coap("t", "heir")]
    );
}

#[test]
fn a_registered_device_is_identified_by_its_peer_if_it_has_no_address() {
    let (service, caller) = start(&[("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")]);
    let body = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &body).expect(201);
    let wire = DeviceSocket::from(IP, &service);
    assert_eq!(wire.ask(&data("t", "before", 1)).code, Code::UNAUTHORIZED);
    let location = wire.register(ID, 2);
    assert_eq!(wire.ask(&data("t", "registered", 3)).code, Code::CHANGED);
    let other_port = DeviceSocket::from(IP, &service);
    assert_eq!(
        other_port.ask(&data("t", "another", 1)).code,
        Code::UNAUTHORIZED
    );
    assert_eq!(wire.ask(&deregister(&location, 4)).code, Code::DELETED);
    assert_eq!(wire.ask(&data("t", "after", 5)).code, Code::UNAUTHORIZED);
    assert_eq!(
        caller.reported(ID),
        [ReportedData::over_coap("t", "registered")]
    );
}

#[test]
fn devices_that_share_an_address_are_identified_by_the_peers_of_their_registrations() {
    let (service, caller) = start(&[]);
    let wires = ["left", "right"].map(|name| {
        caller.create_device(name, IP);
        let wire = DeviceSocket::from(IP, &service);
        wire.register(name, 1);
        wire
    });
    for (wire, name) in wires.iter().zip(["left", "right"]) {
        assert_eq!(wire.ask(&data("t", name, 2)).code, Code::CHANGED);
        assert_eq!(caller.reported(name), [ReportedData::over_coap("t", name)]);
    }
    let neither = DeviceSocket::from(IP, &service);
    assert_eq!(
        neither.ask(&data("t", "whose?", 1)).code,
        Code::UNAUTHORIZED
    );
}

#[test]
fn an_address_may_be_written_as_ipv4_mapped_ipv6() {
    let setup = PlainService::new();
    setup.caller.create_device("mapped", "::ffff:127.0.0.14");
    let wire = DeviceSocket::from("127.0.0.14", &setup.service);
    assert_eq!(wire.ask(&data("t", "here", 1)).code, Code::CHANGED);
    let udp = UdpDevice::from("127.0.0.14", &setup.service);
    udp.send(b"here, too");
    let reported = [
        ReportedData::over_coap("t", "here"),
        ReportedData::over_udp("here, too"),
    ];
    assert_eq!(setup.caller.once_reported("mapped", 2), reported);
    let body = datagram("there", udp.port());
    setup.caller.create_over("UDP", "mapped", &body);
    assert_eq!(udp.receive(), b"there");
    let body = coap("GET", "/there", wire.port());
    let id = setup.caller.create_over("COAP", "mapped", &body);
    let request = wire.receive_request();
    wire.send(&answer(&request, Code::CONTENT).encode());
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
}

#[test]
fn a_device_without_an_address_is_reached_at_its_peer() {
    let (service, caller) = start(&[("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")]);
    let body = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &body).expect(201);
    let (wire, udp) = (
        DeviceSocket::from(IP, &service),
        UdpDevice::from(IP, &service),
    );
    let listener = DeviceSocket::from(IP, &service);
    let location = wire.register(ID, 1);
    let bodies = [
        ("UDP", datagram("there", udp.port())),
        ("COAP", coap("GET", "/there", listener.port())),
    ];
    let ids = bodies
        .clone()
        .map(|(protocol, body)| caller.create_over(protocol, ID, &body));
    assert_eq!(udp.receive(), b"there");
    let request = listener.receive_request();
    listener.send(&answer(&request, Code::CONTENT).encode());
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
fn dropped_datagrams_are_counted_for_the_operator() {
    let setup = PlainService::new();
    let stranger = UdpDevice::from(ELSEWHERE, &setup.service);
    for _ in 0..5 {
        stranger.send(b"21.5");
    }
    until("a figure", || {
        let metrics = Request::new("GET", "/metrics").send(setup.service.http);
        let samples = metrics.text().lines();
        let dropped = samples.filter(|line| line.contains("reason=\"unknown_address\""));
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        (dropped.map(value).sum::<f64>() == 5.0).then_some(())
    });
}
