//! Which events does an endpoint receive, in which form, and how does it authenticate them?

use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::{
    DeliveryService, PATH, PRIVATE, QUICK, SECRET, counted, metered, path, value, values_of,
};
use crate::vocabulary::caller::text;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::endpoint::{Endpoint, ReceivedPost, Reply};
use crate::vocabulary::lwm2m::{read, when_active};

#[test]
fn values_of_a_device_are_posted_with_type_and_time() {
    let (setup, endpoint, id, mut meter) = metered(&[]);
    meter.send(22.5);
    let posted = endpoint.once(1).remove(0);
    assert_eq!(posted.path, "/in");
    assert_eq!(posted.header("content-type"), Some("application/json"));
    let body = posted.json();
    assert_eq!(body["id"], posted.id());
    assert_eq!(body["type"], "TELEMETRY_DATA");
    assert_eq!(body["version"], "1.0.0");
    assert_eq!(body["source"], "LWM2M");
    assert_eq!(
        body["device"],
        json!({ "deviceId": "meter-1", "iccid": "meter-1", "ip": DEVICE_IP })
    );
    let payload = json!({ "type": "JSON", "value": { PATH: 22.5 } });
    assert_eq!(body["payload"], payload);
    let received: i64 = text(&body["received"]).parse().unwrap();
    let sent_s: i64 = posted.header("webhook-timestamp").unwrap().parse().unwrap();
    assert!(received / 1_000 <= sent_s, "{body}");
    assert_eq!(
        posted.header("webhook-signature"),
        None,
        "there is no secret"
    );
    assert_eq!(
        setup.once_in(&id, "INTEGRATION_ACTIVE")["state"],
        "INTEGRATION_ACTIVE"
    );
}

