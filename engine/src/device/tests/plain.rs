//! Requests over plain CoAP: what is sent, what the answers mean, and from where they are accepted.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};

use super::vocabulary::{
    DeviceFixture, HOME, Lines, S, all, coap, created, ended, logged, moved, port, put_off, read,
    sent, updated,
};
use crate::action::Status::{Failed, InProgress, Scheduled, Succeeded};
use crate::action::{Method, NewAction, PayloadType, Request, ResultPayload};
use crate::device::refusal::SubmitRefusal;
use crate::step_event::{ExchangeOutcome, ExchangePurpose, StepEventKind};

/// The address at which the device serves CoAP.
const SERVER: &str = "10.0.0.1:5685";

const ELSEWHERE: &str = "10.0.0.1:7777";

#[test]
fn a_request_to_be_sent_now_is_sent_at_once_to_a_device_that_never_registered() {
    let mut fixture = DeviceFixture::new();
    let (_, effects) = fixture.submit(coap(Method::Get, "/a", ""));
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        open(),
        sent_to_server("CON GET /a m1"),
    ]);
    assert_eq!(effects, expected);
    assert_eq!(
        fixture.step_events()[1..],
        [StepEventKind::Begun(ExchangePurpose::Action)]
    );
}

#[test]
fn each_method_and_target_becomes_a_request_of_its_own() {
    let cases = [
        (Method::Get, "/", "", "CON GET  m1"),
        (Method::Get, "/a/b", "", "CON GET /a/b m1"),
        (Method::Get, "/a?x=1&y", "", "CON GET /a ?x=1 ?y m1"),
        (Method::Get, "/?x=1", "", "CON GET  ?x=1 m1"),
        (Method::Get, "/a%2Fb/%C3%BC", "", "CON GET /a/b/ü m1"),
        (Method::Get, "/a//b", "", "CON GET /a//b m1"),
        (Method::Post, "/a", "on", "CON POST /a \"on\" m1"),
        (Method::Put, "/a", "on", "CON PUT /a \"on\" m1"),
        (Method::Patch, "/a", "on", "CON PATCH /a \"on\" m1"),
        (Method::Delete, "/a", "", "CON DELETE /a m1"),
    ];
    for (method, target, payload, line) in cases {
        let mut fixture = DeviceFixture::new();
        let (_, effects) = fixture.submit(coap(method, target, payload));
        assert!(
            effects.ends_with(&sent_to_server(line)),
            "{target}: {effects:?}"
        );
    }
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a%2Fb/c", ""));
    let segments: Vec<&str> = fixture.last_request().uri_path().collect();
    assert_eq!(segments, ["a/b", "c"], "an escaped slash parts nothing");
}

#[test]
fn an_answer_in_text_is_shown_as_text_and_any_other_in_base64() {
    let text = Some(ContentFormat::TEXT);
    let cases: [(Option<ContentFormat>, &[u8], &str, PayloadType); 6] = [
        (text, b"21.5", "21.5", PayloadType::Text),
        (Some(ContentFormat::JSON), b"{}", "{}", PayloadType::Text),
        (text, b"\xff", "/w==", PayloadType::Base64),
        (None, b"21.5", "MjEuNQ==", PayloadType::Base64),
        (
            Some(ContentFormat::OCTET_STREAM),
            b"on",
            "b24=",
            PayloadType::Base64,
        ),
        (
            Some(ContentFormat::CBOR),
            &[0xf5],
            "9Q==",
            PayloadType::Base64,
        ),
    ];
    for (format, payload, shown, payload_type) in cases {
        let mut fixture = DeviceFixture::new();
        let id = fixture.ask(coap(Method::Get, "/a", ""));
        let mut answer = fixture.piggybacked(Code::CONTENT).with_payload(payload);
        if let Some(format) = format {
            answer = answer.with_content_format(format);
        }
        let progress = format!("1/1 \"205\" {shown:?}");
        let expected = all([closed(), ended("#1", Succeeded, &progress)]);
        assert_eq!(fixture.at(S).receives(SERVER, &answer), expected);
        let outcome = fixture.saved(id).outcome.clone().unwrap();
        assert_eq!(outcome.payload, Some(ResultPayload::from(shown)));
        assert_eq!(outcome.payload_type, Some(payload_type), "{shown}");
    }
}

