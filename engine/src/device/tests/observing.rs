//! How an observation begins and ends by request (RFC 7641 sections 3.1 and 3.6).

use protocol::coap::code::Code;
use protocol::coap::message::{Kind, Message};
use protocol::lwm2m::value::Value;

use super::vocabulary::{
    BATTERY, Bench, HOME, Lines, S, all, answered, created, end_observing, ended, logged, moved,
    observe, observing, put_off, refused_at_once, sent, tlv, told, updated,
};
use crate::action::Status::{Failed, InProgress, Scheduled, Succeeded};
use crate::limits::OBSERVATIONS_MAX;

const READ: &str = r#"1/1 "205" "87""#;

#[test]
fn an_observation_begins_with_the_first_value_as_result() {
    let mut bench = Bench::registered();
    let (_, effects) = bench.submit(observe(BATTERY));
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 observe 0 accept 0 m1"),
    ]);
    assert_eq!(effects, expected);
    let expected = all([
        told("/3/0/9=87 for #1"),
        observing(S, &["/3/0/9 Held"]),
        ended("#1", Succeeded, READ),
    ]);
    assert_eq!(bench.at(S).agree(10, "87"), expected);
    assert_eq!(bench.token_observing(BATTERY), bench.asked().token);
    assert_eq!(bench.deadline(), Some(86_400 * S), "nothing is in flight");
}

