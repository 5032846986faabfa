//! What does a datagram say, and how is a message written? RFC 7252 sections 3 and 5.4.
//!
//! coap-lite reads and writes the bytes; it accepts what the standard calls a format error (other
//! versions, Empty messages with content, a payload marker without payload), so we check for it.
//! A well-formed message encodes to the bytes it was decoded from, save the elective options that
//! were wrongly used and therefore left out.

mod header;
mod meaning;

use coap_lite::error::MessageError;
use coap_lite::{MessageClass, MessageType, Packet};

use self::header::Header;
use super::code::Code;
use super::malformed::{Fault, Malformed};
use super::option::{self, Options};
use super::token::Token;

const HEADER_BYTES: usize = 4;

/// A CoAP message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// What the message layer owes for it.
    pub kind: Kind,
    /// What is asked or answered.
    pub code: Code,
    /// Ties an Acknowledgement or Reset to its message and shows repeated ones.
    pub message_id: MessageId,
    /// Ties a response to its request.
    pub token: Token,
    /// What the code is about, in the format the Content-Format option names.
    pub payload: Vec<u8>,
    options: Options,
    // The first critical option that is longer, shorter or more frequent than defined, or not
    // text where it has to be: RFC 7252 section 5.4.3 has it treated like an unrecognized one.
    misused_option: Option<u16>,
}

/// The four types of message of RFC 7252 section 4.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// To be acknowledged or reset.
    Confirmable,
    /// Neither acknowledged nor repeated.
    NonConfirmable,
    /// Confirms a Confirmable message, and may carry its response.
    Acknowledgement,
    /// Refuses a message.
    Reset,
}

/// A message id, unique for a while between two endpoints and per direction.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessageId(pub u16);

impl Message {
    /// Starts a request.
    pub fn request(kind: Kind, code: Code, message_id: MessageId, token: Token) -> Message {
        Message::new(kind, code, message_id, token)
    }

    /// Starts the response to a request: in the acknowledgement of a Confirmable one, and as a
    /// Non-confirmable message under the given id for a Non-confirmable one.
    pub fn response_to(request: &Message, code: Code, message_id: MessageId) -> Message {
        match request.kind {
            Kind::Confirmable => Message::new(
                Kind::Acknowledgement,
                code,
                request.message_id,
                request.token,
            ),
            Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset => {
                Message::new(Kind::NonConfirmable, code, message_id, request.token)
            }
        }
    }

    /// Starts a response that travels in a message of its own, be it a separate response to an
    /// acknowledged request or a notification.
    pub fn separate(kind: Kind, code: Code, message_id: MessageId, token: Token) -> Message {
        Message::new(kind, code, message_id, token)
    }

    /// Makes the Empty message that acknowledges a Confirmable one.
    pub fn acknowledgement(message_id: MessageId) -> Message {
        Message::new(Kind::Acknowledgement, Code::EMPTY, message_id, Token::EMPTY)
    }

    /// Makes the Empty message that refuses another one.
    pub fn reset(message_id: MessageId) -> Message {
        Message::new(Kind::Reset, Code::EMPTY, message_id, Token::EMPTY)
    }

    /// Makes the Empty Confirmable message that asks for a Reset: is the peer there?
    pub fn ping(message_id: MessageId) -> Message {
        Message::new(Kind::Confirmable, Code::EMPTY, message_id, Token::EMPTY)
    }

    fn new(kind: Kind, code: Code, message_id: MessageId, token: Token) -> Message {
        let options = Options::default();
        let payload = Vec::new();
        Message {
            kind,
            code,
            message_id,
            token,
            payload,
            options,
            misused_option: None,
        }
    }

    /// Reads a datagram.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        let header = Header::read(bytes)?;
        header
            .check(bytes)
            .and_then(|()| read(&header, bytes))
            .map_err(|reason| Malformed {
                reason,
                reset: (header.kind == Kind::Confirmable).then_some(header.message_id),
            })
    }

    /// Writes the datagram.
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Packet::new();
        packet.header.set_type(match self.kind {
            Kind::Confirmable => MessageType::Confirmable,
            Kind::NonConfirmable => MessageType::NonConfirmable,
            Kind::Acknowledgement => MessageType::Acknowledgement,
            Kind::Reset => MessageType::Reset,
        });
        packet.header.code = MessageClass::from(self.code.as_byte());
        packet.header.message_id = self.message_id.0;
        packet.set_token(self.token.as_bytes().to_vec());
        for (number, value) in self.options.iter() {
            packet.add_option(number.into(), value.to_vec());
        }
        packet.payload.clone_from(&self.payload);
        packet
            .to_bytes_unlimited()
            .expect("the codec refuses nothing but a size, and has no limit")
    }
}

fn read(header: &Header, bytes: &[u8]) -> Result<Message, Fault> {
    let mut packet = Packet::from_bytes(bytes).map_err(|error| match error {
        MessageError::InvalidHeader | MessageError::InvalidPacketLength => Fault::TooShort,
        MessageError::InvalidTokenLength => Fault::TokenCutOff,
        MessageError::InvalidOptionDelta => Fault::OptionDelta,
        MessageError::InvalidOptionLength => Fault::OptionLength,
    })?;
    if packet.payload.is_empty() && bytes.len() > bytes_without_payload(&packet) {
        return Err(Fault::PayloadMissing);
    }
    let token = Token::new(packet.get_token()).ok_or(Fault::TokenCutOff)?;
    let mut message = Message::new(header.kind, header.code, header.message_id, token);
    message.payload = std::mem::take(&mut packet.payload);
    take_options(&mut message, &packet, bytes.len());
    Ok(message)
}

// Elective options used against their definition are left out, critical ones remembered.
fn take_options(message: &mut Message, packet: &Packet, datagram_bytes: usize) {
    let count = packet.options().map(|(_, values)| values.len()).sum();
    message.options =
        Options::with_capacity(count, datagram_bytes.saturating_sub(message.payload.len()));
    for (number, values) in packet.options() {
        for (place, value) in values.iter().enumerate() {
            let is_wanted = place == 0 || option::is_repeatable(*number);
            if is_wanted && option::is_well_used(*number, value) {
                message.options.add(*number, value);
            } else if option::is_critical(*number) {
                message.misused_option.get_or_insert(*number);
            }
        }
    }
}

// Every delta and every length has exactly one encoding, so this is what was read.
fn bytes_without_payload(packet: &Packet) -> usize {
    let mut bytes = HEADER_BYTES + packet.get_token().len();
    let mut previous = 0;
    for (number, values) in packet.options() {
        for value in values {
            let delta = usize::from(number.saturating_sub(previous));
            bytes += 1 + extension_bytes(delta) + extension_bytes(value.len()) + value.len();
            previous = *number;
        }
    }
    bytes
}

fn extension_bytes(number: usize) -> usize {
    match number {
        0..13 => 0,
        13..269 => 1,
        _ => 2,
    }
}
