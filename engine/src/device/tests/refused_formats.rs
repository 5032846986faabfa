//! If a device refuses a format, the next one is tried within the same attempt.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::value::Value;

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, Lines, OBJECTS, S, all, answered, end_observing, ended, execute,
    logged, moved, observe, read, sent, tlv, write,
};
use crate::action::Status::{Failed, InProgress};
use crate::action::timeline::TimelineEvent;

#[test]
fn a_refused_format_is_followed_by_the_next_in_the_same_attempt() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0"));
    assert_eq!(
        fixture.last_request().accept(),
        Some(ContentFormat::LWM2M_TLV)
    );
    let effects = fixture.at(S).answer(Code::NOT_ACCEPTABLE, "");
    assert_eq!(effects, sent("CON GET /3/0 accept 112 m2"));
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(r#"[{"n":"/3/0/9","v":87}]"#);
    let expected = answered("#1", "/3/0/9=87", r#"1/1 "205" "/3/0/9=87""#);
    assert_eq!(fixture.at(2 * S).receives(HOME, &answer), expected);
    let timeline = fixture.saved(id).timeline.as_slice().iter();
    let stages: Vec<_> = timeline
        .map(|happened| (fixture.since_start(happened.at), happened.what))
        .collect();
    let expected = [
        (0, TimelineEvent::AttemptBegun(1)),
        (0, TimelineEvent::DatagramSent),
        (S, TimelineEvent::Answered(Code::NOT_ACCEPTABLE)),
        (S, TimelineEvent::DatagramSent),
        (2 * S, TimelineEvent::Answered(Code::CONTENT)),
    ];
    assert_eq!(stages, expected);
}

#[test]
fn a_refused_format_is_not_requested_until_the_device_registers_again() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0"));
    fixture.answer(Code::NOT_ACCEPTABLE, "");
    fixture.answer(Code::NOT_FOUND, "");
    fixture.ask(read("/3303/0"));
    assert_eq!(
        fixture.last_request().accept(),
        Some(ContentFormat::SENML_CBOR)
    );
    fixture.answer(Code::NOT_FOUND, "");
    fixture.update();
    fixture.ask(read("/3/0"));
    assert_eq!(
        fixture.last_request().accept(),
        Some(ContentFormat::SENML_CBOR)
    );
    fixture.answer(Code::NOT_FOUND, "");
    fixture.register();
    fixture.ask(read("/3/0"));
    assert_eq!(
        fixture.last_request().accept(),
        Some(ContentFormat::LWM2M_TLV)
    );
}

#[test]
fn a_device_that_refuses_every_format_may_answer_in_any() {
    for refusal in [Code::NOT_ACCEPTABLE, Code::UNSUPPORTED_CONTENT_FORMAT] {
        let mut fixture = DeviceFixture::registered();
        fixture.ask(read("/3/0").attempts(5));
        let mut formats = Vec::new();
        while let Some(format) = fixture.last_request().accept() {
            formats.push(format.0);
            fixture.answer(refusal, "");
        }
        assert_eq!(formats, [11_542, 112, 110, 11_543]);
        assert_eq!(fixture.answer(refusal, ""), failed("1/5", refusal));
        let answer = read_again(&mut fixture);
        let values = [("/3/0/9", Value::Integer(87))];
        let effects = fixture.receives(HOME, &tlv(answer, "/3/0", &values));
        assert_eq!(effects[0], "publish /3/0/9=87 for #2");
    }
}

#[test]
fn a_refused_write_is_sent_in_another_format() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(write("/1/0/1", "300"));
    assert_eq!(
        fixture.last_request().content_format(),
        Some(ContentFormat::TEXT)
    );
    let effects = fixture.answer(Code::UNSUPPORTED_CONTENT_FORMAT, "");
    assert_eq!(effects.len(), 1, "{effects:?}");
    let line = format!("send {HOME}: CON PUT /1/0/1 format 60 ");
    assert!(effects[0].starts_with(&line), "{effects:?}");
    assert_eq!(fixture.last_request().payload, [0x19, 0x01, 0x2c]);
    let expected = ended("#1", crate::action::Status::Succeeded, r#"1/1 "204""#);
    assert_eq!(fixture.answer(Code::CHANGED, ""), expected);

    fixture.ask(write("/1/0/1", "400"));
    let next = fixture.last_request().content_format();
    assert_eq!(next, Some(ContentFormat::CBOR), "not the refused one first");
}

