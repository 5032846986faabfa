//! Which block of a request's body is sent next? Block1 on the client's side (RFC 7959 sections
//! 2.3, 2.5 and 2.9.3).

use std::ops::Range;

use super::fault::TransferFault;
use crate::coap::block::{Block, BlockSize, More};
use crate::coap::code::Code;
use crate::coap::message::Message;

/// How far the peer has a body that is not in memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UploadPosition {
    /// The bytes that the peer acknowledged.
    pub bytes: usize,
    /// The size of the blocks.
    pub size: BlockSize,
}

/// A body of which one block is in flight.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    body: UploadBody,
    /// The offset of the block in flight; everything before it was transferred.
    offset: usize,
    size: BlockSize,
    beginning: UploadStarts,
}

/// The body of a request.
#[derive(Clone, Debug)]
enum UploadBody {
    /// It is in memory.
    Whole(Vec<u8>),
    /// The caller supplies each block when it is sent.
    Streamed {
        /// Its length.
        length: usize,
    },
}

/// The result of a response for the upload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UploadProgress {
    /// Send the next block.
    Next,
    /// It is the response to the whole request.
    Answered,
}

/// How often an upload has started. The peer may refuse a size once and name a smaller one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UploadStarts {
    First,
    Second,
}

impl Upload {
    /// Starts with our size, or a larger one if the body has too many blocks of it.
    pub(super) fn begin(body: Vec<u8>, size: BlockSize) -> Upload {
        Upload {
            size: size.fitted_to(body.len()),
            body: UploadBody::Whole(body),
            offset: 0,
            beginning: UploadStarts::First,
        }
    }

    /// Starts, or goes on, with a body that the caller supplies block by block.
    pub(super) fn streamed(length: usize, from: UploadPosition) -> Upload {
        Upload {
            size: from.size.fitted_to(length),
            body: UploadBody::Streamed { length },
            offset: from.bytes,
            beginning: UploadStarts::First,
        }
    }

    /// Starts with the size that the peer named when it refused the request; nothing if that would
    /// change nothing.
    pub(super) fn begin_smaller(body: Vec<u8>, refusal: &Message) -> Option<Upload> {
        let size = size_of_refusal(refusal)?;
        let is_worth_it = body.len() > size.bytes() && can_number(size, body.len());
        is_worth_it.then_some(Upload {
            body: UploadBody::Whole(body),
            offset: 0,
            size,
            beginning: UploadStarts::Second,
        })
    }

    /// Handles the response to the block in flight.
    pub(super) fn handle(&mut self, response: &Message) -> Result<UploadProgress, TransferFault> {
        let is_last = self.end() == self.body.len();
        match response.code {
            Code::CONTINUE if is_last => Err(TransferFault::ContinuedPastEnd),
            Code::CONTINUE => self.advance(response),
            Code::REQUEST_ENTITY_TOO_LARGE => Ok(self.begin_again(response)),
            // A peer that processes each block by itself answers each with its result.
            code if code.is_success() && !is_last && response.block1().is_some() => {
                self.advance(response)
            }
            _ => Ok(UploadProgress::Answered),
        }
    }

    fn advance(&mut self, response: &Message) -> Result<UploadProgress, TransferFault> {
        let confirmed = response.block1().ok_or(TransferFault::BlockMissing)?;
        let wanted = confirmed.size().ok_or(TransferFault::ReservedSize)?;
        // With a smaller size the peer may number our block in our size or in its own.
        let is_mine = Some(confirmed.number()) == self.size.number_at(self.offset)
            || confirmed.offset() == Some(self.offset);
        if !is_mine {
            return Err(TransferFault::WrongNumber);
        }
        let size = self.size.min(wanted);
        if !can_number(size, self.body.len()) {
            let max = size.body_bytes_max();
            return Err(TransferFault::TooLong { max });
        }
        self.offset = self.end();
        self.size = size;
        Ok(UploadProgress::Next)
    }

    fn begin_again(&mut self, refusal: &Message) -> UploadProgress {
        let smaller = size_of_refusal(refusal)
            .filter(|size| *size < self.size && can_number(*size, self.body.len()));
        match (smaller, self.beginning) {
            (Some(size), UploadStarts::First) => {
                self.size = size;
                self.offset = 0;
                self.beginning = UploadStarts::Second;
                UploadProgress::Next
            }
            (Some(_), UploadStarts::Second) | (None, _) => UploadProgress::Answered,
        }
    }

    /// Makes the block in flight, of a body in memory or of what the caller supplies.
    pub(super) fn block_of(&self, request: Message, supplied: &[u8]) -> Message {
        let is_first = self.offset == 0;
        let end = self.end();
        let more = if end < self.body.len() {
            More::Yes
        } else {
            More::No
        };
        let payload = match &self.body {
            UploadBody::Whole(body) => body.get(self.offset..end).unwrap_or_default(),
            UploadBody::Streamed { .. } => supplied,
        };
        if is_first && more == More::No {
            // A body of one block is not transferred block-wise.
            return request.with_payload(payload);
        }
        let number = self.size.number_at(self.offset).unwrap_or_default();
        let block = request
            .with_block1(Block::new(number, more, self.size))
            .with_payload(payload);
        match u32::try_from(self.body.len()) {
            Ok(bytes) if is_first => block.with_size1(bytes),
            Ok(_) | Err(_) => block,
        }
    }

    /// How far the peer has a body that the caller supplies.
    pub(super) fn position(&self) -> Option<UploadPosition> {
        match self.body {
            UploadBody::Whole(_) => None,
            UploadBody::Streamed { .. } => Some(UploadPosition {
                bytes: self.offset,
                size: self.size,
            }),
        }
    }

    /// The part of the body that the caller supplies for the block in flight.
    pub(super) fn wanted(&self) -> Option<Range<usize>> {
        self.position().map(|at| at.bytes..self.end())
    }

    fn end(&self) -> usize {
        let end = self.offset.saturating_add(self.size.bytes());
        end.min(self.body.len())
    }
}

impl UploadBody {
    fn len(&self) -> usize {
        match self {
            Self::Whole(body) => body.len(),
            Self::Streamed { length } => *length,
        }
    }
}

fn size_of_refusal(refusal: &Message) -> Option<BlockSize> {
    match refusal.code {
        Code::REQUEST_ENTITY_TOO_LARGE => refusal.block1()?.size(),
        _ => None,
    }
}

fn can_number(size: BlockSize, length: usize) -> bool {
    length <= size.body_bytes_max()
}
