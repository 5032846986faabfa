//! Do webhooks and plugins in responses, and the events posted to them, match the OpenAPI document?

use std::collections::BTreeSet;

use serde_json::{Value, json};

use engine::MqttVersion;
use engine::action::{Outcome, Protocol, ResultPayload, Status};
use engine::delivery::backlog::{Backlog, DeadLetter, QueuedEvent, Sequence};
use engine::delivery::body::sms::{render_sms, samples};
use engine::delivery::body::{render, render_test};
use engine::delivery::command::TestOutcome;
use engine::delivery::destination::{
    Broker, BrokerCommands, ClientCertificate, Destination, DestinationState, EventTypes, Header,
    JsonPayload, Plugin, Replay, Target, Webhook,
};
use engine::delivery::mqtt::link::MqttLinkStatus;
use engine::event::{
    ActionResult, Cause, Data, DeviceInfo, ErrorReport, Event, EventContent, Lifecycle,
    PayloadKept, Telemetry,
};
use engine::ids::{
    ActionId, CustomerId, DestinationId, DeviceId, DeviceKey, EntryId, EventId, Iccid, Imsi,
};
use engine::moment::Timestamp;
use engine::sealed::Sealed;
use engine::topic::Topic;

use super::document::judge::faults;
use super::document::shown;
use super::golden;
use crate::api::brokers::Brokers;
use crate::api::destinations::dead_letters::{DeadLetterBody, DeadLettersBody};
use crate::api::destinations::{ConnectionBody, DestinationKind, TestedBody, WithBacklogBody};
use crate::api::integrations::Webhooks;
use crate::api::plugins::{Plugins, RestartedPluginBody};

const NOON: Timestamp = Timestamp::from_ms(1_795_521_600_000);

#[test]
fn a_webhook() {
    let body = Webhooks::body(&warehouse()).unwrap();
    golden::check("webhook", &body);
}

#[test]
fn a_failed_webhook_with_its_backlog() {
    let failed = Destination {
        state: DestinationState::Failed,
        failure: Some("the endpoint answered 503".into()),
        replay: Replay::UnderWay,
        updated_at: NOON.plus_s(7),
        ..warehouse()
    };
    let backlog = Backlog {
        waiting: 12,
        dead: 1_000_000,
    };
    let body = WithBacklogBody::of(Webhooks::body(&failed).unwrap(), backlog);
    golden::check("webhook_followed", &body);
}

#[test]
fn a_broker() {
    let body = Brokers::body(&meters()).unwrap();
    golden::check("broker", &body);
}

#[test]
fn a_failed_broker_with_its_backlog() {
    let target = Broker {
        version: MqttVersion::V3,
        username: None,
        password: None,
        ca: None,
        certificate: None,
        commands: BrokerCommands::Off,
        ..meters().target.broker().unwrap().clone()
    };
    let failed = Destination {
        target: Target::Broker(Box::new(target)),
        state: DestinationState::Failed,
        failure: Some("the broker refused the connection: not authorized".into()),
        ..meters()
    };
    let backlog = Backlog {
        waiting: 0,
        dead: 3,
    };
    let status = MqttLinkStatus {
        is_connected: false,
        fault: failed.failure.clone(),
    };
    let body = WithBacklogBody::of(Brokers::body(&failed).unwrap(), backlog);
    let body = body.with_connection(Some(ConnectionBody::of(status)));
    golden::check("broker_followed", &body);
}

#[test]
fn a_plugin() {
    let body = Plugins::body(&gateway()).unwrap();
    golden::check("plugin", &body);
}

#[test]
fn a_failed_plugin_with_its_backlog() {
    let backlog = Backlog {
        waiting: 0,
        dead: 3,
    };
    let body = WithBacklogBody::of(Plugins::body(&failed_gateway()).unwrap(), backlog);
    golden::check("plugin_followed", &body);
}

#[test]
fn a_restarted_plugin() {
    let restarted = Destination {
        state: DestinationState::Active,
        failure: None,
        ..failed_gateway()
    };
    let plugin = Plugins::body(&restarted).unwrap();
    let body = RestartedPluginBody::of(plugin, DestinationState::Failed);
    golden::check("plugin_restarted", &body);
    let plugin = Plugins::body(&gateway()).unwrap();
    let body = RestartedPluginBody::of(plugin, DestinationState::RolledOut);
    golden::check("plugin_not_restarted", &body);
}

