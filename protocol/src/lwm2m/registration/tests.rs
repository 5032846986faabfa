//! Is every Register and Update read or refused as specified?

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use proptest::sample::select;

use super::{Register, RegistrationRefusal, Update};
use crate::coap::code::Code;
use crate::lwm2m::binding::{Binding, Transport};
use crate::lwm2m::links::{MalformedLinks, ObjectLinks};
use crate::lwm2m::version::EnablerVersion;

#[test]
fn a_full_register_is_read() {
    let queries = [
        "lwm2m=1.1",
        "ep=meter",
        "lt=300",
        "b=UT",
        "Q",
        "sms=+491701234567",
    ];
    let register = Register::decode(queries, b"</1/0>,</3/0>").unwrap();
    assert_eq!(&*register.endpoint, "meter");
    assert_eq!(register.lifetime_s, Some(300));
    assert_eq!(register.version, EnablerVersion::V1_1);
    assert_eq!(
        register.binding,
        Binding::UDP.with(Transport::Tcp).with_queue_mode()
    );
    assert!(register.queue_mode());
    assert_eq!(register.sms.as_deref(), Some("+491701234567"));
    assert_eq!(register.links.encode(), "</1/0>,</3/0>");
}

#[test]
fn a_register_of_a_name_alone_takes_the_defaults() {
    let register = Register::decode(["ep=meter"], b"").unwrap();
    assert_eq!(register.lifetime_s, None);
    assert_eq!(register.version, EnablerVersion::V1_0);
    assert_eq!(register.binding, Binding::UDP);
    assert!(!register.queue_mode());
    assert_eq!(register.sms, None);
    assert_eq!(register.links, ObjectLinks::default());
}

#[test]
fn spellings_seen_in_the_field_are_read() {
    let cases: [(&[&str], &str, &str, Option<u32>); 9] = [
        (&["ep=a", "lwm2m=1.0.0", "mac=00:11:22"], "1.0", "U", None),
        (&["ep=a", "b=UQ"], "1.0", "UQ", None),
        (
            &["ep=a", "lwm2m=1.0", "b=UQS", "lt=0"],
            "1.0",
            "USQ",
            Some(0),
        ),
        (&["ep=a", "lwm2m=1.1", "b=U", "Q="], "1.1", "UQ", None),
        (&["ep=a", "lwm2m=1.2", "Q"], "1.2", "UQ", None),
        (&["ep=a", "lwm2m=1.2", "b=", "sms="], "1.2", "U", None),
        (
            &["lt=86400", "unknown", "=", "", "ep=a"],
            "1.0",
            "U",
            Some(86400),
        ),
        (&["ep=a", "lt=4294967296"], "1.0", "U", Some(u32::MAX)),
        (
            &["ep=a", "lt=99999999999999999999999", "et=x"],
            "1.0",
            "U",
            Some(u32::MAX),
        ),
    ];
    for (queries, version, binding, lifetime_s) in cases {
        let register = Register::decode(queries.iter().copied(), b"").unwrap();
        assert_eq!(register.version.as_str(), version, "{queries:?}");
        assert_eq!(register.binding.to_string(), binding, "{queries:?}");
        assert_eq!(register.lifetime_s, lifetime_s, "{queries:?}");
        assert_eq!(register.sms, None, "{queries:?}");
    }
}

#[test]
fn an_endpoint_name_may_hold_what_separates_parameters() {
    let register = Register::decode(["ep=urn:imei:1=2&3"], b"").unwrap();
    assert_eq!(&*register.endpoint, "urn:imei:1=2&3");
}

