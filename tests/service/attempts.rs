//! How many attempts are made, and what ends a request?

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

/// A device that never answers and records the requests it receives.
struct Deaf {
    wire: DeviceSocket,
    location: Vec<String>,
    requests: Vec<Message>,
    last_id: u16,
}

#[test]
fn a_request_to_an_active_device_is_sent_as_often_as_permitted_and_then_fails() {
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
        device.requests.clear();
        let failed = device.update_until_final(&caller, &id);
        assert_eq!(attempts(&failed), ("FAILED", permitted, 0), "{failed}");
        device.update();
        assert_eq!(device.requests_received(), permitted, "{failed}");
        assert_eq!(failed["resultData"].get("code"), None, "nobody answered");
        let log = caller.log_entries().remove(0);
        assert_eq!(log["message"], "DeviceController[ActionRequestFailed]");
        assert_eq!(log["traceId"], failed["requestData"]["traceId"]);

        device.update();
        assert_eq!(
            device.requests_received(),
            permitted,
            "nothing more is sent"
        );
        let refused = caller.cancel_action(&id).expect(409);
        assert_eq!(error_codes(&refused), ["REQUEST_NOT_SCHEDULED"]);
        assert_eq!(caller.action(&id), failed, "the status is permanent");
    }
}

#[test]
fn an_answer_to_another_request_does_not_begin_the_next_attempt() {
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
            requests: Vec::new(),
            last_id: 1,
        }
    }

    /// Updates its registration and records every request received before the answer.
    fn update(&mut self) {
        self.last_id += 1;
        let update = update(&self.location, self.last_id);
        self.wire.send(&update.encode());
        loop {
            let message = self.wire.receive();
            if message.code.is_request() {
                self.requests.push(message);
            } else {
                assert_eq!(message.code, Code::CHANGED, "{message:?}");
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

    /// How many distinct requests were received. A retransmission keeps its message id (RFC 7252
    /// section 4.2).
    fn requests_received(&self) -> u64 {
        let ids: BTreeSet<_> = self.requests.iter().map(|it| it.message_id).collect();
        ids.len().try_into().unwrap()
    }
}

/// The status, the attempts permitted, and those left.
fn attempts(action: &Value) -> (&str, u64, u64) {
    let number = |name: &str| action[name].as_u64().unwrap_or_else(|| panic!("{action}"));
    let status = action["status"].as_str().unwrap();
    (status, number("sendAttempts"), number("sendAttemptsLeft"))
}
