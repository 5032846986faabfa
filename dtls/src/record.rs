//! What does a datagram consist of? Records: RFC 6347 section 4.1, and tls12_cid of RFC 9146.
//!
//! ```text
//! type 1 | version 2 | epoch 2 | sequence 6 | [Connection ID n, type 25] | length 2 | fragment
//! ```

pub(crate) mod protection;
#[cfg(test)]
mod recorded;
pub(crate) mod replay;

use crate::presentation::{Malformed, Reader, Writer};

/// DTLS 1.2 on the wire.
pub(crate) const VERSION: u16 = 0xfefd;
/// DTLS 1.0, in records of a first flight and in HelloVerifyRequest.
pub(crate) const VERSION_1_0: u16 = 0xfeff;

/// The header of a record without a Connection ID.
pub(crate) const HEADER_LENGTH: usize = 13;

/// The longest plaintext of a record (RFC 5246 section 6.2.1).
pub(crate) const PLAINTEXT_MAX: usize = 1 << 14;

/// The longest fragment (RFC 5246 section 6.2.3).
const FRAGMENT_MAX: usize = PLAINTEXT_MAX + 2_048;

/// What a record carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum ContentType {
    ChangeCipherSpec = 20,
    Alert = 21,
    Handshake = 22,
    ApplicationData = 23,
    /// RFC 9853.
    ReturnRoutabilityCheck = 27,
    /// A protected record with a Connection ID; its own type is inside.
    Cid = 25,
}

/// A record as it was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'d> {
    pub(crate) content_type: ContentType,
    pub(crate) version: u16,
    pub(crate) epoch: u16,
    pub(crate) sequence: u64,
    pub(crate) connection_id: &'d [u8],
    pub(crate) fragment: &'d [u8],
}

impl ContentType {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::ApplicationData),
            25 => Some(Self::Cid),
            27 => Some(Self::ReturnRoutabilityCheck),
            _ => None,
        }
    }
}

impl<'d> Record<'d> {
    /// Reads the next record of a datagram. The length of our Connection IDs is not on the wire.
    pub(crate) fn decode(
        reader: &mut Reader<'d>,
        connection_id_length: usize,
    ) -> Result<Self, Malformed> {
        let content_type = ContentType::from_number(reader.u8()?).ok_or(Malformed)?;
        let version = reader.u16()?;
        if version != VERSION && version != VERSION_1_0 {
            return Err(Malformed);
        }
        let epoch = reader.u16()?;
        let sequence = reader.u48()?;
        let connection_id = match content_type {
            ContentType::Cid => reader.take(connection_id_length)?,
            ContentType::ChangeCipherSpec
            | ContentType::Alert
            | ContentType::Handshake
            | ContentType::ApplicationData
            | ContentType::ReturnRoutabilityCheck => &[],
        };
        let fragment = reader.vector16()?;
        if fragment.len() > FRAGMENT_MAX {
            return Err(Malformed);
        }
        Ok(Self {
            content_type,
            version,
            epoch,
            sequence,
            connection_id,
            fragment,
        })
    }

    /// The epoch and sequence number as one number, the explicit nonce of our own records.
    pub(crate) fn number(&self) -> u64 {
        (u64::from(self.epoch) << 48) | self.sequence
    }
}

/// Appends a record of epoch 0, which is not protected.
pub(crate) fn encode_plaintext(
    content_type: ContentType,
    sequence: u64,
    fragment: &[u8],
    out: &mut Vec<u8>,
) {
    out.push(content_type as u8);
    out.put_u16(VERSION);
    out.put_u16(0);
    out.put_u48(sequence);
    out.put_vector16(fragment);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plaintext_record_reads_as_it_was_written() {
        let mut bytes = Vec::new();
        encode_plaintext(ContentType::Alert, 7, &[2, 40], &mut bytes);
        let mut reader = Reader::new(&bytes);
        let record = Record::decode(&mut reader, 0).unwrap();
        assert_eq!(record.content_type, ContentType::Alert);
        assert_eq!((record.epoch, record.sequence), (0, 7));
        assert_eq!(record.fragment, [2, 40]);
        assert!(reader.is_empty());
    }

    #[test]
    fn other_protocols_on_the_port_are_no_records() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            // CoAP.
            &[0x40, 0x01, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            // TLS 1.2 over TCP.
            &[22, 3, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0],
            // A length that exceeds the datagram.
            &[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0],
        ] {
            let read = Record::decode(&mut Reader::new(bytes), 6);
            assert_eq!(read.map(|_| ()), Err(Malformed));
        }
    }
}
