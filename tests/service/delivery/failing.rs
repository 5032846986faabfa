//! What happens to a webhook whose endpoint is down, and to the events it missed?

use serde_json::{Value, json};

use super::{DeliveryService, Meter, QUICK, counted, metered, once_delivered, value, values_of};
use crate::vocabulary::caller::text;
use crate::vocabulary::endpoint::{Endpoint, Reply};
use crate::vocabulary::poll::until;

const DISABLED: &str = "CloudIntegrator[IntegrationDisabled]";
const RESTARTED: &str = "CloudIntegrator[IntegrationRestarted]";

#[test]
fn an_endpoint_that_refuses_every_try_fails_its_webhook() {
    let setup = DeliveryService::with(&[QUICK]);
    let endpoint = Endpoint::replying(|_, _| Reply::Status(500));
    let id = setup.values_to(&endpoint);
    let mut meter = setup.meter("meter-1");
    meter.send(1.0);
    let failed = setup.once_in(&id, "INTEGRATION_FAILED");
    assert_eq!(failed["failureReason"], "the endpoint answered 500");
    let posted = endpoint.posted();
    assert_eq!(posted.len(), 5);
    assert!(posted.iter().all(|it| it.id() == posted[0].id()));
    let entry = setup.entry(DISABLED).unwrap();
    assert_eq!(entry["category"], "error");
    assert_eq!(entry["type"], "INTEGRATION");
    assert!(text(&entry["description"]).contains("500"), "{entry}");
    let letters = setup.dead_letters(&id);
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["id"], posted[0].id());
    assert_eq!(letters[0]["type"], "TELEMETRY_DATA");
    assert_eq!(letters[0]["deviceId"], "meter-1");
    assert_eq!(letters[0]["tries"], 5);
    assert!(text(&letters[0]["reason"]).contains("500"), "{letters:?}");
}

#[test]
fn missed_events_are_delivered_in_order_once_the_endpoint_is_back() {
    let (setup, mut endpoint, id, mut meter) = metered(&[QUICK]);
    endpoint.close();
    meter.send(1.0);
    setup.once_in(&id, "INTEGRATION_FAILED");
    // While the webhook is failed, nothing is tried.
    meter.send(2.0);
    meter.send(3.0);
    let letters = once_dead_lettered(&setup, &id, 3);
    let tries: Vec<&Value> = letters.iter().map(|letter| &letter["tries"]).collect();
    assert_eq!(tries, [5, 0, 0]);
    endpoint.open();
    let replayed = setup.ask(&id, "deadletters/replay", 202);
    assert_eq!(replayed["id"], id.as_str());
    let waiting = setup.shown(&id);
    assert_eq!(waiting["replaying"], true);
    assert_eq!(waiting["state"], "INTEGRATION_FAILED");
    assert_eq!(
        setup.ask(&id, "restart", 200)["state"],
        "INTEGRATION_ACTIVE"
    );
    let entry = setup.entry(RESTARTED).unwrap();
    assert_eq!(
        (&entry["category"], &entry["type"]),
        (&json!("info"), &json!("INTEGRATION"))
    );
    meter.send(4.0);
    let posted = endpoint.once(4);
    let values: Vec<f64> = posted.iter().map(value).collect();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0], "nothing new overtakes them");
    let ids: Vec<&str> = posted[..3].iter().map(|it| it.id()).collect();
    let known: Vec<String> = letters.iter().map(|letter| text(&letter["id"])).collect();
    assert_eq!(ids, known);
    let done = until("the end of the replay", || {
        let shown = setup.shown(&id);
        (shown["replaying"] == false && shown["backlog"]["deadLetters"] == 0).then_some(shown)
    });
    assert_eq!(done["state"], "INTEGRATION_ACTIVE");
    assert!(setup.dead_letters(&id).is_empty());
}