#[test]
fn every_success_code_succeeds_and_an_empty_answer_has_no_payload() {
    for code in [Code::CHANGED, Code::CREATED, Code::DELETED, Code::VALID] {
        let mut fixture = DeviceFixture::new();
        let id = fixture.ask(coap(Method::Post, "/a", "on"));
        let digits = code.digits();
        let progress = format!("1/1 {digits:?}");
        let expected = all([closed(), ended("#1", Succeeded, &progress)]);
        let answer = fixture.piggybacked(code);
        assert_eq!(fixture.receives(SERVER, &answer), expected);
        let outcome = fixture.saved(id).outcome.clone().unwrap();
        assert_eq!((outcome.payload, outcome.payload_type), (None, None));
        assert!(fixture.device().is_idle());
    }
}

#[test]
fn a_separate_answer_is_acknowledged_once_it_is_saved() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", ""));
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    assert_eq!(fixture.receives(SERVER, &acknowledgement), Lines::new());
    let answer = fixture.separate(MessageKind::Confirmable, Code::CHANGED);
    let expected = all([
        closed(),
        ended("#1", Succeeded, "1/1 \"204\""),
        sent_to_server("ACK to 101"),
    ]);
    assert_eq!(fixture.at(S).receives(SERVER, &answer), expected);
}

#[test]
fn a_refusal_that_no_repetition_would_change_is_final() {
    for code in [
        Code::BAD_REQUEST,
        Code::UNAUTHORIZED,
        Code::BAD_OPTION,
        Code::FORBIDDEN,
        Code::NOT_FOUND,
        Code::METHOD_NOT_ALLOWED,
        Code::REQUEST_ENTITY_TOO_LARGE,
        Code::INTERNAL_SERVER_ERROR,
        Code::PROXYING_NOT_SUPPORTED,
    ] {
        let mut fixture = DeviceFixture::new();
        fixture.ask(coap(Method::Get, "/a", "").attempts(5));
        let why = format!("the device answered {code}");
        let progress = format!("1/5 {:?} {why:?}", code.digits());
        let answer = fixture.piggybacked(code);
        let expected = all([closed(), failed(&progress, &why)]);
        assert_eq!(fixture.receives(SERVER, &answer), expected);
    }
}

#[test]
fn the_payload_of_a_refusal_is_in_the_outcome() {
    for code in [Code::BAD_REQUEST, Code::SERVICE_UNAVAILABLE] {
        let mut fixture = DeviceFixture::new();
        let id = fixture.ask(coap(Method::Get, "/a", ""));
        let answer = fixture.piggybacked(code);
        let answer = answer.with_content_format(ContentFormat::TEXT);
        fixture.receives(SERVER, &answer.with_payload("no such colour"));
        let outcome = fixture.saved(id).outcome.clone().unwrap();
        assert_eq!(outcome.payload, Some(ResultPayload::from("no such colour")));
        assert_eq!(outcome.payload_type, Some(PayloadType::Text));
        let why = format!("the device answered {code}");
        assert_eq!(outcome.error.as_deref(), Some(why.as_str()));
    }
}

#[test]
fn a_request_refused_for_now_is_tried_again_at_the_next_uplink() {
    for code in [
        Code::REQUEST_ENTITY_INCOMPLETE,
        Code::TOO_MANY_REQUESTS,
        Code::SERVICE_UNAVAILABLE,
    ] {
        let mut fixture = DeviceFixture::new();
        fixture.ask(coap(Method::Get, "/a", "").attempts(2));
        let answer = fixture.piggybacked(code);
        let expected = all([closed(), put_off("#1", "1/2")]);
        assert_eq!(fixture.at(S).receives(SERVER, &answer), expected, "{code}");
        assert_eq!(fixture.at(2 * S).timeout(), Lines::new(), "{code}");
        let expected = all([
            moved("#1", InProgress, InProgress, "2/2"),
            open(),
            sent_to_server("CON GET /a m2"),
        ]);
        let effects = fixture.at(3 * S).receives_bare(b"");
        assert!(effects.ends_with(&expected), "{code}: {effects:?}");
        let answer = fixture.piggybacked(code);
        let why = format!("the device answered {code}");
        let progress = format!("2/2 {:?} {why:?}", code.digits());
        let expected = all([closed(), failed(&progress, &why)]);
        assert_eq!(fixture.receives(SERVER, &answer), expected);
    }
}

#[test]
fn a_rejected_message_is_an_attempt() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", ""));
    let reset = Message::reset(fixture.last_request().message_id);
    let why = "the device rejected the message with a Reset";
    let expected = all([closed(), failed(&format!("1/1 {why:?}"), why)]);
    assert_eq!(fixture.receives(SERVER, &reset), expected);
}

