//! The identity of a device after its customer changed its profile.

use super::vocabulary::{
    DeviceFixture, HOME, OBJECTS, S, answers, profile, read, refused, updated,
};
use crate::ids::Iccid;
use crate::rules::EndpointTrust;

const NEW: &str = "10.0.0.9:1024";

#[test]
fn a_new_address_is_accepted_at_once_and_the_old_one_rejected() {
    let mut fixture = DeviceFixture::registered();
    fixture.amend(|profile| profile.ip = Some("10.0.0.9".parse().unwrap()));
    assert_eq!(
        answers(&fixture.at(S).update()),
        refused("4.04", "register again", 102),
        "the old address does not speak for it"
    );
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    let forbidden = fixture.receives(HOME, &message);
    let text = "endpoint name not accepted from this address";
    assert_eq!(forbidden, refused("4.03", text, 103));
    let message = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    let admitted = fixture.at(2 * S).receives(NEW, &message);
    assert!(
        admitted.contains(&format!("rebind {HOME} -> {NEW}")),
        "{admitted:?}"
    );
}

#[test]
fn a_registration_survives_a_change_of_the_address() {
    let mut fixture = DeviceFixture::registered();
    let before = fixture.snapshot().registration;
    fixture.amend(|profile| profile.ip = Some("10.0.0.9".parse().unwrap()));
    assert_eq!(fixture.snapshot().registration, before);
    assert!(before.is_some());
    let message = fixture.updating(&[], "");
    let moved = fixture.at(S).receives(NEW, &message);
    assert!(
        moved.contains(&format!("rebind {HOME} -> {NEW}")),
        "its location holds at the new address: {moved:?}"
    );
}

#[test]
fn a_device_that_loses_its_address_stays_registered_where_it_is() {
    let mut fixture = DeviceFixture::registered();
    fixture.amend(|profile| profile.ip = None);
    assert_eq!(fixture.at(S).update(), updated(102));
    let message = fixture.updating(&[], "");
    let elsewhere = fixture.receives(NEW, &message);
    let answer = format!("send {NEW}: ACK 4.04 \"register again\" to 103");
    assert_eq!(answers(&elsewhere), [answer]);
}

#[test]
fn a_device_trusted_by_its_name_must_use_its_address_once_it_has_one() {
    let mut fixture = DeviceFixture::of(profile(), EndpointTrust::NameSuffices);
    fixture.register();
    assert_eq!(fixture.at(S).update(), updated(102));
    fixture.amend(|profile| profile.ip = Some("10.0.0.9".parse().unwrap()));
    let effects = fixture.update();
    assert_eq!(answers(&effects), refused("4.04", "register again", 103));
}

#[test]
fn a_request_names_the_sim_the_device_has_when_it_is_made() {
    let mut fixture = DeviceFixture::registered();
    let before = fixture.ask(read("/3/0/0").when_active());
    fixture.amend(|profile| profile.iccid = Iccid::parse("8902").unwrap());
    let after = fixture.at(S).ask(read("/3/0/0").when_active());
    assert_eq!(fixture.saved(before).addressee.iccid, profile().iccid);
    assert_eq!(fixture.saved(after).addressee.iccid.as_str(), "8902");
}
