//! An uplink over any protocol releases the requests that wait over every protocol, oldest first
//! and one at a time.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    BARE, DeviceFixture, HOME, Lines, S, all, coap, datagram, ended, moved, read, recorded,
    said_bare, sent, told,
};
use crate::action::Status::{InProgress, Scheduled, Succeeded};
use crate::action::{Method, NewAction, Status};
use crate::device::snapshot::Presence;
use crate::effect::SendOutcome;

/// The address at which the device serves CoAP.
const SERVER: &str = "10.0.0.1:5685";

/// A kind of uplink.
type SignOfLife = fn(&mut DeviceFixture) -> Lines;

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
        said_bare("on"),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(S).hears_bare(b"on"), expected);
    let expected = all([
        told("/3/0/9=87 for #1"),
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
    assert_eq!(fixture.departed(SendOutcome::Sent), expected);
    let answer = fixture.piggybacked(Code::CHANGED);
    let effects = fixture.hears(SERVER, &answer);
    assert!(effects.ends_with(&leaves("2")), "{effects:?}");
    let last = ended("#4", Succeeded, "1/1");
    assert_eq!(fixture.departed(SendOutcome::Sent), last);
}

#[test]
fn every_uplink_releases_waiting_requests() {
    let signs: [(SignOfLife, &str); 7] = [
        (|fixture| fixture.hears_bare(b"on"), "a datagram"),
        (|fixture| fixture.hears_bare(b""), "an empty datagram"),
        (|fixture| fixture.posts("21.5"), "data"),
        (|fixture| fixture.posts(""), "data without a byte"),
        (
            |fixture| {
                let message = fixture.request(Code::POST, &[]);
                fixture.hears(HOME, &message)
            },
            "data without a topic",
        ),
        (DeviceFixture::register, "a registration"),
        (|fixture| fixture.sends("[]"), "a Send"),
    ];
    for (sign, what) in signs {
        for new in requests() {
            let mut fixture = DeviceFixture::registered();
            fixture.ask(new.when_active());
            let effects = sign(fixture.at(S));
            let began = &moved("#1", Scheduled, InProgress, "1/1")[5];
            assert!(effects.contains(began), "{what}: {effects:?}");
        }
    }
}

#[test]
fn a_message_that_is_not_from_the_device_releases_nothing() {
    let signs: [(SignOfLife, &str); 3] = [
        (
            |fixture| fixture.hears_bare_from("10.0.0.2:4445", b"on").1,
            "a datagram of somebody else",
        ),
        (
            |fixture| {
                let message = fixture.data("t", "1");
                fixture.hears_of_several(&message)
            },
            "data of one of several",
        ),
        (
            |fixture| {
                let message = fixture.data("t", "1");
                fixture.hears("10.0.0.2:5683", &message)
            },
            "data of somebody else",
        ),
    ];
    for (sign, what) in signs {
        for new in requests() {
            let mut fixture = DeviceFixture::registered();
            fixture.ask(new.when_active());
            sign(fixture.at(S));
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
    let effects = fixture.at(S).hears_bare(b"on");
    assert!(effects.ends_with(&leaves("1")), "{effects:?}");
    let effects = fixture.departed(SendOutcome::Sent);
    let asked = vec![format!("send {SERVER}: CON GET /a m1")];
    assert!(effects.ends_with(&asked), "{effects:?}");
    let answer = fixture.piggybacked(Code::CHANGED);
    fixture.hears(SERVER, &answer);
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
    fixture.at(S).hears_bare(b"on");
    let (cancelled, _) = fixture.cancel(id);
    assert_eq!(cancelled, Ok(()));
}

#[test]
fn data_wakes_a_device_in_queue_mode() {
    let signs: [SignOfLife; 3] = [
        |fixture| fixture.hears_bare(b"on"),
        |fixture| fixture.hears_bare(b""),
        |fixture| fixture.posts("21.5"),
    ];
    for sign in signs {
        let mut fixture = DeviceFixture::registered_for_queue_mode();
        fixture.at(93 * S).ask(read("/3/0/9"));
        assert_eq!(fixture.snapshot().presence, Presence::Asleep);
        let effects = sign(fixture.at(500 * S));
        let asked = sent("CON GET /3/0/9 accept 0 m1");
        assert!(effects.ends_with(&asked), "{effects:?}");
        assert_eq!(fixture.at(593 * S - 1).snapshot().presence, Presence::Awake);
        assert_eq!(fixture.at(593 * S).snapshot().presence, Presence::Asleep);
    }
}

#[test]
fn a_request_in_flight_is_not_sent_again_at_an_uplink() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(coap(Method::Get, "/a", "").attempts(2));
    fixture.hears_bare(b"");
    assert_eq!(fixture.at(S).hears_bare(b""), Lines::new());
    fixture.ask(datagram("1"));
    let reset = Message::reset(fixture.asked().message_id);
    let effects = fixture.hears(SERVER, &reset);
    assert!(effects.ends_with(&leaves("1")), "{effects:?}");
    assert_eq!(fixture.hears_bare(b""), Lines::new());
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
    pending.iter().map(|action| action.status).collect()
}
