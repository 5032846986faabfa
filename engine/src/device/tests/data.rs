//! Devices without a registration: whose data is accepted, what is published, and how they are
//! answered.

use protocol::coap::code::Code;
use protocol::coap::message::MessageKind;

use super::vocabulary::{
    BARE, DeviceFixture, HOME, HOUR, Lines, MINUTE, S, all, answers, data_published, datagram,
    datagram_published, first_contact, logged, moved, published, recorded, refused, sent,
    without_record,
};
use crate::action::Status::{InProgress, Scheduled};
use crate::limits::{DATA_REMEMBERED_MS, DEREGISTRATION_REPEATED_MS, Limits};
use crate::step_event::{NotificationOutcome, StepEventKind, UplinkKind};

const AWAY: &str = "10.0.0.1:7777";
const ELSEWHERE: &str = "10.0.0.2:5683";

#[test]
fn data_is_published_before_it_is_answered() {
    let mut fixture = posted();
    let message = fixture.data("rooms/1", "21.5");
    let expected = all([
        published("Coap data \"rooms/1\" \"21.5\""),
        sent("ACK 2.04 to 102"),
    ]);
    assert_eq!(fixture.at(S).receives(HOME, &message), expected);
}

#[test]
fn the_first_contact_is_logged_once_over_any_protocol() {
    let mut fixture = DeviceFixture::new();
    let expected = all([
        first_contact(0, HOME, "CoAP"),
        data_published("21.5"),
        sent("ACK 2.04 to 101"),
    ]);
    assert_eq!(fixture.posts("21.5"), expected);
    let expected = all([data_published("22"), sent("ACK 2.04 to 102")]);
    assert_eq!(fixture.at(S).posts("22"), expected);
    let effects = fixture.at(2 * S).register();
    assert!(logs(&effects).is_empty(), "{effects:?}");

    let mut fixture = DeviceFixture::new();
    let first = format!("bare {BARE}");
    let expected = all([first_contact(0, &first, "UDP"), datagram_published("on")]);
    assert_eq!(fixture.receives_bare(b"on"), expected);
    assert_eq!(
        fixture.at(S).receives_bare(b"off"),
        datagram_published("off")
    );
    fixture.restart();
    let effects = fixture.at(2 * S).posts("21.5");
    assert!(logs(&effects).is_empty(), "{effects:?}");

    let mut fixture = DeviceFixture::registered();
    let expected = all([
        recorded(&format!(
            "registered until 86400000, seen at 1000 from {HOME}"
        )),
        data_published("21.5"),
        sent("ACK 2.04 to 102"),
    ]);
    assert_eq!(
        fixture.at(S).posts("21.5"),
        expected,
        "over another protocol"
    );
}

#[test]
fn each_protocol_of_an_uplink_is_saved_once() {
    let mut fixture = posted();
    let effects = fixture.at(S).receives_bare(b"on");
    assert!(effects[0].starts_with("save record"), "{effects:?}");
    assert_eq!(effects[1..], datagram_published("on"));
    assert_eq!(fixture.at(2 * S).posts("1").len(), 2);
    assert_eq!(
        fixture.at(3 * S).receives_bare(b"off"),
        datagram_published("off")
    );
}

#[test]
fn data_saves_presence_once_an_hour() {
    let mut fixture = posted();
    assert_eq!(fixture.at(HOUR - 1).posts("1").len(), 2);
    let expected = all([
        recorded(&format!("unregistered, seen at 3600000 from {HOME}")),
        data_published("2"),
        sent("ACK 2.04 to 103"),
    ]);
    assert_eq!(fixture.at(HOUR).posts("2"), expected);
    assert_eq!(fixture.posts("3").len(), 2);
}