#[test]
fn one_attempt_is_made_for_each_uplink() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", "").attempts(2));
    let silence = all([closed(), put_off("#1", "1/2")]);
    assert_eq!(unanswered(&mut fixture), silence);
    assert_eq!(fixture.at(HOUR_LATER).timeout(), Lines::new());
    fixture.receives_bare(b"");
    fixture.receives_bare(b"");
    let why = "the device did not acknowledge the message";
    let expected = all([closed(), failed(&format!("2/2 {why:?}"), why)]);
    assert_eq!(unanswered(&mut fixture), expected);
}

#[test]
fn the_next_request_to_a_silent_device_waits_without_an_attempt() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", ""));
    let (_, effects) = fixture.submit(coap(Method::Get, "/b", ""));
    assert_eq!(effects, created("#2", Scheduled, "0/1"), "one at a time");
    let effects = unanswered(&mut fixture);
    assert!(
        effects.iter().all(|line| !line.contains("/b")),
        "{effects:?}"
    );
    let effects = fixture.at(HOUR_LATER).receives_bare(b"");
    assert!(
        effects.ends_with(&sent_to_server("CON GET /b m2")),
        "{effects:?}"
    );
}

#[test]
fn only_the_peer_of_the_request_may_answer() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(coap(Method::Get, "/a", ""));
    let answer = fixture.piggybacked(Code::CHANGED);
    assert_eq!(fixture.receives(HOME, &answer), Lines::new());
    assert_eq!(fixture.receives(ELSEWHERE, &answer), Lines::new());
    let expected = all([closed(), ended("#1", Succeeded, "1/1 \"204\"")]);
    assert_eq!(fixture.receives(SERVER, &answer), expected);
}

#[test]
fn answers_are_routed_from_the_beginning_to_the_end_of_the_exchange() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(coap(Method::Get, "/a", ""));
    assert!(effects.ends_with(&all([open(), sent_to_server("CON GET /a m1")])));
    let again = all([open(), sent_to_server("CON GET /a m1")]);
    assert_eq!(
        fixture.next_deadline(),
        again,
        "somebody else may have come there"
    );
    let answer = fixture.piggybacked(Code::CHANGED);
    assert_eq!(fixture.receives(SERVER, &answer)[..1], closed());
}

#[test]
fn an_exchange_with_the_registered_peer_needs_no_binding_of_its_own() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(to_port(5683, coap(Method::Get, "/a", "")));
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /a m1"),
    ]);
    assert_eq!(effects, expected);
    assert_eq!(fixture.next_deadline(), sent("CON GET /a m1"));
    let expected = ended("#1", Succeeded, "1/1 \"204\"");
    assert_eq!(fixture.answer(Code::CHANGED, ""), expected);
}

#[test]
fn a_registration_at_the_peer_of_the_exchange_keeps_its_binding() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(to_port(5683, coap(Method::Get, "/a", "")));
    let request = fixture.last_request().clone();
    fixture.register();
    let answer = Message::response_to(&request, Code::CHANGED, request.message_id);
    let expected = ended("#1", Succeeded, "1/1 \"204\"");
    assert_eq!(
        fixture.at(S).receives(HOME, &answer),
        expected,
        "nothing is unbound"
    );
}

#[test]
fn requests_keep_their_port_when_the_device_moves() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(to_port(5683, coap(Method::Get, "/a", "")));
    let update = fixture.updating(&[], "");
    let expected = vec![
        format!("rebind {HOME} -> {ELSEWHERE}"),
        format!("rebind nowhere -> {HOME}"),
        format!("send {ELSEWHERE}: ACK 2.04 to 102"),
    ];
    assert_eq!(fixture.at(S).receives(ELSEWHERE, &update), expected);
    let again = vec![
        format!("rebind nowhere -> {HOME}"),
        sent("CON GET /a m1").remove(0),
    ];
    assert_eq!(fixture.next_deadline(), again);
    let expected = all([
        vec![format!("rebind {HOME} -> nowhere")],
        ended("#1", Succeeded, "1/1 \"204\""),
    ]);
    assert_eq!(fixture.answer(Code::CHANGED, ""), expected);
}

#[test]
fn a_device_that_leaves_the_peer_of_the_exchange_may_still_answer_from_there() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(coap(Method::Get, "/a", ""));
    let update = fixture.updating(&[], "");
    fixture.at(S).receives(SERVER, &update);
    let update = fixture.updating(&[], "");
    let expected = vec![
        format!("rebind {SERVER} -> {ELSEWHERE}"),
        format!("rebind nowhere -> {SERVER}"),
        format!("send {ELSEWHERE}: ACK 2.04 to 103"),
    ];
    assert_eq!(fixture.receives(ELSEWHERE, &update), expected);
    let answer = fixture.piggybacked(Code::CHANGED);
    let expected = all([closed(), ended("#1", Succeeded, "1/1 \"204\"")]);
    assert_eq!(fixture.receives(SERVER, &answer), expected);
}

