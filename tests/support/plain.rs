//! How does a plain device communicate, and how do callers send requests to it?
//!
//! Over CoAP it uses a [`DeviceSocket`], over UDP a [`UdpDevice`]. Both receive only datagrams from
//! the service's own ports.

use std::io::ErrorKind;
use std::net::UdpSocket;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use serde_json::{Value, json};

use super::caller::{API, Caller, text};
use super::http::Response;
use super::poll::{PATIENCE, until};
use super::service::Service;
use super::wire::request;

/// The longest possible datagram.
const DATAGRAM_BYTES_MAX: usize = 65_536;

/// A device that sends bare datagrams.
pub(crate) struct UdpDevice {
    socket: UdpSocket,
}

/// Data a device sent by itself, as its history shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ReportedData {
    source: String,
    topic: Option<String>,
    bytes: Vec<u8>,
}

impl UdpDevice {
    /// A device at an address.
    pub(crate) fn from(ip: &str, service: &Service) -> Self {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.connect(service.udp).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket }
    }

    /// The port at which requests reach it.
    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Sends a bare datagram.
    pub(crate) fn send(&self, bytes: &[u8]) {
        // This call may report the ICMP error of an earlier datagram to a killed service.
        if self.socket.send(bytes).is_err() {
            self.socket.send(bytes).unwrap();
        }
    }

    /// The next datagram received.
    pub(crate) fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => return buffer[..length].to_vec(),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("nothing was received: {error}"),
            }
        }
    }

    /// Everything received so far.
    pub(crate) fn received(&self) -> Vec<Vec<u8>> {
        self.socket.set_nonblocking(true).unwrap();
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let next = || {
            let length = self.socket.recv(&mut buffer).ok()?;
            Some(buffer[..length].to_vec())
        };
        let received = std::iter::from_fn(next).collect();
        self.socket.set_nonblocking(false).unwrap();
        received
    }
}

impl ReportedData {
    /// Data with a topic over CoAP.
    pub(crate) fn over_coap(topic: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            source: "COAP".to_owned(),
            topic: Some(topic.to_owned()),
            bytes: bytes.into(),
        }
    }

    /// Data over UDP.
    pub(crate) fn over_udp(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            source: "UDP".to_owned(),
            topic: None,
            bytes: bytes.into(),
        }
    }

    /// The data in a message of a history, if the message is data of a device.
    fn of(message: &Value) -> Option<Self> {
        let payload = &message["payload"];
        if message["type"] != "TELEMETRY_DATA" || payload["type"] != "STRING" {
            return None;
        }
        assert_eq!(payload["encoding"], "base64", "{message}");
        let topic = payload["topic"].as_str();
        Some(Self {
            source: text(&message["source"]),
            topic: topic.map(str::to_owned),
            bytes: BASE64_STANDARD.decode(text(&payload["value"])).unwrap(),
        })
    }
}

impl Caller {
    /// The data a device sent by itself, oldest first.
    pub(crate) fn reported(&self, device: &str) -> Vec<ReportedData> {
        let mut reported = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("{API}/devices/{device}/messages?pageSize=100{cursor}");
            let page = self.request("GET", &path).expect(200);
            let messages = page["items"].as_array().unwrap();
            reported.extend(messages.iter().filter_map(ReportedData::of));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        reported.reverse();
        reported
    }

    /// The data a device sent by itself, once there are this many messages.
    pub(crate) fn once_reported(&self, device: &str, amount: usize) -> Vec<ReportedData> {
        until(&format!("{amount} messages of {device}"), || {
            let reported = self.reported(device);
            (reported.len() >= amount).then_some(reported)
        })
    }

    /// Creates an action request over a protocol and returns the response unchecked.
    pub(crate) fn try_over(&self, protocol: &str, device: &str, body: &Value) -> Response {
        let path = format!("{API}/integrate/devices/{device}/actions/{protocol}");
        self.post(&path, body)
    }

    /// Creates an action request over a protocol and returns its id.
    pub(crate) fn create_over(&self, protocol: &str, device: &str, body: &Value) -> String {
        text(&self.try_over(protocol, device, body).expect(202)["id"])
    }

    /// Changes or removes the address of a device.
    pub(crate) fn move_device(&self, device: &str, ip: Option<&str>) {
        let path = format!("{API}/devices/{device}");
        let patch = json!({ "ip": ip });
        self.try_send("PATCH", &path, &patch).unwrap().expect(200);
    }
}

/// Data with a topic, as a device posts it.
pub(crate) fn data(topic: &str, payload: impl Into<Vec<u8>>, id: u16) -> Message {
    request(Code::POST, id)
        .with_uri_query([format!("t={topic}")])
        .with_payload(payload)
}

/// The body that sends text to a port of the device now.
pub(crate) fn datagram(payload: &str, port: u16) -> Value {
    json!({ "payload": payload, "payloadType": "STRING", "port": port })
}

/// The body that sends a CoAP request without payload to a resource of the device now.
pub(crate) fn coap(method: &str, path: &str, port: u16) -> Value {
    json!({ "requestType": method, "path": path, "port": port })
}

/// The same body with a text payload.
pub(crate) fn carrying(mut body: Value, payload: &str) -> Value {
    body["payload"] = json!(payload);
    body["payloadType"] = json!("STRING");
    body
}

/// The same body with a binary payload.
pub(crate) fn carrying_bytes(mut body: Value, payload: &[u8]) -> Value {
    body["payload"] = json!(BASE64_STANDARD.encode(payload));
    body["payloadType"] = json!("BASE64");
    body
}

/// The piggybacked response of the device to a request.
pub(crate) fn answer(request: &Message, code: Code) -> Message {
    Message::response_to(request, code, request.message_id)
}

/// The path of a request, as text.
pub(crate) fn path_of(request: &Message) -> String {
    request
        .uri_path()
        .map(|segment| format!("/{segment}"))
        .collect()
}
