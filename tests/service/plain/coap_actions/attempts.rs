//! How often is a device asked over CoAP, and how many requests may wait for it?

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId};
use serde_json::Value;

use super::super::{ID, Scene, standing};
use crate::scene::{IMPATIENT, error_codes, with};
use crate::vocabulary::caller::API;
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{answer, coap};
use crate::vocabulary::poll::until;

const FAILED: &str = "DeviceController[ActionRequestFailed]";

/// How a device meets what it does not take.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Silence,
    Reset,
    Answer(Code),
}

#[test]
fn a_failure_that_may_pass_spends_one_attempt_for_each_activity() {
    let refusals = [
        Refusal::Reset,
        Refusal::Answer(Code::SERVICE_UNAVAILABLE),
        Refusal::Answer(Code::TOO_MANY_REQUESTS),
        Refusal::Answer(Code::REQUEST_ENTITY_INCOMPLETE),
    ];
    let mut silenced = Scene::with(&IMPATIENT);
    spend_attempts(&mut silenced, Refusal::Silence, &mut Vec::new());
    assert_eq!(silenced.logged(ID, FAILED), 2);
    let (mut scene, mut met) = (Scene::new(), Vec::new());
    for (number, refusal) in (1..).zip(refusals) {
        spend_attempts(&mut scene, refusal, &mut met);
        assert_eq!(scene.logged(ID, FAILED), 2 * number, "{refusal:?}");
    }
}

#[test]
fn a_failure_that_will_not_pass_is_final_at_once() {
    let mut scene = Scene::new();
    let codes = [
        (Code::BAD_REQUEST, "400"),
        (Code::UNAUTHORIZED, "401"),
        (Code::BAD_OPTION, "402"),
        (Code::FORBIDDEN, "403"),
        (Code::NOT_FOUND, "404"),
        (Code::METHOD_NOT_ALLOWED, "405"),
        (Code::REQUEST_ENTITY_TOO_LARGE, "413"),
        (Code::INTERNAL_SERVER_ERROR, "500"),
        (Code::PROXYING_NOT_SUPPORTED, "505"),
    ];
    for (code, digits) in codes {
        let body = with(coap("GET", "/broken", scene.coap.port()), "sendAttempts", 5);
        let id = scene.ask(&body);
        scene.answer_next(code, "why");
        let action = scene.caller.final_action(&id);
        assert_eq!(standing(&action), ("FAILED", 4), "{action}");
        assert_eq!(action["resultData"]["code"], digits, "{action}");
        assert!(action["resultData"]["errorMessage"].is_string(), "{action}");
        scene.post("awake");
        assert_eq!(scene.coap.heard(), [], "{digits}");
    }
    assert_eq!(scene.logged(ID, FAILED), codes.len());
}

#[test]
fn a_request_for_now_that_failed_is_tried_again_at_the_next_activity() {
    let mut scene = Scene::new();
    let body = with(coap("GET", "/busy", scene.coap.port()), "sendAttempts", 2);
    let id = scene.ask(&body);
    let refusal = Refusal::Answer(Code::SERVICE_UNAVAILABLE);
    refuse(&scene, refusal, &mut Vec::new());
    once_at(&scene, &id, "IN_PROGRESS", 1);
    assert_eq!(scene.coap.heard(), []);
    scene.post("awake");
    scene.answer_next(Code::CONTENT, "well");
    let action = scene.caller.final_action(&id);
    assert_eq!(standing(&action), ("SUCCEEDED", 0), "{action}");
    assert_eq!(action["resultData"]["payload"], "well");
}

#[test]
fn one_attempt_repeats_one_message() {
    let settings = [
        ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "20"),
        ("SIGNALBOX_COAP_MAX_RETRANSMIT", "3"),
    ];
    let scene = Scene::with(&settings);
    let id = scene.ask(&coap("GET", "/silent", scene.coap.port()));
    let first = scene.coap.hear_request();
    for _ in 0..3 {
        assert_eq!(scene.coap.hear_request(), first);
    }
    let action = scene.caller.final_action(&id);
    assert_eq!(standing(&action), ("FAILED", 0), "{action}");
    assert_eq!(action["resultData"].get("code"), None, "nobody answered");
    assert_eq!(scene.coap.heard(), []);
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

/// Has requests of one attempt and of three fail, one attempt at each activity.
fn spend_attempts(scene: &mut Scene, refusal: Refusal, met: &mut Vec<MessageId>) {
    for permitted in [1, 3] {
        let body = when_active(coap("GET", "/busy", scene.coap.port()));
        let id = scene.ask(&with(body, "sendAttempts", permitted));
        for left in (0..permitted).rev() {
            scene.post("awake");
            refuse(scene, refusal, met);
            let expected = if left == 0 { "FAILED" } else { "IN_PROGRESS" };
            let action = once_at(scene, &id, expected, left);
            assert_eq!(action["sendAttempts"], permitted, "{action}");
        }
        let failed = scene.caller.action(&id);
        assert!(failed["resultData"]["errorMessage"].is_string(), "{failed}");
        scene.post("awake");
        assert_eq!(new_requests(scene, met), [], "it is over");
    }
}

/// Has the device meet what it is asked next, and remember that it did.
fn refuse(scene: &Scene, refusal: Refusal, met: &mut Vec<MessageId>) {
    let asked = scene.coap.hear_new_request(met);
    match refusal {
        Refusal::Silence => {
            assert_eq!(scene.coap.hear_request(), asked, "it is repeated");
        }
        Refusal::Reset => scene.coap.say(&Message::reset(asked.message_id).encode()),
        Refusal::Answer(code) => scene.coap.say(&answer(&asked, code).encode()),
    }
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

/// The requests that came until now and were not met before.
fn new_requests(scene: &Scene, met: &[MessageId]) -> Vec<Message> {
    let heard = scene.coap.heard().into_iter();
    let new = heard.filter(|it| it.code.is_request() && !met.contains(&it.message_id));
    new.collect()
}
