//! Which block of a request's body goes next? Block1 on the client's side (RFC 7959 sections 2.3,
//! 2.5 and 2.9.3).

use super::fault::TransferFault;
use crate::coap::block::{Block, BlockSize, More};
use crate::coap::code::Code;
use crate::coap::message::Message;

/// A body of which one block is on its way.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    body: Vec<u8>,
    /// Where the block on its way begins; everything before it got across.
    offset: usize,
    size: BlockSize,
    beginning: UploadStarts,
}

/// What a response means for the upload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UploadProgress {
    /// The next block is to be sent.
    Next,
    /// It is the answer to the whole request.
    Answered,
}

/// How often an upload has begun. The peer may once refuse a size and name a smaller one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UploadStarts {
    First,
    Second,
}

impl Upload {
    /// Begins at the size of our choice, larger if the body has too many blocks of it.
    pub(super) fn begin(body: Vec<u8>, size: BlockSize) -> Upload {
        Upload {
            size: size.fitted_to(body.len()),
            body,
            offset: 0,
            beginning: UploadStarts::First,
        }
    }

    /// Begins at the size that the peer named when it refused the request; not at all if that
    /// would change nothing.
    pub(super) fn begin_smaller(body: Vec<u8>, refusal: &Message) -> Option<Upload> {
        let size = size_of_refusal(refusal)?;
        let is_worth_it = body.len() > size.bytes() && can_number(size, body.len());
        is_worth_it.then_some(Upload {
            body,
            offset: 0,
            size,
            beginning: UploadStarts::Second,
        })
    }

    /// Takes the response to the block on its way.
    pub(super) fn handle(&mut self, response: &Message) -> Result<UploadProgress, TransferFault> {
        let is_last = self.end() == self.body.len();
        match response.code {
            Code::CONTINUE if is_last => Err(TransferFault::ContinuedPastEnd),
            Code::CONTINUE => self.advance(response),
            Code::REQUEST_ENTITY_TOO_LARGE => Ok(self.begin_again(response)),
            // A peer that acts on each block by itself answers each with its outcome.
            code if code.is_success() && !is_last && response.block1().is_some() => {
                self.advance(response)
            }
            _ => Ok(UploadProgress::Answered),
        }
    }

    fn advance(&mut self, response: &Message) -> Result<UploadProgress, TransferFault> {
        let confirmed = response.block1().ok_or(TransferFault::BlockMissing)?;
        let wanted = confirmed.size().ok_or(TransferFault::ReservedSize)?;
        // With a smaller size the peer may name our block by our number or by its own.
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

    /// Makes the block that is on its way.
    pub(super) fn block_of(&self, request: Message) -> Message {
        let is_first = self.offset == 0;
        let end = self.end();
        let more = if end < self.body.len() {
            More::Yes
        } else {
            More::No
        };
        let number = self.size.number_at(self.offset).unwrap_or_default();
        let payload = self.body.get(self.offset..end).unwrap_or_default();
        let block = request
            .with_block1(Block::new(number, more, self.size))
            .with_payload(payload);
        match u32::try_from(self.body.len()) {
            Ok(bytes) if is_first => block.with_size1(bytes),
            Ok(_) | Err(_) => block,
        }
    }

    fn end(&self) -> usize {
        let end = self.offset.saturating_add(self.size.bytes());
        end.min(self.body.len())
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
