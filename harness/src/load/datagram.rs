//! How are the datagrams of a load encoded, and its usual response decoded? RFC 7252 section 3, and
//! the registration interface of LwM2M.
//!
//! Registrations, and responses with options, use the codec. Registration updates and their bare
//! responses are most of a load, so these two are encoded and decoded here, byte by byte: the load
//! must not cost more than the server it measures.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

/// The bytes before the options if there is no token.
const HEADER_BYTES: usize = 4;

/// Version 1, Confirmable, a token of two bytes.
const CONFIRMABLE: u8 = 0x42;

/// Version 1, Acknowledgement, a token of two bytes.
const ACKNOWLEDGEMENT: u8 = 0x62;

/// The objects of a device: those that every device has, and one with a value to read.
const OBJECTS: &str = "</1/0>,</3/0>,</4/0>,</3303/0>";

/// The response of a device to any read.
const READING: &str = "signalbox load";

/// Uri-Path `dp`, Content-Format 112: SenML CBOR.
const SEND_OPTIONS: &[u8] = b"\xb2dp\x11\x70";

const PAYLOAD_MARKER: u8 = 0xff;

/// One record: name `/3303/0/5700`, and a value of eight bytes that follow.
const SEND_NAME: &[u8] = b"\x81\xa2\x00\x6c/3303/0/5700\x02\xfb";

/// How a device can be reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Binding {
    /// At any time.
    Udp,
    /// While it is awake.
    QueueMode,
}

/// A piggybacked response with only a code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct BareAnswer {
    pub(super) code: Code,
    pub(super) message_id: u16,
}

/// The token of a request: a device has one request in progress, so its message id suffices.
pub(super) fn token(message_id: u16) -> Token {
    Token::new(&message_id.to_be_bytes()).expect("two bytes are a token")
}

/// A registration.
pub(super) fn register(
    endpoint: &str,
    lifetime_s: u32,
    binding: Binding,
    message_id: u16,
) -> Vec<u8> {
    let endpoint = format!("ep={endpoint}");
    let lifetime = format!("lt={lifetime_s}");
    let queries = ["lwm2m=1.1", &endpoint, &lifetime, "b=U"].into_iter();
    let queue_mode = (binding == Binding::QueueMode).then_some("Q");
    request(message_id)
        .with_uri_path(["rd"])
        .with_uri_query(queries.chain(queue_mode))
        .with_content_format(ContentFormat::LINK_FORMAT)
        .with_payload(OBJECTS)
        .encode()
}

/// The options of a request to the location in a response; None if it has none.
pub(super) fn options_to(answer: &Message) -> Option<Vec<u8>> {
    let mut path = answer.location_path().peekable();
    path.peek()?;
    let request = Message::request(
        MessageKind::Confirmable,
        Code::POST,
        MessageId(0),
        Token::EMPTY,
    );
    let mut options = request.with_uri_path(path).encode();
    options.drain(..HEADER_BYTES);
    Some(options)
}

/// A registration update without changes.
pub(super) fn write_update(message_id: u16, options: &[u8], datagram: &mut Vec<u8>) {
    let [high, low] = message_id.to_be_bytes();
    let post = Code::POST.as_byte();
    datagram.extend_from_slice(&[CONFIRMABLE, post, high, low, high, low]);
    datagram.extend_from_slice(options);
}

/// A Send of a measured value (LwM2M Core 1.1 section 6.4.6).
pub(super) fn write_send(message_id: u16, value: f64, datagram: &mut Vec<u8>) {
    let [high, low] = message_id.to_be_bytes();
    let post = Code::POST.as_byte();
    datagram.extend_from_slice(&[CONFIRMABLE, post, high, low, high, low]);
    datagram.extend_from_slice(SEND_OPTIONS);
    datagram.push(PAYLOAD_MARKER);
    datagram.extend_from_slice(SEND_NAME);
    datagram.extend_from_slice(&value.to_be_bytes());
}

/// Decodes a response that has only a code and the token of our requests.
pub(super) fn bare_answer(datagram: &[u8]) -> Option<BareAnswer> {
    let [ACKNOWLEDGEMENT, code, high, low, token_high, token_low] = *datagram else {
        return None;
    };
    let code = Code::from_byte(code);
    let is_ours = [high, low] == [token_high, token_low] && code.is_response();
    is_ours.then_some(BareAnswer {
        code,
        message_id: u16::from_be_bytes([high, low]),
    })
}

