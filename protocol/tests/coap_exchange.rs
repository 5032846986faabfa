//! Does a request get its response, and does its retransmission end when it should?

use proptest::prelude::{any, proptest};
use proptest::prop_assert;
use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::exchange::{
    Exchange, ExchangeReception, ExchangeTimeout, GiveUp, Transmission,
};
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

const ANSWERED: ExchangeReception = ExchangeReception::Answered { acknowledge: None };
const ANSWERED_APART: ExchangeReception = ExchangeReception::Answered {
    acknowledge: Some(MessageId(900)),
};
const NOT_ACKNOWLEDGED: ExchangeTimeout = ExchangeTimeout::GaveUp(GiveUp::NotAcknowledged);
const NOT_ANSWERED: ExchangeTimeout = ExchangeTimeout::GaveUp(GiveUp::NotAnswered);

#[test]
fn an_unacknowledged_request_is_repeated_four_times_at_doubling_intervals() {
    let mut exchange = begin(0);
    assert_eq!(
        schedule(&mut exchange),
        [
            (2_000, ExchangeTimeout::Retransmit),
            (6_000, ExchangeTimeout::Retransmit),
            (14_000, ExchangeTimeout::Retransmit),
            (30_000, ExchangeTimeout::Retransmit),
            (62_000, NOT_ACKNOWLEDGED),
        ]
    );
}

#[test]
fn the_longest_jitter_stretches_every_interval_by_half() {
    let mut exchange = begin(u32::MAX);
    assert_eq!(
        schedule(&mut exchange),
        [
            (3_000, ExchangeTimeout::Retransmit),
            (9_000, ExchangeTimeout::Retransmit),
            (21_000, ExchangeTimeout::Retransmit),
            (45_000, ExchangeTimeout::Retransmit),
            (93_000, NOT_ACKNOWLEDGED),
        ]
    );
}

#[test]
fn a_request_that_must_not_be_repeated_gives_up_after_its_first_timeout() {
    let parameters = Transmission {
        max_retransmit: 0,
        ..Transmission::STANDARD
    };
    let mut exchange = Exchange::begin(0, &parameters, &get(), 0);
    assert_eq!(schedule(&mut exchange), [(2_000, NOT_ACKNOWLEDGED)]);
}

#[test]
fn a_factor_below_one_does_not_shorten_the_timeout() {
    let parameters = Transmission {
        ack_random_factor_percent: 50,
        ..Transmission::STANDARD
    };
    let exchange = Exchange::begin(0, &parameters, &get(), u32::MAX);
    assert_eq!(exchange.next_timeout(), 2_000);
}

#[test]
fn an_acknowledged_request_waits_for_its_response_and_is_not_repeated() {
    let mut exchange = begin(0);
    assert_eq!(
        exchange.handle(1_500, &empty_ack()),
        ExchangeReception::Acknowledged
    );
    assert_eq!(
        exchange.handle(9_000, &empty_ack()),
        ExchangeReception::NotMine
    );
    assert_eq!(schedule(&mut exchange), [(94_500, NOT_ANSWERED)]);
}

#[test]
fn a_non_confirmable_request_is_sent_once() {
    let mut exchange = Exchange::begin(0, &Transmission::STANDARD, &get_non(), 7);
    assert_eq!(schedule(&mut exchange), [(93_000, NOT_ANSWERED)]);
}

#[test]
fn an_early_wake_up_changes_nothing() {
    let mut exchange = begin(0);
    assert_eq!(exchange.handle_timeout(1_999), ExchangeTimeout::NotYet);
    assert_eq!(exchange.handle_timeout(-1), ExchangeTimeout::NotYet);
    assert_eq!(exchange.next_timeout(), 2_000);
}

#[test]
fn a_late_wake_up_repeats_the_request_once() {
    let mut exchange = begin(0);
    assert_eq!(exchange.handle_timeout(20_000), ExchangeTimeout::Retransmit);
    assert_eq!(exchange.handle_timeout(20_000), ExchangeTimeout::NotYet);
    assert_eq!(exchange.next_timeout(), 24_000);
}

#[test]
fn a_request_is_never_repeated_after_the_device_may_have_forgotten_it() {
    let mut exchange = begin(0);
    assert_eq!(exchange.handle_timeout(2_000), ExchangeTimeout::Retransmit);
    assert_eq!(exchange.handle_timeout(300_000), ExchangeTimeout::NotYet);
    assert_eq!(schedule(&mut exchange), [(308_000, NOT_ACKNOWLEDGED)]);
}

#[test]
fn the_last_repetition_may_come_late_by_one_timeout() {
    for (wake_up_ms, expected) in [
        (46_999, ExchangeTimeout::Retransmit),
        (47_001, ExchangeTimeout::NotYet),
    ] {
        let mut exchange = begin(u32::MAX);
        for now_ms in [3_000, 9_000, 21_000] {
            assert_eq!(exchange.handle_timeout(now_ms), ExchangeTimeout::Retransmit);
        }
        assert_eq!(exchange.handle_timeout(wake_up_ms), expected);
        assert_eq!(exchange.next_timeout(), wake_up_ms + 48_000);
    }
}