#[test]
fn each_sample_is_an_event_with_its_own_time() {
    let setup = DeliveryService::with(&[]);
    let endpoint = Endpoint::new();
    setup.values_to(&endpoint);
    let mut meter = setup.meter("meter-1");
    let pack =
        format!(r#"[{{"bn":"{PATH}","bt":1763726400,"v":1}},{{"t":60,"v":2}},{{"t":120,"v":3}}]"#);
    assert_eq!(
        meter.send_payload(&pack),
        protocol::coap::code::Code::CHANGED
    );
    let posted = endpoint.once(3);
    let event = posted
        .iter()
        .map(|it| (value(it), it.json()["measured"].clone()));
    let event: Vec<_> = event.collect();
    let at = |second: u64| json!((1_763_726_400_000 + second * 1_000).to_string());
    assert_eq!(event, [(1.0, at(0)), (2.0, at(60)), (3.0, at(120))]);
}

#[test]
fn a_signature_is_that_of_standard_webhooks() {
    let setup = DeliveryService::with(&[QUICK]);
    let endpoint = Endpoint::replying(|_, number| Reply::Status([500, 204][number.min(1)]));
    let types = json!([{ "type": "LIFECYCLE", "kinds": ["REGISTERED"] }]);
    let body = json!({
        "name": "Signed", "url": endpoint.url("/"), "secret": SECRET, "eventTypes": types,
    });
    setup.webhook(&body);
    let _meter = setup.meter("meter-1");
    let posted = endpoint.once(2);
    for posted in &posted {
        assert!(is_signed(posted, &posted.text));
        let forged = posted.text.replace("REGISTERED", "DEREGISTERED");
        assert!(!is_signed(posted, &forged));
    }
    assert_eq!(posted[0].id(), posted[1].id());
    assert_eq!(posted[0].text, posted[1].text);
}

#[test]
fn placeholders_are_replaced() {
    let setup = DeliveryService::with(&[]);
    let endpoint = Endpoint::new();
    let body = json!({
        "name": "Placeholders",
        "url": endpoint.url("/of/:deviceId:?sim=:iccid:&from=:ip:&subscriber=:imsi:"),
        "headers": { "X-Device": ":deviceId: at :ip:", "Authorization": "Bearer 7b0cf" },
    });
    let id = setup.webhook(&body);
    let _meter = setup.meter("meter-1");
    let posted = endpoint.once(1).remove(0);
    let expected = "/of/meter-1?sim=meter-1&from=127.0.0.1&subscriber=none";
    assert_eq!(posted.path, expected);
    assert_eq!(posted.header("x-device"), Some("meter-1 at 127.0.0.1"));
    assert_eq!(posted.header("authorization"), Some("Bearer 7b0cf"));
    setup.once_done(&id);
    setup.ask(&id, "test", 200);
    let test = endpoint.once(3).remove(2);
    assert_eq!(test.path, "/of/none?sim=none&from=none&subscriber=none");
}

#[test]
fn only_the_selected_types_are_delivered() {
    let setup = DeliveryService::with(&[]);
    let (all, results) = (Endpoint::new(), Endpoint::new());
    setup.webhook(&json!({ "name": "Usual", "url": all.url("/") }));
    let only = json!([{ "type": "ACTION_RESULT" }]);
    let body = json!({ "name": "Results", "url": results.url("/"), "eventTypes": only });
    setup.webhook(&body);
    let mut meter = setup.meter("meter-1");
    let request = setup
        .caller
        .create_action("meter-1", &when_active(read("/3/0/0")));
    setup.caller.cancel_action(&request).expect(200);
    meter.send(1.0);
    let kinds: Vec<Value> = all
        .once(3)
        .iter()
        .map(|it| it.json()["type"].clone())
        .collect();
    assert_eq!(kinds, ["LIFECYCLE", "LIFECYCLE", "TELEMETRY_DATA"]);
    let result = results.once(1).remove(0).json();
    assert_eq!(result["type"], "ACTION_RESULT");
    assert_eq!(result["action"]["requestId"], request.as_str());
    assert_eq!(result["action"]["status"], "CANCELLED");
}

#[test]
fn an_unreadable_payload_is_delivered_as_an_error_with_its_log_entry() {
    let setup = DeliveryService::with(&[]);
    let endpoint = Endpoint::new();
    let types = json!([{ "type": "ERROR" }]);
    setup.webhook(&json!({ "name": "Errors", "url": endpoint.url("/"), "eventTypes": types }));
    let mut meter = setup.meter("meter-1");
    let code = meter.send_payload("[{\"n\":");
    assert_eq!(code, protocol::coap::code::Code::BAD_REQUEST);
    let event = endpoint.once(1).remove(0).json();
    let entry = setup.entry("Translator[UserPayloadError]").unwrap();
    assert_eq!(event["error"]["id"], entry["id"]);
    assert_eq!(event["error"]["message"], entry["message"]);
    assert_eq!(event["error"]["description"], entry["description"]);
    assert_eq!(event["error"]["payloadExists"], true);
}

#[test]
fn events_before_the_creation_of_a_webhook_are_not_delivered_to_it() {
    let setup = DeliveryService::with(&[]);
    let mut meter = setup.meter("meter-1");
    meter.send(1.0);
    let endpoint = Endpoint::new();
    let id = setup.values_to(&endpoint);
    meter.send(2.0);
    assert_eq!(value(&endpoint.once(1)[0]), 2.0);
    setup.once_done(&id);
    assert_eq!(endpoint.posted().len(), 1);
}

#[test]
fn events_of_a_device_are_delivered_in_order() {
    let setup = DeliveryService::with(&[]);
    let endpoint = Endpoint::new();
    setup.values_to(&endpoint);
    let mut meters = [setup.meter("meter-1"), setup.meter("meter-2")];
    for number in 1..=20 {
        for meter in &mut meters {
            meter.send(f64::from(number));
        }
    }
    let posted = endpoint.once(40);
    for meter in &meters {
        assert_eq!(values_of(&posted, &meter.name), counted(20));
    }
}

#[test]
fn a_test_returns_the_answer_of_the_endpoint() {
    let setup = DeliveryService::with(&[]);
    let mut endpoint = Endpoint::new();
    let body = json!({ "name": "Tested", "url": endpoint.url("/in"), "secret": SECRET });
    let id = setup.webhook(&body);
    let tested = setup.ask(&id, "test", 200);
    assert_eq!(
        (&tested["delivered"], &tested["statusCode"]),
        (&json!(true), &json!(204))
    );
    let posted = endpoint.once(1).remove(0);
    assert_eq!(posted.json()["type"], "TEST_MESSAGE");
    assert!(is_signed(&posted, &posted.text));
    endpoint.reply(|_, _| Reply::Status(418));
    let tested = setup.ask(&id, "test", 200);
    assert_eq!(
        (&tested["delivered"], &tested["statusCode"]),
        (&json!(false), &json!(418))
    );
    endpoint.close();
    let tested = setup.ask(&id, "test", 200);
    assert_eq!(
        (&tested["delivered"], &tested["statusCode"]),
        (&json!(false), &json!(null))
    );
    assert!(!text(&tested["message"]).is_empty());
    assert_eq!(
        setup.shown(&id)["state"],
        "ROLLOUT_DONE",
        "a test changes nothing"
    );
}

#[test]
fn a_changed_webhook_applies_to_waiting_events() {
    let setup = DeliveryService::with(&[super::STEADY]);
    let (mut old, new) = (Endpoint::new(), Endpoint::new());
    old.close();
    let id = setup.values_to(&old);
    let mut meter = setup.meter("meter-1");
    meter.send(1.0);
    let amended = json!({ "url": new.url("/new"), "headers": { "X-New": "yes" } });
    let answer = setup
        .caller
        .try_send("PATCH", &path(&id), &amended)
        .unwrap();
    assert_eq!(answer.expect(200)["url"], new.url("/new"));
    let posted = new.once(1).remove(0);
    assert_eq!(
        (posted.path.as_str(), posted.header("x-new")),
        ("/new", Some("yes"))
    );
}

#[test]
fn nothing_is_delivered_to_a_removed_webhook() {
    let mut setup = DeliveryService::with(&[]);
    let (removed_endpoint, stays) = (Endpoint::new(), Endpoint::new());
    let removed = setup.values_to(&removed_endpoint);
    setup.values_to(&stays);
    let mut meter = setup.meter("meter-1");
    let answer = setup.caller.request("DELETE", &path(&removed));
    assert_eq!(answer.status, 204);
    meter.send(1.0);
    stays.once(1);
    setup.restart_with(&[PRIVATE]);
    meter.send(2.0);
    stays.once(2);
    assert!(removed_endpoint.posted().is_empty());
}

/// Whether this body has the signature of the post under the customer's secret.
pub(super) fn is_signed(posted: &ReceivedPost, body: &str) -> bool {
    let at_s = posted.header("webhook-timestamp").unwrap().parse().unwrap();
    let verifier = Webhook::new(SECRET).unwrap();
    let expected = verifier.sign(posted.id(), at_s, body.as_bytes()).unwrap();
    posted.header("webhook-signature") == Some(expected.as_str())
}
