//! Is data over plain CoAP and UDP stored once, unchanged, and published?

use protocol::coap::code::Code;
use serde_json::{Value, json};

use super::{ELSEWHERE, FIRST_CONTACT, ID, IP, PlainService};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{ReportedData, UdpDevice, data, datagram};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::DeviceSocket;

#[test]
fn every_datagram_is_an_event_and_none_is_answered() {
    let setup = PlainService::with(&[("SIGNALBOX_DATA_BYTES_MAX", "2048")]);
    let bytes: Vec<u8> = (0..=255).collect();
    let sent: [&[u8]; 7] = [
        b"21.5",
        br#"{"t":21.5}"#,
        &bytes,
        b"40",
        &[0x40, 0x02, 0, 1, 0xFF],
        &[0],
        &[0xAA; 2_048],
    ];
    for (number, bytes) in sent.iter().enumerate() {
        setup.udp.send(bytes);
        // The service does not order separate datagrams, so each is awaited.
        setup.caller.once_reported(ID, number + 1);
    }
    assert_eq!(setup.caller.reported(ID), sent.map(ReportedData::over_udp));
    setup.udp.send(&[0xBB; 2_049]);
    until("an entry of the log", || {
        (setup.logged(ID, "Translator[UserPayloadError]") == 1).then_some(())
    });
    assert_eq!(setup.caller.reported(ID).len(), sent.len());
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
    let device = setup.caller.inspect(ID);
    assert_eq!(device["presence"]["protocol"], "UDP", "{device}");
    assert_eq!(device["registration"], Value::Null, "{device}");
}

#[test]
fn a_burst_of_datagrams_is_published_completely_and_in_order() {
    let setup = PlainService::new();
    setup.caller.create_device("other", ELSEWHERE);
    let other = UdpDevice::from(ELSEWHERE, &setup.service);
    let waiting = setup.create_udp(&when_active(datagram("waits", setup.udp.port())));
    let sent: Vec<String> = (0..60).map(|number| format!("number {number}")).collect();
    for (number, text) in sent.iter().enumerate() {
        setup.udp.send(text.as_bytes());
        if number % 7 == 0 {
            other.send(text.as_bytes());
            setup.udp.send(b"");
        }
    }
    let reported = setup.caller.once_reported(ID, sent.len());
    let expected: Vec<_> = sent
        .iter()
        .map(|it| ReportedData::over_udp(it.as_str()))
        .collect();
    assert_eq!(reported, expected);
    let expected: Vec<_> = expected.into_iter().step_by(7).collect();
    assert_eq!(
        setup.caller.once_reported("other", expected.len()),
        expected
    );
    assert_eq!(setup.caller.final_action(&waiting)["status"], "SUCCEEDED");
    assert_eq!(setup.udp.received(), [b"waits".to_vec()]);
    assert_eq!(setup.logged(ID, FIRST_CONTACT), 1);
}

#[test]
fn json_is_delivered_as_json_if_enabled_and_everything_else_as_bytes() {
    let mut setup = PlainService::new();
    let (parsed, plain) = (Endpoint::new(), Endpoint::new());
    for (endpoint, is_parsed) in [(&parsed, true), (&plain, false)] {
        let body = json!({
            "name": "Data", "url": endpoint.url("/"), "jsonPayloadEnabled": is_parsed,
            "eventTypes": [{ "type": "TELEMETRY_DATA" }],
        });
        let webhooks = format!("{API}/integrate/clouds/webhooks");
        setup.caller.post(&webhooks, &body).expect(201);
    }
    let deep = "[".repeat(2_000);
    let sent = [
        r#"{"b":1.50,"a":[18446744073709551616,null],"a":"\u00fc"}"#,
        "21.5",
        "\"text\"",
        "not json",
        "{\"a\":1} ",
        "{\"a\":1}x",
        deep.as_str(),
    ];
    sent.iter().for_each(|payload| setup.post(payload));
    setup.udp.send(b"{\"over\":\"udp\"}");
    let posted = (parsed.once(8), plain.once(8));
    let jsons = [
        Some(sent[0]),
        Some("21.5"),
        Some("\"text\""),
        None,
        Some("{\"a\":1}"),
        None,
        None,
    ];
    for (number, json) in jsons.into_iter().enumerate() {
        let topic = &posted.0[number].json()["payload"]["topic"];
        assert_eq!(*topic, "t", "{}", sent[number]);
        match json {
            Some(json) => check_json(&posted.0[number], json),
            None => check_bytes(&posted.0[number], sent[number]),
        }
        check_bytes(&posted.1[number], sent[number]);
    }
    check_json(&posted.0[7], "{\"over\":\"udp\"}");
    check_bytes(&posted.1[7], "{\"over\":\"udp\"}");
    for (posted, sources) in [(&posted.0, ["COAP", "UDP"]), (&posted.1, ["COAP", "UDP"])] {
        let delivered = [&posted[0], &posted[7]].map(|it| text(&it.json()["source"]));
        assert_eq!(delivered, sources);
        let device = json!({ "deviceId": ID, "iccid": ID, "ip": IP });
        assert_eq!(posted[7].json()["device"], device);
    }
    let expected = sent.iter().map(|it| ReportedData::over_coap("t", *it));
    let expected: Vec<_> = expected
        .chain([ReportedData::over_udp("{\"over\":\"udp\"}")])
        .collect();
    assert_eq!(
        setup.caller.reported(ID),
        expected,
        "the history has the bytes"
    );
}

