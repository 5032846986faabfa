//! Are devices that speak plain CoAP, or no protocol at all, heard and reached like any other?

mod arbiters;
mod bad_input;
mod blocks;
mod coap_actions;
mod crash;
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

/// What the customer calls the device.
const ID: &str = "sensor-1";

/// Where the device is.
const IP: &str = "127.0.0.11";

/// Where it is not.
const ELSEWHERE: &str = "127.0.0.12";

/// What the log says when a device is heard for the first time.
const FIRST_CONTACT: &str = "Lifecycle[DeviceFirstTimeRegistered]";

/// A service, a caller, and a device of plain CoAP and of UDP that was never heard.
struct PlainService {
    coap: DeviceSocket,
    udp: UdpDevice,
    caller: Caller,
    service: Service,
    /// The message id of what it says next over CoAP.
    next_id: u16,
}

impl PlainService {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(settings: &[(&str, &str)]) -> Self {
        let (service, caller) = start(&[&[PATIENT], settings].concat());
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

    /// Has the device post something, which is durable when this returns.
    fn post(&mut self, payload: &str) {
        let said = data("t", payload, self.id());
        let answered = self.coap.ask_until_answered(&said);
        assert_eq!(answered.code, Code::CHANGED, "{payload}");
    }

    /// Asks something of the device over CoAP and gives the request's id.
    fn create_coap(&self, body: &Value) -> String {
        self.caller.create_over("COAP", ID, body)
    }

    /// Asks something of the device over UDP and gives the request's id.
    fn create_udp(&self, body: &Value) -> String {
        self.caller.create_over("UDP", ID, body)
    }

    /// Has the device answer what it is asked next, and gives that.
    fn answer_next(&self, code: Code, text: &str) -> Message {
        let asked = self.coap.receive_request();
        let said = text_of(answer(&asked, code), text);
        self.coap.send(&said.encode());
        asked
    }

    /// Has a value of the device observed, which speaks LwM2M behind a wire, and gives the token
    /// it is told under.
    fn observe(&self, lwm2m: &DeviceSocket) -> Token {
        let id = self.caller.create_action(ID, &observe_start("/3/0/9"));
        let asked = lwm2m.receive_request();
        let first = answer(&asked, Code::CONTENT).with_observe(1);
        lwm2m.send(&text_of(first, "80").encode());
        assert_eq!(self.caller.final_action(&id)["status"], "SUCCEEDED");
        asked.token
    }

    /// Kills the service without a word and starts it again; caller and device stay.
    fn crash(&mut self) {
        self.service.kill();
        self.service.start_again();
        self.caller.follow(&self.service);
    }

    /// How often the log has a message about a device.
    fn logged(&self, device: &str, message: &str) -> usize {
        let path = format!("{API}/administrationLogs?pageSize=25&iccid={device}");
        let page = self.caller.request("GET", &path).expect(200);
        let entries = page["items"].as_array().unwrap();
        let is_it = |entry: &&Value| entry["message"] == message;
        entries.iter().filter(is_it).count()
    }
}

/// A message that carries text.
fn text_of(message: Message, text: &str) -> Message {
    message
        .with_content_format(ContentFormat::TEXT)
        .with_payload(text)
}

/// The status and how many attempts are left.
fn standing(action: &Value) -> (&str, u64) {
    let left = action["sendAttemptsLeft"].as_u64();
    let status = action["status"].as_str();
    status
        .zip(left)
        .unwrap_or_else(|| panic!("no standing: {action}"))
}
