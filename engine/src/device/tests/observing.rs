//! How requests begin and end an observation (RFC 7641 sections 3.1 and 3.6).

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::value::Value;

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, Lines, S, all, answered, created, end_observing, ended, logged,
    moved, observe, observing, published, put_off, refused_at_once, sent, tlv, undecodable,
    updated, without_record,
};
use crate::action::Status::{Failed, InProgress, Scheduled, Succeeded};
use crate::limits::OBSERVATIONS_MAX;

const READ: &str = r#"1/1 "205" "87""#;

#[test]
fn an_observation_begins_with_the_first_value_as_result() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(observe(BATTERY));
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 observe 0 accept 0 m1"),
    ]);
    assert_eq!(effects, expected);
    let expected = all([
        published("/3/0/9=87 for #1"),
        observing(S, &["/3/0/9 Held"]),
        ended("#1", Succeeded, READ),
    ]);
    assert_eq!(fixture.at(S).agree(10, "87"), expected);
    assert_eq!(
        fixture.token_observing(BATTERY),
        fixture.last_request().token
    );
    assert_eq!(fixture.deadline(), Some(86_400 * S), "nothing is in flight");
}

#[test]
fn an_instance_is_observed_with_all_its_values() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(observe("/3/0"));
    assert!(
        effects.ends_with(&sent("CON GET /3/0 observe 0 accept 11542 m1")),
        "{effects:?}"
    );
    let values = [
        ("/3/0/0", Value::String("Acme".into())),
        ("/3/0/9", Value::Integer(87)),
    ];
    let answer = fixture.piggybacked(Code::CONTENT).with_observe(1);
    let answer = tlv(answer, "/3/0", &values);
    let expected = all([
        published("/3/0/0=Acme /3/0/9=87 for #1"),
        observing(0, &["/3/0 Held"]),
        ended("#1", Succeeded, r#"1/1 "205" "/3/0/0=Acme /3/0/9=87""#),
    ]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn an_object_is_observed_with_the_values_of_its_instances() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(observe("/3303"));
    assert!(
        effects.ends_with(&sent("CON GET /3303 observe 0 accept 11542 m1")),
        "{effects:?}"
    );
    let values = [
        ("/3303/0/5700", Value::Float(21.5)),
        ("/3303/1/5700", Value::Float(4.0)),
    ];
    let answer = fixture.piggybacked(Code::CONTENT).with_observe(1);
    let answer = tlv(answer, "/3303", &values);
    let shown = "/3303/0/5700=21.5 /3303/1/5700=4";
    let expected = all([
        published(&format!("{shown} for #1")),
        observing(0, &["/3303 Held"]),
        ended("#1", Succeeded, &format!(r#"1/1 "205" {shown:?}"#)),
    ]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn a_notification_that_overtakes_the_answer_begins_the_observation() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe(BATTERY));
    let notification = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_observe(11)
        .with_payload("87");
    let expected = all([
        published("/3/0/9=87 for #1"),
        observing(0, &["/3/0/9 Held"]),
        ended("#1", Succeeded, READ),
        sent("ACK to 102"),
    ]);
    assert_eq!(fixture.receives(HOME, &notification), expected);
    assert_eq!(fixture.agree(10, "86"), Lines::new());
}

#[test]
fn a_first_value_without_the_observe_option_is_published_and_the_request_fails() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe(BATTERY));
    let expected = all([
        published("/3/0/9=87 for #1"),
        failed(
            r#"1/1 "205""#,
            "the device returned the value but did not start an observation",
        ),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "87"), expected);
    assert_eq!(fixture.observations(), Lines::new());
}

#[test]
fn a_first_value_that_cannot_be_decoded_begins_no_observation() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe(BATTERY));
    let why = "the response cannot be decoded: the payload is not a value of type INTEGER";
    let kept = "the response about /3/0/9 cannot be decoded: \
                the payload is not a value of type INTEGER";
    let expected = all([undecodable(kept, b"warm"), failed(r#"1/1 "205""#, why)]);
    assert_eq!(without_record(fixture.agree(10, "warm")), expected);
    assert_eq!(fixture.observations(), Lines::new());
    let notification = fixture
        .separate(MessageKind::NonConfirmable, Code::CONTENT)
        .with_observe(11);
    assert_eq!(fixture.receives(HOME, &notification), sent("RST to 102"));
}

#[test]
fn observing_a_path_again_keeps_one_observation_and_its_token() {
    let mut fixture = DeviceFixture::observed();
    let token = fixture.token_observing(BATTERY);
    let second = fixture.ask(observe(BATTERY));
    assert_eq!(fixture.last_request().token, token);
    let expected = all([
        published("/3/0/9=86 for #2"),
        observing(0, &["/3/0/9 Held"]),
        ended("#2", Succeeded, r#"1/1 "205" "86""#),
    ]);
    assert_eq!(fixture.agree(20, "86"), expected);
    assert_eq!(fixture.token_observing(BATTERY), token);
    assert_eq!(fixture.snapshot().observations[0].action, second);
}

#[test]
fn observations_are_bounded_and_one_more_is_refused() {
    let mut fixture = full();
    let (_, effects) = fixture.submit(observe(BATTERY));
    assert_eq!(effects, too_many("#1", refused_at_once, InProgress));
    let (_, effects) = fixture.submit(observe(BATTERY).when_active());
    assert_eq!(effects, too_many("#2", refused_at_once, Scheduled));
    assert_eq!(fixture.update(), updated(102), "nothing waits");
}

#[test]
fn at_the_bound_an_observation_may_begin_again_and_an_ended_one_makes_room() {
    let mut fixture = full();
    assert_eq!(
        fixture.submit(observe("/3303/0/5700")).1.last(),
        sent("CON GET /3303/0/5700 observe 0 accept 0 m1").last()
    );
    fixture.agree(11, "87");
    assert_eq!(fixture.observations().len(), OBSERVATIONS_MAX);
    fixture.ask(end_observing("/3303/0/5700"));
    fixture.answer(Code::CONTENT, "87");
    fixture.begin_observing(BATTERY);
    assert_eq!(fixture.observations().len(), OBSERVATIONS_MAX);
}

#[test]
fn the_bound_is_checked_when_a_request_is_sent() {
    let mut fixture = full();
    fixture.ask(end_observing("/3303/0/5700"));
    fixture.answer(Code::CONTENT, "87");
    fixture.ask(observe(BATTERY).when_active());
    fixture.ask(observe("/3/0/10").when_active());
    fixture.update();
    let effects = fixture.agree(1, "87");
    assert!(
        effects.ends_with(&too_many(
            "#3",
            |name, was, why| moved(name, was, Failed, why),
            Scheduled
        )),
        "{effects:?}"
    );
}

#[test]
fn an_observation_ends_under_its_token() {
    let mut fixture = DeviceFixture::observed();
    let token = fixture.token_observing(BATTERY);
    let (_, effects) = fixture.submit(end_observing(BATTERY));
    let expected = all([
        created("#2", InProgress, "0/1"),
        moved("#2", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 observe 1 accept 0 m2"),
    ]);
    assert_eq!(effects, expected);
    assert_eq!(fixture.last_request().token, token);
    let expected = all([
        observing(0, &[]),
        published("/3/0/9=85 for #2"),
        ended("#2", Succeeded, r#"1/1 "205" "85""#),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "85"), expected);
    let late = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_observe(12);
    assert_eq!(fixture.receives(HOME, &late), sent("RST to 102"));
}

#[test]
fn an_observation_ends_even_if_the_last_value_cannot_be_decoded() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(end_observing(BATTERY));
    let expected = all([observing(0, &[]), ended("#2", Succeeded, r#"1/1 "205""#)]);
    assert_eq!(fixture.answer(Code::CONTENT, ""), expected);
}

#[test]
fn ending_an_observation_that_does_not_exist_fails_at_once() {
    let mut fixture = DeviceFixture::registered();
    for (request, name, status) in [
        (end_observing(BATTERY), "#1", InProgress),
        (end_observing(BATTERY).when_active(), "#2", Scheduled),
    ] {
        let expected = all([
            refused_at_once(name, status, r#"0/1 "/3/0/9 is not observed""#),
            log_of(name, "/3/0/9 is not observed"),
        ]);
        assert_eq!(fixture.submit(request).1, expected);
    }
    assert_eq!(fixture.update(), updated(102), "nothing waits");
}

#[test]
fn observe_end_may_wait_behind_observe_start() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe(BATTERY).when_active());
    let (_, effects) = fixture.submit(end_observing(BATTERY).when_active());
    assert_eq!(effects, created("#2", Scheduled, "0/1"));
    fixture.update();
    let expected = all([
        published("/3/0/9=87 for #1"),
        observing(0, &["/3/0/9 Held"]),
        ended("#1", Succeeded, READ),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 observe 1 accept 0 m2"),
    ]);
    assert_eq!(fixture.agree(10, "87"), expected);
}

#[test]
fn observe_end_fails_without_an_attempt_if_observe_start_failed() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe(BATTERY).when_active());
    fixture.ask(end_observing(BATTERY).when_active());
    fixture.update();
    let expected = all([
        failed(r#"1/1 "404""#, "the device answered 4.04"),
        moved("#2", Scheduled, Failed, r#"0/1 "/3/0/9 is not observed""#),
        log_of("#2", "/3/0/9 is not observed"),
    ]);
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), expected);
    assert_eq!(fixture.update(), updated(103));
}

#[test]
fn a_device_that_refuses_to_end_or_to_renew_an_observation_has_none() {
    for request in [end_observing(BATTERY), observe(BATTERY)] {
        let mut fixture = DeviceFixture::observed();
        fixture.ask(request);
        let expected = all([
            observing(0, &[]),
            ended("#2", Failed, r#"1/1 "404" "the device answered 4.04""#),
            log_of("#2", "the device answered 4.04"),
        ]);
        assert_eq!(fixture.answer(Code::NOT_FOUND, ""), expected);
    }
}

#[test]
fn an_observation_begun_again_without_the_observe_option_ends() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(observe(BATTERY));
    let why = "the device returned the value but did not start an observation";
    let expected = all([
        published("/3/0/9=86 for #2"),
        observing(0, &[]),
        ended("#2", Failed, &format!(r#"1/1 "205" {why:?}"#)),
        log_of("#2", why),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "86"), expected);
}

#[test]
fn an_observation_stays_if_the_device_does_not_accept_its_end() {
    for code in [Code::TOO_MANY_REQUESTS, Code::SERVICE_UNAVAILABLE] {
        let mut fixture = DeviceFixture::observed();
        fixture.ask(end_observing(BATTERY).attempts(2));
        assert_eq!(fixture.answer(code, ""), put_off("#2", "1/2"));
        assert_eq!(fixture.observations(), ["/3/0/9 Held"]);
    }
    let mut fixture = DeviceFixture::observed();
    fixture.ask(end_observing(BATTERY));
    while fixture.deadline() < Some(62 * S) {
        fixture.next_deadline();
    }
    let why = "the device did not acknowledge the message";
    let expected = all([
        ended("#2", Failed, &format!("1/1 {why:?}")),
        log_of("#2", why),
    ]);
    assert_eq!(fixture.next_deadline(), expected);
    assert_eq!(fixture.observations(), ["/3/0/9 Held"]);
}

#[test]
fn each_attempt_of_observe_start_has_its_own_token() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe(BATTERY).attempts(2));
    let first = fixture.last_request().clone();
    let reset = Message::reset(first.message_id);
    assert_eq!(fixture.receives(HOME, &reset), put_off("#1", "1/2"));
    fixture.update();
    assert_ne!(fixture.last_request().token, first.token);
    fixture.agree(10, "87");
    let mut stray = fixture.notification(MessageKind::Confirmable, 11, "86");
    stray.token = first.token;
    assert_eq!(
        fixture.receives(HOME, &stray),
        sent("RST to 103"),
        "what the first one began ends"
    );
}

#[test]
fn no_other_request_goes_out_under_the_token_of_an_observation() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(super::vocabulary::read(BATTERY));
    assert_ne!(
        fixture.last_request().token,
        fixture.token_observing(BATTERY)
    );
    let expected = answered("#2", "/3/0/9=86", r#"1/1 "205" "86""#);
    assert_eq!(fixture.answer(Code::CONTENT, "86"), expected);
    assert_eq!(fixture.observations(), ["/3/0/9 Held"]);
}

/// A device with the maximum of observations.
fn full() -> DeviceFixture {
    let mut fixture = DeviceFixture::registered();
    for instance in 0..OBSERVATIONS_MAX {
        fixture.begin_observing(&format!("/3303/{instance}/5700"));
    }
    fixture.forget_names();
    fixture
}

fn too_many(
    name: &str,
    fails: impl Fn(&str, crate::action::Status, &str) -> Lines,
    was: crate::action::Status,
) -> Lines {
    let why = "the device has 64 observations, which is the maximum";
    all([fails(name, was, &format!("0/1 {why:?}")), log_of(name, why)])
}

fn failed(progress: &str, why: &str) -> Lines {
    all([
        ended("#1", Failed, &format!("{progress} {why:?}")),
        log_of("#1", why),
    ])
}

fn log_of(name: &str, why: &str) -> Lines {
    logged(&format!(
        "DeviceController[ActionRequestFailed] Error: Action request {name} failed: {why}."
    ))
}
