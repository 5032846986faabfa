//! Queue mode: requests to a sleeping device wait for an uplink.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    DeviceFixture, HOME, Lines, OBJECTS, S, all, answered, created, execute, moved, published,
    read, recorded, sent, updated,
};
use crate::action::Status::{InProgress, Scheduled};
use crate::device::activity::ListenWindow;
use crate::device::snapshot::Presence;

/// A kind of uplink.
type Uplink = fn(&mut DeviceFixture) -> Lines;

#[test]
fn a_queue_mode_device_is_awake_for_a_while_after_an_uplink() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    assert_eq!(fixture.at(93 * S - 1).snapshot().presence, Presence::Awake);
    assert_eq!(fixture.at(93 * S).snapshot().presence, Presence::Asleep);
    fixture.at(500 * S).update();
    assert_eq!(fixture.at(593 * S - 1).snapshot().presence, Presence::Awake);
    assert_eq!(fixture.at(593 * S).snapshot().presence, Presence::Asleep);
}

#[test]
fn a_device_without_queue_mode_is_always_awake() {
    let mut fixture = DeviceFixture::registered();
    assert_eq!(
        fixture.at(86_400 * S - 1).snapshot().presence,
        Presence::Awake
    );
    assert_eq!(
        fixture.at(86_400 * S).snapshot().presence,
        Presence::Unregistered
    );
}

#[test]
fn a_request_to_be_sent_now_is_sent_to_a_device_that_is_awake() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let (_, effects) = fixture.at(92 * S).submit(read("/3/0/9"));
    let expected = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(effects, expected);
}

#[test]
fn a_request_to_be_sent_now_waits_for_a_device_that_sleeps() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    let (_, effects) = fixture.at(93 * S).submit(read("/3/0/9"));
    assert_eq!(effects, created("#1", Scheduled, "0/1"));
    assert_eq!(fixture.timeout(), Lines::new());
    let expected = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(500 * S).update(), expected);
}

#[test]
fn an_answer_keeps_the_device_awake_for_the_next_request() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.at(90 * S).ask(read("/3/0/9"));
    fixture.at(92 * S).ask(read("/3/0/13"));
    let expected = all([
        answered("#1", "/3/0/9=87", r#"1/1 "205" "87""#),
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/13 accept 0 m2"),
    ]);
    assert_eq!(fixture.at(95 * S).answer(Code::CONTENT, "87"), expected);
}

#[test]
fn an_acknowledgement_keeps_the_device_awake() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.at(90 * S).ask(read("/3/0/9"));
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    assert_eq!(fixture.receives(HOME, &acknowledgement), Lines::new());
    assert_eq!(fixture.at(182 * S).snapshot().presence, Presence::Awake);
    assert_eq!(fixture.at(183 * S).snapshot().presence, Presence::Asleep);
}

#[test]
fn requests_ready_when_the_device_falls_asleep_wait_for_an_uplink() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.at(60 * S).ask(read("/3/0/9").attempts(1));
    fixture.ask(read("/3/0/13"));
    fixture.at(100 * S).timeout();
    while fixture.deadline() < Some(1_000 * S) {
        let effects = fixture.next_deadline();
        assert!(
            effects.iter().all(|line| !line.contains("/3/0/13")),
            "{effects:?}"
        );
    }
    let effects = fixture.at(500 * S).update();
    assert!(effects.contains(&"send 10.0.0.1:5683: CON GET /3/0/13 accept 0 m2".to_owned()));
}

#[test]
fn a_device_sleeps_from_its_first_missing_answer_until_an_uplink_over_any_protocol() {
    let uplinks: [(Uplink, &str); 5] = [
        (DeviceFixture::update, "an update"),
        (DeviceFixture::register_for_queue_mode, "a registration"),
        (|fixture| fixture.sends("[]"), "a Send"),
        (|fixture| fixture.posts("21.5"), "data"),
        (|fixture| fixture.receives_bare(b""), "a datagram"),
    ];
    for (uplink, what) in uplinks {
        let mut fixture = DeviceFixture::registered_for_queue_mode();
        fixture.ask(read("/3/0/9"));
        fixture.ask(read("/3/0/13"));
        let silent_at = unanswered(&mut fixture);
        assert!(silent_at < 93 * S, "while it would listen: {silent_at}");
        assert_eq!(fixture.snapshot().presence, Presence::Asleep, "{what}");
        let (_, effects) = fixture.submit(execute("/3/0/4"));
        assert_eq!(effects, created("#3", Scheduled, "0/1"), "{what}");
        assert_eq!(fixture.at(silent_at + S).timeout(), Lines::new());

        let effects = uplink(fixture.at(silent_at + 2 * S));
        let expected = sent("CON GET /3/0/13 accept 0 m2");
        assert!(effects.ends_with(&expected), "{what}: {effects:?}");
        assert_eq!(fixture.snapshot().presence, Presence::Awake, "{what}");
    }
}

#[test]
fn a_missing_answer_puts_no_device_to_sleep_after_an_uplink_during_the_attempt() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.at(S).ask(read("/3/0/9"));
    fixture.at(2 * S).update();
    let silent_at = unanswered(&mut fixture);
    assert!(silent_at < 93 * S);
    assert_eq!(fixture.snapshot().presence, Presence::Awake);
    assert_eq!(fixture.at(95 * S).snapshot().presence, Presence::Asleep);
}

#[test]
fn a_missing_answer_is_forgotten_at_a_restart() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.ask(read("/3/0/9"));
    unanswered(&mut fixture);
    fixture.restart();
    assert_eq!(fixture.at(92 * S).snapshot().presence, Presence::Awake);
}

#[test]
fn a_device_without_queue_mode_stays_awake_despite_missing_answers() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    unanswered(&mut fixture);
    assert_eq!(fixture.snapshot().presence, Presence::Awake);
    let (_, effects) = fixture.submit(read("/3/0/13"));
    assert!(effects.ends_with(&sent("CON GET /3/0/13 accept 0 m2")));
}

#[test]
fn the_activity_of_a_silent_device_shows_that_it_does_not_listen() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.ask(read("/3/0/9"));
    let ListenWindow::Until(before) = fixture.device().activity().listens else {
        panic!("a device in queue mode listens for a while");
    };
    assert_eq!(fixture.since_start(before), 93 * S);
    unanswered(&mut fixture);
    let ListenWindow::Until(after) = fixture.device().activity().listens else {
        panic!("a device in queue mode listens for a while");
    };
    assert_eq!(fixture.since_start(after), 0, "since its last uplink");
}

#[test]
fn queue_mode_of_lwm2m_1_0_is_a_letter_of_the_binding() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.0", "lt=86400", "b=UQ"], OBJECTS);
    assert_eq!(fixture.at(93 * S).snapshot().presence, Presence::Asleep);

    let message = fixture.updating(&["b=U"], "");
    let expected = all([
        recorded("registered until 86493000, seen at 93000 from 10.0.0.1:5683"),
        published("Updated"),
        updated(102),
    ]);
    assert_eq!(fixture.receives(HOME, &message), expected);
    assert_eq!(fixture.at(500 * S).snapshot().presence, Presence::Awake);
}

/// The device does not answer the attempt in flight. Returns when that is certain, after the start.
fn unanswered(fixture: &mut DeviceFixture) -> i64 {
    loop {
        let effects = fixture.next_deadline();
        if !effects.iter().any(|line| line.starts_with("send")) {
            return fixture.now_s() * S;
        }
    }
}
