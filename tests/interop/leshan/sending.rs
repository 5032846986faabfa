//! Do values that Leshan sends, and values read by passive reporting, reach a customer's endpoint
//! with types and times, across failures of the service and of the endpoint?

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{Device, ID, TestService};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;

const TEMPERATURE: &str = "/3303/0/5700";

/// The formats Leshan sends in: SenML JSON and SenML CBOR.
const FORMATS: [u16; 2] = [110, 112];

/// Five tries in a fraction of a second: a longer outage fails the webhook.
const QUICK: (&str, &str) = ("SIGNALBOX_DELIVERY_RETRY_MS", "50,50,50,50");

#[test]
fn a_send_is_delivered_with_types() {
    let setup = setup_for("127.0.9.90");
    let endpoint = Endpoint::new();
    values_to(&setup, &endpoint);
    let mut device = setup.registered();
    let paths = [
        "/3442/0/110",
        "/3442/0/120",
        "/3442/0/125",
        "/3442/0/130",
        "/3442/0/140",
        "/3442/0/150",
        "/3442/0/160",
        "/3442/0/170",
        "/3442/0/180",
        "/3442/0/1120/0",
    ];
    #[allow(clippy::approx_constant, reason = "it is what Leshan begins with")]
    let values = json!({
        "/3442/0/110": "initial value",
        "/3442/0/120": 1024,
        "/3442/0/125": 9_223_372_036_854_775_808_u64,
        "/3442/0/130": 3.14159,
        "/3442/0/140": true,
        "/3442/0/150": "ASNFZ4mrze8=",
        "/3442/0/160": "2000-01-01T00:00:00Z",
        "/3442/0/170": "3:0",
        "/3442/0/180": "</3442>",
        "/3442/0/1120/0": 1024,
    });
    for (number, format) in FORMATS.into_iter().enumerate() {
        device.command(&format!("send {format} {}", paths.join(" ")));
        assert_eq!(device.wait_for("sent"), "204", "{format}");
        let posted = endpoint.once_taken(number + 1);
        assert_eq!(value_of(&posted[number]), values, "{format}");
        assert_eq!(measured_ms(&posted[number]), None, "{format}");
    }
}

#[test]
fn collected_samples_are_delivered_with_their_own_times() {
    let setup = setup_for("127.0.9.91");
    let endpoint = Endpoint::new();
    values_to(&setup, &endpoint);
    let mut device = setup.registered();
    for (round, format) in FORMATS.into_iter().enumerate() {
        let mut collected = Vec::new();
        for value in ["20.5", "21.25", "-3.0"] {
            device.command(&format!("set {TEMPERATURE} {value}"));
            device.wait_for("set");
            let before_ms = now_ms();
            device.command(&format!("collect {TEMPERATURE}"));
            device.wait_for("collected");
            let value: f64 = value.parse().unwrap();
            collected.push((value, before_ms, now_ms()));
        }
        device.command(&format!("send-collected {format}"));
        let posted = endpoint.once_taken(3 * (round + 1));
        for (posted, (value, from_ms, until_ms)) in posted.iter().skip(3 * round).zip(collected) {
            assert_eq!(value_of(posted), json!({ TEMPERATURE: value }), "{format}");
            let measured_ms = measured_ms(posted).expect("it says when");
            // The time is rounded to a whole millisecond.
            let (from_ms, until_ms) = (from_ms - 1, until_ms + 1);
            assert!(
                (from_ms..=until_ms).contains(&measured_ms),
                "{format}: {measured_ms} is not within {from_ms} and {until_ms}"
            );
        }
    }
    let shown = setup.caller.inspect(ID);
    let mut values = shown["values"].as_array().unwrap().iter();
    let known = values.find(|value| value["path"] == TEMPERATURE);
    assert_eq!(known.unwrap()["value"], json!(-3.0), "{shown}");
}

#[test]
fn passive_reports_are_delivered_when_the_device_registers_and_updates() {
    let setup = setup_for("127.0.9.92");
    let endpoint = Endpoint::new();
    values_to(&setup, &endpoint);
    let path = format!("{API}/settings/signalbox/LWM2M_PASSIVE_REPORTING");
    let enabled = json!({ "state": "ENABLED" });
    let answer = setup.caller.try_send("PATCH", &path, &enabled).unwrap();
    assert_eq!(answer.expect(200)["state"], "ENABLED");
    let mut device = setup.registered();
    let values_by_path = everything_delivered(
        &endpoint,
        &["/3303/0/5700", "/3311/0/5851", "/3442/0/1180/0"],
    );
    assert_eq!(values_by_path[TEMPERATURE], json!(21.5));
    assert_eq!(values_by_path["/3311/0/5850"], json!(false));
    assert_eq!(
        values_by_path["/3442/0/125"],
        json!(9_223_372_036_854_775_808_u64)
    );
    let is_left_alone = |path: &&String| path.starts_with("/3/") || path.starts_with("/1/");
    assert_eq!(
        values_by_path.keys().find(is_left_alone),
        None,
        "{values_by_path:?}"
    );

    device.command(&format!("set {TEMPERATURE} 4.5"));
    device.wait_for("set");
    device.command("update");
    device.wait_for("updated");
    until("the new value", || {
        let is_new = |posted: &ReceivedPost| value_of(posted)[TEMPERATURE] == json!(4.5);
        endpoint.posted().iter().any(is_new).then_some(())
    });
}

