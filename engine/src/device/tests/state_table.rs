//! Every row of the state table of action requests.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, S, all, created, ended, execute, logged, moved, published,
    put_off, read, recorded, sent, updated, write,
};
use crate::action::Status::{Cancelled, Failed, InProgress, Scheduled, Succeeded};

#[test]
fn a_request_to_be_sent_now_is_in_progress_and_sent_at_once() {
    let mut fixture = DeviceFixture::registered();
    let (accepted, effects) = fixture.submit(read("/3/0/9"));
    assert_eq!(accepted.unwrap().status, InProgress);
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(effects, expected);
}

#[test]
fn a_request_to_be_sent_when_active_is_scheduled_and_not_sent() {
    let mut fixture = DeviceFixture::registered();
    let (accepted, effects) = fixture.submit(read("/3/0/9").when_active());
    assert_eq!(accepted.unwrap().status, Scheduled);
    assert_eq!(effects, created("#1", Scheduled, "0/1"));
    assert_eq!(fixture.timeout(), Lines::new());
}

#[test]
fn a_scheduled_request_is_in_progress_from_the_device_s_registration_on() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(read("/3/0/9").when_active());
    let effects = fixture.register();
    let expected = all([
        published("FirstContact"),
        recorded("registered until 86400000, seen at 0 from 10.0.0.1:5683"),
        published("Registered"),
        logged(
            "Lifecycle[DeviceFirstTimeRegistered] Info: \
             The device registered for the first time as meter.",
        ),
        vec!["rebind 10.0.0.1:5683 -> 10.0.0.1:5683".to_owned()],
        sent("ACK 2.01 L1 to 101"),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(effects, expected);
}

#[test]
fn a_scheduled_request_is_in_progress_from_the_device_s_update_on() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active());
    let expected = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(5 * S).update(), expected);
}

#[test]
fn a_scheduled_request_that_is_cancelled_ends_there() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").when_active());
    let (cancelled, effects) = fixture.at(S).cancel(id);
    assert_eq!(cancelled, Ok(()));
    assert_eq!(effects, moved("#1", Scheduled, Cancelled, "0/1"));
    assert_eq!(fixture.update(), updated(102));
}

#[test]
fn a_scheduled_request_fails_after_two_days() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(read("/3/0/9").when_active());
    assert_eq!(fixture.deadline(), Some(48 * HOUR));
    assert_eq!(fixture.at(48 * HOUR - 1).timeout(), Lines::new());
    let why = "the request expired at 2023-11-16T22:13:20.000Z before it was sent";
    let expected = all([
        moved("#1", Scheduled, Failed, &format!("0/1 {why:?}")),
        logged(&format!(
            "DeviceController[ActionRequestExpired] Error: Action request #1 failed: {why}."
        )),
    ]);
    assert_eq!(fixture.at(48 * HOUR).timeout(), expected);
    assert_eq!(fixture.deadline(), None);
}