#[test]
fn an_exchange_that_is_over_receives_and_sends_nothing() {
    let endings = [
        piggybacked(),
        separate(MessageKind::Confirmable),
        Message::reset(MessageId(1)),
    ];
    for ending in endings {
        let mut exchange = begin(0);
        assert_ne!(exchange.handle(100, &ending), ExchangeReception::NotMine);
        assert_eq!(exchange.handle(101, &ending), ExchangeReception::NotMine);
        assert_eq!(exchange.next_timeout(), i64::MAX);
        assert_eq!(exchange.handle_timeout(1_000_000), ExchangeTimeout::NotYet);
        assert_eq!(exchange.handle_timeout(i64::MAX), ExchangeTimeout::NotYet);
    }
    let mut given_up = begin(0);
    schedule(&mut given_up);
    assert_eq!(
        given_up.handle(93_001, &piggybacked()),
        ExchangeReception::NotMine
    );
}

#[test]
fn responses_find_their_request() {
    use ExchangeReception::{Acknowledged, NotMine};
    let ack = empty_ack;
    let (con, non) = (
        || separate(MessageKind::Confirmable),
        || separate(MessageKind::NonConfirmable),
    );

    check("piggybacked", get(), &[(piggybacked(), ANSWERED)]);
    check(
        "separate",
        get(),
        &[(ack(), Acknowledged), (con(), ANSWERED_APART)],
    );
    check(
        "separate, non",
        get(),
        &[(ack(), Acknowledged), (non(), ANSWERED)],
    );
    check(
        "before its ack",
        get(),
        &[(con(), ANSWERED_APART), (ack(), NotMine)],
    );
    check(
        "non before its ack",
        get(),
        &[(non(), ANSWERED), (ack(), NotMine)],
    );
    check(
        "piggybacked after an empty ack",
        get(),
        &[(ack(), Acknowledged), (piggybacked(), ANSWERED)],
    );
    check(
        "refused",
        get(),
        &[(Message::reset(MessageId(1)), ExchangeReception::Reset)],
    );
    check(
        "refused late",
        get(),
        &[
            (ack(), Acknowledged),
            (Message::reset(MessageId(1)), ExchangeReception::Reset),
        ],
    );
    check("to a non", get_non(), &[(non(), ANSWERED)]);
    check("con to a non", get_non(), &[(con(), ANSWERED_APART)]);
    check(
        "refused non",
        get_non(),
        &[(Message::reset(MessageId(1)), ExchangeReception::Reset)],
    );
    check(
        "error",
        get(),
        &[(
            changed(piggybacked(), |it| it.code = Code::NOT_FOUND),
            ANSWERED,
        )],
    );
}

#[test]
fn an_acknowledgement_counts_once() {
    let messages = [
        (empty_ack(), ExchangeReception::Acknowledged),
        (empty_ack(), ExchangeReception::NotMine),
        (separate(MessageKind::Confirmable), ANSWERED_APART),
    ];
    check("acknowledged twice", get(), &messages);
}

#[test]
fn messages_of_others_are_left_alone() {
    let other_token = Token::from_u64(43);
    let others = [
        changed(piggybacked(), |it| it.token = other_token),
        changed(piggybacked(), |it| it.token = Token::EMPTY),
        changed(piggybacked(), |it| it.message_id = MessageId(2)),
        changed(separate(MessageKind::Confirmable), |it| {
            it.token = other_token
        }),
        changed(separate(MessageKind::NonConfirmable), |it| {
            it.token = Token::EMPTY
        }),
        Message::acknowledgement(MessageId(2)),
        Message::reset(MessageId(2)),
        Message::ping(MessageId(1)),
        // The device's own request, with an id and token that happen to be ours.
        Message::request(MessageKind::Confirmable, Code::POST, MessageId(1), token()),
        Message::request(
            MessageKind::NonConfirmable,
            Code::POST,
            MessageId(1),
            token(),
        ),
    ];
    for other in others {
        check(
            "not mine",
            get(),
            &[
                (other, ExchangeReception::NotMine),
                (piggybacked(), ANSWERED),
            ],
        );
    }
    let non = separate(MessageKind::NonConfirmable);
    for acknowledgement in [empty_ack(), piggybacked()] {
        let received = [
            (acknowledgement, ExchangeReception::NotMine),
            (non.clone(), ANSWERED),
        ];
        check(
            "a non-confirmable request is not acknowledged",
            get_non(),
            &received,
        );
    }
}

#[test]
fn a_request_without_token_finds_its_response() {
    let bare = |message: Message| changed(message, |it| it.token = Token::EMPTY);
    check(
        "piggybacked",
        bare(get()),
        &[(bare(piggybacked()), ANSWERED)],
    );
    check(
        "separate",
        bare(get()),
        &[(bare(separate(MessageKind::Confirmable)), ANSWERED_APART)],
    );
    check(
        "other",
        bare(get()),
        &[(
            separate(MessageKind::Confirmable),
            ExchangeReception::NotMine,
        )],
    );
}

