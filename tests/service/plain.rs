//! Are devices that speak plain CoAP or send bare datagrams received from and reached like any
//! other?

mod arbiters;
mod bad_input;
mod blocks;
mod coap_actions;
mod crash;
mod forbidden;
mod identity;
mod ingest;
mod promises;
mod queue_mode;
mod rivals;
mod table;
mod udp_actions;
mod wake_up;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::coap::token::Token;
use serde_json::Value;

use crate::test_service::{PATIENT, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::lwm2m::observe_start;
use crate::vocabulary::plain::{UdpDevice, answer, data};
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::DeviceSocket;

/// The device id.
const ID: &str = "sensor-1";

/// The address of the device.
const IP: &str = "127.0.0.11";

/// An address that the device does not have.
const ELSEWHERE: &str = "127.0.0.12";

/// Requests are sent to local addresses, too.
const PRIVATE: (&str, &str) = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");

/// The log message of a first contact.
const FIRST_CONTACT: &str = "Lifecycle[DeviceFirstTimeRegistered]";

/// A service, a caller, and a device of plain CoAP and of UDP that has sent nothing yet.
struct PlainService {
    coap: DeviceSocket,
    udp: UdpDevice,
    caller: Caller,
    service: Service,
    /// The message id of the device's next CoAP message.
    next_id: u16,
}

impl PlainService {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(settings: &[(&str, &str)]) -> Self {
        // The device may be sent requests before it was heard from.
        let (service, caller) = start(&[&[PATIENT, PRIVATE], settings].concat());
        caller.create_device(ID, IP);
        Self {
            coap: DeviceSocket::from(IP, &service),
            udp: UdpDevice::from(IP, &service),
            caller,
            service,
            next_id: 1,
        }
    }

    /// The next message id of the device.
    fn id(&mut self) -> u16 {
        self.next_id += 1;
        self.next_id
    }

    /// Has the device post data, which is durable when this returns.
    fn post(&mut self, payload: &str) {
        let message = data("t", payload, self.id());
        let answered = self.coap.ask_until_answered(&message);
        assert_eq!(answered.code, Code::CHANGED, "{payload}");
    }

    /// Creates an action request over CoAP and returns its id.
    fn create_coap(&self, body: &Value) -> String {
        self.caller.create_over("COAP", ID, body)
    }

    /// Creates an action request over UDP and returns its id.
    fn create_udp(&self, body: &Value) -> String {
        self.caller.create_over("UDP", ID, body)
    }

    /// Has the device answer the next request, and returns the request.
    fn answer_next(&self, code: Code, text: &str) -> Message {
        let request = self.coap.receive_request();
        let message = text_of(answer(&request, code), text);
        self.coap.send(&message.encode());
        request
    }

    /// Starts an observation of a value of the device, which speaks LwM2M at the given socket, and
    /// returns the token of its notifications.
    fn observe(&self, lwm2m: &DeviceSocket) -> Token {
        let id = self.caller.create_action(ID, &observe_start("/3/0/9"));
        let request = lwm2m.receive_request();
        let first = answer(&request, Code::CONTENT).with_observe(1);
        lwm2m.send(&text_of(first, "80").encode());
        assert_eq!(self.caller.final_action(&id)["status"], "SUCCEEDED");
        request.token
    }

    /// Kills the service and starts it again; caller and device stay.
    fn crash(&mut self) {
        self.service.kill();
        self.service.start_again();
        self.caller.follow(&self.service);
    }

    /// How many log entries about a device have this message.
    fn logged(&self, device: &str, message: &str) -> usize {
        let path = format!("{API}/administrationLogs?pageSize=25&iccid={device}");
        let page = self.caller.request("GET", &path).expect(200);
        let entries = page["items"].as_array().unwrap();
        let is_it = |entry: &&Value| entry["message"] == message;
        entries.iter().filter(is_it).count()
    }
}

/// A message with a text payload.
fn text_of(message: Message, text: &str) -> Message {
    message
        .with_content_format(ContentFormat::TEXT)
        .with_payload(text)
}

/// The status and how many attempts are left.
fn progress(action: &Value) -> (&str, u64) {
    let left = action["sendAttemptsLeft"].as_u64();
    let status = action["status"].as_str();
    status
        .zip(left)
        .unwrap_or_else(|| panic!("no progress: {action}"))
}