#[test]
fn data_without_one_valid_topic_is_refused_and_its_bytes_are_logged() {
    let cases: [(&[&str], &str); 6] = [
        (&[], "the topic is missing; use POST /?t=topic"),
        (&["T=x"], "the topic is missing; use POST /?t=topic"),
        (&["t="], "the topic is empty"),
        (&["t=a", "t=b"], "there is more than one topic"),
        (&["t=a/#"], "the topic must not contain '#'"),
        (&["t=a\u{7}"], "the topic must not contain '\\u{7}'"),
    ];
    for (queries, why) in cases {
        let mut fixture = posted();
        let message = fixture.request(Code::POST, &[]).with_uri_query(queries);
        let expected = all([invalid_topic(why, "21.5"), refused("4.00", why, 102)]);
        let message = message.with_payload("21.5");
        let effects = fixture.at(S).receives(HOME, &message);
        assert_eq!(without_record(effects), expected);
        assert_eq!(
            fixture.step_events(),
            [data_sent(NotificationOutcome::Unusable)]
        );
    }
}

#[test]
fn an_invalid_topic_is_logged_once_a_minute() {
    let mut fixture = posted();
    let mut post = |at| {
        let message = fixture.request(Code::POST, &[]).with_payload("1");
        without_record(fixture.at(at).receives(HOME, &message)).len()
    };
    assert_eq!(
        [post(0), post(S), post(MINUTE - 1), post(MINUTE)],
        [3, 1, 1, 3]
    );
}

#[test]
fn empty_data_is_refused_and_is_an_uplink() {
    let mut fixture = posted();
    let expected = all([
        logged(
            "CoAP[RequestRejected] Error: Data from 10.0.0.1:5683 was rejected with 4.00: there \
             is no data. The device has the IP address 10.0.0.1 and is not registered.",
        ),
        refused("4.00", "there is no data", 102),
    ]);
    assert_eq!(fixture.at(S).posts(""), expected);
    assert_eq!(
        fixture.step_events(),
        [data_sent(NotificationOutcome::Empty)]
    );
    let seen_at = fixture.snapshot().last_seen_at.unwrap();
    assert_eq!(fixture.since_start(seen_at), S);
}

#[test]
fn data_that_is_too_long_is_refused_with_the_maximum_size() {
    let mut fixture = DeviceFixture::within(Limits {
        data_bytes_max: 4,
        ..Limits::default()
    });
    let expected = all([
        first_contact(0, HOME, "CoAP"),
        data_published("21.5"),
        sent("ACK 2.04 to 101"),
    ]);
    assert_eq!(fixture.posts("21.5"), expected);
    let why = "the body exceeds the limit of 4 bytes";
    let expected = all([unreadable(why, "21.55"), refused("4.13 size1 4", why, 102)]);
    let effects = fixture.at(S).posts("21.55");
    assert_eq!(without_record(effects), expected);
    assert_eq!(
        fixture.step_events(),
        [data_sent(NotificationOutcome::Unusable)]
    );
    assert_eq!(
        fixture.at(2 * S).posts("21.55"),
        refused("4.13 size1 4", why, 103)
    );
}

#[test]
fn other_methods_at_the_root_are_not_allowed() {
    let mut fixture = posted();
    for code in [
        Code::GET,
        Code::PUT,
        Code::DELETE,
        Code::FETCH,
        Code::PATCH,
        Code::IPATCH,
    ] {
        let message = fixture.request(code, &[]).with_uri_query(["t=x"]);
        let id = message.message_id.0;
        let effects = fixture.receives(HOME, &message);
        let expected = refused("4.05", "no such method", id);
        assert_eq!(answers(&effects), expected, "{code}");
        assert_eq!(fixture.kind_of(&message), UplinkKind::Repeated);
    }
}

#[test]
fn data_from_another_address_is_refused_and_logged_once_a_minute() {
    let mut fixture = DeviceFixture::registered();
    let stranger = |fixture: &mut DeviceFixture, at| {
        let message = fixture.data("t", "21.5");
        fixture.at(at).receives(ELSEWHERE, &message)
    };
    let refused = |id| vec![format!("send {ELSEWHERE}: ACK 4.01 to {id}")];
    let entry = |unlogged| {
        logged(&format!(
            "CoAP[UnauthorizedDevice] Error: Data from 10.0.0.2:5683 was rejected with 4.01: it \
             did not come from the IP address of the device. The device has the IP address \
             10.0.0.1 and is registered at 10.0.0.1:5683.{unlogged}"
        ))
    };
    let expected = all([entry(""), refused(102)]);
    assert_eq!(stranger(&mut fixture, S), expected);
    assert_eq!(fixture.step_events(), [], "it is no data of the device");
    assert_eq!(stranger(&mut fixture, MINUTE), refused(103));
    let unlogged = " Rejected since 2023-11-14T22:14:20.000Z and not logged: 1 more.";
    assert_eq!(
        stranger(&mut fixture, S + MINUTE),
        all([entry(unlogged), refused(104)])
    );
    let seen_at = fixture.snapshot().last_seen_at.unwrap();
    assert_eq!(fixture.since_start(seen_at), 0);
}

