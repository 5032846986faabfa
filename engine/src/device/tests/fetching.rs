//! Notifications that continue in further blocks are acknowledged, continued and then published
//! (RFC 7959 section 2.6).

use protocol::coap::block::More::{No, Yes};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, Lines, S, all, block, ended, logged, moved, observe, observing,
    published, read, sent, small_blocks, without_record,
};
use crate::action::Status::{InProgress, Scheduled, Succeeded};
use crate::step_event::{
    ExchangeOutcome, ExchangePurpose, NotificationOutcome, StepEventKind, UplinkKind,
};

const MAKER: &str = "/3/0/0";

const BEGINS: &str = "0123456789abcdef";

#[test]
fn a_notification_in_blocks_is_acknowledged_continued_and_published() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    let expected = all([
        observing(0, &["/3/0/0 Owed"]),
        sent("ACK to 102"),
        sent("CON GET /3/0/0 accept 0 block2 1/16 m2"),
    ]);
    assert_eq!(fixture.at(S).receives(HOME, &notification), expected);
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Begun(ExchangePurpose::Observation)]
    );
    let expected = all([published(PUBLISHED), observing(S, &["/3/0/0 Held"])]);
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
fn a_device_with_one_blocking_transfer_finishes_its_notification() {
    let mut fixture = observed();
    let mut transfer = OneTransfer::of("0123456789abcdef0123456789abcdef!");
    let notification = fixture.notification_of(MAKER, MessageKind::Confirmable, 11);
    let mut effects = fixture.receives(HOME, &transfer.begin(notification));
    for _ in 0..2 {
        assert!(effects.iter().any(|it| it.contains("GET")), "{effects:?}");
        let answer = transfer.answer(&fixture);
        effects = fixture.receives(HOME, &answer);
    }
    let value = "/3/0/0=0123456789abcdef0123456789abcdef! for observed /3/0/0";
    assert_eq!(
        effects,
        all([published(value), observing(0, &["/3/0/0 Held"])])
    );
    assert_eq!(transfer.next, None, "nothing is left open at the device");
}

#[test]
fn a_notification_is_continued_in_the_format_it_came_in() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::NonConfirmable, 11);
    let notification = notification.with_content_format(ContentFormat::OCTET_STREAM);
    let expected = all([
        observing(0, &["/3/0/0 Owed"]),
        sent("CON GET /3/0/0 accept 42 block2 1/16 m2"),
    ]);
    assert_eq!(fixture.receives(HOME, &notification), expected);
}

#[test]
fn a_value_that_changed_meanwhile_is_requested_from_its_beginning() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11).with_etag(b"v1");
    fixture.receives(HOME, &notification);
    let other = fixture.answer_in_block(1, No, "!").with_etag(b"v2");
    let effects = fixture.receives(HOME, &other);
    assert_eq!(effects, sent("CON GET /3/0/0 accept 0 block2 0/16 m3"));
    let expected = all([
        published("/3/0/0=new for observed /3/0/0"),
        observing(0, &["/3/0/0 Held"]),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "new"), expected);
}

#[test]
fn a_notification_repeated_while_it_is_continued_is_acknowledged_again() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    let effects = fixture.at(S).receives(HOME, &notification);
    assert_eq!(effects, sent("ACK to 102"));
    last_block(&mut fixture);
    assert_eq!(
        fixture.timeout(),
        Lines::new(),
        "nothing is to be continued"
    );
}

#[test]
fn a_newer_notification_takes_the_place_of_an_incomplete_one() {
    let mut fixture = observed();
    for sequence in [11, 12] {
        let notification = begins(&mut fixture, MessageKind::NonConfirmable, sequence);
        fixture.receives(HOME, &notification);
    }
    assert_eq!(
        last_block(&mut fixture),
        sent("CON GET /3/0/0 accept 0 block2 1/16 m3")
    );
    let events = [
        StepEventKind::Ended(ExchangeOutcome::Success),
        StepEventKind::Notified(NotificationOutcome::Stale),
        StepEventKind::Begun(ExchangePurpose::Observation),
    ];
    assert_eq!(fixture.step_events(), events);
    assert_eq!(last_block(&mut fixture), whole());
}

