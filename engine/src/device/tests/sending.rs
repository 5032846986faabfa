//! Send: values are published before the device is answered, and only published values are answered
//! with success (LwM2M Core 1.1 section 6.4.6).

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::MessageKind;
use protocol::coap::token::Token;
use protocol::lwm2m::payload::SAMPLES_MAX;

use super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, MINUTE, OBJECTS, S, all, answers, logged, moved, observing,
    published, read, recorded, refused, sent, without_record,
};
use crate::action::Status::{InProgress, Scheduled};
use crate::device::snapshot::Presence;
use crate::limits::{Limits, UNREADABLE_VALUES_NAMED_MAX};
use crate::step_event::{NotificationOutcome, StepEventKind, UplinkKind};

const WARM: &str = r#"[{"n":"/3303/0/5700","v":21.5}]"#;

const PUBLISHED: &str = "/3303/0/5700=21.5 for sent";

/// The text for a Send from where the device is not registered.
const NOT_HERE: &str = "not registered at this address and port";

/// The text for a Send that is too long.
const TOO_LONG: &str = "the body exceeds the limit of 30 bytes";

#[test]
fn a_send_is_published_before_it_is_answered() {
    let mut fixture = DeviceFixture::registered();
    let payload = r#"[{"bn":"/3303/0/","n":"5700","v":21.5},{"n":"5701","vs":"Cel"}]"#;
    let expected = all([
        published("/3303/0/5700=21.5 /3303/0/5701=Cel for sent"),
        sent("ACK 2.04 to 102"),
    ]);
    assert_eq!(fixture.at(S).sends(payload), expected);
}

#[test]
fn sends_with_an_empty_token_are_told_apart_by_their_message_ids() {
    let mut fixture = DeviceFixture::registered();
    for id in [102, 103] {
        let mut message = fixture.sending(WARM);
        message.token = Token::EMPTY;
        let expected = all([published(PUBLISHED), sent(&format!("ACK 2.04 to {id}"))]);
        assert_eq!(fixture.receives(HOME, &message), expected);
        let again = sent(&format!("ACK 2.04 to {id}"));
        assert_eq!(fixture.receives(HOME, &message), again);
    }
}

#[test]
fn an_unreadable_value_of_a_send_is_named_and_the_others_are_published() {
    let mut fixture = DeviceFixture::registered();
    // [{0: "/3303/0/5700", 2: NaN}, {0: "/3303/0/5601", 2: 1.0}]
    let payload = [
        &[0x82, 0xa2, 0, 0x6c][..],
        b"/3303/0/5700",
        &[2, 0xf9, 0x7e, 0, 0xa2, 0, 0x6c],
        b"/3303/0/5601",
        &[2, 0xf9, 0x3c, 0],
    ];
    let message = fixture.request(Code::POST, &["dp"]);
    let message = message.with_content_format(ContentFormat::SENML_CBOR);
    let payload = payload.concat();
    let kept = String::from_utf8_lossy(&payload);
    let expected = all([
        published("/3303/0/5601=1 for sent"),
        logged(&format!(
            "Translator[UserPayloadError] Error: Values of a Send cannot be read and were not \
             stored: the value of /3303/0/5700 is not a finite number. The other values were \
             stored. Kept: {kept:?}"
        )),
        sent("ACK 2.04 to 102"),
    ]);
    let message = message.with_payload(&*payload);
    let effects = fixture.at(S).receives(HOME, &message);
    assert_eq!(without_record(effects), expected);
}

#[test]
fn a_send_without_a_readable_value_is_refused() {
    for payload in [
        r#"[{"n":"/3303/0/5700","vs":"hot"},{"n":"/3303/0/5701"}]"#,
        r#"[{"n":"/3303/0/5700","v":21.5}"#,
    ] {
        let mut fixture = DeviceFixture::registered();
        let effects = without_record(fixture.at(S).sends(payload));
        assert!(effects[0].starts_with("log Translator[UserPayloadError] Error: A payload was"));
        assert_eq!(effects[1], "publish failure Translator[UserPayloadError]");
        assert!(
            effects[2].starts_with("send 10.0.0.1:5683: ACK 4.00 "),
            "{effects:?}"
        );
    }
}

