//! What does a datagram say, and how is a message written? RFC 7252 sections 3 and 5.4.
//!
//! coap-lite reads and writes the bytes; it accepts what the standard calls a format error (other
//! versions, Empty messages with content, a payload marker without payload), so the checks are here.
//! A well-formed message encodes to the bytes it was decoded from, save the elective options that
//! were wrongly used and therefore left out.

use coap_lite::error::MessageError;
use coap_lite::{MessageClass, MessageType, Packet};

use super::block::Block;
use super::code::Code;
use super::content::ContentFormat;
use super::malformed::{Fault, Malformed};
use super::option::{self, Options};
use super::token::Token;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 4;
const PAYLOAD_MARKER: u8 = 0xFF;
const OBSERVE_MAX: u32 = 0xFF_FFFF;

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

    /// Gives the message an option, behind those of the same number.
    pub fn with_option(mut self, number: u16, value: &[u8]) -> Message {
        self.options.add(number, value);
        self
    }

    /// Adds segments to the path the request is about.
    pub fn with_uri_path(self, segments: impl IntoIterator<Item = impl AsRef<str>>) -> Message {
        self.with_texts(option::URI_PATH, segments)
    }

    /// Adds arguments to the request, such as `lt=300`.
    pub fn with_uri_query(self, queries: impl IntoIterator<Item = impl AsRef<str>>) -> Message {
        self.with_texts(option::URI_QUERY, queries)
    }

    /// Adds segments to the path at which a created resource is found.
    pub fn with_location_path(
        self,
        segments: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Message {
        self.with_texts(option::LOCATION_PATH, segments)
    }

    /// States the payload's format.
    pub fn with_content_format(self, format: ContentFormat) -> Message {
        self.with_number(option::CONTENT_FORMAT, format.0.into())
    }

    /// Asks for a format.
    pub fn with_accept(self, format: ContentFormat) -> Message {
        self.with_number(option::ACCEPT, format.0.into())
    }

    /// Sets Observe: 0 and 1 in a request, 24 bits of sequence in a notification.
    pub fn with_observe(self, value: u32) -> Message {
        self.with_number(option::OBSERVE, value & OBSERVE_MAX)
    }

    /// States for how long a response holds; with an error, when to try again.
    pub fn with_max_age(self, max_age_s: u32) -> Message {
        self.with_number(option::MAX_AGE, max_age_s)
    }

    /// Sets the Block1 option.
    pub fn with_block1(self, block: Block) -> Message {
        self.with_number(option::BLOCK1, block.value())
    }

    /// Sets the Block2 option.
    pub fn with_block2(self, block: Block) -> Message {
        self.with_number(option::BLOCK2, block.value())
    }

    /// Gives the message its payload.
    pub fn with_payload(mut self, payload: impl Into<Vec<u8>>) -> Message {
        self.payload = payload.into();
        self
    }

    fn with_texts(
        mut self,
        number: u16,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Message {
        for text in texts {
            self.options.add(number, text.as_ref().as_bytes());
        }
        self
    }

    fn with_number(mut self, option: u16, number: u32) -> Message {
        option::with_number(number, |value| self.options.replace(option, value));
        self
    }

    /// Goes through all options in the order of their numbers.
    pub fn options(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.options.iter()
    }

    /// Goes through the segments of the path the request is about.
    pub fn uri_path(&self) -> impl Iterator<Item = &str> {
        self.texts(option::URI_PATH)
    }

    /// Goes through the arguments of the request.
    pub fn uri_query(&self) -> impl Iterator<Item = &str> {
        self.texts(option::URI_QUERY)
    }

    /// Goes through the segments of the path at which a created resource is found.
    pub fn location_path(&self) -> impl Iterator<Item = &str> {
        self.texts(option::LOCATION_PATH)
    }

    /// Tells the payload's format.
    pub fn content_format(&self) -> Option<ContentFormat> {
        self.format(option::CONTENT_FORMAT)
    }

    /// Tells the format asked for.
    pub fn accept(&self) -> Option<ContentFormat> {
        self.format(option::ACCEPT)
    }

    /// Gives Observe's 24 bits.
    pub fn observe(&self) -> Option<u32> {
        self.number(option::OBSERVE)
    }

    /// Tells for how many seconds a response holds.
    pub fn max_age(&self) -> Option<u32> {
        self.number(option::MAX_AGE)
    }

    /// Tells which part of a request's body this is.
    pub fn block1(&self) -> Option<Block> {
        self.number(option::BLOCK1).map(Block::from_value)
    }

    /// Tells which part of a response's body this is, or which is wanted.
    pub fn block2(&self) -> Option<Block> {
        self.number(option::BLOCK2).map(Block::from_value)
    }

    /// Gives the first critical option that is not among the known ones, or that is used against
    /// its definition. A request is then answered with 4.02, a response rejected (section 5.4.1).
    pub fn unknown_critical_option(&self, known: &[u16]) -> Option<u16> {
        self.misused_option.or_else(|| {
            let mut numbers = self.options.iter().map(|(number, _)| number);
            numbers.find(|number| option::is_critical(*number) && !known.contains(number))
        })
    }

    fn texts(&self, number: u16) -> impl Iterator<Item = &str> {
        self.options
            .values_of(number)
            .filter_map(|value| std::str::from_utf8(value).ok())
    }

    fn format(&self, option: u16) -> Option<ContentFormat> {
        self.number(option)
            .and_then(|number| u16::try_from(number).ok())
            .map(ContentFormat)
    }

    fn number(&self, option: u16) -> Option<u32> {
        self.options
            .values_of(option)
            .next()
            .map(option::number_from)
    }
}

/// What the first four bytes say.
struct Header {
    kind: Kind,
    token_length: u8,
    code: Code,
    message_id: MessageId,
}

impl Header {
    // A sender whose version is unknown, or whose header is not there, cannot be answered.
    fn read(bytes: &[u8]) -> Result<Header, Malformed> {
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

    fn check(&self, bytes: &[u8]) -> Result<(), Fault> {
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

fn read(header: &Header, bytes: &[u8]) -> Result<Message, Fault> {
    let mut packet = Packet::from_bytes(bytes).map_err(|error| match error {
        MessageError::InvalidHeader | MessageError::InvalidPacketLength => Fault::TooShort,
        MessageError::InvalidTokenLength => Fault::TokenCutOff,
        MessageError::InvalidOptionDelta => Fault::OptionDelta,
        MessageError::InvalidOptionLength => Fault::OptionLength,
    })?;
    if packet.payload.is_empty()
        && bytes.last() == Some(&PAYLOAD_MARKER)
        && bytes.len() > bytes_without_payload(&packet)
    {
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
    message.options = Options::with_capacity(count, datagram_bytes - message.payload.len());
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
