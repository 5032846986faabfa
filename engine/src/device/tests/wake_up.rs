//! A sign of life over any protocol lets out what waits over every protocol, oldest first and one
//! at a time.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    BARE, Bench, HOME, Lines, S, all, coap, datagram, ended, moved, read, recorded, said_bare,
    sent, told,
};
use crate::action::Status::{InProgress, Scheduled, Succeeded};
use crate::action::{Method, NewAction, Status};
use crate::device::snapshot::Presence;
use crate::effect::Departure;

/// Where the device serves CoAP.
const SERVER: &str = "10.0.0.1:5685";

/// How a device may be heard.
type SignOfLife = fn(&mut Bench) -> Lines;

#[test]
fn an_uplink_over_udp_lets_out_what_waits_over_each_protocol_in_its_order() {
    let mut bench = Bench::registered();
    for new in [
        read("/3/0/9"),
        datagram("1"),
        coap(Method::Get, "/a", ""),
        datagram("2"),
    ] {
        bench.ask(new.when_active());
    }
    let expected = all([
        recorded(&format!(
            "registered until 86400000, seen at 1000 from {HOME}"
        )),
        said_bare("on"),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(bench.at(S).hears_bare(b"on"), expected);
    let expected = all([
        told("/3/0/9=87 for #1"),
        ended("#1", Succeeded, r#"1/1 "205" "87""#),
        moved("#2", Scheduled, InProgress, "1/1"),
        leaves("1"),
    ]);
    assert_eq!(bench.at(2 * S).answer(Code::CONTENT, "87"), expected);
    let expected = all([
        ended("#2", Succeeded, "1/1"),
        moved("#3", Scheduled, InProgress, "1/1"),
        vec![
            format!("rebind nowhere -> {SERVER}"),
            format!("send {SERVER}: CON GET /a m2"),
        ],
    ]);
    assert_eq!(bench.departed(Departure::Taken), expected);
    let answer = bench.piggybacked(Code::CHANGED);
    let effects = bench.hears(SERVER, &answer);
    assert!(effects.ends_with(&leaves("2")), "{effects:?}");
    let last = ended("#4", Succeeded, "1/1");
    assert_eq!(bench.departed(Departure::Taken), last);
}

#[test]
fn every_sign_of_life_lets_out_what_waits() {
    let signs: [(SignOfLife, &str); 7] = [
        (|bench| bench.hears_bare(b"on"), "a datagram"),
        (|bench| bench.hears_bare(b""), "an empty datagram"),
        (|bench| bench.posts("21.5"), "data"),
        (|bench| bench.posts(""), "data without a byte"),
        (
            |bench| {
                let message = bench.request(Code::POST, &[]);
                bench.hears(HOME, &message)
            },
            "data without a topic",
        ),
        (Bench::register, "a registration"),
        (|bench| bench.sends("[]"), "a Send"),
    ];
    for (sign, what) in signs {
        for new in requests() {
            let mut bench = Bench::registered();
            bench.ask(new.when_active());
            let effects = sign(bench.at(S));
            let began = &moved("#1", Scheduled, InProgress, "1/1")[5];
            assert!(effects.contains(began), "{what}: {effects:?}");
        }
    }
}

#[test]
fn what_says_nothing_of_the_device_lets_nothing_out() {
    let signs: [(SignOfLife, &str); 3] = [
        (
            |bench| bench.hears_bare_from("10.0.0.2:4445", b"on").1,
            "a datagram of somebody else",
        ),
        (
            |bench| {
                let message = bench.data("t", "1");
                bench.hears_of_several(&message)
            },
            "data of one of several",
        ),
        (
            |bench| {
                let message = bench.data("t", "1");
                bench.hears("10.0.0.2:5683", &message)
            },
            "data of somebody else",
        ),
    ];
    for (sign, what) in signs {
        for new in requests() {
            let mut bench = Bench::registered();
            bench.ask(new.when_active());
            sign(bench.at(S));
            assert_eq!(statuses(&bench), [Scheduled], "{what}");
        }
    }
}

#[test]
fn what_waits_for_a_registration_does_not_keep_younger_requests_from_a_device_without_one() {
    let mut bench = Bench::new();
    bench.ask(read("/3/0/9").when_active());
    bench.ask(datagram("1").when_active());
    bench.ask(read("/3/0/13").when_active());
    bench.ask(coap(Method::Get, "/a", "").when_active());
    let effects = bench.at(S).hears_bare(b"on");
    assert!(effects.ends_with(&leaves("1")), "{effects:?}");
    let effects = bench.departed(Departure::Taken);
    let asked = vec![format!("send {SERVER}: CON GET /a m1")];
    assert!(effects.ends_with(&asked), "{effects:?}");
    let answer = bench.piggybacked(Code::CHANGED);
    bench.hears(SERVER, &answer);
    assert_eq!(statuses(&bench), [Scheduled, Scheduled]);
    let effects = bench.at(2 * S).register();
    let expected = all([
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m2"),
    ]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn a_waiting_request_for_a_registration_can_still_be_taken_back() {
    let mut bench = Bench::new();
    let id = bench.ask(read("/3/0/9").when_active());
    bench.at(S).hears_bare(b"on");
    let (cancelled, _) = bench.cancel(id);
    assert_eq!(cancelled, Ok(()));
}

#[test]
fn data_wakes_a_device_in_queue_mode() {
    let signs: [SignOfLife; 3] = [
        |bench| bench.hears_bare(b"on"),
        |bench| bench.hears_bare(b""),
        |bench| bench.posts("21.5"),
    ];
    for sign in signs {
        let mut bench = Bench::registered_for_queue_mode();
        bench.at(93 * S).ask(read("/3/0/9"));
        assert_eq!(bench.snapshot().presence, Presence::Asleep);
        let effects = sign(bench.at(500 * S));
        let asked = sent("CON GET /3/0/9 accept 0 m1");
        assert!(effects.ends_with(&asked), "{effects:?}");
        assert_eq!(bench.at(593 * S - 1).snapshot().presence, Presence::Awake);
        assert_eq!(bench.at(593 * S).snapshot().presence, Presence::Asleep);
    }
}

#[test]
fn what_is_in_flight_is_not_sent_once_more_at_a_sign_of_life() {
    let mut bench = Bench::new();
    bench.ask(coap(Method::Get, "/a", "").attempts(2));
    bench.hears_bare(b"");
    assert_eq!(bench.at(S).hears_bare(b""), Lines::new());
    bench.ask(datagram("1"));
    let reset = Message::reset(bench.asked().message_id);
    let effects = bench.hears(SERVER, &reset);
    assert!(effects.ends_with(&leaves("1")), "{effects:?}");
    assert_eq!(bench.hears_bare(b""), Lines::new());
}

/// One request of each protocol.
fn requests() -> [NewAction; 3] {
    [read("/3/0/9"), coap(Method::Get, "/a", ""), datagram("on")]
}

fn leaves(text: &str) -> Lines {
    vec![format!("send bare {BARE}: {text:?}")]
}

fn statuses(bench: &Bench) -> Vec<Status> {
    let pending = bench.snapshot().pending;
    pending.iter().map(|action| action.status).collect()
}