#[test]
fn an_entry_names_a_bounded_number_of_unreadable_values() {
    let mut fixture = DeviceFixture::registered();
    let unreadable = r#"{"n":"/3303/0/5700","vs":"hot"},"#.repeat(UNREADABLE_VALUES_NAMED_MAX + 2);
    let effects = fixture.sends(&format!(r#"[{unreadable}{{"n":"/3/0/9","v":87}}]"#));
    let entry = effects.iter().find(|line| line.starts_with("log "));
    let entry = entry.unwrap().split("Kept").next().unwrap();
    let named = entry.matches("the value of /3303/0/5700 is not of type FLOAT");
    assert_eq!(named.count(), UNREADABLE_VALUES_NAMED_MAX);
    assert!(entry.contains("; 2 more."), "{entry}");
}

#[test]
fn values_of_each_time_are_an_event_and_the_oldest_come_first() {
    let mut fixture = DeviceFixture::registered();
    let payload = r#"[
        {"n":"/3303/0/5700","v":4},
        {"n":"/3303/0/5700","t":-5,"v":3},
        {"n":"/3/0/9","t":-5,"v":87},
        {"n":"/3303/0/5700","t":1700000001,"v":1},
        {"n":"/3303/0/5700","t":1700000002.5,"v":2}
    ]"#;
    let expected = all([
        published("/3303/0/5700=1 for sent measured at 1000"),
        published("/3303/0/5700=2 for sent measured at 2500"),
        published("/3/0/9=87 /3303/0/5700=3 for sent measured at 5000"),
        published("/3303/0/5700=4 for sent"),
        sent("ACK 2.04 to 102"),
    ]);
    assert_eq!(fixture.at(10 * S).sends(payload), expected);
    let ids: Vec<_> = fixture.events().iter().map(|event| event.id).collect();
    assert!(ids.is_sorted(), "the history has them in this order");
}

#[test]
fn as_many_events_as_a_payload_has_samples_stay_in_order() {
    let records: Vec<_> = (0..SAMPLES_MAX)
        .map(|number| {
            let time_s = 1_700_000_000 + number;
            format!(r#"{{"bn":"/3303/0/5700","t":{time_s},"v":{number}}}"#)
        })
        .collect();
    let mut fixture = patient();
    let effects = fixture.sends(&format!("[{}]", records.join(",")));
    assert_eq!(effects.last().unwrap(), &sent("ACK 2.04 to 102")[0]);
    let ids: Vec<_> = fixture.events().iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), SAMPLES_MAX);
    assert!(ids.is_sorted());
}

#[test]
fn a_payload_with_too_many_samples_is_refused_and_none_is_published() {
    let mut fixture = patient();
    let effects = without_record(fixture.sends(&pack_of(SAMPLES_MAX + 1)));
    assert_eq!(effects.len(), 3, "{:?}", effects.first());
    assert!(effects[0].starts_with("log Translator[UserPayloadError] Error"));
    assert_eq!(effects[1], "publish failure Translator[UserPayloadError]");
    let text = format!("the payload has more than {SAMPLES_MAX} samples");
    assert_eq!(effects[2..], refused("4.13", &text, 102));
}

#[test]
fn a_payload_that_is_too_long_is_refused_and_its_bytes_are_logged() {
    let mut fixture = DeviceFixture::within(Limits {
        data_bytes_max: 30,
        ..Limits::default()
    });
    fixture.register();
    assert_eq!(WARM.len(), 31);
    let fitting = WARM.replace("21.5", "2.5");
    let expected = all([
        published("/3303/0/5700=2.5 for sent"),
        sent("ACK 2.04 to 102"),
    ]);
    assert_eq!(fixture.sends(&fitting), expected);
    let expected = all([
        logged(&format!(
            "Translator[UserPayloadError] Error: A payload was rejected: \
             the body exceeds the limit of 30 bytes. \
             Further rejections within one minute are not logged. Kept: {WARM:?}"
        )),
        refused("4.13 size1 30", TOO_LONG, 103),
    ]);
    assert_eq!(without_record(fixture.at(S).sends(WARM)), expected);
    assert_eq!(
        fixture.at(2 * S).sends(WARM),
        refused("4.13 size1 30", TOO_LONG, 104)
    );
}