#[test]
fn a_restart_of_a_webhook_that_is_not_failed_changes_nothing() {
    let setup = DeliveryService::with(&[QUICK]);
    let endpoint = Endpoint::new();
    let id = setup.values_to(&endpoint);
    setup.meter("meter-1").send(1.0);
    endpoint.once(1);
    let before = setup.once_in(&id, "INTEGRATION_ACTIVE");
    let restarted = setup.ask(&id, "restart", 200);
    assert_eq!(restarted["updated"], before["updated"]);
    assert_eq!(setup.entry(RESTARTED), None);
}

#[test]
fn a_failure_and_its_dead_letters_survive_a_crash() {
    let (mut setup, mut endpoint, id, _meter) = failed();
    let (before, reason) = (
        setup.dead_letters(&id),
        setup.shown(&id)["failureReason"].clone(),
    );
    assert!(reason.is_string());
    setup.crash();
    let shown = setup.shown(&id);
    assert_eq!(shown["state"], "INTEGRATION_FAILED");
    assert_eq!(shown["failureReason"], reason);
    assert_eq!(setup.dead_letters(&id), before);
    endpoint.open();
    assert_eq!(setup.ask(&id, "restart", 200)["failureReason"], Value::Null);
    setup.ask(&id, "deadletters/replay", 202);
    setup.crash();
    let posted = once_delivered(&endpoint, 3);
    assert_eq!(values_of(&posted, "meter-1"), counted(3));
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
}

#[test]
fn an_event_that_is_always_refused_is_discarded_and_the_others_arrive_in_order() {
    let setup = DeliveryService::with(&[QUICK]);
    let endpoint = Endpoint::replying(|posted, _| match value(posted) == 1.0 {
        true => Reply::Status(422),
        false => Reply::Status(200),
    });
    let id = setup.values_to(&endpoint);
    let mut meter = setup.meter("meter-1");
    for number in 1..=3 {
        meter.send(f64::from(number));
    }
    setup.once_in(&id, "INTEGRATION_FAILED");
    let letters = once_dead_lettered(&setup, &id, 3);
    let refused = text(&letters[0]["id"]);
    setup.discard(&id, &format!("/{refused}"), 204);
    assert_eq!(setup.dead_letters(&id), letters[1..]);
    setup.discard(&id, &format!("/{refused}"), 404);
    setup.ask(&id, "restart", 200);
    setup.ask(&id, "deadletters/replay", 202);
    let posted = endpoint.once_so("the rest", |posted| posted.len() == 7);
    assert_eq!(values_of(&posted[5..], "meter-1"), [2.0, 3.0]);
    assert_eq!(setup.once_done(&id)["state"], "INTEGRATION_ACTIVE");
}

#[test]
fn all_dead_letters_are_discarded_at_once() {
    let (mut setup, mut endpoint, id, mut meter) = failed();
    setup.discard(&id, "", 204);
    let shown = setup.shown(&id);
    assert_eq!(shown["backlog"], json!({"waiting": 0, "deadLetters": 0}));
    setup.crash();
    assert!(setup.dead_letters(&id).is_empty());
    endpoint.open();
    setup.ask(&id, "restart", 200);
    meter.send(4.0);
    assert_eq!(value(&endpoint.once(1)[0]), 4.0);
}

/// A meter whose webhook is failed: the endpoint is down and missed three values.
fn failed() -> (DeliveryService, Endpoint, String, Meter) {
    let (setup, mut endpoint, id, mut meter) = metered(&[QUICK]);
    endpoint.close();
    for number in 1..=3 {
        meter.send(f64::from(number));
    }
    setup.once_in(&id, "INTEGRATION_FAILED");
    once_dead_lettered(&setup, &id, 3);
    (setup, endpoint, id, meter)
}

/// The dead letters of a webhook, once there are this many.
fn once_dead_lettered(setup: &DeliveryService, id: &str, amount: usize) -> Vec<Value> {
    until("the dead letters", || {
        Some(setup.dead_letters(id)).filter(|letters| letters.len() == amount)
    })
}
