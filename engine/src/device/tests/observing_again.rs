//! Observations outlive the registration: they are requested again when the device is back (LwM2M
//! Core 1.2 section 6.4.1).

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, HOUR, Lines, MINUTE, OBJECTS, S, all, end_observing, logged,
    moved, observation_lost, observe, published, put_off, read, recorded, sent, updated,
};
use crate::action::Status::{InProgress, Scheduled};

const CLOCK: &str = "/3/0/13";
const RENEWAL: &str = "CON GET /3/0/9 observe 0 accept 0 m2";

#[test]
fn after_a_new_registration_observations_are_requested_again_under_a_new_token() {
    let mut fixture = DeviceFixture::observed();
    let token = fixture.token_observing(BATTERY);
    let expected = all([
        recorded("registered until 86460000, seen at 60000 from 10.0.0.1:5683, /3/0/9 Owed"),
        published("Registered"),
        vec![format!("rebind {HOME} -> {HOME}")],
        sent("ACK 2.01 L2 to 102"),
        sent(RENEWAL),
    ]);
    assert_eq!(fixture.at(MINUTE).register(), expected);
    let new = fixture.last_request().token;
    assert_ne!(new, token);
    assert_eq!(fixture.token_observing(BATTERY), token, "until it agrees");
    let expected = all([
        published("/3/0/9=86 for observed /3/0/9"),
        recorded("registered until 86460000, seen at 60000 from 10.0.0.1:5683, /3/0/9 Held"),
    ]);
    assert_eq!(fixture.agree(3, "86"), expected);
    assert_eq!(fixture.token_observing(BATTERY), new);
    assert_eq!(fixture.update(), updated(103), "nothing is requested twice");
}

#[test]
fn observations_are_requested_again_after_the_device_moved() {
    const ELSEWHERE: &str = "10.0.0.1:1024";
    let mut fixture = DeviceFixture::observed();
    let update = fixture.updating(&[], "");
    let expected = all([vec![
        "save record: registered until 86460000, seen at 60000 from 10.0.0.1:1024, /3/0/9 Owed"
            .to_owned(),
        format!("rebind {HOME} -> {ELSEWHERE}"),
        format!("send {ELSEWHERE}: ACK 2.04 to 102"),
        format!("send {ELSEWHERE}: {RENEWAL}"),
    ]]);
    assert_eq!(fixture.at(MINUTE).receives(ELSEWHERE, &update), expected);
    let mut unobserved = DeviceFixture::registered();
    let update = unobserved.updating(&[], "");
    let effects = unobserved.at(MINUTE).receives(ELSEWHERE, &update);
    assert_eq!(effects.len(), 2, "nothing is saved: {effects:?}");
}

#[test]
fn observations_are_requested_again_one_by_one_after_waiting_requests() {
    let mut fixture = DeviceFixture::observed();
    fixture.begin_observing(CLOCK);
    fixture.ask(read("/3/0/14").when_active());
    let effects = fixture.at(MINUTE).register();
    let first = all([
        moved("#3", Scheduled, InProgress, "1/1"),
        sent("CON GET /3/0/14 accept 0 m3"),
    ]);
    assert!(effects.ends_with(&first), "{effects:?}");
    let effects = fixture.answer(Code::CONTENT, "+01:00");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/9 observe 0 accept 0 m4")),
        "{effects:?}"
    );
    assert_eq!(fixture.timeout(), Lines::new(), "one exchange is in flight");
    let effects = fixture.agree(1, "86");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/13 observe 0 accept 0 m5")),
        "{effects:?}"
    );
    fixture.agree(1, "1700000000");
    assert_eq!(fixture.observations(), ["/3/0/9 Held", "/3/0/13 Held"]);
}

#[test]
fn a_request_of_a_caller_goes_before_observations_to_renew() {
    let mut fixture = DeviceFixture::observed();
    fixture.begin_observing(CLOCK);
    fixture.at(MINUTE).register();
    fixture.ask(read("/3/0/14"));
    let effects = fixture.agree(1, "86");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/14 accept 0 m4")),
        "{effects:?}"
    );
}