#[test]
fn a_request_succeeds_with_any_answer_of_class_two() {
    let cases = [
        (read("/3/0/9"), Code::CONTENT, "87", r#"1/1 "205" "87""#),
        (read("/3/0/9"), Code::VALID, "87", r#"1/1 "203" "87""#),
        (
            write("/3/0/14", "+01:00"),
            Code::CHANGED,
            "",
            r#"1/1 "204""#,
        ),
        (
            write("/3/0/14", "+01:00"),
            Code::CREATED,
            "",
            r#"1/1 "201""#,
        ),
        (
            write("/3/0/14", "+01:00"),
            Code::DELETED,
            "",
            r#"1/1 "202""#,
        ),
        (execute("/3/0/4"), Code::CHANGED, "", r#"1/1 "204""#),
    ];
    for (request, code, payload, progress) in cases {
        let mut fixture = DeviceFixture::registered();
        fixture.ask(request);
        let values = match payload {
            "" => Lines::new(),
            _ => published("/3/0/9=87 for #1"),
        };
        let expected = all([values, ended("#1", Succeeded, progress)]);
        assert_eq!(fixture.at(S).answer(code, payload), expected, "{code}");
    }
}

#[test]
fn a_request_without_result_is_tried_again_at_the_next_uplink() {
    for (what, end) in fruitless_ends() {
        let mut fixture = DeviceFixture::registered();
        let id = fixture.ask(read("/3/0/9").attempts(2));
        assert_eq!(end(&mut fixture), put_off("#1", "1/2"), "{what}");
        assert_eq!(fixture.saved(id).status, InProgress, "{what}");
        assert_eq!(fixture.saved(id).attempts_left(), 1, "{what}");
        assert_eq!(
            fixture.timeout(),
            Lines::new(),
            "{what} waits for the device"
        );

        let expected = all([
            updated(102),
            moved("#1", InProgress, InProgress, "2/2"),
            sent("CON GET /3/0/9 accept 0 m2"),
        ]);
        assert_eq!(fixture.at(HOUR - S).update(), expected, "{what}");
    }
}

#[test]
fn a_request_without_result_or_attempts_left_fails_and_is_logged() {
    for (what, end) in fruitless_ends() {
        let mut fixture = DeviceFixture::registered();
        let id = fixture.ask(read("/3/0/9"));
        let effects = end(&mut fixture);
        let outcome = fixture.saved(id).outcome.clone().unwrap();
        let code = outcome
            .code
            .map(|code| format!(" {code:?}"))
            .unwrap_or_default();
        let why = outcome.error.expect("a failure says why");
        let expected = all([
            ended("#1", Failed, &format!("1/1{code} {why:?}")),
            logged(&format!(
                "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
            )),
        ]);
        assert_eq!(effects, expected, "{what}");
        assert_eq!(
            fixture.at(HOUR - S).update(),
            updated(102),
            "{what}: permanently"
        );
    }
}

#[test]
fn a_request_that_the_device_refuses_fails_although_attempts_are_left() {
    let refusals = [
        Code::BAD_REQUEST,
        Code::UNAUTHORIZED,
        Code::BAD_OPTION,
        Code::FORBIDDEN,
        Code::NOT_FOUND,
        Code::METHOD_NOT_ALLOWED,
        Code::CONFLICT,
        Code::UNPROCESSABLE_ENTITY,
        Code::INTERNAL_SERVER_ERROR,
        Code::NOT_IMPLEMENTED,
        Code::GATEWAY_TIMEOUT,
        Code::new(5, 31),
    ];
    for code in refusals {
        let mut fixture = DeviceFixture::registered();
        fixture.ask(read("/3/0/9").attempts(5));
        let why = format!("the device answered {code}");
        let expected = all([
            ended("#1", Failed, &format!("1/5 {:?} {why:?}", code.digits())),
            logged(&format!(
                "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
            )),
        ]);
        assert_eq!(fixture.answer(code, ""), expected);
        assert_eq!(fixture.update(), updated(102));
    }
}

#[test]
fn a_request_waiting_for_its_next_attempt_fails_after_two_days() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").attempts(5));
    fixture.answer(Code::SERVICE_UNAVAILABLE, "");
    let why = "the request expired at 2023-11-16T22:13:20.000Z before the device answered";
    fixture.at(24 * HOUR).timeout();
    let expected = all([
        ended("#1", Failed, &format!("1/5 {why:?}")),
        logged(&format!(
            "DeviceController[ActionRequestExpired] Error: Action request #1 failed: {why}."
        )),
    ]);
    assert_eq!(fixture.at(48 * HOUR).timeout(), expected);
}

type End = fn(&mut DeviceFixture) -> Lines;

/// The ways in which an attempt ends without a final result.
fn fruitless_ends() -> [(&'static str, End); 6] {
    [
        ("no acknowledgement", |fixture| {
            while fixture.deadline() < Some(62 * S) {
                assert_eq!(fixture.next_deadline(), sent("CON GET /3/0/9 accept 0 m1"));
            }
            fixture.next_deadline()
        }),
        ("no answer after the acknowledgement", |fixture| {
            let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
            assert_eq!(fixture.at(S).receives(HOME, &acknowledgement), Lines::new());
            assert_eq!(fixture.deadline(), Some(94 * S));
            fixture.next_deadline()
        }),
        ("a reset", |fixture| {
            let reset = Message::reset(fixture.last_request().message_id);
            fixture.at(S).receives(HOME, &reset)
        }),
        ("4.08", |fixture| {
            fixture.at(S).answer(Code::REQUEST_ENTITY_INCOMPLETE, "")
        }),
        ("4.29", |fixture| {
            fixture.at(S).answer(Code::TOO_MANY_REQUESTS, "")
        }),
        ("5.03", |fixture| {
            fixture.at(S).answer(Code::SERVICE_UNAVAILABLE, "")
        }),
    ]
}
