//! Notifications that continue in further blocks are published, and acknowledged, once the whole
//! value was fetched (RFC 7959 section 2.6).

use protocol::coap::block::More::{No, Yes};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, Lines, S, all, block, ended, logged, moved, observe, observing,
    published, read, sent, small_blocks,
};
use crate::action::Status::{InProgress, Scheduled, Succeeded};
use crate::step_event::{
    ExchangeOutcome, ExchangePurpose, NotificationOutcome, StepEventKind, UplinkKind,
};

const MAKER: &str = "/3/0/0";

const BEGINS: &str = "0123456789abcdef";

#[test]
fn a_notification_in_blocks_is_fetched_published_and_then_acknowledged() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    assert_eq!(
        fixture.at(S).receives(HOME, &notification),
        sent("CON GET /3/0/0 m2")
    );
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Begun(ExchangePurpose::Observation)]
    );
    assert_eq!(
        next_block(&mut fixture),
        sent("CON GET /3/0/0 block2 1/16 m3")
    );
    let expected = all([published(PUBLISHED), sent("ACK to 102")]);
    assert_eq!(last_block(&mut fixture), expected);
    let events = [
        StepEventKind::Ended(ExchangeOutcome::Success),
        StepEventKind::Notified(NotificationOutcome::Published),
    ];
    assert_eq!(fixture.step_events(), events);
    assert_eq!(
        fixture.receives(HOME, &notification),
        sent("ACK to 102"),
        "repeated"
    );
    assert!(fixture.device().busy.is_none(), "nothing is left of it");
}

#[test]
fn a_notification_is_fetched_in_the_format_it_came_in() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::NonConfirmable, 11);
    let notification = notification.with_content_format(ContentFormat::TEXT);
    let effects = fixture.receives(HOME, &notification);
    assert_eq!(effects, sent("CON GET /3/0/0 accept 0 m2"));
    next_block(&mut fixture);
    assert_eq!(
        last_block(&mut fixture),
        published(PUBLISHED),
        "and needs nothing back"
    );
}

#[test]
fn a_fetched_value_that_now_fits_one_message_is_published() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    let expected = all([
        published("/3/0/0=new for observed /3/0/0"),
        sent("ACK to 102"),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "new"), expected);
}

#[test]
fn a_notification_repeated_during_its_fetch_is_fetched_once() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    assert_eq!(fixture.at(S).receives(HOME, &notification), Lines::new());
    next_block(&mut fixture);
    assert_eq!(fixture.receives(HOME, &notification), Lines::new());
    let expected = all([published(PUBLISHED), sent("ACK to 102")]);
    assert_eq!(last_block(&mut fixture), expected);
    assert_eq!(fixture.timeout(), Lines::new(), "nothing is to be fetched");
}

#[test]
fn of_several_waiting_notifications_the_newest_is_fetched() {
    let mut fixture = observed();
    fixture.ask(read("/3/0/9"));
    for sequence in [11, 12] {
        let notification = begins(&mut fixture, MessageKind::Confirmable, sequence);
        assert_eq!(fixture.receives(HOME, &notification), Lines::new());
    }
    let effects = fixture.answer(Code::NOT_FOUND, "");
    assert!(effects.ends_with(&sent("CON GET /3/0/0 m3")), "{effects:?}");
    next_block(&mut fixture);
    let expected = all([published(PUBLISHED), sent("ACK to 103")]);
    assert_eq!(last_block(&mut fixture), expected, "published once");
}

#[test]
fn an_outdated_notification_is_not_fetched() {
    let mut fixture = observed();
    let newer = fixture.notification_of(MAKER, MessageKind::Confirmable, 12);
    fixture.receives(HOME, &newer.with_payload("new"));
    let older = begins(&mut fixture, MessageKind::Confirmable, 11);
    assert_eq!(fixture.receives(HOME, &older), sent("ACK to 103"));
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Notified(NotificationOutcome::Stale)]
    );
}

#[test]
fn a_notification_that_cannot_be_fetched_is_logged_and_not_acknowledged() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    let entry = logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: the rest of a \
         notification could not be fetched: the device answered 4.04. \
         Further rejections within one minute are not logged. Kept: {BEGINS:?}"
    ));
    assert_eq!(fixture.at(S).answer(Code::NOT_FOUND, ""), entry);
    let events = [
        StepEventKind::Ended(ExchangeOutcome::ClientError),
        StepEventKind::Notified(NotificationOutcome::Unusable),
    ];
    assert_eq!(fixture.step_events(), events);
    let again = sent("CON GET /3/0/0 m3");
    assert_eq!(
        fixture.receives(HOME, &notification),
        again,
        "it came again"
    );
    assert_eq!(fixture.observations(), ["/3/0/0 Held"]);
}

#[test]
fn after_an_unanswered_fetch_the_next_notification_is_fetched() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    while fixture.deadline() < Some(3_600 * S) {
        let effects = fixture.next_deadline();
        assert!(
            !effects.iter().any(|line| line.contains("ACK")),
            "{effects:?}"
        );
    }
    assert!(fixture.device().busy.is_none(), "nothing is left of it");
    let notification = begins(&mut fixture, MessageKind::Confirmable, 12);
    let effects = fixture.at(7_200 * S).receives(HOME, &notification);
    assert_eq!(effects, sent("CON GET /3/0/0 m3"));
}

