//! Who may register, how a registration is answered, and what is saved.

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::version::EnablerVersion;

use super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, MINUTE, OBJECTS, S, all, answers, logged, peer, profile,
    published, recorded, refused, sent, updated,
};
use crate::rules::EndpointTrust;

const FORBIDDEN: &str = "endpoint name not accepted from this address";

const FIRST: &str = "Lifecycle[DeviceFirstTimeRegistered] Info: \
                     The device registered for the first time as meter.";

#[test]
fn a_registration_is_saved_and_then_answered_with_its_location() {
    let mut fixture = DeviceFixture::new();
    let expected = all([
        published("FirstContact"),
        recorded("registered until 86400000, seen at 0 from 10.0.0.1:5683"),
        published("Registered"),
        logged(FIRST),
        vec!["rebind 10.0.0.1:5683 -> 10.0.0.1:5683".to_owned()],
        sent("ACK 2.01 L1 to 101"),
    ]);
    assert_eq!(fixture.register(), expected);
    let registration = fixture.snapshot().registration.unwrap();
    assert_eq!(registration.version, EnablerVersion::V1_1);
    assert_eq!(registration.links.objects().count(), 3);
    assert_eq!(fixture.device().bound_peer(), Some(peer(HOME)));
}

#[test]
fn first_contact_is_logged_exactly_once() {
    let mut fixture = DeviceFixture::new();
    assert!(fixture.register().contains(&format!("log {FIRST}")));
    let first_at = fixture.saved_record().first_contact_at;
    for hour in 1..4 {
        fixture.restart();
        let effects = fixture.at(hour * HOUR).register();
        assert!(
            effects.iter().all(|line| !line.starts_with("log")),
            "{effects:?}"
        );
        fixture.deregister();
        assert_eq!(fixture.saved_record().first_contact_at, first_at);
    }
}

#[test]
fn a_repeated_register_gets_the_same_location_and_saves_nothing() {
    let mut fixture = DeviceFixture::new();
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    fixture.receives(HOME, &message);
    assert_eq!(
        fixture.at(2 * S).receives(HOME, &message),
        sent("ACK 2.01 L1 to 101")
    );
    assert_eq!(
        fixture.at(200 * S).receives(HOME, &message),
        sent("ACK 2.01 L1 to 101")
    );
}

#[test]
fn a_repeated_register_is_not_answered_once_its_registration_is_gone() {
    let mut fixture = DeviceFixture::new();
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    fixture.receives(HOME, &message);
    fixture.at(S).deregister();
    assert_eq!(
        fixture.at(2 * S).receives(HOME, &message),
        Lines::new(),
        "there is no location to answer with"
    );
    assert_eq!(fixture.snapshot().registration, None);
}

#[test]
fn registering_again_gives_a_new_location_and_ends_the_old_one() {
    let mut fixture = DeviceFixture::registered();
    let old = fixture.updating(&[], "");
    let expected = all([
        recorded("registered until 86405000, seen at 5000 from 10.0.0.1:5683"),
        published("Registered"),
        vec![format!("rebind {HOME} -> {HOME}")],
        sent("ACK 2.01 L2 to 103"),
    ]);
    assert_eq!(fixture.at(5 * S).register(), expected);
    let effects = fixture.receives(HOME, &old);
    assert_eq!(answers(&effects), refused("4.04", "register again", 102));
    assert_eq!(fixture.update(), updated(104));
}

#[test]
fn a_non_confirmable_registration_is_answered_too() {
    let mut fixture = DeviceFixture::new();
    let mut message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    message.kind = MessageKind::NonConfirmable;
    let effects = fixture.receives(HOME, &message);
    assert!(
        effects[5].starts_with("send 10.0.0.1:5683: NON 2.01 L1"),
        "{effects:?}"
    );
    assert_eq!(fixture.receives(HOME, &message), Lines::new());
}

