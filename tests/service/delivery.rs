//! Are the events of devices delivered to their customer's endpoint, however the endpoint behaves?

mod batches;
mod breaking;
mod crashes;
mod events;
mod failing;
mod limits;
mod neighbours;
mod plugins;
mod refused;
mod trust;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use serde_json::{Value, json};

use crate::test_service::start;
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost, taken};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{DeviceSocket, register_with, request};

/// The path of the values of a meter.
const PATH: &str = "/3303/0/5700";

/// The signing secret of a customer.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Allows deliveries to the endpoints of tests.
const PRIVATE: (&str, &str) = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");

/// Five tries in a fraction of a second.
const QUICK: (&str, &str) = ("SIGNALBOX_DELIVERY_RETRY_MS", "50,50,50,50");

/// So many tries that no test reaches the last one.
const STEADY: (&str, &str) = (
    "SIGNALBOX_DELIVERY_RETRY_MS",
    "50,100,200,400,800,1600,3200,6400,6400,6400,6400,6400,6400,6400,6400,6400",
);

/// A service and a customer, with deliveries to the endpoints of tests allowed.
struct DeliveryService {
    service: Service,
    caller: Caller,
}

/// A device controlled datagram by datagram that sends measured values.
struct Meter {
    name: String,
    wire: DeviceSocket,
    next_id: u16,
}

impl DeliveryService {
    fn with(settings: &[(&str, &str)]) -> Self {
        let settings = [&[PRIVATE], settings].concat();
        let (service, caller) = start(&settings);
        Self { service, caller }
    }

    /// Creates a webhook that receives values only, and returns its id.
    fn values_to(&self, endpoint: &Endpoint) -> String {
        let types = json!([{ "type": "TELEMETRY_DATA" }]);
        let body = json!({ "name": "Values", "url": endpoint.url("/in"), "eventTypes": types });
        self.webhook(&body)
    }

    /// Creates a webhook and returns its id.
    fn webhook(&self, body: &Value) -> String {
        text(&self.caller.post(&path(""), body).expect(201)["id"])
    }

    /// The current state of a webhook.
    fn shown(&self, id: &str) -> Value {
        self.caller.request("GET", &path(id)).expect(200)
    }

    fn once_in(&self, id: &str, state: &str) -> Value {
        until(state, || {
            let shown = self.shown(id);
            (shown["state"] == state).then_some(shown)
        })
    }

    /// A webhook, once no event waits for it.
    fn once_done(&self, id: &str) -> Value {
        until("an empty backlog", || {
            let shown = self.shown(id);
            (shown["backlog"]["waiting"] == 0).then_some(shown)
        })
    }

    /// Makes a call about a webhook that needs no body.
    fn ask(&self, id: &str, what: &str, status: u16) -> Value {
        let path = format!("{}/{what}", path(id));
        self.caller.request("POST", &path).expect(status)
    }

    /// Discards one dead letter of a webhook, or all of them.
    fn discard(&self, id: &str, letter: &str, status: u16) {
        let path = format!("{}/deadletters{letter}", path(id));
        let answer = self.caller.request("DELETE", &path);
        assert_eq!(answer.status, status, "{}", answer.text());
    }

