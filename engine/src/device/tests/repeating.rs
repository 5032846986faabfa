//! Values and data that a device repeats after a restart, because the answer to them was lost with
//! the process: accepted as an uplink, and published once.

use protocol::coap::message::Message;
use protocol::lwm2m::payload::SAMPLES_MAX;

use super::vocabulary::{
    DeviceFixture, HOME, Lines, S, all, data_published, peer, published, read, sent, without_record,
};
use crate::limits::{Limits, RESTORED_EVENTS_MS};
use crate::step_event::UplinkKind;

const WARM: &str = r#"[{"n":"/3303/0/5700","v":21.5}]"#;

const PUBLISHED: &str = "/3303/0/5700=21.5 for sent";

/// Another port of the device.
const OTHER_PORT: &str = "10.0.0.1:5684";

/// The association of the device, at two addresses.
const HERE: &str = "10.0.9.1:5684 over DTLS";
const THERE: &str = "10.0.9.2:61000 over DTLS";

#[test]
fn a_send_repeated_after_a_restart_is_answered_and_not_published_again() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.sending(WARM);
    let expected = all([published(PUBLISHED), sent("ACK 2.04 to 102")]);
    assert_eq!(fixture.at(S).receives(HOME, &message), expected);
    // The answer may be lost with the process any number of times.
    for restart in 1..=3 {
        fixture.restart();
        let effects = fixture.at((1 + restart) * S).receives(HOME, &message);
        assert_eq!(without_record(effects), sent("ACK 2.04 to 102"));
    }
    assert_eq!(fixture.kind_of(&message), UplinkKind::Repeated);
}

#[test]
fn data_repeated_after_a_restart_is_answered_and_not_published_again() {
    for port in [HOME, OTHER_PORT] {
        let mut fixture = DeviceFixture::new();
        let first = fixture.data("t", "1");
        fixture.receives(HOME, &first);
        let message = fixture.data("t", "21.5");
        let effects = fixture.at(S).receives(port, &message);
        assert!(effects.contains(&data_published("21.5")[0]), "{effects:?}");
        fixture.restart();
        let effects = fixture.at(2 * S).receives(port, &message);
        let expected = vec![format!("send {port}: ACK 2.04 to 102")];
        assert_eq!(without_record(effects), expected);
    }
}

#[test]
fn data_repeated_over_dtls_after_a_restart_is_recognised_at_any_address() {
    let mut fixture = DeviceFixture::new();
    let message = fixture.data("t", "21.5");
    let effects = fixture.at(S).receives(HERE, &message);
    assert!(effects.contains(&data_published("21.5")[0]), "{effects:?}");
    fixture.restart();
    let effects = fixture.at(2 * S).receives(THERE, &message);
    let expected = vec![format!("send {}: ACK 2.04 to 101", peer(THERE))];
    assert_eq!(without_record(effects), expected);
}

#[test]
fn data_repeated_after_a_restart_is_recognised_behind_another_message_from_its_port() {
    let mut fixture = DeviceFixture::new();
    let first = fixture.data("t", "1");
    fixture.receives(HOME, &first);
    let message = fixture.data("t", "21.5");
    fixture.at(S).receives(OTHER_PORT, &message);
    fixture.restart();
    let other = fixture.data("t", "22");
    let effects = fixture.at(2 * S).receives(OTHER_PORT, &other);
    assert!(effects.contains(&data_published("22")[0]), "{effects:?}");
    let effects = fixture.at(3 * S).receives(OTHER_PORT, &message);
    assert_eq!(effects, [format!("send {OTHER_PORT}: ACK 2.04 to 102")]);
}

