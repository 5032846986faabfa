//! Is a datagram sent as its caller specified, from the service's own port, and once?

use serde_json::{Value, json};

use super::{ELSEWHERE, ID, PlainService, progress};
use crate::errors::check;
use crate::test_service::{error_codes, silent_device, with};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{UdpDevice, carrying, carrying_bytes, datagram};

/// Error codes with their fields.
type Faults = &'static [(&'static str, &'static str)];

#[test]
fn a_datagram_arrives_as_specified_and_from_the_service_s_own_port() {
    let setup = PlainService::new();
    let port = setup.udp.port();
    let every: Vec<u8> = (0..=255).collect();
    let target = json!({ "port": port });
    let cases: [(Value, Vec<u8>); 5] = [
        (datagram("on", port), b"on".to_vec()),
        (carrying(target.clone(), "gr\u{fc}n"), "gr\u{fc}n".into()),
        (carrying_bytes(target.clone(), &every), every),
        (carrying(target.clone(), &"x".repeat(508)), vec![b'x'; 508]),
        (carrying_bytes(target, &[7; 508]), vec![7; 508]),
    ];
    for (body, bytes) in cases {
        let id = setup.create_udp(&body);
        // The socket receives only datagrams from the port the service listens on.
        assert_eq!(setup.udp.receive(), bytes);
        let action = setup.caller.final_action(&id);
        assert_eq!(progress(&action), ("SUCCEEDED", 0), "{action}");
        assert_eq!(action["sendAttempts"], 1, "{action}");
        assert_eq!(action["protocol"], "UDP", "{action}");
        assert_eq!(action.get("resultData"), None, "{action}");
        for name in ["payload", "payloadType", "port"] {
            assert_eq!(action["requestData"][name], body[name], "{name}");
        }
        let events = action["timeline"].as_array().unwrap().iter();
        let events: Vec<String> = events.map(|it| text(&it["event"])).collect();
        assert_eq!(events, ["ATTEMPT_BEGUN", "DATAGRAM_SENT"], "{action}");
    }
}

