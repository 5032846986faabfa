//! Do requests go to devices alone, whatever address a customer gives a device?

use std::net::UdpSocket;

use super::{ID, IP};
use crate::test_service::{error_codes, start};
use crate::vocabulary::caller::API;
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{UdpDevice, coap, datagram};

#[test]
fn a_request_goes_to_a_local_address_once_the_device_was_heard_from_it() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, IP);
    let device = UdpDevice::from(IP, &service);
    let bodies = [
        ("UDP", datagram("on", device.port())),
        ("COAP", coap("GET", "/a", device.port())),
    ];
    for (protocol, body) in &bodies {
        let refused = caller.try_over(protocol, ID, body).expect(409);
        assert_eq!(error_codes(&refused), ["ADDRESS_FORBIDDEN"], "{refused}");
    }
    let (protocol, body) = &bodies[0];
    caller.create_over(protocol, ID, &when_active(body.clone()));
    device.send(b"awake");
    assert_eq!(device.receive(), b"on");
    caller.create_over(protocol, ID, body);
    assert_eq!(device.receive(), b"on");
}

#[test]
fn no_request_goes_to_a_metadata_service_or_a_program_of_the_host() {
    let (_service, caller) = start(&[]);
    let program = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = program.local_addr().unwrap().port();
    for ip in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "fe80::1",
        "fd00:ec2::254",
    ] {
        caller.create_device(ID, ip);
        let refused = caller.try_over("UDP", ID, &datagram("x", port)).expect(409);
        assert_eq!(error_codes(&refused), ["ADDRESS_FORBIDDEN"], "{ip}");
        let path = format!("{API}/devices/{ID}");
        assert_eq!(caller.request("DELETE", &path).status, 204);
    }
    program.set_nonblocking(true).unwrap();
    assert!(program.recv(&mut [0]).is_err(), "a program was sent data");
}
