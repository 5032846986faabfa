//! The expiry of requests and registrations, also during an exchange.

use protocol::coap::code::Code;

use super::vocabulary::{
    DeviceFixture, HOUR, Lines, S, all, answered, coap, created, ended, logged, moved, published,
    put_off, read, recorded, sent, updated,
};
use crate::action::Method;
use crate::action::Status::{Failed, InProgress, Scheduled};

#[test]
fn a_request_may_have_an_expiry_of_its_own() {
    let mut fixture = DeviceFixture::new();
    let (_, effects) = fixture.submit(read("/3/0/9").when_active().expiring_in_s(90));
    assert_eq!(effects, created("#1", Scheduled, "0/1"));
    assert_eq!(fixture.deadline(), Some(90 * S));
    assert_eq!(
        fixture.next_deadline(),
        expired(Scheduled, "0/1", "22:14:50", "it was sent")
    );
}

#[test]
fn an_expired_request_is_not_sent_though_an_uplink_precedes_the_timeout() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").when_active().expiring_in_s(90));
    fixture.at(100 * S);
    assert_eq!(fixture.update(), updated(102), "the wake-up comes late");
    assert_eq!(
        fixture.timeout(),
        expired(Scheduled, "0/1", "22:14:50", "it was sent")
    );
}

#[test]
fn an_attempt_in_flight_is_not_ended_when_its_request_expires() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").expiring_in_s(1));
    assert_eq!(fixture.at(S).timeout(), Lines::new());
    assert_eq!(
        fixture.deadline(),
        Some(2 * S),
        "the deadline is the exchange's"
    );
    let expected = answered("#1", "/3/0/9=87", r#"1/1 "205" "87""#);
    assert_eq!(fixture.at(3 * S).answer(Code::CONTENT, "87"), expected);
}

#[test]
fn a_request_that_expired_during_its_attempt_is_not_tried_again() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").attempts(5).expiring_in_s(1));
    let effects = fixture.at(3 * S).answer(Code::SERVICE_UNAVAILABLE, "");
    assert_eq!(effects, put_off("#1", "1/5"));
    assert!(fixture.deadline() <= Some(3 * S), "it is due at once");
    assert_eq!(
        fixture.timeout(),
        expired(InProgress, "1/5", "22:13:21", "the device answered")
    );
}

#[test]
fn a_request_that_expired_during_its_attempt_is_not_tried_again_by_an_update_either() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9").attempts(5).expiring_in_s(1));
    fixture.at(3 * S).answer(Code::SERVICE_UNAVAILABLE, "");
    assert_eq!(fixture.update(), updated(102));
}

#[test]
fn requests_that_expire_together_fail_together_and_each_is_logged() {
    let mut fixture = DeviceFixture::new();
    for _ in 0..2 {
        fixture.ask(read("/3/0/9").when_active().expiring_in_s(90));
    }
    fixture.ask(read("/3/0/9").when_active().expiring_in_s(91));
    let effects = fixture.at(90 * S).timeout();
    let expected = all([
        expired(Scheduled, "0/1", "22:14:50", "it was sent"),
        named("#2", expired(Scheduled, "0/1", "22:14:50", "it was sent")),
    ]);
    assert_eq!(effects, expected);
    assert_eq!(fixture.deadline(), Some(91 * S));
}

#[test]
fn an_expired_registration_ends_the_attempt_in_flight() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=60"], "</3/0>");
    fixture.at(50 * S).ask(read("/3/0/9"));
    while fixture.deadline() < Some(60 * S) {
        assert_eq!(fixture.next_deadline(), sent("CON GET /3/0/9 accept 0 m1"));
    }
    let why = "the registration of the device expired before it answered";
    let expected = all([
        recorded("unregistered, seen at 0 from 10.0.0.1:5683"),
        ended("#1", Failed, &format!("1/1 {why:?}")),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
        vec!["rebind 10.0.0.1:5683 -> nowhere".to_owned()],
        published("Expired"),
        published("Offline"),
    ]);
    assert_eq!(fixture.at(60 * S).timeout(), expected);
}

#[test]
fn nothing_is_retransmitted_to_a_device_whose_registration_expired() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=60"], "</3/0>");
    fixture.at(50 * S).ask(read("/3/0/9"));
    let effects = fixture.at(61 * S).timeout();
    assert!(
        effects.iter().all(|line| !line.starts_with("send")),
        "{effects:?}"
    );
}

#[test]
fn a_request_in_progress_survives_its_device_s_registration() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=60"], "</3/0>");
    fixture.at(50 * S).ask(read("/3/0/9").attempts(2));
    fixture.at(60 * S).timeout();
    assert_eq!(fixture.timeout(), Lines::new(), "nothing is sent");
    let effects = fixture.at(HOUR).register();
    let again = all([
        moved("#1", InProgress, InProgress, "2/2"),
        sent("CON GET /3/0/9 accept 0 m2"),
    ]);
    assert!(effects.ends_with(&again), "{effects:?}");
}

#[test]
fn a_request_to_be_sent_now_that_still_waits_fails_when_the_registration_expires() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=200", "b=U", "Q"], "</3/0>");
    fixture.at(150 * S).ask(read("/3/0/9").attempts(2));
    let kept = fixture.ask(read("/3/0/13").when_active());
    let over_coap = fixture.ask(coap(Method::Get, "/a", ""));
    let why = "the registration of the device expired before the request was sent";
    let expected = all([
        recorded("unregistered, seen at 0 from 10.0.0.1:5683"),
        unsent("0/2", why),
        vec!["rebind 10.0.0.1:5683 -> nowhere".to_owned()],
        published("Expired"),
    ]);
    let effects = fixture.at(200 * S).timeout();
    assert!(effects.starts_with(&expected), "{effects:?}");
    assert_eq!(fixture.saved(kept).status, Scheduled);
    assert_eq!(fixture.saved(over_coap).status, Scheduled, "it needs none");
}

#[test]
fn a_request_to_be_sent_now_that_still_waits_fails_when_the_device_deregisters() {
    let mut fixture = DeviceFixture::registered();
    let in_flight = fixture.ask(read("/3/0/13").attempts(2));
    fixture.ask(read("/3/0/9"));
    let kept = fixture.ask(read("/3/0/14").when_active());
    let effects = fixture.deregister();
    let why = "the device deregistered before the request was sent";
    let failed: Lines = named("#2", unsent("0/1", why));
    let failed_at = |line: &String| effects.iter().position(|it| it == line);
    assert!(
        failed.iter().all(|line| failed_at(line).is_some()),
        "{effects:?}"
    );
    assert_eq!(
        fixture.saved(in_flight).status,
        InProgress,
        "it has attempts left"
    );
    assert_eq!(fixture.saved(kept).status, Scheduled);
}

/// The first request fails before it was sent.
fn unsent(progress: &str, why: &str) -> Lines {
    all([
        moved("#1", Scheduled, Failed, &format!("{progress} {why:?}")),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
    ])
}

fn expired(was: crate::action::Status, progress: &str, at: &str, before: &str) -> Lines {
    let why = format!("the request expired at 2023-11-14T{at}.000Z before {before}");
    all([
        moved("#1", was, Failed, &format!("{progress} {why:?}")),
        logged(&format!(
            "DeviceController[ActionRequestExpired] Error: Action request #1 failed: {why}."
        )),
    ])
}

fn named(name: &str, lines: Lines) -> Lines {
    lines.iter().map(|line| line.replace("#1", name)).collect()
}