#[test]
fn a_write_refused_in_every_format_fails_with_the_answer_of_the_device() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(write("/1/0/1", "300").attempts(5));
    let mut formats = Vec::new();
    let expected = failed("1/5", Code::UNSUPPORTED_CONTENT_FORMAT);
    loop {
        formats.push(fixture.last_request().content_format());
        let effects = fixture.answer(Code::UNSUPPORTED_CONTENT_FORMAT, "");
        if effects == expected {
            break;
        }
        assert_eq!(effects.len(), 1, "{effects:?}");
    }
    assert!(formats.len() > 2, "{formats:?}");
    formats.dedup();
    assert!(formats.len() <= 8, "none is tried twice: {formats:?}");
    fixture.ask(write("/1/0/1", "300"));
    let first = fixture.last_request().content_format();
    assert_eq!(first, formats[0], "with none left, each is tried again");
}

#[test]
fn an_absent_resource_instance_is_created_by_a_partial_update_in_the_same_attempt() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(write("/11/0/8/3", "a"));
    assert_eq!(asked(&fixture), (Code::PUT, "11/0/8/3".into(), Some(0)));
    let effects = fixture.at(S).answer(Code::NOT_FOUND, "");
    assert_eq!(effects.len(), 1, "{effects:?}");
    assert_eq!(asked(&fixture), (Code::POST, "11/0".into(), Some(11_542)));
    assert_eq!(fixture.last_request().payload, [0x83, 8, 0x41, 3, b'a']);
    // A refused format is followed by the next, which is a partial update, too.
    fixture
        .at(2 * S)
        .answer(Code::UNSUPPORTED_CONTENT_FORMAT, "");
    assert_eq!(asked(&fixture), (Code::POST, "11/0".into(), Some(112)));
    let expected = ended("#1", crate::action::Status::Succeeded, r#"1/1 "204""#);
    assert_eq!(fixture.at(3 * S).answer(Code::CHANGED, ""), expected);
    let timeline = fixture.saved(id).timeline.as_slice().iter();
    let stages: Vec<_> = timeline.map(|happened| happened.what).collect();
    let expected = [
        TimelineEvent::AttemptBegun(1),
        TimelineEvent::DatagramSent,
        TimelineEvent::Answered(Code::NOT_FOUND),
        TimelineEvent::DatagramSent,
        TimelineEvent::Answered(Code::UNSUPPORTED_CONTENT_FORMAT),
        TimelineEvent::DatagramSent,
        TimelineEvent::Answered(Code::CHANGED),
    ];
    assert_eq!(stages, expected);
}

#[test]
fn a_partial_update_that_finds_nothing_fails() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(write("/11/0/8", "a").attempts(5));
    assert_eq!(asked(&fixture), (Code::PUT, "11/0/8/0".into(), Some(0)));
    fixture.answer(Code::NOT_FOUND, "");
    assert_eq!(asked(&fixture).0, Code::POST);
    assert_eq!(
        fixture.answer(Code::NOT_FOUND, ""),
        failed("1/5", Code::NOT_FOUND)
    );
    fixture.ask(write("/3/0/14", "+01:00").attempts(5));
    let effects = fixture.answer(Code::NOT_FOUND, "");
    let expected = failed("1/5", Code::NOT_FOUND);
    assert_eq!(
        effects.len(),
        expected.len(),
        "no instance is written: {effects:?}"
    );
}

