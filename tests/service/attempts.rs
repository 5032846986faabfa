//! How often is a device asked, and what ends the asking?

use std::collections::BTreeSet;

use harness::device::resource::AnswerMode;
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;
use serde_json::Value;

use crate::test_service::{ID, IMPATIENT, TestService, error_codes, start, with};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, update};

const ZONE: Path = Path::resource(3, 0, 15);

/// A device that never answers, and remembers what it was asked.
struct Deaf {
    wire: DeviceSocket,
    location: Vec<String>,
    asked: Vec<Message>,
    said: u16,
}

#[test]
fn a_request_for_an_active_device_leaves_as_often_as_permitted_and_then_fails_for_ever() {
    let (service, caller) = start(&IMPATIENT);
    caller.create_device(ID, DEVICE_IP);
    let mut device = Deaf::registered(DeviceSocket::to(&service));
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
fn an_answer_to_another_request_is_not_the_activity_a_next_attempt_waits_for() {
    let mut setup = TestService::new();
    let later = AnswerMode::Code(Code::SERVICE_UNAVAILABLE);
    setup.device.answer_with(ZONE, later);
    let body = with(read("/3/0/15"), "sendAttempts", 2);
    let put_off = setup.caller.create_action(ID, &body);
    setup.device.wait_requested(ZONE);
    for _ in 0..3 {
        let other = setup.caller.perform(ID, &read("/3/0/0"));
        assert_eq!(outcome(&other), ("SUCCEEDED", "205"), "{other}");
        let waiting = setup.caller.action(&put_off);
        assert_eq!(attempts(&waiting), ("IN_PROGRESS", 2, 1));
    }
    setup.device.answer_with(ZONE, AnswerMode::Piggybacked);
    setup.device.update();
    let done = setup.caller.final_action(&put_off);
    assert_eq!(attempts(&done), ("SUCCEEDED", 2, 0), "{done}");
}

impl Deaf {
    fn registered(wire: DeviceSocket) -> Self {
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
        self.wire.send(&update.encode());
        loop {
            let heard = self.wire.receive();
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
