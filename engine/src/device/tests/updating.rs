//! What an update changes, what it saves, and where the device is afterwards.

use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, OBJECTS, S, all, answers, ended, execute, logged, peer,
    published, read, recorded, refused, sent, updated,
};
use crate::action::Status::Succeeded;
use crate::location::Location;

const ELSEWHERE: &str = "10.0.0.9:1024";

#[test]
fn an_update_that_changes_nothing_saves_nothing() {
    let mut fixture = DeviceFixture::registered();
    for s in [60, 120, 3_599] {
        let effects = fixture.at(s * S).update();
        assert_eq!(effects.len(), 2, "{effects:?}");
        assert_eq!(effects[0], format!("rebind {HOME} -> {HOME}"));
        assert!(
            effects[1].starts_with("send 10.0.0.1:5683: ACK 2.04"),
            "{effects:?}"
        );
        assert_eq!(
            fixture.deadline(),
            Some((s + 86_400) * S),
            "the lifetime begins again"
        );
    }
}

#[test]
fn an_update_with_unchanged_parameters_saves_nothing() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.updating(&["lt=86400", "b=U"], OBJECTS);
    assert_eq!(fixture.at(S).receives(HOME, &message), updated(102));
}

#[test]
fn an_update_that_changes_something_saves_it_once() {
    let cases: [(&[&str], &str, i64); 4] = [
        (&["lt=60"], "", 61),
        (&["b=UT"], "", 86_401),
        (&["sms=4915112345"], "", 86_401),
        (&[], "</3/0>,</5/0>", 86_401),
    ];
    for (queries, objects, until_s) in cases {
        let mut fixture = DeviceFixture::registered();
        let message = fixture.updating(queries, objects);
        let until_ms = until_s * S;
        let expected = all([
            recorded(&format!(
                "registered until {until_ms}, seen at 1000 from {HOME}"
            )),
            published("Updated"),
            updated(102),
        ]);
        assert_eq!(fixture.at(S).receives(HOME, &message), expected);
        assert_eq!(
            fixture.receives(HOME, &message),
            sent("ACK 2.04 to 102"),
            "repeated"
        );
        let again = fixture.updating(queries, objects);
        assert_eq!(fixture.receives(HOME, &again), updated(103), "repeated");
    }
}

#[test]
fn presence_is_saved_once_an_hour() {
    let mut fixture = DeviceFixture::registered();
    fixture.at(1_800 * S).update();
    let expected = all([
        recorded("registered until 90000000, seen at 3600000 from 10.0.0.1:5683"),
        updated(103),
    ]);
    assert_eq!(fixture.at(HOUR).update(), expected);
    assert_eq!(fixture.at(2 * HOUR - S).update(), updated(104));
}

#[test]
fn a_malformed_update_changes_nothing() {
    let cases = [
        (
            &["lt=soon"][..],
            "",
            "the lifetime is not a number of seconds",
        ),
        (
            &["b=X"],
            "",
            "the binding is not made of the letters U, T, S, N, M, H and Q",
        ),
        (
            &[],
            "nothing",
            "the object links are not in the CoRE link format",
        ),
    ];
    for (queries, objects, text) in cases {
        let mut fixture = DeviceFixture::registered();
        let message = fixture.updating(queries, objects);
        let effects = fixture.at(S).receives(HOME, &message);
        assert_eq!(answers(&effects), refused("4.00", text, 102));
        assert!(effects[0].starts_with("log LwM2M[RegistrationRejected]"));
        fixture.next_deadline();
        assert_eq!(fixture.deadline(), Some(86_400 * S));
    }
}

#[test]
fn an_update_at_a_location_that_is_not_the_registration_s_is_not_found() {
    let mut fixture = DeviceFixture::registered();
    let stranger = fixture.request(Code::POST, &["rd", "AAAAAAAAAAAAAAAA"]);
    let effects = fixture.receives(HOME, &stranger);
    assert_eq!(answers(&effects), refused("4.04", "register again", 102));
    let own = fixture.updating(&[], "");
    let own: Vec<&str> = own.uri_path().collect();
    let location = Location::parse(own[1]).unwrap();
    for bit in 0..u32::BITS {
        let salt = location.salt ^ (1 << bit);
        let other = Location { salt, ..location }.to_string();
        for code in [Code::POST, Code::DELETE] {
            let forged = fixture.request(code, &["rd", &other]);
            let effects = fixture.receives(HOME, &forged);
            assert!(effects[0].contains("ACK 4.04"), "bit {bit}: {effects:?}");
        }
    }
    assert_eq!(fixture.device().bound_peer(), Some(peer(HOME)));
}