#[test]
fn notifications_of_several_paths_are_fetched_one_after_the_other() {
    let mut fixture = observed();
    fixture.ask(observe("/3/0/1"));
    fixture.agree(10, "a");
    let first = begins(&mut fixture, MessageKind::Confirmable, 11);
    let second = fixture
        .notification_of("/3/0/1", MessageKind::Confirmable, 11)
        .with_block2(block(0, Yes))
        .with_payload(BEGINS);
    fixture.receives(HOME, &first);
    assert_eq!(fixture.receives(HOME, &second), Lines::new());
    next_block(&mut fixture);
    let expected = all([
        published(PUBLISHED),
        sent("ACK to 102"),
        sent("CON GET /3/0/1 m5"),
    ]);
    assert_eq!(last_block(&mut fixture), expected);
    let expected = all([
        published("/3/0/1=b for observed /3/0/1"),
        sent("ACK to 103"),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "b"), expected);
}

#[test]
fn an_exchange_in_flight_ends_before_a_fetch_begins() {
    let mut fixture = observed();
    fixture.ask(read("/3/0/9"));
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    assert_eq!(fixture.receives(HOME, &notification), Lines::new());
    let expected = all([
        published("/3/0/9=87 for #2"),
        ended("#2", Succeeded, r#"1/1 "205" "87""#),
        sent("CON GET /3/0/0 m3"),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "87"), expected);
}

#[test]
fn waiting_requests_are_released_once_the_notification_is_whole() {
    let mut fixture = observed();
    fixture.ask(read("/3/0/9").when_active());
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    assert_eq!(
        fixture.receives(HOME, &notification),
        sent("CON GET /3/0/0 m2")
    );
    next_block(&mut fixture);
    let expected = all([
        published(PUBLISHED),
        sent("ACK to 102"),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m4"),
    ]);
    assert_eq!(last_block(&mut fixture), expected);
}

#[test]
fn an_error_notification_ends_the_observation_even_with_a_payload_in_blocks() {
    let mut fixture = observed();
    let mut failure = begins(&mut fixture, MessageKind::Confirmable, 11);
    failure.code = Code::NOT_FOUND;
    let expected = all([
        observing(S, &[]),
        logged(
            "LwM2M[ObservationLost] Error: The observation of /3/0/0 was lost: \
                the device answered 4.04.",
        ),
        sent("ACK to 102"),
    ]);
    assert_eq!(fixture.at(S).receives(HOME, &failure), expected);
}

#[test]
fn a_last_value_in_blocks_is_published_and_ends_the_observation() {
    let mut fixture = observed();
    let token = fixture.token_observing(MAKER);
    let id = fixture.device_id();
    let last = Message::separate(MessageKind::Confirmable, Code::CONTENT, id, token)
        .with_block2(block(0, Yes))
        .with_payload(BEGINS);
    fixture.receives(HOME, &last);
    next_block(&mut fixture);
    let expected = all([
        published(PUBLISHED),
        observing(0, &[]),
        logged(
            "LwM2M[ObservationLost] Error: The observation of /3/0/0 was lost: \
                the device ended the observation.",
        ),
        sent("ACK to 102"),
    ]);
    assert_eq!(last_block(&mut fixture), expected);
}

#[test]
fn a_device_that_leaves_during_a_fetch_is_not_requested_further() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    let effects = fixture.at(S).deregister();
    assert!(
        !effects.iter().any(|line| line.contains("/3/0/0 m")),
        "{effects:?}"
    );
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Ended(ExchangeOutcome::DeviceGone)]
    );
    let effects = fixture.at(2 * S).register();
    let again = effects.last().unwrap();
    assert!(again.contains("GET /3/0/0 observe 0"), "{effects:?}");
}

#[test]
fn a_notification_in_blocks_without_an_observation_is_reset() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe(BATTERY));
    let notification = fixture
        .separate(MessageKind::NonConfirmable, Code::CONTENT)
        .with_observe(3)
        .with_block2(block(0, Yes))
        .with_payload(BEGINS);
    fixture.answer(Code::NOT_FOUND, "");
    assert_eq!(fixture.receives(HOME, &notification), sent("RST to 102"));
}

#[test]
fn the_first_block_of_a_notification_is_counted_as_a_block() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::NonConfirmable, 11);
    assert_eq!(fixture.kind_of(&notification), UplinkKind::BlockPart);
}

const PUBLISHED: &str = "/3/0/0=0123456789abcdef! for observed /3/0/0";

/// A device that registered at the start, with an observation of its manufacturer.
fn observed() -> DeviceFixture {
    let mut fixture = DeviceFixture::within(small_blocks());
    fixture.register();
    fixture.begin_observing(MAKER);
    fixture
}

/// A notification that continues in further blocks.
fn begins(fixture: &mut DeviceFixture, kind: MessageKind, sequence: u32) -> Message {
    fixture
        .notification_of(MAKER, kind, sequence)
        .with_block2(block(0, Yes))
        .with_payload(BEGINS)
}

fn next_block(fixture: &mut DeviceFixture) -> Lines {
    let answer = fixture.answer_in_block(0, Yes, BEGINS);
    fixture.receives(HOME, &answer)
}

fn last_block(fixture: &mut DeviceFixture) -> Lines {
    let answer = fixture.answer_in_block(1, No, "!");
    fixture.receives(HOME, &answer)
}
