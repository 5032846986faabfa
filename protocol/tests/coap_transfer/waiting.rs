//! Does a transfer wait for as long as blocks get across, and no longer?

use std::mem::size_of;

use protocol::coap::code::Code;
use protocol::coap::exchange::{Exchange, GiveUp};
use protocol::coap::message::{Kind, Message};
use protocol::coap::token::Token;
use protocol::coap::transfer::{Expiry, Receipt, Transfer};

use super::given::{ANSWERED, IDLE_MS, PROCEEDS, Talk, apart, more, part, put, request};

#[test]
fn a_first_message_that_is_not_acknowledged_gives_up_as_any_request_does() {
    for length in [10, 500] {
        let mut talk = Talk::begin(64, put(length));
        let expected = [
            (2_000, Expiry::Retransmit),
            (6_000, Expiry::Retransmit),
            (14_000, Expiry::Retransmit),
            (30_000, Expiry::Retransmit),
            (62_000, Expiry::GaveUp(GiveUp::NotAcknowledged)),
        ];
        assert_eq!(schedule(&mut talk), expected);
        assert!(!talk.transfer.is_under_way());
    }
}

#[test]
fn a_block_that_is_lost_goes_again_in_fresh_messages_until_the_transfer_is_idle() {
    let mut talk = Talk::begin(64, put(500));
    talk.now_ms = 1_000;
    assert_eq!(talk.continues(), PROCEEDS);
    assert!(talk.transfer.is_under_way());
    let before = talk.sent();
    let expiries = schedule(&mut talk);

    let agains: Vec<i64> = of(&expiries, Expiry::Again);
    assert_eq!(agains, [63_000, 125_000, 187_000]);
    let last = expiries.last().expect("it ends");
    assert_eq!(
        last,
        &(1_000 + IDLE_MS, Expiry::GaveUp(GiveUp::NotAcknowledged))
    );
    let after = talk.sent();
    assert_eq!(after.block1(), Some(more(1, 64)));
    assert_eq!(after.payload, before.payload);
    assert_ne!(after.token, before.token);
    assert_eq!(after.message_id.0, before.message_id.0 + 3);
}

#[test]
fn each_block_that_gets_across_renews_the_time() {
    let mut talk = Talk::begin(64, put(640));
    for _ in 0..8 {
        assert_eq!(talk.continues(), PROCEEDS);
        talk.now_ms += IDLE_MS - 1;
        assert_eq!(talk.transfer.handle_timeout(talk.now_ms), Expiry::NotYet);
    }
    let idle_at_ms = talk.now_ms + 1;
    assert_eq!(talk.transfer.next_timeout(), idle_at_ms);
    let not_acknowledged = Expiry::GaveUp(GiveUp::NotAcknowledged);
    assert_eq!(talk.transfer.handle_timeout(idle_at_ms), not_acknowledged);
}

#[test]
fn an_answer_that_stops_in_its_middle_is_asked_for_again() {
    let mut talk = Talk::begin(64, request(Code::GET));
    assert_eq!(talk.hears(&part(&talk, 0)), PROCEEDS);
    let ack = Message::acknowledgement(talk.sent().message_id);
    assert_eq!(talk.hears(&ack), Receipt::Acknowledged);
    assert_eq!(talk.transfer.next_timeout(), 93_000);
    assert_eq!(talk.transfer.handle_timeout(93_000), Expiry::Again);
    talk.now_ms = 93_000;
    talk.proceeds();
    let ack = Message::acknowledgement(talk.sent().message_id);
    assert_eq!(talk.hears(&ack), Receipt::Acknowledged);
    assert_eq!(talk.transfer.handle_timeout(186_000), Expiry::Again);
    talk.now_ms = 186_000;
    talk.proceeds();
    let ack = Message::acknowledgement(talk.sent().message_id);
    assert_eq!(talk.hears(&ack), Receipt::Acknowledged);
    let not_answered = Expiry::GaveUp(GiveUp::NotAnswered);
    assert_eq!(talk.transfer.handle_timeout(IDLE_MS - 1), Expiry::NotYet);
    assert_eq!(talk.transfer.handle_timeout(IDLE_MS), not_answered);
}

