//! Requests and answers that do not fit one message: each block is an exchange, and the whole
//! transfer is one attempt (RFC 7959).

use protocol::coap::block::More::{No, Yes};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::value::Value;

use super::vocabulary::{
    DeviceFixture, HOME, Lines, S, all, answered, block, coap, created, ended, logged, moved,
    observe, observing, published, put_off, read, recorded, sent, small_blocks, tlv, write,
};
use crate::action::Method;
use crate::action::Status::{Failed, InProgress, Succeeded};
use crate::limits::{Limits, TRANSFER_IDLE_MS};
use crate::setting::SettingState;
use crate::step_event::{ExchangeOutcome, ExchangePurpose, StepEventKind, UplinkKind};

const MAKER: &str = "/3/0/0";
const SERVER: &str = "10.0.0.1:5685";

#[test]
fn a_long_value_is_written_in_blocks() {
    let mut fixture = registered();
    let (_, effects) = fixture.submit(write("/3/0/14", "0123456789abcdef0123456789ABCDEF!"));
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON PUT /3/0/14 block1 0/16 more size1 33 format 0 \"0123456789abcdef\" m1"),
    ]);
    assert_eq!(effects, expected);
    let first = fixture.goes_on(0);
    let expected = sent("CON PUT /3/0/14 block1 1/16 more format 0 \"0123456789ABCDEF\" m2");
    assert_eq!(fixture.at(S).receives(HOME, &first), expected);
    assert_eq!(fixture.step_events(), [], "it is counted as one exchange");
    let second = fixture.goes_on(1);
    let expected = sent("CON PUT /3/0/14 block1 2/16 format 0 \"!\" m3");
    assert_eq!(fixture.at(2 * S).receives(HOME, &second), expected);
    let last = fixture.piggybacked(Code::CHANGED).with_block1(block(2, No));
    let expected = ended("#1", Succeeded, r#"1/1 "204""#);
    assert_eq!(fixture.at(3 * S).receives(HOME, &last), expected);
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::Success)
    );
}

#[test]
fn a_device_may_ask_for_smaller_blocks() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(write("/3/0/14", &"x".repeat(1_500)));
    assert!(
        effects
            .last()
            .unwrap()
            .contains("block1 0/1024 more size1 1500")
    );
    let smaller = fixture
        .piggybacked(Code::CONTINUE)
        .with_block1(block(0, Yes));
    let effects = fixture.receives(HOME, &smaller);
    assert!(effects[0].contains("block1 64/16 more"), "{effects:?}");
}

#[test]
fn a_long_answer_is_requested_block_by_block() {
    let mut fixture = registered();
    fixture.ask(read(MAKER));
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    let expected = sent("CON GET /3/0/0 accept 0 block2 1/16 m2");
    assert_eq!(fixture.at(S).receives(HOME, &first), expected);
    assert_eq!(fixture.step_events(), []);
    let last = fixture.answer_in_block(1, No, "XYZ");
    let expected = answered(
        "#1",
        "/3/0/0=0123456789abcdefXYZ",
        r#"1/1 "205" "0123456789abcdefXYZ""#,
    );
    assert_eq!(fixture.at(2 * S).receives(HOME, &last), expected);
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::Success)
    );
    assert_eq!(fixture.deadline(), Some(86_400 * S), "nothing is in flight");
}

#[test]
fn separate_blocks_are_acknowledged_and_a_repeated_one_again() {
    let mut fixture = registered();
    fixture.ask(read(MAKER));
    let first = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_block2(block(0, Yes))
        .with_payload("0123456789abcdef");
    let expected = all([
        sent("ACK to 102"),
        sent("CON GET /3/0/0 accept 0 block2 1/16 m2"),
    ]);
    assert_eq!(fixture.at(S).receives(HOME, &first), expected);
    assert_eq!(
        fixture.receives(HOME, &first),
        sent("ACK to 102"),
        "repeated"
    );
    let last = fixture.answer_in_block(1, No, "!");
    let effects = fixture.receives(HOME, &last);
    assert_eq!(effects[..1], published("/3/0/0=0123456789abcdef! for #1"));
}

