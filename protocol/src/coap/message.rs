//! What does a datagram say, and how is a message written? RFC 7252 sections 3 and 5.4.
//!
//! A well-formed message encodes to the bytes it was decoded from, save the elective options that
//! were wrongly used and therefore left out.

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
    /// What the message layer owes for it.
    pub kind: MessageKind,
    /// What is asked or answered.
    pub code: Code,
    /// Ties an Acknowledgement or Reset to its message and shows repeated ones.
    pub message_id: MessageId,
    /// Ties a response to its request.
    pub token: Token,
    /// What the code is about, in the format the Content-Format option names.
    pub payload: Vec<u8>,
    options: Options,
}

/// The four types of message of RFC 7252 section 4.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum MessageKind {
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
    pub fn request(kind: MessageKind, code: Code, message_id: MessageId, token: Token) -> Message {
        Message::new(kind, code, message_id, token)
    }

    /// Starts the response to a request: in the acknowledgement of a Confirmable one, and as a
    /// Non-confirmable message under the given id for a Non-confirmable one.
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

    /// Starts a response that travels in a message of its own, be it a separate response to an
    /// acknowledged request or a notification.
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

    /// Makes the Empty message that refuses another one.
    pub fn reset(message_id: MessageId) -> Message {
        Message::new(MessageKind::Reset, Code::EMPTY, message_id, Token::EMPTY)
    }

    /// Makes the Empty Confirmable message that asks for a Reset: is the peer there?
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

    /// Reads a datagram.
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

    /// Writes the datagram.
    pub fn encode(&self) -> Vec<u8> {
        let token = self.token.as_bytes();
        let options = self.options.as_bytes();
        // An Empty message is its header (section 4.1), and has nothing a payload could be about.
        let payload = match self.code {
            Code::EMPTY => &[],
            _ => self.payload.as_slice(),
        };
        let marker = if payload.is_empty() {
            &[][..]
        } else {
            &[PAYLOAD_MARKER]
        };
        let parts = [token, options, marker, payload];
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(HEADER_BYTES.saturating_add(length));
        header::write(self, &mut bytes);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
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
