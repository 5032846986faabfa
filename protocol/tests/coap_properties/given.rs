//! The messages and datagrams of the properties.

use coap_lite::{MessageClass, MessageType, Packet};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::option;
use protocol::coap::token::Token;

/// The parts of a message, independent of a codec.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    kind: MessageKind,
    code: Code,
    message_id: u16,
    token: Vec<u8>,
    options: Vec<(u16, Vec<u8>)>,
    payload: Vec<u8>,
}

impl Parts {
    /// The message in our types.
    pub(crate) fn message(&self) -> Message {
        let token = Token::new(&self.token).expect("it has up to eight bytes");
        let message = Message::request(self.kind, self.code, MessageId(self.message_id), token);
        let add = |message: Message, (number, value): &(u16, Vec<u8>)| {
            message.with_option(*number, value)
        };
        let message = self.options.iter().fold(message, add);
        message.with_payload(self.payload.clone())
    }

    /// The message in coap-lite's types.
    pub(crate) fn packet(&self) -> Packet {
        let mut packet = Packet::new();
        packet.header.set_type(match self.kind {
            MessageKind::Confirmable => MessageType::Confirmable,
            MessageKind::NonConfirmable => MessageType::NonConfirmable,
            MessageKind::Acknowledgement => MessageType::Acknowledgement,
            MessageKind::Reset => MessageType::Reset,
        });
        packet.header.code = MessageClass::from(self.code.as_byte());
        packet.header.message_id = self.message_id;
        packet.set_token(self.token.clone());
        for (number, value) in &self.options {
            packet.add_option((*number).into(), value.clone());
        }
        packet.payload = self.payload.clone();
        packet
    }
}

/// Well-formed messages whose options are used as defined.
pub(crate) fn messages() -> impl Strategy<Value = Message> {
    parts().prop_map(|parts| parts.message())
}

/// Parts of well-formed messages, their options used as defined.
pub(crate) fn parts() -> impl Strategy<Value = Parts> {
    parts_with(options())
}

fn parts_with(options: impl Strategy<Value = (u16, Vec<u8>)>) -> impl Strategy<Value = Parts> {
    let request = (
        prop_oneof![
            Just(MessageKind::Confirmable),
            Just(MessageKind::NonConfirmable)
        ],
        1..32_u8,
    )
        .prop_map(|(kind, detail)| (kind, Code::new(0, detail)));
    let response_kind = prop_oneof![
        Just(MessageKind::Confirmable),
        Just(MessageKind::NonConfirmable),
        Just(MessageKind::Acknowledgement)
    ];
    let response = (response_kind, 2..6_u8, 0..32_u8)
        .prop_map(|(kind, class, detail)| (kind, Code::new(class, detail)));
    let token = vec(any::<u8>(), 0..=8);
    let head = (prop_oneof![request, response], any::<u16>(), token);
    let full = (head, vec(options, 0..12), payloads()).prop_map(
        |(((kind, code), message_id, token), options, payload)| Parts {
            kind,
            code,
            message_id,
            token,
            options,
            payload,
        },
    );
    prop_oneof![9 => full, 1 => empty()]
}

fn empty() -> impl Strategy<Value = Parts> {
    let kind = select(vec![
        MessageKind::Confirmable,
        MessageKind::Acknowledgement,
        MessageKind::Reset,
    ]);
    (kind, any::<u16>()).prop_map(|(kind, message_id)| Parts {
        kind,
        code: Code::EMPTY,
        message_id,
        token: vec![],
        options: vec![],
        payload: vec![],
    })
}

/// Options that any message may have in any number, so that each message is used as defined.
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

/// Options used in any way, mostly those with a definition.
fn any_options() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let number = prop_oneof![9 => 0..300_u16, 1 => any::<u16>()];
    let ascii = "[a-z0-9=]{0,10}".prop_map(String::into_bytes);
    let value = prop_oneof![ascii, vec(any::<u8>(), 0..14), vec(any::<u8>(), 250..280)];
    (number, value)
}

/// Noise, noise after a header, messages with options of any kind, and messages that are cut off or
/// have a changed byte.
pub(crate) fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let noise = vec(any::<u8>(), 0..200);
    let first = (0x40..0x80_u8).prop_map(|byte| byte & 0xF3);
    let behind_a_header =
        (first, any::<u8>(), vec(any::<u8>(), 0..60)).prop_map(|(first, code, mut rest)| {
            rest.splice(0..0, [first, code]);
            rest
        });
    let packets = parts_with(any_options()).prop_map(|parts| {
        let written = parts.packet().to_bytes_unlimited();
        written.expect("it refuses a size alone, and has no limit")
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
    prop_oneof![noise, behind_a_header, packets, cut, changed]
}
