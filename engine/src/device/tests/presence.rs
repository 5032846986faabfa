//! What is published about the presence of a device, and what that costs.

use std::num::NonZeroU32;

use super::vocabulary::{
    DeviceFixture, HOME, HOUR, Lines, MINUTE, OBJECTS, S, all, data_published, first_contact,
    published, recorded, sent, updated,
};
use crate::device::record::Connectivity;
use crate::policy::Wanted;

const WARM: &str = r#"[{"n":"/3303/0/5700","v":21.5}]"#;

const TEN_MINUTES_S: Option<NonZeroU32> = NonZeroU32::new(600);

#[test]
fn a_registered_device_is_offline_once_it_is_silent_for_longer_than_its_lifetime() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1", "lt=60"], OBJECTS);
    fixture.at(30 * S).sends(WARM);
    assert_eq!(
        fixture.kinds_at(60 * S),
        ["Expired"],
        "it was heard 30 s ago"
    );
    assert_eq!(fixture.deadline(), Some(90 * S));
    fixture.restart();
    assert_eq!(fixture.connectivity(), Connectivity::Online);
    assert_eq!(
        fixture.deadline(),
        Some(121 * S),
        "as much may not have been saved"
    );
    assert_eq!(fixture.kinds_at(121 * S), ["Offline"]);
    assert_eq!(fixture.connectivity(), Connectivity::Offline);
    fixture.restart();
    assert_eq!(
        (fixture.deadline(), fixture.timeout()),
        (None, Lines::new())
    );
    let effects = fixture.at(HOUR).register();
    assert_eq!(kinds(&effects), ["Back", "Registered"]);
    assert_eq!(kinds(&fixture.at(HOUR + S).register()), ["Registered"]);
}

#[test]
fn a_device_may_be_silent_for_as_long_as_its_customer_or_its_profile_says() {
    let mut fixture = DeviceFixture::registered();
    fixture.allow_silence(TEN_MINUTES_S, NonZeroU32::new(7_200));
    assert_eq!(
        fixture.deadline(),
        Some(10 * MINUTE),
        "the profile precedes"
    );
    assert_eq!(kinds(&fixture.at(9 * MINUTE).update()), [""; 0]);
    assert_eq!(fixture.kinds_at(10 * MINUTE), [""; 0]);
    let expected = all([
        published("Offline"),
        recorded("registered until 86940000, seen at 540000 from 10.0.0.1:5683"),
    ]);
    assert_eq!(fixture.at(19 * MINUTE).timeout(), expected);
    assert_eq!(fixture.timeout(), Lines::new());
    let expected = all([
        published("Back"),
        recorded("registered until 87600000, seen at 1200000 from 10.0.0.1:5683"),
        updated(103),
    ]);
    assert_eq!(fixture.at(20 * MINUTE).update(), expected);
    fixture.allow_silence(None, NonZeroU32::new(7_200));
    assert_eq!(fixture.deadline(), Some(2 * HOUR + 20 * MINUTE));
}

#[test]
fn a_device_without_registration_is_offline_only_if_its_silence_is_bounded() {
    let mut fixture = DeviceFixture::new();
    let effects = fixture.posts("21.5");
    assert_eq!(effects[..3], first_contact(0, HOME, "CoAP"));
    assert_eq!(fixture.connectivity(), Connectivity::Unknown);
    fixture.allow_silence(None, TEN_MINUTES_S);
    assert_eq!(fixture.deadline(), Some(0), "at once");
    let online = recorded("unregistered, seen at 0 from 10.0.0.1:5683");
    assert_eq!(
        fixture.at(S).timeout(),
        online,
        "saved, to be restored at a start"
    );
    assert!(!fixture.device().is_idle());
    let effects = fixture.at(5 * MINUTE).posts("22");
    assert_eq!(
        effects,
        all([data_published("22"), sent("ACK 2.04 to 102")])
    );
    let expected = all([
        published("Offline"),
        recorded("unregistered, seen at 300000 from 10.0.0.1:5683"),
    ]);
    assert_eq!(fixture.at(15 * MINUTE).timeout(), expected);
    assert!(fixture.device().is_idle(), "it is in the store");
    let effects = fixture.at(HOUR).posts("23");
    assert_eq!(effects[0], "publish Back");
}

#[test]
fn a_device_that_deregistered_is_not_offline() {
    let mut fixture = DeviceFixture::registered();
    fixture.at(S).deregister();
    assert_eq!(fixture.connectivity(), Connectivity::Unknown);
    assert_eq!(fixture.kinds_at(25 * HOUR), [""; 0]);
    assert_eq!(kinds(&fixture.register()), ["Registered"]);
}

#[test]
fn sleep_is_published_only_if_somebody_wants_to_know() {
    let mut fixture = DeviceFixture::registered_for_queue_mode();
    assert_eq!(fixture.deadline(), Some(86_400 * S));
    assert_eq!(fixture.at(100 * S).update(), updated(102));
    assert_eq!(fixture.deadline(), Some(86_500 * S), "no timer is armed");

    let mut fixture = DeviceFixture::registered_for_queue_mode();
    fixture.tell_of_sleep();
    let expected = all([
        published("Awake"),
        recorded("registered until 86410000, seen at 10000 from 10.0.0.1:5683"),
        updated(102),
    ]);
    assert_eq!(fixture.at(10 * S).update(), expected);
    assert_eq!(fixture.at(50 * S).update(), updated(103), "it is awake");
    assert_eq!(fixture.kinds_at(103 * S), [""; 0]);
    fixture.restart();
    fixture.tell_of_sleep();
    assert_eq!(
        fixture.kinds_at(143 * S),
        ["Asleep"],
        "also after a restart"
    );
    assert_eq!(fixture.timeout(), Lines::new());
    assert_eq!(kinds(&fixture.at(200 * S).update()), ["Awake"]);
    assert_eq!(kinds(&fixture.deregister()), ["Deregistered"]);
    assert_eq!(fixture.kinds_at(500 * S), [""; 0]);
}

impl DeviceFixture {
    /// How long the device may be silent by its profile and by its customer.
    fn allow_silence(&mut self, profile_s: Option<NonZeroU32>, customer_s: Option<NonZeroU32>) {
        self.amend(|profile| profile.offline_after_s = profile_s);
        self.change_policy(|policy| policy.offline_after_s = customer_s);
    }

    fn tell_of_sleep(&mut self) {
        self.change_policy(|policy| policy.sleep_events = Wanted::Yes);
    }

    fn connectivity(&self) -> Connectivity {
        self.snapshot().connectivity
    }

    /// What is published at a timeout.
    fn kinds_at(&mut self, at_ms: i64) -> Vec<String> {
        kinds(&self.at(at_ms).timeout())
    }
}

/// The lifecycle events that are published.
fn kinds(effects: &Lines) -> Vec<String> {
    let published = effects
        .iter()
        .filter_map(|line| line.strip_prefix("publish "));
    published.map(str::to_owned).collect()
}
