//! An object that cannot be read does not keep the others from being read.

use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};

use super::super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, MINUTE, REPORTING, S, all, logged, published, read, reads,
    reported, sent, unread, updated, without_record,
};

/// How the device ends a read.
type Ending = fn(&mut DeviceFixture) -> Message;

#[test]
fn an_object_that_is_missing_or_not_permitted_is_skipped_without_a_log_entry() {
    for code in [Code::NOT_FOUND, Code::METHOD_NOT_ALLOWED] {
        let mut fixture = first_requested();
        assert_eq!(fixture.answer(code, ""), reads("/7", "m2"));
        assert_eq!(
            fixture.answer_values("/7", &[("/7/0/2", 5)]),
            reported("/7/0/2=5")
        );
    }
}

#[test]
fn an_object_that_is_not_permitted_is_not_requested_until_the_device_registers_again() {
    let mut fixture = first_requested();
    fixture.answer(Code::METHOD_NOT_ALLOWED, "");
    fixture.answer(Code::NOT_FOUND, "");
    let effects = fixture.at(MINUTE).update();
    assert_eq!(fixture.requested_objects(effects), ["/7"]);
    let effects = fixture.at(2 * MINUTE).offer(REPORTING);
    assert_eq!(fixture.requested_objects(effects), ["/6", "/7"]);
}

#[test]
fn an_object_that_cannot_be_read_is_logged_and_the_next_is_read() {
    let unlike: [(Ending, &str); 5] = [
        (
            |fixture| fixture.piggybacked(Code::UNAUTHORIZED),
            "the device answered 4.01",
        ),
        (
            |fixture| fixture.piggybacked(Code::INTERNAL_SERVER_ERROR),
            "the device answered 5.00",
        ),
        (
            |fixture| fixture.piggybacked(Code::SERVICE_UNAVAILABLE),
            "the device answered 5.03",
        ),
        (
            |fixture| Message::reset(fixture.last_request().message_id),
            "the device rejected the message with a Reset",
        ),
        (
            |fixture| fixture.piggybacked(Code::CONTENT).with_option(9, &[1]),
            "the response has the unsupported critical option 9",
        ),
    ];
    for (answer, why) in unlike {
        let mut fixture = first_requested();
        let answer = answer(&mut fixture);
        let expected = all([unread("/6", &format!("{why}.")), reads("/7", "m2")]);
        assert_eq!(fixture.receives(HOME, &answer), expected);
        assert_eq!(
            fixture.answer_values("/7", &[("/7/0/2", 5)]),
            reported("/7/0/2=5")
        );
    }
}

#[test]
fn bytes_that_cannot_be_decoded_are_logged() {
    let mut fixture = first_requested();
    let answer = fixture.piggybacked(Code::CONTENT).with_payload("warm");
    let effects = without_record(fixture.receives(HOME, &answer));
    assert!(effects[0].starts_with(&unread("/6", "the TLV payload is malformed")[0]));
    assert!(effects[0].ends_with("Kept: \"warm\""), "{effects:?}");
    assert_eq!(
        effects[1..],
        all([
            published("failure LwM2M[PassiveReportingFailed]"),
            reads("/7", "m2")
        ])
    );
}

