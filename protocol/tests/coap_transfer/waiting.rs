//! Does a transfer wait as long as blocks are transferred, and no longer?

use std::mem::size_of;

use protocol::coap::code::Code;
use protocol::coap::exchange::{Exchange, GiveUp};
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::transfer::{Transfer, TransferReception, TransferTimeout};

use super::given::{ANSWERED, Conversation, IDLE_MS, PROCEEDS, apart, more, part, put, request};

#[test]
fn a_first_message_that_is_not_acknowledged_gives_up_as_any_request_does() {
    for length in [10, 500] {
        let mut conversation = Conversation::begin(64, put(length));
        let expected = [
            (2_000, TransferTimeout::Retransmit),
            (6_000, TransferTimeout::Retransmit),
            (14_000, TransferTimeout::Retransmit),
            (30_000, TransferTimeout::Retransmit),
            (62_000, TransferTimeout::GaveUp(GiveUp::NotAcknowledged)),
        ];
        assert_eq!(schedule(&mut conversation), expected);
        assert!(!conversation.transfer.is_under_way());
    }
}

#[test]
fn a_lost_block_is_sent_in_new_messages_until_the_transfer_is_idle() {
    let mut conversation = Conversation::begin(64, put(500));
    conversation.now_ms = 1_000;
    assert_eq!(conversation.continues(), PROCEEDS);
    assert!(conversation.transfer.is_under_way());
    let before = conversation.sent();
    let expiries = schedule(&mut conversation);

    let agains: Vec<i64> = of(&expiries, TransferTimeout::Again);
    assert_eq!(agains, [63_000, 125_000, 187_000]);
    let last = expiries.last().expect("it ends");
    assert_eq!(
        last,
        &(
            1_000 + IDLE_MS,
            TransferTimeout::GaveUp(GiveUp::NotAcknowledged)
        )
    );
    let after = conversation.sent();
    assert_eq!(after.block1(), Some(more(1, 64)));
    assert_eq!(after.payload, before.payload);
    assert_ne!(after.token, before.token);
    assert_eq!(after.message_id.0, before.message_id.0 + 3);
}

#[test]
fn each_transferred_block_renews_the_idle_time() {
    let mut conversation = Conversation::begin(64, put(640));
    for _ in 0..8 {
        assert_eq!(conversation.continues(), PROCEEDS);
        conversation.now_ms += IDLE_MS - 1;
        assert_eq!(
            conversation.transfer.handle_timeout(conversation.now_ms),
            TransferTimeout::NotYet
        );
    }
    let idle_at_ms = conversation.now_ms + 1;
    assert_eq!(conversation.transfer.next_timeout(), idle_at_ms);
    let not_acknowledged = TransferTimeout::GaveUp(GiveUp::NotAcknowledged);
    assert_eq!(
        conversation.transfer.handle_timeout(idle_at_ms),
        not_acknowledged
    );
}

#[test]
fn an_answer_that_stops_in_its_middle_is_requested_again() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    assert_eq!(conversation.receives(&part(&conversation, 0)), PROCEEDS);
    let ack = Message::acknowledgement(conversation.sent().message_id);
    assert_eq!(conversation.receives(&ack), TransferReception::Acknowledged);
    assert_eq!(conversation.transfer.next_timeout(), 93_000);
    assert_eq!(
        conversation.transfer.handle_timeout(93_000),
        TransferTimeout::Again
    );
    conversation.now_ms = 93_000;
    conversation.proceeds();
    let ack = Message::acknowledgement(conversation.sent().message_id);
    assert_eq!(conversation.receives(&ack), TransferReception::Acknowledged);
    assert_eq!(
        conversation.transfer.handle_timeout(186_000),
        TransferTimeout::Again
    );
    conversation.now_ms = 186_000;
    conversation.proceeds();
    let ack = Message::acknowledgement(conversation.sent().message_id);
    assert_eq!(conversation.receives(&ack), TransferReception::Acknowledged);
    let not_answered = TransferTimeout::GaveUp(GiveUp::NotAnswered);
    assert_eq!(
        conversation.transfer.handle_timeout(IDLE_MS - 1),
        TransferTimeout::NotYet
    );
    assert_eq!(conversation.transfer.handle_timeout(IDLE_MS), not_answered);
}

#[test]
fn a_transfer_without_proceed_ends_when_it_is_idle() {
    let mut conversation = Conversation::begin(64, request(Code::GET));
    let first = part(&conversation, 0);
    assert_eq!(
        conversation.transfer.handle(5, &conversation.rules, &first),
        PROCEEDS
    );
    assert_eq!(conversation.transfer.next_timeout(), 5 + IDLE_MS);
    let expiry = conversation.transfer.handle_timeout(5 + IDLE_MS);
    assert_eq!(expiry, TransferTimeout::GaveUp(GiveUp::NotAnswered));
}

