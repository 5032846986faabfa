//! What is asked of a device over bare UDP: a datagram left, or it did not.

use super::vocabulary::{
    BARE, Bench, Lines, OWN, S, all, created, datagram, ended, heard_first, logged, moved, port,
    refused_at_once, updated,
};
use crate::action::Status::{Failed, InProgress, Scheduled, Succeeded};
use crate::action::timeline::Stage;
use crate::action::{Content, ContentForm, Request, UdpRequest};
use crate::device::queue::SubmitRefusal;
use crate::device::standing::InFlight;
use crate::effect::Departure;
use crate::limits::DEPARTURE_MS;
use crate::occurrence::What;

#[test]
fn a_datagram_leaves_at_once_and_has_succeeded_when_the_socket_took_it() {
    for mut bench in [Bench::new(), Bench::registered()] {
        let (accepted, effects) = bench.submit(datagram("on"));
        let expected = all([
            created("#1", InProgress, "0/1"),
            moved("#1", InProgress, InProgress, "1/1"),
            leaves("on"),
        ]);
        assert_eq!(effects, expected, "it is saved before it leaves");
        let effects = bench.departed(Departure::Taken);
        assert_eq!(effects, ended("#1", Succeeded, "1/1"));
        let kept = bench.kept(accepted.unwrap().id);
        assert_eq!(kept.outcome, None, "nobody answered");
        let stages = kept.timeline.as_slice().iter();
        let last = stages.last().map(|happened| happened.what);
        assert_eq!(last, Some(Stage::DatagramSent));
    }
}

#[test]
fn a_datagram_that_the_socket_refuses_has_failed() {
    let mut bench = Bench::new();
    bench.ask(datagram("on"));
    let expected = failed("#1", "the datagram could not be sent");
    assert_eq!(bench.departed(Departure::Refused), expected);
    assert!(bench.device().is_idle());
}

#[test]
fn a_datagram_of_which_nothing_is_said_has_failed_after_a_while() {
    let mut bench = Bench::new();
    bench.ask(datagram("on"));
    assert_eq!(bench.deadline(), Some(DEPARTURE_MS));
    assert_eq!(bench.at(DEPARTURE_MS - 1).timeout(), Lines::new());
    let expected = failed("#1", "it is unknown whether the datagram was sent");
    assert_eq!(bench.at(DEPARTURE_MS).timeout(), expected);
    let late = bench.departed(Departure::Taken);
    assert_eq!(late, Lines::new(), "what is final stays so");
}

#[test]
fn what_became_of_an_earlier_datagram_says_nothing_of_the_next() {
    let mut bench = Bench::new();
    let (first, _) = bench.submit(datagram("1"));
    bench.ask(datagram("2"));
    let first = first.unwrap().id;
    bench.at(DEPARTURE_MS).timeout();
    let late = bench.departed_of(first, Departure::Taken);
    assert_eq!(late, Lines::new(), "the second is in flight");
    assert_eq!(
        bench.departed(Departure::Taken),
        ended("#2", Succeeded, "1/1")
    );
}

#[test]
fn a_datagram_in_flight_at_a_restart_has_failed_and_never_leaves_again() {
    let mut bench = Bench::new();
    bench.ask(datagram("on"));
    bench.restart();
    let why =
        "the service stopped during the last attempt; the device may have executed the request";
    assert_eq!(bench.timeout(), failed("#1", why));
    let first = format!("bare {BARE}");
    assert_eq!(bench.hears_bare(b""), heard_first(0, &first, "UDP"));
}

