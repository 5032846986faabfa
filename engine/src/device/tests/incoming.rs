//! Uplinks in several blocks are handled once they are complete, as if they had come in one
//! datagram (RFC 7959 section 2.3).

use protocol::coap::block::{Block, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};

use super::vocabulary::{
    DeviceFixture, HOME, Lines, MINUTE, OBJECTS, S, all, answers, block, data_published,
    first_contact, logged, observing, published, read, refused, sent, without_record,
};
use crate::device::snapshot::Presence;
use crate::limits::{Limits, TRANSFER_IDLE_MS};
use crate::step_event::{NotificationOutcome, StepEventKind, UplinkKind};

const AWAY: &str = "10.0.0.1:7777";
const ELSEWHERE: &str = "10.0.0.2:5683";

/// A Send of two blocks.
const WARM: &str = r#"[{"n":"/3303/0/5700","v":21.5}]"#;

/// Why a block is refused that does not continue a body.
const MISSING: &str = "the blocks before this one are missing";

/// Data of three blocks.
const LONG: &str = "0123456789abcdef0123456789ABCDEF!";

#[test]
fn a_registration_in_blocks_is_answered_with_its_location_after_the_last_block() {
    let mut fixture = DeviceFixture::new();
    let whole = fixture.registration(&["lwm2m=1.1", "lt=86400", "b=U"], OBJECTS);
    let blocks = fixture.in_blocks(&whole);
    assert_eq!(blocks.len(), 2);
    let [first, last] = [&blocks[0], &blocks[1]];
    let expected = sent("ACK 2.31 block1 0/16 more to 102");
    assert_eq!(fixture.receives(HOME, first), expected);
    assert_eq!(fixture.snapshot().presence, Presence::Unregistered);
    let effects = fixture.receives(HOME, last);
    let (answer, before) = effects.split_last().unwrap();
    assert_eq!(answer, &sent("ACK 2.01 block1 1/16 L1 to 103")[0]);
    let mut other = DeviceFixture::new();
    let at_once = other.register();
    assert_eq!(before, &at_once[..at_once.len() - 1]);
    assert_eq!(fixture.snapshot().presence, Presence::Awake);
    assert_eq!(&fixture.receives(HOME, last)[0], answer, "repeated");
    let offered = &fixture.snapshot().registration.unwrap().links;
    assert_eq!(*offered, other.snapshot().registration.unwrap().links);
}

#[test]
fn an_update_in_blocks_changes_what_the_device_offers() {
    let mut fixture = DeviceFixture::registered();
    let objects = "</1/0>,</3/0>,</3303/0>,</3304/0>";
    let whole = fixture.updating(&[], objects);
    let effects = say(&mut fixture, &whole);
    let answer = sent("ACK 2.04 block1 2/16 to 105");
    assert_eq!(effects.last(), answer.last());
    assert_eq!(effects[..1], observing(0, &[]));
    let links = &fixture.snapshot().registration.unwrap().links;
    assert!(links.offers("/3304/0".parse().unwrap()));
}

#[test]
fn a_send_in_blocks_is_published_once() {
    let mut fixture = DeviceFixture::registered();
    let whole = fixture.sending(WARM);
    let blocks = fixture.in_blocks(&whole);
    let expected = sent("ACK 2.31 block1 0/16 more to 103");
    assert_eq!(fixture.at(S).receives(HOME, &blocks[0]), expected);
    assert_eq!(fixture.step_events(), [], "nothing was sent yet");
    let acknowledgement = sent("ACK 2.04 block1 1/16 to 104");
    let expected = all([
        published("/3303/0/5700=21.5 for sent"),
        acknowledgement.clone(),
    ]);
    assert_eq!(fixture.receives(HOME, &blocks[1]), expected);
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Sent(NotificationOutcome::Published)]
    );
    assert_eq!(
        fixture.receives(HOME, &blocks[1]),
        acknowledgement,
        "repeated"
    );
    let mut late = blocks[1].clone();
    late.message_id = fixture.device_id();
    assert_eq!(answers(&fixture.receives(HOME, &late)), incomplete(105));
}

