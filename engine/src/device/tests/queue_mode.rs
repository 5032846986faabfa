//! Devices that sleep: what is asked of them waits until they are heard.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    Bench, HOME, Lines, OBJECTS, S, all, answered, created, execute, moved, read, recorded, sent,
    updated,
};
use crate::action::Status::InProgress;
use crate::device::snapshot::Presence;
use crate::device::standing::Listens;

/// How a device may be heard.
type SignOfLife = fn(&mut Bench) -> Lines;

#[test]
fn a_queue_mode_device_is_awake_for_a_while_after_it_was_heard() {
    let mut bench = Bench::registered_for_queue_mode();
    assert_eq!(bench.at(93 * S - 1).snapshot().presence, Presence::Awake);
    assert_eq!(bench.at(93 * S).snapshot().presence, Presence::Asleep);
    bench.at(500 * S).update();
    assert_eq!(bench.at(593 * S - 1).snapshot().presence, Presence::Awake);
    assert_eq!(bench.at(593 * S).snapshot().presence, Presence::Asleep);
}

#[test]
fn a_device_without_queue_mode_is_always_awake() {
    let mut bench = Bench::registered();
    assert_eq!(
        bench.at(86_400 * S - 1).snapshot().presence,
        Presence::Awake
    );
    assert_eq!(
        bench.at(86_400 * S).snapshot().presence,
        Presence::Unregistered
    );
}

#[test]
fn a_request_to_be_sent_now_goes_out_to_a_device_that_is_awake() {
    let mut bench = Bench::registered_for_queue_mode();
    let (_, effects) = bench.at(92 * S).submit(read("/3/0/9"));
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(effects, expected);
}