#[test]
fn a_message_of_another_content_token_id_or_port_is_published_after_a_restart() {
    let accepted = |fixture: &mut DeviceFixture, from: &str, message: &Message| {
        let effects = fixture.at(2 * S).receives(from, message);
        effects.iter().any(|line| line.starts_with("publish "))
    };
    let restarted = || {
        let mut fixture = DeviceFixture::new();
        let message = fixture.data("t", "21.5");
        fixture.at(S).receives(HOME, &message);
        fixture.restart();
        (fixture, message)
    };
    let (mut fixture, message) = restarted();
    assert!(!accepted(&mut fixture, HOME, &message));
    let (mut fixture, message) = restarted();
    assert!(accepted(&mut fixture, OTHER_PORT, &message));
    let (mut fixture, message) = restarted();
    let other = message.clone().with_payload("21.6");
    assert!(accepted(&mut fixture, HOME, &other));
    let (mut fixture, mut message) = restarted();
    message.message_id.0 += 1;
    assert!(accepted(&mut fixture, HOME, &message));
}

#[test]
fn a_send_of_many_times_is_recognised_after_a_restart() {
    let mut fixture = DeviceFixture::within(Limits {
        data_bytes_max: 1_024 * 1_024,
        ..Limits::default()
    });
    fixture.register();
    let before = fixture.sending(WARM);
    fixture.at(S).receives(HOME, &before);
    let records: Vec<_> = (0..SAMPLES_MAX)
        .map(|number| {
            format!(
                r#"{{"bn":"/3303/0/5700","t":{},"v":1}}"#,
                1_700_000_000 + number
            )
        })
        .collect();
    let message = fixture.sending(&format!("[{}]", records.join(",")));
    assert!(fixture.receives(HOME, &message).len() > SAMPLES_MAX);
    let mut ids = fixture.appended().to_vec();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), fixture.appended().len(), "each event has its id");
    fixture.restart();
    for (message, id) in [(&message, 103), (&before, 102)] {
        let effects = fixture.at(2 * S).receives(HOME, message);
        let expected = sent(&format!("ACK 2.04 to {id}"));
        assert_eq!(without_record(effects), expected);
    }
}

#[test]
fn the_last_block_of_a_send_is_recognised_after_a_restart() {
    let mut fixture = DeviceFixture::registered();
    let whole = fixture.sending(WARM);
    let blocks = fixture.in_blocks(&whole);
    fixture.at(S).receives(HOME, &blocks[0]);
    let answered = fixture.receives(HOME, &blocks[1]);
    let answer = sent("ACK 2.04 block1 1/16 to 104");
    assert_eq!(answered, all([published(PUBLISHED), answer.clone()]));
    fixture.restart();
    let repeated = fixture.at(2 * S).receives(HOME, &blocks[1]);
    assert_eq!(without_record(repeated), answer);
}

#[test]
fn a_message_repeated_after_a_restart_releases_what_waits() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let message = fixture.sending(WARM);
    fixture.at(100 * S).receives(HOME, &message);
    fixture.restart();
    fixture.at(101 * S).ask(read("/3/0/9").when_active());
    let effects = without_record(fixture.at(102 * S).receives(HOME, &message));
    assert_eq!(effects[0], sent("ACK 2.04 to 102")[0]);
    let is_request = |line: &String| line.contains(" GET ");
    assert!(effects[1..].iter().any(is_request), "{effects:?}");
}

#[test]
fn a_message_that_was_refused_is_refused_again_after_a_restart() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.sending("warm");
    let refused = |effects: Lines| effects.iter().any(|line| line.contains("4.00"));
    assert!(refused(fixture.at(S).receives(HOME, &message)));
    fixture.restart();
    assert!(refused(fixture.at(2 * S).receives(HOME, &message)));
}

#[test]
fn a_message_is_recognised_for_a_while() {
    for (after, is_published) in [(RESTORED_EVENTS_MS - 1, false), (RESTORED_EVENTS_MS, true)] {
        let mut fixture = DeviceFixture::registered();
        let message = fixture.sending(WARM);
        fixture.at(S).receives(HOME, &message);
        fixture.restart();
        let effects = fixture.at(S + after).receives(HOME, &message);
        let is_there = effects.contains(&published(PUBLISHED)[0]);
        assert_eq!(is_there, is_published, "{after} ms later: {effects:?}");
    }
}
