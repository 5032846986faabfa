//! Do the first four bytes of a datagram open a message? RFC 7252 sections 3, 4.1, 4.2 and 4.3.

use super::{HEADER_BYTES, Kind, MessageId};
use crate::coap::code::Code;
use crate::coap::malformed::{Fault, Malformed};
use crate::coap::token::Token;

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
        let &[first, code, id_high, id_low, ..] = bytes else {
            return Err(Malformed {
                reason: Fault::TooShort,
                reset: None,
            });
        };
        let version = first >> 6;
        if version != VERSION {
            return Err(Malformed {
                reason: Fault::UnknownVersion(version),
                reset: None,
            });
        }
        Ok(Header {
            kind: match first >> 4 & 0b11 {
                0 => Kind::Confirmable,
                1 => Kind::NonConfirmable,
                2 => Kind::Acknowledgement,
                _ => Kind::Reset,
            },
            token_length: first & 0b1111,
            code: Code::from_byte(code),
            message_id: MessageId(u16::from_be_bytes([id_high, id_low])),
        })
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
}