#[test]
fn data_in_blocks_is_published_once_it_is_whole() {
    let mut fixture = DeviceFixture::new();
    let blocks = data_in_blocks(&mut fixture);
    let first = sent("ACK 2.31 block1 0/16 more to 102");
    assert_eq!(fixture.receives(HOME, &blocks[0]), first);
    let second = sent("ACK 2.31 block1 1/16 more to 103");
    assert_eq!(fixture.receives(HOME, &blocks[1]), second);
    let expected = all([
        first_contact(S, HOME, "CoAP"),
        data_published(LONG),
        sent("ACK 2.04 block1 2/16 to 104"),
    ]);
    assert_eq!(fixture.at(S).receives(HOME, &blocks[2]), expected);
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::DataSent(
            crate::action::Protocol::Coap,
            NotificationOutcome::Published
        )]
    );
}

#[test]
fn non_confirmable_blocks_are_answered_too() {
    let mut fixture = DeviceFixture::registered();
    let mut whole = fixture.sending(WARM);
    whole.kind = MessageKind::NonConfirmable;
    let blocks = fixture.in_blocks(&whole);
    let effects = fixture.receives(HOME, &blocks[0]);
    assert!(
        effects[0].contains("NON 2.31 block1 0/16 more"),
        "{effects:?}"
    );
    assert_eq!(fixture.receives(HOME, &blocks[0]), Lines::new(), "repeated");
    let effects = fixture.receives(HOME, &blocks[1]);
    assert_eq!(effects[..1], published("/3303/0/5700=21.5 for sent"));

    let mut fixture = DeviceFixture::new();
    let mut first = data_in_blocks(&mut fixture).remove(0);
    first.kind = MessageKind::NonConfirmable;
    assert_eq!(fixture.receives(AWAY, &first).len(), 1);
    let repeated = fixture.receives(AWAY, &first);
    assert_eq!(
        repeated,
        Lines::new(),
        "of a device that never sent anything"
    );
}

#[test]
fn a_repeated_block_is_answered_again() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    let first = sent("ACK 2.31 block1 0/16 more to 103");
    assert_eq!(fixture.receives(HOME, &blocks[0]), first);
    assert_eq!(fixture.receives(HOME, &blocks[0]), first);
    let mut resent = blocks[1].clone();
    resent.message_id = fixture.device_id();
    let second = sent("ACK 2.31 block1 1/16 more to 104");
    assert_eq!(fixture.receives(HOME, &blocks[1]), second);
    let again = sent("ACK 2.31 block1 1/16 more to 106");
    assert_eq!(
        fixture.receives(HOME, &resent),
        again,
        "in a message of its own"
    );
    let effects = fixture.receives(HOME, &blocks[2]);
    assert!(effects.contains(&data_published(LONG)[0]), "{effects:?}");
}

#[test]
fn a_block_out_of_order_ends_the_body() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    assert_eq!(
        answers(&fixture.receives(HOME, &blocks[1])),
        incomplete(104)
    );
    fixture.receives(HOME, &blocks[0]);
    assert_eq!(
        answers(&fixture.receives(HOME, &blocks[2])),
        incomplete(105)
    );
    let mut second = blocks[1].clone();
    second.message_id = fixture.device_id();
    assert_eq!(answers(&fixture.receives(HOME, &second)), incomplete(106));
}

#[test]
fn blocks_of_different_requests_are_not_assembled_together() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    let other = fixture.data("other", LONG);
    let others = fixture.in_blocks(&other);
    fixture.receives(HOME, &blocks[0]);
    assert_eq!(
        answers(&fixture.receives(HOME, &others[1])),
        incomplete(108)
    );
    let sending = fixture.sending(LONG);
    let sending = fixture.in_blocks(&sending);
    fixture.receives(HOME, &others[0]);
    assert_eq!(
        answers(&fixture.receives(HOME, &sending[1])),
        incomplete(112),
        "of another path"
    );
}

#[test]
fn a_first_block_begins_a_new_body() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    let other = fixture.data("t", "fedcba98765432100");
    let others = fixture.in_blocks(&other);
    fixture.receives(HOME, &blocks[0]);
    fixture.receives(HOME, &others[0]);
    let effects = fixture.receives(HOME, &others[1]);
    let expected = data_published("fedcba98765432100");
    assert!(effects.contains(&expected[0]), "{effects:?}");
}

