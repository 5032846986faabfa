//! Attributes of an observation: in its request since LwM2M 1.2, written before it in earlier
//! releases (LwM2M Core 1.1 section 6.3.4, 1.2 section 6.4.1).

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;

use super::vocabulary::{
    BATTERY, DeviceFixture, HOME, Lines, OBJECTS, all, ended, observe_several_under, observe_under,
    observing, published, sent, write_attributes,
};
use crate::action::Status::{Failed, Succeeded};

#[test]
fn attributes_are_written_first_or_are_in_the_observe_by_the_release() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(observe_under(BATTERY, "pmin=5&gt=20"));
    let written = sent("CON PUT /3/0/9 ?pmin=5 ?gt=20 m1");
    assert!(effects.ends_with(&written), "{effects:?}");
    let observe = sent("CON GET /3/0/9 observe 0 accept 0 m2");
    assert_eq!(fixture.answer(Code::CHANGED, ""), observe);
    assert_eq!(fixture.agree(10, "87"), begun());

    let mut fixture = registered_with("1.2");
    let (_, effects) = fixture.submit(observe_under(BATTERY, "pmin=5&gt=20&con=1&hqmax=3"));
    let observe = "CON GET /3/0/9 ?pmin=5 ?gt=20 ?con=1 ?hqmax=3 observe 0 accept 0 m1";
    assert!(effects.ends_with(&sent(observe)), "{effects:?}");
    assert_eq!(fixture.agree(10, "87"), begun());
}

#[test]
fn an_observe_that_cannot_follow_its_attributes_fails_with_the_reason() {
    let mut fixture = DeviceFixture::registered();
    let id = fixture.ask(observe_under("/3/0/14", "epmin=5"));
    let written = fixture.piggybacked(Code::CHANGED);
    fixture.register_with(&["lwm2m=1.0", "lt=86400", "b=U"], OBJECTS);
    let effects = fixture.receives(super::vocabulary::HOME, &written);
    let failed = fixture.saved(id);
    assert_eq!(failed.status, Failed, "{effects:?}");
    let outcome = failed.outcome.as_ref().unwrap();
    let why = "the device speaks LwM2M 1.0, which does not have epmin";
    assert_eq!(outcome.error.as_deref(), Some(why));
    // The answer to the attributes is neither a value nor the result.
    assert_eq!((&outcome.code, &outcome.payload), (&None, &None));
    let values = effects.iter().filter(|line| line.contains("/3/0/14="));
    assert_eq!(values.count(), 0, "{effects:?}");
    assert_eq!(fixture.observations(), Lines::new());
    let effects = fixture.submit(super::vocabulary::read("/3/0/14")).1;
    let next = sent("CON GET /3/0/14 accept 0 m2");
    assert!(
        effects.ends_with(&next),
        "nothing is in flight: {effects:?}"
    );
}

#[test]
fn attributes_that_the_release_and_the_resource_cannot_have_are_named_together() {
    let mut fixture = DeviceFixture::registered();
    for request in [
        observe_under("/3/0/14", "pmin=5&st=2&con=1&hqmax=3"),
        write_attributes("/3/0/14", "pmin=5&st=2&con=1&hqmax=3"),
    ] {
        let (accepted, effects) = fixture.submit(request);
        let failed = fixture.saved(accepted.unwrap().id);
        let why = "the device speaks LwM2M 1.1, which does not have con, hqmax; \
                   /3/0/14 is of type STRING, on which st can be no condition";
        let outcome = failed.outcome.as_ref().unwrap();
        assert_eq!(outcome.error.as_deref(), Some(why));
        let sent = effects.iter().filter(|line| line.starts_with("send"));
        assert_eq!(sent.count(), 0, "{effects:?}");
    }
}

#[test]
fn attributes_of_several_paths_are_in_the_query_since_lwm2m_1_2() {
    let mut fixture = registered_with("1.2");
    let request = || observe_several_under(&["/3/0/9", "/3303"], "pmin=5&con=1");
    let effects = fixture.submit(request()).1;
    let observe = effects.last().unwrap();
    assert!(observe.contains(" ?pmin=5 ?con=1 observe 0 "), "{observe}");
    let agree = |fixture: &mut DeviceFixture| {
        let answer = fixture.piggybacked(Code::CONTENT).with_observe(10);
        let answer = answer.with_content_format(ContentFormat::SENML_JSON);
        fixture.receives(HOME, &answer.with_payload(br#"[{"n":"/3/0/9","v":87}]"#));
    };
    agree(&mut fixture);
    assert_eq!(fixture.observations().len(), 1);

    // It is requested again under the same conditions, and is lost where these are not known.
    let again = fixture.register_with(&["lwm2m=1.2", "lt=86400", "b=U"], OBJECTS);
    let observe = again.last().unwrap();
    assert!(observe.contains(" ?pmin=5 ?con=1 observe 0 "), "{again:?}");
    agree(&mut fixture);
    let older = fixture.register_with(&["lwm2m=1.1", "lt=86400", "b=U"], OBJECTS);
    let lost = "was lost: the device no longer takes such a request for several paths";
    assert!(older.iter().any(|line| line.contains(lost)), "{older:?}");
    assert_eq!(fixture.observations(), Lines::new());

    let (accepted, _) = fixture.submit(request());
    let failed = fixture.saved(accepted.unwrap().id);
    let why = "the device speaks LwM2M 1.1, which has no attributes for several paths; \
               write-attributes sets them for each path";
    let outcome = failed.outcome.as_ref().unwrap();
    assert_eq!(outcome.error.as_deref(), Some(why));
}

/// The first value, and the observation.
fn begun() -> Lines {
    all([
        published("/3/0/9=87 for #1"),
        observing(0, &["/3/0/9 Held"]),
        ended("#1", Succeeded, r#"1/1 "205" "87""#),
    ])
}

fn registered_with(release: &str) -> DeviceFixture {
    let mut fixture = DeviceFixture::new();
    let release = format!("lwm2m={release}");
    fixture.register_with(&[&release, "lt=86400", "b=U"], OBJECTS);
    fixture
}
