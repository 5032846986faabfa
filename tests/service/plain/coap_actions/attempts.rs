//! How often is a device asked over CoAP, and how many requests may wait for it?

use protocol::coap::code::Code;
use serde_json::Value;

use super::super::{ID, Scene, standing};
use crate::scene::{error_codes, with};
use crate::vocabulary::caller::API;
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{answer, coap};
use crate::vocabulary::poll::until;

#[test]
fn a_request_for_now_that_failed_is_tried_again_at_the_next_activity() {
    let mut scene = Scene::new();
    let body = with(coap("GET", "/busy", scene.coap.port()), "sendAttempts", 2);
    let id = scene.ask(&body);
    scene.answer_next(Code::SERVICE_UNAVAILABLE, "busy");
    once_at(&scene, &id, "IN_PROGRESS", 1);
    assert_eq!(scene.coap.heard(), []);
    scene.post("awake");
    scene.answer_next(Code::CONTENT, "well");
    let action = scene.caller.final_action(&id);
    assert_eq!(standing(&action), ("SUCCEEDED", 0), "{action}");
    assert_eq!(action["resultData"]["payload"], "well");
}

#[test]
fn so_many_may_wait_and_no_more() {
    let settings = [
        ("SIGNALBOX_SCHEDULED_MAX", "2"),
        ("SIGNALBOX_WAITING_MAX", "2"),
    ];
    let mut scene = Scene::with(&settings);
    let port = scene.coap.port();
    let body = coap("GET", "/a", port);
    let in_flight = scene.ask(&body);
    let asked = scene.coap.hear_request();
    let mut all = vec![in_flight];
    all.extend([scene.ask(&body), scene.ask(&body)]);
    let refused = scene.caller.try_over("COAP", ID, &body).expect(409);
    assert_eq!(error_codes(&refused), ["QUEUE_FULL"]);
    let later = when_active(body.clone());
    all.extend([scene.ask(&later), scene.ask(&later)]);
    let refused = scene.caller.try_over("COAP", ID, &later).expect(409);
    assert_eq!(error_codes(&refused), ["QUEUE_FULL"]);
    scene.post("awake");
    scene.coap.say(&answer(&asked, Code::CONTENT).encode());
    for _ in 0..4 {
        scene.answer_next(Code::CONTENT, "1");
    }
    for id in &all {
        assert_eq!(scene.caller.final_action(id)["status"], "SUCCEEDED");
    }
    let id = scene.ask(&body);
    scene.answer_next(Code::CONTENT, "1");
    assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
}

#[test]
fn what_came_of_a_request_is_told_to_who_wants_it() {
    let scene = Scene::with(&[("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true")]);
    let endpoint = Endpoint::new();
    let types = serde_json::json!([{ "type": "ACTION_RESULT" }]);
    let webhook = serde_json::json!({
        "name": "Results", "url": endpoint.url("/"), "eventTypes": types,
    });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    scene.caller.post(&webhooks, &webhook).expect(201);
    let id = scene.ask(&coap("GET", "/a", scene.coap.port()));
    scene.answer_next(Code::CONTENT, "21.5");
    let told = endpoint.once(1).remove(0).json();
    let expected = serde_json::json!({
        "requestId": id, "status": "SUCCEEDED", "protocol": "COAP",
        "resultData": { "code": "205", "payload": "21.5", "payloadType": "TEXT" },
    });
    assert_eq!(told["action"], expected);
}

/// A request once it has a status and so many attempts left, and nothing of it is in flight.
fn once_at(scene: &Scene, id: &str, status: &str, left: u64) -> Value {
    until(&format!("{status} with {left} left"), || {
        let action = scene.caller.action(id);
        let timeline = action["timeline"].as_array().unwrap();
        let last = timeline.last().and_then(|it| it["event"].as_str());
        let is_over = matches!(last, Some("GAVE_UP" | "REJECTED" | "ANSWERED"));
        (is_over && standing(&action) == (status, left)).then_some(action)
    })
}
