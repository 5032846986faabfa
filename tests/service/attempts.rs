//! How often is a device asked, and what ends the asking?

use std::collections::BTreeSet;

use harness::device::resource::Answer;
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;
use serde_json::Value;

use crate::scene::{ID, IMPATIENT, Scene, error_codes, start, with};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{outcome, read, when_active, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{Wire, update};

const ZONE: Path = Path::resource(3, 0, 15);

/// A device that never answers, and remembers what it was asked.
struct Deaf {
    wire: Wire,
    location: Vec<String>,
    asked: Vec<Message>,
    said: u16,
}

#[test]
fn a_request_for_an_active_device_leaves_as_often_as_permitted_and_then_fails_for_ever() {
    let (service, caller) = start(&IMPATIENT);
    caller.create_device(ID, DEVICE_IP);
    let mut device = Deaf::registered(Wire::to(&service));
    for permitted in [None, Some(1), Some(2), Some(5)] {
        let mut body = when_active(read("/3/0/15"));
        if let Some(permitted) = permitted {
            body = with(body, "sendAttempts", permitted);
        }
        let permitted = permitted.unwrap_or(1);
        let id = caller.create_action(ID, &body);
        let waiting = caller.action(&id);
        assert_eq!(attempts(&waiting), ("SCHEDULED", permitted, permitted));
        device.asked.clear();
        let failed = device.update_until_final(&caller, &id);
        assert_eq!(attempts(&failed), ("FAILED", permitted, 0), "{failed}");
        device.update();
        assert_eq!(device.times_asked(), permitted, "{failed}");
        assert_eq!(failed["resultData"].get("code"), None, "nobody answered");
        let log = caller.log_entries().remove(0);
        assert_eq!(log["message"], "DeviceController[ActionRequestFailed]");
        assert_eq!(log["traceId"], failed["requestData"]["traceId"]);

        device.update();
        assert_eq!(device.times_asked(), permitted, "it is asked no more");
        let refused = caller.cancel_action(&id).expect(409);
        assert_eq!(error_codes(&refused), ["REQUEST_NOT_SCHEDULED"]);
        assert_eq!(caller.action(&id), failed, "the status is permanent");
    }
}

#[test]
fn an_attempt_is_counted_when_it_leaves_and_not_before() {
    let mut scene = Scene::new();
    scene.device.answer_with(ZONE, Answer::Silent);
    let bodies = [write("/3/0/15", "a"), when_active(write("/3/0/15", "b"))];
    let [now, later] = bodies.map(|body| {
        let body = with(body, "sendAttempts", 3);
        scene.caller.create_action(ID, &body)
    });
    scene.device.hear_unanswered(ZONE);
    let now_in_flight = scene.caller.action(&now);
    assert_eq!(attempts(&now_in_flight), ("IN_PROGRESS", 3, 2));
    assert_eq!(attempts(&scene.caller.action(&later)), ("SCHEDULED", 3, 3));
}

#[test]
fn an_answer_to_another_request_is_not_the_activity_a_next_attempt_waits_for() {
    let mut scene = Scene::new();
    let later = Answer::Code(Code::SERVICE_UNAVAILABLE);
    scene.device.answer_with(ZONE, later);
    let body = with(read("/3/0/15"), "sendAttempts", 2);
    let put_off = scene.caller.create_action(ID, &body);
    scene.device.hear_asked(ZONE);
    for _ in 0..3 {
        let other = scene.caller.perform(ID, &read("/3/0/0"));
        assert_eq!(outcome(&other), ("SUCCEEDED", "205"), "{other}");
        let waiting = scene.caller.action(&put_off);
        assert_eq!(attempts(&waiting), ("IN_PROGRESS", 2, 1));
    }
    scene.device.answer_with(ZONE, Answer::Piggybacked);
    scene.device.update();
    let done = scene.caller.final_action(&put_off);
    assert_eq!(attempts(&done), ("SUCCEEDED", 2, 0), "{done}");
}

#[test]
fn every_other_failure_the_device_answers_with_is_final_at_once() {
    let scene = Scene::new();
    let codes = [
        (Code::BAD_REQUEST, "400"),
        (Code::UNAUTHORIZED, "401"),
        (Code::BAD_OPTION, "402"),
        (Code::FORBIDDEN, "403"),
        (Code::NOT_FOUND, "404"),
        (Code::METHOD_NOT_ALLOWED, "405"),
        (Code::NOT_ACCEPTABLE, "406"),
        (Code::INTERNAL_SERVER_ERROR, "500"),
        (Code::new(5, 31), "531"),
    ];
    for (code, digits) in codes {
        scene.device.answer_with(ZONE, Answer::Code(code));
        let body = with(write("/3/0/15", "x"), "sendAttempts", 5);
        let action = scene.caller.perform(ID, &body);
        assert_eq!(outcome(&action), ("FAILED", digits), "{action}");
        assert_eq!(attempts(&action), ("FAILED", 5, 4), "{digits}");
    }
}

#[test]
fn every_code_of_success_is_a_success() {
    let scene = Scene::new();
    let codes = [
        (Code::CREATED, "201"),
        (Code::DELETED, "202"),
        (Code::CHANGED, "204"),
        (Code::CONTENT, "205"),
    ];
    for (code, digits) in codes {
        scene.device.answer_with(ZONE, Answer::Code(code));
        let action = scene.caller.perform(ID, &write("/3/0/15", "x"));
        assert_eq!(outcome(&action), ("SUCCEEDED", digits), "{action}");
    }
}

impl Deaf {
    fn registered(wire: Wire) -> Self {
        let location = wire.register(ID, 1);
        Self {
            wire,
            location,
            asked: Vec::new(),
            said: 1,
        }
    }

    /// Updates, and remembers every request that came by the time of the answer.
    fn update(&mut self) {
        self.said += 1;
        let update = update(&self.location, self.said);
        self.wire.say(&update.encode());
        loop {
            let heard = self.wire.hear();
            if heard.code.is_request() {
                self.asked.push(heard);
            } else {
                assert_eq!(heard.code, Code::CHANGED, "{heard:?}");
                return;
            }
        }
    }

    fn update_until_final(&mut self, caller: &Caller, id: &str) -> Value {
        until("the end of a request", || {
            self.update();
            let action = caller.action(id);
            let is_final = action["status"] == "FAILED";
            is_final.then_some(action)
        })
    }

    /// How many requests came; one that is repeated keeps its message id (RFC 7252 section 4.2).
    fn times_asked(&self) -> u64 {
        let ids: BTreeSet<_> = self.asked.iter().map(|it| it.message_id).collect();
        ids.len().try_into().unwrap()
    }
}

/// The status, the attempts permitted, and those left.
fn attempts(action: &Value) -> (&str, u64, u64) {
    let number = |name: &str| action[name].as_u64().unwrap_or_else(|| panic!("{action}"));
    let status = action["status"].as_str().unwrap();
    (status, number("sendAttempts"), number("sendAttemptsLeft"))
}