#[test]
fn data_from_an_address_of_several_devices_is_refused() {
    let mut fixture = posted();
    let message = fixture.data("t", "21.5");
    let entry = "CoAP[UnauthorizedDevice] Error: Data from 10.0.0.1:5683 was rejected with 4.01: \
                 several devices have the address it came from, and nothing else tells which of \
                 them sent it. The device has the IP address 10.0.0.1 and is not registered.";
    let text = "unknown address";
    let expected = all([logged(entry), refused("4.01", text, 102)]);
    assert_eq!(fixture.at(S).receives_ambiguous(&message), expected);
    let message = fixture.data("t", "21.5");
    assert_eq!(
        fixture.at(2 * S).receives_ambiguous(&message),
        refused("4.01", text, 103)
    );
}

#[test]
fn other_requests_from_an_address_of_several_devices_are_refused_as_without_a_device() {
    let cases: [(&[&str], &[&str], &str, &str); 4] = [
        (
            &["rd"],
            &["ep=other"],
            "4.03",
            "endpoint name not accepted from this address",
        ),
        (
            &["rd"],
            &[],
            "4.00",
            "the endpoint name is missing or malformed",
        ),
        (&["rd", "5a3f"], &[], "4.04", "register again"),
        (
            &["dp"],
            &[],
            "4.04",
            "not registered at this address and port",
        ),
    ];
    for (path, queries, code, text) in cases {
        let mut fixture = DeviceFixture::new();
        let message = fixture.request(Code::POST, path).with_uri_query(queries);
        let effects = fixture.receives_ambiguous(&message);
        assert!(effects[0].starts_with("log LwM2M[RegistrationRejected]"));
        assert_eq!(answers(&effects), refused(code, text, 101));
    }
}

#[test]
fn a_roaming_device_is_known_only_where_it_is_registered() {
    let mut fixture = DeviceFixture::roaming();
    let registration = fixture.registration(&["lwm2m=1.1"], "</3/0>");
    fixture.receives(AWAY, &registration);
    let message = fixture.data("t", "21.5");
    let effects = fixture.at(S).receives(AWAY, &message);
    assert_eq!(effects[1..2], data_published("21.5"));
    let message = fixture.data("t", "21.5");
    let effects = fixture.receives(HOME, &message);
    assert_eq!(effects.last().unwrap(), &sent("ACK 4.01 to 103")[0]);
}

#[test]
fn repeated_data_gets_the_same_answer_and_is_published_once() {
    let mut fixture = posted();
    let message = fixture.data("t", "1");
    assert_eq!(fixture.at(S).receives(HOME, &message).len(), 2);
    let last = DATA_REMEMBERED_MS;
    assert_eq!(
        fixture.at(last).receives(HOME, &message),
        sent("ACK 2.04 to 102")
    );
    fixture.at(S + DATA_REMEMBERED_MS).timeout();
    assert!(fixture.device().is_idle(), "nothing more is remembered");
}

#[test]
fn a_repeated_non_confirmable_post_is_not_answered() {
    let mut fixture = posted();
    let mut message = fixture.data("t", "1");
    message.kind = MessageKind::NonConfirmable;
    let effects = fixture.at(S).receives(HOME, &message);
    assert_eq!(effects[..1], data_published("1"));
    assert!(effects[1].contains("NON 2.04"), "{effects:?}");
    assert_eq!(fixture.receives(HOME, &message), Lines::new());
}

