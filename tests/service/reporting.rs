//! Is a device read by passive reporting if its customer enabled it, and only then?

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use harness::device::configuration::{CompositeRead, Configuration};
use harness::device::resource::Resource;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::{Value as Json, json};
use socket2::SockRef;

use crate::test_service::{ID, TestService, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::lwm2m::{outcome, read};
use crate::vocabulary::poll::until;

const LATITUDE: Path = Path::resource(6, 0, 0);
const SENT: Path = Path::resource(7, 0, 2);

#[test]
fn a_device_is_read_when_it_registers_and_when_it_updates() {
    let (service, caller) = start(&[]);
    switch(&caller, "ENABLED");
    caller.create_device(ID, DEVICE_IP);
    let mut device = Device::registered(&service, tracker());
    let expected = [
        json!({ "/6/0/0": 52.5, "/6/0/1": 13.25 }),
        json!({ "/7/0/2": 5, "/7/0/3": 7 }),
    ];
    assert_eq!(once_reported(&caller, 2), expected);
    device.set(LATITUDE, Value::Float(-33.5));
    device.update();
    let values = once_reported(&caller, 4);
    let moved = json!({ "/6/0/0": -33.5, "/6/0/1": 13.25 });
    assert_eq!(values[2..], [moved, expected[1].clone()]);
    let known = caller.known_value(ID, "/6/0/0").unwrap();
    assert_eq!(
        (&known["value"], &known["type"]),
        (&json!(-33.5), &json!("FLOAT"))
    );
    let requested_paths = requested_paths(&device);
    assert_eq!(requested_paths, ["/6", "/7", "/6", "/7"], "neither 1 nor 3");
}

#[test]
fn a_request_does_not_wait_for_a_composite_read_that_is_never_answered() {
    let (service, caller) = start(&[("SIGNALBOX_PASSIVE_RESPONSE_TIMEOUT_MS", "200")]);
    switch(&caller, "ENABLED");
    caller.create_device(ID, DEVICE_IP);
    let formats = [ContentFormat::TEXT, ContentFormat::SENML_JSON];
    let configuration = Configuration {
        formats: formats.to_vec(),
        announced: formats.to_vec(),
        composite: CompositeRead::AcknowledgedOnly,
        ..tracker()
    };
    let _device = Device::registered(&service, configuration);
    let exchange = until("the composite read", || {
        caller.inspect(ID).get("exchange").cloned()
    });
    assert_eq!(exchange["purpose"], "PASSIVE_REPORTING");
    let action = caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    let action = caller.action(action["id"].as_str().unwrap());
    let first = &action["timeline"][0];
    let waited = (&first["event"], &first["for"]);
    assert_eq!(waited, (&json!("WAITING"), &json!("PASSIVE_REPORTING")));
}

#[test]
fn values_read_are_delivered_to_the_customer_s_endpoint() {
    let (service, caller) = start(&[("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true")]);
    switch(&caller, "ENABLED");
    let endpoint = Endpoint::new();
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let body = json!({ "name": "Values", "url": endpoint.url("/"), "eventTypes": types });
    let path = format!("{API}/integrate/clouds/webhooks");
    caller.post(&path, &body).expect(201);
    caller.create_device(ID, DEVICE_IP);
    let _device = Device::registered(&service, tracker());
    let posted = endpoint.once(2);
    let values = posted
        .iter()
        .map(|it| it.json()["payload"]["value"].clone());
    let values: Vec<Json> = values.collect();
    let place = json!({ "/6/0/0": 52.5, "/6/0/1": 13.25 });
    assert_eq!(values, [place, json!({ "/7/0/2": 5, "/7/0/3": 7 })]);
}

#[test]
fn a_device_is_not_read_unless_its_customer_enabled_it() {
    let mut setup = TestService::with(&[], tracker());
    setup.device.update();
    let action = setup.caller.perform(ID, &read("/7/0/2"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(requested_paths(&setup.device), ["/7/0/2"]);
    switch(&setup.caller, "ENABLED");
    setup.device.update();
    assert_eq!(once_reported(&setup.caller, 2).len(), 2);
    switch(&setup.caller, "DISABLED");
    setup.device.update();
    let action = setup.caller.perform(ID, &read("/7/0/3"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(
        requested_paths(&setup.device),
        ["/7/0/2", "/6", "/7", "/7/0/3"]
    );
    assert_eq!(reported(&setup.caller).len(), 2);
}

#[test]
fn the_setting_of_one_customer_does_not_affect_another() {
    let (service, caller) = start(&[]);
    let other = Caller::of_new_customer(&service, "Umbrella");
    switch(&other, "ENABLED");
    caller.create_device(ID, DEVICE_IP);
    let mut device = Device::registered(&service, tracker());
    device.update();
    caller.perform(ID, &read("/7/0/2"));
    assert_eq!(requested_paths(&device), ["/7/0/2"]);
}

#[test]
fn passive_reporting_continues_after_a_crash() {
    let mut setup = TestService::with(&[], tracker());
    switch(&setup.caller, "ENABLED");
    setup.crash();
    setup.device.update();
    let values = once_reported(&setup.caller, 2);
    assert_eq!(values[1], json!({ "/7/0/2": 5, "/7/0/3": 7 }));
}

#[test]
fn a_change_applies_even_if_its_caller_disconnects() {
    let mut setup = TestService::with(&[], tracker());
    for left_after_us in (200..4_000).step_by(200) {
        switch(&setup.caller, "DISABLED");
        let before = reported(&setup.caller).len();
        switch_and_leave(&setup.caller, Duration::from_micros(left_after_us));
        if setting(&setup.caller) == "ENABLED" {
            until("a report", || {
                setup.device.update();
                (reported(&setup.caller).len() > before).then_some(())
            });
        }
    }
}

/// A device with a location, connectivity statistics, and the mandatory objects.
fn tracker() -> Configuration {
    let mut configuration = Configuration::new(ID);
    let is_of_all = |resource: &Resource| matches!(resource.path.object_id(), 1 | 3);
    configuration.resources.retain(is_of_all);
    let more = [
        (LATITUDE, Value::Float(52.5)),
        (Path::resource(6, 0, 1), Value::Float(13.25)),
        (SENT, Value::Integer(5)),
        (Path::resource(7, 0, 3), Value::Integer(7)),
    ];
    let more = more.map(|(path, value)| Resource::holding(path, value));
    configuration.resources.extend(more);
    configuration
}

fn switch(caller: &Caller, state: &str) {
    let answer = caller.try_send("PATCH", &setting_path(), &json!({ "state": state }));
    assert_eq!(answer.unwrap().expect(200)["state"], state);
}

/// Sends the change of the setting and closes the connection a little later.
fn switch_and_leave(caller: &Caller, left_after: Duration) {
    let mut stream = TcpStream::connect(caller.address()).unwrap();
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    let (token, body) = (caller.token(), r#"{"state":"ENABLED"}"#);
    let (path, length) = (setting_path(), body.len());
    let request = format!(
        "PATCH {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let sent_at = Instant::now();
    while sent_at.elapsed() < left_after {
        std::hint::spin_loop();
    }
}

fn setting(caller: &Caller) -> Json {
    let path = format!("{API}/settings/signalbox");
    let listed = caller.request("GET", &path).expect(200);
    listed["items"][0]["state"].clone()
}

fn setting_path() -> String {
    format!("{API}/settings/signalbox/LWM2M_PASSIVE_REPORTING")
}

/// The values the device reported at registrations and updates, oldest first.
fn reported(caller: &Caller) -> Vec<Json> {
    let mut messages = caller.messages(ID);
    messages.reverse();
    let is_it = |message: &&Json| message["cause"]["type"] == "PASSIVE_REPORT";
    let values = messages.iter().filter(is_it);
    values
        .map(|message| message["payload"]["value"].clone())
        .collect()
}

fn once_reported(caller: &Caller, times: usize) -> Vec<Json> {
    until(&format!("{times} reports"), || {
        let values = reported(caller);
        (values.len() >= times).then_some(values)
    })
}

/// The paths of the requests the device received, oldest first.
fn requested_paths(device: &Device) -> Vec<String> {
    let performed = device.performed().into_iter();
    performed.map(|done| done.path.to_string()).collect()
}
