//! Does the server of a partner receive every event of the customer that installed its plugin?

use serde_json::{Value, json};

use super::{DeliveryService, PRIVATE, QUICK, counted, once_delivered, value, values_of};
use crate::test_service::error_codes;
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::endpoint::{Endpoint, Reply};
use crate::vocabulary::http::Response;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::poll::until;

const KEY: &str = "7b0cf/1";

#[test]
fn a_plugin_receives_every_event_under_its_key() {
    let setup = DeliveryService::with(&[]);
    let partner = Endpoint::new();
    let made = setup.install("gateway", &partner).expect(201);
    assert_eq!(made["status"], "INSTALLED");
    let mut meter = setup.meter("meter-1");
    let request = setup
        .caller
        .create_action("meter-1", &when_active(read("/3/0/0")));
    setup.caller.cancel_action(&request).expect(200);
    meter.send(1.0);
    meter.send_payload("[{\"n\":");
    let posted = partner.once(5);
    for post in &posted {
        assert_eq!(post.path, "/webhook/7b0cf%2F1");
        assert_eq!(post.header("content-type"), Some("application/json"));
        assert_eq!(post.json()["id"], post.id());
        assert_eq!(post.json()["device"]["iccid"], "meter-1");
    }
    let types: Vec<Value> = posted.iter().map(|it| it.json()["type"].clone()).collect();
    assert_eq!(
        types,
        [
            "LIFECYCLE",
            "LIFECYCLE",
            "ACTION_RESULT",
            "TELEMETRY_DATA",
            "ERROR"
        ]
    );
    assert_eq!(value(&posted[3]), 1.0);
    setup.once_status(&made, "ACTIVE");
    let shown = setup.caller.request("GET", &plugin_path(&made)).expect(200);
    assert_eq!(shown["webhookKey"], "***");
}

#[test]
fn one_customer_neither_sees_nor_changes_the_plugin_of_another() {
    let setup = DeliveryService::with(&[]);
    let partner = Endpoint::new();
    let made = setup.install("gateway", &partner).expect(201);
    let second = setup.install("gateway", &partner).expect(409);
    assert_eq!(error_codes(&second), ["PLUGIN_EXISTS"]);
    setup.install("nobody", &partner).expect(404);
    let other = Caller::of_new_customer(&setup.service, "umbrella");
    other.request("GET", &plugin_path(&made)).expect(404);
    other.request("DELETE", &plugin_path(&made)).expect(404);
    setup.once_status(&made, "INSTALLED");
}

#[test]
fn a_partner_that_refuses_every_try_fails_its_plugin_until_it_is_restarted() {
    let mut setup = DeliveryService::with(&[QUICK]);
    let partner = Endpoint::replying(|_, _| Reply::Status(500));
    let webhook = Endpoint::new();
    setup.values_to(&webhook);
    let made = setup.install("dashboard", &partner).expect(201);
    let mut meter = setup.meter("meter-1");
    let failed = setup.once_status(&made, "FAILED");
    assert_eq!(failed["failureReason"], "the endpoint answered 500");
    let tries = partner.posted();
    assert_eq!(tries.len(), 5);
    assert!(tries.iter().all(|it| it.id() == tries[0].id()));
    let entry = setup.entry("CloudIntegrator[PluginDisabled]").unwrap();
    assert_eq!(
        (&entry["category"], &entry["type"]),
        (&json!("error"), &json!("INTEGRATION"))
    );
    assert!(text(&entry["description"]).contains("500"), "{entry}");
    assert!(!text(&entry["description"]).contains("7b0cf"), "{entry}");
    assert_eq!(setup.entry("CloudIntegrator[IntegrationDisabled]"), None);
    // While the plugin is failed, nothing is tried, and other destinations receive everything.
    meter.send(1.0);
    once_delivered(&webhook, 1);
    until("three dead letters", || {
        let shown = setup.plugin(&made);
        (shown["backlog"] == json!({ "waiting": 0, "deadLetters": 3 })).then_some(())
    });
    setup.crash();
    let shown = setup.plugin(&made);
    assert_eq!(shown["status"], "FAILED");
    assert_eq!(shown["failureReason"], failed["failureReason"]);
    partner.reply(|_, _| Reply::Status(200));
    let restarted = setup.ask_plugin(&made, "restart").expect(200);
    assert_eq!(restarted["restartStatus"], "RESTARTED");
    assert_eq!(restarted["plugin"]["id"], made["id"]);
    assert_eq!(restarted["plugin"]["status"], "ACTIVE");
    let entry = setup.entry("CloudIntegrator[IntegrationRestarted]");
    assert_eq!(entry.unwrap()["category"], "info");
    setup.ask_plugin(&made, "deadletters/replay").expect(202);
    let posted = partner.once(8);
    let types: Vec<Value> = posted[5..]
        .iter()
        .map(|it| it.json()["type"].clone())
        .collect();
    assert_eq!(types, ["LIFECYCLE", "LIFECYCLE", "TELEMETRY_DATA"]);
    assert_eq!(posted[5].id(), tries[0].id());
}

#[test]
fn an_uninstalled_plugin_receives_nothing() {
    let mut setup = DeliveryService::with(&[]);
    let (partner, webhook) = (Endpoint::new(), Endpoint::new());
    setup.values_to(&webhook);
    let made = setup.install("gateway", &partner).expect(201);
    let mut meter = setup.meter("meter-1");
    partner.once(2);
    let answer = setup.caller.request("DELETE", &plugin_path(&made));
    assert_eq!(answer.status, 204);
    meter.send(1.0);
    webhook.once(1);
    setup.restart_with(&[PRIVATE]);
    meter.send(2.0);
    let posted = once_delivered(&webhook, 2);
    assert_eq!(values_of(&posted, "meter-1"), counted(2));
    assert_eq!(partner.posted().len(), 2);
    setup.caller.request("GET", &plugin_path(&made)).expect(404);
    setup.install("gateway", &partner).expect(201);
}

impl DeliveryService {
    /// Installs the plugin of a partner whose server is this endpoint.
    fn install(&self, partner: &str, server: &Endpoint) -> Response {
        let path = format!("{API}/partners/{partner}/plugins");
        let body = json!({ "serverDomain": server.url(""), "webhookKey": KEY });
        self.caller.post(&path, &body)
    }

    /// The current state of a plugin.
    fn plugin(&self, plugin: &Value) -> Value {
        self.caller.request("GET", &plugin_path(plugin)).expect(200)
    }

    fn once_status(&self, plugin: &Value, status: &str) -> Value {
        until(status, || {
            let shown = self.plugin(plugin);
            (shown["status"] == status).then_some(shown)
        })
    }

    /// Makes a call about a plugin that needs no body.
    fn ask_plugin(&self, plugin: &Value, what: &str) -> Response {
        let path = format!("{}/{what}", plugin_path(plugin));
        self.caller.request("POST", &path)
    }
}

fn plugin_path(plugin: &Value) -> String {
    format!("{API}/partners/plugins/{}", text(&plugin["id"]))
}