#[test]
fn a_request_to_be_sent_now_waits_for_a_device_that_sleeps() {
    let mut bench = Bench::registered_for_queue_mode();
    let (_, effects) = bench.at(93 * S).submit(read("/3/0/9"));
    assert_eq!(effects, created("#1", InProgress, "0/1"));
    assert_eq!(bench.timeout(), Lines::new());
    let expected = all([
        updated(102),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(bench.at(500 * S).update(), expected);
}

#[test]
fn an_answer_keeps_the_device_awake_for_the_next_request() {
    let mut bench = Bench::registered_for_queue_mode();
    bench.at(90 * S).ask(read("/3/0/9"));
    bench.at(92 * S).ask(read("/3/0/13"));
    let expected = all([
        answered("#1", "/3/0/9=87", r#"1/1 "205" "87""#),
        moved("#2", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/13 accept 0 m2"),
    ]);
    assert_eq!(bench.at(95 * S).answer(Code::CONTENT, "87"), expected);
}

#[test]
fn an_acknowledgement_keeps_the_device_awake() {
    let mut bench = Bench::registered_for_queue_mode();
    bench.at(90 * S).ask(read("/3/0/9"));
    let acknowledgement = Message::acknowledgement(bench.asked().message_id);
    assert_eq!(bench.hears(HOME, &acknowledgement), Lines::new());
    assert_eq!(bench.at(182 * S).snapshot().presence, Presence::Awake);
    assert_eq!(bench.at(183 * S).snapshot().presence, Presence::Asleep);
}

#[test]
fn what_is_ready_when_the_device_falls_asleep_waits_until_it_is_heard() {
    let mut bench = Bench::registered_for_queue_mode();
    bench.at(60 * S).ask(read("/3/0/9").attempts(1));
    bench.ask(read("/3/0/13"));
    bench.at(100 * S).timeout();
    while bench.deadline() < Some(1_000 * S) {
        let effects = bench.next_deadline();
        assert!(
            effects.iter().all(|line| !line.contains("/3/0/13")),
            "{effects:?}"
        );
    }
    let effects = bench.at(500 * S).update();
    assert!(effects.contains(&"send 10.0.0.1:5683: CON GET /3/0/13 accept 0 m2".to_owned()));
}

#[test]
fn a_device_sleeps_from_its_first_silence_until_it_is_heard_over_any_protocol() {
    let signs: [(SignOfLife, &str); 5] = [
        (Bench::update, "an update"),
        (Bench::register_for_queue_mode, "a registration"),
        (|bench| bench.sends("[]"), "a Send"),
        (|bench| bench.posts("21.5"), "data"),
        (|bench| bench.hears_bare(b""), "a datagram"),
    ];
    for (sign, what) in signs {
        let mut bench = Bench::registered_for_queue_mode();
        bench.ask(read("/3/0/9"));
        bench.ask(read("/3/0/13"));
        let silent_at = unanswered(&mut bench);
        assert!(silent_at < 93 * S, "while it would listen: {silent_at}");
        assert_eq!(bench.snapshot().presence, Presence::Asleep, "{what}");
        let (_, effects) = bench.submit(execute("/3/0/4"));
        assert_eq!(effects, created("#3", InProgress, "0/1"), "{what}");
        assert_eq!(bench.at(silent_at + S).timeout(), Lines::new());

        let effects = sign(bench.at(silent_at + 2 * S));
        let expected = sent("CON GET /3/0/13 accept 0 m2");
        assert!(effects.ends_with(&expected), "{what}: {effects:?}");
        assert_eq!(bench.snapshot().presence, Presence::Awake, "{what}");
    }
}

#[test]
fn a_device_that_was_heard_meanwhile_is_not_put_to_sleep_by_a_silence() {
    let mut bench = Bench::registered_for_queue_mode();
    bench.at(S).ask(read("/3/0/9"));
    bench.at(2 * S).update();
    let silent_at = unanswered(&mut bench);
    assert!(silent_at < 93 * S);
    assert_eq!(bench.snapshot().presence, Presence::Awake);
    assert_eq!(bench.at(95 * S).snapshot().presence, Presence::Asleep);
}

#[test]
fn a_silence_is_forgotten_with_a_restart() {
    let mut bench = Bench::registered_for_queue_mode();
    bench.ask(read("/3/0/9"));
    unanswered(&mut bench);
    bench.restart();
    assert_eq!(bench.at(92 * S).snapshot().presence, Presence::Awake);
}

#[test]
fn a_device_without_queue_mode_stays_awake_whatever_it_leaves_unanswered() {
    let mut bench = Bench::registered();
    bench.ask(read("/3/0/9"));
    unanswered(&mut bench);
    assert_eq!(bench.snapshot().presence, Presence::Awake);
    let (_, effects) = bench.submit(read("/3/0/13"));
    assert!(effects.ends_with(&sent("CON GET /3/0/13 accept 0 m2")));
}

#[test]
fn who_watches_hears_that_a_silent_device_does_not_listen() {
    let mut bench = Bench::registered_for_queue_mode();
    bench.ask(read("/3/0/9"));
    let Listens::Until(before) = bench.device().standing().listens else {
        panic!("a device in queue mode listens for a while");
    };
    assert_eq!(bench.since_start(before), 93 * S);
    unanswered(&mut bench);
    let Listens::Until(after) = bench.device().standing().listens else {
        panic!("a device in queue mode listens for a while");
    };
    assert_eq!(bench.since_start(after), 0, "since it was last heard");
}

#[test]
fn queue_mode_of_the_first_enabler_is_a_letter_of_the_binding() {
    let mut bench = Bench::new();
    bench.register_with(&["lwm2m=1.0", "lt=86400", "b=UQ"], OBJECTS);
    assert_eq!(bench.at(93 * S).snapshot().presence, Presence::Asleep);

    let message = bench.updating(&["b=U"], "");
    let expected = all([
        recorded("registered until 86493000, seen at 93000 from 10.0.0.1:5683"),
        updated(102),
    ]);
    assert_eq!(bench.hears(HOME, &message), expected);
    assert_eq!(bench.at(500 * S).snapshot().presence, Presence::Awake);
}

/// The device leaves the attempt in flight unanswered; when that is certain, after the start.
fn unanswered(bench: &mut Bench) -> i64 {
    loop {
        let effects = bench.next_deadline();
        if !effects.iter().any(|line| line.starts_with("send")) {
            return bench.now_s() * S;
        }
    }
}