#[test]
fn a_register_that_breaks_a_rule_is_refused_with_its_code() {
    let long = format!("ep={}", "e".repeat(256));
    let sms = format!("sms={}", "1".repeat(65));
    let cases: [(&[&str], &[u8], RegistrationRefusal, &str); 17] = [
        (
            &["ep=a", "lwm2m=2.0"],
            b"",
            RegistrationRefusal::UnsupportedVersion,
            "4.12",
        ),
        (
            &["ep=a", "lwm2m=1.3"],
            b"",
            RegistrationRefusal::UnsupportedVersion,
            "4.12",
        ),
        (
            &["ep=a", "lwm2m="],
            b"",
            RegistrationRefusal::UnsupportedVersion,
            "4.12",
        ),
        (
            &["lwm2m=9.9"],
            b"?",
            RegistrationRefusal::UnsupportedVersion,
            "4.12",
        ),
        (&[], b"", RegistrationRefusal::MissingEndpoint, "4.00"),
        (&["ep="], b"", RegistrationRefusal::MissingEndpoint, "4.00"),
        (&["ep"], b"", RegistrationRefusal::MissingEndpoint, "4.00"),
        (&[&long], b"", RegistrationRefusal::EndpointTooLong, "4.00"),
        (
            &["ep=a", "lt="],
            b"",
            RegistrationRefusal::InvalidLifetime,
            "4.00",
        ),
        (
            &["ep=a", "lt=day"],
            b"",
            RegistrationRefusal::InvalidLifetime,
            "4.00",
        ),
        (
            &["ep=a", "lt=-1"],
            b"",
            RegistrationRefusal::InvalidLifetime,
            "4.00",
        ),
        (
            &["ep=a", "lt=+1"],
            b"",
            RegistrationRefusal::InvalidLifetime,
            "4.00",
        ),
        (
            &["ep=a", "lt=1.5"],
            b"",
            RegistrationRefusal::InvalidLifetime,
            "4.00",
        ),
        (
            &["ep=a", "b=Z"],
            b"",
            RegistrationRefusal::InvalidBinding,
            "4.00",
        ),
        (
            &["ep=a", &sms],
            b"",
            RegistrationRefusal::SmsTooLong,
            "4.00",
        ),
        (
            &["ep=a", "ep=b"],
            b"",
            RegistrationRefusal::Repeated,
            "4.00",
        ),
        (
            &["ep=a"],
            b"{}",
            RegistrationRefusal::Links(MalformedLinks::Syntax),
            "4.00",
        ),
    ];
    for (queries, payload, refusal, code) in cases {
        let refused = Register::decode(queries.iter().copied(), payload);
        assert_eq!(refused, Err(refusal), "{queries:?}");
        assert_eq!(refusal.code().to_string(), code);
    }
    assert_eq!(
        RegistrationRefusal::UnsupportedVersion.code(),
        Code::PRECONDITION_FAILED
    );
    let longest = format!("ep={}", "e".repeat(255));
    assert!(Register::decode([longest.as_str()], b"").is_ok());
}

#[test]
fn an_update_holds_only_what_changes() {
    let nothing = Update::decode([], b"").unwrap();
    assert!(nothing.is_empty());
    assert_eq!(nothing, Update::default());

    let lifetime = Update::decode(["lt=300"], b"").unwrap();
    assert_eq!(
        lifetime,
        Update {
            lifetime_s: Some(300),
            ..Update::default()
        }
    );
    assert!(!lifetime.is_empty());

    let all = Update::decode(["lt=60", "b=UQ", "sms=1", "ep=x", "lwm2m=9"], b"</3/0>").unwrap();
    assert_eq!(all.binding.unwrap().to_string(), "UQ");
    assert_eq!(all.sms.as_deref(), Some("1"));
    assert_eq!(all.links.unwrap().encode(), "</3/0>");
}

#[test]
fn an_update_that_breaks_a_rule_is_refused() {
    assert_eq!(
        Update::decode(["lt=soon"], b""),
        Err(RegistrationRefusal::InvalidLifetime)
    );
    assert_eq!(
        Update::decode(["b=?"], b""),
        Err(RegistrationRefusal::InvalidBinding)
    );
    assert_eq!(
        Update::decode(["lt=1", "lt=2"], b""),
        Err(RegistrationRefusal::Repeated)
    );
    let malformed = Err(RegistrationRefusal::Links(MalformedLinks::Syntax));
    assert_eq!(Update::decode([], b"</3/0"), malformed);
}

