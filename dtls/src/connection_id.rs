//! Which session does a record name? Connection IDs: RFC 9146.
//!
//! Ours say where the session is, so that no map is needed to find it:
//!
//! ```text
//! prefix of the endpoint 0..=8 | slot 3 | random tag 3
//! ```

use crate::association::AssociationId;
use crate::presentation::Reader;
use crate::record::{ContentType, Record};

/// The longest prefix of an endpoint.
pub const CONNECTION_ID_PREFIX_MAX: usize = 8;

const SLOT_LENGTH: usize = 3;
const TAG_LENGTH: usize = 3;

/// The most sessions whose slot a Connection ID can name.
pub(crate) const SLOTS_MAX: usize = 1 << (8 * SLOT_LENGTH);

/// The length of our Connection IDs after this prefix.
pub(crate) const fn length(prefix: usize) -> usize {
    prefix + SLOT_LENGTH + TAG_LENGTH
}

/// Our Connection ID of an association.
pub(crate) fn encode(prefix: &[u8], id: AssociationId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length(prefix.len()));
    bytes.extend_from_slice(prefix);
    bytes.extend_from_slice(&id.slot().to_be_bytes()[1..]);
    bytes.extend_from_slice(&id.tag().to_be_bytes()[1..]);
    bytes
}

/// The association that a Connection ID of ours names.
pub(crate) fn decode(prefix: &[u8], connection_id: &[u8]) -> Option<AssociationId> {
    let rest = connection_id.strip_prefix(prefix)?;
    let &[a, b, c, x, y, z] = rest else {
        return None;
    };
    let slot = u32::from_be_bytes([0, a, b, c]);
    Some(AssociationId::new(slot, u32::from_be_bytes([0, x, y, z])))
}

/// What a datagram says about the endpoint that it is for, when several share a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DatagramRoute<'d> {
    /// It is protected and carries a Connection ID, which begins with the prefix of its endpoint.
    ConnectionId(&'d [u8]),
    /// Its sender's address alone tells.
    Address,
    /// It is no record of DTLS 1.2.
    NotDtls,
}

impl<'d> DatagramRoute<'d> {
    /// Reads the first record of a datagram. All endpoints of the port have prefixes of this
    /// length.
    pub fn of(datagram: &'d [u8], prefix_length: usize) -> Self {
        let mut reader = Reader::new(datagram);
        let Ok(record) = Record::decode(&mut reader, length(prefix_length)) else {
            return Self::NotDtls;
        };
        match record.content_type {
            ContentType::Cid => Self::ConnectionId(record.connection_id),
            ContentType::Handshake
            | ContentType::ChangeCipherSpec
            | ContentType::Alert
            | ContentType::ApplicationData
            | ContentType::ReturnRoutabilityCheck => Self::Address,
        }
    }
}