#[test]
fn a_datagram_that_was_not_tried_before_a_restart_leaves_then() {
    let mut bench = Bench::new();
    bench.ask(datagram("1"));
    bench.ask(datagram("2"));
    bench.restart();
    let effects = bench.timeout();
    let expected = all([moved("#2", InProgress, InProgress, "1/1"), leaves("2")]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn datagrams_leave_one_after_the_other_in_their_order() {
    let mut bench = Bench::new();
    bench.ask(datagram("1"));
    for (name, text) in [("#2", "2"), ("#3", "3")] {
        let (_, effects) = bench.submit(datagram(text));
        assert_eq!(effects, created(name, InProgress, "0/1"), "one at a time");
    }
    let expected = all([
        ended("#1", Succeeded, "1/1"),
        moved("#2", InProgress, InProgress, "1/1"),
        leaves("2"),
    ]);
    assert_eq!(bench.departed(Departure::Taken), expected);
    let expected = all([
        failed("#2", "the datagram could not be sent"),
        moved("#3", InProgress, InProgress, "1/1"),
        leaves("3"),
    ]);
    assert_eq!(bench.departed(Departure::Refused), expected);
}

#[test]
fn a_departure_is_no_exchange() {
    let mut bench = Bench::new();
    bench.ask(datagram("on"));
    let is_begun = |what: &What| matches!(what, What::Begun(_) | What::Ended(_));
    assert!(!bench.occurred().iter().any(is_begun));
    assert_eq!(bench.device().standing().exchange, InFlight::No);
    bench.departed(Departure::Taken);
    assert!(!bench.occurred().iter().any(is_begun));
}

#[test]
fn bytes_leave_as_they_were_written() {
    let mut bench = Bench::new();
    let mut new = datagram("on");
    new.request = Request::Udp(UdpRequest {
        content: Content::parse(ContentForm::Base64, "SGVsbG8=").unwrap(),
        port: port(4445),
    });
    let (_, effects) = bench.submit(new);
    assert!(effects.ends_with(&leaves("Hello")), "{effects:?}");
}

#[test]
fn a_device_without_an_address_cannot_be_told_now() {
    let mut bench = Bench::roaming();
    let (refused, effects) = bench.submit(datagram("on"));
    assert_eq!(refused, Err(SubmitRefusal::NoAddress));
    assert_eq!(effects, Lines::new());
    bench.register();
    let (_, effects) = bench.submit(datagram("on"));
    assert!(effects.ends_with(&leaves("on")), "where it is registered");
}

#[test]
fn the_service_does_not_tell_itself() {
    let own: u16 = OWN.rsplit_once(':').unwrap().1.parse().unwrap();
    let mut new = datagram("on");
    if let Request::Udp(request) = &mut new.request {
        request.port = port(own);
    }
    let mut bench = Bench::new();
    let (_, effects) = bench.submit(new);
    let why = format!("{OWN} is an address of the service itself");
    let refused = refused_at_once("#1", InProgress, &format!("0/1 {why:?}"));
    assert_eq!(effects, all([refused, entry("#1", &why)]));
}

#[test]
fn a_queue_mode_device_that_sleeps_is_told_when_it_is_next_heard() {
    let mut bench = Bench::registered_for_queue_mode();
    let (_, effects) = bench.at(93 * S).submit(datagram("on"));
    assert_eq!(effects, created("#1", InProgress, "0/1"));
    let expected = all([
        updated(102),
        moved("#1", InProgress, InProgress, "1/1"),
        leaves("on"),
    ]);
    assert_eq!(bench.at(500 * S).update(), expected);
}

#[test]
fn a_datagram_that_waits_for_a_sign_of_life_expires() {
    let mut bench = Bench::new();
    bench.ask(datagram("on").when_active().expiring_in_s(60));
    let effects = bench.at(60 * S).timeout();
    let why = "the request expired at 2023-11-14T22:14:20.000Z before it was sent";
    let expected = moved("#1", Scheduled, Failed, &format!("0/1 {why:?}"));
    assert!(effects.starts_with(&expected), "{effects:?}");
    assert!(bench.device().is_idle());
}

#[test]
fn a_retired_device_is_told_nothing_more() {
    let mut bench = Bench::new();
    bench.ask(datagram("on"));
    bench.retire();
    assert_eq!(bench.departed(Departure::Taken), Lines::new());
}

fn leaves(text: &str) -> Lines {
    vec![format!("send bare {BARE}: {text:?}")]
}

fn failed(name: &str, why: &str) -> Lines {
    let progress = format!("1/1 {why:?}");
    all([ended(name, Failed, &progress), entry(name, why)])
}

fn entry(name: &str, why: &str) -> Lines {
    logged(&format!(
        "DeviceController[ActionRequestFailed] Error: Action request {name} failed: {why}."
    ))
}