#[test]
fn an_answer_in_blocks_that_do_not_fit_cannot_be_read() {
    let mut fixture = first_requested();
    let answer = fixture.piggybacked(Code::CONTENT).with_payload("block");
    let answer = answer.with_block2(Block::from_value(0x0e));
    let why = "the block-wise response is invalid: a block does not match its Block option.";
    let expected = all([unread("/6", why), reads("/7", "m2")]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn a_failure_is_logged_once_a_day() {
    let mut fixture = first_requested();
    for (at, is_logged) in [
        (S, true),
        (2 * S, false),
        (HOUR, false),
        (23 * HOUR, false),
        (25 * HOUR, true),
    ] {
        fixture.at(at);
        if at > 2 * S {
            fixture.update();
        }
        let effects = fixture.answer(Code::INTERNAL_SERVER_ERROR, "");
        assert_eq!(
            !logs(&effects).is_empty(),
            is_logged,
            "at {at}: {effects:?}"
        );
        while fixture.device().busy.is_some() && at != S {
            fixture.answer(Code::NOT_FOUND, "");
        }
    }
}

#[test]
fn the_log_interval_of_a_day_outlives_a_registration() {
    let mut fixture = first_requested();
    assert!(!logs(&fixture.answer(Code::INTERNAL_SERVER_ERROR, "")).is_empty());
    fixture.at(HOUR).offer(REPORTING);
    assert_eq!(
        fixture.answer(Code::INTERNAL_SERVER_ERROR, ""),
        reads("/7", "m4")
    );
}

#[test]
fn a_refused_format_is_replaced_by_the_next_for_all_objects() {
    let mut fixture = first_requested();
    let other = sent("CON GET /6 accept 112 m2");
    assert_eq!(fixture.answer(Code::NOT_ACCEPTABLE, ""), other);
    let next = sent("CON GET /7 accept 112 m3");
    assert_eq!(fixture.answer(Code::NOT_FOUND, ""), next);
}

#[test]
fn an_object_that_is_refused_in_every_format_is_not_requested_again() {
    let refusals = [
        (Code::NOT_ACCEPTABLE, "the device answered 4.06."),
        (
            Code::UNSUPPORTED_CONTENT_FORMAT,
            "the device answered 4.15.",
        ),
    ];
    for (code, why) in refusals {
        let mut fixture = DeviceFixture::reporting();
        let mut effects = fixture.offer("</1/0>,</7/0>");
        let mut requests = 0;
        while effects.iter().any(|line| line.contains("CON GET /7")) {
            requests += 1;
            effects = fixture.answer(code, "");
        }
        assert!((2..=9).contains(&requests), "{requests} requests");
        assert_eq!(effects, unread("/7", why));
        assert_eq!(fixture.at(MINUTE).update(), updated(102));
    }
}

#[test]
fn a_read_is_retransmitted_before_it_is_given_up() {
    let mut fixture = first_requested();
    let mut repeated = 0;
    while fixture.deadline() < Some(62 * S) {
        assert_eq!(fixture.next_deadline(), reads("/6", "m1"));
        repeated += 1;
    }
    assert_eq!(repeated, 4);
    assert_eq!(fixture.next_deadline(), Lines::new(), "the device is gone");
    assert!(fixture.device().busy.is_none());
    let expected = all([updated(102), reads("/7", "m2")]);
    assert_eq!(
        fixture.at(10 * MINUTE).update(),
        expected,
        "the silent one is last"
    );
}

#[test]
fn an_unanswered_object_is_skipped_if_an_uplink_came() {
    let mut fixture = first_requested();
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.at(S).receives(HOME, &acknowledgement);
    assert_eq!(fixture.next_deadline(), Lines::new(), "nothing else waits");
    let effects = fixture.next_deadline();
    let expected = all([
        unread("/6", "the device did not answer in time."),
        reads("/7", "m2"),
    ]);
    assert_eq!(effects, expected);
}

#[test]
fn an_unanswered_object_does_not_keep_the_others_from_being_read() {
    let mut fixture = first_requested();
    assert_eq!(unanswered(&mut fixture), Lines::new(), "the device is gone");
    let mut expected = [true, false].into_iter();
    for hour in [1, 2] {
        let effects = fixture.at(hour * HOUR).update();
        assert!(effects.last().unwrap().contains("GET /7"), "{effects:?}");
        let effects = fixture.answer(Code::NOT_FOUND, "");
        assert!(effects.last().unwrap().contains("GET /6"), "{effects:?}");
        let effects = unanswered(&mut fixture);
        let is_logged = expected.next().unwrap();
        let why = unread("/6", "the device did not acknowledge the message.");
        let why = if is_logged { why } else { Lines::new() };
        assert_eq!(effects, why, "once a day");
        assert!(fixture.device().busy.is_none());
    }
    let effects = fixture.at(3 * HOUR).update();
    assert_eq!(fixture.requested_objects(effects), ["/7"], "it is given up");
    let effects = fixture.at(4 * HOUR).offer(REPORTING);
    assert_eq!(fixture.requested_objects(effects), ["/6", "/7"]);
}

#[test]
fn a_missing_answer_after_another_answer_is_logged_and_the_rest_is_read_at_the_next_update() {
    let mut fixture = DeviceFixture::reporting();
    fixture.offer("</1/0>,</6/0>,</7/0>,</3303/0>");
    fixture.answer(Code::NOT_FOUND, "");
    let why = unread("/7", "the device did not acknowledge the message.");
    assert_eq!(unanswered(&mut fixture), why);
    let effects = fixture.at(HOUR).update();
    assert_eq!(fixture.requested_objects(effects), ["/6", "/3303", "/7"]);
}

#[test]
fn an_object_that_is_answered_in_the_end_is_not_given_up() {
    let mut fixture = first_requested();
    for hour in 1..6 {
        unanswered(&mut fixture);
        let effects = fixture.at(hour * 2 * HOUR).update();
        assert_eq!(fixture.requested_objects(effects), ["/7", "/6"]);
        fixture.at((hour * 2 + 1) * HOUR).update();
        fixture.answer(Code::NOT_FOUND, "");
    }
}

#[test]
fn no_object_is_given_up_while_the_device_is_gone() {
    let mut fixture = first_requested();
    for hour in 1..6 {
        assert_eq!(unanswered(&mut fixture), Lines::new());
        fixture.at(hour * HOUR).update();
    }
    fixture.answer(Code::NOT_FOUND, "");
    assert!(fixture.answer(Code::NOT_FOUND, "").is_empty());
    let effects = fixture.at(6 * HOUR).update();
    assert_eq!(fixture.requested_objects(effects), ["/6", "/7"]);
}

#[test]
fn an_unanswered_request_of_a_caller_ends_the_round() {
    let mut fixture = DeviceFixture::reporting();
    fixture.offer("</1/0>,</3/0>");
    fixture.ask(read("/3/0/9").attempts(2).when_active());
    let update = fixture.updating(&[], REPORTING);
    fixture.at(S).receives(HOME, &update);
    while fixture.deadline() < Some(63 * S) {
        assert_eq!(fixture.next_deadline(), sent("CON GET /3/0/9 accept 0 m1"));
    }
    let effects = fixture.next_deadline();
    assert!(
        effects.iter().all(|line| !line.contains("GET")),
        "{effects:?}"
    );
    assert!(fixture.device().busy.as_ref().unwrap().round.is_none());
}

#[test]
fn a_separate_answer_is_acknowledged_before_the_next_request() {
    let mut fixture = first_requested();
    let answer = fixture.separate(MessageKind::Confirmable, Code::NOT_FOUND);
    let expected = all([sent("ACK to 102"), reads("/7", "m2")]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

/// A device that registered, with a read of its first object in flight.
fn first_requested() -> DeviceFixture {
    let mut fixture = DeviceFixture::reporting();
    let effects = fixture.offer(REPORTING);
    assert!(effects.ends_with(&reads("/6", "m1")), "{effects:?}");
    fixture
}

/// The effects of giving up on a request after its last retransmission.
fn unanswered(fixture: &mut DeviceFixture) -> Lines {
    loop {
        let effects = fixture.next_deadline();
        if effects.iter().all(|line| !line.contains("GET")) {
            return effects;
        }
    }
}

fn logs(effects: &Lines) -> Vec<&String> {
    let prefix = logged("");
    let lines = effects.iter();
    lines.filter(|line| line.starts_with(&prefix[0])).collect()
}
