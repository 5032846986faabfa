//! What is wrong with a datagram, and does its sender get a Reset? RFC 7252 sections 3, 4.1, 4.2
//! and 4.3.

use thiserror::Error;

use super::MessageId;

/// A datagram that is not a CoAP message.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{reason}")]
pub struct MalformedMessage {
    /// What is wrong; closed, so that each kind of noise can be counted.
    pub reason: MessageFault,
    /// The Reset to send: for a Confirmable message only (section 4.2). Other malformed datagrams
    /// are ignored silently, so that we never amplify noise.
    pub reset: Option<MessageId>,
}

/// The ways in which a datagram fails to be a CoAP message.
#[derive(Clone, Copy, Debug, Eq, Error, Hash, Ord, PartialEq, PartialOrd)]
pub enum MessageFault {
    /// Fewer bytes than the header has.
    #[error("shorter than a header")]
    TooShort,
    /// A version other than 1.
    #[error("unknown version {0}")]
    UnknownVersion(u8),
    /// A token length of 9 to 15, which is reserved.
    #[error("reserved token length {0}")]
    ReservedTokenLength(u8),
    /// The datagram ends inside its token.
    #[error("cut off inside the token")]
    TokenCutOff,
    /// A code of class 1, 6 or 7.
    #[error("reserved code class {0}")]
    ReservedClass(u8),
    /// An Empty message with bytes after its header.
    #[error("empty message with content")]
    EmptyWithContent,
    /// A Non-confirmable message that is Empty.
    #[error("empty non-confirmable message")]
    EmptyNonConfirmable,
    /// A Reset message that is not Empty.
    #[error("reset message with a code")]
    ResetNotEmpty,
    /// An Acknowledgement that carries a request.
    #[error("acknowledgement that carries a request")]
    RequestInAcknowledgement,
    /// An option delta that is reserved or exceeds the last option number.
    #[error("bad option delta")]
    OptionDelta,
    /// An option length that is reserved or exceeds the datagram.
    #[error("bad option length")]
    OptionLength,
    /// A payload marker without a payload.
    #[error("payload marker without payload")]
    PayloadMissing,
}