#[test]
fn a_stray_block_from_another_peer_does_not_end_the_body() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    fixture.receives(HOME, &blocks[0]);
    let stray = format!("send {AWAY}: ACK 4.08 {MISSING:?} to 104");
    assert_eq!(answers(&fixture.receives(AWAY, &blocks[1])), [stray]);
    fixture.receives(HOME, &blocks[1]);
    let effects = fixture.receives(HOME, &blocks[2]);
    assert!(effects.contains(&data_published(LONG)[0]), "{effects:?}");
}

#[test]
fn of_two_peers_the_body_that_began_last_is_assembled() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    fixture.receives(HOME, &blocks[0]);
    fixture.receives(AWAY, &blocks[0]);
    assert_eq!(
        answers(&fixture.receives(HOME, &blocks[1])),
        incomplete(104)
    );
    fixture.receives(AWAY, &blocks[1]);
    let effects = fixture.receives(AWAY, &blocks[2]);
    assert!(effects.contains(&data_published(LONG)[0]), "{effects:?}");
}

#[test]
fn a_body_that_is_too_long_is_refused_as_soon_as_that_is_known() {
    let limits = Limits {
        data_bytes_max: 30,
        ..Limits::default()
    };
    let mut fixture = DeviceFixture::within(limits);
    fixture.register();
    let blocks = data_in_blocks(&mut fixture);
    fixture.receives(HOME, &blocks[0]);
    let why = "the body exceeds the limit of 30 bytes";
    let expected = all([
        unreadable(why, "0123456789ABCDEF"),
        refused("4.13 size1 30", why, 104),
    ]);
    let effects = fixture.receives(HOME, &blocks[1]);
    assert_eq!(without_record(effects), expected);
    assert_eq!(
        answers(&fixture.receives(HOME, &blocks[2])),
        incomplete(105)
    );

    let mut fixture = DeviceFixture::within(limits);
    fixture.register();
    let first = data_in_blocks(&mut fixture).remove(0).with_size1(33);
    let effects = without_record(fixture.receives(HOME, &first));
    let answer = refused("4.13 size1 30", why, 103);
    assert_eq!(
        effects.last(),
        answer.last(),
        "the device stated the length"
    );
}

#[test]
fn a_block_that_contradicts_itself_is_a_bad_request() {
    for (block, payload) in [
        (Block::from_value(0b1111), LONG),
        (block(0, More::Yes), "short"),
        (block(0, More::Yes), ""),
        (block(0, More::No), LONG),
    ] {
        let mut fixture = DeviceFixture::registered();
        let message = fixture.data("t", payload).with_block1(block);
        let expected = refused("4.00", "the block does not have the size it states", 102);
        let effects = fixture.receives(HOME, &message);
        assert_eq!(answers(&effects), expected, "{block:?}");
        assert_eq!(fixture.kind_of(&message), UplinkKind::Repeated);
    }
}

#[test]
fn an_unfinished_body_is_dropped_despite_other_messages() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    fixture.receives(HOME, &blocks[0]);
    fixture.at(200 * S).posts("else");
    assert_eq!(fixture.deadline(), Some(TRANSFER_IDLE_MS));
    fixture.at(TRANSFER_IDLE_MS).timeout();
    assert_eq!(
        answers(&fixture.receives(HOME, &blocks[1])),
        incomplete(104)
    );
}

#[test]
fn each_block_renews_the_timeout_of_the_body() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    for (at, block) in [0, 200 * S, 400 * S].into_iter().zip(&blocks) {
        fixture.at(at).timeout();
        fixture.receives(HOME, block);
    }
    assert_eq!(fixture.events().len(), 1);
}

#[test]
fn nothing_of_a_finished_body_stays_in_memory() {
    let mut fixture = DeviceFixture::new();
    let blocks = data_in_blocks(&mut fixture);
    fixture.receives(HOME, &blocks[0]);
    assert!(!fixture.device().is_idle());
    fixture.next_deadline();
    assert!(fixture.device().is_idle());
}

#[test]
fn the_next_block_of_a_dropped_body_is_answered_that_blocks_are_missing() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    fixture.receives(HOME, &blocks[0]);
    assert_eq!(fixture.device().unfinished_bytes(), 16);
    let none: [&str; 0] = [];
    assert_eq!(fixture.drop_unfinished(), none);
    assert_eq!(fixture.device().unfinished_bytes(), 0);
    assert_eq!(
        answers(&fixture.receives(HOME, &blocks[1])),
        incomplete(104)
    );
    for block in &blocks {
        let mut again = block.clone();
        again.message_id = fixture.device_id();
        fixture.receives(HOME, &again);
    }
    assert_eq!(fixture.events().len(), 1, "sent again from its beginning");
    assert_eq!(fixture.device().unfinished_bytes(), 0);
}