#[test]
fn an_update_from_another_address_moves_the_device_and_writes_nothing() {
    let mut fixture = roaming();
    let message = fixture.updating(&[], "");
    let expected = vec![
        format!("rebind {HOME} -> {ELSEWHERE}"),
        format!("send {ELSEWHERE}: ACK 2.04 to 102"),
    ];
    assert_eq!(fixture.at(S).receives(ELSEWHERE, &message), expected);
    assert_eq!(fixture.device().bound_peer(), Some(peer(ELSEWHERE)));
    let repeated = vec![format!("send {ELSEWHERE}: ACK 2.04 to 102")];
    assert_eq!(fixture.receives(ELSEWHERE, &message), repeated);
}

#[test]
fn a_device_with_an_address_of_its_own_cannot_be_moved_elsewhere() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.updating(&[], "");
    let expected = all([
        logged(&format!(
            "LwM2M[RegistrationRejected] Error: An update from {ELSEWHERE} was rejected with \
             4.04: it did not come from the IP address of the device. The device has the IP \
             address 10.0.0.1 and is registered at 10.0.0.1:5683."
        )),
        vec![format!(
            "send {ELSEWHERE}: ACK 4.04 \"register again\" to 102"
        )],
    ]);
    assert_eq!(fixture.receives(ELSEWHERE, &message), expected);
    assert_eq!(fixture.device().bound_peer(), Some(peer(HOME)));

    let message = fixture.updating(&[], "");
    let effects = fixture.receives("10.0.0.1:1024", &message);
    assert_eq!(
        effects[0], "rebind 10.0.0.1:5683 -> 10.0.0.1:1024",
        "but to another port"
    );
}

#[test]
fn an_exchange_continues_at_the_new_address() {
    let mut fixture = roaming();
    fixture.ask(execute("/3/0/4"));
    let message = fixture.updating(&[], "");
    fixture.at(S).receives(ELSEWHERE, &message);
    let repeated = vec![format!("send {ELSEWHERE}: CON POST /3/0/4 m1")];
    assert_eq!(fixture.next_deadline(), repeated);
    let answer = fixture.piggybacked(Code::CHANGED);
    assert_eq!(
        fixture.receives(ELSEWHERE, &answer),
        ended("#1", Succeeded, r#"1/1 "204""#)
    );
}

#[test]
fn a_message_from_one_address_is_no_duplicate_at_another() {
    let mut fixture = roaming();
    let ping = Message::ping(protocol::coap::message::MessageId(500));
    fixture.receives(HOME, &ping);
    let message = fixture.updating(&["lt=60"], "");
    fixture.at(S).receives(HOME, &message);
    let effects = fixture.at(2 * S).receives(ELSEWHERE, &message);
    assert_eq!(
        effects[0],
        format!("rebind {HOME} -> {ELSEWHERE}"),
        "{effects:?}"
    );
    let expected = vec![format!("send {ELSEWHERE}: RST to 500")];
    assert_eq!(fixture.receives(ELSEWHERE, &ping), expected);
}

#[test]
fn messages_from_a_former_address_are_not_remembered_for_the_present_one() {
    let mut fixture = roaming();
    fixture.ask(read("/3/0/9"));
    let answer = fixture
        .separate(
            protocol::coap::message::MessageKind::Confirmable,
            Code::CONTENT,
        )
        .with_payload("87");
    let message = fixture.updating(&[], "");
    fixture.at(S).receives(ELSEWHERE, &message);
    let effects = fixture.receives(HOME, &answer);
    assert!(
        effects[4].starts_with("save #1 InProgress -> Succeeded"),
        "{effects:?}"
    );
    assert_eq!(effects[5], format!("send {HOME}: ACK to 102"));
    assert_eq!(effects.len(), 6);
    // The same bytes from the present address are no longer an answer.
    let expected = vec![format!("send {ELSEWHERE}: RST to 102")];
    assert_eq!(fixture.receives(ELSEWHERE, &answer), expected);
}

#[test]
fn an_update_in_time_keeps_the_registration() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=60"], OBJECTS);
    for s in [59, 118, 177] {
        assert_eq!(fixture.at(s * S).timeout(), Lines::new());
        fixture.update();
    }
    assert!(fixture.snapshot().registration.is_some());
}

/// A registered device that is accepted from any address.
fn roaming() -> DeviceFixture {
    let mut fixture = DeviceFixture::roaming();
    fixture.register();
    fixture
}