#[test]
fn a_transfer_that_is_over_receives_and_sends_nothing() {
    let reset = |conversation: &Conversation| Message::reset(conversation.sent().message_id);
    let answer = |conversation: &Conversation| conversation.reply(Code::NOT_FOUND);
    let broken = |conversation: &Conversation| conversation.reply(Code::CONTINUE);
    let endings: [fn(&Conversation) -> Message; 3] = [reset, answer, broken];
    for ending in endings {
        for blocks_before in [0, 2] {
            let mut conversation = Conversation::begin(64, put(500));
            (0..blocks_before).for_each(|_| assert_eq!(conversation.continues(), PROCEEDS));
            let ending = ending(&conversation);
            assert_ne!(conversation.receives(&ending), TransferReception::NotMine);
            assert_is_over(&mut conversation, &ending);
        }
    }
    let mut conversation = Conversation::begin(64, put(500));
    assert_eq!(conversation.continues(), PROCEEDS);
    let late = conversation.reply(Code::CHANGED);
    schedule(&mut conversation);
    assert_is_over(&mut conversation, &late);
}

#[test]
fn a_late_message_about_an_earlier_block_is_ignored() {
    let mut conversation = Conversation::begin(64, put(500));
    let in_ack = conversation.reply(Code::CONTINUE).with_block1(more(0, 64));
    let in_non = apart(MessageKind::NonConfirmable, in_ack.clone());
    let ack = Message::acknowledgement(conversation.sent().message_id);
    let reset = Message::reset(conversation.sent().message_id);
    assert_eq!(conversation.continues(), PROCEEDS);
    for late in [in_ack, in_non, ack, reset] {
        assert_eq!(
            conversation.receives(&late),
            TransferReception::NotMine,
            "{late:?}"
        );
    }
    assert_eq!(conversation.sent().block1(), Some(more(1, 64)));
}

#[test]
fn the_first_token_stays_the_transfers_token() {
    let mut conversation = Conversation::begin(64, put(500));
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(conversation.transfer.token(), Token::from_u64(1));
    assert_eq!(conversation.sent().token, Token::from_u64(2));
    assert_eq!(
        conversation.transfer.message_id(),
        conversation.sent().message_id
    );
}

#[test]
fn a_non_confirmable_request_is_sent_in_non_confirmable_blocks() {
    let mut conversation = Conversation::begin(64, apart(MessageKind::NonConfirmable, put(100)));
    assert_eq!(conversation.continues(), PROCEEDS);
    assert_eq!(conversation.sent().kind, MessageKind::NonConfirmable);
    assert_eq!(
        conversation.transfer.handle_timeout(93_000),
        TransferTimeout::Again
    );
    conversation.proceeds();
    let done = conversation.reply(Code::CHANGED);
    assert_eq!(conversation.receives(&done), ANSWERED);
}

#[test]
fn a_request_and_answer_of_one_message_cost_what_an_exchange_costs() {
    assert!(size_of::<Transfer>() <= size_of::<Exchange>() + size_of::<usize>());
}

fn assert_is_over(conversation: &mut Conversation, message: &Message) {
    assert_eq!(conversation.receives(message), TransferReception::NotMine);
    assert_eq!(conversation.transfer.next_timeout(), i64::MAX);
    for now_ms in [IDLE_MS * 2, i64::MAX] {
        assert_eq!(
            conversation.transfer.handle_timeout(now_ms),
            TransferTimeout::NotYet
        );
    }
}

// Wakes the transfer at its timeouts, and proceeds whenever it would, until it gives up.
fn schedule(conversation: &mut Conversation) -> Vec<(i64, TransferTimeout)> {
    let mut expiries = Vec::new();
    while conversation.transfer.next_timeout() != i64::MAX {
        conversation.now_ms = conversation.transfer.next_timeout();
        let expiry = conversation.transfer.handle_timeout(conversation.now_ms);
        expiries.push((conversation.now_ms, expiry));
        if expiry == TransferTimeout::Again {
            conversation.proceeds();
        }
    }
    expiries
}

fn of(expiries: &[(i64, TransferTimeout)], wanted: TransferTimeout) -> Vec<i64> {
    let wanted = expiries.iter().filter(|(_, expiry)| *expiry == wanted);
    wanted.map(|(now_ms, _)| *now_ms).collect()
}
