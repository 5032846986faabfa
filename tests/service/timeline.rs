//! Can a customer see what happened to a request, step by step?

use harness::device::configuration::Configuration;
use harness::device::resource::Answer;
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use serde_json::Value;

use crate::scene::{ID, IMPATIENT, PATIENT, Scene, silent_device, start, with};
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::poll::until;

const ZONE: Path = Path::resource(3, 0, 15);

#[test]
fn a_request_shows_its_attempt_its_datagram_and_its_answer() {
    let scene = Scene::new();
    let action = scene.caller.perform(ID, &read("/3/0/15"));
    let action = scene.caller.action(action["id"].as_str().unwrap());
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
fn each_way_to_be_met_is_shown() {
    let apart = Answer::SeparateConfirmable { after_ms: 1 };
    for (answering, last) in [
        (apart, &["ACKNOWLEDGED", "ANSWERED 205"][..]),
        (Answer::Code(Code::UNAUTHORIZED), &["ANSWERED 401"]),
        (Answer::Reset, &["REJECTED"]),
    ] {
        let scene = Scene::new();
        scene.device.answer_with(ZONE, answering);
        let action = scene.caller.perform(ID, &read("/3/0/15"));
        let steps = steps(&scene.caller.action(action["id"].as_str().unwrap()));
        assert_eq!(
            steps[..2],
            ["ATTEMPT_BEGUN 1", "DATAGRAM_SENT"],
            "{answering:?}"
        );
        assert_eq!(steps[2..], *last, "{answering:?}");
    }
}

#[test]
fn every_attempt_is_shown_with_its_repetitions_and_survives_a_crash() {
    let mut scene = Scene::with(&IMPATIENT, Configuration::new(ID));
    scene.device.answer_with(ZONE, Answer::Silent);
    let twice = with(when_active(read("/3/0/15")), "sendAttempts", 2);
    let id = scene.caller.create_action(ID, &twice);
    assert_eq!(steps(&scene.caller.action(&id)), Vec::<String>::new());
    let silence = ["DATAGRAM_SENT", "DATAGRAM_REPEATED", "GAVE_UP"];
    scene.device.update();
    until_steps(&scene, &id, 4);
    // From now on nothing is repeated, however late the answer comes.
    scene.service.kill();
    scene.service.start_again_with(&[PATIENT]);
    scene.caller.follow(&scene.service);
    scene.device.answer_with(ZONE, Answer::Piggybacked);
    scene.device.update();
    scene.caller.final_action(&id);
    let shown = steps(&scene.caller.action(&id));
    assert_eq!(shown[..1], ["ATTEMPT_BEGUN 1"]);
    assert_eq!(shown[1..4], silence);
    assert_eq!(
        shown[4..],
        ["ATTEMPT_BEGUN 2", "DATAGRAM_SENT", "ANSWERED 205"]
    );
    scene.crash();
    assert_eq!(steps(&scene.caller.action(&id)), shown);
}

#[test]
fn a_request_nobody_has_tried_shows_nothing() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let id = caller.create_action(ID, &when_active(read("/3/0/15")));
    caller.cancel_action(&id).expect(200);
    assert_eq!(steps(&caller.action(&id)), Vec::<String>::new());
}

fn until_steps(scene: &Scene, id: &str, count: usize) {
    until("the end of an attempt", || {
        (steps(&scene.caller.action(id)).len() == count).then_some(())
    });
}

/// What happened to a request, each with its number or code.
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
