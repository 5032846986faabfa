//! How are datagrams and batches for arbiters written into a stream between nodes?
//!
//! As frames: the length of what follows (4 bytes), the kind (1) and the content. Numbers are in
//! network order, and IPv4 addresses mapped to IPv6 (RFC 4291 section 2.5.5.2).
//!
//! - Kind 0 is a datagram: its transport (1), the address of the relaying node that it was sent to
//!   or leaves from (16), that of the peer (16) with its port (2) and interface (4), and what is in
//!   it.
//! - Kind 1 is a batch: the number of its arbiter (2), and its items (`frame/batch.rs`).

mod batch;
mod fields;

use std::net::IpAddr;

use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::peer::{LocalAddressId, Peer};

use crate::registry::forward_batch::ForwardBatch;
use crate::socket::RelayId;

use fields::{FieldReader, number_of, put_address, put_ip};

/// The most that may follow the length of a frame: so much is kept until a frame is complete. A
/// longer batch takes several frames.
const FRAME_BYTES_MAX: usize = 4 << 20;

const LENGTH_BYTES: usize = 4;

/// The most that an item of a batch may have: a frame has its kind and its arbiter, too.
const ITEM_BYTES_MAX: usize = FRAME_BYTES_MAX - 3;

const DATAGRAM: u8 = 0;
const BATCH: u8 = 1;

/// A part of a stream.
#[derive(Debug)]
pub(crate) enum StreamFrame<'a> {
    /// A datagram.
    Datagram(Frame<'a>),
    /// A batch for an arbiter, or a part of one.
    Batch(ArbiterId, ForwardBatch),
}

/// A datagram of a peer, or to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame<'a> {
    /// The peer. It has no number for the address of the service.
    pub(crate) peer: Peer,
    /// The address of the relaying node that the datagram was sent to or leaves from.
    pub(crate) at: IpAddr,
    /// What is in it.
    pub(crate) datagram: &'a [u8],
}

/// What the numbers in a batch mean to the node that reads it.
pub(crate) struct BatchContext<'a> {
    /// The arbiters that there are.
    pub(crate) shard_map: ShardMap,
    /// The number of an address of a node's sockets in this process.
    pub(crate) local_at: &'a dyn Fn(RelayId, IpAddr) -> Option<LocalAddressId>,
}

/// The bytes are no frame: they are not of a node of this version.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum InvalidFrame {
    /// It is longer than a frame may be.
    #[error("a frame of {0} bytes is too long")]
    TooLong(u32),
    /// It is neither a datagram nor a batch.
    #[error("a frame has the unknown kind {0}")]
    UnknownKind(u8),
    /// A peer in it has an unknown transport.
    #[error("a frame has the unknown transport {0}")]
    UnknownTransport(u8),
    /// A batch names an arbiter that there is not.
    #[error("a frame names the arbiter {0}, which does not exist")]
    UnknownArbiter(u16),
    /// It ends early, or a field of it has no meaning.
    #[error("a frame is damaged")]
    Damaged,
}

impl<'a> Frame<'a> {
    /// Appends the frame; a datagram that is too long for UDP is left out.
    pub(crate) fn write(&self, stream: &mut Vec<u8>) {
        if self.datagram.len() > usize::from(u16::MAX) {
            return;
        }
        let begin = begin_frame(DATAGRAM, stream);
        stream.push(number_of(self.peer.transport));
        put_ip(self.at, stream);
        put_address(self.peer.address, stream);
        stream.extend_from_slice(self.datagram);
        end_frame(begin, stream);
    }

    fn read(mut fields: FieldReader<'a>) -> Result<Self, InvalidFrame> {
        let transport = fields.transport()?;
        let at = fields.ip()?;
        let peer = Peer::at(fields.address()?, transport);
        Ok(Self {
            peer,
            at,
            datagram: fields.rest(),
        })
    }
}

/// Appends a batch for an arbiter as frames; an item that is too long for one is left out.
/// `place_of` is the node and the stream whose socket has the address that a peer sends to, and the
/// address, which is `::` if it is not known.
pub(crate) fn write_batch(
    to: ArbiterId,
    batch: &ForwardBatch,
    place_of: &dyn Fn(Peer) -> (RelayId, IpAddr),
    stream: &mut Vec<u8>,
) {
    let mut begin = begin_batch(to, stream);
    batch::write_items(batch, place_of, |item| {
        if item.len() > ITEM_BYTES_MAX {
            return;
        }
        let with_item = stream.len() - begin + item.len();
        if with_item > LENGTH_BYTES + FRAME_BYTES_MAX {
            end_frame(begin, stream);
            begin = begin_batch(to, stream);
        }
        stream.extend_from_slice(item);
    });
    end_frame(begin, stream);
}

/// What has arrived of a stream of frames.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    /// The beginning of a frame.
    rest: Vec<u8>,
}

impl FrameReader {
    /// Passes on the frames that are complete with this part of the stream.
    pub(crate) fn read(
        &mut self,
        part: &[u8],
        context: &BatchContext<'_>,
        mut take: impl FnMut(StreamFrame<'_>),
    ) -> Result<(), InvalidFrame> {
        self.rest.extend_from_slice(part);
        let mut unread = self.rest.as_slice();
        while let Some((frame, after)) = split_frame(unread)? {
            take(StreamFrame::read(frame, context)?);
            unread = after;
        }
        let read = self.rest.len() - unread.len();
        self.rest.drain(..read);
        Ok(())
    }
}

impl<'a> StreamFrame<'a> {
    fn read(frame: &'a [u8], context: &BatchContext<'_>) -> Result<Self, InvalidFrame> {
        let mut fields = FieldReader(frame);
        match fields.u8()? {
            DATAGRAM => Frame::read(fields).map(Self::Datagram),
            BATCH => {
                let (to, batch) = batch::read(fields, context)?;
                Ok(Self::Batch(to, batch))
            }
            other => Err(InvalidFrame::UnknownKind(other)),
        }
    }
}

/// Appends the head of a frame, without its length; returns where it begins.
fn begin_frame(kind: u8, stream: &mut Vec<u8>) -> usize {
    let begin = stream.len();
    stream.extend_from_slice(&[0; LENGTH_BYTES]);
    stream.push(kind);
    begin
}

fn begin_batch(to: ArbiterId, stream: &mut Vec<u8>) -> usize {
    let begin = begin_frame(BATCH, stream);
    stream.extend_from_slice(&to.number().to_be_bytes());
    begin
}

/// Sets the length of the frame that begins here and that the stream ends with.
fn end_frame(begin: usize, stream: &mut [u8]) {
    let (length, frame) = stream[begin..].split_at_mut(LENGTH_BYTES);
    let bytes = u32::try_from(frame.len()).expect("a frame has at most FRAME_BYTES_MAX");
    length.copy_from_slice(&bytes.to_be_bytes());
}

/// A frame without its length, and what follows it.
type FrameAndRest<'a> = (&'a [u8], &'a [u8]);

/// The first frame and the rest; none, if it is not complete.
fn split_frame(stream: &[u8]) -> Result<Option<FrameAndRest<'_>>, InvalidFrame> {
    let Some((length, after)) = stream.split_first_chunk() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length);
    match usize::try_from(length) {
        Ok(bytes) if bytes <= FRAME_BYTES_MAX => Ok(after.split_at_checked(bytes)),
        Ok(_) | Err(_) => Err(InvalidFrame::TooLong(length)),
    }
}

#[cfg(test)]
mod tests;
