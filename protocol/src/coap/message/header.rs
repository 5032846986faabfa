//! Are the first four bytes of a datagram a valid header, and how is a header written? RFC 7252
//! sections 3, 4.1, 4.2 and 4.3.
//!
//! coap-lite parses and writes the four bytes; what it accepts against the standard (other
//! versions, reserved token lengths, Empty messages with content) is refused here.

use coap_lite::{HeaderRaw, MessageClass, MessageType};

use super::{Message, MessageId, MessageKind};
use crate::coap::code::Code;
use crate::coap::message::malformed::{MalformedMessage, MessageFault};
use crate::coap::token::Token;

/// The length of the header before the token.
pub(super) const HEADER_BYTES: usize = 4;

const VERSION: u8 = 1;

/// The fields of the first four bytes.
pub(super) struct Header {
    pub(super) kind: MessageKind,
    token_length: u8,
    pub(super) code: Code,
    pub(super) message_id: MessageId,
}

impl Header {
    // A sender with an unknown version, or without a complete header, cannot be answered.
    pub(super) fn read(bytes: &[u8]) -> Result<Header, MalformedMessage> {
        let unanswerable = |reason| MalformedMessage {
            reason,
            reset: None,
        };
        let raw = HeaderRaw::try_from(bytes).map_err(|_| unanswerable(MessageFault::TooShort))?;
        let header = coap_lite::Header::from_raw(&raw);
        match header.get_version() {
            VERSION => Ok(Header {
                kind: kind_of(header.get_type()),
                token_length: header.get_token_length(),
                code: Code::from_byte(header.code.into()),
                message_id: MessageId(header.message_id),
            }),
            version => Err(unanswerable(MessageFault::UnknownVersion(version))),
        }
    }

    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), MessageFault> {
        if usize::from(self.token_length) > Token::BYTES_MAX {
            return Err(MessageFault::ReservedTokenLength(self.token_length));
        }
        if !matches!(self.code.class(), 0 | 2..=5) {
            return Err(MessageFault::ReservedClass(self.code.class()));
        }
        let is_empty = self.code == Code::EMPTY;
        if is_empty && (self.token_length != 0 || bytes.len() > HEADER_BYTES) {
            return Err(MessageFault::EmptyWithContent);
        }
        match self.kind {
            MessageKind::NonConfirmable if is_empty => Err(MessageFault::EmptyNonConfirmable),
            MessageKind::Acknowledgement if self.code.is_request() => {
                Err(MessageFault::RequestInAcknowledgement)
            }
            MessageKind::Reset if !is_empty => Err(MessageFault::ResetNotEmpty),
            MessageKind::Confirmable
            | MessageKind::NonConfirmable
            | MessageKind::Acknowledgement
            | MessageKind::Reset => Ok(()),
        }
    }

    /// Reads the token after the header, and returns the bytes after the token.
    pub(super) fn split_token<'a>(
        &self,
        bytes: &'a [u8],
    ) -> Result<(Token, &'a [u8]), MessageFault> {
        bytes
            .get(HEADER_BYTES..)
            .and_then(|rest| rest.split_at_checked(self.token_length.into()))
            .and_then(|(token, rest)| Some((Token::new(token)?, rest)))
            .ok_or(MessageFault::TokenCutOff)
    }
}

/// Writes the header of a message into a buffer that has room for it.
pub(super) fn write(message: &Message, bytes: &mut Vec<u8>) {
    let mut header = coap_lite::Header::new();
    header.set_version(VERSION);
    header.set_type(type_of(message.kind));
    header.set_token_length(message.token.length());
    header.code = MessageClass::from(message.code.as_byte());
    header.message_id = message.message_id.0;
    header
        .to_raw()
        .serialize_into(bytes)
        .expect("it refuses nothing but a buffer without room");
}

fn kind_of(kind: MessageType) -> MessageKind {
    match kind {
        MessageType::Confirmable => MessageKind::Confirmable,
        MessageType::NonConfirmable => MessageKind::NonConfirmable,
        MessageType::Acknowledgement => MessageKind::Acknowledgement,
        MessageType::Reset => MessageKind::Reset,
    }
}

fn type_of(kind: MessageKind) -> MessageType {
    match kind {
        MessageKind::Confirmable => MessageType::Confirmable,
        MessageKind::NonConfirmable => MessageType::NonConfirmable,
        MessageKind::Acknowledgement => MessageType::Acknowledgement,
        MessageKind::Reset => MessageType::Reset,
    }
}