#[test]
fn a_newer_notification_in_one_message_ends_the_transfer_after_the_block_in_flight() {
    let mut fixture = observed();
    let older = begins(&mut fixture, MessageKind::NonConfirmable, 11);
    fixture.receives(HOME, &older);
    let newer = fixture.notification_of(MAKER, MessageKind::NonConfirmable, 12);
    let effects = fixture.receives(HOME, &newer.with_payload("new"));
    assert_eq!(effects, published("/3/0/0=new for observed /3/0/0"));
    let answer = fixture.answer_in_block(1, Yes, BEGINS);
    let effects = fixture.receives(HOME, &answer);
    assert_eq!(effects, observing(0, &["/3/0/0 Held"]));
    assert!(fixture.device().busy.is_none(), "nothing is left of it");
}

#[test]
fn an_outdated_notification_is_not_continued() {
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
fn a_notification_whose_rest_is_refused_is_logged_and_its_observation_requested_again() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    let entry = logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: the rest of a \
         notification could not be read: the device answered 4.04. Kept: {BEGINS:?}"
    ));
    let effects = fixture.at(S).answer(Code::NOT_FOUND, "");
    assert_eq!(without_record(effects), entry);
    let events = [
        StepEventKind::Ended(ExchangeOutcome::ClientError),
        StepEventKind::Notified(NotificationOutcome::Unusable),
    ];
    assert_eq!(fixture.step_events(), events);
    assert_eq!(fixture.observations(), ["/3/0/0 Owed"]);
    let effects = fixture.update();
    assert!(
        effects.ends_with(&sent("CON GET /3/0/0 observe 0 accept 0 m3")),
        "{effects:?}"
    );
}

#[test]
fn a_first_block_that_is_invalid_is_acknowledged_and_logged() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11).with_payload("short");
    let expected = all([
        observing(0, &["/3/0/0 Owed"]),
        sent("ACK to 102"),
        logged(
            "Translator[UserPayloadError] Error: A payload was rejected: the rest of a \
             notification could not be read: a block does not match its Block option. \
             Kept: \"short\"",
        ),
        observing(0, &["/3/0/0 Owed"]),
    ]);
    assert_eq!(fixture.receives(HOME, &notification), expected);
}

#[test]
fn after_an_unanswered_block_the_observation_is_requested_again_at_the_next_uplink() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    while fixture.deadline() < Some(3_600 * S) {
        let effects = fixture.next_deadline();
        let is_logged = effects.iter().any(|line| line.starts_with("log"));
        assert!(!is_logged, "{effects:?}");
    }
    assert!(fixture.device().busy.is_none(), "nothing is left of it");
    assert_eq!(fixture.observations(), ["/3/0/0 Owed"]);
    let effects = fixture.at(7_200 * S).update();
    assert!(
        effects.ends_with(&sent("CON GET /3/0/0 observe 0 accept 0 m3")),
        "{effects:?}"
    );
}

#[test]
fn a_notification_lost_with_the_service_is_requested_again() {
    let mut fixture = observed();
    let notification = begins(&mut fixture, MessageKind::Confirmable, 11);
    fixture.receives(HOME, &notification);
    fixture.restart();
    let effects = fixture.at(S).update();
    let again = effects.last().unwrap();
    assert!(again.contains("GET /3/0/0 observe 0"), "{effects:?}");
}

#[test]
fn notifications_of_several_paths_are_continued_one_after_the_other() {
    let mut fixture = observed();
    fixture.ask(observe("/3/0/1"));
    fixture.agree(10, "a");
    let first = begins(&mut fixture, MessageKind::NonConfirmable, 11);
    let second = fixture
        .notification_of("/3/0/1", MessageKind::NonConfirmable, 11)
        .with_block2(block(0, Yes))
        .with_payload(BEGINS);
    fixture.receives(HOME, &first);
    let saved = observing(0, &["/3/0/0 Owed", "/3/0/1 Owed"]);
    assert_eq!(fixture.receives(HOME, &second), saved);
    let expected = all([
        published(PUBLISHED),
        observing(0, &["/3/0/0 Held", "/3/0/1 Owed"]),
        sent("CON GET /3/0/1 accept 0 block2 1/16 m4"),
    ]);
    assert_eq!(last_block(&mut fixture), expected);
}