#[test]
fn first_contact_is_counted_once_whatever_protocol_comes_first() {
    let mut setup = PlainService::new();
    let protocols = ["UDP", "COAP", "LWM2M"];
    for first in 0..protocols.len() {
        let (device, ip) = (format!("device-{first}"), format!("127.0.0.{}", 21 + first));
        setup.caller.create_device(&device, &ip);
        for turn in 0..protocols.len() {
            contact(&setup, &device, &ip, protocols[(first + turn) % 3]);
            assert_eq!(setup.logged(&device, FIRST_CONTACT), 1, "{device}");
        }
        for protocol in protocols {
            let path = format!("{API}/devices?q={device}&protocol={protocol}");
            let found = setup.caller.request("GET", &path).expect(200);
            assert_eq!(found["items"][0]["deviceId"], device, "{protocol}");
        }
    }
    setup.crash();
    for (first, protocol) in protocols.into_iter().enumerate() {
        let (device, ip) = (format!("device-{first}"), format!("127.0.0.{}", 21 + first));
        contact(&setup, &device, &ip, protocol);
        assert_eq!(setup.logged(&device, FIRST_CONTACT), 1, "{device}");
    }
}

/// Has a device send data over a protocol, and waits until it was received.
fn contact(setup: &PlainService, device: &str, ip: &str, protocol: &str) {
    let before = setup.caller.inspect(device)["presence"]["lastSeen"].clone();
    match protocol {
        "UDP" => UdpDevice::from(ip, &setup.service).send(b"here"),
        "COAP" => {
            let wire = DeviceSocket::from(ip, &setup.service);
            assert_eq!(
                wire.ask_until_answered(&data("t", "here", 1)).code,
                Code::CHANGED
            );
        }
        _ => {
            DeviceSocket::from(ip, &setup.service).register(device, 1);
        }
    }
    until("a sign of life", || {
        let presence = &setup.caller.inspect(device)["presence"];
        let is_new = presence["lastSeen"] != before && presence["protocol"] == protocol;
        is_new.then_some(())
    });
}

/// Checks that the payload was delivered as this JSON text, unchanged.
fn check_json(posted: &ReceivedPost, sent: &str) {
    let payload = &posted.json()["payload"];
    assert_eq!(payload["type"], "JSON", "{payload}");
    assert_eq!(payload.get("encoding"), None, "{payload}");
    assert!(posted.text.contains(&format!(":{sent}")), "{}", posted.text);
}

/// Checks that the payload was delivered as these bytes.
fn check_bytes(posted: &ReceivedPost, sent: &str) {
    use base64::Engine as _;
    let payload = &posted.json()["payload"];
    let value = base64::prelude::BASE64_STANDARD.encode(sent);
    assert_eq!(payload["value"], value, "{payload}");
    assert_eq!(payload["type"], "STRING", "{payload}");
    assert_eq!(payload["encoding"], "base64", "{payload}");
}

#[test]
fn data_of_many_devices_is_not_mixed() {
    let setup = PlainService::new();
    setup.caller.create_device("other", ELSEWHERE);
    let other = DeviceSocket::from(ELSEWHERE, &setup.service);
    for number in 1..=20 {
        let (mine, theirs) = (format!("mine {number}"), format!("theirs {number}"));
        assert_eq!(setup.coap.ask(&data("t", mine, number)).code, Code::CHANGED);
        assert_eq!(other.ask(&data("t", theirs, number)).code, Code::CHANGED);
    }
    for (device, whose) in [(ID, "mine"), ("other", "theirs")] {
        let sent = (1..=20).map(|number| ReportedData::over_coap("t", format!("{whose} {number}")));
        assert_eq!(setup.caller.reported(device), sent.collect::<Vec<_>>());
    }
}