#[test]
fn nothing_sent_is_lost_by_an_outage_of_the_endpoint_and_a_kill_of_the_service() {
    let mut setup = setup_for("127.0.9.93");
    let mut endpoint = Endpoint::new();
    let webhook = values_to(&setup, &endpoint);
    let mut device = setup.registered();
    send(&mut device, 1);
    endpoint.once_taken(1);

    endpoint.close();
    for number in 2..=6 {
        send(&mut device, number);
    }
    once_in(&setup, &webhook, "INTEGRATION_FAILED");
    setup.service.kill();
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    for number in 7..=9 {
        send(&mut device, number);
    }
    endpoint.open();
    let restarted = setup.caller.post(&format!("{webhook}/restart"), &json!({}));
    assert_eq!(restarted.expect(200)["state"], "INTEGRATION_ACTIVE");
    let replay = setup
        .caller
        .post(&format!("{webhook}/deadletters/replay"), &json!({}));
    replay.expect(202);
    send(&mut device, 10);
    until("every value", || {
        let posted = endpoint.once_taken(10);
        (first_of_each(&posted) == (1..=10).map(f64::from).collect::<Vec<_>>()).then_some(())
    });
}

/// A service whose deliveries to test endpoints are allowed, with five quick tries.
fn setup_for(address: &str) -> TestService {
    let private = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");
    TestService::of(Service::start_with(&[private, QUICK]), address)
}

/// Creates a webhook that receives values only, and returns its path.
fn values_to(setup: &TestService, endpoint: &Endpoint) -> String {
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let body = json!({ "name": "Values", "url": endpoint.url("/in"), "eventTypes": types });
    let all = format!("{API}/integrate/clouds/webhooks");
    let made = setup.caller.post(&all, &body).expect(201);
    format!("{all}/{}", text(&made["id"]))
}

/// The device measures a number and sends it.
fn send(device: &mut Device, number: u32) {
    device.command(&format!("set {TEMPERATURE} {number}"));
    device.wait_for("set");
    device.command(&format!("send 112 {TEMPERATURE}"));
    assert_eq!(device.wait_for("sent"), "204", "{number}");
}

fn once_in(setup: &TestService, webhook: &str, state: &str) {
    until(state, || {
        let shown = setup.caller.request("GET", webhook).expect(200);
        (shown["state"] == state).then_some(())
    });
}

fn value_of(posted: &ReceivedPost) -> Value {
    let event = posted.json();
    assert_eq!(event["type"], "TELEMETRY_DATA", "{event}");
    assert_eq!(event["source"], "LWM2M", "{event}");
    assert_eq!(event["payload"]["type"], "JSON", "{event}");
    event["payload"]["value"].clone()
}

fn measured_ms(posted: &ReceivedPost) -> Option<u128> {
    let event = posted.json();
    let measured = event.get("measured")?;
    Some(text(measured).parse().unwrap())
}

/// Every delivered value, once these paths are among them.
fn everything_delivered(endpoint: &Endpoint, paths: &[&str]) -> serde_json::Map<String, Value> {
    until("what is read", || {
        let mut values_by_path = serde_json::Map::new();
        for posted in endpoint.posted() {
            let Value::Object(values) = value_of(&posted) else {
                continue;
            };
            values_by_path.extend(values);
        }
        let is_delivered = |path: &&str| values_by_path.contains_key(*path);
        paths.iter().all(is_delivered).then_some(values_by_path)
    })
}

/// The accepted temperatures, in the order of their first deliveries.
fn first_of_each(posted: &[ReceivedPost]) -> Vec<f64> {
    let mut ids = Vec::new();
    let mut values = Vec::new();
    for posted in posted {
        if !ids.contains(&posted.id()) {
            ids.push(posted.id());
            values.push(value_of(posted)[TEMPERATURE].as_f64().unwrap());
        }
    }
    values
}

fn now_ms() -> u128 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.unwrap().as_millis()
}
