//! How often a request is sent, in which order, and one at a time.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, MINUTE, S, all, answered, created, execute, moved, put_off,
    read, sent, updated,
};
use crate::action::Status::{InProgress, Scheduled};

#[test]
fn an_unacknowledged_request_is_retransmitted_four_times_within_one_attempt() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").attempts(2));
    let mut sent_at = Vec::new();
    loop {
        let effects = fixture.next_deadline();
        if effects == put_off("#1", "1/2") {
            break;
        }
        assert_eq!(
            effects,
            sent("CON GET /3/0/9 accept 0 m1"),
            "the very same message"
        );
        sent_at.push(fixture.now_s());
    }
    assert_eq!(sent_at, [2, 6, 14, 30]);
    assert_eq!(fixture.now_s(), 62);
    assert_eq!(fixture.saved(id).attempts_made, 1);
}

#[test]
fn requests_are_sent_one_by_one_oldest_first() {
    let mut fixture = DeviceFixture::registered();
    for path in ["/3/0/9", "/3/0/13", "/3/0/14"] {
        fixture.ask(read(path).when_active());
    }
    let mut effects = fixture.update();
    assert_eq!(effects.drain(..2).collect::<Lines>(), updated(102));
    for (number, path, payload) in [(1, "9", "87"), (2, "13", "0"), (3, "14", "+00:00")] {
        let name = format!("#{number}");
        let begun = all([
            moved(&name, Scheduled, InProgress, "1/1"),
            sent(&format!("CON GET /3/0/{path} accept 0 m{number}")),
        ]);
        assert_eq!(effects, begun);
        assert_eq!(fixture.timeout(), Lines::new(), "one exchange is in flight");
        effects = fixture.answer(Code::CONTENT, payload);
        assert!(effects[4].starts_with(&format!("save {name} InProgress -> Succeeded")));
        effects.drain(..5);
    }
    assert_eq!(effects, Lines::new());
}

#[test]
fn a_request_to_be_sent_now_waits_for_the_exchange_in_flight() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    let (_, effects) = fixture.submit(execute("/3/0/4"));
    assert_eq!(effects, created("#2", Scheduled, "0/1"));
    let expected = all([
        answered("#1", "/3/0/9=87", r#"1/1 "205" "87""#),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON POST /3/0/4 m2"),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "87"), expected);
}

#[test]
fn a_request_is_sent_as_often_as_permitted_and_no_more() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(execute("/3/0/4").when_active().attempts(3));
    for attempt in 1..=3 {
        let effects = fixture.at(attempt * MINUTE).update();
        assert!(
            effects.iter().any(|line| line.contains("CON POST /3/0/4")),
            "{effects:?}"
        );
        fixture.answer(Code::SERVICE_UNAVAILABLE, "");
    }
    assert_eq!(fixture.at(4 * MINUTE).update(), updated(105));
    assert_eq!(fixture.saved(id).attempts_made, 3);
}

#[test]
fn an_update_during_an_attempt_does_not_permit_the_next_attempt() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").attempts(2));
    assert_eq!(fixture.at(S).update(), updated(102));
    let effects = fixture.answer(Code::SERVICE_UNAVAILABLE, "");
    assert_eq!(effects, put_off("#1", "1/2"));
    assert_eq!(fixture.timeout(), Lines::new());
    let effects = fixture.at(5 * S).update();
    assert!(effects.contains(&"send 10.0.0.1:5683: CON GET /3/0/9 accept 0 m2".to_owned()));
}

#[test]
fn requests_after_an_unanswered_attempt_wait_for_an_uplink() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active().attempts(2));
    let second = fixture.ask(read("/3/0/13").when_active());
    fixture.update();
    let_pass(&mut fixture);
    assert_eq!(fixture.saved(second).status, Scheduled);
    assert_eq!(fixture.timeout(), Lines::new());

    let expected = all([
        updated(103),
        moved("#1", InProgress, InProgress, "2/2"),
        sent("CON GET /3/0/9 accept 0 m2"),
    ]);
    assert_eq!(
        fixture.at(HOUR - S).update(),
        expected,
        "the oldest goes first again"
    );
}

#[test]
fn requests_after_an_unanswered_attempt_are_sent_if_an_uplink_came_during_it() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active().attempts(2));
    fixture.ask(read("/3/0/13").when_active());
    fixture.update();
    fixture.at(50 * S).update();
    let expected = all([
        put_off("#1", "1/2"),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/13 accept 0 m2"),
    ]);
    let_pass_until(&mut fixture, &expected);
}

#[test]
fn requests_after_a_rejected_attempt_are_sent_at_once() {
    let ends: [fn(&mut DeviceFixture) -> Message; 2] = [
        |fixture| fixture.piggybacked(Code::SERVICE_UNAVAILABLE),
        |fixture| Message::reset(fixture.last_request().message_id),
    ];
    for end in ends {
        let mut fixture = DeviceFixture::registered();
        fixture.ask(read("/3/0/9").when_active().attempts(2));
        fixture.ask(read("/3/0/13").when_active());
        fixture.update();
        let message = end(&mut fixture);
        let expected = all([
            put_off("#1", "1/2"),
            moved("#2", Scheduled, InProgress, "1/1"),
            sent("CON GET /3/0/13 accept 0 m2"),
        ]);
        assert_eq!(
            fixture.at(S).receives(HOME, &message),
            expected,
            "the device is there"
        );
    }
}

#[test]
fn a_late_timeout_retransmits_nothing_that_could_be_executed_twice() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(execute("/3/0/4").attempts(2));
    for (late, expected) in [
        (3 * HOUR, Lines::new()),
        (4 * HOUR, put_off("#1", "1/2")),
        (5 * HOUR, Lines::new()),
    ] {
        assert_eq!(fixture.at(late).timeout(), expected);
    }
    assert_eq!(fixture.saved(id).attempts_made, 1);
}

/// Lets the attempt in flight end without an answer.
fn let_pass(fixture: &mut DeviceFixture) {
    while fixture.next_deadline() != put_off("#1", "1/2") {}
}

fn let_pass_until(fixture: &mut DeviceFixture, expected: &Lines) {
    loop {
        let effects = fixture.next_deadline();
        if effects == *expected {
            return;
        }
        assert_eq!(effects, sent("CON GET /3/0/9 accept 0 m1"));
    }
}
