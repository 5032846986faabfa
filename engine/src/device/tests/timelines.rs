//! What the timeline of a request says: each attempt, each datagram, each answer, with its time.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{Bench, HOME, HOUR, Lines, MINUTE, S, end_observing, read};
use crate::action::timeline::{Happened, Stage};
use crate::ids::ActionId;

#[test]
fn an_answer_in_the_acknowledgement_is_an_answer() {
    let mut bench = Bench::registered();
    let id = bench.at(S).ask(read("/3/0/9"));
    assert_eq!(
        timeline(&bench, id),
        ["1000 AttemptBegun(1)", "1000 DatagramSent"]
    );
    bench.at(1_250).answer(Code::CONTENT, "87");
    let expected = [
        "1000 AttemptBegun(1)",
        "1000 DatagramSent",
        "1250 Answered 2.05",
    ];
    assert_eq!(timeline(&bench, id), expected);
}

#[test]
fn what_happens_between_two_saves_is_kept_with_the_next() {
    let mut bench = Bench::registered();
    let id = bench.ask(read("/3/0/9"));
    bench.next_deadline();
    bench.next_deadline();
    let acknowledgement = Message::acknowledgement(bench.asked().message_id);
    bench.at(7 * S).hears(HOME, &acknowledgement);
    assert_eq!(
        timeline(&bench, id),
        ["0 AttemptBegun(1)", "0 DatagramSent"]
    );
    let answer = bench
        .separate(protocol::coap::message::Kind::Confirmable, Code::CONTENT)
        .with_payload("87");
    bench.at(8 * S).hears(HOME, &answer);
    let expected = [
        "0 AttemptBegun(1)",
        "0 DatagramSent",
        "2000 DatagramRepeated",
        "6000 DatagramRepeated",
        "7000 Acknowledged",
        "8000 Answered 2.05",
    ];
    assert_eq!(timeline(&bench, id), expected);
}

#[test]
fn every_attempt_is_in_it() {
    let mut bench = Bench::registered();
    let id = bench.ask(read("/3/0/9").attempts(4));
    while bench.deadline() < Some(62 * S) {
        bench.next_deadline();
    }
    bench.next_deadline();
    bench.at(5 * MINUTE).update();
    let reset = Message::reset(bench.asked().message_id);
    bench.at(5 * MINUTE + S).hears(HOME, &reset);
    bench.at(6 * MINUTE).update();
    bench.answer(Code::SERVICE_UNAVAILABLE, "");
    bench.at(7 * MINUTE).update();
    bench.answer(Code::NOT_FOUND, "");
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
    assert_eq!(timeline(&bench, id), expected);
}

#[test]
fn an_attempt_that_a_registration_took_with_it_was_given_up() {
    let mut bench = Bench::registered();
    let id = bench.ask(read("/3/0/9").attempts(2));
    bench.at(S).deregister();
    let expected = ["0 AttemptBegun(1)", "0 DatagramSent", "1000 GaveUp"];
    assert_eq!(timeline(&bench, id), expected);
}

#[test]
fn what_was_kept_survives_a_restart() {
    let mut bench = Bench::registered();
    let id = bench.ask(read("/3/0/9").attempts(2));
    bench.next_deadline();
    bench.restart();
    bench.at(HOUR).update();
    let expected = [
        "0 AttemptBegun(1)",
        "0 DatagramSent",
        "3600000 AttemptBegun(2)",
        "3600000 DatagramSent",
    ];
    assert_eq!(timeline(&bench, id), expected);
}

#[test]
fn nothing_happened_to_what_was_never_sent() {
    let mut bench = Bench::registered();
    let cancelled = bench.ask(read("/3/0/9").when_active());
    bench.cancel(cancelled).0.unwrap();
    let expired = bench.ask(read("/3/0/9").when_active().expiring_in_s(1));
    bench.at(S).timeout();
    let refused = bench.ask(end_observing("/3/0/9"));
    for id in [cancelled, expired, refused] {
        assert!(!bench.kept(id).status.is_pending());
        assert_eq!(timeline(&bench, id), Lines::new());
    }
}

/// What is kept of the timeline, each entry with the milliseconds since the start.
fn timeline(bench: &Bench, id: ActionId) -> Lines {
    let happened = bench.kept(id).timeline.as_slice().iter();
    let line = |entry: &Happened| {
        let at = bench.since_start(entry.at);
        if let Stage::Answered(code) = entry.what {
            return format!("{at} Answered {code}");
        }
        format!("{at} {:?}", entry.what)
    };
    happened.map(line).collect()
}
