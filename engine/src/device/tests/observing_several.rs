//! Observations of several paths at once (LwM2M Core 1.1 section 6.4.7).

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::coap::token::Token;

use super::vocabulary::{
    DeviceFixture, HOME, OBJECTS, end_observing_several, ended, observe_several, published,
    read_several,
};
use crate::action::Status::Succeeded;

const FIRST: &str = r#"[{"n":"/3/0/9","v":87},{"n":"/3303/0/5700","v":21.5}]"#;

#[test]
fn instances_that_come_and_go_are_in_the_notifications_of_several_paths() {
    let mut fixture = observed();
    let token = Token::new(&fixture.snapshot().observations[0].token).unwrap();
    let notifications = [
        (
            r#"[{"n":"/3303/0/5700","v":21.5},{"n":"/3303/1/5700","v":-4}]"#,
            "/3303/0/5700=21.5 /3303/1/5700=-4",
        ),
        (r#"[{"n":"/3303/1/5700","v":-5}]"#, "/3303/1/5700=-5"),
        // Values of other paths are left out.
        (
            r#"[{"n":"/3/0/9","v":86},{"n":"/3/0/13","v":7}]"#,
            "/3/0/9=86",
        ),
    ];
    for (number, (payload, values)) in (11..).zip(notifications) {
        let kind = MessageKind::NonConfirmable;
        let notification = Message::separate(kind, Code::CONTENT, fixture.device_id(), token)
            .with_observe(number)
            .with_content_format(ContentFormat::SENML_JSON)
            .with_payload(payload);
        let expected = published(&format!("{values} for observed since #1"));
        assert_eq!(fixture.receives(HOME, &notification), expected, "{payload}");
    }
}

#[test]
fn an_empty_answer_about_several_paths_has_no_values() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read_several(&["/3/0/9", "/3303"]));
    let expected = ended("#1", Succeeded, r#"1/1 "205" """#);
    assert_eq!(fixture.answer(Code::CONTENT, ""), expected);
}

#[test]
fn an_observation_that_the_device_can_no_longer_be_requested_is_logged_as_lost() {
    let releases = [
        (&["lwm2m=1.0"][..], OBJECTS.to_owned()),
        // It has a format for single values alone.
        (&["lwm2m=1.1"], format!("</>;ct=11542,{OBJECTS}")),
    ];
    for (release, objects) in releases {
        let mut fixture = observed();
        let effects = fixture.register_with(release, &objects);
        let lost = "log LwM2M[ObservationLost] Error: The observation of /3/0/9, /3303 was lost: \
                    the device no longer takes such a request for several paths.";
        let logged = effects.iter().any(|line| line == lost);
        assert!(logged, "{release:?}: {effects:?}");
        assert!(fixture.observations().is_empty(), "{release:?}");
    }
}

#[test]
fn an_observation_of_several_paths_is_found_in_any_order() {
    let mut fixture = observed();
    let token = Token::new(&fixture.snapshot().observations[0].token).unwrap();
    fixture.ask(end_observing_several(&["/3303", "/3/0/9"]));
    let cancel = fixture.last_request();
    assert_eq!((cancel.observe(), cancel.token), (Some(1), token));
    let payload = String::from_utf8_lossy(&cancel.payload).into_owned();
    let [battery, sensors] = ["/3/0/9", "/3303"].map(|path| payload.find(path).unwrap());
    assert!(battery < sensors, "as the request that began it: {payload}");
    let answer = fixture.piggybacked(Code::CONTENT);
    fixture.receives(HOME, &answer);
    assert!(fixture.observations().is_empty());
    let effects = fixture
        .submit(end_observing_several(&["/3303", "/3/0/9"]))
        .1;
    let why = "there is no observation of just /3303, /3/0/9";
    assert!(effects.iter().any(|line| line.contains(why)), "{effects:?}");
}

/// A device with an observation of several paths.
fn observed() -> DeviceFixture {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(observe_several(&["/3/0/9", "/3303"]));
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_observe(10)
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(FIRST);
    fixture.receives(HOME, &answer);
    assert_eq!(fixture.observations().len(), 1);
    fixture
}
