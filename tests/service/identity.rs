//! How does the service identify a device that registers?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use serde_json::{Value, json};

use crate::test_service::{ID, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, deregister, register, request, update};

const TRUST: (&str, &str) = ("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true");
const ELSEWHERE: &str = "127.0.0.2";

#[test]
fn a_name_alone_proves_nothing() {
    let (service, caller) = start(&[]);
    caller
        .post(&format!("{API}/devices"), &json!({ "deviceId": ID }))
        .expect(201);
    let wire = DeviceSocket::to(&service);
    assert_eq!(wire.ask(&register(ID, 1)).code, Code::FORBIDDEN);
    let entry = caller.log_entries().remove(0);
    assert_eq!(entry["message"], "LwM2M[RegistrationRejected]");
    assert_eq!(
        (&entry["type"], &entry["category"]),
        (&json!("DEVICE"), &json!("error"))
    );
    assert_eq!(
        (&entry["iccid"], &entry["ip"]),
        (&json!(ID), &json!(DEVICE_IP))
    );
}

#[test]
fn a_name_alone_is_accepted_if_the_operator_allows_it() {
    let (service, caller) = start(&[TRUST]);
    caller
        .post(&format!("{API}/devices"), &json!({ "deviceId": ID }))
        .expect(201);
    let wire = DeviceSocket::to(&service);
    let location = wire.register(ID, 1);
    let moved = DeviceSocket::from(ELSEWHERE, &service);
    assert_eq!(moved.ask(&update(&location, 2)).code, Code::CHANGED);
}

#[test]
fn a_device_with_an_address_registers_only_from_there() {
    for settings in [&[][..], &[TRUST]] {
        let (service, caller) = start(settings);
        caller.create_device(ID, DEVICE_IP);
        let stranger = DeviceSocket::from(ELSEWHERE, &service);
        assert_eq!(
            stranger.ask(&register(ID, 1)).code,
            Code::FORBIDDEN,
            "{settings:?}"
        );
        assert_eq!(caller.log_messages(), ["LwM2M[RegistrationRejected]"]);
        assert_eq!(
            DeviceSocket::to(&service).ask(&register(ID, 1)).code,
            Code::CREATED
        );
        assert_eq!(
            stranger.ask(&register(ID, 2)).code,
            Code::FORBIDDEN,
            "{settings:?}"
        );
    }
}

#[test]
fn an_unknown_name_is_forbidden_and_logged_for_the_device_with_the_address() {
    let (service, caller) = start(&[TRUST]);
    caller.create_device(ID, DEVICE_IP);
    let forbidden = |wire: &DeviceSocket| {
        for (id, name) in (1..).zip(["nobody", "METER-1", "meter-1 ", "meter-11"]) {
            assert_eq!(
                wire.ask(&register(name, id)).code,
                Code::FORBIDDEN,
                "{name}"
            );
        }
    };
    forbidden(&DeviceSocket::from(ELSEWHERE, &service));
    assert!(caller.log_messages().is_empty());
    forbidden(&DeviceSocket::to(&service));
    let entry = caller.log_entries().remove(0);
    assert_eq!(entry["message"], "LwM2M[RegistrationRejected]");
    let reason = format!("it has the endpoint name \"nobody\", and the device has {ID:?}");
    let description = entry["description"].as_str().expect("a text");
    assert!(description.contains(&reason), "{description}");
    assert_eq!(caller.log_messages().len(), 1);
}

#[test]
fn a_send_from_a_new_port_is_refused_and_logged_until_the_next_update() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let location = DeviceSocket::to(&service).register(ID, 1);
    let registered_at = address(&caller);
    let moved = DeviceSocket::to(&service);
    let send = |id| {
        let message = request(Code::POST, id).with_uri_path(["dp"]);
        let message = message.with_content_format(ContentFormat::SENML_JSON);
        message.with_payload(r#"[{"n":"/3303/0/5700","v":21.5}]"#)
    };
    assert_eq!(moved.ask(&send(1)).code, Code::NOT_FOUND);
    assert_eq!(moved.ask(&send(2)).code, Code::NOT_FOUND);
    let entries = caller.log_entries();
    let rejected = |entry: &&Value| entry["message"] == "LwM2M[RegistrationRejected]";
    let entries: Vec<&Value> = entries.iter().filter(rejected).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let description = entries[0]["description"].as_str().expect("a text");
    assert!(
        description.contains("the device is registered at another port"),
        "{description}"
    );
    assert!(
        description.contains(&format!("A Send from {DEVICE_IP}:")),
        "{description}"
    );
    assert!(
        description.contains(&format!("is registered at {registered_at}.")),
        "{description}"
    );
    assert_eq!(moved.ask(&update(&location, 3)).code, Code::CHANGED);
    assert_eq!(moved.ask(&send(4)).code, Code::CHANGED);
}

#[test]
fn rejected_registrations_do_not_fill_the_log() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let stranger = DeviceSocket::from(ELSEWHERE, &service);
    for id in 1..=50 {
        assert_eq!(stranger.ask(&register(ID, id)).code, Code::FORBIDDEN);
    }
    assert_eq!(caller.log_messages(), ["LwM2M[RegistrationRejected]"]);
}

