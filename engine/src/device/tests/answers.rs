//! Which messages of a device answer a request, and which do not.

use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use super::vocabulary::{
    DeviceFixture, HOME, Lines, S, all, answered, ended, logged, moved, read, sent, undecodable,
    without_record, write,
};
use crate::action::Status::{Failed, InProgress, Scheduled};

const BATTERY: &str = "/3/0/9=87";
const READ: &str = r#"1/1 "205" "87""#;

#[test]
fn a_piggybacked_answer_is_not_acknowledged() {
    let mut fixture = requested();
    assert_eq!(
        fixture.at(S).answer(Code::CONTENT, "87"),
        answered("#1", BATTERY, READ)
    );
    assert_eq!(fixture.deadline(), Some(86_400 * S), "nothing is in flight");
}

#[test]
fn a_separate_answer_is_acknowledged_once_it_is_saved() {
    let mut fixture = requested();
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    assert_eq!(fixture.at(S).receives(HOME, &acknowledgement), Lines::new());
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_payload("87");
    let expected = all([answered("#1", BATTERY, READ), sent("ACK to 102")]);
    assert_eq!(fixture.at(2 * S).receives(HOME, &answer), expected);
}

#[test]
fn a_separate_answer_before_its_acknowledgement_is_accepted() {
    let mut fixture = requested();
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_payload("87");
    let expected = all([answered("#1", BATTERY, READ), sent("ACK to 102")]);
    assert_eq!(fixture.at(S).receives(HOME, &answer), expected);
    assert_eq!(fixture.receives(HOME, &acknowledgement), Lines::new());
}

#[test]
fn a_repeated_separate_answer_is_acknowledged_again_and_counts_once() {
    let mut fixture = requested();
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_payload("87");
    fixture.receives(HOME, &answer);
    assert_eq!(fixture.at(S).receives(HOME, &answer), sent("ACK to 102"));
}

#[test]
fn a_non_confirmable_answer_is_not_acknowledged() {
    let mut fixture = requested();
    let answer = fixture
        .separate(MessageKind::NonConfirmable, Code::CONTENT)
        .with_payload("87");
    assert_eq!(
        fixture.receives(HOME, &answer),
        answered("#1", BATTERY, READ)
    );
    assert_eq!(
        fixture.receives(HOME, &answer),
        Lines::new(),
        "nor when it is repeated"
    );
}

#[test]
fn an_answer_that_comes_too_late_is_reset() {
    let mut fixture = requested();
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_payload("87");
    fixture.answer(Code::CONTENT, "87");
    assert_eq!(fixture.receives(HOME, &answer), sent("RST to 102"));
    assert_eq!(
        fixture.receives(HOME, &answer),
        sent("RST to 102"),
        "also when it is repeated"
    );
    assert_eq!(
        fixture.receives(HOME, &fixture.piggybacked(Code::CONTENT)),
        Lines::new()
    );
}

#[test]
fn an_unsolicited_notification_is_reset() {
    let mut fixture = DeviceFixture::registered();
    for (kind, id) in [
        (MessageKind::Confirmable, 300),
        (MessageKind::NonConfirmable, 301),
    ] {
        let token = Token::new(&[1, 2, 3]).unwrap();
        let notification =
            Message::separate(kind, Code::CONTENT, MessageId(id), token).with_observe(3);
        assert_eq!(
            fixture.receives(HOME, &notification),
            sent(&format!("RST to {id}"))
        );
    }
}

#[test]
fn a_response_with_another_token_is_no_answer() {
    let mut fixture = requested();
    let mut stray = fixture.piggybacked(Code::CONTENT).with_payload("87");
    stray.token = Token::new(&[1, 2, 3, 4]).unwrap();
    assert_eq!(fixture.receives(HOME, &stray), Lines::new());
    let mut separate = fixture.separate(MessageKind::Confirmable, Code::CONTENT);
    separate.token = stray.token;
    assert_eq!(fixture.receives(HOME, &separate), sent("RST to 102"));
    assert_eq!(
        fixture.answer(Code::CONTENT, "87"),
        answered("#1", BATTERY, READ)
    );
}

