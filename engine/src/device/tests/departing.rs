//! Requests over bare UDP: the datagram was sent, or it was not.

use super::vocabulary::{
    BARE, DeviceFixture, Lines, S, all, created, datagram, ended, first_contact, logged, moved,
    port, updated,
};
use crate::action::Status::{Failed, InProgress, Scheduled, Succeeded};
use crate::action::timeline::TimelineEvent;
use crate::action::{Content, ContentEncoding, Request, UdpRequest};
use crate::device::activity::InFlight;
use crate::device::refusal::SubmitRefusal;
use crate::effect::{SendOutcome, SendRefusal};
use crate::limits::DEPARTURE_MS;
use crate::step_event::StepEventKind;

#[test]
fn a_datagram_is_sent_at_once_and_succeeds_when_the_socket_took_it() {
    for mut fixture in [DeviceFixture::new(), DeviceFixture::registered()] {
        let (accepted, effects) = fixture.submit(datagram("on"));
        let expected = all([
            created("#1", InProgress, "0/1"),
            moved("#1", InProgress, InProgress, "1/1"),
            leaves("on"),
        ]);
        assert_eq!(effects, expected, "it is saved before it leaves");
        let effects = fixture.send_outcome(SendOutcome::Sent);
        assert_eq!(effects, ended("#1", Succeeded, "1/1"));
        let action = fixture.saved(accepted.unwrap().id);
        assert_eq!(action.outcome, None, "there is no answer");
        let stages = action.timeline.as_slice().iter();
        let last = stages.last().map(|happened| happened.what);
        assert_eq!(last, Some(TimelineEvent::DatagramSent));
    }
}

#[test]
fn a_datagram_that_the_socket_refuses_fails() {
    let reasons = [
        (
            SendRefusal::TooLarge,
            "it is too large for the path to the device",
        ),
        (
            SendRefusal::NoRoute,
            "there is no route to the address of the device",
        ),
        (
            SendRefusal::BufferFull,
            "the send buffer of the socket is full",
        ),
        (
            SendRefusal::Other(5),
            "the operating system reports error 5",
        ),
    ];
    for (refusal, reason) in reasons {
        let mut fixture = DeviceFixture::new();
        fixture.ask(datagram("on"));
        let expected = failed("#1", &format!("the datagram could not be sent: {reason}"));
        let effects = fixture.send_outcome(SendOutcome::Refused(refusal));
        assert_eq!(effects, expected);
        assert!(fixture.device().is_idle());
    }
}

#[test]
fn a_datagram_without_a_send_outcome_fails_after_a_while() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("on"));
    assert_eq!(fixture.deadline(), Some(DEPARTURE_MS));
    assert_eq!(fixture.at(DEPARTURE_MS - 1).timeout(), Lines::new());
    let expected = failed("#1", "it is unknown whether the datagram was sent");
    assert_eq!(fixture.at(DEPARTURE_MS).timeout(), expected);
    let late = fixture.send_outcome(SendOutcome::Sent);
    assert_eq!(late, Lines::new(), "what is final stays so");
}

#[test]
fn the_send_outcome_of_an_earlier_datagram_is_not_that_of_the_next() {
    let mut fixture = DeviceFixture::new();
    let (first, _) = fixture.submit(datagram("1"));
    fixture.ask(datagram("2"));
    let first = first.unwrap().id;
    fixture.at(DEPARTURE_MS).timeout();
    let late = fixture.send_outcome_of(first, SendOutcome::Sent);
    assert_eq!(late, Lines::new(), "the second is in flight");
    assert_eq!(
        fixture.send_outcome(SendOutcome::Sent),
        ended("#2", Succeeded, "1/1")
    );
}

#[test]
fn a_datagram_in_flight_at_a_restart_fails_and_is_never_sent_again() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("on"));
    fixture.restart();
    let why =
        "the service stopped during the last attempt; the device may have executed the request";
    assert_eq!(fixture.timeout(), failed("#1", why));
    let first = format!("bare {BARE}");
    assert_eq!(fixture.receives_bare(b""), first_contact(0, &first, "UDP"));
}