#[test]
fn a_transfer_nobody_proceeds_with_ends_when_it_is_idle() {
    let mut talk = Talk::begin(64, request(Code::GET));
    let first = part(&talk, 0);
    assert_eq!(talk.transfer.handle(5, &talk.rules, &first), PROCEEDS);
    assert_eq!(talk.transfer.next_timeout(), 5 + IDLE_MS);
    let expiry = talk.transfer.handle_timeout(5 + IDLE_MS);
    assert_eq!(expiry, Expiry::GaveUp(GiveUp::NotAnswered));
}

#[test]
fn a_transfer_that_is_over_hears_and_sends_nothing() {
    let reset = |talk: &Talk| Message::reset(talk.sent().message_id);
    let answer = |talk: &Talk| talk.reply(Code::NOT_FOUND);
    let broken = |talk: &Talk| talk.reply(Code::CONTINUE);
    let endings: [fn(&Talk) -> Message; 3] = [reset, answer, broken];
    for ending in endings {
        for blocks_before in [0, 2] {
            let mut talk = Talk::begin(64, put(500));
            (0..blocks_before).for_each(|_| assert_eq!(talk.continues(), PROCEEDS));
            let ending = ending(&talk);
            assert_ne!(talk.hears(&ending), Receipt::NotMine);
            assert_is_over(&mut talk, &ending);
        }
    }
    let mut talk = Talk::begin(64, put(500));
    assert_eq!(talk.continues(), PROCEEDS);
    let late = talk.reply(Code::CHANGED);
    schedule(&mut talk);
    assert_is_over(&mut talk, &late);
}

#[test]
fn a_late_word_about_an_earlier_block_is_not_about_this_one() {
    let mut talk = Talk::begin(64, put(500));
    let in_ack = talk.reply(Code::CONTINUE).with_block1(more(0, 64));
    let in_non = apart(Kind::NonConfirmable, in_ack.clone());
    let ack = Message::acknowledgement(talk.sent().message_id);
    let reset = Message::reset(talk.sent().message_id);
    assert_eq!(talk.continues(), PROCEEDS);
    for late in [in_ack, in_non, ack, reset] {
        assert_eq!(talk.hears(&late), Receipt::NotMine, "{late:?}");
    }
    assert_eq!(talk.sent().block1(), Some(more(1, 64)));
}

#[test]
fn the_first_token_stays_the_transfers_token() {
    let mut talk = Talk::begin(64, put(500));
    assert_eq!(talk.continues(), PROCEEDS);
    assert_eq!(talk.transfer.token(), Token::from_u64(1));
    assert_eq!(talk.sent().token, Token::from_u64(2));
    assert_eq!(talk.transfer.message_id(), talk.sent().message_id);
}

#[test]
fn a_non_confirmable_request_goes_in_non_confirmable_blocks() {
    let mut talk = Talk::begin(64, apart(Kind::NonConfirmable, put(100)));
    assert_eq!(talk.continues(), PROCEEDS);
    assert_eq!(talk.sent().kind, Kind::NonConfirmable);
    assert_eq!(talk.transfer.handle_timeout(93_000), Expiry::Again);
    talk.proceeds();
    let done = talk.reply(Code::CHANGED);
    assert_eq!(talk.hears(&done), ANSWERED);
}

#[test]
fn a_request_and_answer_of_one_message_cost_what_an_exchange_costs() {
    assert!(size_of::<Transfer>() <= size_of::<Exchange>() + size_of::<usize>());
}

fn assert_is_over(talk: &mut Talk, message: &Message) {
    assert_eq!(talk.hears(message), Receipt::NotMine);
    assert_eq!(talk.transfer.next_timeout(), i64::MAX);
    for now_ms in [IDLE_MS * 2, i64::MAX] {
        assert_eq!(talk.transfer.handle_timeout(now_ms), Expiry::NotYet);
    }
}

// Wakes the transfer when it asks for it, and goes on whenever it would, until it gives up.
fn schedule(talk: &mut Talk) -> Vec<(i64, Expiry)> {
    let mut expiries = Vec::new();
    while talk.transfer.next_timeout() != i64::MAX {
        talk.now_ms = talk.transfer.next_timeout();
        let expiry = talk.transfer.handle_timeout(talk.now_ms);
        expiries.push((talk.now_ms, expiry));
        if expiry == Expiry::Again {
            talk.proceeds();
        }
    }
    expiries
}

fn of(expiries: &[(i64, Expiry)], wanted: Expiry) -> Vec<i64> {
    let wanted = expiries.iter().filter(|(_, expiry)| *expiry == wanted);
    wanted.map(|(now_ms, _)| *now_ms).collect()
}