#[test]
fn a_destination_is_of_one_kind() {
    assert!(Webhooks::body(&gateway()).is_none());
    assert!(Plugins::body(&warehouse()).is_none());
}

#[test]
fn the_result_of_a_test_event() {
    let taken = TestOutcome {
        accepted: true,
        status: Some(204),
        message: "the endpoint answered 204".to_owned(),
    };
    golden::check("webhook_tested", &TestedBody::of(taken));
    let unheard = TestOutcome {
        accepted: false,
        status: None,
        message: "the endpoint did not respond in time".to_owned(),
    };
    golden::check("webhook_unreachable", &TestedBody::of(unheard));
}

#[test]
fn dead_letters() {
    let event = registered();
    let letter = DeadLetter {
        queued: QueuedEvent::of(Sequence(4_711), &event),
        tries: 5,
        at: NOON.plus_s(1_770),
        why: "the endpoint answered 503".into(),
    };
    let items = vec![
        DeadLetterBody::of(&letter, Some(&event)),
        DeadLetterBody::of(&letter, None),
    ];
    let body = DeadLettersBody::of(items, Some(Sequence(4_711)));
    golden::check("dead_letters", &body);
}

#[test]
fn every_event_matches_its_schema() {
    let document = shown();
    let failed = ErrorReport {
        entry: EntryId::from_bytes([1; 16]),
        message: "Translator[UserPayloadError]".into(),
        description: "A payload was rejected: it is no SenML.".into(),
        payload: PayloadKept::Yes,
    };
    let outcome = Outcome {
        code: Some("205".into()),
        payload: Some(ResultPayload::Text("21.5".into())),
        ..Outcome::default()
    };
    let concluded = ActionResult {
        action: ActionId::from_bytes([2; 16]),
        protocol: Protocol::Lwm2m,
        status: Status::Succeeded,
        outcome: Some(outcome),
    };
    let as_text = |event: &Event| render(event, JsonPayload::AsText);
    let parsed = |event: &Event| render(event, JsonPayload::Parsed);
    let datagram = Data {
        topic: None,
        source: Protocol::Udp,
        ..posted()
    };
    let bodies = [
        ("telemetryData", as_text(&event(telemetry()))),
        ("telemetryData", as_text(&event(data(posted())))),
        ("telemetryData", parsed(&event(data(posted())))),
        ("telemetryData", as_text(&event(data(datagram.clone())))),
        ("telemetryData", parsed(&event(data(datagram)))),
        ("lifecycle", as_text(&registered())),
        (
            "error",
            as_text(&event(EventContent::Error(Box::new(failed)))),
        ),
        (
            "actionResult",
            as_text(&event(EventContent::ActionResult(Box::new(concluded)))),
        ),
        (
            "testMessage",
            render_test(&EventId::from_bytes([4; 16]), NOON),
        ),
    ];
    let [received, report] = samples(NOON);
    let bodies = bodies.into_iter().map(|(name, body)| (name, "post", body));
    let forwarded = |content| render_sms(content, 42).unwrap();
    let bodies: Vec<_> = bodies
        .chain([
            ("smsReceived", "post", forwarded(&received)),
            ("smsReport", "patch", forwarded(&report)),
        ])
        .collect();
    let described = document["webhooks"].as_object().unwrap();
    let names: BTreeSet<_> = bodies.iter().map(|(name, ..)| *name).collect();
    assert!(described.keys().map(String::as_str).eq(names));
    for (name, method, body) in bodies {
        let body: Value = serde_json::from_slice(&body).unwrap();
        let content = &described[name][method]["requestBody"]["content"];
        let schema = &content["application/json"]["schema"];
        assert!(schema["$ref"].is_string(), "{name}");
        assert_eq!(faults(&document, schema, &body), [""; 0], "{name}: {body}");
    }
}

