//! Do the first four bytes of a datagram open a message, and which are written? RFC 7252 sections
//! 3, 4.1, 4.2 and 4.3.
//!
//! coap-lite takes the four bytes apart and puts them together; what it lets through against the
//! standard (other versions, reserved token lengths, Empty messages with content) is refused here.

use coap_lite::{HeaderRaw, MessageClass, MessageType};

use super::{Kind, Message, MessageId};
use crate::coap::code::Code;
use crate::coap::message::malformed::{Fault, Malformed};
use crate::coap::token::Token;

/// What stands in front of the token.
pub(super) const HEADER_BYTES: usize = 4;

const VERSION: u8 = 1;

/// What the first four bytes say.
pub(super) struct Header {
    pub(super) kind: Kind,
    token_length: u8,
    pub(super) code: Code,
    pub(super) message_id: MessageId,
}

impl Header {
    // A sender whose version is unknown, or whose header is not there, cannot be answered.
    pub(super) fn read(bytes: &[u8]) -> Result<Header, Malformed> {
        let unanswerable = |reason| Malformed {
            reason,
            reset: None,
        };
        let raw = HeaderRaw::try_from(bytes).map_err(|_| unanswerable(Fault::TooShort))?;
        let header = coap_lite::Header::from_raw(&raw);
        match header.get_version() {
            VERSION => Ok(Header {
                kind: kind_of(header.get_type()),
                token_length: header.get_token_length(),
                code: Code::from_byte(header.code.into()),
                message_id: MessageId(header.message_id),
            }),
            version => Err(unanswerable(Fault::UnknownVersion(version))),
        }
    }

    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), Fault> {
        if usize::from(self.token_length) > Token::BYTES_MAX {
            return Err(Fault::ReservedTokenLength(self.token_length));
        }
        if !matches!(self.code.class(), 0 | 2..=5) {
            return Err(Fault::ReservedClass(self.code.class()));
        }
        let is_empty = self.code == Code::EMPTY;
        if is_empty && (self.token_length != 0 || bytes.len() > HEADER_BYTES) {
            return Err(Fault::EmptyWithContent);
        }
        match self.kind {
            Kind::NonConfirmable if is_empty => Err(Fault::EmptyNonConfirmable),
            Kind::Acknowledgement if self.code.is_request() => Err(Fault::RequestInAcknowledgement),
            Kind::Reset if !is_empty => Err(Fault::ResetNotEmpty),
            Kind::Confirmable | Kind::NonConfirmable | Kind::Acknowledgement | Kind::Reset => {
                Ok(())
            }
        }
    }

    /// Reads the token behind the header, and gives what is left behind the token.
    pub(super) fn split_token<'a>(&self, bytes: &'a [u8]) -> Result<(Token, &'a [u8]), Fault> {
        bytes
            .get(HEADER_BYTES..)
            .and_then(|rest| rest.split_at_checked(self.token_length.into()))
            .and_then(|(token, rest)| Some((Token::new(token)?, rest)))
            .ok_or(Fault::TokenCutOff)
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

fn kind_of(kind: MessageType) -> Kind {
    match kind {
        MessageType::Confirmable => Kind::Confirmable,
        MessageType::NonConfirmable => Kind::NonConfirmable,
        MessageType::Acknowledgement => Kind::Acknowledgement,
        MessageType::Reset => Kind::Reset,
    }
}

fn type_of(kind: Kind) -> MessageType {
    match kind {
        Kind::Confirmable => MessageType::Confirmable,
        Kind::NonConfirmable => MessageType::NonConfirmable,
        Kind::Acknowledgement => MessageType::Acknowledgement,
        Kind::Reset => MessageType::Reset,
    }
}