#[test]
fn a_request_and_its_answer_may_both_be_long() {
    let mut fixture = DeviceFixture::within(small_blocks());
    fixture.ask(coap(Method::Post, "/a", "0123456789abcdefXYZ"));
    let first = fixture.goes_on(0);
    let expected = sent_to_server("CON POST /a block1 1/16 \"XYZ\" m2");
    assert_eq!(fixture.at(S).receives(SERVER, &first), expected);
    let begins = fixture
        .answer_in_block(0, Yes, "0123456789ABCDEF")
        .with_block1(block(1, No));
    let expected = sent_to_server("CON POST /a block2 1/16 m3");
    assert_eq!(fixture.at(2 * S).receives(SERVER, &begins), expected);
    let ends = fixture.answer_in_block(1, No, "!");
    let expected = all([
        vec![format!("rebind {SERVER} -> nowhere")],
        ended("#1", Succeeded, r#"1/1 "205" "MDEyMzQ1Njc4OUFCQ0RFRiE=""#),
    ]);
    assert_eq!(fixture.at(3 * S).receives(SERVER, &ends), expected);
}

#[test]
fn only_the_peer_of_the_request_may_continue() {
    let mut fixture = DeviceFixture::within(small_blocks());
    fixture.register();
    fixture.ask(coap(Method::Get, "/a", ""));
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    assert_eq!(fixture.receives(HOME, &first), Lines::new());
    let effects = fixture.receives(SERVER, &first);
    assert_eq!(effects, sent_to_server("CON GET /a block2 1/16 m2"));
    let last = fixture.answer_in_block(1, No, "!");
    assert_eq!(fixture.receives(HOME, &last), Lines::new());
    assert_eq!(fixture.receives(SERVER, &last).len(), 5);
}

#[test]
fn a_lost_block_is_requested_again_after_its_exchange_gave_up() {
    let mut fixture = registered();
    fixture.ask(read(MAKER));
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    fixture.receives(HOME, &first);
    let again = sent("CON GET /3/0/0 accept 0 block2 1/16 m2");
    for after in [2, 6, 14, 30] {
        assert_eq!(fixture.next_deadline(), again, "the same message");
        assert_eq!(fixture.now_s(), after);
    }
    let repeated = sent("CON GET /3/0/0 accept 0 block2 1/16 m3");
    assert_eq!(fixture.next_deadline(), repeated, "in a message of its own");
    assert_eq!(fixture.step_events(), [StepEventKind::Repeated]);
    let last = fixture.answer_in_block(1, No, "!");
    let effects = fixture.receives(HOME, &last);
    assert_eq!(effects[..1], published("/3/0/0=0123456789abcdef! for #1"));
}

#[test]
fn a_transfer_that_stalls_is_a_failed_attempt() {
    let mut fixture = registered();
    fixture.ask(read(MAKER).attempts(2));
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    fixture.at(S).receives(HOME, &first);
    let effects = silence(&mut fixture);
    assert_eq!(effects, put_off("#1", "1/2"));
    assert_eq!(fixture.now_s() * S, S + TRANSFER_IDLE_MS);
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Ended(ExchangeOutcome::NotAcknowledged)]
    );
    let effects = fixture.update();
    let expected = sent("CON GET /3/0/0 accept 0 m6");
    assert!(
        effects.ends_with(&expected),
        "from the beginning: {effects:?}"
    );
}

#[test]
fn a_transfer_without_any_block_ends_like_an_exchange() {
    let mut fixture = registered();
    fixture.ask(write("/3/0/14", "0123456789abcdef!"));
    let why = "the device did not acknowledge the message";
    let effects = silence(&mut fixture);
    assert_eq!(effects, failed(&format!("1/1 {why:?}"), why));
    assert_eq!(fixture.now_s(), 62);
}

#[test]
fn a_refusal_in_the_middle_is_the_answer() {
    let mut fixture = registered();
    fixture.ask(write("/3/0/14", "0123456789abcdef0123456789ABCDEF!"));
    let first = fixture.goes_on(0);
    fixture.receives(HOME, &first);
    let expected = failed(
        r#"1/1 "405" "the device answered 4.05""#,
        "the device answered 4.05",
    );
    assert_eq!(fixture.answer(Code::METHOD_NOT_ALLOWED, ""), expected);

    let mut fixture = registered();
    fixture.ask(write("/3/0/14", "0123456789abcdef0123456789ABCDEF!").attempts(2));
    let first = fixture.goes_on(0);
    fixture.receives(HOME, &first);
    let expected = put_off("#1", "1/2");
    assert_eq!(
        fixture.answer(Code::REQUEST_ENTITY_INCOMPLETE, ""),
        expected,
        "it forgot what came before"
    );
}