/// The response of a device to a request of the server.
pub(super) fn answer(request: &Message, message_id: u16) -> Message {
    let respond = |code| Message::response_to(request, code, MessageId(message_id));
    match request.code {
        Code::GET => respond(Code::CONTENT)
            .with_content_format(ContentFormat::TEXT)
            .with_payload(READING),
        Code::PUT | Code::POST => respond(Code::CHANGED),
        _ => respond(Code::METHOD_NOT_ALLOWED),
    }
}

fn request(message_id: u16) -> Message {
    let id = MessageId(message_id);
    Message::request(MessageKind::Confirmable, Code::POST, id, token(message_id))
}

#[cfg(test)]
mod tests {
    use protocol::lwm2m::path::Path;
    use protocol::lwm2m::payload::{self, Reading};
    use protocol::lwm2m::value::{DataType, Value};

    use super::*;

    fn located(path: &[&str]) -> Message {
        Message::response_to(&request(1), Code::CREATED, MessageId(1)).with_location_path(path)
    }

    #[test]
    fn an_update_goes_to_the_location_of_the_registration() {
        for path in [
            &["rd", "5a3f"][..],
            &["rd", "0123456789abcdef"],
            &["a", "b", "c"],
        ] {
            let options = options_to(&located(path)).unwrap();
            let mut datagram = Vec::new();
            write_update(0xABCD, &options, &mut datagram);
            assert_eq!(datagram, request(0xABCD).with_uri_path(path).encode());
        }
        assert_eq!(options_to(&located(&[])), None);
    }

    #[test]
    fn a_send_carries_its_value() {
        let path = Path::resource(3303, 0, 5700);
        for (id, number) in [
            (0x0000, 0.0),
            (0x1234, 21.5),
            (0xffff, 4_503_599_627_370_495.0),
        ] {
            let mut datagram = Vec::new();
            write_send(id, number, &mut datagram);
            let message = Message::decode(&datagram).unwrap();
            assert_eq!(message.encode(), datagram);
            assert_eq!(message.uri_path().collect::<Vec<_>>(), ["dp"]);
            assert_eq!(message.content_format(), Some(ContentFormat::SENML_CBOR));
            let type_of = |_| Some(DataType::Float);
            let read = payload::decode(message.content_format(), path, &message.payload, type_of);
            let value = Value::Float(number);
            assert_eq!(read.unwrap(), Reading::from([(path, value)]));
        }
    }

    #[test]
    fn a_bare_response_is_decoded_as_the_codec_does() {
        let bare = Message::response_to(&request(0x1234), Code::CHANGED, MessageId(0x1234));
        let read = BareAnswer {
            code: Code::CHANGED,
            message_id: 0x1234,
        };
        assert_eq!(bare_answer(&bare.encode()), Some(read));
        let others = [
            Message::acknowledgement(MessageId(0x1234)),
            Message::reset(MessageId(0x1234)),
            bare.clone().with_payload("more"),
            bare.with_max_age(5),
            request(0x1234),
            Message::response_to(&request(0x1234), Code::GET, MessageId(0x1234)),
        ];
        for other in others {
            assert_eq!(bare_answer(&other.encode()), None, "{other:?}");
        }
        assert_eq!(bare_answer(&[0x62, 0x44, 0, 1, 0, 2]), None);
        assert_eq!(bare_answer(&[]), None);
    }

    #[test]
    fn a_registration_has_every_parameter_that_a_server_requires() {
        let datagram = register("meter-7", 300, Binding::Udp, 9);
        let read = Message::decode(&datagram).unwrap();
        assert_eq!(read.token, token(9));
        assert_eq!(read.uri_path().collect::<Vec<_>>(), ["rd"]);
        let queries: Vec<&str> = read.uri_query().collect();
        assert_eq!(queries, ["lwm2m=1.1", "ep=meter-7", "lt=300", "b=U"]);
        assert_eq!(read.content_format(), Some(ContentFormat::LINK_FORMAT));
        assert_eq!(read.payload, OBJECTS.as_bytes());
        let sleepy = register("meter-7", 300, Binding::QueueMode, 9);
        let read = Message::decode(&sleepy).unwrap();
        assert_eq!(read.uri_query().last(), Some("Q"));
    }
}
