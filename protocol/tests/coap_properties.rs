//! Does every message survive its encoding, and does no datagram surprise the decoder?

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::{prop_assert, prop_assert_eq};
use protocol::coap::code::Code;
use protocol::coap::malformed::Malformed;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::option;
use protocol::coap::token::Token;

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(message in messages()) {
        let bytes = message.encode();
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
    }

    #[test]
    fn no_datagram_is_too_strange(bytes in datagrams()) {
        match Message::decode(&bytes) {
            Ok(message) => {
                let written = message.encode();
                prop_assert!(written.len() <= bytes.len());
                let again = Message::decode(&written).expect("what we write is well-formed");
                prop_assert_eq!(again.encode(), written);
            }
            Err(Malformed { reason, reset }) => {
                let is_confirmable = bytes.len() >= 4 && bytes[0] >> 4 == 0b0100;
                prop_assert_eq!(reset.is_some(), is_confirmable, "{}", reason);
            }
        }
    }
}

fn messages() -> impl Strategy<Value = Message> {
    let request = (
        prop_oneof![Just(Kind::Confirmable), Just(Kind::NonConfirmable)],
        1..32_u8,
    )
        .prop_map(|(kind, detail)| (kind, Code::new(0, detail)));
    let response_kind = prop_oneof![
        Just(Kind::Confirmable),
        Just(Kind::NonConfirmable),
        Just(Kind::Acknowledgement)
    ];
    let response = (response_kind, 2..6_u8, 0..32_u8)
        .prop_map(|(kind, class, detail)| (kind, Code::new(class, detail)));
    let head = (
        prop_oneof![request, response],
        any::<u16>(),
        vec(any::<u8>(), 0..=8),
    );
    let full = (head, vec(options(), 0..12), payloads()).prop_map(
        |(((kind, code), message_id, token), options, payload)| {
            let token = Token::new(&token).expect("it has up to eight bytes");
            let message = Message::request(kind, code, MessageId(message_id), token);
            let add = |message: Message, (number, value): (u16, Vec<u8>)| {
                message.with_option(number, &value)
            };
            options.into_iter().fold(message, add).with_payload(payload)
        },
    );
    let empty = prop_oneof![
        any::<u16>().prop_map(|id| Message::ping(MessageId(id))),
        any::<u16>().prop_map(|id| Message::acknowledgement(MessageId(id))),
        any::<u16>().prop_map(|id| Message::reset(MessageId(id))),
    ];
    prop_oneof![9 => full, 1 => empty]
}

/// Options that any message may carry in any number, so that each message is used as defined.
fn options() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let texts = [
        option::LOCATION_PATH,
        option::URI_PATH,
        option::URI_QUERY,
        option::LOCATION_QUERY,
    ];
    let text = (select(texts.to_vec()), "\\PC{0,60}")
        .prop_map(|(number, text)| (number, text.into_bytes()));
    let undefined = (
        300..=u16::MAX,
        prop_oneof![vec(any::<u8>(), 0..20), vec(any::<u8>(), 260..300)],
    );
    let opaque = (Just(option::ETAG), vec(any::<u8>(), 1..=8));
    prop_oneof![text, undefined, opaque]
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(vec![]), vec(any::<u8>(), 1..80), vec(Just(0xFF), 1..4)]
}

/// Noise, noise behind a header, and messages cut off or with a byte changed.
fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let noise = vec(any::<u8>(), 0..200);
    let first = (0x40..0x80_u8).prop_map(|byte| byte & 0xF3);
    let behind_a_header =
        (first, any::<u8>(), vec(any::<u8>(), 0..60)).prop_map(|(first, code, mut rest)| {
            rest.splice(0..0, [first, code]);
            rest
        });
    let cut = (messages(), any::<Index>()).prop_map(|(message, end)| {
        let mut bytes = message.encode();
        bytes.truncate(end.index(bytes.len() + 1));
        bytes
    });
    let changed = (messages(), any::<Index>(), any::<u8>()).prop_map(|(message, place, byte)| {
        let mut bytes = message.encode();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        bytes
    });
    prop_oneof![noise, behind_a_header, cut, changed]
}