#[test]
fn a_response_with_an_unknown_critical_option_is_unusable() {
    let strange = |message: Message| message.with_option(option::OSCORE, b"x");
    let unusable = |reset| ExchangeReception::Unusable {
        option: option::OSCORE,
        reset,
    };
    check(
        "piggybacked",
        get(),
        &[(strange(piggybacked()), unusable(None))],
    );
    let id = MessageId(900);
    check(
        "separate",
        get(),
        &[(
            strange(separate(MessageKind::Confirmable)),
            unusable(Some(id)),
        )],
    );
    check(
        "non",
        get(),
        &[(
            strange(separate(MessageKind::NonConfirmable)),
            unusable(None),
        )],
    );
    let elective = piggybacked()
        .with_option(option::ETAG, b"x")
        .with_option(65_000, b"");
    check("elective", get(), &[(elective, ANSWERED)]);
    let in_blocks = piggybacked()
        .with_block2(Block::from_value(0x0E))
        .with_block1(Block::from_value(6));
    check("in blocks", get(), &[(in_blocks, ANSWERED)]);
}

#[test]
fn only_a_response_without_observe_answers_the_end_of_an_observation() {
    let cancel = || get().with_observe(1);
    let notification = |kind| separate(kind).with_observe(12);
    let non = (
        notification(MessageKind::NonConfirmable),
        ExchangeReception::NotMine,
    );
    let con = (
        notification(MessageKind::Confirmable),
        ExchangeReception::NotMine,
    );
    check(
        "piggybacked",
        cancel(),
        &[non.clone(), con.clone(), (piggybacked(), ANSWERED)],
    );
    let ack = (empty_ack(), ExchangeReception::Acknowledged);
    check(
        "separate",
        cancel(),
        &[
            non.clone(),
            ack,
            con,
            (separate(MessageKind::Confirmable), ANSWERED_APART),
        ],
    );
    check("begin", get().with_observe(0), &[(non.0, ANSWERED)]);
}

#[test]
fn the_datagram_is_the_request() {
    let exchange = begin(0);
    assert_eq!(exchange.datagram(), get().encode());
    assert_eq!(exchange.message_id(), MessageId(1));
    assert_eq!(exchange.token(), token());
}

proptest! {
    #[test]
    fn no_parameters_break_the_schedule(
        now_ms in any::<i64>(),
        timeouts_ms in any::<(u32, u32)>(),
        ack_random_factor_percent in any::<u32>(),
        max_retransmit in any::<u8>(),
        jitter in any::<u32>(),
    ) {
        let (ack_timeout_ms, response_timeout_ms) = timeouts_ms;
        let parameters = Transmission {
            ack_timeout_ms,
            ack_random_factor_percent,
            max_retransmit,
            response_timeout_ms,
        };
        let mut exchange = Exchange::begin(now_ms, &parameters, &get(), jitter);
        prop_assert!(exchange.next_timeout() >= now_ms);
        let expected = usize::from(max_retransmit) + 1;
        prop_assert!(schedule(&mut exchange).len() <= expected);
    }
}

/// Wakes the exchange exactly at its timeouts, until it is over.
fn schedule(exchange: &mut Exchange) -> Vec<(i64, ExchangeTimeout)> {
    let mut expiries = Vec::new();
    while exchange.next_timeout() < i64::MAX {
        let now_ms = exchange.next_timeout();
        expiries.push((now_ms, exchange.handle_timeout(now_ms)));
    }
    expiries
}

fn check(case: &str, request: Message, received: &[(Message, ExchangeReception)]) {
    let mut exchange = Exchange::begin(0, &Transmission::STANDARD, &request, 0);
    for (message, expected) in received {
        assert_eq!(
            exchange.handle(10, message),
            *expected,
            "{case}: {message:?}"
        );
    }
}

fn begin(jitter: u32) -> Exchange {
    Exchange::begin(0, &Transmission::STANDARD, &get(), jitter)
}

fn token() -> Token {
    Token::from_u64(42)
}

fn get() -> Message {
    let request = Message::request(MessageKind::Confirmable, Code::GET, MessageId(1), token());
    request.with_uri_path(["3", "0", "9"])
}

fn get_non() -> Message {
    changed(get(), |it| it.kind = MessageKind::NonConfirmable)
}

fn empty_ack() -> Message {
    Message::acknowledgement(MessageId(1))
}

fn piggybacked() -> Message {
    Message::response_to(&get(), Code::CONTENT, MessageId(901)).with_payload("85")
}

fn separate(kind: MessageKind) -> Message {
    Message::separate(kind, Code::CONTENT, MessageId(900), token()).with_payload("85")
}

fn changed(mut message: Message, change: impl FnOnce(&mut Message)) -> Message {
    change(&mut message);
    message
}
