//! An error entry of the log is also published, in the same step.

use super::vocabulary::{DeviceFixture, HOME, S};
use crate::admin_log::entry::{Category, Entry};
use crate::effect::Effect;
use crate::event::{Event, EventContent, PayloadKept};

#[test]
fn an_error_entry_is_published_as_it_is_logged() {
    let mut fixture = DeviceFixture::registered();
    fixture.at(S).sends("warm");
    let (entry, event) = logged_and_published(&fixture);
    assert_eq!(entry.category, Category::Error);
    let EventContent::Error(failure) = &event.content else {
        panic!("an error was published: {event:?}");
    };
    assert_eq!(failure.entry, entry.id);
    assert_eq!(failure.message, entry.message);
    assert_eq!(failure.description, entry.description);
    assert_eq!(failure.payload, PayloadKept::Yes);
    assert_eq!((event.at, event.customer), (entry.at, entry.customer));
    assert_eq!(event.device_info.ip, entry.about.unwrap().ip);
}

#[test]
fn an_error_of_a_stranger_is_published_with_its_address() {
    let mut fixture = DeviceFixture::registered();
    let message = fixture.registration(&["lwm2m=1.1"], "</3/0>");
    fixture.at(S).receives("10.6.6.6:5683", &message);
    let (entry, event) = logged_and_published(&fixture);
    assert_eq!(event.device_info.ip, Some("10.6.6.6".parse().unwrap()));
    assert_eq!(event.device_info.ip, entry.about.unwrap().ip);
    assert_eq!(event.device_info.iccid.as_str(), "8931");
}

#[test]
fn first_contact_is_not_published_as_an_error() {
    let mut fixture = DeviceFixture::new();
    fixture.register();
    let failures = fixture
        .events()
        .into_iter()
        .filter(|event| matches!(event.content, EventContent::Error(_)));
    assert_eq!(failures.count(), 0);
    assert_eq!(
        fixture.device().bound_peer(),
        Some(super::vocabulary::peer(HOME))
    );
}

/// The only entry and the only event of the last step.
fn logged_and_published(fixture: &DeviceFixture) -> (Entry, Event) {
    let entry = |effect: &Effect| match effect {
        Effect::Log(entry) => Some((**entry).clone()),
        Effect::Save(_) | Effect::Expect(_) | Effect::Count(_) | Effect::Send(_) => None,
    };
    let mut entries: Vec<Entry> = fixture.wanted().iter().filter_map(entry).collect();
    let events = fixture.events();
    assert_eq!((entries.len(), events.len()), (1, 1));
    (entries.remove(0), events[0].clone())
}