#[test]
fn every_fault_of_a_body_is_reported_at_once_and_nothing_is_stored() {
    let setup = PlainService::new();
    let good = || datagram("x", 4_445);
    let cases: Vec<(Value, Faults)> = vec![
        (
            json!({}),
            &[
                ("REQUIRED", "payload"),
                ("REQUIRED", "payloadType"),
                ("REQUIRED", "port"),
            ],
        ),
        (with(good(), "port", 0), &[("OUT_OF_RANGE", "port")]),
        (with(good(), "port", 65_536), &[("OUT_OF_RANGE", "port")]),
        (with(good(), "port", 1.5), &[("WRONG_TYPE", "port")]),
        (
            with(good(), "payloadType", "TEXT"),
            &[("INVALID_VALUE", "payloadType")],
        ),
        (
            with(with(good(), "payload", "a"), "payloadType", "BASE64"),
            &[("INVALID_VALUE", "payload")],
        ),
        (with(good(), "payload", 7), &[("WRONG_TYPE", "payload")]),
        (
            with(good(), "sendAttempts", 1),
            &[("UNKNOWN_PROPERTY", "sendAttempts")],
        ),
        (with(good(), "path", "/a"), &[("UNKNOWN_PROPERTY", "path")]),
        (
            with(good(), "requestMode", "NOW"),
            &[("INVALID_VALUE", "requestMode")],
        ),
    ];
    for (body, faults) in cases {
        let refused = setup.caller.try_over("UDP", ID, &body).expect(400);
        let found = refused["errors"].as_array().unwrap();
        let mut found: Vec<_> = found
            .iter()
            .map(|it| {
                (
                    text(&it["code"]),
                    it["field"].as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect();
        found.sort_unstable();
        let is_attempts = faults.iter().any(|(_, field)| *field == "sendAttempts");
        if is_attempts {
            assert_eq!(found[0].1, "sendAttempts", "{refused}");
        } else {
            let found = found
                .iter()
                .map(|(code, field)| (code.as_str(), field.as_str()));
            assert_eq!(found.collect::<Vec<_>>(), faults, "{refused}");
        }
    }
    for long in ["x".repeat(509), "\u{fc}".repeat(255)] {
        let refused = setup.caller.try_over("UDP", ID, &datagram(&long, 4_445));
        assert_eq!(refused.expect(400)["errors"][0]["field"], "payload");
    }
    let path = format!("{API}/integrate/devices/actions/requests");
    assert_eq!(
        setup.caller.request("GET", &path).expect(200)["items"],
        json!([])
    );
}

#[test]
fn the_operator_sets_the_longest_datagram() {
    let setup = PlainService::with(&[("SIGNALBOX_UDP_PAYLOAD_BYTES_MAX", "1200")]);
    let port = setup.udp.port();
    let id = setup.create_udp(&datagram(&"x".repeat(1_200), port));
    assert_eq!(setup.udp.receive(), vec![b'x'; 1_200]);
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    let refused = setup
        .caller
        .try_over("UDP", ID, &datagram(&"x".repeat(1_201), port));
    assert_eq!(refused.expect(400)["errors"][0]["field"], "payload");
}

#[test]
fn a_closed_port_does_no_harm() {
    let setup = PlainService::new();
    let closed = UdpDevice::from(super::IP, &setup.service).port();
    for _ in 0..5 {
        let id = setup.create_udp(&datagram("lost", closed));
        assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    }
    let id = setup.create_udp(&datagram("heard", setup.udp.port()));
    assert_eq!(setup.udp.receive(), b"heard");
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    setup.udp.send(b"well");
    setup.caller.once_reported(ID, 1);
}

#[test]
fn a_datagram_to_a_device_without_an_address_may_only_be_scheduled() {
    let setup = PlainService::new();
    silent_device(&setup.caller, "nowhere");
    let port = setup.udp.port();
    let refused = setup
        .caller
        .try_over("UDP", "nowhere", &datagram("x", port));
    assert_eq!(error_codes(&refused.expect(409)), ["DEVICE_HAS_NO_ADDRESS"]);
    let body = when_active(datagram("found", port));
    let id = setup.caller.create_over("UDP", "nowhere", &body);
    setup.caller.move_device("nowhere", Some(ELSEWHERE));
    let found = UdpDevice::from(ELSEWHERE, &setup.service);
    let body = when_active(datagram("here", found.port()));
    let second = setup.caller.create_over("UDP", "nowhere", &body);
    found.send(b"awake");
    // The first datagram went to a port of the device where nothing listens.
    assert_eq!(found.receive(), b"here");
    for id in [id, second] {
        assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    }
}

#[test]
fn the_number_of_waiting_datagrams_is_limited() {
    let setup = PlainService::with(&[("SIGNALBOX_SCHEDULED_MAX", "3")]);
    let port = setup.udp.port();
    let texts = ["one", "two", "three"];
    let ids = texts.map(|it| setup.create_udp(&when_active(datagram(it, port))));
    let refused = setup
        .caller
        .try_over("UDP", ID, &when_active(datagram("four", port)));
    assert_eq!(error_codes(&refused.expect(409)), ["QUEUE_FULL"]);
    setup.caller.cancel_action(&ids[1]).expect(200);
    setup.udp.send(b"awake");
    assert_eq!(
        [setup.udp.receive(), setup.udp.receive()],
        [&b"one"[..], b"three"]
    );
    assert_eq!(setup.caller.final_action(&ids[2])["status"], "SUCCEEDED");
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
    let again = setup.caller.cancel_action(&ids[0]);
    check(&again, 409, &[("REQUEST_NOT_SCHEDULED", "")]);
}

#[test]
fn one_call_sends_a_datagram_to_several_devices() {
    let setup = PlainService::new();
    silent_device(&setup.caller, "nowhere");
    let port = setup.udp.port();
    let body = with(
        datagram("all", port),
        "deviceIds",
        json!([ID, "nowhere", "nobody"]),
    );
    let bulk = format!("{API}/integrate/devices/actions/UDP");
    let response = setup.caller.post(&bulk, &body).expect(202);
    assert_eq!(response["rejectedDevices"], json!(["nowhere", "nobody"]));
    let codes = response["rejectedReasons"].as_array().unwrap().iter();
    let codes: Vec<_> = codes.map(|it| text(&it["code"])).collect();
    assert_eq!(codes, ["DEVICE_HAS_NO_ADDRESS", "NOT_FOUND"]);
    assert_eq!(setup.udp.receive(), b"all");
    let id = text(&response["acceptedRequests"][0]["requestId"]);
    let action = setup.caller.final_action(&id);
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    assert_eq!(action["requestData"].get("deviceIds"), None, "{action}");
}
