//! Are devices that speak CoAP over DTLS known by their keys, and reached through their sessions?

mod rebinding;

use std::fs;

use dtls::{AlertDescription, CipherSuite, ClientConfig, HandshakeFailure};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use serde_json::{Value, json};

use crate::test_service::{PATIENT, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::{outcome, read};
use crate::vocabulary::plain::{ReportedData, UdpDevice, answer, data, datagram};
use crate::vocabulary::poll::until;
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::wire::{DeviceSocket, register, register_with, request, update};

const ID: &str = "meter-1";
const KEY: &str = "a key of 16 byte";

/// An address of no device: nobody here has one of its own.
const HERE: &str = "127.0.0.21";

/// Another one.
const ELSEWHERE: &str = "127.0.0.22";

#[test]
fn a_device_registers_sends_and_answers_requests_over_dtls() {
    let (service, caller) = start(&[PATIENT, ("SIGNALBOX_ARBITERS", "3")]);
    // Several, so that sessions are at the arbiters of their devices and at others.
    for number in 1..=6 {
        let id = format!("meter-{number}");
        caller.create_secured_device(&id, KEY);
        let mut device = SecuredDevice::connected(HERE, &service, &id, KEY);
        device.register(&register(&id, 1));
        assert_eq!(device.ask(&values(21.5, 2)).code, Code::CHANGED);
        let known = caller.known_value(&id, "/3303/0/5700").unwrap();
        assert_eq!(known["value"], 21.5, "{known}");
        let action = caller.create_action(&id, &read("/3/0/9"));
        let asked = device.receive_request();
        device.send(&with_text(answer(&asked, Code::CONTENT), "87"));
        assert_eq!(outcome(&caller.final_action(&action)), ("SUCCEEDED", "205"));
        assert_eq!(device.ask(&data("flow", "3.5", 3)).code, Code::CHANGED);
        let reported = caller.once_reported(&id, 1);
        assert_eq!(reported, [ReportedData::over_coap("flow", "3.5")]);
    }
}

#[test]
fn a_device_without_encrypt_then_mac_is_served_where_the_setting_admits_it() {
    for is_admitted in [false, true] {
        let setting = is_admitted.to_string();
        let (service, caller) = start(&[PATIENT, ("SIGNALBOX_DTLS_BARE_CBC", &setting)]);
        caller.create_secured_device(ID, KEY);
        let mut device = SecuredDevice::at(HERE, &service);
        let begun = device.begin(ClientConfig {
            cipher_suites: vec![CipherSuite::PskAes128Cbc],
            offers_encrypt_then_mac: false,
            ..ClientConfig::with_psk(ID.as_bytes(), KEY.as_bytes())
        });
        if is_admitted {
            begun.unwrap();
            device.register(&register(ID, 1));
            assert_eq!(device.ask(&values(21.5, 2)).code, Code::CHANGED);
            let suite = caller.inspect(ID)["association"]["cipherSuite"].take();
            assert_eq!(suite, CipherSuite::PskAes128Cbc.name());
        } else {
            let refusal = HandshakeFailure::RefusedByPeer(AlertDescription::HANDSHAKE_FAILURE);
            assert_eq!(begun.err(), Some(refusal));
        }
    }
}

#[test]
fn requests_follow_a_device_to_its_new_address() {
    let (service, caller) = start(&[PATIENT, ("SIGNALBOX_ARBITERS", "2")]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    device.register(&register(ID, 1));
    let association = caller.inspect(ID)["association"].take();
    assert_eq!(association["kind"], "PSK", "{association}");
    assert_eq!(association["identity"], ID, "{association}");
    assert_eq!(association["connectionId"], true, "{association}");
    assert_eq!(association["addressChanges"], 0, "{association}");
    for round in 1..=8 {
        // The NAT gives the device another port in the middle of the exchange.
        let action = caller.create_action(ID, &read("/3/0/9"));
        let asked = device.receive_request();
        device.move_to_another_port(&service);
        device.send(&with_text(answer(&asked, Code::CONTENT), "87"));
        let settled = caller.final_action(&action);
        assert_eq!(outcome(&settled), ("SUCCEEDED", "205"), "{round}");
        let association = caller.inspect(ID)["association"].take();
        assert_eq!(association["addressChanges"], round, "{association}");
    }
    assert_eq!(device.ask(&values(20.5, 2)).code, Code::CHANGED);
}

#[test]
fn a_device_with_security_dtls_is_refused_without_it() {
    let (service, caller) = start(&[PATIENT]);
    caller.create_device(ID, HERE);
    caller.give_psk(ID, KEY);
    let plain = DeviceSocket::from(HERE, &service);
    plain.register(ID, 1);
    caller.amend_device(ID, &json!({ "security": "DTLS" }));
    assert_eq!(caller.inspect(ID)["security"], "DTLS");
    assert_eq!(plain.ask(&register(ID, 2)).code, Code::FORBIDDEN);
    assert_eq!(plain.ask(&data("t", "1", 3)).code, Code::UNAUTHORIZED);
    // Of a device that sends nothing else: a refusal of each device is logged once a minute.
    caller.create_device("meter-2", ELSEWHERE);
    caller.amend_device("meter-2", &json!({ "security": "DTLS" }));
    UdpDevice::from(ELSEWHERE, &service).send(b"on");
    for (id, what) in [
        (ID, format!("A registration from {HERE}:")),
        ("meter-2", format!("Data from {ELSEWHERE}:")),
    ] {
        let entry = until("a log entry", || {
            let mut entries = caller.log_entries().into_iter();
            entries.find(|entry| entry["iccid"] == id && entry["category"] == "error")
        });
        let description = text(&entry["description"]);
        assert!(description.starts_with(&what), "{description}");
        assert!(description.contains("over DTLS alone"), "{description}");
    }
    let shown = caller.messages("meter-2");
    let is_refusal = |message: &Value| message["error"]["message"] == "CoAP[RequestRejected]";
    assert!(shown.iter().all(is_refusal), "{shown:?}");
    let refused = caller
        .try_over("UDP", ID, &datagram("on", 4_000))
        .expect(409);
    assert_eq!(
        refused["errors"][0]["code"], "ADDRESS_FORBIDDEN",
        "{refused}"
    );

    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    device.register(&register(ID, 1));
    assert_eq!(device.ask(&values(19.5, 2)).code, Code::CHANGED);
    assert_eq!(caller.reported(ID), []);
}

#[test]
fn a_handshake_with_a_wrong_key_is_refused_and_logged() {
    // A handshake is given up soon.
    let (service, caller) = start(&[("SIGNALBOX_DTLS_RETRANSMIT_MS", "200")]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::at(HERE, &service);
    let refused = device.connect(ID, "another key of 1");
    assert!(
        matches!(refused, Err(HandshakeFailure::RefusedByPeer(_))),
        "{refused:?}"
    );
    let entry = until("a log entry", || {
        let mut entries = caller.log_entries().into_iter();
        entries.find(|it| it["message"] == "CoAP[UnauthorizedDevice]")
    });
    let said = text(&entry["description"]);
    assert!(said.contains("another key than the device"), "{said}");
    assert!(said.contains(HERE) && !said.contains(KEY), "{said}");

    let unknown = device.connect("nobody", KEY);
    assert!(
        matches!(unknown, Err(HandshakeFailure::RefusedByPeer(_))),
        "{unknown:?}"
    );
    for outcome in ["wrong_key", "unknown_identity"] {
        until(outcome, || {
            (handshakes(&caller, outcome) == 1).then_some(())
        });
    }
    device.connect(ID, KEY).unwrap();
    until("a session", || {
        (handshakes(&caller, "completed") == 1).then_some(())
    });
}

#[test]
fn an_endpoint_name_must_be_that_of_the_key() {
    let (service, caller) = start(&[]);
    caller.create_secured_device(ID, KEY);
    caller.create_secured_device("meter-2", KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    assert_eq!(device.ask(&register("meter-2", 1)).code, Code::FORBIDDEN);
    let entries = caller.log_entries();
    let entry = entries
        .iter()
        .find(|it| it["iccid"] == ID)
        .expect("a log entry");
    assert_eq!(entry["message"], "LwM2M[RegistrationRejected]", "{entry}");
    assert!(text(&entry["description"]).contains("meter-2"), "{entry}");
    // LwM2M 1.0 requires the name; later versions take it from the key.
    let nameless = |version, id| register_with(&["lt=300", version, "b=U"], "</3/0>", id);
    assert_eq!(
        device.ask(&nameless("lwm2m=1.0", 2)).code,
        Code::BAD_REQUEST
    );
    assert_eq!(device.ask(&nameless("lwm2m=1.1", 3)).code, Code::CREATED);
    let presence = |id| text(&caller.inspect(id)["presence"]["state"]);
    assert_eq!(presence(ID), "AWAKE");
    assert_eq!(presence("meter-2"), "UNREGISTERED");
}

#[test]
fn a_device_resumes_its_session_after_a_crash() {
    let (mut service, mut caller) = start(&[PATIENT]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    let location = device.register(&register(ID, 1));
    service.kill();
    service.start_again();
    caller.follow(&service);
    assert_eq!(caller.inspect(ID)["association"], Value::Null);
    // Nothing leaves before the device is heard: its session ended with the process.
    let action = caller.create_action(ID, &read("/3/0/9"));
    assert_eq!(caller.action(&action)["status"], "SCHEDULED");
    let security = device.resume(ID, KEY).unwrap();
    assert!(security.is_resumed);
    // The registration is still its own.
    assert_eq!(device.ask(&values(18.5, 2)).code, Code::CHANGED);
    let asked = device.receive_request();
    device.send(&with_text(answer(&asked, Code::CONTENT), "87"));
    assert_eq!(outcome(&caller.final_action(&action)), ("SUCCEEDED", "205"));
    assert_eq!(device.ask(&update(&location, 3)).code, Code::CHANGED);
    assert_eq!(caller.inspect(ID)["association"]["resumed"], true);
}

#[test]
fn a_new_key_ends_the_previous_one_at_its_first_use() {
    const NEW_KEY: &str = "the next key 16b";
    let (service, caller) = start(&[]);
    caller.create_secured_device(ID, KEY);
    let mut earlier = SecuredDevice::connected(HERE, &service, ID, KEY);
    caller.give_psk(ID, NEW_KEY);
    earlier.connect(ID, KEY).unwrap();
    let mut later = SecuredDevice::connected(HERE, &service, ID, NEW_KEY);
    later.register(&register(ID, 1));
    // The use of the new key is saved beside the handshake.
    until("the end of the previous key", || {
        earlier.connect(ID, KEY).is_err().then_some(())
    });
}

#[test]
fn a_removed_key_ends_the_session_that_was_made_with_it() {
    let (service, caller) = start(&[]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    device.register(&register(ID, 1));
    let path = format!("{API}/devices/{ID}/psk");
    assert_eq!(caller.request("DELETE", &path).status, 204);
    assert_eq!(caller.inspect(ID)["association"], Value::Null);
    assert!(device.connect(ID, KEY).is_err());
    assert_eq!(caller.inspect(ID)["association"], Value::Null);
}

#[test]
fn a_clean_restart_keeps_sessions_and_a_crash_needs_one_abbreviated_handshake() {
    let (mut service, mut caller) = start(&[("SIGNALBOX_ARBITERS", "2")]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    device.register(&register(ID, 1));
    let before = caller.inspect(ID)["association"].take();
    assert!(service.stop().success());
    let folder = service.data_dir().join("dtls-sessions");
    let kept: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert!(!kept.is_empty());
    let has_id = |bytes: &[u8]| bytes.windows(ID.len()).any(|it| it == ID.as_bytes());
    for (path, bytes) in &kept {
        assert!(!has_id(bytes), "{} is not sealed", path.display());
    }

    service.start_again();
    caller.follow(&service);
    assert!(!folder.exists(), "they are used once");
    assert_eq!(device.ask(&values(21.5, 2)).code, Code::CHANGED);
    device.move_to_another_port(&service);
    assert_eq!(device.ask(&values(22.5, 3)).code, Code::CHANGED);
    assert_eq!(handshakes(&caller, "completed"), 0);
    let after = caller.inspect(ID)["association"].take();
    assert_eq!(after["lastHandshake"], before["lastHandshake"], "{after}");
    assert_eq!(after["addressChanges"], 1, "{after}");

    service.kill();
    // Not even files that somebody puts back bring a session back.
    fs::create_dir(&folder).unwrap();
    for (path, bytes) in &kept {
        fs::write(path, bytes).unwrap();
    }
    service.start_again();
    caller.follow(&service);
    device.send(&values(23.5, 4));
    until("a record of no session", || {
        (dropped(&caller, "unknown_connection_id") == 1).then_some(())
    });
    assert!(device.resume(ID, KEY).unwrap().is_resumed);
    assert_eq!(device.ask(&values(24.5, 5)).code, Code::CHANGED);
}

#[test]
fn a_device_without_tickets_resumes_its_session_at_another_port_and_after_every_crash() {
    let (mut service, mut caller) = start(&[("SIGNALBOX_ARBITERS", "4")]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::at(HERE, &service);
    device.accepts_tickets = false;
    device.connect(ID, KEY).unwrap();
    device.register(&register(ID, 1));
    let path = service.data_dir().join("dtls-cached-sessions/newest");
    let kept = fs::read(path).unwrap();
    assert!(!kept.is_empty());
    assert!(!kept.windows(ID.len()).any(|it| it == ID.as_bytes()));
    for id in 2..8 {
        if id > 4 {
            service.kill();
            service.start_again();
            caller.follow(&service);
        }
        device.move_to_another_port(&service);
        assert!(device.resume(ID, KEY).unwrap().is_resumed);
        assert_eq!(device.ask(&values(21.5, id)).code, Code::CHANGED);
    }
}

/// A Send with a temperature.
fn values(degrees: f64, id: u16) -> Message {
    let pack = json!([{ "n": "/3303/0/5700", "v": degrees }]);
    request(Code::POST, id)
        .with_uri_path(["dp"])
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(pack.to_string())
}

fn with_text(message: Message, text: &str) -> Message {
    message
        .with_content_format(ContentFormat::TEXT)
        .with_payload(text)
}

/// How many handshakes had an outcome.
fn handshakes(caller: &Caller, outcome: &str) -> u64 {
    let label = format!("outcome=\"{outcome}\"");
    counted(caller, "signalbox_dtls_handshakes_total{", &label)
}

/// How many records were dropped for a reason.
fn dropped(caller: &Caller, reason: &str) -> u64 {
    let label = format!("reason=\"{reason}\"");
    counted(caller, "signalbox_dtls_records_dropped_total{", &label)
}

fn counted(caller: &Caller, name: &str, label: &str) -> u64 {
    let metrics = Request::new("GET", "/metrics").send(caller.address());
    let is_it = |line: &&str| line.starts_with(name) && line.contains(label);
    let counts = metrics.text().lines().filter(is_it);
    let count = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
    counts.filter_map(count).sum()
}
