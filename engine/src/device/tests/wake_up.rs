//! An uplink over any protocol releases the requests that wait over every protocol, oldest first
//! and one at a time.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    BARE, DeviceFixture, HOME, Lines, S, all, coap, datagram, datagram_published, ended, moved,
    published, read, recorded, sent,
};
use crate::action::Status::{InProgress, Scheduled, Succeeded};
use crate::action::{Method, NewAction, Status};
use crate::device::snapshot::Presence;
use crate::effect::SendOutcome;

/// The address at which the device serves CoAP.
const SERVER: &str = "10.0.0.1:5685";

/// A kind of uplink.
type Uplink = fn(&mut DeviceFixture) -> Lines;

#[test]
fn an_uplink_over_udp_releases_waiting_requests_of_each_protocol_in_order() {
    let mut fixture = DeviceFixture::registered();
    for new in [
        read("/3/0/9"),
        datagram("1"),
        coap(Method::Get, "/a", ""),
        datagram("2"),
    ] {
        fixture.ask(new.when_active());
    }
    let expected = all([
        recorded(&format!(
            "registered until 86400000, seen at 1000 from {HOME}"
        )),
        datagram_published("on"),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(S).receives_bare(b"on"), expected);
    let expected = all([
        published("/3/0/9=87 for #1"),
        ended("#1", Succeeded, r#"1/1 "205" "87""#),
        moved("#2", Scheduled, InProgress, "1/1"),
        leaves("1"),
    ]);
    assert_eq!(fixture.at(2 * S).answer(Code::CONTENT, "87"), expected);
    let expected = all([
        ended("#2", Succeeded, "1/1"),
        moved("#3", Scheduled, InProgress, "1/1"),
        vec![
            format!("rebind nowhere -> {SERVER}"),
            format!("send {SERVER}: CON GET /a m2"),
        ],
    ]);
    assert_eq!(fixture.send_outcome(SendOutcome::Sent), expected);
    let answer = fixture.piggybacked(Code::CHANGED);
    let effects = fixture.receives(SERVER, &answer);
    assert!(effects.ends_with(&leaves("2")), "{effects:?}");
    let last = ended("#4", Succeeded, "1/1");
    assert_eq!(fixture.send_outcome(SendOutcome::Sent), last);
}

#[test]
fn every_uplink_releases_waiting_requests() {
    let uplinks: [(Uplink, &str); 7] = [
        (|fixture| fixture.receives_bare(b"on"), "a datagram"),
        (|fixture| fixture.receives_bare(b""), "an empty datagram"),
        (|fixture| fixture.posts("21.5"), "data"),
        (|fixture| fixture.posts(""), "data without a byte"),
        (
            |fixture| {
                let message = fixture.request(Code::POST, &[]);
                fixture.receives(HOME, &message)
            },
            "data without a topic",
        ),
        (DeviceFixture::register, "a registration"),
        (|fixture| fixture.sends("[]"), "a Send"),
    ];
    for (uplink, what) in uplinks {
        for new in requests() {
            let mut fixture = DeviceFixture::registered();
            fixture.ask(new.when_active());
            let effects = uplink(fixture.at(S));
            let began = &moved("#1", Scheduled, InProgress, "1/1")[3];
            assert!(effects.contains(began), "{what}: {effects:?}");
        }
    }
}

#[test]
fn a_message_that_is_not_from_the_device_releases_nothing() {
    let uplinks: [(Uplink, &str); 3] = [
        (
            |fixture| fixture.receives_bare_from("10.0.0.2:4445", b"on").1,
            "a datagram of somebody else",
        ),
        (
            |fixture| {
                let message = fixture.data("t", "1");
                fixture.receives_ambiguous(&message)
            },
            "data of one of several",
        ),
        (
            |fixture| {
                let message = fixture.data("t", "1");
                fixture.receives("10.0.0.2:5683", &message)
            },
            "data of somebody else",
        ),
    ];
    for (uplink, what) in uplinks {
        for new in requests() {
            let mut fixture = DeviceFixture::registered();
            fixture.ask(new.when_active());
            uplink(fixture.at(S));
            assert_eq!(statuses(&fixture), [Scheduled], "{what}");
        }
    }
}

#[test]
fn a_request_that_waits_for_a_registration_does_not_block_younger_requests() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(read("/3/0/9").when_active());
    fixture.ask(datagram("1").when_active());
    fixture.ask(read("/3/0/13").when_active());
    fixture.ask(coap(Method::Get, "/a", "").when_active());
    let effects = fixture.at(S).receives_bare(b"on");
    assert!(effects.ends_with(&leaves("1")), "{effects:?}");
    let effects = fixture.send_outcome(SendOutcome::Sent);
    let request = vec![format!("send {SERVER}: CON GET /a m1")];
    assert!(effects.ends_with(&request), "{effects:?}");
    let answer = fixture.piggybacked(Code::CHANGED);
    fixture.receives(SERVER, &answer);
    assert_eq!(statuses(&fixture), [Scheduled, Scheduled]);
    let effects = fixture.at(2 * S).register();
    let expected = all([
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m2"),
    ]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn a_request_that_waits_for_a_registration_can_still_be_cancelled() {
    let mut fixture = DeviceFixture::new();
    let id = fixture.ask(read("/3/0/9").when_active());
    fixture.at(S).receives_bare(b"on");
    let (cancelled, _) = fixture.cancel(id);
    assert_eq!(cancelled, Ok(()));
}

#[test]
fn data_wakes_a_device_in_queue_mode() {
    let uplinks: [Uplink; 3] = [
        |fixture| fixture.receives_bare(b"on"),
        |fixture| fixture.receives_bare(b""),
        |fixture| fixture.posts("21.5"),
    ];
    for uplink in uplinks {
        let mut fixture = DeviceFixture::registered_for_queue_mode();
        fixture.at(93 * S).ask(read("/3/0/9"));
        assert_eq!(fixture.snapshot().presence, Presence::Asleep);
        let effects = uplink(fixture.at(500 * S));
        let request = sent("CON GET /3/0/9 accept 0 m1");
        assert!(effects.ends_with(&request), "{effects:?}");
        assert_eq!(fixture.at(593 * S - 1).snapshot().presence, Presence::Awake);
        assert_eq!(fixture.at(593 * S).snapshot().presence, Presence::Asleep);
    }
}

#[test]
fn a_request_in_flight_is_not_sent_again_at_an_uplink() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", "").attempts(2));
    fixture.receives_bare(b"");
    assert_eq!(fixture.at(S).receives_bare(b""), Lines::new());
    fixture.ask(datagram("1"));
    let reset = Message::reset(fixture.last_request().message_id);
    let effects = fixture.receives(SERVER, &reset);
    assert!(effects.ends_with(&leaves("1")), "{effects:?}");
    assert_eq!(fixture.receives_bare(b""), Lines::new());
}

/// One request of each protocol.
fn requests() -> [NewAction; 3] {
    [read("/3/0/9"), coap(Method::Get, "/a", ""), datagram("on")]
}

fn leaves(text: &str) -> Lines {
    vec![format!("send bare {BARE}: {text:?}")]
}

fn statuses(fixture: &DeviceFixture) -> Vec<Status> {
    let pending = fixture.snapshot().pending;
    pending.iter().map(|it| it.action.status).collect()
}
