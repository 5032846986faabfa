//! Is data of plain devices counted, and are requests to them?

use protocol::coap::code::Code;

use super::devices::are;
use crate::test_service::{ID, start};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::plain::{UdpDevice, answer, coap, data, datagram};
use crate::vocabulary::wire::DeviceSocket;

const RECEIVED: &str = "signalbox_datagrams_received_total";
const SENT: &str = "signalbox_datagrams_sent_total";
const HANDLED: &str = "signalbox_datagrams_handled_total";
const DROPPED: &str = "signalbox_datagrams_dropped_total";
const DATA: &str = "signalbox_data_total";
const CREATED: &str = "signalbox_actions_created_total";
const FINISHED: &str = "signalbox_actions_finished_total";
const BEGUN: &str = "signalbox_exchanges_begun_total";
const LOOKUPS: &str = "signalbox_registry_lookups";

/// An address that no device of these tests has.
const NOBODYS: &str = "127.0.0.66";

#[test]
fn data_is_counted_by_protocol_and_by_what_becomes_of_it() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let udp = UdpDevice::from(DEVICE_IP, &service);
    for bytes in [&b"one"[..], b"two", b""] {
        udp.send(bytes);
    }
    UdpDevice::from(NOBODYS, &service).send(b"whose?");
    let wire = DeviceSocket::from(DEVICE_IP, &service);
    assert_eq!(wire.ask(&data("state", "on", 1)).code, Code::CHANGED);
    assert_eq!(wire.ask(&data("+", "on", 2)).code, Code::BAD_REQUEST);
    let stranger = DeviceSocket::from(NOBODYS, &service);
    let refused = stranger.ask(&data("state", "on", 3));
    assert_eq!(refused.code, Code::UNAUTHORIZED);
    are(
        &service,
        &[
            (RECEIVED, &[("type", "none"), ("code", "bare")], 4.0),
            (RECEIVED, &[("code", "malformed")], 0.0),
            (RECEIVED, &[], 7.0),
            (HANDLED, &[("kind", "udp_data")], 3.0),
            (HANDLED, &[("kind", "coap_data")], 2.0),
            (DATA, &[("protocol", "udp"), ("outcome", "published")], 2.0),
            (DATA, &[("protocol", "udp"), ("outcome", "empty")], 1.0),
            (DATA, &[("protocol", "coap"), ("outcome", "published")], 1.0),
            (DATA, &[("protocol", "coap"), ("outcome", "unusable")], 1.0),
            (DATA, &[], 5.0),
            (DROPPED, &[("reason", "unknown_address")], 2.0),
            (DROPPED, &[], 2.0),
            (LOOKUPS, &[], 0.0),
        ],
    );
}

#[test]
fn requests_over_coap_and_udp_are_counted() {
    let (service, caller) = start(&[("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true")]);
    caller.create_device(ID, DEVICE_IP);
    let udp = UdpDevice::from(DEVICE_IP, &service);
    caller.create_over("UDP", ID, &datagram("on", udp.port()));
    assert_eq!(udp.receive(), b"on");
    let wire = DeviceSocket::from(DEVICE_IP, &service);
    let port = wire.port();
    caller.create_over("COAP", ID, &coap("PATCH", "/state", port));
    let request = wire.receive();
    wire.send(&answer(&request, Code::CHANGED).encode());
    let sent = [("protocol", "udp"), ("operation", "datagram")];
    let patched = [("protocol", "coap"), ("operation", "PATCH")];
    let well = ("status", "succeeded");
    are(
        &service,
        &[
            (CREATED, &sent, 1.0),
            (CREATED, &patched, 1.0),
            (CREATED, &[], 2.0),
            (FINISHED, &[sent[0], sent[1], well], 1.0),
            (FINISHED, &[patched[0], patched[1], well], 1.0),
            (FINISHED, &[], 2.0),
            (BEGUN, &[("purpose", "action")], 1.0),
            (SENT, &[("type", "none"), ("code", "bare")], 1.0),
        ],
    );
}
