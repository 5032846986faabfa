//! How many attempts are made over CoAP, and how many requests may wait for a device?

use protocol::coap::code::Code;
use serde_json::Value;

use super::super::{ID, PlainService, progress};
use crate::test_service::{error_codes, with};
use crate::vocabulary::caller::API;
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{answer, coap};
use crate::vocabulary::poll::until;

#[test]
fn a_request_for_now_that_failed_is_tried_again_at_the_next_activity() {
    let mut setup = PlainService::new();
    let body = with(coap("GET", "/busy", setup.coap.port()), "sendAttempts", 2);
    let id = setup.create_coap(&body);
    setup.answer_next(Code::SERVICE_UNAVAILABLE, "busy");
    once_at(&setup, &id, "IN_PROGRESS", 1);
    assert_eq!(setup.coap.received(), []);
    setup.post("awake");
    setup.answer_next(Code::CONTENT, "well");
    let action = setup.caller.final_action(&id);
    assert_eq!(progress(&action), ("SUCCEEDED", 0), "{action}");
    assert_eq!(action["resultData"]["payload"], "well");
}

#[test]
fn the_number_of_waiting_requests_is_limited() {
    let settings = [
        ("SIGNALBOX_SCHEDULED_MAX", "2"),
        ("SIGNALBOX_WAITING_MAX", "2"),
    ];
    let mut setup = PlainService::with(&settings);
    let port = setup.coap.port();
    let body = coap("GET", "/a", port);
    let in_flight = setup.create_coap(&body);
    let request = setup.coap.receive_request();
    let mut all = vec![in_flight];
    all.extend([setup.create_coap(&body), setup.create_coap(&body)]);
    let refused = setup.caller.try_over("COAP", ID, &body).expect(409);
    assert_eq!(error_codes(&refused), ["QUEUE_FULL"]);
    let later = when_active(body.clone());
    all.extend([setup.create_coap(&later), setup.create_coap(&later)]);
    let refused = setup.caller.try_over("COAP", ID, &later).expect(409);
    assert_eq!(error_codes(&refused), ["QUEUE_FULL"]);
    setup.post("awake");
    setup.coap.send(&answer(&request, Code::CONTENT).encode());
    for _ in 0..4 {
        setup.answer_next(Code::CONTENT, "1");
    }
    for id in &all {
        assert_eq!(setup.caller.final_action(id)["status"], "SUCCEEDED");
    }
    let id = setup.create_coap(&body);
    setup.answer_next(Code::CONTENT, "1");
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
}

#[test]
fn a_result_is_delivered_to_the_webhooks_that_select_it() {
    let setup = PlainService::new();
    let endpoint = Endpoint::new();
    let types = serde_json::json!([{ "type": "ACTION_RESULT" }]);
    let webhook = serde_json::json!({
        "name": "Results", "url": endpoint.url("/"), "eventTypes": types,
    });
    let webhooks = format!("{API}/integrate/clouds/webhooks");
    setup.caller.post(&webhooks, &webhook).expect(201);
    let id = setup.create_coap(&coap("GET", "/a", setup.coap.port()));
    setup.answer_next(Code::CONTENT, "21.5");
    let event = endpoint.once(1).remove(0).json();
    let expected = serde_json::json!({
        "requestId": id, "status": "SUCCEEDED", "protocol": "COAP",
        "resultData": { "code": "205", "payload": "21.5", "payloadType": "TEXT" },
    });
    assert_eq!(event["action"], expected);
}

/// A request, once it has this status and this many attempts left, and nothing of it is in flight.
fn once_at(setup: &PlainService, id: &str, status: &str, left: u64) -> Value {
    until(&format!("{status} with {left} left"), || {
        let action = setup.caller.action(id);
        let timeline = action["timeline"].as_array().unwrap();
        let last = timeline.last().and_then(|it| it["event"].as_str());
        let is_over = matches!(last, Some("GAVE_UP" | "REJECTED" | "ANSWERED"));
        (is_over && progress(&action) == (status, left)).then_some(action)
    })
}