#[test]
fn an_observation_that_the_device_does_not_renew_is_logged_as_lost() {
    let unlike = [
        (Code::NOT_FOUND, "the device answered 4.04"),
        (Code::METHOD_NOT_ALLOWED, "the device answered 4.05"),
        (Code::INTERNAL_SERVER_ERROR, "the device answered 5.00"),
    ];
    for (code, why) in unlike {
        let mut fixture = registered_again();
        let expected = all([lost(), observation_lost(why)]);
        assert_eq!(fixture.answer(code, ""), expected);
        assert_eq!(fixture.update(), updated(103), "it is not requested again");
    }
    let mut fixture = registered_again();
    let expected = all([
        published("/3/0/9=86 for observed /3/0/9"),
        lost(),
        observation_lost("the device did not restart the observation"),
    ]);
    assert_eq!(fixture.answer(Code::CONTENT, "86"), expected);
}

#[test]
fn an_answer_with_an_unknown_critical_option_ends_an_observation_to_renew() {
    let mut fixture = registered_again();
    let answer = fixture
        .separate(MessageKind::Confirmable, Code::CONTENT)
        .with_option(9, &[1]);
    let expected = all([
        lost(),
        observation_lost("the response has the unsupported critical option 9"),
        sent("RST to 103"),
    ]);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn an_observation_is_renewed_even_if_its_value_cannot_be_decoded() {
    let mut fixture = registered_again();
    let expected = all([
        logged(
            "Translator[UserPayloadError] Error: A payload was rejected: the notification \
             for /3/0/9 cannot be decoded: the payload is not a value of type INTEGER. \
             Kept: \"warm\"",
        ),
        recorded("registered until 86460000, seen at 60000 from 10.0.0.1:5683, /3/0/9 Held"),
    ]);
    assert_eq!(fixture.agree(1, "warm"), expected);
}

#[test]
fn after_a_timeout_an_observation_is_owed_until_the_next_uplink() {
    let mut fixture = DeviceFixture::observed();
    fixture.begin_observing(CLOCK);
    fixture.at(MINUTE).register();
    let repeated = sent("CON GET /3/0/9 observe 0 accept 0 m3");
    while fixture.deadline() < Some(MINUTE + 62 * S) {
        assert_eq!(fixture.next_deadline(), repeated);
    }
    assert_eq!(
        fixture.next_deadline(),
        Lines::new(),
        "nor is the other requested"
    );
    assert_eq!(fixture.observations(), ["/3/0/9 Owed", "/3/0/13 Owed"]);
    assert_eq!(fixture.deadline(), Some(MINUTE + 86_400 * S));
    let expected = all([updated(103), sent("CON GET /3/0/9 observe 0 accept 0 m4")]);
    assert_eq!(fixture.at(HOUR).update(), expected);
}

#[test]
fn an_observation_refused_for_now_is_requested_at_the_next_uplink() {
    let ends: [fn(&mut DeviceFixture) -> Message; 4] = [
        |fixture| fixture.piggybacked(Code::REQUEST_ENTITY_INCOMPLETE),
        |fixture| fixture.piggybacked(Code::TOO_MANY_REQUESTS),
        |fixture| fixture.piggybacked(Code::SERVICE_UNAVAILABLE),
        |fixture| Message::reset(fixture.last_request().message_id),
    ];
    for end in ends {
        let mut fixture = DeviceFixture::observed();
        fixture.begin_observing(CLOCK);
        fixture.at(MINUTE).register();
        let message = end(&mut fixture);
        let other = sent("CON GET /3/0/13 observe 0 accept 0 m4");
        assert_eq!(
            fixture.receives(HOME, &message),
            other,
            "the device is there"
        );
        fixture.agree(1, "1700000000");
        assert_eq!(fixture.observations(), ["/3/0/9 Owed", "/3/0/13 Held"]);
        assert_eq!(fixture.timeout(), Lines::new());
        let expected = all([updated(103), sent("CON GET /3/0/9 observe 0 accept 0 m5")]);
        assert_eq!(fixture.at(2 * MINUTE).update(), expected);
    }
}

#[test]
fn an_update_during_a_renewal_does_not_permit_a_second_renewal() {
    let mut fixture = registered_again();
    assert_eq!(fixture.at(MINUTE + S).update(), updated(103));
    assert_eq!(fixture.answer(Code::SERVICE_UNAVAILABLE, ""), Lines::new());
    assert_eq!(fixture.timeout(), Lines::new());
    let expected = all([updated(104), sent("CON GET /3/0/9 observe 0 accept 0 m3")]);
    assert_eq!(fixture.update(), expected);
}

#[test]
fn an_observation_is_requested_once_if_the_device_registers_during_the_renewal() {
    let mut fixture = registered_again();
    let effects = fixture.at(2 * MINUTE).register();
    assert!(
        effects.ends_with(&sent("ACK 2.01 L3 to 103")),
        "{effects:?}"
    );
    fixture.agree(1, "86");
    assert_eq!(fixture.update(), updated(104));
}

#[test]
fn an_observation_is_renewed_even_if_a_notification_comes_first() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(read(CLOCK).when_active());
    fixture.at(MINUTE).register();
    let expected = all([
        published("/3/0/9=86 for observed /3/0/9"),
        sent("ACK to 103"),
    ]);
    assert_eq!(fixture.notify(3, "86"), expected);
    let effects = fixture.answer(Code::CONTENT, "1700000000");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/9 observe 0 accept 0 m3")),
        "{effects:?}"
    );
}

