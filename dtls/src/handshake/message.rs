//! What does a handshake message look like? RFC 6347 section 4.2.2.
//!
//! ```text
//! type 1 | length 3 | message sequence 2 | fragment offset 3 | fragment length 3 | fragment
//! ```

use crate::presentation::{Malformed, Reader, Writer};

pub(crate) const HEADER_LENGTH: usize = 12;

/// The longest message: a chain of certificates. Longer ones are refused at their first fragment.
pub(crate) const LENGTH_MAX: u32 = 16_384;

/// The messages of the handshakes here, by their numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum MessageType {
    HelloRequest = 0,
    ClientHello = 1,
    ServerHello = 2,
    HelloVerifyRequest = 3,
    NewSessionTicket = 4,
    Certificate = 11,
    ServerKeyExchange = 12,
    CertificateRequest = 13,
    ServerHelloDone = 14,
    CertificateVerify = 15,
    ClientKeyExchange = 16,
    Finished = 20,
}

/// A part of a message, or all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'d> {
    pub(crate) message_type: MessageType,
    /// The length of the whole message.
    pub(crate) length: u32,
    pub(crate) sequence: u16,
    pub(crate) offset: u32,
    pub(crate) bytes: &'d [u8],
}

/// A whole message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Message {
    pub(crate) message_type: MessageType,
    pub(crate) sequence: u16,
    pub(crate) body: Vec<u8>,
}

impl MessageType {
    fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::HelloRequest),
            1 => Some(Self::ClientHello),
            2 => Some(Self::ServerHello),
            3 => Some(Self::HelloVerifyRequest),
            4 => Some(Self::NewSessionTicket),
            11 => Some(Self::Certificate),
            12 => Some(Self::ServerKeyExchange),
            13 => Some(Self::CertificateRequest),
            14 => Some(Self::ServerHelloDone),
            15 => Some(Self::CertificateVerify),
            16 => Some(Self::ClientKeyExchange),
            20 => Some(Self::Finished),
            _ => None,
        }
    }
}

impl<'d> Fragment<'d> {
    pub(crate) fn decode(reader: &mut Reader<'d>) -> Result<Self, Malformed> {
        let message_type = MessageType::from_number(reader.u8()?).ok_or(Malformed)?;
        let length = reader.u24()?;
        let sequence = reader.u16()?;
        let offset = reader.u24()?;
        let bytes = reader.vector24()?;
        let end = offset as usize + bytes.len();
        if length > LENGTH_MAX || end > length as usize {
            return Err(Malformed);
        }
        Ok(Self {
            message_type,
            length,
            sequence,
            offset,
            bytes,
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.message_type as u8);
        out.put_u24(self.length);
        out.put_u16(self.sequence);
        out.put_u24(self.offset);
        out.put_u24(self.bytes.len() as u32);
        out.extend_from_slice(self.bytes);
    }
}

impl Message {
    /// All of it as one fragment, which is also what the transcript contains.
    pub(crate) fn as_fragment(&self) -> Fragment<'_> {
        Fragment {
            message_type: self.message_type,
            length: self.body.len() as u32,
            sequence: self.sequence,
            offset: 0,
            bytes: &self.body,
        }
    }
}