#[test]
fn a_device_of_1_0_gets_an_instance_of_a_resource_as_a_partial_update() {
    for (path, instance) in [("/11/0/8", 0), ("/11/0/8/3", 3)] {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(&["lwm2m=1.0"], OBJECTS);
        fixture.ask(write(path, "a"));
        assert_eq!(asked(&fixture), (Code::POST, "11/0".into(), Some(11_542)));
        assert_eq!(
            fixture.last_request().payload,
            [0x83, 8, 0x41, instance, b'a']
        );
        fixture.answer(Code::UNSUPPORTED_CONTENT_FORMAT, "");
        assert_eq!(asked(&fixture), (Code::POST, "11/0".into(), Some(11_543)));
        assert_eq!(
            fixture.answer(Code::NOT_FOUND, ""),
            failed("1/1", Code::NOT_FOUND)
        );
    }
}

#[test]
fn arguments_have_no_other_format() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(execute("/3/0/4"));
    let expected = failed("1/1", Code::UNSUPPORTED_CONTENT_FORMAT);
    assert_eq!(
        fixture.answer(Code::UNSUPPORTED_CONTENT_FORMAT, ""),
        expected
    );
}

#[test]
fn an_observation_begins_and_begins_again_in_the_next_format() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe("/3/0"));
    let effects = fixture.answer(Code::NOT_ACCEPTABLE, "");
    assert_eq!(effects, sent("CON GET /3/0 observe 0 accept 112 m2"));
    let agreed = fixture.piggybacked(Code::CONTENT).with_observe(1);
    fixture.receives(
        HOME,
        &tlv(agreed, "/3/0", &[("/3/0/9", Value::Integer(87))]),
    );
    assert_eq!(fixture.observations(), ["/3/0 Held"]);
    fixture.at(S).register();
    assert_eq!(
        fixture.last_request().accept(),
        Some(ContentFormat::LWM2M_TLV)
    );
    let token = fixture.last_request().token;
    let effects = fixture.answer(Code::NOT_ACCEPTABLE, "");
    assert_eq!(effects, sent("CON GET /3/0 observe 0 accept 112 m4"));
    assert_ne!(fixture.last_request().token, token);
    let agreed = fixture.piggybacked(Code::CONTENT).with_observe(2);
    fixture.receives(
        HOME,
        &tlv(agreed, "/3/0", &[("/3/0/9", Value::Integer(86))]),
    );
    assert_eq!(fixture.observations(), ["/3/0 Held"]);
}

#[test]
fn the_end_of_an_observation_keeps_its_token_in_another_format() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(end_observing(BATTERY));
    let token = fixture.last_request().token;
    fixture.answer(Code::NOT_ACCEPTABLE, "");
    assert_eq!(fixture.last_request().observe(), Some(1));
    assert_eq!(fixture.last_request().token, token);
}

#[test]
fn a_timeout_after_a_refused_format_ends_the_attempt() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0").attempts(2));
    fixture.at(S).answer(Code::NOT_ACCEPTABLE, "");
    while fixture.saved(id).timeline.as_slice().last().unwrap().what != TimelineEvent::GaveUp {
        fixture.next_deadline();
    }
    assert_eq!(fixture.saved(id).attempts_made, 1);
    let effects = fixture.update();
    let expected = all([
        moved("#1", InProgress, InProgress, "2/2"),
        sent("CON GET /3/0 accept 112 m3"),
    ]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

/// Method, path and Content-Format of the last request.
fn asked(fixture: &DeviceFixture) -> (Code, String, Option<u16>) {
    let request = fixture.last_request();
    let path: Vec<&str> = request.uri_path().collect();
    let format = request.content_format().map(|format| format.0);
    (request.code, path.join("/"), format)
}

fn read_again(fixture: &mut DeviceFixture) -> protocol::coap::message::Message {
    fixture.ask(read("/3/0"));
    assert_eq!(fixture.last_request().accept(), None);
    fixture.piggybacked(Code::CONTENT)
}

fn failed(attempts: &str, code: Code) -> Lines {
    let why = format!("the device answered {code}");
    let progress = format!("{attempts} {:?} {why:?}", code.digits());
    all([
        ended("#1", Failed, &progress),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
    ])
}