#[test]
fn message_ids_of_two_peers_are_distinguished_and_both_remembered() {
    for mut fixture in [posted(), DeviceFixture::registered()] {
        let message = fixture.data("t", "1");
        let id = message.message_id.0;
        for from in [HOME, AWAY] {
            let effects = fixture.at(S).receives(from, &message);
            assert!(
                effects.contains(&data_published("1")[0]),
                "{from}: {effects:?}"
            );
        }
        for from in [HOME, AWAY, HOME] {
            let again = vec![format!("send {from}: ACK 2.04 to {id}")];
            assert_eq!(fixture.at(2 * S).receives(from, &message), again);
        }
    }
}

#[test]
fn a_bare_datagram_does_not_clear_the_remembered_messages() {
    let mut fixture = posted();
    let message = fixture.data("t", "1");
    fixture.at(S).receives(HOME, &message);
    fixture.receives_bare(b"on");
    assert_eq!(fixture.receives(HOME, &message), sent("ACK 2.04 to 102"));
}

#[test]
fn a_post_is_remembered_across_a_registration() {
    let mut fixture = posted();
    let message = fixture.data("t", "1");
    fixture.at(S).receives(HOME, &message);
    fixture.at(2 * S).register();
    let again = sent("ACK 2.04 to 102");
    assert_eq!(fixture.at(3 * S).receives(HOME, &message), again);

    let last = fixture.sending(r#"[{"n":"/3303/0/5700","v":21.5}]"#);
    fixture.at(240 * S).receives(HOME, &last);
    fixture.at(DATA_REMEMBERED_MS + 2 * S).timeout();
    let again = sent("ACK 2.04 to 104");
    assert_eq!(fixture.receives(HOME, &last), again, "it was sent just now");
}

#[test]
fn a_deregistration_is_remembered_across_later_posts() {
    let mut fixture = DeviceFixture::registered();
    let deregistration = fixture.deregistering();
    fixture.at(S).receives(HOME, &deregistration);
    fixture.at(2 * S).posts("1");
    let expected = sent("ACK 2.02 to 102");
    assert_eq!(
        fixture
            .at(DEREGISTRATION_REPEATED_MS)
            .receives(HOME, &deregistration),
        expected
    );
}

#[test]
fn data_above_the_rate_is_deferred_and_may_be_posted_again() {
    let mut fixture = posted();
    while fixture.at(S).posts("1")[..1] == data_published("1") {}
    let message = fixture.data("t", "2");
    let effects = fixture.receives(HOME, &message);
    let text = "too many messages in a minute";
    let id = message.message_id.0;
    assert_eq!(
        effects,
        refused("5.03 max-age 10", text, id),
        "logged before"
    );
    assert_eq!(
        fixture.step_events(),
        [data_sent(NotificationOutcome::Excessive)]
    );
    let effects = fixture.receives_bare(b"on");
    assert!(
        effects[0].starts_with("log Translator[UserPayloadError]"),
        "{effects:?}"
    );
    assert_eq!(
        fixture.receives_bare(b"on"),
        Lines::new(),
        "it is logged once a minute"
    );
    assert_eq!(
        fixture.step_events(),
        [bare_sent(NotificationOutcome::Excessive)]
    );
    let effects = fixture.at(S + MINUTE).receives(HOME, &message);
    assert_eq!(
        effects[..1],
        data_published("2"),
        "it was not accepted before"
    );
}

#[test]
fn long_data_counts_for_more() {
    let long = "x".repeat(60_000);
    let accepted = (0..).take_while({
        let mut fixture = posted();
        let long = long.clone();
        move |_| fixture.posts(&long)[..1] == data_published(&long)
    });
    assert!((10..1_000).contains(&accepted.count()));
}

#[test]
fn bare_datagrams_are_published_and_never_answered() {
    let mut fixture = DeviceFixture::new();
    let first = format!("bare {BARE}");
    let expected = all([
        first_contact(0, &first, "UDP"),
        datagram_published("{\"on\":true}"),
    ]);
    assert_eq!(fixture.receives_bare(br#"{"on":true}"#), expected);
    assert_eq!(
        fixture.step_events(),
        [bare_sent(NotificationOutcome::Published)]
    );
    let (kind, effects) = fixture.at(S).receives_bare_from("10.0.0.1:1", b"on");
    assert_eq!(
        (kind, effects),
        (UplinkKind::UdpData, datagram_published("on"))
    );
    assert_eq!(
        fixture.receives_bare(b"on"),
        datagram_published("on"),
        "a repetition cannot be recognised"
    );
}

#[test]
fn a_burst_of_datagrams_is_published_in_order_before_anything_is_sent() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("go").when_active());
    let first = format!("bare {BARE}");
    let expected = all([
        first_contact(0, &first, "UDP"),
        datagram_published("1"),
        datagram_published("2"),
        datagram_published("1"),
        moved("#1", Scheduled, InProgress, "1/1"),
        vec![format!("send bare {BARE}: \"go\"")],
    ]);
    assert_eq!(fixture.receives_burst(&["1", "2", "", "1"]), expected);
    let events = [
        NotificationOutcome::Published,
        NotificationOutcome::Published,
        NotificationOutcome::Empty,
        NotificationOutcome::Published,
    ]
    .map(bare_sent);
    assert_eq!(fixture.step_events()[..4], events);
}

#[test]
fn an_empty_datagram_is_an_uplink_and_is_not_published() {
    let mut fixture = DeviceFixture::new();
    let first = format!("bare {BARE}");
    assert_eq!(fixture.receives_bare(b""), first_contact(0, &first, "UDP"));
    assert_eq!(
        fixture.step_events(),
        [bare_sent(NotificationOutcome::Empty)]
    );
    assert_eq!(fixture.at(S).receives_bare(b""), Lines::new());
    let seen_at = fixture.snapshot().last_seen_at.unwrap();
    assert_eq!(fixture.since_start(seen_at), S);
}

#[test]
fn a_datagram_that_is_too_long_is_logged_once_a_minute() {
    let mut fixture = DeviceFixture::within(Limits {
        data_bytes_max: 4,
        ..Limits::default()
    });
    fixture.receives_bare(b"1234");
    let why = "the datagram of 5 bytes exceeds the limit of 4 bytes";
    let refused = unreadable(why, "12345");
    let effects = fixture.at(S).receives_bare(b"12345");
    assert_eq!(without_record(effects), refused);
    assert_eq!(
        fixture.step_events(),
        [bare_sent(NotificationOutcome::Unusable)]
    );
    assert_eq!(fixture.at(MINUTE).receives_bare(b"12345"), Lines::new());
    let effects = fixture.at(S + MINUTE).receives_bare(b"12345");
    assert_eq!(without_record(effects), refused);
}

#[test]
fn bare_datagrams_from_another_address_are_ignored() {
    for mut fixture in [
        DeviceFixture::new(),
        DeviceFixture::registered(),
        DeviceFixture::roaming(),
    ] {
        let kind = fixture.at(S).receives_bare_from("10.0.0.2:4445", b"on");
        assert_eq!(kind, (UplinkKind::Unsolicited, Lines::new()));
        assert_eq!(fixture.step_events(), []);
    }
}

#[test]
fn a_device_that_posts_now_and_then_is_idle_in_between() {
    let mut fixture = posted();
    assert_eq!(fixture.deadline(), Some(DATA_REMEMBERED_MS));
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert!(fixture.device().is_idle());
    assert_eq!(fixture.deadline(), None);
}

/// A device that posted data at the start.
fn posted() -> DeviceFixture {
    let mut fixture = DeviceFixture::new();
    fixture.posts("0");
    fixture
}

fn logs(effects: &Lines) -> Vec<&String> {
    let logs = effects.iter().filter(|line| line.starts_with("log"));
    logs.collect()
}

fn data_sent(outcome: NotificationOutcome) -> StepEventKind {
    StepEventKind::DataSent(crate::action::Protocol::Coap, outcome)
}

fn bare_sent(outcome: NotificationOutcome) -> StepEventKind {
    StepEventKind::DataSent(crate::action::Protocol::Udp, outcome)
}

fn invalid_topic(why: &str, bytes: &str) -> Lines {
    logged(&format!(
        "CoAP[InvalidTopic] Error: Data was rejected: {why}. \
         Further rejections within one minute are not logged. Kept: {bytes:?}"
    ))
}

fn unreadable(why: &str, bytes: &str) -> Lines {
    logged(&format!(
        "Translator[UserPayloadError] Error: A payload was rejected: {why}. \
         Further rejections within one minute are not logged. Kept: {bytes:?}"
    ))
}