#[test]
fn an_event_of_another_type_does_not_match() {
    let document = shown();
    let schema = json!({ "$ref": "#/components/schemas/WebhookTelemetryData" });
    let body: Value = serde_json::from_slice(&render(&registered(), JsonPayload::AsText)).unwrap();
    assert!(!faults(&document, &schema, &body).is_empty());
}

fn warehouse() -> Destination {
    let header = |name: &str, value: &str| Header {
        name: name.into(),
        value: sealed(value),
    };
    let webhook = Webhook {
        url: "https://example.com/in/:deviceId:".into(),
        headers: Box::new([
            header("X-Device", ":deviceId:"),
            header("Authorization", "Bearer 7b0cf"),
        ]),
        secret: Some(sealed("whsec_secret")),
        json: JsonPayload::Parsed,
        batching: None,
    };
    Destination {
        id: DestinationId::parse("01935c5a-0000-7000-8000-000000000001").unwrap(),
        customer: acme(),
        name: "Warehouse".into(),
        target: Target::Webhook(webhook),
        event_types: EventTypes::usual(),
        state: DestinationState::RolledOut,
        failure: None,
        replay: Replay::None,
        created_at: NOON,
        updated_at: NOON,
    }
}

fn meters() -> Destination {
    let broker = Broker {
        url: "mqtts://broker.example.com".into(),
        topic_prefix: "acme/meters".into(),
        version: MqttVersion::V5,
        username: Some("signalbox".into()),
        password: Some(sealed("7b0cf")),
        ca: Some("-----BEGIN CERTIFICATE-----".into()),
        certificate: Some(ClientCertificate {
            chain: "-----BEGIN CERTIFICATE-----".into(),
            key: sealed("-----BEGIN PRIVATE KEY-----"),
        }),
        commands: BrokerCommands::On,
        json: JsonPayload::AsText,
    };
    let kinds = [Lifecycle::Registered, Lifecycle::Awake]
        .into_iter()
        .collect();
    Destination {
        name: "Meters".into(),
        target: Target::Broker(Box::new(broker)),
        event_types: EventTypes::all().with_kinds(Some(kinds)),
        ..warehouse()
    }
}

fn gateway() -> Destination {
    let plugin = Plugin {
        partner: "gateway".into(),
        server_domain: "gateway.example.com:8443".into(),
        webhook_key: sealed("open sesame"),
    };
    Destination {
        name: "Gateway".into(),
        target: Target::Plugin(plugin),
        event_types: EventTypes::all(),
        ..warehouse()
    }
}

fn failed_gateway() -> Destination {
    Destination {
        state: DestinationState::Failed,
        failure: Some("the endpoint did not respond in time".into()),
        updated_at: NOON.plus_s(7),
        ..gateway()
    }
}

fn telemetry() -> EventContent {
    let path = engine::Path::resource(3303, 0, 5700);
    EventContent::Telemetry(Telemetry {
        source: Protocol::Lwm2m,
        cause: Cause::Send,
        measured_at: Some(NOON.plus_s(-60)),
        values: [(path, engine::Value::Float(21.5))].into(),
    })
}

fn data(data: Data) -> EventContent {
    EventContent::Data(Box::new(data))
}

/// Data that is JSON but not an object.
fn posted() -> Data {
    Data {
        source: Protocol::Coap,
        topic: Some(Topic::parse("meters/temperature").unwrap()),
        bytes: b"[21.5, null]".as_slice().into(),
    }
}

fn registered() -> Event {
    event(EventContent::Lifecycle(Lifecycle::Registered))
}

fn event(happening: EventContent) -> Event {
    let device = DeviceId::parse("meter-7").unwrap();
    Event {
        id: EventId::parse("01935c5a-0000-7000-8000-000000000003").unwrap(),
        customer: acme(),
        device: DeviceKey::of(&acme(), &device),
        device_info: DeviceInfo {
            device,
            iccid: Iccid::parse("8988280666000000001").unwrap(),
            imsi: Some(Imsi::parse("901405100000001").unwrap()),
            ip: Some("10.0.0.7".parse().unwrap()),
        },
        at: NOON,
        content: happening,
    }
}

fn acme() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn sealed(text: &str) -> Sealed {
    Sealed::from_bytes(text.as_bytes().into())
}