#[test]
fn an_acknowledgement_or_reset_of_something_else_changes_nothing() {
    let mut fixture = requested();
    let other = MessageId(fixture.last_request().message_id.0.wrapping_add(1));
    assert_eq!(
        fixture.receives(HOME, &Message::acknowledgement(other)),
        Lines::new()
    );
    assert_eq!(fixture.receives(HOME, &Message::reset(other)), Lines::new());
    assert_eq!(
        fixture.answer(Code::CONTENT, "87"),
        answered("#1", BATTERY, READ)
    );
}

#[test]
fn a_failure_in_a_separate_answer_is_acknowledged() {
    let mut fixture = requested();
    let answer = fixture.separate(MessageKind::Confirmable, Code::METHOD_NOT_ALLOWED);
    let expected = all([
        failed(
            r#""405" "the device answered 4.05""#,
            "the device answered 4.05",
        ),
        sent("ACK to 102"),
    ]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn the_diagnostic_text_of_a_device_is_in_the_error_and_in_the_timeline() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(write("/11/0/8", "a"));
    fixture.answer(Code::NOT_FOUND, "no instance 0");
    let effects = fixture.answer(Code::METHOD_NOT_ALLOWED, "read\nonly");
    let why = r#"the device answered 4.05: "readonly""#;
    assert_eq!(effects, failed(&format!(r#""405" {why:?}"#), why));
    let timeline = fixture.saved(id).timeline.as_slice().iter();
    let texts: Vec<_> = timeline.map(|it| it.diagnostic.as_deref()).collect();
    let expected = [None, None, Some("no instance 0"), None, Some("readonly")];
    assert_eq!(texts, expected);
}

#[test]
fn an_answer_that_cannot_be_decoded_fails_the_request() {
    let mut fixture = requested();
    let why = "the response cannot be decoded: the payload is not a value of type INTEGER";
    let kept = "the response about /3/0/9 cannot be decoded: \
                the payload is not a value of type INTEGER";
    let expected = all([
        undecodable(kept, b"warm"),
        failed(&format!(r#""205" {why:?}"#), why),
    ]);
    let effects = fixture.answer(Code::CONTENT, "warm");
    assert_eq!(without_record(effects), expected);

    let mut fixture = requested();
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_content_format(ContentFormat(50));
    let why = "the response cannot be decoded: payloads in Content-Format 50 are not supported";
    let expected = failed(&format!(r#""205" {why:?}"#), why);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn an_incomplete_block_is_not_accepted_as_the_answer() {
    let mut fixture = requested();
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_block2(Block::from_value(0b1110))
        .with_payload("8");
    let why = "the block-wise response is invalid: a block does not match its Block option";
    let expected = failed(&format!(r#""205" {why:?}"#), why);
    assert_eq!(fixture.receives(HOME, &answer), expected);

    let mut fixture = requested();
    let only = fixture
        .piggybacked(Code::CONTENT)
        .with_block2(Block::from_value(0b0110))
        .with_payload("87");
    assert_eq!(fixture.receives(HOME, &only), answered("#1", BATTERY, READ));
}

#[test]
fn an_answer_with_an_unknown_critical_option_is_rejected_and_fails_the_request() {
    let why = "the response has the unsupported critical option 9";
    let outcome = failed(&format!(r#""205" {why:?}"#), why);
    let mut fixture = requested();
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_option(9, &[1])
        .with_payload("87");
    assert_eq!(fixture.receives(HOME, &answer), outcome);

    let mut fixture = requested();
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_option(9, &[1]);
    assert_eq!(
        fixture.receives(HOME, &answer),
        all([outcome, sent("RST to 102")])
    );
}

#[test]
fn the_next_request_goes_out_when_the_answer_has_come() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active());
    fixture.ask(write("/3/0/14", "+01:00").when_active());
    fixture.update();
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_payload("87");
    let expected = all([
        answered("#1", BATTERY, READ),
        sent("ACK to 103"),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON PUT /3/0/14 format 0 \"+01:00\" m2"),
    ]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

/// A device whose battery level was requested at the start.
fn requested() -> DeviceFixture {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    fixture
}

fn failed(outcome: &str, why: &str) -> Lines {
    all([
        ended("#1", Failed, &format!("1/1 {outcome}")),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
    ])
}
