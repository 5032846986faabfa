//! Can a customer see what happened to a request, step by step?

use harness::device::configuration::Configuration;
use harness::device::resource::AnswerMode;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId};
use protocol::lwm2m::path::Path;
use serde_json::Value;

use crate::test_service::{ID, IMPATIENT, PATIENT, TestService, silent_device, start, with};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::DeviceSocket;

const ZONE: Path = Path::resource(3, 0, 15);

#[test]
fn a_request_shows_its_attempt_its_datagram_and_its_answer() {
    let setup = TestService::new();
    let action = setup.caller.perform(ID, &read("/3/0/15"));
    let action = setup.caller.action(action["id"].as_str().unwrap());
    assert_eq!(
        steps(&action),
        ["ATTEMPT_BEGUN 1", "DATAGRAM_SENT", "ANSWERED 205"]
    );
    let happened = action["timeline"].as_array().unwrap();
    let times: Vec<&str> = happened
        .iter()
        .map(|it| it["time"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(action["created"].as_str().unwrap() <= times[0], "{action}");
    assert_eq!(action["updated"], times[2], "{action}");
}

#[test]
fn each_kind_of_response_is_shown() {
    let apart = AnswerMode::SeparateConfirmable { after_ms: 1 };
    for (answering, last) in [
        (apart, &["ACKNOWLEDGED", "ANSWERED 205"][..]),
        (AnswerMode::Code(Code::UNAUTHORIZED), &["ANSWERED 401"]),
        (AnswerMode::Reset, &["REJECTED"]),
    ] {
        let setup = TestService::new();
        setup.device.answer_with(ZONE, answering);
        let action = setup.caller.perform(ID, &read("/3/0/15"));
        let steps = steps(&setup.caller.action(action["id"].as_str().unwrap()));
        assert_eq!(
            steps[..2],
            ["ATTEMPT_BEGUN 1", "DATAGRAM_SENT"],
            "{answering:?}"
        );
        assert_eq!(steps[2..], *last, "{answering:?}");
    }
}

#[test]
fn the_diagnostic_text_of_a_device_is_shown_in_the_error_and_in_the_timeline() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    wire.register(ID, 1);
    let id = caller.create_action(ID, &read("/3/0/15"));
    let request = wire.receive_request();
    let answer = Message::response_to(&request, Code::FORBIDDEN, MessageId(0));
    wire.send(&answer.with_payload("the lid is\r\nopen").encode());
    let action = caller.final_action(&id);
    let error = &action["resultData"]["errorMessage"];
    assert_eq!(
        error, "the device answered 4.03: \"the lid isopen\"",
        "{action}"
    );
    let answered = &caller.action(&id)["timeline"][2];
    assert_eq!(answered["event"], "ANSWERED", "{answered}");
    assert_eq!(answered["diagnostic"], "the lid isopen", "{answered}");
}

#[test]
fn every_attempt_is_shown_with_its_retransmissions_and_survives_a_crash() {
    let mut setup = TestService::with(&IMPATIENT, Configuration::new(ID));
    setup.device.answer_with(ZONE, AnswerMode::Silent);
    let twice = with(when_active(read("/3/0/15")), "sendAttempts", 2);
    let id = setup.caller.create_action(ID, &twice);
    assert_eq!(steps(&setup.caller.action(&id)), Vec::<String>::new());
    let silence = ["DATAGRAM_SENT", "DATAGRAM_REPEATED", "GAVE_UP"];
    setup.device.update();
    until_steps(&setup, &id, 4);
    // From now on nothing is retransmitted, however late the answer arrives.
    setup.service.kill();
    setup.service.start_again_with(&[PATIENT]);
    setup.caller.follow(&setup.service);
    setup.device.answer_with(ZONE, AnswerMode::Piggybacked);
    setup.device.update();
    setup.caller.final_action(&id);
    let shown = steps(&setup.caller.action(&id));
    assert_eq!(shown[..1], ["ATTEMPT_BEGUN 1"]);
    assert_eq!(shown[1..4], silence);
    assert_eq!(
        shown[4..],
        ["ATTEMPT_BEGUN 2", "DATAGRAM_SENT", "ANSWERED 205"]
    );
    setup.crash();
    assert_eq!(steps(&setup.caller.action(&id)), shown);
}

#[test]
fn a_request_without_attempts_has_an_empty_timeline() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let id = caller.create_action(ID, &when_active(read("/3/0/15")));
    caller.cancel_action(&id).expect(200);
    assert_eq!(steps(&caller.action(&id)), Vec::<String>::new());
}

fn until_steps(setup: &TestService, id: &str, count: usize) {
    until("the end of an attempt", || {
        (steps(&setup.caller.action(id)).len() == count).then_some(())
    });
}

/// The events of a request's timeline, each with its number or code.
fn steps(action: &Value) -> Vec<String> {
    let happened = action["timeline"].as_array();
    let happened = happened.unwrap_or_else(|| panic!("no timeline: {action}"));
    let step = |it: &Value| {
        let event = it["event"].as_str().unwrap().to_owned();
        let attempt = it["attempt"].as_u64().map(|number| format!(" {number}"));
        let code = it["code"].as_str().map(|code| format!(" {code}"));
        event + &attempt.or(code).unwrap_or_default()
    };
    happened.iter().map(step).collect()
}