#[test]
fn a_late_message_of_the_old_observation_does_not_end_the_owed_one() {
    let ends: [(LateMessage, Lines); 3] = [
        (
            |message| message.with_payload("86"),
            all([
                published("/3/0/9=86 for observed /3/0/9"),
                sent("ACK to 300"),
            ]),
        ),
        (
            |mut message| {
                message.code = Code::NOT_FOUND;
                message
            },
            sent("ACK to 300"),
        ),
        (|message| message.with_option(9, &[1]), sent("RST to 300")),
    ];
    for (end, expected) in ends {
        let mut fixture = DeviceFixture::observed();
        let token = fixture.token_observing(BATTERY);
        fixture.at(MINUTE).register();
        let late = Message::separate(
            MessageKind::Confirmable,
            Code::CONTENT,
            MessageId(300),
            token,
        );
        assert_eq!(fixture.receives(HOME, &end(late)), expected);
        fixture.agree(1, "86");
        assert_eq!(fixture.observations(), ["/3/0/9 Held"]);
    }
}

#[test]
fn observations_are_owed_by_a_device_that_deregistered() {
    let mut fixture = DeviceFixture::observed();
    let effects = fixture.at(S).deregister();
    assert_eq!(
        effects[0],
        "save record: unregistered, seen at 1000 from 10.0.0.1:5683, /3/0/9 Owed"
    );
    fixture.next_deadline();
    assert!(fixture.device().is_idle(), "the store knows it");
    let effects = fixture.at(HOUR).register();
    assert!(effects.ends_with(&sent(RENEWAL)), "{effects:?}");
}

#[test]
fn observations_are_owed_by_a_device_whose_registration_expired() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=60"], OBJECTS);
    fixture.begin_observing(BATTERY);
    let effects = fixture.at(MINUTE).timeout();
    assert_eq!(
        effects[0],
        "save record: unregistered, seen at 0 from 10.0.0.1:5683, /3/0/9 Owed"
    );
    assert!(fixture.device().is_idle(), "the store knows it");
    let effects = fixture.at(HOUR).register();
    assert!(effects.ends_with(&sent(RENEWAL)), "{effects:?}");
}

#[test]
fn a_renewal_that_a_deregistration_ends_is_repeated_when_the_device_is_back() {
    let mut fixture = registered_again();
    fixture.deregister();
    assert_eq!(fixture.observations(), ["/3/0/9 Owed"]);
    let effects = fixture.at(HOUR).register();
    assert!(
        effects.ends_with(&sent("CON GET /3/0/9 observe 0 accept 0 m3")),
        "{effects:?}"
    );
}

