//! Are the recorded registrations of real LwM2M clients accepted?

use std::fs;
use std::path::Path;

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use serde_json::json;

use crate::test_service::start;
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::wire::{DeviceSocket, hex, location_of, update};

/// One datagram a client sent.
struct Sent {
    file: String,
    bytes: Vec<u8>,
    message: Message,
}

#[test]
fn every_recorded_registration_is_accepted() {
    let (service, caller) = start(&[]);
    let mut endpoints = Vec::new();
    for sent in sent_by_clients()
        .iter()
        .filter(|sent| sent.is_registration())
    {
        let endpoint = sent.endpoint();
        know(&caller, &mut endpoints, &endpoint);
        let wire = DeviceSocket::to(&service);
        wire.send(&sent.bytes);
        let answer = wire.receive();
        assert_eq!(answer.code, Code::CREATED, "{endpoint} in {}", sent.file);
        assert_eq!(answer.message_id, sent.message.message_id);
        assert_eq!(answer.token, sent.message.token);
        assert_eq!(
            wire.ask(&update(&location_of(&answer), 1)).code,
            Code::CHANGED
        );
        check_inspector(&caller, &sent.message, &endpoint);
    }
    assert!(endpoints.len() >= 10, "{endpoints:?}");
}

#[test]
fn a_recorded_life_of_a_registration_is_replayed() {
    for file in [
        "register_update_deregister_anjay.hex",
        "register_deregister_leshan.hex",
    ] {
        let (service, caller) = start(&[]);
        let mut endpoints = Vec::new();
        let wire = DeviceSocket::to(&service);
        let mut location = Vec::new();
        let conversation = sent_by_clients()
            .into_iter()
            .filter(|sent| sent.file == file);
        let codes: Vec<Code> = conversation
            .map(|sent| {
                if sent.is_registration() {
                    know(&caller, &mut endpoints, &sent.endpoint());
                    wire.send(&sent.bytes);
                    let answer = wire.receive();
                    location = location_of(&answer);
                    answer.code
                } else {
                    wire.ask(&at_location(&sent.message, &location)).code
                }
            })
            .collect();
        assert!(
            codes.iter().all(|code| code.is_success()),
            "{file}: {codes:?}"
        );
        assert_eq!(codes.last(), Some(&Code::DELETED), "{file}");
    }
}

impl Sent {
    fn is_registration(&self) -> bool {
        let path: Vec<&str> = self.message.uri_path().collect();
        self.message.code == Code::POST && path == ["rd"]
    }

    fn endpoint(&self) -> String {
        let mut queries = self.message.uri_query();
        let name = queries.find_map(|query| query.strip_prefix("ep="));
        name.expect("a registration has a name").to_owned()
    }
}

/// The same request at the location that our service assigned.
fn at_location(sent: &Message, location: &[String]) -> Message {
    let request = Message::request(sent.kind, sent.code, sent.message_id, sent.token);
    let queries: Vec<&str> = sent.uri_query().collect();
    request
        .with_uri_path(location)
        .with_uri_query(queries)
        .with_payload(sent.payload.clone())
}

fn check_inspector(caller: &Caller, sent: &Message, endpoint: &str) {
    let device = caller
        .request("GET", &format!("{API}/devices/{endpoint}"))
        .expect(200);
    let registration = &device["registration"];
    let parameter = |name: &str| sent.uri_query().find_map(|query| query.strip_prefix(name));
    let version = parameter("lwm2m=").expect("every recorded client says its release");
    assert_eq!(registration["version"], version, "{device}");
    let lifetime: u32 = parameter("lt=")
        .expect("every recorded client says it")
        .parse()
        .unwrap();
    assert_eq!(registration["lifetime"], lifetime, "{device}");
    let listed = String::from_utf8(sent.payload.clone()).unwrap();
    let objects = registration["objects"].as_array().unwrap();
    assert!(objects.iter().any(|object| object["id"] == 3), "{device}");
    for object in objects {
        assert!(
            listed.contains(&format!("</{}", object["id"])),
            "{object} in {listed}"
        );
    }
}

fn know(caller: &Caller, known: &mut Vec<String>, endpoint: &str) {
    if !known.iter().any(|name| name == endpoint) {
        let body = json!({ "deviceId": endpoint, "ip": DEVICE_IP });
        caller.post(&format!("{API}/devices"), &body).expect(201);
        known.push(endpoint.to_owned());
    }
}

/// All recorded datagrams of clients, in the order of the recordings.
fn sent_by_clients() -> Vec<Sent> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/tests/vectors/coap");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for line in fs::read_to_string(&path).unwrap().lines() {
            if !line.starts_with("C | ") {
                continue;
            }
            let bytes = line
                .rsplit(" | ")
                .next()
                .expect("a line ends with its bytes");
            let bytes = hex(bytes.trim());
            let message = Message::decode(&bytes).unwrap();
            found.push(Sent {
                file: file.clone(),
                bytes,
                message,
            });
        }
    }
    found
}
