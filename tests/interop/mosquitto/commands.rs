//! Do messages at Mosquitto create action requests, under the rules of the REST API?

use serde_json::{Value, json};

use super::{Mosquitto, MqttService, STEADY, Subscriber};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::plain::{coap, datagram};
use crate::vocabulary::poll::until;

const DEVICE: &str = "urn:dev+7";

/// The levels of the device.
const LEVEL: &str = "acme/urn:dev%2B7";

#[test]
fn a_command_creates_an_action_request_and_is_answered() {
    for version in [5, 3] {
        let setup = MqttService::with(&[STEADY]);
        let broker = Mosquitto::start("allow_anonymous true");
        let mut subscriber = broker.subscriber("acme/#", &[]);
        setup.caller.create_device(DEVICE, "127.77.2.1");
        listening(&setup, &broker, version);
        for (protocol, body) in [
            ("LWM2M", when_active(read("/3/0/0"))),
            ("COAP", when_active(coap("GET", "/", 5_683))),
            ("UDP", when_active(datagram("on", 4_445))),
        ] {
            let topic = format!("{LEVEL}/actions/{protocol}");
            broker.publish(&topic, &body.to_string(), &[]);
            let answer = answer(&mut subscriber);
            assert_eq!(answer["status"], 202, "{answer}");
            let action = setup.caller.action(&text(&answer["body"]["id"]));
            assert_eq!(action["protocol"], protocol, "{action}");
        }
    }
}

#[test]
fn a_command_that_is_refused_is_answered_with_the_errors_of_the_api() {
    let setup = MqttService::with(&[STEADY]);
    let broker = Mosquitto::start("allow_anonymous true");
    let mut subscriber = broker.subscriber("acme/#", &[]);
    setup.caller.create_device(DEVICE, "127.77.2.2");
    listening(&setup, &broker, 5);
    let read = when_active(read("/3/0/0")).to_string();
    for (topic, body, status, code) in [
        (format!("{LEVEL}/actions/LWM2M"), "{", 400, "MALFORMED_BODY"),
        (format!("{LEVEL}/actions/LWM2M"), "{}", 400, "REQUIRED"),
        (format!("{LEVEL}/actions/SMTP"), &*read, 404, "NOT_FOUND"),
        (
            "acme/nobody/actions/LWM2M".to_owned(),
            &*read,
            404,
            "NOT_FOUND",
        ),
    ] {
        broker.publish(&topic, body, &[]);
        let (level, _) = topic.split_once("/actions/").unwrap();
        let answer = subscriber.next(&format!("{level}/action"));
        assert_eq!(answer["type"], "ACTION_RESPONSE");
        assert_eq!(answer["status"], status, "{answer}");
        assert_eq!(answer["body"]["statusCode"], status, "{answer}");
        assert_eq!(answer["body"]["errors"][0]["code"], code, "{answer}");
    }
}

#[test]
fn a_command_with_an_idempotency_key_is_performed_once_and_correlated() {
    let setup = MqttService::with(&[STEADY]);
    let broker = Mosquitto::start("allow_anonymous true");
    let mut subscriber = broker.subscriber("acme/#", &[]);
    setup.caller.create_device(DEVICE, "127.77.2.3");
    listening(&setup, &broker, 5);
    let topic = format!("{LEVEL}/actions/LWM2M");
    let with_key = |key: &str, correlation: &str, path: &str| {
        let body = when_active(read(path)).to_string();
        let key = ["-D", "publish", "user-property", "Idempotency-Key", key];
        let correlation = ["-D", "publish", "correlation-data", correlation];
        broker.publish(&topic, &body, &[&key[..], &correlation[..]].concat());
    };
    with_key("one", "first", "/3/0/0");
    let (correlation, first) = subscriber.next_with_correlation(&format!("{LEVEL}/action"));
    assert_eq!(
        (correlation.as_str(), &first["status"]),
        ("first", &json!(202))
    );
    with_key("one", "second", "/3/0/0");
    let (correlation, second) = subscriber.next_with_correlation(&format!("{LEVEL}/action"));
    assert_eq!(correlation, "second");
    assert_eq!(second["body"]["id"], first["body"]["id"]);
    with_key("one", "third", "/3/0/1");
    let (_, third) = subscriber.next_with_correlation(&format!("{LEVEL}/action"));
    let code = &third["body"]["errors"][0]["code"];
    assert_eq!(code, "IDEMPOTENCY_KEY_REUSED", "{third}");
    assert_eq!(requests(&setup), 1);
}