#[test]
fn a_registration_from_another_address_is_forbidden() {
    let mut fixture = DeviceFixture::new();
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    let expected = all([
        logged(
            "LwM2M[RegistrationRejected] Error: A registration from 10.0.0.2:5683 was rejected \
             with 4.03: it did not come from the IP address of the device. The device has the IP \
             address 10.0.0.1 and is not registered.",
        ),
        vec![format!("send 10.0.0.2:5683: ACK 4.03 {FORBIDDEN:?} to 101")],
    ]);
    assert_eq!(fixture.receives("10.0.0.2:5683", &message), expected);
    assert_eq!(fixture.snapshot().registration, None);
    assert!(
        !fixture.device().is_idle(),
        "it remembers that it logged, so that strangers do not fill the log"
    );
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert_eq!(fixture.deadline(), None);
    assert!(fixture.device().is_idle());
}

#[test]
fn the_port_of_a_registration_does_not_matter() {
    let mut fixture = DeviceFixture::new();
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    let effects = fixture.receives("10.0.0.1:40000", &message);
    assert!(effects.contains(&"send 10.0.0.1:40000: ACK 2.01 L1 to 101".to_owned()));
}

#[test]
fn an_ipv4_mapped_address_is_the_ipv4_address() {
    let mut mapped = profile();
    mapped.ip = Some("::ffff:10.0.0.1".parse().unwrap());
    let mut fixture = DeviceFixture::of(mapped, EndpointTrust::AddressRequired);
    assert!(
        fixture
            .register()
            .contains(&"send 10.0.0.1:5683: ACK 2.01 L1 to 101".to_owned())
    );

    let mut fixture = DeviceFixture::new();
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    let effects = fixture.receives("[::ffff:10.0.0.1]:5683", &message);
    assert!(effects.contains(&"send 10.0.0.1:5683: ACK 2.01 L1 to 101".to_owned()));
}

#[test]
fn a_device_without_address_is_accepted_only_where_names_suffice() {
    let mut fixture = DeviceFixture::roaming();
    assert!(
        fixture
            .register()
            .contains(&"send 10.0.0.1:5683: ACK 2.01 L1 to 101".to_owned())
    );

    let mut fixture = DeviceFixture::of(profile(), EndpointTrust::AddressRequired);
    let expected = all([
        logged(
            "LwM2M[RegistrationRejected] Error: A registration from 10.0.0.1:5683 was rejected \
             with 4.03: the device has no IP address to verify the sender by; set its ip. The \
             device has no IP address of its own and is not registered.",
        ),
        refused("4.03", FORBIDDEN, 101),
    ]);
    assert_eq!(fixture.register(), expected);
}

#[test]
fn a_device_with_an_address_must_come_from_it_also_where_names_suffice() {
    let mut fixed = profile();
    fixed.ip = Some("10.0.0.1".parse().unwrap());
    let mut fixture = DeviceFixture::of(fixed, EndpointTrust::NameSuffices);
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    let effects = fixture.receives("10.0.0.2:5683", &message);
    let answer = format!("send 10.0.0.2:5683: ACK 4.03 {FORBIDDEN:?} to 101");
    assert_eq!(effects.last().unwrap(), &answer);
}

#[test]
fn rejections_are_logged_at_most_once_a_minute() {
    let mut fixture = DeviceFixture::new();
    let mut logged_at = Vec::new();
    for s in [0, 1, 59, 60, 61, 119, 120, 500] {
        let message = fixture.registration(&["lwm2m=1.1"], OBJECTS);
        let effects = fixture.at(s * S).receives("10.0.0.2:5683", &message);
        assert!(effects.last().unwrap().contains("ACK 4.03"), "{effects:?}");
        if effects.len() > 1 {
            assert_eq!(effects[1], "publish failure LwM2M[RegistrationRejected]");
            logged_at.push(s);
        }
    }
    assert_eq!(logged_at, [0, 60, 120, 500]);
}

#[test]
fn a_stranger_s_attempt_does_not_touch_the_registration() {
    let mut fixture = DeviceFixture::registered();
    let before = fixture.snapshot();
    let message = fixture.registration(&["lwm2m=1.1"], OBJECTS);
    fixture.at(S).receives("10.0.0.2:5683", &message);
    let after = fixture.snapshot();
    assert_eq!(
        (before.registration, before.peer),
        (after.registration, after.peer)
    );
    assert_eq!(before.last_seen_at, after.last_seen_at);
}