#[test]
fn a_datagram_that_was_not_tried_before_a_restart_is_sent_after_it() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("1"));
    fixture.ask(datagram("2"));
    fixture.restart();
    let effects = fixture.timeout();
    let expected = all([moved("#2", Scheduled, InProgress, "1/1"), leaves("2")]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn datagrams_are_sent_one_after_the_other_in_order() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("1"));
    for (name, text) in [("#2", "2"), ("#3", "3")] {
        let (_, effects) = fixture.submit(datagram(text));
        assert_eq!(effects, created(name, Scheduled, "0/1"), "one at a time");
    }
    let expected = all([
        ended("#1", Succeeded, "1/1"),
        moved("#2", Scheduled, InProgress, "1/1"),
        leaves("2"),
    ]);
    assert_eq!(fixture.send_outcome(SendOutcome::Sent), expected);
    let expected = all([
        failed(
            "#2",
            "the datagram could not be sent: the send buffer of the socket is full",
        ),
        moved("#3", Scheduled, InProgress, "1/1"),
        leaves("3"),
    ]);
    let refused = SendOutcome::Refused(SendRefusal::BufferFull);
    assert_eq!(fixture.send_outcome(refused), expected);
}

#[test]
fn sending_a_bare_datagram_is_no_exchange() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("on"));
    let is_begun =
        |what: &StepEventKind| matches!(what, StepEventKind::Begun(_) | StepEventKind::Ended(_));
    assert!(!fixture.step_events().iter().any(is_begun));
    assert_eq!(fixture.device().activity().exchange, InFlight::No);
    fixture.send_outcome(SendOutcome::Sent);
    assert!(!fixture.step_events().iter().any(is_begun));
}

#[test]
fn bytes_are_sent_as_they_were_written() {
    let mut fixture = DeviceFixture::new();
    let mut new = datagram("on");
    new.request = Request::Udp(UdpRequest {
        content: Content::parse(ContentEncoding::Base64, "SGVsbG8=").unwrap(),
        port: port(4445),
    });
    let (_, effects) = fixture.submit(new);
    assert!(effects.ends_with(&leaves("Hello")), "{effects:?}");
}

#[test]
fn a_datagram_cannot_be_sent_now_to_a_device_without_an_address() {
    let mut fixture = DeviceFixture::roaming();
    let (refused, effects) = fixture.submit(datagram("on"));
    assert_eq!(refused, Err(SubmitRefusal::NoAddress));
    assert_eq!(effects, Lines::new());
    fixture.register();
    let (_, effects) = fixture.submit(datagram("on"));
    assert!(effects.ends_with(&leaves("on")), "where it is registered");
}

#[test]
fn a_datagram_to_a_sleeping_device_is_sent_at_its_next_uplink() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let (_, effects) = fixture.at(93 * S).submit(datagram("on"));
    assert_eq!(effects, created("#1", Scheduled, "0/1"));
    let expected = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        leaves("on"),
    ]);
    assert_eq!(fixture.at(500 * S).update(), expected);
}

#[test]
fn a_datagram_that_waits_for_an_uplink_expires() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("on").when_active().expiring_in_s(60));
    let effects = fixture.at(60 * S).timeout();
    let why = "the request expired at 2023-11-14T22:14:20.000Z before it was sent";
    let expected = moved("#1", Scheduled, Failed, &format!("0/1 {why:?}"));
    assert!(effects.starts_with(&expected), "{effects:?}");
    assert!(fixture.device().is_idle());
}

#[test]
fn no_datagram_is_sent_to_a_removed_device() {
    let mut fixture = DeviceFixture::new();
    fixture.ask(datagram("on"));
    fixture.retire();
    assert_eq!(fixture.send_outcome(SendOutcome::Sent), Lines::new());
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
