//! Does the service receive from and reach devices of plain CoAP and bare UDP, whatever their
//! stack?
//!
//! They have an address and nothing else: no registration, and no name.

mod aiocoap;
mod libcoap;

use std::net::UdpSocket;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::vocabulary::caller::{Caller, text};
use crate::vocabulary::lwm2m::{outcome, when_active};
use crate::vocabulary::plain::{ReportedData, UdpDevice, carrying, coap, datagram};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;

use self::libcoap::LibcoapServer;

const ID: &str = "8944000000000000003";

/// Several blocks of any size, no two of them equal.
const LARGE_BYTES: usize = 20_000;

#[test]
fn a_datagram_of_a_udp_device_releases_requests_over_either_protocol() {
    let setup = TestService::new("127.0.10.1");
    let device = UdpDevice::from(&setup.ip, &setup.service);
    let server = LibcoapServer::start(&setup, &[]);
    let put = carrying(coap("PUT", "/mode", server.port), "eco");
    let over_coap = setup.create("COAP", &when_active(put));
    let over_udp = setup.create("UDP", &when_active(datagram("wake up", device.port())));
    for id in [&over_coap, &over_udp] {
        assert_eq!(setup.caller.action(id)["status"], "SCHEDULED");
    }
    device.send(b"\x00\x01 I am here");
    assert_eq!(device.receive(), b"wake up");
    let action = setup.caller.final_action(&over_coap);
    assert_eq!(outcome(&action), ("SUCCEEDED", "201"), "{action}");
    let action = setup.caller.final_action(&over_udp);
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    let reported = setup.caller.once_reported(ID, 1);
    assert_eq!(reported, [ReportedData::over_udp(*b"\x00\x01 I am here")]);
    let action = setup.perform(&coap("GET", "/mode", server.port));
    assert_eq!(bytes_of(&action), b"eco", "{action}");
}

#[test]
fn a_udp_device_receives_a_datagram_at_once() {
    let setup = TestService::new("127.0.10.2");
    let device = UdpDevice::from(&setup.ip, &setup.service);
    for payload in ["on", "grün"] {
        let id = setup.create("UDP", &datagram(payload, device.port()));
        assert_eq!(device.receive(), payload.as_bytes());
        let action = setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
        assert_eq!(
            action["resultData"],
            Value::Null,
            "nobody answers a datagram"
        );
    }
}

/// A service, a caller of its API and one device, which is identified by its address.
struct TestService {
    service: Service,
    caller: Caller,
    ip: String,
}

impl TestService {
    fn new(ip: &str) -> Self {
        Self::with(ip, &[])
    }

    fn with(ip: &str, settings: &[(&str, &str)]) -> Self {
        // The device may be sent requests before it was heard from.
        let private = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");
        let service = Service::start_with(&[&[private], settings].concat());
        let caller = Caller::of_new_customer(&service, "Meter Works");
        caller.create_device(ID, ip);
        Self {
            service,
            caller,
            ip: ip.to_owned(),
        }
    }

    fn create(&self, protocol: &str, body: &Value) -> String {
        self.caller.create_over(protocol, ID, body)
    }

    /// Creates a request over CoAP and returns its record once it is final.
    fn perform(&self, body: &Value) -> Value {
        self.caller.final_action(&self.create("COAP", body))
    }

    /// A port at the device's address that is not in use.
    fn free_port(&self) -> u16 {
        let probe = UdpSocket::bind((self.ip.as_str(), 0)).unwrap();
        probe.local_addr().unwrap().port()
    }

    /// Waits for the data the device sent by itself.
    fn expect_reported(&self, expected: &[ReportedData]) {
        let reported = until("the data of the device", || {
            let reported = self.caller.reported(ID);
            (reported.len() >= expected.len()).then_some(reported)
        });
        assert_eq!(reported, expected);
    }
}

/// The text of the device's response.
fn text_of(action: &Value) -> String {
    assert_eq!(action["resultData"]["payloadType"], "TEXT", "{action}");
    text(&action["resultData"]["payload"])
}

/// The bytes of the device's response, which was not text.
fn bytes_of(action: &Value) -> Vec<u8> {
    assert_eq!(action["resultData"]["payloadType"], "BASE64", "{action}");
    let payload = text(&action["resultData"]["payload"]);
    BASE64_STANDARD.decode(payload).unwrap()
}

/// A long text.
fn large() -> String {
    let numbers = (0..).map(|number: usize| format!("{number:07}\n"));
    numbers.take(LARGE_BYTES / 8).collect()
}
