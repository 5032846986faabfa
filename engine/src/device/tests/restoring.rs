//! What a device keeps at a restart: everything that was accepted, and no attempt twice.

use protocol::coap::code::Code;
use protocol::coap::message::MessageKind;

use super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, MINUTE, OBJECTS, S, all, ended, execute, logged, moved, peer,
    published, read, recorded, sent, updated,
};
use crate::action::Status::{Failed, InProgress, Scheduled};

const INTERRUPTED: &str =
    "the service stopped during the last attempt; the device may have executed the request";

#[test]
fn a_scheduled_request_waits_across_a_restart_and_is_sent_once() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active());
    fixture.restart();
    assert_eq!(fixture.timeout(), Lines::new());
    let expected = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(S).update(), expected);
}

#[test]
fn requests_of_one_millisecond_have_ids_in_their_order() {
    let mut fixture = DeviceFixture::registered();
    let ids: Vec<_> = (0..10)
        .map(|_| fixture.ask(read("/3/0/9").when_active()))
        .collect();
    assert!(ids.is_sorted_by(|before, after| before < after), "{ids:?}");
}

#[test]
fn an_attempt_in_flight_at_a_restart_counts_as_made() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(execute("/3/0/4").attempts(2));
    fixture.restart();
    assert_eq!(fixture.timeout(), Lines::new(), "it waits for an uplink");
    assert_eq!(fixture.saved(id).attempts_left(), 1);
    let expected = all([
        updated(102),
        moved("#1", InProgress, InProgress, "2/2"),
        sent("CON POST /3/0/4 m2"),
    ]);
    assert_eq!(fixture.at(S).update(), expected);
}

#[test]
fn a_last_attempt_in_flight_at_a_restart_fails_as_interrupted() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(execute("/3/0/4"));
    fixture.restart();
    assert_eq!(
        fixture.deadline().map(|at| at < 0),
        Some(true),
        "it is due at once"
    );
    assert_eq!(fixture.timeout(), interrupted());
    assert_eq!(fixture.timeout(), Lines::new());
}

#[test]
fn a_last_attempt_is_not_made_again_though_an_uplink_precedes_the_timeout() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(execute("/3/0/4"));
    fixture.restart();
    let effects = fixture.at(S).update();
    assert!(
        effects.iter().all(|line| !line.contains("CON POST")),
        "{effects:?}"
    );
    assert_eq!(fixture.timeout(), interrupted());
}

#[test]
fn an_attempt_begun_since_the_restart_was_not_interrupted_by_it() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active());
    fixture.restart();
    let begun = all([
        updated(102),
        moved("#1", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/9 accept 0 m1"),
    ]);
    assert_eq!(fixture.at(S).update(), begun);
    assert_eq!(fixture.timeout(), Lines::new());
}

#[test]
fn attempts_never_exceed_what_was_permitted_across_any_number_of_restarts() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(execute("/3/0/4").when_active().attempts(3));
    let mut attempts = 0;
    for minute in 1..10 {
        fixture.restart();
        let effects = [fixture.at(minute * MINUTE).timeout(), fixture.update()].concat();
        attempts += effects
            .iter()
            .filter(|line| line.contains("CON POST"))
            .count();
    }
    assert_eq!(attempts, 3);
}

#[test]
fn a_request_to_be_sent_now_that_was_never_tried_is_sent_after_a_restart() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").attempts(2));
    fixture.ask(read("/3/0/13"));
    fixture.restart();
    let expected = all([
        moved("#2", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/13 accept 0 m2"),
    ]);
    assert_eq!(fixture.at(S).timeout(), expected);
}

#[test]
fn a_late_answer_to_a_request_before_a_restart_is_reset() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_payload("87");
    fixture.restart();
    fixture.timeout();
    assert_eq!(fixture.receives(HOME, &answer), sent("RST to 102"));
}

#[test]
fn a_registration_survives_a_restart_with_its_location_and_its_address() {
    let mut fixture = DeviceFixture::registered();
    fixture.restart();
    assert_eq!(fixture.device().bound_peer(), Some(peer(HOME)));
    assert_eq!(fixture.update(), updated(102));
}

#[test]
fn a_restored_registration_is_extended_by_unsaved_updates_but_not_beyond_its_lifetime() {
    // Saved at the start, updated in memory until the restart at 50 minutes.
    let cases = [
        (60, 50 * 60 + 60),
        (86_400, 86_400 + 3_000),
        (7_200, 7_200 + 3_000),
    ];
    for (lifetime_s, expires_at_s) in cases {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(&["lwm2m=1.1", &format!("lt={lifetime_s}")], OBJECTS);
        fixture.at(50 * MINUTE).restart();
        fixture.timeout();
        assert_eq!(fixture.deadline(), Some(expires_at_s * S), "{lifetime_s}");
    }
}

#[test]
fn a_registration_that_expired_while_the_service_was_down_ends_at_the_restart() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=60"], OBJECTS);
    fixture.at(2 * HOUR).restart();
    let expected = all([
        recorded("unregistered, seen at 0 from 10.0.0.1:5683"),
        vec!["rebind 10.0.0.1:5683 -> nowhere".to_owned()],
        published("Expired"),
        published("Offline"),
    ]);
    assert_eq!(fixture.timeout(), expected);
}

#[test]
fn a_request_that_expired_while_the_service_was_down_is_not_sent() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active().expiring_in_s(60));
    fixture.at(2 * MINUTE).restart();
    assert_eq!(fixture.update(), updated(102));
    let effects = fixture.timeout();
    assert!(
        effects[3].starts_with("save #1 Scheduled -> Failed"),
        "{effects:?}"
    );
}

#[test]
fn requests_keep_their_order_across_a_restart() {
    let mut fixture = DeviceFixture::registered();
    for path in ["/3/0/13", "/3/0/9", "/3/0/14"] {
        fixture.at(bench_time(path)).ask(read(path).when_active());
    }
    fixture.at(MINUTE).restart();
    let effects = fixture.update();
    assert!(
        effects.last().unwrap().contains("GET /3/0/13"),
        "{effects:?}"
    );
    let effects = fixture.answer(Code::CONTENT, "0");
    assert!(
        effects.last().unwrap().contains("GET /3/0/9"),
        "{effects:?}"
    );
}

fn bench_time(path: &str) -> i64 {
    match path {
        "/3/0/13" => S,
        "/3/0/9" => 2 * S,
        _ => 3 * S,
    }
}

fn interrupted() -> Lines {
    all([
        ended("#1", Failed, &format!("1/1 {INTERRUPTED:?}")),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {INTERRUPTED}."
        )),
    ])
}