#[test]
fn the_rest_of_a_notification_waits_for_the_exchange_in_flight_and_goes_before_requests() {
    let mut fixture = observed();
    fixture.ask(read("/3/0/9"));
    fixture.ask(read("/3/0/1"));
    let notification = begins(&mut fixture, MessageKind::NonConfirmable, 11);
    let saved = observing(0, &["/3/0/0 Owed"]);
    assert_eq!(fixture.receives(HOME, &notification), saved);
    let expected = all([
        published("/3/0/9=87 for #2"),
        ended("#2", Succeeded, r#"1/1 "205" "87""#),
        sent("CON GET /3/0/0 accept 0 block2 1/16 m3"),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "87"), expected);
    let newer = begins(&mut fixture, MessageKind::NonConfirmable, 12);
    fixture.receives(HOME, &newer);
    let effects = last_block(&mut fixture);
    assert!(
        effects.ends_with(&sent("CON GET /3/0/1 accept 0 m4")),
        "a device that notifies without a pause keeps no request waiting: {effects:?}"
    );
    let effects = fixture.answer(Code::CONTENT, "b");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/0 accept 0 block2 1/16 m5")),
        "{effects:?}"
    );
}

#[test]
fn waiting_requests_are_released_once_the_notification_is_whole() {
    let mut fixture = observed();
    fixture.ask(read("/3/0/9").when_active());
    let notification = begins(&mut fixture, MessageKind::NonConfirmable, 11);
    fixture.receives(HOME, &notification);
    let expected = all([
        whole(),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m3"),
    ]);
    assert_eq!(last_block(&mut fixture), expected);
}

#[test]
fn an_observation_begun_anew_is_held_whatever_notification_waited() {
    let mut fixture = observed();
    fixture.ask(observe(MAKER));
    let first = fixture.answer_in_block(0, Yes, BEGINS).with_observe(11);
    let effects = fixture.receives(HOME, &first);
    assert!(
        effects.iter().any(|it| it.contains("block2 1/16")),
        "{effects:?}"
    );
    fixture.register();
    let waiting = begins(&mut fixture, MessageKind::Confirmable, 12);
    fixture.receives(HOME, &waiting);
    assert_eq!(fixture.observations(), ["/3/0/0 Owed"]);
    last_block(&mut fixture);
    assert_eq!(fixture.observations(), ["/3/0/0 Held"]);
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
    let expected = all([
        published(PUBLISHED),
        observing(0, &[]),
        logged(
            "LwM2M[ObservationLost] Error: The observation of /3/0/0 was lost: \
                the device ended the observation.",
        ),
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

/// A device with room for one transfer in blocks, which begins with a notification. While it is
/// open, anything but the request for its next block is answered 5.03.
struct OneTransfer {
    body: &'static [u8],
    next: Option<u32>,
}

impl OneTransfer {
    fn of(body: &'static str) -> Self {
        let body = body.as_bytes();
        Self { body, next: None }
    }

    fn begin(&mut self, notification: Message) -> Message {
        self.next = Some(1);
        self.cut(0, notification)
    }

    fn answer(&mut self, fixture: &DeviceFixture) -> Message {
        let asked = fixture.last_request().block2().map(|it| it.number());
        let Some(number) = asked.filter(|_| asked == self.next) else {
            return fixture.piggybacked(Code::SERVICE_UNAVAILABLE);
        };
        let answer = self.cut(number, fixture.piggybacked(Code::CONTENT));
        let has_more = answer.block2().is_some_and(|it| it.has_more());
        self.next = has_more.then_some(number + 1);
        answer
    }

    fn cut(&self, number: u32, message: Message) -> Message {
        let mut parts = self.body.chunks(16).skip(number as usize);
        let part = parts.next().unwrap();
        let more = if parts.next().is_some() { Yes } else { No };
        message
            .with_etag(b"v1")
            .with_block2(block(number, more))
            .with_payload(part)
    }
}

/// The whole value is published, and the device holds the observation.
fn whole() -> Lines {
    all([published(PUBLISHED), observing(0, &["/3/0/0 Held"])])
}

fn last_block(fixture: &mut DeviceFixture) -> Lines {
    let answer = fixture.answer_in_block(1, No, "!");
    fixture.receives(HOME, &answer)
}
