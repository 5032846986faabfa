//! Are invalid and unexpected datagrams handled as RFC 7252 says, and never with a crash?

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId};

use crate::test_service::{ID, start};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::http::Request;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{DeviceSocket, hex, register, request, update};

#[test]
fn a_ping_is_answered_with_a_reset() {
    let (service, wire, _) = registered();
    for wire in [&wire, &DeviceSocket::to(&service)] {
        for id in [0, 1, 65_000] {
            wire.send(&Message::ping(MessageId(id)).encode());
            assert_eq!(wire.receive(), Message::reset(MessageId(id)));
        }
    }
}

#[test]
fn a_malformed_confirmable_message_is_rejected() {
    let (service, wire, _) = registered();
    let malformed = [
        "4902123400",   // a token length that is reserved
        "4f021234",     // another
        "4402123401",   // truncated inside the token
        "40211234",     // a reserved class of codes
        "40e01234",     // another
        "4100123401",   // an Empty message with a token
        "40001234ff00", // an Empty message with a payload
        "40021234ff",   // a payload marker without payload
        "40021234b5",   // a truncated option
        "40021234f0",   // a reserved option delta
        "400212341f",   // a reserved option length
        "40021234d0",   // a truncated option delta
    ];
    for wire in [&wire, &DeviceSocket::to(&service)] {
        for bytes in malformed {
            wire.send(&hex(bytes));
            assert_eq!(wire.receive(), Message::reset(MessageId(0x1234)), "{bytes}");
        }
    }
}

#[test]
fn messages_that_need_no_answer_get_none() {
    let (service, wire, _) = registered();
    let noise = [
        "",           // empty
        "40",         // less than a header
        "400212",     // less than a header
        "c0021234",   // another version
        "00021234",   // another version
        "5902123400", // a malformed Non-confirmable message
        "50001234",   // an Empty Non-confirmable message
        "50021234ff", // a payload marker without payload
        "60021234",   // a request in an acknowledgement
        "60001234",   // an acknowledgement of no message
        "60451234",   // a response to no request
        "70001234",   // a Reset of no message
        "70451234",   // a Reset with a code other than 0.00
        "6900123400", // a malformed acknowledgement
    ];
    for wire in [&wire, &DeviceSocket::to(&service)] {
        for bytes in noise {
            wire.send(&hex(bytes));
            assert_eq!(wire.received_before_ping(), [], "{bytes}");
        }
    }
}

#[test]
fn an_unknown_critical_option_is_a_bad_option() {
    let (service, wire, location) = registered();
    let other = DeviceSocket::to(&service);
    let odd = 2_049;
    let messages = [
        register(ID, 10).with_option(odd, b"x"),
        update(&location, 11).with_option(odd, b""),
        request(Code::GET, 12).with_option(9, b""),
    ];
    for message in &messages {
        assert_eq!(wire.ask(message).code, Code::BAD_OPTION, "{message:?}");
        assert_eq!(other.ask(message).code, Code::BAD_OPTION, "{message:?}");
    }
    let elective = update(&location, 13).with_option(2_048, b"x");
    assert_eq!(wire.ask(&elective).code, Code::CHANGED);
}

#[test]
fn noise_does_no_harm() {
    let (service, wire, location) = registered();
    let mut state = 0x5167_6e61_6c62_6f78_u64;
    for round in 0..2_000 {
        let mut bytes = Vec::new();
        for _ in 0..round % 60 {
            // xorshift64: any bytes will do, as long as they are the same each time.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.push(state.to_le_bytes()[3]);
        }
        // Half of the datagrams begin like one of our messages.
        if round % 2 == 0 && bytes.len() > 4 {
            bytes.splice(..2, [0x40, 0x02]);
        }
        wire.send(&bytes);
        if round % 50 == 49 {
            wire.received_before_ping();
        }
    }
    let answer = wire.ask_among_others(&update(&location, 0xEEEF));
    assert_eq!(answer.code, Code::CHANGED);
    assert_eq!(
        Request::new("GET", "/readyz").send(service.http).status,
        200
    );
}

#[test]
fn a_truncated_message_does_no_harm() {
    let (_service, wire, location) = registered();
    let whole = register(ID, 300).encode();
    for length in 0..whole.len() {
        wire.send(&whole[..length]);
        wire.received_before_ping();
    }
    // A registration truncated inside its payload may still be valid, so the location may be gone.
    let code = wire.ask_among_others(&update(&location, 301)).code;
    assert!([Code::CHANGED, Code::NOT_FOUND].contains(&code), "{code}");
}

#[test]
fn a_datagram_of_the_largest_size_does_no_harm() {
    let (_service, wire, location) = registered();
    let large = update(&location, 1).with_payload(vec![b'<'; 60_000]);
    assert_eq!(wire.ask(&large).code, Code::BAD_REQUEST);
    assert_eq!(wire.ask(&update(&location, 2)).code, Code::CHANGED);
}

/// A service, a socket at which a device is registered, and its location.
fn registered() -> (Service, DeviceSocket, Vec<String>) {
    let (service, caller): (Service, Caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let wire = DeviceSocket::to(&service);
    let location = wire.register(ID, 0xEEEE);
    (service, wire, location)
}