#[test]
fn a_repeated_send_is_answered_again_and_published_once() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.sending(WARM);
    let expected = all([published(PUBLISHED), sent("ACK 2.04 to 102")]);
    assert_eq!(fixture.receives(HOME, &message), expected);
    assert_eq!(
        fixture.at(S).receives(HOME, &message),
        sent("ACK 2.04 to 102"),
        "the answer may have been lost"
    );
}

#[test]
fn a_non_confirmable_send_is_published_and_answered_too() {
    let mut fixture = DeviceFixture::registered();
    let mut message = fixture.sending(WARM);
    message.kind = MessageKind::NonConfirmable;
    let effects = fixture.receives(HOME, &message);
    assert_eq!(effects[..1], published(PUBLISHED));
    assert!(effects[1].contains("NON 2.04"), "{effects:?}");
    assert_eq!(fixture.receives(HOME, &message), Lines::new(), "repeated");
}

#[test]
fn an_empty_pack_is_accepted_and_publishes_nothing() {
    let mut fixture = DeviceFixture::registered();
    assert_eq!(fixture.sends("[]"), sent("ACK 2.04 to 102"));
}

#[test]
fn a_send_of_an_unregistered_device_is_not_found() {
    let mut fixture = DeviceFixture::new();
    let unregistered = "the device is not registered; it has to register first. The device has the \
                        IP address 10.0.0.1 and is not registered.";
    let expected = all([
        unacceptable(HOME, unregistered),
        refused("4.04", NOT_HERE, 101),
    ]);
    assert_eq!(fixture.sends(WARM), expected, "never registered");

    let mut fixture = DeviceFixture::registered();
    fixture.deregister();
    let effects = fixture.sends(WARM);
    let expected = all([
        unacceptable(HOME, unregistered),
        refused("4.04", NOT_HERE, 103),
    ]);
    assert_eq!(effects, expected, "deregistered");

    let mut fixture = DeviceFixture::registered();
    let effects = fixture.at(86_400 * S).sends(WARM);
    let expected = refused("4.04", NOT_HERE, 102);
    assert_eq!(answers(&effects), expected, "lapsed just now");
}

#[test]
fn a_send_from_another_port_is_not_found_until_the_next_update() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.sending(WARM);
    let moved = "10.0.0.1:7777";
    let why = "the device is registered at another port; it is accepted at this one after the next \
               update of the registration. The device has the IP address 10.0.0.1 and is \
               registered at 10.0.0.1:5683.";
    let answer = format!("send {moved}: ACK 4.04 {NOT_HERE:?} to 102");
    let expected = all([unacceptable(moved, why), vec![answer]]);
    assert_eq!(fixture.receives(moved, &message), expected);
    let update = fixture.updating(&[], "");
    fixture.receives(moved, &update);
    let again = fixture.sending(WARM);
    assert_eq!(fixture.receives(moved, &again)[..1], published(PUBLISHED));
}

#[test]
fn a_send_that_cannot_be_decoded_is_refused_and_its_bytes_are_logged() {
    let mut fixture = DeviceFixture::registered();
    let why = "the payload in Content-Format 110 is malformed: it is not valid JSON for the format";
    let expected = all([unreadable(why, "warm"), refused("4.00", why, 102)]);
    assert_eq!(without_record(fixture.sends("warm")), expected);
    let message = fixture.sending("warmer");
    let expected = all([unreadable(why, "warmer"), refused("4.00", why, 103)]);
    let effects = fixture.at(S).receives(HOME, &message);
    assert_eq!(without_record(effects), expected);
    let repeated = refused("4.00", "refused when it was first received", 103);
    assert_eq!(fixture.receives(HOME, &message), repeated);
    let effects = fixture.at(MINUTE).sends("warm");
    assert_eq!(effects[..2], unreadable(why, "warm"));
}