#[test]
fn queue_mode_ends_with_an_update_in_the_first_release_only() {
    let cases = [
        ("UQ", EnablerVersion::V1_0, &["b=U"][..], "U"),
        ("U", EnablerVersion::V1_0, &["b=UQ"], "UQ"),
        ("UQ", EnablerVersion::V1_0, &["lt=5"], "UQ"),
        ("UQ", EnablerVersion::V1_1, &["b=U"], "UQ"),
        ("UQ", EnablerVersion::V1_2, &["b=UT"], "UTQ"),
        ("U", EnablerVersion::V1_1, &["Q"], "UQ"),
        ("U", EnablerVersion::V1_1, &["b=T", "Q"], "TQ"),
        ("U", EnablerVersion::V1_1, &["b=T"], "T"),
    ];
    for (current, version, queries, after) in cases {
        let update = Update::decode(queries.iter().copied(), b"").unwrap();
        let current = Binding::parse(current).unwrap();
        let found = update.binding_after(current, version).to_string();
        assert_eq!(found, after, "{current} {version} {queries:?}");
    }
}

proptest! {
    #[test]
    fn every_register_survives_its_bytes(register in any_register()) {
        let queries = register.queries();
        let payload = register.links.encode();
        let read = Register::decode(queries.iter().map(String::as_str), payload.as_bytes());
        prop_assert_eq!(read, Ok(register));
    }

    #[test]
    fn every_update_survives_its_bytes(update in any_update()) {
        let queries = update.queries();
        let payload = update.links.as_ref().map(ObjectLinks::encode).unwrap_or_default();
        let read = Update::decode(queries.iter().map(String::as_str), payload.as_bytes());
        prop_assert_eq!(read, Ok(update));
    }

    #[test]
    fn any_parameters_are_read_or_refused(
        queries in vec("(ep|lt|lwm2m|b|Q|sms|x)?=?\\PC{0,12}", 0..6),
        payload in vec(any::<u8>(), 0..40),
    ) {
        let _ = Register::decode(queries.iter().map(String::as_str), &payload);
        let _ = Update::decode(queries.iter().map(String::as_str), &payload);
    }
}

fn any_register() -> impl Strategy<Value = Register> {
    let version = select(vec![
        EnablerVersion::V1_0,
        EnablerVersion::V1_1,
        EnablerVersion::V1_2,
    ]);
    let rest = (any_binding(), option::of("[+0-9]{1,15}"), any_links());
    ("\\PC{1,60}", option::of(any::<u32>()), version, rest).prop_map(
        |(endpoint, lifetime_s, version, (binding, sms, links))| Register {
            endpoint: endpoint.into(),
            lifetime_s,
            version,
            binding,
            sms: sms.map(Into::into),
            links,
        },
    )
}

fn any_update() -> impl Strategy<Value = Update> {
    let links = option::of(any_links().prop_filter("listed", |links| links.objects().count() > 0));
    let binding = option::of(any_binding());
    let sms = option::of("[+0-9]{1,15}");
    (option::of(any::<u32>()), binding, any::<bool>(), sms, links).prop_map(
        |(lifetime_s, binding, queue_mode, sms, links)| Update {
            lifetime_s,
            binding,
            queue_mode,
            sms: sms.map(Into::into),
            links,
        },
    )
}

fn any_binding() -> impl Strategy<Value = Binding> {
    "[UMHTSNQ]{1,4}".prop_map(|letters| Binding::parse(&letters).expect("only known letters"))
}

fn any_links() -> impl Strategy<Value = ObjectLinks> {
    vec(any::<(u16, u16)>(), 0..6).prop_map(|paths| {
        let links: Vec<String> = paths.iter().map(|(o, i)| format!("</{o}/{i}>")).collect();
        ObjectLinks::decode(links.join(",").as_bytes()).expect("plain links")
    })
}