#[test]
fn a_malformed_registration_is_answered_with_its_error() {
    let cases: [(&[&str], &str, &str, &str, &str); 5] = [
        (
            &["lwm2m=1.3"],
            OBJECTS,
            "4.12",
            "this version of LwM2M is not supported; 1.0, 1.1 and 1.2 are",
            "; it has \"lwm2m=1.3\"",
        ),
        (
            &["lwm2m=1.1", "lt=soon"],
            OBJECTS,
            "4.00",
            "the lifetime is not a number of seconds",
            "; it has \"lt=soon\"",
        ),
        (
            &["lwm2m=1.1", "b=X"],
            OBJECTS,
            "4.00",
            "the binding is not made of the letters U, T, S, N, M, H and Q",
            "; it has \"b=X\"",
        ),
        (
            &["lwm2m=1.1", "lt=60", "lt=61"],
            OBJECTS,
            "4.00",
            "a parameter is given twice",
            "",
        ),
        (
            &["lwm2m=1.1"],
            "nothing",
            "4.00",
            "the object links are not in the CoRE link format",
            "; it has \"nothing\"",
        ),
    ];
    for (queries, objects, code, text, sent) in cases {
        let mut fixture = DeviceFixture::new();
        let effects = fixture.register_with(queries, objects);
        let entry = logged(&format!(
            "LwM2M[RegistrationRejected] Error: A registration from 10.0.0.1:5683 was rejected \
             with {code}: {text}{sent}. The device has the IP address 10.0.0.1 and is not \
             registered."
        ));
        assert_eq!(effects, all([entry, refused(code, text, 101)]));
    }
}

#[test]
fn a_registration_with_another_endpoint_name_is_forbidden() {
    let mut fixture = DeviceFixture::new();
    let message = fixture.request(Code::POST, &["rd"]);
    let message = message.with_uri_query(["ep=metre", "lwm2m=1.1"]);
    let entry = logged(
        "LwM2M[RegistrationRejected] Error: A registration from 10.0.0.1:5683 was rejected with \
         4.03: it has the endpoint name \"metre\", and the device has \"meter\". The device has \
         the IP address 10.0.0.1 and is not registered.",
    );
    let expected = all([entry, refused("4.03", FORBIDDEN, 101)]);
    assert_eq!(fixture.receives(HOME, &message), expected);
}

#[test]
fn rejections_that_were_not_logged_are_counted_at_the_end_of_the_minute() {
    let mut fixture = DeviceFixture::new();
    for s in 0..13 {
        let message = fixture.registration(&["lwm2m=1.1"], OBJECTS);
        fixture.at(s * S).receives("10.0.0.2:5683", &message);
    }
    let message = fixture.data("t", "21.5");
    fixture.at(13 * S).receives("10.0.0.3:5683", &message);
    assert_eq!(fixture.deadline(), Some(MINUTE));
    let expected = logged(
        "CoAP[UnauthorizedDevice] Error: Data from 10.0.0.3:5683 was rejected with 4.01: it did \
         not come from the IP address of the device. The device has the IP address 10.0.0.1 and \
         is not registered. Rejected since 2023-11-14T22:13:21.000Z and not logged: 12 more.",
    );
    assert_eq!(fixture.next_deadline(), expected);
    assert!(!fixture.device().is_idle(), "an entry a minute at most");
    assert_eq!(fixture.deadline(), Some(2 * MINUTE));
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert!(fixture.device().is_idle());
}

#[test]
fn a_stranger_is_answered_no_more_than_it_sent() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.updating(&[], "");
    let effects = fixture.receives("10.0.0.2:5683", &message);
    let answer = "send 10.0.0.2:5683: ACK 4.04 \"register again\" to 102";
    assert_eq!(answers(&effects), [answer]);
    let message = fixture.request(Code::POST, &["rd"]);
    let message = message.with_uri_query(["ep=meter"]);
    let effects = fixture.receives("10.0.0.2:5683", &message);
    assert_eq!(
        effects,
        ["send 10.0.0.2:5683: ACK 4.03 to 103"],
        "no text fits"
    );
}

#[test]
fn a_non_confirmable_registration_of_a_stranger_is_not_answered() {
    let mut fixture = DeviceFixture::new();
    let mut message = fixture.registration(&["lwm2m=1.1"], OBJECTS);
    message.kind = MessageKind::NonConfirmable;
    let effects = fixture.receives("10.0.0.2:5683", &message);
    assert_eq!(answers(&effects), Lines::new(), "as for an unknown name");
    assert!(effects[0].starts_with("log LwM2M[RegistrationRejected]"));
}