#[test]
fn a_held_observation_is_not_requested_again_after_a_restart() {
    let mut fixture = DeviceFixture::observed();
    fixture.restart();
    assert_eq!(fixture.timeout(), Lines::new());
    assert_eq!(fixture.update(), updated(102));
    assert_eq!(fixture.observations(), ["/3/0/9 Held"]);
}

#[test]
fn an_owed_observation_is_requested_at_the_first_uplink_after_a_restart() {
    let mut fixture = registered_again();
    fixture.restart();
    assert_eq!(fixture.timeout(), Lines::new());
    let expected = all([updated(103), sent("CON GET /3/0/9 observe 0 accept 0 m3")]);
    assert_eq!(fixture.update(), expected);
}

#[test]
fn observations_of_a_sleeping_device_are_requested_at_its_next_uplink() {
    let mut fixture = DeviceFixture::new();
    let queue_mode = ["lwm2m=1.1", "lt=86400", "b=U", "Q"];
    fixture.register_with(&queue_mode, OBJECTS);
    fixture.begin_observing(BATTERY);
    fixture.at(HOUR).ask(read("/3/0/14").attempts(2));
    fixture.register_with(&queue_mode, OBJECTS);
    let acknowledgement = Message::acknowledgement(fixture.last_request().message_id);
    fixture.receives(HOME, &acknowledgement);
    // The answer is awaited only as long as the device listens.
    assert_eq!(fixture.at(HOUR + 93 * S).timeout(), put_off("#2", "1/2"));
    assert_eq!(fixture.timeout(), Lines::new());
    let effects = fixture.at(2 * HOUR - S).update();
    assert!(
        effects.ends_with(&sent("CON GET /3/0/14 accept 0 m3")),
        "{effects:?}"
    );
    let effects = fixture.answer(Code::CONTENT, "+01:00");
    assert!(
        effects.ends_with(&sent("CON GET /3/0/9 observe 0 accept 0 m4")),
        "{effects:?}"
    );
}

#[test]
fn an_observation_ended_by_a_request_is_not_requested_again() {
    let mut fixture = DeviceFixture::observed();
    fixture.ask(end_observing(BATTERY).when_active());
    let effects = fixture.at(MINUTE).register();
    assert!(
        effects.ends_with(&sent("CON GET /3/0/9 observe 1 accept 0 m2")),
        "{effects:?}"
    );
    fixture.answer(Code::CONTENT, "86");
    assert_eq!(fixture.observations(), Lines::new());
    assert_eq!(fixture.update(), updated(103));
}

#[test]
fn an_observation_begun_again_by_a_request_is_not_requested_again() {
    let mut fixture = DeviceFixture::observed();
    let token = fixture.token_observing(BATTERY);
    fixture.ask(observe(BATTERY).when_active());
    let effects = fixture.at(MINUTE).register();
    assert!(effects.ends_with(&sent(RENEWAL)), "{effects:?}");
    assert_ne!(fixture.last_request().token, token);
    let effects = fixture.agree(1, "86");
    assert!(
        effects.last().unwrap().starts_with("save #2"),
        "{effects:?}"
    );
    assert_eq!(fixture.observations(), ["/3/0/9 Held"]);
    assert_eq!(fixture.update(), updated(103));
}

#[test]
fn a_removed_device_has_no_observations() {
    let mut fixture = DeviceFixture::observed();
    let expected = vec![
        "expect device".to_owned(),
        "remove device".to_owned(),
        "count devices -1".to_owned(),
        format!("rebind {HOME} -> nowhere"),
    ];
    assert_eq!(fixture.retire(), expected);
    assert!(fixture.device().is_idle());
}

/// Makes a late message out of a notification.
type LateMessage = fn(Message) -> Message;

/// A device whose battery was observed, that registered again and is requested to observe it again.
fn registered_again() -> DeviceFixture {
    let mut fixture = DeviceFixture::observed();
    let effects = fixture.at(MINUTE).register();
    assert!(effects.ends_with(&sent(RENEWAL)), "{effects:?}");
    fixture
}

fn lost() -> Lines {
    recorded("registered until 86460000, seen at 60000 from 10.0.0.1:5683")
}
