//! Is a duplicate message detected, and a new one never taken for one?

use std::ops::Range;

use protocol::coap::code::Code;
use protocol::coap::dedup::{DedupWindow, Duplicate, RECENT_MAX};
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

const CREATED: Duplicate = Duplicate::Answered(Code::CREATED);

#[test]
fn a_duplicate_message_is_found_with_its_answer() {
    for what in [CREATED, Duplicate::Acknowledged, Duplicate::Rejected] {
        let mut recent = DedupWindow::default();
        assert_eq!(recent.find(0, &register(1)), None);
        recent.remember(0, &register(1), what);
        assert_eq!(recent.find(0, &register(1)), Some(what));
        let repeated = Message::decode(&register(1).encode()).expect("it is well-formed");
        assert_eq!(recent.find(1, &repeated), Some(what));
    }
}

#[test]
fn a_message_id_reused_for_another_message_is_no_duplicate() {
    let mut recent = DedupWindow::default();
    recent.remember(0, &register(1), CREATED);
    let others = [
        register(2),
        changed(register(1), |it| it.kind = MessageKind::NonConfirmable),
        changed(register(1), |it| it.code = Code::PUT),
        changed(register(1), |it| it.token = Token::EMPTY),
        changed(register(1), |it| it.token = Token::from_u64(8)),
        register(1).with_payload("</1>,</3>"),
        register(1).with_payload(""),
        register(1).with_uri_query(["b=U"]),
        register(1).with_max_age(0),
    ];
    for other in others {
        assert_eq!(recent.find(1, &other), None, "{other:?}");
    }
}

#[test]
fn options_and_payload_are_distinguished() {
    let split = |options: &[&str], payload: &str| {
        register(1)
            .with_uri_query(options.iter().copied())
            .with_payload(payload)
    };
    let mut recent = DedupWindow::default();
    recent.remember(0, &split(&["ab", "c"], "d"), CREATED);
    for (options, payload) in [(&["a", "bc"][..], "d"), (&["abc"], "d"), (&["ab"], "cd")] {
        assert_eq!(
            recent.find(1, &split(options, payload)),
            None,
            "{options:?} {payload}"
        );
    }
}

#[test]
fn a_confirmable_message_is_remembered_for_the_exchanges_lifetime() {
    let mut recent = DedupWindow::default();
    recent.remember(1_000, &register(1), CREATED);
    assert_eq!(recent.find(247_999, &register(1)), Some(CREATED));
    assert_eq!(recent.find(248_000, &register(1)), None);
}

#[test]
fn a_non_confirmable_message_is_remembered_for_a_shorter_time() {
    let send = changed(register(1), |it| it.kind = MessageKind::NonConfirmable);
    let mut recent = DedupWindow::default();
    recent.remember(1_000, &send, Duplicate::Answered(Code::CHANGED));
    assert_eq!(
        recent.find(145_999, &send),
        Some(Duplicate::Answered(Code::CHANGED))
    );
    assert_eq!(recent.find(146_000, &send), None);
}

#[test]
fn the_oldest_message_makes_room() {
    let mut recent = DedupWindow::default();
    remember_all(&mut recent, 0, 0..8);
    assert_eq!(known(&recent, 0, 0..8), [0, 1, 2, 3, 4, 5, 6, 7]);
    remember_all(&mut recent, 0, 8..10);
    assert_eq!(known(&recent, 0, 0..10), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(known(&recent, 0, 0..10).len(), RECENT_MAX);
}

#[test]
fn messages_past_their_time_make_room_first() {
    let mut recent = DedupWindow::default();
    remember_all(&mut recent, 200_000, 0..1);
    let send = |id| changed(register(id), |it| it.kind = MessageKind::NonConfirmable);
    for id in 1..8 {
        recent.remember(200_000, &send(id), Duplicate::Acknowledged);
    }
    remember_all(&mut recent, 400_000, 8..15);
    assert_eq!(
        known(&recent, 400_000, 0..15),
        [0, 8, 9, 10, 11, 12, 13, 14]
    );
}

#[test]
fn the_last_answer_to_a_message_counts_and_takes_no_more_room() {
    let mut recent = DedupWindow::default();
    remember_all(&mut recent, 0, 0..8);
    recent.remember(5, &register(3), Duplicate::Rejected);
    assert_eq!(recent.find(6, &register(3)), Some(Duplicate::Rejected));
    assert_eq!(known(&recent, 6, 0..8).len(), 8);
}

#[test]
fn a_peer_that_starts_again_is_unknown() {
    let mut recent = DedupWindow::default();
    remember_all(&mut recent, 0, 0..8);
    recent.forget_all();
    assert!(known(&recent, 0, 0..8).is_empty());
}

#[test]
fn a_message_is_remembered_no_longer_and_no_shorter_for_those_that_follow() {
    let mut recent = DedupWindow::default();
    recent.remember(1_000, &register(1), CREATED);
    recent.remember(1_001, &register(2), CREATED);
    recent.remember(200_000, &register(3), CREATED);
    assert_eq!(known(&recent, 247_999, 0..8), [1, 2, 3]);
    recent.remember(247_999, &register(4), CREATED);
    assert_eq!(known(&recent, 247_999, 0..8), [1, 2, 3, 4]);
    assert_eq!(known(&recent, 248_000, 0..8), [2, 3, 4]);
    assert_eq!(known(&recent, 248_001, 0..8), [3, 4]);
    assert_eq!(known(&recent, 446_999, 0..8), [3, 4]);
    assert_eq!(known(&recent, 447_000, 0..8), [4]);
}

#[test]
fn a_peer_costs_thirteen_words_and_no_heap() {
    assert_eq!(size_of::<DedupWindow>(), 104);
    assert!(!std::mem::needs_drop::<DedupWindow>());
}

fn remember_all(recent: &mut DedupWindow, now_ms: i64, ids: Range<u16>) {
    for id in ids {
        recent.remember(now_ms, &register(id), CREATED);
    }
}

fn known(recent: &DedupWindow, now_ms: i64, ids: Range<u16>) -> Vec<u16> {
    ids.filter(|id| recent.find(now_ms, &register(*id)).is_some())
        .collect()
}

fn register(message_id: u16) -> Message {
    let token = Token::from_u64(7);
    Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(message_id),
        token,
    )
    .with_uri_path(["rd"])
    .with_uri_query(["ep=meter-1", "lt=300"])
    .with_payload("</1>")
}

fn changed(mut message: Message, change: impl FnOnce(&mut Message)) -> Message {
    change(&mut message);
    message
}