#[test]
fn an_exchange_with_another_peer_outlives_the_registration() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(coap(Method::Get, "/a", ""));
    let effects = fixture.at(S).deregister();
    assert_eq!(effects.last().unwrap(), &sent("ACK 2.02 to 102")[0]);
    let answer = fixture.piggybacked(Code::CHANGED);
    let expected = all([closed(), ended("#1", Succeeded, "1/1 \"204\"")]);
    assert_eq!(fixture.receives(SERVER, &answer), expected);
}

#[test]
fn nothing_is_sent_to_or_accepted_from_an_address_taken_from_the_device() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", ""));
    fixture.amend(|profile| profile.ip = Some("10.0.0.9".parse().unwrap()));
    while fixture.now_s() < 30 {
        assert_eq!(fixture.next_deadline(), Lines::new());
    }
    assert_eq!(fixture.next_deadline()[..1], closed(), "it is given up");
    let (_, effects) = fixture.submit(coap(Method::Get, "/a", ""));
    let request = vec!["send 10.0.0.9:5685: CON GET /a m2".to_owned()];
    assert!(effects.ends_with(&request), "{effects:?}");
}

#[test]
fn a_removed_device_leaves_no_binding() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(coap(Method::Get, "/a", ""));
    let effects = fixture.retire();
    let expected = all([closed(), vec![format!("rebind {HOME} -> nowhere")]]);
    assert!(effects.ends_with(&expected), "{effects:?}");
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::DeviceGone)
    );
}

#[test]
fn a_request_cannot_be_sent_now_to_a_device_without_an_address() {
    let mut fixture = DeviceFixture::roaming();
    let (refused, effects) = fixture.submit(coap(Method::Get, "/a", ""));
    assert_eq!(refused, Err(SubmitRefusal::NoAddress));
    assert_eq!(effects, Lines::new());
    fixture.ask(coap(Method::Get, "/a", "").when_active());
    let effects = fixture.at(S).register();
    let expected = all([open(), sent_to_server("CON GET /a m1")]);
    assert!(
        effects.ends_with(&expected),
        "where it is registered: {effects:?}"
    );
}

#[test]
fn a_request_to_a_sleeping_device_is_sent_at_its_next_uplink() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let (_, effects) = fixture.at(93 * S).submit(coap(Method::Get, "/a", ""));
    assert_eq!(effects, created("#1", Scheduled, "0/1"));
    let expected = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        open(),
        sent_to_server("CON GET /a m1"),
    ]);
    assert_eq!(fixture.at(500 * S).update(), expected);
}

#[test]
fn requests_over_coap_and_lwm2m_are_sent_in_one_order() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active());
    fixture.ask(coap(Method::Get, "/a", "").when_active());
    let effects = fixture.at(S).update();
    assert!(effects.ends_with(&sent("CON GET /3/0/9 accept 0 m1")));
    let effects = fixture.answer(Code::NOT_FOUND, "");
    let expected = all([
        moved("#2", Scheduled, InProgress, "1/1"),
        open(),
        sent_to_server("CON GET /a m2"),
    ]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn an_attempt_in_flight_at_a_restart_counts_as_made() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", "").attempts(2));
    fixture.restart();
    assert_eq!(fixture.timeout(), Lines::new());
    let effects = fixture.at(S).receives_bare(b"");
    let expected = all([
        moved("#1", InProgress, InProgress, "2/2"),
        open(),
        sent_to_server("CON GET /a m2"),
    ]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

const HOUR_LATER: i64 = 3_600 * S;

/// The device does not answer until the attempt is given up. Returns the effects of that.
fn unanswered(fixture: &mut DeviceFixture) -> Lines {
    loop {
        let effects = fixture.next_deadline();
        if !effects.iter().any(|line| line.starts_with("send")) {
            return effects;
        }
    }
}

fn to_port(number: u16, mut new: NewAction) -> NewAction {
    if let Request::Coap(request) = &mut new.request {
        request.port = port(number);
    }
    new
}

fn open() -> Lines {
    vec![format!("rebind nowhere -> {SERVER}")]
}

fn closed() -> Lines {
    vec![format!("rebind {SERVER} -> nowhere")]
}

fn sent_to_server(line: &str) -> Lines {
    vec![format!("send {SERVER}: {line}")]
}

fn failed(progress: &str, why: &str) -> Lines {
    all([
        ended("#1", Failed, progress),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
    ])
}
