//! Are SMS of devices forwarded, and SMS to devices sent at most once and reported?

mod forwarding;
mod gateway;
mod link;
mod listing;
mod sending;
mod session;
mod waking;

use serde_json::{Value, json};

use crate::test_service::start;
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::http::Response;
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;

/// Allows deliveries to the endpoints of tests.
const PRIVATE: (&str, &str) = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");

/// The SIM of the device of these tests.
const ICCID: &str = "8988280666000000001";

/// Its number.
const MSISDN: &str = "882285100000001";

/// The paths of the network.
const NETWORK: &str = "/operator-api/v1/network/sms";

/// A service, a customer and its device, and the network.
struct SmsService {
    service: Service,
    caller: Caller,
    network: Caller,
}

impl SmsService {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(settings: &[(&str, &str)]) -> Self {
        let settings = [&[PRIVATE], settings].concat();
        let (service, caller) = start(&settings);
        let network = Caller::operator(&service);
        let it = Self {
            service,
            caller,
            network,
        };
        it.device(&it.caller, "tracker", (ICCID, MSISDN));
        it
    }

    /// Creates a device.
    fn device(&self, caller: &Caller, name: &str, (iccid, msisdn): (&str, &str)) {
        let body = json!({ "deviceId": name, "iccid": iccid, "msisdn": msisdn, "name": "Tracker" });
        caller.post(&format!("{API}/devices"), &body).expect(201);
    }

    /// Sets the endpoint of the SMS forwarder.
    fn forward_to(&self, endpoint: &Endpoint) -> Value {
        put_forwarder(&self.caller, &endpoint.url("/sms/")).expect(200)
    }

    /// The SMS forwarder.
    fn forwarder(&self) -> Value {
        let path = format!("{API}/sms/forwarder");
        self.caller.request("GET", &path).expect(200)
    }

    /// Hands in a message of the device.
    fn hand_in(&self, text: &str) -> Value {
        self.mo(&received(MSISDN, text)).expect(202)
    }

    fn mo(&self, body: &Value) -> Response {
        self.network.post(&format!("{NETWORK}/mo"), body)
    }

    /// Reports the outcome of an SMS.
    fn report(&self, id: &Value, status: &str) -> Response {
        let body = json!({ "id": id, "status": status });
        self.network.post(&format!("{NETWORK}/dlr"), &body)
    }

    /// Takes SMS as the network does.
    fn take(&self) -> Value {
        let path = format!("{NETWORK}/mt");
        self.network.post(&path, &json!({})).expect(200)
    }

    /// Sends an SMS to the device, and returns its id.
    fn send(&self, body: &Value) -> Value {
        self.try_send(body).expect(201)["id"].clone()
    }

    fn try_send(&self, body: &Value) -> Response {
        self.caller.post(&sms_path(""), body)
    }

    /// An SMS of the device.
    fn shown(&self, id: &Value) -> Value {
        let path = sms_path(&format!("/{id}"));
        self.caller.request("GET", &path).expect(200)
    }

    /// An SMS, once it has a status.
    fn once_in(&self, id: &Value, status: &str) -> Value {
        until(status, || {
            let shown = self.shown(id);
            (shown["status"]["status"] == status).then_some(shown)
        })
    }

    fn cancel(&self, id: &Value) -> Response {
        let path = sms_path(&format!("/{id}"));
        self.caller.request("DELETE", &path)
    }

    /// Kills the service and starts it again.
    fn crash(&mut self) {
        self.service.kill();
        self.service.start_again();
        self.caller.follow(&self.service);
        self.network.follow(&self.service);
    }
}

fn put_forwarder(caller: &Caller, url: &str) -> Response {
    let path = format!("{API}/sms/forwarder");
    let put = caller.authorized("PUT", &path);
    put.json(&json!({ "url": url })).send(caller.address())
}

fn sms_path(rest: &str) -> String {
    format!("{API}/sims/{ICCID}/sms{rest}")
}

/// A message that a device with this number sent.
fn received(msisdn: &str, text: &str) -> Value {
    json!({
        "source_address": msisdn,
        "dest_address": "1234",
        "payload": text,
        "dcs": 0,
        "pid": 0,
    })
}

/// A text to the device.
fn text_to_device(text: &str) -> Value {
    json!({ "source_address": "1234", "payload": text })
}
