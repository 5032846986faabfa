//! Where does each datagram go, and how are those answered that go to no device?

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

use super::{Classified, DropReason};
use super::{ambiguous, classify, classify_secured, overloaded, unknown_address, unknown_peer};
use crate::datagram::{Datagram, Inbound, Restoration, UdpDatagram};
use crate::ids::{CustomerId, DeviceId, DeviceKey};
use crate::location::Location;
use crate::peer::Peer;

#[test]
fn a_registration_goes_to_the_device_with_the_endpoint_name() {
    let message = request(Code::POST, &["rd"]).with_uri_query(["lwm2m=1.1", "ep=meter", "lt=60"]);
    assert_eq!(classified(&message), "to endpoint meter: CON 0.02");
    let message = non(message);
    assert_eq!(classified(&message), "to endpoint meter: NON 0.02");
}

#[test]
fn a_registration_without_an_endpoint_name_goes_to_the_device_at_the_address() {
    let long = format!("ep={}", "x".repeat(252));
    let queries: [&[&str]; 5] = [&[], &["lt=60"], &["ep="], &["ep=a\tb"], &["endpoint=meter"]];
    for query in queries {
        let message = request(Code::POST, &["rd"]).with_uri_query(query);
        assert_eq!(classified(&message), "to address: CON 0.02", "{query:?}");
        assert_eq!(
            of_nobody(&message),
            "ACK 4.00 to 7, UnknownEndpoint",
            "{query:?}"
        );
    }
    let message = request(Code::POST, &["rd"]).with_uri_query([long]);
    assert!(
        classified(&message).starts_with("to endpoint xxx"),
        "what fits an option is a name"
    );
    let message = non(request(Code::POST, &["rd"]));
    assert_eq!(of_nobody(&message), "ignored, UnknownEndpoint");
}

#[test]
fn an_update_and_a_deregistration_go_to_the_device_at_the_location() {
    let location = location();
    for code in [Code::POST, Code::DELETE, Code::GET] {
        let message = request(code, &["rd", &location.to_string()]);
        assert_eq!(
            classified(&message),
            format!("to location {location}: CON {code}")
        );
    }
}

#[test]
fn an_unknown_location_is_not_found() {
    for segment in ["5a3f", "", "AAAAAAAAAAAAAAAAA", &location().to_string()] {
        let message = request(Code::POST, &["rd", segment]);
        assert_eq!(
            of_nobody(&message),
            "ACK 4.04 to 7, UnknownLocation",
            "{segment:?}"
        );
        assert_eq!(of_nobody(&non(message)), "ignored, UnknownLocation");
    }
    let message = request(Code::POST, &["rd", "5a3f"]);
    assert_eq!(classified(&message), "to address: CON 0.02");
}