    /// Every dead letter of a webhook, read page by page.
    fn dead_letters(&self, id: &str) -> Vec<Value> {
        let mut letters = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("{}/deadletters?pageSize=2{cursor}", path(id));
            let page = self.caller.request("GET", &path).expect(200);
            letters.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return letters,
            }
        }
    }

    /// A registered meter.
    fn meter(&self, name: &str) -> Meter {
        self.caller.create_device(name, DEVICE_IP);
        let wire = DeviceSocket::to(&self.service);
        let endpoint = format!("ep={name}");
        let queries = [endpoint.as_str(), "lt=3600", "lwm2m=1.1", "b=U"];
        let answer = wire.ask(&register_with(&queries, "</1/0>,</3/0>,</3303/0>", 1));
        assert_eq!(answer.code, Code::CREATED, "{answer:?}");
        Meter {
            name: name.to_owned(),
            wire,
            next_id: 2,
        }
    }

    /// Kills the service and starts it again.
    fn crash(&mut self) {
        self.service.kill();
        self.revive();
    }

    /// Starts the killed service again.
    fn revive(&mut self) {
        self.service.start_again();
        self.caller.follow(&self.service);
    }

    /// Stops the service and starts it again with other settings.
    fn restart_with(&mut self, settings: &[(&str, &str)]) {
        self.service.kill();
        self.service.start_again_with(settings);
        self.caller.follow(&self.service);
    }

    /// The latest log entry with this message.
    fn entry(&self, message: &str) -> Option<Value> {
        let entries = self.caller.log_entries();
        entries
            .into_iter()
            .find(|entry| entry["message"] == message)
    }
}

impl Meter {
    /// Sends a value, which is durable when this returns.
    fn send(&mut self, value: f64) {
        let code = self.send_payload(&payload_of(value));
        assert_eq!(code, Code::CHANGED, "{value}");
    }

    /// Sends a payload in SenML JSON and returns the response code.
    fn send_payload(&mut self, payload: &str) -> Code {
        let message = self.sending(payload);
        self.wire.ask_until_answered(&message).code
    }

    /// Sends a value without waiting for the answer.
    fn send_unconfirmed(&mut self, value: f64) {
        let message = self.sending(&payload_of(value));
        self.wire.send(&message.encode());
    }

    fn sending(&mut self, payload: &str) -> Message {
        let id = self.next_id;
        self.next_id += 1;
        request(Code::POST, id)
            .with_uri_path(["dp"])
            .with_content_format(ContentFormat::SENML_JSON)
            .with_payload(payload)
    }
}

/// A service and an endpoint that receives the values of a meter; the id is that of its webhook.
fn metered(settings: &[(&str, &str)]) -> (DeliveryService, Endpoint, String, Meter) {
    let setup = DeliveryService::with(settings);
    let endpoint = Endpoint::new();
    let id = setup.values_to(&endpoint);
    let meter = setup.meter("meter-1");
    (setup, endpoint, id, meter)
}

fn payload_of(value: f64) -> String {
    format!(r#"[{{"n":"{PATH}","v":{value}}}]"#)
}

/// The path of a webhook, or of all of them.
fn path(id: &str) -> String {
    let all = format!("{API}/integrate/clouds/webhooks");
    match id {
        "" => all,
        id => format!("{all}/{id}"),
    }
}

/// The value in a delivered event.
fn value(posted: &ReceivedPost) -> f64 {
    value_in(&posted.json())
}

fn value_in(event: &Value) -> f64 {
    let value = &event["payload"]["value"][PATH];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no value: {event}"))
}

/// The delivered events: one, or those of a batch.
fn events_in(posted: &ReceivedPost) -> Vec<Value> {
    let body = posted.json();
    match body["events"].as_array() {
        Some(events) => events.clone(),
        None => vec![body],
    }
}

/// Everything posted, once the endpoint accepted this many values of the first meter.
fn once_delivered(endpoint: &Endpoint, amount: usize) -> Vec<ReceivedPost> {
    endpoint.once_so("every value", |posted| {
        values_of(&taken(posted), "meter-1").len() == amount
    })
}

/// The delivered values of a device, in the order of their first deliveries.
fn values_of(posted: &[ReceivedPost], device: &str) -> Vec<f64> {
    let mut ids = Vec::new();
    let mut values = Vec::new();
    for event in posted.iter().flat_map(events_in) {
        if event["device"]["iccid"] == device && !ids.contains(&event["id"]) {
            values.push(value_in(&event));
            ids.push(event["id"].clone());
        }
    }
    values
}

/// This many values in order.
fn counted(amount: u32) -> Vec<f64> {
    (1..=amount).map(f64::from).collect()
}