#[test]
fn an_instance_is_observed_with_all_its_values() {
    let mut bench = Bench::registered();
    let (_, effects) = bench.submit(observe("/3/0"));
    assert!(
        effects.ends_with(&sent("CON GET /3/0 observe 0 accept 11542 m1")),
        "{effects:?}"
    );
    let values = [
        ("/3/0/0", Value::String("Acme".into())),
        ("/3/0/9", Value::Integer(87)),
    ];
    let answer = bench.piggybacked(Code::CONTENT).with_observe(1);
    let answer = tlv(answer, "/3/0", &values);
    let expected = all([
        told("/3/0/0=Acme /3/0/9=87 for #1"),
        observing(0, &["/3/0 Held"]),
        ended("#1", Succeeded, r#"1/1 "205" "/3/0/0=Acme /3/0/9=87""#),
    ]);
    assert_eq!(bench.hears(HOME, &answer), expected);
}

#[test]
fn an_object_is_observed_with_the_values_of_its_instances() {
    let mut bench = Bench::registered();
    let (_, effects) = bench.submit(observe("/3303"));
    assert!(
        effects.ends_with(&sent("CON GET /3303 observe 0 accept 11542 m1")),
        "{effects:?}"
    );
    let values = [
        ("/3303/0/5700", Value::Float(21.5)),
        ("/3303/1/5700", Value::Float(4.0)),
    ];
    let answer = bench.piggybacked(Code::CONTENT).with_observe(1);
    let answer = tlv(answer, "/3303", &values);
    let shown = "/3303/0/5700=21.5 /3303/1/5700=4";
    let expected = all([
        told(&format!("{shown} for #1")),
        observing(0, &["/3303 Held"]),
        ended("#1", Succeeded, &format!(r#"1/1 "205" {shown:?}"#)),
    ]);
    assert_eq!(bench.hears(HOME, &answer), expected);
}

#[test]
fn a_notification_that_overtakes_the_answer_begins_the_observation() {
    let mut bench = Bench::registered();
    bench.ask(observe(BATTERY));
    let notification = bench
        .separate(Kind::Confirmable, Code::CONTENT)
        .with_observe(11)
        .with_payload("87");
    let expected = all([
        told("/3/0/9=87 for #1"),
        observing(0, &["/3/0/9 Held"]),
        ended("#1", Succeeded, READ),
        sent("ACK to 102"),
    ]);
    assert_eq!(bench.hears(HOME, &notification), expected);
    assert_eq!(bench.agree(10, "86"), Lines::new());
}

#[test]
fn a_value_without_the_promise_of_others_is_kept_and_the_request_fails() {
    let mut bench = Bench::registered();
    bench.ask(observe(BATTERY));
    let expected = all([
        told("/3/0/9=87 for #1"),
        failed(
            r#"1/1 "205""#,
            "the device returned the value but observes nothing",
        ),
    ]);
    assert_eq!(bench.answer(Code::CONTENT, "87"), expected);
    assert_eq!(bench.observations(), Lines::new());
}

#[test]
fn a_first_value_that_cannot_be_read_begins_nothing() {
    let mut bench = Bench::registered();
    bench.ask(observe(BATTERY));
    let why = "the response cannot be decoded: the payload is not a value of type INTEGER";
    assert_eq!(bench.agree(10, "warm"), failed(r#"1/1 "205""#, why));
    assert_eq!(bench.observations(), Lines::new());
    let notification = bench
        .separate(Kind::NonConfirmable, Code::CONTENT)
        .with_observe(11);
    assert_eq!(bench.hears(HOME, &notification), sent("RST to 102"));
}

#[test]
fn what_is_observed_already_is_observed_once_and_under_its_token() {
    let mut bench = Bench::observed();
    let token = bench.token_observing(BATTERY);
    let second = bench.ask(observe(BATTERY));
    assert_eq!(bench.asked().token, token);
    let expected = all([
        told("/3/0/9=86 for #2"),
        observing(0, &["/3/0/9 Held"]),
        ended("#2", Succeeded, r#"1/1 "205" "86""#),
    ]);
    assert_eq!(bench.agree(20, "86"), expected);
    assert_eq!(bench.token_observing(BATTERY), token);
    assert_eq!(bench.snapshot().observations[0].action, second);
}

#[test]
fn as_many_paths_are_observed_as_may_and_one_more_is_refused() {
    let mut bench = full();
    let (_, effects) = bench.submit(observe(BATTERY));
    assert_eq!(effects, too_many("#1", refused_at_once, InProgress));
    let (_, effects) = bench.submit(observe(BATTERY).when_active());
    assert_eq!(effects, too_many("#2", refused_at_once, Scheduled));
    assert_eq!(bench.update(), updated(102), "nothing waits");
}

#[test]
fn at_the_bound_what_is_observed_may_begin_anew_and_what_ended_makes_room() {
    let mut bench = full();
    assert_eq!(
        bench.submit(observe("/3303/0/5700")).1.last(),
        sent("CON GET /3303/0/5700 observe 0 accept 0 m1").last()
    );
    bench.agree(11, "87");
    assert_eq!(bench.observations().len(), OBSERVATIONS_MAX);
    bench.ask(end_observing("/3303/0/5700"));
    bench.answer(Code::CONTENT, "87");
    bench.begin_observing(BATTERY);
    assert_eq!(bench.observations().len(), OBSERVATIONS_MAX);
}

#[test]
fn the_bound_counts_when_the_turn_of_a_request_comes() {
    let mut bench = full();
    bench.ask(end_observing("/3303/0/5700"));
    bench.answer(Code::CONTENT, "87");
    bench.ask(observe(BATTERY).when_active());
    bench.ask(observe("/3/0/10").when_active());
    bench.update();
    let effects = bench.agree(1, "87");
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
    let mut bench = Bench::observed();
    let token = bench.token_observing(BATTERY);
    let (_, effects) = bench.submit(end_observing(BATTERY));
    let expected = all([
        created("#2", InProgress, "0/1"),
        moved("#2", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 observe 1 accept 0 m2"),
    ]);
    assert_eq!(effects, expected);
    assert_eq!(bench.asked().token, token);
    let expected = all([
        observing(0, &[]),
        told("/3/0/9=85 for #2"),
        ended("#2", Succeeded, r#"1/1 "205" "85""#),
    ]);
    assert_eq!(bench.answer(Code::CONTENT, "85"), expected);
    let late = bench
        .separate(Kind::Confirmable, Code::CONTENT)
        .with_observe(12);
    assert_eq!(bench.hears(HOME, &late), sent("RST to 102"));
}

#[test]
fn an_observation_ends_also_if_the_last_value_cannot_be_read() {
    let mut bench = Bench::observed();
    bench.ask(end_observing(BATTERY));
    let expected = all([observing(0, &[]), ended("#2", Succeeded, r#"1/1 "205""#)]);
    assert_eq!(bench.answer(Code::CONTENT, ""), expected);
}

#[test]
fn the_end_of_what_is_not_observed_fails_at_once() {
    let mut bench = Bench::registered();
    for (request, name, status) in [
        (end_observing(BATTERY), "#1", InProgress),
        (end_observing(BATTERY).when_active(), "#2", Scheduled),
    ] {
        let expected = all([
            refused_at_once(name, status, r#"0/1 "/3/0/9 is not observed""#),
            log_of(name, "/3/0/9 is not observed"),
        ]);
        assert_eq!(bench.submit(request).1, expected);
    }
    assert_eq!(bench.update(), updated(102), "nothing waits");
}

#[test]
fn an_end_may_wait_behind_its_beginning() {
    let mut bench = Bench::registered();
    bench.ask(observe(BATTERY).when_active());
    let (_, effects) = bench.submit(end_observing(BATTERY).when_active());
    assert_eq!(effects, created("#2", Scheduled, "0/1"));
    bench.update();
    let expected = all([
        told("/3/0/9=87 for #1"),
        observing(0, &["/3/0/9 Held"]),
        ended("#1", Succeeded, READ),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 observe 1 accept 0 m2"),
    ]);
    assert_eq!(bench.agree(10, "87"), expected);
}

#[test]
fn an_end_fails_without_an_attempt_when_its_beginning_failed() {
    let mut bench = Bench::registered();
    bench.ask(observe(BATTERY).when_active());
    bench.ask(end_observing(BATTERY).when_active());
    bench.update();
    let expected = all([
        failed(r#"1/1 "404""#, "the device answered 4.04"),
        moved("#2", Scheduled, Failed, r#"0/1 "/3/0/9 is not observed""#),
        log_of("#2", "/3/0/9 is not observed"),
    ]);
    assert_eq!(bench.answer(Code::NOT_FOUND, ""), expected);
    assert_eq!(bench.update(), updated(103));
}

#[test]
fn a_device_that_refuses_to_end_or_to_renew_an_observation_has_none() {
    for request in [end_observing(BATTERY), observe(BATTERY)] {
        let mut bench = Bench::observed();
        bench.ask(request);
        let expected = all([
            observing(0, &[]),
            ended("#2", Failed, r#"1/1 "404" "the device answered 4.04""#),
            log_of("#2", "the device answered 4.04"),
        ]);
        assert_eq!(bench.answer(Code::NOT_FOUND, ""), expected);
    }
}

#[test]
fn a_device_that_renews_an_observation_without_a_promise_has_none() {
    let mut bench = Bench::observed();
    bench.ask(observe(BATTERY));
    let why = "the device returned the value but observes nothing";
    let expected = all([
        told("/3/0/9=86 for #2"),
        observing(0, &[]),
        ended("#2", Failed, &format!(r#"1/1 "205" {why:?}"#)),
        log_of("#2", why),
    ]);
    assert_eq!(bench.answer(Code::CONTENT, "86"), expected);
}

#[test]
fn an_end_the_device_does_not_take_leaves_the_observation() {
    for code in [Code::TOO_MANY_REQUESTS, Code::SERVICE_UNAVAILABLE] {
        let mut bench = Bench::observed();
        bench.ask(end_observing(BATTERY).attempts(2));
        assert_eq!(bench.answer(code, ""), put_off("#2", "1/2"));
        assert_eq!(bench.observations(), ["/3/0/9 Held"]);
    }
    let mut bench = Bench::observed();
    bench.ask(end_observing(BATTERY));
    while bench.deadline() < Some(62 * S) {
        bench.next_deadline();
    }
    let why = "the device did not acknowledge the message";
    let expected = all([
        ended("#2", Failed, &format!("1/1 {why:?}")),
        log_of("#2", why),
    ]);
    assert_eq!(bench.next_deadline(), expected);
    assert_eq!(bench.observations(), ["/3/0/9 Held"]);
}

#[test]
fn each_attempt_to_begin_has_a_token_of_its_own() {
    let mut bench = Bench::registered();
    bench.ask(observe(BATTERY).attempts(2));
    let first = bench.asked().clone();
    let reset = Message::reset(first.message_id);
    assert_eq!(bench.hears(HOME, &reset), put_off("#1", "1/2"));
    bench.update();
    assert_ne!(bench.asked().token, first.token);
    bench.agree(10, "87");
    let mut stray = bench.notification(Kind::Confirmable, 11, "86");
    stray.token = first.token;
    assert_eq!(
        bench.hears(HOME, &stray),
        sent("RST to 103"),
        "what the first one began ends"
    );
}

#[test]
fn no_other_request_goes_out_under_the_token_of_an_observation() {
    let mut bench = Bench::observed();
    bench.ask(super::vocabulary::read(BATTERY));
    assert_ne!(bench.asked().token, bench.token_observing(BATTERY));
    let expected = answered("#2", "/3/0/9=86", r#"1/1 "205" "86""#);
    assert_eq!(bench.answer(Code::CONTENT, "86"), expected);
    assert_eq!(bench.observations(), ["/3/0/9 Held"]);
}

/// A device of which as much is observed as may be.
fn full() -> Bench {
    let mut bench = Bench::registered();
    for instance in 0..OBSERVATIONS_MAX {
        bench.begin_observing(&format!("/3303/{instance}/5700"));
    }
    bench.forget_names();
    bench
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