#[test]
fn no_body_is_assembled_for_a_sender_who_would_be_rejected() {
    let mut fixture = DeviceFixture::registered();
    let registration = fixture.registration(&["lwm2m=1.1"], OBJECTS);
    let update = fixture.request(Code::POST, &["rd", "0123456789abcdef"]);
    let sending = fixture.sending(WARM);
    let data = fixture.data("t", LONG);
    let getting = fixture.request(Code::GET, &[]);
    let cases = [
        (ELSEWHERE, registration, "4.03"),
        (
            ELSEWHERE,
            update.with_payload(LONG),
            "4.04 \"register again\"",
        ),
        (
            AWAY,
            sending,
            "4.04 \"not registered at this address and port\"",
        ),
        (ELSEWHERE, data, "4.01 \"unknown address\""),
        (HOME, getting.with_payload(LONG), "4.05 \"no such method\""),
    ];
    for (from, whole, code) in cases {
        let first = fixture.in_blocks(&whole).remove(0);
        let effects = fixture.receives(from, &first);
        let answer = format!("send {from}: ACK {code} to {}", first.message_id.0);
        assert_eq!(effects.last(), Some(&answer));
        let busy = fixture.device().busy.as_ref();
        assert!(
            busy.is_none_or(|busy| busy.incoming_body.is_none()),
            "{code}"
        );
    }
}

#[test]
fn a_restart_drops_an_unfinished_body() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    fixture.receives(HOME, &blocks[0]);
    fixture.restart();
    assert_eq!(
        answers(&fixture.receives(HOME, &blocks[1])),
        incomplete(104)
    );
}

#[test]
fn a_device_is_awake_while_it_sends_blocks_and_releases_waiting_requests_at_the_end() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.at(93 * S).ask(read("/3/0/9"));
    let blocks = data_in_blocks(&mut fixture);
    let answer = sent("ACK 2.31 block1 0/16 more to 103");
    assert_eq!(fixture.at(500 * S).receives(HOME, &blocks[0]), answer);
    assert_eq!(fixture.snapshot().presence, Presence::Awake);
    fixture.receives(HOME, &blocks[1]);
    let effects = fixture.receives(HOME, &blocks[2]);
    let expected = sent("CON GET /3/0/9 accept 0 m1");
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn a_block_is_counted_as_a_block() {
    let mut fixture = DeviceFixture::registered();
    let blocks = data_in_blocks(&mut fixture);
    let kinds: Vec<UplinkKind> = blocks.iter().map(|it| fixture.kind_of(it)).collect();
    assert_eq!(
        kinds,
        [
            UplinkKind::BlockPart,
            UplinkKind::BlockPart,
            UplinkKind::CoapData
        ]
    );
}

#[test]
fn a_body_that_cannot_be_decoded_is_logged_whole() {
    let mut fixture = DeviceFixture::registered();
    let whole = fixture.sending(LONG);
    let effects = say(fixture.at(MINUTE), &whole);
    let logged = format!("Kept: {LONG:?}");
    assert!(effects[0].ends_with(&logged), "{effects:?}");
    assert!(effects.last().unwrap().contains("ACK 4.00"), "{effects:?}");
}

/// The device sends a message in blocks. Returns the effects of the last block.
fn say(fixture: &mut DeviceFixture, whole: &Message) -> Lines {
    let blocks = fixture.in_blocks(whole);
    let effects = blocks.iter().map(|block| fixture.receives(HOME, block));
    effects.last().unwrap()
}

fn data_in_blocks(fixture: &mut DeviceFixture) -> Vec<Message> {
    let whole = fixture.data("t", LONG);
    fixture.in_blocks(&whole)
}

fn incomplete(id: u16) -> Lines {
    refused("4.08", MISSING, id)
}

fn unreadable(why: &str, bytes: &str) -> Lines {
    logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: {why}. \
         Further rejections within one minute are not logged. Kept: {bytes:?}"
    ))
}
