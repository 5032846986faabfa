//! Requests that must not go to the address of the device.

use std::net::SocketAddr;

use super::vocabulary::{
    BARE, DeviceFixture, Lines, OWN, S, all, coap, datagram, logged, moved, port, profile,
};
use crate::action::Status::{Failed, Scheduled};
use crate::action::{Method, NewAction, Request};
use crate::device::refusal::ForbiddenAddress::{Own, Unheard};
use crate::device::refusal::SubmitRefusal::AddressForbidden;
use crate::rules::EndpointTrust;

/// The address of a device on the host of the service.
const LOCAL: &str = "127.0.0.9";
const LOCAL_PORT: &str = "127.0.0.9:4445";

#[test]
fn no_request_is_sent_to_the_service_itself() {
    let own: SocketAddr = OWN.parse().unwrap();
    for new in both() {
        let new = to_port(own.port(), new);
        for new in [new.clone(), new.clone().when_active(), new.not_before(S)] {
            let refused = DeviceFixture::new().submit(new);
            assert_eq!(refused, (Err(AddressForbidden(Own(own))), Lines::new()));
        }
    }
}

#[test]
fn a_request_cannot_be_sent_now_to_a_local_address_the_device_was_not_heard_from() {
    let ip = LOCAL.parse().unwrap();
    for new in both() {
        let refused = local().submit(new);
        assert_eq!(refused, (Err(AddressForbidden(Unheard(ip))), Lines::new()));
    }
}

#[test]
fn a_request_to_a_local_address_is_sent_once_the_device_was_heard_from_it() {
    for new in both() {
        let mut fixture = local();
        fixture.ask(new.clone().when_active());
        let (_, effects) = fixture.receives_bare_from(LOCAL_PORT, b"on");
        assert!(sends(&effects), "{effects:?}");
        let mut fixture = local();
        fixture.receives_bare_from(LOCAL_PORT, b"on");
        let (accepted, effects) = fixture.submit(new);
        assert!(accepted.is_ok() && sends(&effects), "{effects:?}");
    }
}

#[test]
fn a_request_that_waited_is_not_sent_to_a_local_address_the_device_was_not_heard_from() {
    for new in both() {
        let mut fixture = DeviceFixture::new();
        fixture.receives_bare_from(BARE, b"on");
        fixture.ask(new.not_before(S));
        fixture.amend(|profile| profile.ip = Some(LOCAL.parse().unwrap()));
        let effects = fixture.at(S).timeout();
        let why = format!(
            "{LOCAL} is a loopback, link-local or metadata address that the device was not heard \
             from"
        );
        let entry = logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        ));
        let failed = moved("#1", Scheduled, Failed, &format!("0/1 {why:?}"));
        assert_eq!(effects, all([failed, entry]));
    }
}

fn both() -> [NewAction; 2] {
    [datagram("on"), coap(Method::Get, "/a", "")]
}

/// A device with a loopback address.
fn local() -> DeviceFixture {
    let mut profile = profile();
    profile.ip = Some(LOCAL.parse().unwrap());
    DeviceFixture::of(profile, EndpointTrust::AddressRequired)
}

fn to_port(number: u16, mut new: NewAction) -> NewAction {
    match &mut new.request {
        Request::Udp(request) => request.port = port(number),
        Request::Coap(request) => request.port = port(number),
        Request::Lwm2m(_) => {}
    }
    new
}

fn sends(effects: &Lines) -> bool {
    effects.last().is_some_and(|line| line.starts_with("send "))
}
