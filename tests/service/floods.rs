//! Is a sender that sends too much dropped, and is nobody else?

use protocol::coap::code::Code;
use serde_json::json;

use crate::metrics::dropped;
use crate::test_service::{ID, start};
use crate::vocabulary::caller::API;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, register, update};

const FLOODING: &str = "127.0.0.2";
const OTHER: &str = "127.0.0.3";

#[test]
fn strangers_at_one_address_are_not_read_beyond_their_rate_and_devices_are() {
    let (service, caller) = start(&[
        ("SIGNALBOX_DATAGRAM_RATE_STRANGER", "1"),
        ("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true"),
    ]);
    let device = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &device).expect(201);
    // The device is at the address of the strangers.
    let registered = DeviceSocket::from(FLOODING, &service);
    let location = registered.register(ID, 1);
    // A ping shows to the arbiter that receives from there that a device is registered.
    registered.received_before_ping();

    let strangers: Vec<DeviceSocket> = (0..20)
        .map(|_| DeviceSocket::from(FLOODING, &service))
        .collect();
    let mut id = 1;
    until("strangers are not read any more", || {
        strangers
            .iter()
            .for_each(|it| it.send(&register("metre", id).encode()));
        id += 1;
        (dropped(&service, "over_rate_of_stranger") > 20.0).then_some(())
    });

    let answer = registered.ask_until_answered(&update(&location, 2));
    assert_eq!(answer.code, Code::CHANGED);
    let elsewhere = DeviceSocket::from(OTHER, &service);
    let refused = elsewhere.ask_until_answered(&register("metre", 1));
    assert_eq!(refused.code, Code::FORBIDDEN);
}

#[test]
fn a_device_that_is_not_registered_is_read_whatever_all_strangers_send() {
    let (service, caller) = start(&[
        ("SIGNALBOX_DATAGRAM_RATE_STRANGER", "1"),
        ("SIGNALBOX_TRUST_ENDPOINT_NAMES", "true"),
    ]);
    let device = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &device).expect(201);
    let strangers: Vec<DeviceSocket> = (1..=200)
        .map(|number| DeviceSocket::from(&format!("127.0.9.{number}"), &service))
        .collect();
    let mut id = 1;
    let mut flood = || {
        strangers
            .iter()
            .for_each(|it| it.send(&register("metre", id).encode()));
        id += 1;
    };
    until("strangers are not answered any more", || {
        flood();
        (dropped(&service, "over_rate_of_strangers") > 200.0).then_some(())
    });
    flood();
    let elsewhere = DeviceSocket::from(OTHER, &service);
    let answer = elsewhere.ask(&register(ID, 1));
    assert_eq!(answer.code, Code::CREATED);
}

#[test]
fn a_device_is_not_read_beyond_its_rate_and_others_are() {
    let (service, caller) = start(&[("SIGNALBOX_DATAGRAM_RATE_DEVICE", "1")]);
    caller.create_device(ID, DEVICE_IP);
    caller.create_device("meter-8", OTHER);
    let flooding = DeviceSocket::to(&service);
    let location = flooding.register(ID, 1);
    let mut id = 2;
    until("the device is not read any more", || {
        flooding.send(&update(&location, id).encode());
        id += 1;
        (dropped(&service, "over_rate_of_device") > 0.0).then_some(())
    });
    let other = DeviceSocket::from(OTHER, &service);
    let location = other.register("meter-8", 1);
    assert_eq!(other.ask(&update(&location, 2)).code, Code::CHANGED);
}