#[test]
fn inconsistent_blocks_fail_the_request() {
    let cases = [
        (2, "the received block is not the requested one"),
        (0, "the received block is not the requested one"),
    ];
    for (number, why) in cases {
        let mut fixture = registered();
        fixture.ask(read(MAKER).attempts(3));
        let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
        fixture.receives(HOME, &first);
        let wrong = fixture.answer_in_block(number, No, "!");
        let why = format!("the block-wise response is invalid: {why}");
        let expected = failed(&format!(r#"1/3 "205" {why:?}"#), &why);
        assert_eq!(fixture.receives(HOME, &wrong), expected);
        assert_eq!(
            fixture.step_events()[0],
            StepEventKind::Ended(ExchangeOutcome::Unusable)
        );
    }
}

#[test]
fn an_answer_that_is_too_long_is_not_assembled() {
    let mut fixture = DeviceFixture::within(Limits {
        answer_bytes_max: 20,
        ..small_blocks()
    });
    fixture.register();
    fixture.ask(read(MAKER));
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    fixture.receives(HOME, &first);
    let second = fixture.answer_in_block(1, Yes, "0123456789ABCDEF");
    let why = "the block-wise response is invalid: the body is longer than 20 bytes";
    let expected = failed(&format!(r#"1/1 "205" {why:?}"#), why);
    assert_eq!(fixture.receives(HOME, &second), expected);
}

#[test]
fn an_observation_that_begins_in_blocks_has_the_token_of_its_first_message() {
    let mut fixture = registered();
    fixture.ask(observe(MAKER));
    let token = fixture.last_request().token;
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    let expected = sent("CON GET /3/0/0 accept 0 block2 1/16 m2");
    assert_eq!(fixture.receives(HOME, &first.with_observe(10)), expected);
    assert_ne!(fixture.last_request().token, token);
    let last = fixture.answer_in_block(1, No, "!");
    let expected = all([
        published("/3/0/0=0123456789abcdef! for #1"),
        observing(0, &["/3/0/0 Held"]),
        ended("#1", Succeeded, r#"1/1 "205" "0123456789abcdef!""#),
    ]);
    assert_eq!(fixture.receives(HOME, &last), expected);
    assert_eq!(fixture.token_observing(MAKER), token);
    let notification = fixture.notification_of(MAKER, MessageKind::Confirmable, 11);
    let expected = all([
        published("/3/0/0=new for observed /3/0/0"),
        sent("ACK to 102"),
    ]);
    let notification = notification.with_payload("new");
    assert_eq!(fixture.receives(HOME, &notification), expected);
}

#[test]
fn a_notification_that_comes_before_the_observation_is_whole_does_not_end_it() {
    for kind in [MessageKind::Confirmable, MessageKind::NonConfirmable] {
        let mut fixture = registered();
        fixture.ask(observe(MAKER));
        let token = fixture.last_request().token;
        let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
        fixture.receives(HOME, &first.with_observe(10));
        let early = Message::separate(kind, Code::CONTENT, fixture.device_id(), token)
            .with_observe(11)
            .with_payload("new");
        assert_eq!(
            fixture.receives(HOME, &early),
            Lines::new(),
            "it is not reset"
        );
        let last = fixture.answer_in_block(1, No, "!");
        fixture.receives(HOME, &last);
        let effects = fixture.at(2 * S).receives(HOME, &early);
        let expected = published("/3/0/0=new for observed /3/0/0");
        assert_eq!(effects[..1], expected, "it comes again");
    }
}

#[test]
fn an_observation_renewed_in_blocks_has_the_token_of_its_first_message() {
    let mut fixture = registered();
    fixture.begin_observing(MAKER);
    fixture.at(S).register();
    let token = fixture.last_request().token;
    assert_eq!(fixture.last_request().observe(), Some(0));
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    let effects = fixture.receives(HOME, &first.with_observe(3));
    assert_eq!(effects, sent("CON GET /3/0/0 accept 0 block2 1/16 m3"));
    let early = Message::separate(
        MessageKind::NonConfirmable,
        Code::CONTENT,
        fixture.device_id(),
        token,
    )
    .with_observe(4)
    .with_payload("new");
    assert_eq!(
        fixture.receives(HOME, &early),
        Lines::new(),
        "it is not reset"
    );
    let last = fixture.answer_in_block(1, No, "!");
    let expected = all([
        published("/3/0/0=0123456789abcdef! for observed /3/0/0"),
        observing_since(S, &["/3/0/0 Held"]),
    ]);
    assert_eq!(fixture.receives(HOME, &last), expected);
    assert_eq!(fixture.token_observing(MAKER), token);
}

#[test]
fn an_answer_to_passive_reporting_may_come_in_blocks() {
    let mut fixture = DeviceFixture::within(small_blocks());
    fixture.switch_reporting(SettingState::Enabled);
    fixture.offer("</1/0>,</3/0>,</7/0>");
    let values: Vec<_> = ["/7/0/1", "/7/0/2", "/7/0/3", "/7/0/4", "/7/0/5"]
        .map(|path| (path, Value::Integer(1_000)))
        .into();
    let whole = tlv(fixture.piggybacked(Code::CONTENT), "/7", &values);
    let (start, rest) = whole.payload.split_at_checked(16).unwrap();
    assert!(rest.len() <= 16);
    let format = whole.content_format().unwrap();
    let first = fixture.answer_in_block(0, Yes, start);
    let effects = fixture.receives(HOME, &first.with_content_format(format));
    assert_eq!(effects, sent("CON GET /7 accept 11542 block2 1/16 m2"));
    let last = fixture.answer_in_block(1, No, rest);
    let expected = "/7/0/1=1000 /7/0/2=1000 /7/0/3=1000 /7/0/4=1000 /7/0/5=1000";
    assert_eq!(
        fixture.receives(HOME, &last.with_content_format(format)),
        published(&format!("{expected} for reported"))
    );
}

#[test]
fn the_end_of_the_registration_ends_a_transfer_once() {
    let mut fixture = registered();
    fixture.ask(read(MAKER));
    assert_eq!(
        fixture.step_events()[1],
        StepEventKind::Begun(ExchangePurpose::Action)
    );
    let first = fixture.answer_in_block(0, Yes, "0123456789abcdef");
    assert_eq!(fixture.kind_of(&first), UplinkKind::BlockPart);
    fixture.at(S).deregister();
    assert_eq!(
        fixture.step_events()[0],
        StepEventKind::Ended(ExchangeOutcome::DeviceGone)
    );
    let late = fixture.answer_in_block(1, No, "!");
    assert_eq!(fixture.receives(HOME, &late), Lines::new());
}

#[test]
fn a_transfer_follows_a_device_that_moves() {
    let mut fixture = DeviceFixture::of(
        super::vocabulary::profile(),
        crate::rules::EndpointTrust::NameSuffices,
    );
    fixture.register();
    fixture.ask(read(MAKER));
    let first = fixture
        .piggybacked(Code::CONTENT)
        .with_block2(block(0, Yes))
        .with_payload("0123456789abcdef");
    fixture.receives(HOME, &first);
    let update = fixture.updating(&[], "");
    fixture.at(S).receives("10.0.0.9:5683", &update);
    let effects = fixture.next_deadline();
    let expected = "send 10.0.0.9:5683: CON GET /3/0/0 accept 0 block2 1/16 m2";
    assert_eq!(effects, [expected]);
}

/// The record of a device that registered at that time is saved, with its observations.
fn observing_since(at_ms: i64, observations: &[&str]) -> Lines {
    let expires_at_ms = at_ms + 86_400 * S;
    let presence = format!("registered until {expires_at_ms}, seen at {at_ms} from {HOME}");
    recorded(&format!("{presence}, {}", observations.join(", ")))
}

fn registered() -> DeviceFixture {
    let mut fixture = DeviceFixture::within(small_blocks());
    fixture.register();
    fixture
}

/// The device does not answer until the attempt is given up. Returns the effects of that.
fn silence(fixture: &mut DeviceFixture) -> Lines {
    loop {
        let effects = fixture.next_deadline();
        if !effects.iter().any(|line| line.starts_with("send")) {
            return effects;
        }
    }
}

fn sent_to_server(line: &str) -> Lines {
    vec![
        format!("rebind nowhere -> {SERVER}"),
        format!("send {SERVER}: {line}"),
    ]
}

fn failed(progress: &str, why: &str) -> Lines {
    all([
        ended("#1", Failed, progress),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
    ])
}