#[test]
fn a_format_without_paths_cannot_be_decoded() {
    let cases = [
        (None, "the payload has no Content-Format"),
        (
            Some(ContentFormat::TEXT),
            "payloads in Content-Format 0 do not name a resource",
        ),
        (
            Some(ContentFormat(60_000)),
            "payloads in Content-Format 60000 are not supported",
        ),
    ];
    for (format, why) in cases {
        let mut fixture = DeviceFixture::registered();
        let mut message = fixture.request(Code::POST, &["dp"]).with_payload("21.5");
        if let Some(format) = format {
            message = message.with_content_format(format);
        }
        let expected = all([unreadable(why, "21.5"), refused("4.00", why, 102)]);
        assert_eq!(without_record(fixture.receives(HOME, &message)), expected);
    }
}

#[test]
fn values_of_unknown_objects_are_published_and_logged_once() {
    let unknown = [
        ("/32769/0/1", "of no model"),
        ("/3303/7/5700", "of no instance"),
        ("/3304/0/5700", "of no object of the registration"),
    ];
    for (path, what) in unknown {
        let mut fixture = DeviceFixture::registered();
        let payload = format!(r#"[{{"n":"{path}","v":21}}]"#);
        let expected = all([
            published(&format!("{path}=21 for sent")),
            logged(&format!(
                "Translator[UnknownObject] Error: The device sent a value for {path}, which is not \
                 in the object model or not in its registration. Such values are stored without a \
                 type check. This is logged once per device."
            )),
            recorded(&format!(
                "registered until 86400000, seen at 1000 from {HOME}, an unknown object logged"
            )),
            sent("ACK 2.04 to 102"),
        ]);
        assert_eq!(fixture.at(S).sends(&payload), expected, "{what}");
        let again = published(&format!("{path}=21 for sent"));
        assert_eq!(
            fixture.sends(&payload)[..2],
            all([again, sent("ACK 2.04 to 103")])
        );
        fixture.restart();
        fixture.register();
        assert_eq!(fixture.sends(&payload).len(), 2, "{what}: permanently");
    }
}

#[test]
fn sends_above_the_rate_are_deferred_and_may_be_repeated() {
    let (mut fixture, payload) = (patient(), pack_of(SAMPLES_MAX));
    while fixture.at(S).sends(&payload)[0].starts_with("publish") {}
    let message = fixture.sending(WARM);
    let id = message.message_id.0;
    let text = "too many messages in a minute";
    assert_eq!(
        fixture.receives(HOME, &message),
        refused("5.03 max-age 10", text, id)
    );
    assert_eq!(
        fixture.step_events(),
        [StepEventKind::Sent(NotificationOutcome::Excessive)]
    );
    let effects = fixture.at(S + MINUTE).receives(HOME, &message);
    assert_eq!(
        effects[..1],
        published(PUBLISHED),
        "it was not accepted before"
    );
}

#[test]
fn a_send_wakes_a_device_in_queue_mode() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    assert_eq!(fixture.at(93 * S).snapshot().presence, Presence::Asleep);
    fixture.ask(read("/3/0/13").when_active());
    let expected = all([
        published(PUBLISHED),
        sent("ACK 2.04 to 102"),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/13 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(500 * S).sends(WARM), expected);
    assert_eq!(fixture.at(593 * S - 1).snapshot().presence, Presence::Awake);
}

#[test]
fn a_send_that_cannot_be_decoded_is_an_uplink_too() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/13").when_active());
    let effects = fixture.at(S).sends("warm");
    let expected = sent("CON GET /3/0/13 accept 0 m1");
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn a_send_saves_presence_once_an_hour_and_does_not_renew_the_registration() {
    let mut fixture = DeviceFixture::registered();
    let expected = all([published(PUBLISHED), sent("ACK 2.04 to 102")]);
    assert_eq!(fixture.at(HOUR - S).sends(WARM), expected);
    let expected = all([
        published(PUBLISHED),
        observing(HOUR, &[]),
        sent("ACK 2.04 to 103"),
    ]);
    assert_eq!(fixture.at(HOUR).sends(WARM), expected);
    assert_eq!(fixture.deadline(), Some(86_400 * S));
}

#[test]
fn other_methods_at_the_send_resource_are_not_allowed() {
    let mut fixture = DeviceFixture::registered();
    for code in [Code::GET, Code::PUT, Code::DELETE, Code::FETCH] {
        let message = fixture.request(code, &["dp"]);
        let expected = refused("4.05", "no such method", message.message_id.0);
        let effects = fixture.receives(HOME, &message);
        assert_eq!(answers(&effects), expected, "{code}");
    }
    let below = fixture.request(Code::POST, &["dp", "1"]);
    let effects = fixture.receives(HOME, &below);
    assert_eq!(answers(&effects), refused("4.04", "no such resource", 106));
}

#[test]
fn a_send_is_counted_by_its_outcome() {
    let cases = [
        (WARM, NotificationOutcome::Published),
        ("[]", NotificationOutcome::Empty),
        ("warm", NotificationOutcome::Unusable),
    ];
    for (payload, news) in cases {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(&["lwm2m=1.1"], OBJECTS);
        let message = fixture.sending(payload);
        assert_eq!(fixture.kind_of(&message), UplinkKind::Send);
        assert_eq!(fixture.step_events(), [StepEventKind::Sent(news)]);
        assert_eq!(fixture.kind_of(&message), UplinkKind::Repeated);
        assert_eq!(fixture.step_events(), []);
    }
}

#[test]
fn the_newest_value_is_the_result_of_a_read_and_all_are_published() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3303/0/5700"));
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(r#"[{"bn":"/3303/0/5700","v":3},{"t":-2,"v":2},{"t":-9,"v":1}]"#);
    let effects = fixture.at(10 * S).receives(HOME, &answer);
    let expected = all([
        published("/3303/0/5700=1 for #1 measured at 1000"),
        published("/3303/0/5700=2 for #1 measured at 8000"),
        published("/3303/0/5700=3 for #1"),
    ]);
    assert_eq!(effects[..3], expected);
    let result = r#"save #1 InProgress -> Succeeded 1/1 "205" "3""#;
    assert_eq!(effects.last().unwrap(), result);
}

#[test]
fn the_times_of_a_notification_are_published() {
    let mut fixture = DeviceFixture::observed();
    let notification = fixture
        .notification(MessageKind::NonConfirmable, 11, "")
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(r#"[{"bn":"/3/0/9","v":85},{"t":-2,"v":86}]"#);
    let expected = all([
        published("/3/0/9=86 for observed /3/0/9 measured at 8000"),
        published("/3/0/9=85 for observed /3/0/9"),
    ]);
    assert_eq!(fixture.at(10 * S).receives(HOME, &notification), expected);
}

/// A registered device with a higher limit for payloads.
fn patient() -> DeviceFixture {
    let mut fixture = DeviceFixture::within(Limits {
        data_bytes_max: 1_024 * 1_024,
        ..Limits::default()
    });
    fixture.register();
    fixture
}

/// This many samples of one path and time.
fn pack_of(samples: usize) -> String {
    let records = vec![r#"{"bn":"/3303/0/5700","v":1}"#; samples];
    format!("[{}]", records.join(","))
}

fn unreadable(why: &str, bytes: &str) -> Lines {
    logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: \
         the Send cannot be decoded: {why}. Kept: {bytes:?}"
    ))
}

fn unacceptable(from: &str, why: &str) -> Lines {
    logged(&format!(
        "LwM2M[RegistrationRejected] Error: A Send from {from} was rejected with 4.04: {why}"
    ))
}
