//! The effects of a notification, and its answer (RFC 7641 sections 3.2 to 4.5).

use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::lwm2m::value::Value;

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, HOUR, Lines, OBJECTS, S, all, end_observing, ended, logged,
    moved, observation_lost, observing, published, read, sent, tlv, without_record,
};
use crate::action::Status::{InProgress, Scheduled, Succeeded};
use crate::device::snapshot::Presence;

const PUBLISHED: &str = "/3/0/9=86 for observed /3/0/9";

#[test]
fn a_notification_is_acknowledged_once_its_value_is_published() {
    let mut fixture = DeviceFixture::observed();
    let expected = all([published(PUBLISHED), sent("ACK to 102")]);
    assert_eq!(fixture.at(S).notify(11, "86"), expected);
}

#[test]
fn a_non_confirmable_notification_is_not_acknowledged() {
    let mut fixture = DeviceFixture::observed();
    let notification = fixture.notification(MessageKind::NonConfirmable, 11, "86");
    assert_eq!(fixture.receives(HOME, &notification), published(PUBLISHED));
    assert_eq!(
        fixture.receives(HOME, &notification),
        Lines::new(),
        "repeated"
    );
}

#[test]
fn a_repeated_notification_is_acknowledged_again_and_published_once() {
    let mut fixture = DeviceFixture::observed();
    let notification = fixture.notification(MessageKind::Confirmable, 11, "86");
    fixture.receives(HOME, &notification);
    assert_eq!(
        fixture.at(S).receives(HOME, &notification),
        sent("ACK to 102")
    );
    assert_eq!(
        fixture.at(200 * S).receives(HOME, &notification),
        sent("ACK to 102")
    );
}

#[test]
fn an_outdated_notification_is_acknowledged_and_not_published() {
    const LAST: u32 = 0xff_ffff;
    const HALF: u32 = 0x80_0000;
    let cases = [
        (10, 11, 0, true),
        (10, 10, 0, false),
        (10, 9, 0, false),
        (10, 10 + HALF - 1, 0, true),
        (10, 10 + HALF, 0, false),
        (LAST, 0, 0, true),
        (0, LAST, 0, false),
        (10, 9, 128 * S, false),
        (10, 9, 128 * S + 1, true),
        (10, 10, 128 * S + 1, true),
    ];
    for (first, second, later, is_newer) in cases {
        let mut fixture = DeviceFixture::observed();
        fixture.at(200 * S).notify(first, "88");
        let effects = fixture.at(200 * S + later).notify(second, "86");
        let values = if is_newer {
            published(PUBLISHED)
        } else {
            Lines::new()
        };
        let expected = all([values, sent("ACK to 103")]);
        assert_eq!(
            effects, expected,
            "{second} after {first}, {later} ms later"
        );
    }
}

#[test]
fn an_outdated_notification_does_not_reset_the_sequence_number() {
    let mut fixture = DeviceFixture::observed();
    let numbers = [12, 11, 12, 10, 11, 13];
    let is_told = numbers.map(|number| fixture.notify(number, "86").len() > 1);
    assert_eq!(is_told, [true, false, false, false, false, true]);
}

#[test]
fn the_answer_that_began_the_observation_has_the_first_sequence_number() {
    let mut fixture = DeviceFixture::observed();
    assert_eq!(fixture.notify(9, "86"), sent("ACK to 102"));
    assert_eq!(fixture.notify(10, "86"), sent("ACK to 103"));
    assert_eq!(
        fixture.notify(11, "86"),
        all([published(PUBLISHED), sent("ACK to 104")])
    );
}

#[test]
fn each_observation_has_its_own_sequence_numbers() {
    let mut fixture = DeviceFixture::observed();
    fixture.begin_observing("/3303/0/5700");
    fixture.notify(500, "86");
    let other = fixture
        .notification_of("/3303/0/5700", MessageKind::NonConfirmable, 11)
        .with_payload("21.5");
    assert_eq!(
        fixture.receives(HOME, &other),
        published("/3303/0/5700=21.5 for observed /3303/0/5700")
    );
}