#[test]
fn commands_sent_while_the_service_is_away_are_performed_once_it_is_back() {
    for version in [5, 3] {
        let mut setup = MqttService::with(&[STEADY]);
        let broker = Mosquitto::start("allow_anonymous true");
        let mut subscriber = broker.subscriber("acme/#", &[]);
        setup.caller.create_device(DEVICE, "127.77.2.4");
        listening(&setup, &broker, version);
        setup.service.kill();
        let topic = format!("{LEVEL}/actions/LWM2M");
        for resource in 0..3 {
            let body = when_active(read(&format!("/3/0/{resource}"))).to_string();
            broker.publish(&topic, &body, &[]);
        }
        setup.service.start_again();
        setup.caller.follow(&setup.service);
        let ids: Vec<Value> = (0..3)
            .map(|_| answer(&mut subscriber)["body"]["id"].clone())
            .collect();
        for (id, resource) in ids.iter().zip(0..) {
            let action = setup.caller.action(&text(id));
            let path = format!("/3/0/{resource}");
            assert_eq!(action["requestData"]["resourceAddress"], path, "{action}");
        }
        assert_eq!(requests(&setup), 3);
    }
}

#[test]
fn nothing_is_performed_unless_commands_are_on() {
    let setup = MqttService::with(&[STEADY]);
    let broker = Mosquitto::start("allow_anonymous true");
    let mut subscriber = broker.subscriber("acme/#", &[]);
    setup.caller.create_device(DEVICE, "127.77.2.5");
    let made = setup.create(&broker, &json!({}));
    let topic = format!("{LEVEL}/actions/LWM2M");
    let body = when_active(read("/3/0/0")).to_string();
    // A retained command is older than the subscription: it is not performed either.
    broker.publish(&topic, &body, &["-r"]);
    setup.ask(&made, "test", 200);
    let on = json!({ "commands": true });
    setup
        .caller
        .try_send("PATCH", &made, &on)
        .unwrap()
        .expect(200);
    subscribed(&setup, &broker);
    let body = when_active(read("/3/0/1")).to_string();
    broker.publish(&topic, &body, &[]);
    let answer = answer(&mut subscriber);
    let action = setup.caller.action(&text(&answer["body"]["id"]));
    assert_eq!(
        action["requestData"]["resourceAddress"], "/3/0/1",
        "{action}"
    );
    assert_eq!(requests(&setup), 1);
}

#[test]
fn commands_need_the_right_to_create_action_requests() {
    let setup = MqttService::with(&[STEADY]);
    let broker = Mosquitto::start("allow_anonymous true");
    let whole = ApiClient::of_new_customer(&setup.service, "Umbrella");
    let scopes = json!({ "name": "narrow", "scopes": ["integrations:write"] });
    let narrow = ApiClient::make(&setup.service, &whole.customer, &scopes);
    let [whole, narrow] = [whole, narrow].map(|client| client.caller(&setup.service));
    let url = format!("mqtt://{}", broker.address);
    let body = json!({ "name": "N", "url": url, "topicPrefix": "acme", "commands": true });
    let refused = narrow.post(super::BROKERS, &body).expect(403);
    assert_eq!(refused["errors"][0]["code"], "FORBIDDEN", "{refused}");
    let made = whole.post(super::BROKERS, &body).expect(201);
    let made = format!("{}/{}", super::BROKERS, text(&made["id"]));
    let elsewhere = json!({ "topicPrefix": "other" });
    let moved = narrow.try_send("PATCH", &made, &elsewhere).unwrap();
    moved.expect(403);
}

/// Creates an integration with commands, and waits until the broker has its subscription.
fn listening(setup: &MqttService, broker: &Mosquitto, version: u8) {
    setup.create(
        broker,
        &json!({ "version": version, "commands": true, "eventTypes":
        [{ "type": "TELEMETRY_DATA" }] }),
    );
    subscribed(setup, broker);
}

/// Waits until a message at an unknown protocol is answered: the subscription is there.
fn subscribed(_: &MqttService, broker: &Mosquitto) {
    let mut probe = broker.subscriber_of("acme/probe/action", "probe", &[]);
    until("the subscription", || {
        broker.publish("acme/probe/actions/NONE", "{}", &[]);
        let lines = probe.program.printed();
        lines
            .iter()
            .any(|line| line.starts_with("acme/probe/action|"))
            .then_some(())
    });
}

fn answer(subscriber: &mut Subscriber) -> Value {
    let answer = subscriber.next(&format!("{LEVEL}/action"));
    assert_eq!(answer["type"], "ACTION_RESPONSE", "{answer}");
    answer
}

/// The number of action requests of the customer.
fn requests(setup: &MqttService) -> usize {
    let path = format!("{API}/integrate/devices/actions/requests");
    let page = setup.caller.request("GET", &path).expect(200);
    page["items"].as_array().unwrap().len()
}