#[test]
fn the_log_says_why_a_message_was_rejected_and_the_device_is_told_the_fault() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let message = request(Code::POST, 1)
        .with_uri_path(["rd"])
        .with_uri_query([&format!("ep={ID}"), "lwm2m=1.1", "lt=soon"]);
    let answer = wire.ask(&message);
    let fault = "the lifetime is not a number of seconds";
    assert_eq!(
        (answer.code, &*answer.payload),
        (Code::BAD_REQUEST, fault.as_bytes())
    );
    assert_eq!(answer.content_format(), None);
    let entry = caller.log_entries().remove(0);
    assert_eq!(entry["message"], "LwM2M[RegistrationRejected]");
    let description = entry["description"].as_str().expect("a text");
    let reason = format!("was rejected with 4.00: {fault}; it has \"lt=soon\".");
    assert!(description.contains(&reason), "{description}");
    let addresses = format!("The device has the IP address {DEVICE_IP} and is not registered.");
    assert!(description.ends_with(&addresses), "{description}");
}

#[test]
fn a_stranger_does_not_learn_which_names_exist() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let stranger = DeviceSocket::from(ELSEWHERE, &service);
    let unknown = ID.replace('1', "2");
    assert_ne!(unknown, ID);
    let ask = |name: &str| stranger.ask(&register(name, 7).with_payload("</1/0>,</3/0>,</4/0>"));
    let [known, unknown] = [ID, &unknown].map(ask);
    assert_eq!(known.code, Code::FORBIDDEN);
    assert!(!known.payload.is_empty());
    assert_eq!(known.encode(), unknown.encode());
}

#[test]
fn a_location_used_from_another_address_changes_nothing() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = wire.register(ID, 1);
    let before = address(&caller);
    let stranger = DeviceSocket::from(ELSEWHERE, &service);
    assert_eq!(stranger.ask(&update(&location, 2)).code, Code::NOT_FOUND);
    assert_eq!(
        stranger.ask(&deregister(&location, 3)).code,
        Code::NOT_FOUND
    );
    assert_eq!(address(&caller), before);
    assert_eq!(wire.ask(&update(&location, 4)).code, Code::CHANGED);
}

#[test]
fn a_device_is_recognised_at_a_new_port() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let location = DeviceSocket::to(&service).register(ID, 1);
    let before = address(&caller);
    let moved = DeviceSocket::to(&service);
    assert_eq!(moved.ask(&update(&location, 1)).code, Code::CHANGED);
    assert_ne!(address(&caller), before);
}

#[test]
fn devices_that_share_an_address_are_distinguished_by_their_ports() {
    let (service, caller) = start(&[]);
    let names = ["left", "right"];
    let wires = names.map(|name| {
        caller.create_device(name, DEVICE_IP);
        let wire = DeviceSocket::to(&service);
        wire.register(name, 1);
        wire
    });
    for (name, wire) in names.iter().zip(&wires) {
        let read = json!({ "action": "read", "resourceAddress": "/3/0/0" });
        let id = caller.create_action(name, &read);
        let request = wire.receive();
        assert_eq!(request.uri_path().collect::<Vec<_>>(), ["3", "0", "0"]);
        let answer = Message::response_to(&request, Code::CONTENT, request.message_id);
        wire.send(&answer.with_payload(*name).encode());
        let action = caller.final_action(&id);
        assert_eq!(action["resultData"]["payload"], *name, "{action}");
    }
}

#[test]
fn an_answer_from_another_address_is_ignored() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    wire.register(ID, 1);
    let id = caller.create_action(
        ID,
        &json!({ "action": "read", "resourceAddress": "/3/0/0" }),
    );
    let request = wire.receive();
    let answer = |payload: &str| {
        let code = Code::CONTENT;
        let answer = Message::response_to(&request, code, request.message_id);
        answer.with_payload(payload).encode()
    };
    let stranger = DeviceSocket::from(ELSEWHERE, &service);
    stranger.send(&answer("forged"));
    assert!(stranger.received_before_ping().is_empty());
    wire.send(&answer("true"));
    let action = until("a final status", || {
        let action = caller.action(&id);
        (action["status"] != "IN_PROGRESS").then_some(action)
    });
    assert_eq!(action["resultData"]["payload"], "true", "{action}");
}

#[test]
fn data_from_an_unknown_peer_is_refused() {
    let (service, _caller) = start(&[]);
    let wire = DeviceSocket::to(&service);
    let send = request(Code::POST, 1)
        .with_uri_path(["dp"])
        .with_payload("[]");
    assert_eq!(wire.ask(&send).code, Code::NOT_FOUND);
    let data = request(Code::POST, 2)
        .with_uri_query(["t=topic"])
        .with_payload("21.5");
    assert_eq!(wire.ask(&data).code, Code::UNAUTHORIZED);
}

fn address(caller: &Caller) -> String {
    let device = caller
        .request("GET", &format!("{API}/devices/{ID}"))
        .expect(200);
    device["presence"]["address"]
        .as_str()
        .expect("an address")
        .to_owned()
}
