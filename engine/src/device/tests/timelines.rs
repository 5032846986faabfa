//! The timeline of a request: each attempt, each datagram, each answer, with its time.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{DeviceFixture, HOME, HOUR, Lines, MINUTE, S, end_observing, read};
use crate::action::timeline::{TimelineEntry, TimelineEvent};
use crate::ids::ActionId;

#[test]
fn a_piggybacked_answer_is_in_the_timeline() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.at(S).ask(read("/3/0/9"));
    assert_eq!(
        timeline(&fixture, id),
        ["1000 AttemptBegun(1)", "1000 DatagramSent"]
    );
    fixture.at(1_250).answer(Code::CONTENT, "87");
    let expected = [
        "1000 AttemptBegun(1)",
        "1000 DatagramSent",
        "1250 Answered 2.05",
    ];
    assert_eq!(timeline(&fixture, id), expected);
}

#[test]
fn events_between_two_saves_are_saved_with_the_next() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9"));
    fixture.next_deadline();
    fixture.next_deadline();
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.at(7 * S).receives(HOME, &acknowledgement);
    assert_eq!(
        timeline(&fixture, id),
        ["0 AttemptBegun(1)", "0 DatagramSent"]
    );
    let answer = fixture
        .separate(
            protocol::coap::message::MessageKind::Confirmable,
            Code::CONTENT,
        )
        .with_payload("87");
    fixture.at(8 * S).receives(HOME, &answer);
    let expected = [
        "0 AttemptBegun(1)",
        "0 DatagramSent",
        "2000 DatagramRepeated",
        "6000 DatagramRepeated",
        "7000 Acknowledged",
        "8000 Answered 2.05",
    ];
    assert_eq!(timeline(&fixture, id), expected);
}

#[test]
fn every_attempt_is_in_the_timeline() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").attempts(4));
    while fixture.deadline() < Some(62 * S) {
        fixture.next_deadline();
    }
    fixture.next_deadline();
    fixture.at(5 * MINUTE).update();
    let reset = Message::reset(fixture.last_request().message_id);
    fixture.at(5 * MINUTE + S).receives(HOME, &reset);
    fixture.at(6 * MINUTE).update();
    fixture.answer(Code::SERVICE_UNAVAILABLE, "");
    fixture.at(7 * MINUTE).update();
    fixture.answer(Code::NOT_FOUND, "");
    let expected = [
        "0 AttemptBegun(1)",
        "0 DatagramSent",
        "2000 DatagramRepeated",
        "6000 DatagramRepeated",
        "14000 DatagramRepeated",
        "30000 DatagramRepeated",
        "62000 GaveUp",
        "300000 AttemptBegun(2)",
        "300000 DatagramSent",
        "301000 Rejected",
        "360000 AttemptBegun(3)",
        "360000 DatagramSent",
        "360000 Answered 5.03",
        "420000 AttemptBegun(4)",
        "420000 DatagramSent",
        "420000 Answered 4.04",
    ];
    assert_eq!(timeline(&fixture, id), expected);
}

#[test]
fn an_attempt_that_ends_with_its_registration_is_given_up() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").attempts(2));
    fixture.at(S).deregister();
    let expected = ["0 AttemptBegun(1)", "0 DatagramSent", "1000 GaveUp"];
    assert_eq!(timeline(&fixture, id), expected);
}

#[test]
fn a_saved_timeline_survives_a_restart() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(read("/3/0/9").attempts(2));
    fixture.next_deadline();
    fixture.restart();
    fixture.at(HOUR).update();
    let expected = [
        "0 AttemptBegun(1)",
        "0 DatagramSent",
        "3600000 AttemptBegun(2)",
        "3600000 DatagramSent",
    ];
    assert_eq!(timeline(&fixture, id), expected);
}

#[test]
fn a_request_that_was_never_sent_has_an_empty_timeline() {
    let mut fixture = DeviceFixture::registered();
    let cancelled = fixture.ask(read("/3/0/9").when_active());
    fixture.cancel(cancelled).0.unwrap();
    let expired = fixture.ask(read("/3/0/9").when_active().expiring_in_s(1));
    fixture.at(S).timeout();
    let refused = fixture.ask(end_observing("/3/0/9"));
    for id in [cancelled, expired, refused] {
        assert!(!fixture.saved(id).status.is_pending());
        assert_eq!(timeline(&fixture, id), Lines::new());
    }
}

/// The saved timeline, each entry with the milliseconds since the start.
fn timeline(fixture: &DeviceFixture, id: ActionId) -> Lines {
    let happened = fixture.saved(id).timeline.as_slice().iter();
    let line = |entry: &TimelineEntry| {
        let at = fixture.since_start(entry.at);
        if let TimelineEvent::Answered(code) = entry.what {
            return format!("{at} Answered {code}");
        }
        format!("{at} {:?}", entry.what)
    };
    happened.map(line).collect()
}
