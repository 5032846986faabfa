//! How many notifications are accepted: what a device can cause to be written has a bound.

use protocol::coap::message::MessageKind;

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, HOUR, Lines, MINUTE, S, all, logged, observe, observing,
    published, without_record,
};
use crate::limits::Limits;

#[test]
fn notifications_above_the_rate_are_neither_published_nor_acknowledged() {
    let mut fixture = DeviceFixture::observed();
    let mut sequence = 10;
    let excessive = logged(
        "LwM2M[RegistrationRejected] Error: A notification from 10.0.0.1:5683 was rejected: the \
         device sent more values within a minute than are accepted. The device has the IP address \
         10.0.0.1 and is registered at 10.0.0.1:5683.",
    );
    loop {
        sequence += 1;
        let notification = fixture.notification(MessageKind::Confirmable, sequence, "86");
        let effects = fixture.at(S).receives(HOME, &notification);
        if effects[0].starts_with("log ") {
            assert_eq!(effects, excessive);
            break;
        }
        assert_eq!(effects[..1], published_value("86"));
    }
    assert!(sequence > 10_000, "{sequence} were accepted");
    assert_eq!(
        fixture.observations(),
        ["/3/0/9 Owed"],
        "it may give up on us"
    );
    let last = fixture.notification(MessageKind::NonConfirmable, sequence, "85");
    assert_eq!(fixture.at(2 * S).receives(HOME, &last), Lines::new());
    let effects = fixture.at(MINUTE + S).receives(HOME, &last);
    assert_eq!(effects[..1], published_value("85"));
    assert!(effects[1].contains("GET /3/0/9 observe 0"), "{effects:?}");
}

#[test]
fn registrations_above_the_rate_are_deferred() {
    let mut fixture = DeviceFixture::within(Limits {
        registrations_max: 5,
        ..Limits::default()
    });
    let mut registrations = 0;
    while fixture
        .at(S)
        .register()
        .contains(&"publish Registered".to_owned())
    {
        registrations += 1;
    }
    assert_eq!(registrations, 5);
    let effects = fixture.register();
    assert_eq!(effects.len(), 1);
    assert!(effects[0].contains("ACK 5.03 max-age 10"), "{effects:?}");
    let effects = fixture.at(S + MINUTE).register();
    assert!(effects[0].starts_with("save record"), "{effects:?}");
}

#[test]
fn a_clock_that_goes_back_does_not_block_a_device() {
    let mut fixture = DeviceFixture::observed();
    let ahead = fixture.notification(MessageKind::NonConfirmable, 11, "86");
    fixture.at(10 * MINUTE).receives(HOME, &ahead);
    let later = fixture.notification(MessageKind::NonConfirmable, 12, "86");
    assert_eq!(fixture.at(S).receives(HOME, &later), published_value("86"));
}

#[test]
fn payloads_that_cannot_be_decoded_are_stored_within_the_quota_of_a_day() {
    let mut fixture = DeviceFixture::within(Limits {
        log_payload_bytes_per_day: 512,
        ..Limits::default()
    });
    fixture.register();
    fixture.ask(observe(BATTERY));
    fixture.agree(10, "87");
    let mut sequence = 10;
    let mut notify = |fixture: &mut DeviceFixture, at| {
        sequence += 1;
        let notification = fixture.notification(MessageKind::NonConfirmable, sequence, "warm");
        fixture.at(at).receives(HOME, &notification)
    };
    let record = observing(S, &[&format!("{BATTERY} Held")]);
    let stored = all([undecodable(" Kept: \"warm\""), record]);
    assert_eq!(notify(&mut fixture, S), stored);
    // Neither unloading nor a restart renews the quota.
    fixture.restart();
    let effects = notify(&mut fixture, 2 * S);
    assert_eq!(without_record(effects), undecodable(" Kept: \"warm\""));
    assert!(
        fixture.device().busy.is_none(),
        "the quota keeps nothing in progress"
    );
    fixture.restart();
    let without_bytes = undecodable(
        " The bytes are not stored: those of the device reached the quota of one day. \
         Further rejections within one minute are not logged.",
    );
    assert_eq!(notify(&mut fixture, 3 * S), without_bytes);
    assert_eq!(notify(&mut fixture, 4 * S), Lines::new());
    assert_eq!(notify(&mut fixture, 3 * S + MINUTE), without_bytes);
    fixture.at(3 * MINUTE).timeout();
    assert!(
        fixture.device().busy.is_none(),
        "nothing is remembered permanently"
    );
    let effects = notify(&mut fixture, 24 * HOUR - S);
    assert_eq!(effects[..2], undecodable(" Kept: \"warm\""), "the next day");
}

fn undecodable(rest: &str) -> Lines {
    logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: the notification for \
         {BATTERY} cannot be decoded: the payload is not a value of type INTEGER.{rest}"
    ))
}

fn published_value(value: &str) -> Lines {
    published(&format!("{BATTERY}={value} for observed {BATTERY}"))
}
