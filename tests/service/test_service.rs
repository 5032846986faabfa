//! What does a test start from? A service, a caller of a customer, and a device of that customer.

use harness::device::configuration::Configuration;
use serde_json::{Value, json};

use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::service::Service;

/// The device id, which is also the endpoint name it registers with.
pub(crate) const ID: &str = "meter-1";

/// A service that retransmits quickly and gives up soon, for devices that never answer.
pub(crate) const IMPATIENT: [(&str, &str); 2] = [
    ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "50"),
    ("SIGNALBOX_COAP_MAX_RETRANSMIT", "1"),
];

/// A service that retransmits nothing while a device of a test answers, however busy the machine
/// is.
pub(crate) const PATIENT: (&str, &str) = ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "20000");

/// A service whose queue-mode devices sleep immediately after each uplink.
pub(crate) const NEVER_AWAKE: (&str, &str) = ("SIGNALBOX_AWAKE_WINDOW_MS", "1");

/// A service, a caller, and a registered device.
pub(crate) struct TestService {
    pub(crate) device: Device,
    pub(crate) caller: Caller,
    pub(crate) service: Service,
}

impl TestService {
    /// With default settings and a default device.
    pub(crate) fn new() -> Self {
        Self::with(&[], Configuration::new(ID))
    }

    /// With these settings and a device of this configuration.
    pub(crate) fn with(settings: &[(&str, &str)], configuration: Configuration) -> Self {
        let (service, caller) = start(settings);
        caller.create_device(&configuration.endpoint, DEVICE_IP);
        let device = Device::registered(&service, configuration);
        Self {
            device,
            caller,
            service,
        }
    }

    /// Kills the service and starts it again; caller and device stay.
    pub(crate) fn crash(&mut self) {
        crash(&mut self.service, &mut self.caller);
    }
}

/// A service and a caller, without a device.
pub(crate) fn start(settings: &[(&str, &str)]) -> (Service, Caller) {
    let service = Service::start_with(settings);
    let caller = Caller::of_new_customer(&service, "Acme");
    (service, caller)
}

/// Kills the service and starts it again; the caller follows it.
pub(crate) fn crash(service: &mut Service, caller: &mut Caller) {
    service.kill();
    service.start_again();
    caller.follow(service);
}

/// A body with one more property.
pub(crate) fn with(mut body: Value, name: &str, value: impl Into<Value>) -> Value {
    body[name] = value.into();
    body
}

/// The ids of the items of a page, and the page without them.
pub(crate) fn page(caller: &Caller, path: &str) -> (Vec<String>, Value) {
    let mut page = caller.request("GET", &format!("{API}{path}")).expect(200);
    let items = page["items"].take();
    let items = items.as_array().expect("a page has items");
    let ids = items
        .iter()
        .map(|item| item["id"].as_str().expect("an item has an id").to_owned());
    page.as_object_mut()
        .expect("a page is an object")
        .remove("items");
    (ids.collect(), page)
}

/// The keys of an object, in order.
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

/// The codes of the errors of an answer.
pub(crate) fn error_codes(answer: &Value) -> Vec<&str> {
    let errors = answer["errors"]
        .as_array()
        .unwrap_or_else(|| panic!("no errors: {answer}"));
    errors
        .iter()
        .map(|error| error["code"].as_str().unwrap_or_default())
        .collect()
}

/// The fields that the errors of an answer name, in order.
pub(crate) fn error_fields(answer: &Value) -> Vec<String> {
    let errors = answer["errors"]
        .as_array()
        .unwrap_or_else(|| panic!("no errors: {answer}"));
    let mut fields: Vec<_> = errors.iter().map(|error| text(&error["field"])).collect();
    fields.sort();
    fields
}

/// A device of a customer that never registers.
pub(crate) fn silent_device(caller: &Caller, id: &str) {
    let body = json!({ "deviceId": id });
    caller.post(&format!("{API}/devices"), &body).expect(201);
}