#[test]
fn a_notification_of_an_instance_publishes_its_values() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(super::vocabulary::observe("/3/0"));
    let first = fixture.piggybacked(Code::CONTENT).with_observe(1);
    fixture.receives(HOME, &tlv(first, "/3/0", &[("/3/0/9", Value::Integer(87))]));
    let notification = fixture.notification_of("/3/0", MessageKind::Confirmable, 2);
    let values = [
        ("/3/0/9", Value::Integer(86)),
        ("/3/0/14", Value::String("+01:00".into())),
    ];
    let expected = all([
        published("/3/0/9=86 /3/0/14=+01:00 for observed /3/0"),
        sent("ACK to 102"),
    ]);
    assert_eq!(
        fixture.receives(HOME, &tlv(notification, "/3/0", &values)),
        expected
    );
}

#[test]
fn an_empty_notification_publishes_nothing() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(super::vocabulary::observe("/3303"));
    let first = fixture.piggybacked(Code::CONTENT).with_observe(1);
    fixture.receives(HOME, &tlv(first, "/3303", &[]));
    let notification = fixture.notification_of("/3303", MessageKind::Confirmable, 2);
    assert_eq!(
        fixture.receives(HOME, &tlv(notification, "/3303", &[])),
        sent("ACK to 102")
    );
}

#[test]
fn a_notification_that_cannot_be_decoded_is_logged_and_acknowledged() {
    let mut fixture = DeviceFixture::observed();
    let why = "the payload is not a value of type INTEGER";
    let expected = all([undecodable(why, "warm"), sent("ACK to 102")]);
    assert_eq!(without_record(fixture.notify(11, "warm")), expected);
    assert_eq!(
        fixture.notify(12, "86"),
        all([published(PUBLISHED), sent("ACK to 103")])
    );
}

#[test]
fn a_notification_of_one_block_is_whole() {
    let mut fixture = DeviceFixture::observed();
    let whole = fixture
        .notification(MessageKind::Confirmable, 11, "86")
        .with_block2(Block::from_value(0b0110));
    assert_eq!(
        fixture.receives(HOME, &whole),
        all([published(PUBLISHED), sent("ACK to 102")])
    );
}

#[test]
fn a_notification_with_an_unknown_critical_option_ends_the_observation() {
    for kind in [MessageKind::Confirmable, MessageKind::NonConfirmable] {
        let mut fixture = DeviceFixture::observed();
        let notification = fixture.notification(kind, 11, "86").with_option(9, &[1]);
        let expected = all([
            observing(0, &[]),
            observation_lost("a notification has an unsupported critical option"),
            sent("RST to 102"),
        ]);
        assert_eq!(fixture.receives(HOME, &notification), expected);
        assert_eq!(fixture.observations(), Lines::new());
    }
}

#[test]
fn an_error_notification_ends_the_observation_and_is_logged() {
    for code in [
        Code::NOT_FOUND,
        Code::NOT_ACCEPTABLE,
        Code::SERVICE_UNAVAILABLE,
    ] {
        let mut fixture = DeviceFixture::observed();
        let mut failure = fixture.notification(MessageKind::Confirmable, 11, "");
        failure.code = code;
        let expected = all([
            observing(S, &[]),
            observation_lost(&format!("the device answered {code}")),
            sent("ACK to 102"),
        ]);
        let mut later = fixture.notification(MessageKind::Confirmable, 12, "86");
        assert_eq!(fixture.at(S).receives(HOME, &failure), expected);
        assert_eq!(
            fixture.receives(HOME, &failure),
            sent("ACK to 102"),
            "repeated"
        );
        later.message_id = MessageId(300);
        assert_eq!(fixture.receives(HOME, &later), sent("RST to 300"));
    }
}

#[test]
fn a_notification_without_the_observe_option_is_published_and_ends_the_observation() {
    let mut fixture = DeviceFixture::observed();
    let token = fixture.token_observing(BATTERY);
    let last = Message::separate(
        MessageKind::Confirmable,
        Code::CONTENT,
        MessageId(300),
        token,
    )
    .with_payload("86");
    let expected = all([
        published(PUBLISHED),
        observing(0, &[]),
        observation_lost("the device ended the observation"),
        sent("ACK to 300"),
    ]);
    assert_eq!(fixture.receives(HOME, &last), expected);
}