#[test]
fn any_other_message_goes_to_the_device_at_the_peer() {
    let token = Token::new(&[1]).unwrap();
    let cases = [
        (request(Code::GET, &["rd"]), "CON 0.01"),
        (request(Code::POST, &["rd", "a", "b"]), "CON 0.02"),
        (request(Code::POST, &["dp"]), "CON 0.02"),
        (request(Code::POST, &[]), "CON 0.02"),
        (Message::ping(ID), "CON 0.00"),
        (Message::acknowledgement(ID), "ACK 0.00"),
        (Message::reset(ID), "RST 0.00"),
        (
            Message::separate(MessageKind::NonConfirmable, Code::CONTENT, ID, token),
            "NON 2.05",
        ),
        (
            Message::separate(MessageKind::Confirmable, Code::CONTENT, ID, token),
            "CON 2.05",
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(classified(&message), format!("to peer: {expected}"));
    }
}

#[test]
fn noise_is_ignored_and_a_malformed_confirmable_message_gets_a_reset() {
    let cases: [(&[u8], &str); 7] = [
        (&[], "ignored, Malformed(TooShort)"),
        (b"GET", "ignored, Malformed(TooShort)"),
        (&[0x80, 1, 0, 7], "ignored, Malformed(UnknownVersion(2))"),
        (&[0x50, 0, 0, 7], "ignored, Malformed(EmptyNonConfirmable)"),
        (
            &[0x60, 1, 0, 7],
            "ignored, Malformed(RequestInAcknowledgement)",
        ),
        (
            &[0x49, 1, 0, 7],
            "RST 0.00 to 7, Malformed(ReservedTokenLength(9))",
        ),
        (
            &[0x40, 1, 0, 7, 0xff],
            "RST 0.00 to 7, Malformed(PayloadMissing)",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(outcome(classify(0, peer(), bytes)), expected);
    }
}

#[test]
fn a_request_with_an_unknown_critical_option_is_refused() {
    let quick = request(Code::POST, &["rd"])
        .with_uri_query(["ep=meter"])
        .with_option(option::Q_BLOCK1, &[8]);
    assert_eq!(classified(&quick), "ACK 4.02 to 7, UnknownOption");
    assert_eq!(classified(&non(quick)), "ignored, UnknownOption");
}

#[test]
fn a_request_for_another_server_is_not_proxied() {
    for number in [option::PROXY_URI, option::PROXY_SCHEME] {
        let proxied = request(Code::POST, &[]).with_option(number, b"coap");
        assert_eq!(classified(&proxied), "ACK 5.05 to 7, Proxied");
        assert_eq!(classified(&non(proxied)), "ignored, Proxied");
    }
}

#[test]
fn a_source_that_cannot_be_answered_is_ignored() {
    let data = request(Code::POST, &[]).encode();
    for from in [
        "224.0.1.187:5683",
        "255.255.255.255:5683",
        "0.0.0.0:5683",
        "[ff02::fd]:5683",
    ] {
        let from = from.parse().unwrap();
        let unanswerable = "ignored, Unanswerable";
        assert_eq!(outcome(classify(0, Peer::plain(from), &data)), unanswerable);
        assert_eq!(outcome(classify(0, Peer::bare(from), &data)), unanswerable);
    }
    let without_port = "10.0.0.1:0".parse().unwrap();
    let actual = outcome(classify(0, Peer::plain(without_port), &data));
    assert_eq!(actual, "ignored, Unanswerable");
    let actual = outcome(classify(0, Peer::bare(without_port), b"on"));
    assert_eq!(actual, "to address: [111, 110]", "it asks for no answer");
}

#[test]
fn a_bare_datagram_goes_to_the_device_at_the_address_whatever_its_bytes() {
    for bytes in [&b""[..], b"on", &request(Code::POST, &["rd"]).encode()] {
        let classified = classify(0, Peer::bare("10.0.0.1:4445".parse().unwrap()), bytes);
        assert_eq!(outcome(classified), format!("to address: {bytes:?}"));
    }
}

#[test]
fn a_message_over_an_association_goes_to_its_device_whatever_name_it_has() {
    let device = DeviceKey::of(
        &CustomerId::parse("acme").unwrap(),
        &DeviceId::parse("meter").unwrap(),
    );
    let peer = Peer::secured("10.0.0.1:5684".parse().unwrap()).of_device(device);
    let register = request(Code::POST, &["rd"]).with_uri_query(["ep=other"]);
    let update = request(Code::POST, &["rd", "0011223344556677"]);
    for message in [register, update, request(Code::POST, &[])] {
        let classified = classify_secured((0, peer), device, &message.encode());
        assert_eq!(outcome(classified), format!("to device {device}: CON 0.02"));
    }
}

#[test]
fn data_from_an_unknown_address_is_refused_and_bare_datagrams_are_dropped() {
    let handler = |arrival: &Inbound| outcome(unknown_address(arrival));
    let actual = handler(&arrival(request(Code::POST, &[])));
    assert_eq!(actual, "ACK 4.01 to 7, UnknownAddress");
    let actual = handler(&arrival(non(request(Code::POST, &[]))));
    assert_eq!(actual, "ignored, UnknownAddress");
    assert_eq!(handler(&bare()), "ignored, UnknownAddress");
}

#[test]
fn data_from_a_shared_address_is_answered_by_one_device_and_bare_datagrams_are_dropped() {
    let admitted = ambiguous(arrival(request(Code::POST, &[])));
    assert!(
        matches!(admitted, Ok(Inbound::Ambiguous(_))),
        "{admitted:?}"
    );
    let dropped = ambiguous(bare());
    assert_eq!(dropped.unwrap_err(), DropReason::UnknownAddress);
}

#[test]
fn data_is_deferred_while_the_store_is_full() {
    let deferred = |arrival| outcome(Classified::ToAddress(arrival).defer());
    let actual = deferred(arrival(request(Code::POST, &[])));
    assert_eq!(actual, "ACK 5.03 to 7, Overloaded");
    assert_eq!(deferred(bare()), "ignored, Overloaded");
}

#[test]
fn options_a_device_may_use_are_known() {
    let message = request(Code::POST, &["rd"])
        .with_uri_query(["ep=meter"])
        .with_option(option::URI_HOST, b"box.example")
        .with_option(option::URI_PORT, &[0x16, 0x33])
        .with_option(option::IF_NONE_MATCH, &[])
        .with_option(option::ACCEPT, &[])
        .with_block1(Block::new(0, More::Yes, BlockSize::MAX))
        .with_block2(Block::new(0, More::No, BlockSize::MIN))
        .with_size1(2_000)
        .with_option(option::REQUEST_TAG, &[1])
        .with_observe(0)
        .with_max_age(60);
    assert_eq!(classified(&message), "to endpoint meter: CON 0.02");
}

#[test]
fn a_send_goes_to_the_device_at_the_peer() {
    let send = request(Code::POST, &["dp"]);
    assert_eq!(classified(&send), "to peer: CON 0.02");
    assert_eq!(classified(&non(send)), "to peer: NON 0.02");
}

#[test]
fn an_answer_with_an_unknown_critical_option_still_reaches_its_device() {
    let token = Token::new(&[1]).unwrap();
    let answer =
        Message::separate(MessageKind::Confirmable, Code::CONTENT, ID, token).with_option(9, &[]);
    assert_eq!(classified(&answer), "to peer: CON 2.05");
}

#[test]
fn messages_without_a_device_are_answered_or_ignored() {
    let token = Token::new(&[1]).unwrap();
    let notification = Message::separate(MessageKind::NonConfirmable, Code::CONTENT, ID, token);
    let register = request(Code::POST, &["rd"]).with_uri_query(["ep=meter"]);
    let cases: [(Handler, Message, &str); 19] = [
        (nobody, register.clone(), "ACK 4.03 to 7, UnknownEndpoint"),
        (nobody, non(register), "ignored, UnknownEndpoint"),
        (
            nobody,
            request(Code::POST, &["bs"]).with_uri_query(["ep=meter"]),
            "ACK 4.03 to 7, UnknownEndpoint",
        ),
        (
            nobody,
            request(Code::POST, &["bs"]),
            "ACK 4.00 to 7, UnknownEndpoint",
        ),
        (
            nobody,
            request(Code::GET, &[]),
            "ACK 4.01 to 7, UnknownAddress",
        ),
        (stranger, Message::ping(ID), "RST 0.00 to 7, UnknownPeer"),
        (
            stranger,
            Message::acknowledgement(ID),
            "ignored, UnknownPeer",
        ),
        (stranger, Message::reset(ID), "ignored, UnknownPeer"),
        (stranger, notification.clone(), "RST 0.00 to 7, UnknownPeer"),
        (not_known_yet, notification.clone(), "ignored, NotRestored"),
        (
            not_known_yet,
            Message::ping(ID),
            "RST 0.00 to 7, NotRestored",
        ),
        (
            not_known_yet,
            request(Code::POST, &[]),
            "to address: CON 0.02",
        ),
        (stranger, request(Code::POST, &[]), "to address: CON 0.02"),
        (stranger, request(Code::GET, &[]), "to address: CON 0.01"),
        (
            stranger,
            request(Code::POST, &["dp"]),
            "to address: CON 0.02",
        ),
        (
            nobody,
            request(Code::POST, &["dp"]),
            "ACK 4.04 to 7, UnknownPeer",
        ),
        (
            nobody,
            non(request(Code::POST, &["dp"])),
            "ignored, UnknownPeer",
        ),
        (
            nobody_yet,
            request(Code::POST, &["dp"]),
            "ignored, NotRestored",
        ),
        (overloaded, notification, "ignored, Overloaded"),
    ];
    for (handler, message, expected) in cases {
        let datagram = Datagram::new(0, peer(), message);
        assert_eq!(outcome(handler(&datagram)), expected);
    }
}

#[test]
fn an_error_response_names_the_fault_unless_it_is_longer_than_the_request() {
    let (name, long) = (["ep=meter"], "x".repeat(100));
    let register = request(Code::POST, &["rd"]).with_uri_query(name);
    let quick = register.clone().with_option(option::Q_BLOCK1, &[8]);
    let [send, update, data] =
        [&["dp"][..], &["rd", "x"], &[]].map(|path| request(Code::POST, path));
    let cases: [(Classified, Message, &str); 7] = [
        (
            nobody(&of(&register, &long)),
            register.clone(),
            "endpoint name not accepted from this address",
        ),
        (
            nobody(&of(&update, &long)),
            update.clone(),
            "register again",
        ),
        (
            nobody(&of(&send, &long)),
            send.clone(),
            "not registered at this address and port",
        ),
        (nobody(&of(&data, &long)), data, "unknown address"),
        (overloaded(&of(&send, &long)), send, "overloaded"),
        (
            classify(0, peer(), &of(&quick, &long).message.encode()),
            quick,
            "unknown option 19",
        ),
        (nobody(&of(&register, "")), register, ""),
    ];
    for (classified, request, expected) in cases {
        let Classified::Answered { datagram, .. } = classified else {
            panic!("{expected}: {classified:?}");
        };
        let answer = Message::decode(&datagram).unwrap();
        let text = String::from_utf8(answer.payload).unwrap();
        assert_eq!(text, expected, "{request:?}");
    }
}

#[test]
fn requests_that_need_a_write_are_deferred_and_answers_are_not() {
    let deferred = |message: &Message| {
        let classified = classify(0, peer(), &message.encode()).defer();
        outcome(classified)
    };
    for path in [&["rd"][..], &["dp"]] {
        let message = request(Code::POST, path).with_uri_query(["ep=meter"]);
        assert_eq!(deferred(&message), "ACK 5.03 to 7, Overloaded", "{path:?}");
    }
    let answer = Message::response_to(&request(Code::GET, &["3"]), Code::CONTENT, ID);
    assert_eq!(deferred(&answer), classified(&answer));
}

#[test]
fn an_overloaded_service_answers_with_max_age() {
    let message = request(Code::POST, &["rd"]).with_uri_query(["ep=meter"]);
    let Classified::Answered { datagram, reason } = overloaded(&Datagram::new(0, peer(), message))
    else {
        panic!("a confirmable request is answered");
    };
    let answer = Message::decode(&datagram).unwrap();
    assert_eq!(
        (answer.kind, answer.code),
        (MessageKind::Acknowledgement, Code::SERVICE_UNAVAILABLE)
    );
    assert_eq!((answer.message_id, answer.max_age()), (ID, Some(10)));
    assert_eq!(reason, DropReason::Overloaded);
}

// The vocabulary of these tests.

type Handler = fn(&Datagram) -> Classified;

const ID: MessageId = MessageId(7);

fn peer() -> Peer {
    Peer::plain("10.0.0.1:5683".parse().unwrap())
}

fn arrival(message: Message) -> Inbound {
    let peer = peer();
    Inbound::Message(Datagram::new(0, peer, message))
}

fn of(message: &Message, payload: &str) -> Datagram {
    Datagram::new(0, peer(), message.clone().with_payload(payload))
}

fn bare() -> Inbound {
    let peer = Peer::bare("10.0.0.1:4445".parse().unwrap());
    let bytes = b"on".to_vec();
    Inbound::Udp(UdpDatagram {
        number: 0,
        peer,
        bytes,
    })
}

fn location() -> Location {
    let customer = CustomerId::parse("acme").unwrap();
    let device = DeviceId::parse("8931").unwrap();
    Location::new(DeviceKey::of(&customer, &device), 17)
}

fn request(code: Code, path: &[&str]) -> Message {
    Message::request(MessageKind::Confirmable, code, ID, Token::EMPTY).with_uri_path(path)
}

fn non(mut message: Message) -> Message {
    message.kind = MessageKind::NonConfirmable;
    message
}

fn classified(message: &Message) -> String {
    outcome(classify(0, peer(), &message.encode()))
}

fn outcome(classified: Classified) -> String {
    match classified {
        Classified::ToImage(request) => format!("image of {}", request.campaign),
        Classified::ToEndpoint(endpoint, datagram) => {
            format!("to endpoint {endpoint}: {}", head(&datagram.message))
        }
        Classified::ToLocation(location, datagram) => {
            format!("to location {location}: {}", head(&datagram.message))
        }
        Classified::ToPeer(datagram) => format!("to peer: {}", head(&datagram.message)),
        Classified::ToAddress(
            Inbound::Message(datagram)
            | Inbound::Ambiguous(datagram)
            | Inbound::BootstrapOnly(datagram),
        ) => {
            format!("to address: {}", head(&datagram.message))
        }
        Classified::ToAddress(Inbound::Udp(bare) | Inbound::UdpBurst(bare, _)) => {
            format!("to address: {:?}", bare.bytes)
        }
        Classified::ToDevice(device, Inbound::Message(datagram)) => {
            format!("to device {device}: {}", head(&datagram.message))
        }
        Classified::ToAddress(Inbound::RefusedHandshake(_)) | Classified::ToDevice(..) => {
            panic!("no other input is classified so")
        }
        Classified::Answered { datagram, reason } => {
            let answer = Message::decode(&datagram).unwrap();
            format!("{} to {}, {reason:?}", head(&answer), answer.message_id.0)
        }
        Classified::Ignored(reason) => format!("ignored, {reason:?}"),
    }
}

fn head(message: &Message) -> String {
    let kind = match message.kind {
        MessageKind::Confirmable => "CON",
        MessageKind::NonConfirmable => "NON",
        MessageKind::Acknowledgement => "ACK",
        MessageKind::Reset => "RST",
    };
    format!("{kind} {}", message.code)
}

fn of_nobody(message: &Message) -> String {
    outcome(nobody(&of(message, "")))
}

fn nobody(datagram: &Datagram) -> Classified {
    unknown_address(&Inbound::Message(datagram.clone()))
}

fn nobody_yet(datagram: &Datagram) -> Classified {
    unknown_address(&Inbound::Message(unrestored(datagram)))
}

fn stranger(datagram: &Datagram) -> Classified {
    unknown_peer(datagram.clone())
}

fn not_known_yet(datagram: &Datagram) -> Classified {
    unknown_peer(unrestored(datagram))
}

/// A datagram for which an arbiter was asked that had not restored its devices.
fn unrestored(datagram: &Datagram) -> Datagram {
    Datagram {
        restoration: Restoration::UnderWay,
        ..datagram.clone()
    }
}
