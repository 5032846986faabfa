//! Do the objects a customer defines apply to its own devices and to no others?

use harness::device::configuration::Configuration;
use harness::device::resource::Resource;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::json;

use crate::test_service::{ID, TestService, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{outcome, read, write};

/// An object that is in no registry: a temperature, an energy, and bytes.
const HEAT_METER: &str = include_str!("../../protocol/tests/definitions/heat_meter.xml");

const CUSTOMERS: &str = "/operator-api/v1/customers";

const FLOW: Path = Path::resource(33_000, 0, 0);
const ENERGY: Path = Path::resource(33_000, 0, 1);
const RAW: Path = Path::resource(33_000, 0, 2);

#[test]
fn values_of_an_object_a_customer_defines_are_checked_before_they_are_sent() {
    let setup = TestService::with(&[], heat_meter(ID));
    assert!(is_left_to_the_device(&setup.caller, ID));
    assert_eq!(define(&setup.caller).status, 201);
    for (path, unfit) in [(FLOW, "warm"), (ENERGY, "12.5"), (ENERGY, "much")] {
        assert!(is_refused(&setup.caller, ID, path, unfit), "{path} {unfit}");
    }
    for (path, text, held) in [
        (FLOW, "22.5", Value::Float(22.5)),
        (ENERGY, "-7", Value::Integer(-7)),
    ] {
        let action = setup.caller.perform(ID, &write(&path.to_string(), text));
        assert_eq!(outcome(&action), ("SUCCEEDED", "204"), "{action}");
        assert_eq!(setup.device.value(path), held);
    }
}

#[test]
fn values_of_an_object_a_customer_defines_are_reported_in_their_types() {
    let setup = TestService::with(&[], heat_meter(ID));
    assert_eq!(define(&setup.caller).status, 201);
    for (path, text, data_type) in [
        (FLOW, "21.5", "FLOAT"),
        (ENERGY, "42", "INTEGER"),
        (RAW, "AQL/", "OPAQUE"),
    ] {
        let path = path.to_string();
        let action = setup.caller.perform(ID, &read(&path));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        assert_eq!(action["resultData"]["payload"], text, "{action}");
        let known = setup
            .caller
            .known_value(ID, &path)
            .expect("it was reported");
        assert_eq!(known["type"], data_type, "{known}");
    }
    let action = setup.caller.perform(ID, &read("/33000/0"));
    let expected = json!({ "/33000/0/0": 21.5, "/33000/0/1": 42, "/33000/0/2": "AQL/" });
    let payload = action["resultData"]["payload"].as_str().unwrap_or_default();
    let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
    assert_eq!(payload, expected, "{action}");
}

#[test]
fn a_definition_applies_after_a_crash_and_until_it_is_removed() {
    let mut setup = TestService::with(&[], heat_meter(ID));
    assert_eq!(define(&setup.caller).status, 201);
    setup.crash();
    setup.device.update();
    assert!(is_refused(&setup.caller, ID, FLOW, "warm"));
    let path = format!("{API}/lwm2m/objects/33000/1.0");
    let shown = setup.caller.request("GET", &path).expect(200);
    assert_eq!(shown["name"], "Heat Meter");
    let xml = setup.caller.authorized("GET", &path);
    let xml = xml
        .header("accept", "application/xml")
        .send(setup.service.http);
    assert_eq!(xml.text(), HEAT_METER);

    assert_eq!(define(&setup.caller).status, 200);
    assert_eq!(setup.caller.request("DELETE", &path).status, 204);
    assert!(is_left_to_the_device(&setup.caller, ID));
    setup.crash();
    setup.device.update();
    assert!(is_left_to_the_device(&setup.caller, ID));
    assert_eq!(setup.caller.request("GET", &path).status, 404);
}

#[test]
fn a_definition_of_one_customer_does_not_apply_to_devices_of_another() {
    let by_name = [("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true")];
    let setup = TestService::with(&by_name, heat_meter(ID));
    let stranger = Caller::of_new_customer(&setup.service, "Umbrella");
    let theirs = json!({ "deviceId": "meter-2" });
    stranger
        .post(&format!("{API}/devices"), &theirs)
        .expect(201);
    let _theirs = Device::registered(&setup.service, heat_meter("meter-2"));
    assert_eq!(define(&setup.caller).status, 201);
    assert!(is_refused(&setup.caller, ID, FLOW, "warm"));
    assert!(is_left_to_the_device(&stranger, "meter-2"));
}

#[test]
fn a_customer_created_again_has_no_definitions() {
    let (service, _) = start(&[]);
    let operator = Caller::operator(&service);
    let new = || {
        let body = json!({ "id": "phoenix", "name": "Phoenix" });
        operator.post(CUSTOMERS, &body).expect(201);
        let caller = ApiClient::make(&service, "phoenix", &json!({ "name": "a test" }));
        let caller = caller.caller(&service);
        caller.create_device(ID, DEVICE_IP);
        (caller, Device::registered(&service, heat_meter(ID)))
    };
    let (caller, device) = new();
    assert_eq!(define(&caller).status, 201);
    assert!(is_refused(&caller, ID, FLOW, "warm"));
    drop(device);
    let removed = operator.request("DELETE", &format!("{CUSTOMERS}/phoenix"));
    assert_eq!(removed.status, 204);
    let (caller, _device) = new();
    assert!(is_left_to_the_device(&caller, ID));
    let listed = caller.request("GET", &format!("{API}/lwm2m/objects"));
    assert_eq!(listed.expect(200)["items"], json!([]));
}

#[test]
fn a_vendor_s_version_of_a_registered_object_applies_to_devices_of_that_version() {
    let setup = TestService::new();
    let sensor = Path::resource(3303, 0, 5700).to_string();
    // The device offers object 3303 without a version, which means 1.0.
    let other = HEAT_METER.replace("<ObjectID>33000", "<ObjectID>3303");
    let other = other.replace("<Item ID=\"1\">", "<Item ID=\"5700\">");
    assert_eq!(put(&setup.caller, &other).status, 201);
    let action = setup.caller.perform(ID, &read(&sensor));
    // The definition makes it an integer, but the device reports a fraction.
    assert_eq!(action["status"], "FAILED", "{action}");
    let path = format!("{API}/lwm2m/objects/3303/1.0");
    assert_eq!(setup.caller.request("DELETE", &path).status, 204);
    let action = setup.caller.perform(ID, &read(&sensor));
    assert_eq!(action["resultData"]["payload"], "21.5", "{action}");
}

/// Whether a value that is no number is refused before the device receives a request.
fn is_refused(caller: &Caller, device: &str, path: Path, unfit: &str) -> bool {
    let action = caller.perform(device, &write(&path.to_string(), unfit));
    assert_eq!(action["status"], "FAILED", "{action}");
    let is_unsent = action["resultData"]["code"].is_null();
    let id = action["id"].as_str().expect("a request has an id");
    let entries = caller.log_entries().into_iter();
    let mut entries = entries.filter(|it| it["message"] == "DeviceController[InvalidDataType]");
    let is_logged = entries.any(|it| it["description"].as_str().unwrap().contains(id));
    assert_eq!(is_unsent, is_logged, "{action}");
    is_unsent
}

/// Whether the check of the value is left to the device.
fn is_left_to_the_device(caller: &Caller, device: &str) -> bool {
    !is_refused(caller, device, FLOW, "warm")
}

fn define(caller: &Caller) -> Response {
    put(caller, HEAT_METER)
}

fn put(caller: &Caller, xml: &str) -> Response {
    let call = caller.authorized("PUT", &format!("{API}/lwm2m/objects"));
    call.text("application/xml", xml).send(caller.address())
}

fn heat_meter(id: &str) -> Configuration {
    let mut configuration = Configuration::new(id);
    configuration.resources.extend([
        Resource::holding(FLOW, Value::Float(21.5)),
        Resource::holding(ENERGY, Value::Integer(42)),
        Resource::holding(RAW, Value::Opaque(vec![1, 2, 255])),
    ]);
    configuration
}