#[test]
fn waiting_requests_are_sent_after_the_acknowledgement() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(read("/3/0/13").when_active());
    let expected = all([
        published(PUBLISHED),
        sent("ACK to 102"),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/13 accept 0 m2"),
    ]);
    assert_eq!(fixture.at(S).notify(11, "86"), expected);
}

#[test]
fn an_outdated_notification_releases_waiting_requests() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(read("/3/0/13").when_active());
    let expected = all([
        sent("ACK to 102"),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/13 accept 0 m2"),
    ]);
    assert_eq!(fixture.at(S).notify(9, "88"), expected);
}

#[test]
fn a_repeated_notification_is_no_new_uplink() {
    let mut fixture = DeviceFixture::observed();
    let notification = fixture.notification(MessageKind::Confirmable, 11, "86");
    fixture.receives(HOME, &notification);
    fixture.ask(read("/3/0/13").when_active());
    assert_eq!(
        fixture.at(S).receives(HOME, &notification),
        sent("ACK to 102")
    );
}

#[test]
fn a_notification_wakes_a_device_in_queue_mode() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=86400", "b=U", "Q"], OBJECTS);
    fixture.begin_observing(BATTERY);
    assert_eq!(fixture.at(93 * S).snapshot().presence, Presence::Asleep);
    fixture.ask(read("/3/0/13"));
    let effects = fixture.at(500 * S).notify(11, "86");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/13 accept 0 m2")),
        "{effects:?}"
    );
    assert_eq!(fixture.at(593 * S - 1).snapshot().presence, Presence::Awake);
}

#[test]
fn a_notification_saves_presence_once_an_hour() {
    let mut fixture = DeviceFixture::observed();
    let expected = all([published(PUBLISHED), sent("ACK to 102")]);
    assert_eq!(fixture.at(HOUR - 1).notify(11, "86"), expected);
    let expected = all([
        published(PUBLISHED),
        observing(HOUR, &["/3/0/9 Held"]),
        sent("ACK to 103"),
    ]);
    assert_eq!(fixture.at(HOUR).notify(12, "86"), expected);
    let expected = all([published(PUBLISHED), sent("ACK to 104")]);
    assert_eq!(fixture.at(HOUR + S).notify(13, "86"), expected);
}

#[test]
fn a_notification_does_not_renew_the_registration() {
    let mut fixture = DeviceFixture::observed();
    fixture.at(S).notify(11, "86");
    assert_eq!(fixture.deadline(), Some(86_400 * S));
}

#[test]
fn a_notification_that_crosses_the_end_of_its_observation_is_not_its_answer() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(end_observing(BATTERY));
    assert_eq!(
        fixture.notify(11, "86"),
        all([published(PUBLISHED), sent("ACK to 102")])
    );
    let crossing = fixture.notification(MessageKind::NonConfirmable, 12, "86");
    assert_eq!(fixture.receives(HOME, &crossing), published(PUBLISHED));
    let expected = all([
        observing(0, &[]),
        published("/3/0/9=85 for #2"),
        ended("#2", Succeeded, r#"1/1 "205" "85""#),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "85"), expected);
}

#[test]
fn a_notification_is_accepted_after_a_restart_with_any_sequence_number() {
    let mut fixture = DeviceFixture::observed();
    fixture.notify(500, "88");
    fixture.restart();
    assert_eq!(
        fixture.notify(3, "86"),
        all([published(PUBLISHED), sent("ACK to 103")])
    );
    assert_eq!(fixture.notify(2, "87"), sent("ACK to 104"));
}

#[test]
fn a_notification_of_a_device_that_left_is_reset() {
    let mut fixture = DeviceFixture::observed();
    let notification = fixture.notification(MessageKind::Confirmable, 11, "86");
    fixture.deregister();
    assert_eq!(fixture.receives(HOME, &notification), sent("RST to 102"));
    assert_eq!(fixture.observations(), ["/3/0/9 Owed"]);
}

fn undecodable(why: &str, bytes: &str) -> Lines {
    logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: \
         the notification for {BATTERY} cannot be decoded: {why}. \
         Kept: {bytes:?}"
    ))
}
