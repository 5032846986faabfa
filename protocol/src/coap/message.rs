//! How is a message decoded and encoded? RFC 7252 sections 3 and 5.4.
//!
//! A well-formed message encodes to the bytes it was decoded from, without the misused elective
//! options, which were left out.

mod header;
pub mod malformed;
mod meaning;
mod options;

use self::header::{HEADER_BYTES, Header};
use self::malformed::{MalformedMessage, MessageFault};
use self::options::{Options, PAYLOAD_MARKER};
use super::code::Code;
use super::token::Token;

/// A CoAP message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// The type of the message.
    pub kind: MessageKind,
    /// The method or the response code.
    pub code: Code,
    /// Matches an Acknowledgement or Reset to its message and detects duplicates.
    pub message_id: MessageId,
    /// Matches a response to its request.
    pub token: Token,
    /// The content, in the format of the Content-Format option.
    pub payload: Vec<u8>,
    options: Options,
}

/// The four types of message of RFC 7252 section 4.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum MessageKind {
    /// Must be acknowledged or reset.
    Confirmable,
    /// Neither acknowledged nor retransmitted.
    NonConfirmable,
    /// Acknowledges a Confirmable message, and may carry its response.
    Acknowledgement,
    /// Rejects a message.
    Reset,
}

/// A message id, unique for some time between two endpoints and per direction.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessageId(pub u16);

impl Message {
    /// Makes a request.
    pub fn request(kind: MessageKind, code: Code, message_id: MessageId, token: Token) -> Message {
        Message::new(kind, code, message_id, token)
    }

    /// Makes the response to a request: in the acknowledgement of a Confirmable one, and as a
    /// Non-confirmable message with the given id for a Non-confirmable one.
    pub fn response_to(request: &Message, code: Code, message_id: MessageId) -> Message {
        match request.kind {
            MessageKind::Confirmable => Message::new(
                MessageKind::Acknowledgement,
                code,
                request.message_id,
                request.token,
            ),
            MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => {
                Message::new(MessageKind::NonConfirmable, code, message_id, request.token)
            }
        }
    }

    /// Makes a response in a message of its own: a separate response to an acknowledged request, or
    /// a notification.
    pub fn separate(kind: MessageKind, code: Code, message_id: MessageId, token: Token) -> Message {
        Message::new(kind, code, message_id, token)
    }

    /// Makes the Empty message that acknowledges a Confirmable one.
    pub fn acknowledgement(message_id: MessageId) -> Message {
        Message::new(
            MessageKind::Acknowledgement,
            Code::EMPTY,
            message_id,
            Token::EMPTY,
        )
    }

    /// Makes the Empty message that rejects another one.
    pub fn reset(message_id: MessageId) -> Message {
        Message::new(MessageKind::Reset, Code::EMPTY, message_id, Token::EMPTY)
    }

    /// Makes the Empty Confirmable message that is answered with a Reset: is the peer there?
    pub fn ping(message_id: MessageId) -> Message {
        Message::new(
            MessageKind::Confirmable,
            Code::EMPTY,
            message_id,
            Token::EMPTY,
        )
    }

    fn new(kind: MessageKind, code: Code, message_id: MessageId, token: Token) -> Message {
        Message {
            kind,
            code,
            message_id,
            token,
            payload: Vec::new(),
            options: Options::default(),
        }
    }

    /// Decodes a datagram.
    pub fn decode(bytes: &[u8]) -> Result<Message, MalformedMessage> {
        let header = Header::read(bytes)?;
        header
            .check(bytes)
            .and_then(|()| read(&header, bytes))
            .map_err(|reason| MalformedMessage {
                reason,
                reset: (header.kind == MessageKind::Confirmable).then_some(header.message_id),
            })
    }

    /// Encodes the message as a datagram.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_bytes());
        header::write(self, &mut bytes);
        let parts = self.parts();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }

    /// Returns the length of the encoded message.
    pub fn encoded_bytes(&self) -> usize {
        let parts = self.parts().map(<[u8]>::len);
        HEADER_BYTES.saturating_add(parts.iter().sum())
    }

    /// Returns what follows the header: the token, the options, the payload marker, the payload.
    fn parts(&self) -> [&[u8]; 4] {
        // An Empty message consists of its header (section 4.1), and has no payload.
        let payload = match self.code {
            Code::EMPTY => &[],
            _ => self.payload.as_slice(),
        };
        let marker = if payload.is_empty() {
            &[][..]
        } else {
            &[PAYLOAD_MARKER]
        };
        let token = self.token.as_bytes();
        [token, self.options.as_bytes(), marker, payload]
    }
}

fn read(header: &Header, bytes: &[u8]) -> Result<Message, MessageFault> {
    let (token, rest) = header.split_token(bytes)?;
    let (options, rest) = Options::read(rest)?;
    let payload = match rest {
        [] => Vec::new(),
        [_marker] => return Err(MessageFault::PayloadMissing),
        [_marker, payload @ ..] => payload.to_vec(),
    };
    Ok(Message {
        options,
        payload,
        ..Message::new(header.kind, header.code, header.message_id, token)
    })
}