#[test]
fn every_enabler_version_and_a_missing_one_are_accepted() {
    let cases = [
        (Some("lwm2m=1.0"), EnablerVersion::V1_0),
        (Some("lwm2m=1.1"), EnablerVersion::V1_1),
        (Some("lwm2m=1.2"), EnablerVersion::V1_2),
        (None, EnablerVersion::V1_0),
    ];
    for (query, version) in cases {
        let mut fixture = DeviceFixture::new();
        let queries: Vec<&str> = query.into_iter().collect();
        fixture.register_with(&queries, OBJECTS);
        assert_eq!(fixture.snapshot().registration.unwrap().version, version);
    }
}

#[test]
fn a_lifetime_is_honoured_up_to_a_day_which_is_the_default() {
    let cases: [(&[&str], i64); 6] = [
        (&["lt=1"], 1),
        (&["lt=60"], 60),
        (&["lt=86400"], 86_400),
        (&["lt=86401"], 86_400),
        (&["lt=0"], 86_400),
        (&[], 86_400),
    ];
    for (queries, lifetime_s) in cases {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(queries, OBJECTS);
        assert_eq!(fixture.deadline(), Some(lifetime_s * S), "{queries:?}");
        assert_eq!(fixture.at(lifetime_s * S - 1).timeout(), Lines::new());
        let expected = all([
            recorded("unregistered, seen at 0 from 10.0.0.1:5683"),
            vec!["rebind 10.0.0.1:5683 -> nowhere".to_owned()],
            published("Expired"),
            published("Offline"),
        ]);
        assert_eq!(fixture.at(lifetime_s * S).timeout(), expected);
        assert_eq!(fixture.device().bound_peer(), None);
    }
}

#[test]
fn deregistering_ends_the_registration() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.deregistering();
    let expected = all([
        recorded("unregistered, seen at 5000 from 10.0.0.1:5683"),
        vec!["rebind 10.0.0.1:5683 -> nowhere".to_owned()],
        published("Deregistered"),
        sent("ACK 2.02 to 102"),
    ]);
    assert_eq!(fixture.at(5 * S).receives(HOME, &message), expected);
    assert_eq!(
        fixture.receives(HOME, &message),
        sent("ACK 2.02 to 102"),
        "repeated"
    );
    let effects = fixture.update();
    assert_eq!(answers(&effects), refused("4.04", "register again", 103));
    assert!(
        !fixture.device().is_idle(),
        "it remembers how it answered, for the device may ask again"
    );
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert_eq!(fixture.deadline(), Some(5 * S + 247 * S));
    assert_eq!(fixture.next_deadline(), Lines::new());
    assert!(fixture.device().is_idle());
}

#[test]
fn a_device_that_deregisters_from_another_peer_loses_its_binding() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.deregistering();
    let expected = all([
        recorded("unregistered, seen at 5000 from 10.0.0.1:6000"),
        vec!["rebind 10.0.0.1:5683 -> nowhere".to_owned()],
        published("Deregistered"),
        vec!["send 10.0.0.1:6000: ACK 2.02 to 102".to_owned()],
    ]);
    assert_eq!(
        fixture.at(5 * S).receives("10.0.0.1:6000", &message),
        expected
    );
}

#[test]
fn deregistering_a_registration_that_is_gone_is_not_found() {
    let mut fixture = DeviceFixture::registered();
    let old = fixture.deregistering();
    fixture.register();
    let effects = fixture.receives(HOME, &old);
    assert_eq!(answers(&effects), refused("4.04", "register again", 102));
    assert!(fixture.snapshot().registration.is_some());
}

#[test]
fn registering_again_during_an_exchange_keeps_the_exchange() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(super::vocabulary::read("/3/0/9"));
    let answer: Message = fixture.piggybacked(Code::CONTENT).with_payload("87");
    fixture.at(S).register();
    assert_eq!(fixture.next_deadline(), sent("CON GET /3/0/9 accept 0 m1"));
    assert!(fixture.receives(HOME, &answer)[4].starts_with("save #1 InProgress -> Succeeded"));
}
