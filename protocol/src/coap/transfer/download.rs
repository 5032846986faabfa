//! Which block of a response's body is requested next? Block2 on the client's side (RFC 7959
//! sections 2.4 and 2.6).

use super::fault::TransferFault;
use crate::coap::block::{Block, BlockSize, More};
use crate::coap::body::{Body, TooLong};
use crate::coap::message::Message;
use crate::coap::option;

/// A body whose first block was received.
#[derive(Clone, Debug)]
pub(super) struct Download {
    /// The first response without its payload: code and options of the whole response.
    head: Message,
    /// Empty only after a restart.
    body: Body,
    size: BlockSize,
    beginnings: RestartPolicy,
}

/// The result of a response for the download.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum DownloadProgress {
    /// Request the next block.
    Next,
    /// It is the response itself, such as an error.
    Answered,
    /// The last block was received.
    Whole(Box<Message>),
}

/// Whether the body may be requested again from its beginning when it changes during the transfer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RestartPolicy {
    /// Once more: the request has no effect on the device.
    OneMore,
    /// No more.
    NoMore,
}

impl Download {
    /// Handles a response that may be the first block of a longer body.
    ///
    /// The body of an error is its explanation, of which the first block is enough: an error has no
    /// version that would hold its blocks together.
    pub(super) fn begin(
        response: &Message,
        beginnings: RestartPolicy,
        bytes_max: usize,
    ) -> Result<Option<Download>, TransferFault> {
        let Some(block) = response.block2().filter(|_| response.code.is_success()) else {
            return Ok(None);
        };
        if block.number() != 0 {
            return Err(TransferFault::WrongNumber);
        }
        if !block.has_more() {
            return Ok(None);
        }
        let mut body = Body::default();
        let size = add(&mut body, block, response, bytes_max)?;
        Ok(Some(Download {
            head: head_of(response),
            body,
            size,
            beginnings,
        }))
    }

    /// Handles the response to the request for the next block.
    pub(super) fn handle(
        &mut self,
        response: &Message,
        bytes_max: usize,
    ) -> Result<DownloadProgress, TransferFault> {
        if !response.code.is_success() {
            return Ok(DownloadProgress::Answered);
        }
        if self.body.is_empty() {
            return self.handle_first(response, bytes_max);
        }
        let Some(block) = response.block2() else {
            return self.begin_again(TransferFault::BlockMissing);
        };
        if self
            .head
            .etag()
            .is_some_and(|etag| response.etag() != Some(etag))
        {
            return self.begin_again(TransferFault::Changed);
        }
        let size = block.size().ok_or(TransferFault::ReservedSize)?;
        if size > self.size {
            return Err(TransferFault::WrongSize);
        }
        if block.offset() != Some(self.body.len()) {
            return Err(TransferFault::WrongNumber);
        }
        self.size = add(&mut self.body, block, response, bytes_max)?;
        if block.has_more() {
            return self.check_next();
        }
        let head = self.head.clone();
        Ok(DownloadProgress::Whole(Box::new(
            head.with_payload(self.body.take()),
        )))
    }

    // After a restart the first block is requested without Observe, so its response does not
    // confirm the observation.
    fn handle_first(
        &mut self,
        response: &Message,
        bytes_max: usize,
    ) -> Result<DownloadProgress, TransferFault> {
        let observe = self.head.observe();
        let as_observed = |message: Message| match observe {
            Some(observe) => message.with_observe(observe),
            None => message,
        };
        match Download::begin(response, self.beginnings, bytes_max)? {
            None => {
                let whole = head_of(response).with_payload(response.payload.as_slice());
                Ok(DownloadProgress::Whole(Box::new(as_observed(whole))))
            }
            Some(download) => {
                *self = download;
                self.head = as_observed(self.head.clone());
                Ok(DownloadProgress::Next)
            }
        }
    }

    fn begin_again(&mut self, fault: TransferFault) -> Result<DownloadProgress, TransferFault> {
        match self.beginnings {
            RestartPolicy::NoMore => Err(fault),
            RestartPolicy::OneMore => {
                self.beginnings = RestartPolicy::NoMore;
                self.body = Body::default();
                Ok(DownloadProgress::Next)
            }
        }
    }

    fn check_next(&self) -> Result<DownloadProgress, TransferFault> {
        match self.size.number_at(self.body.len()) {
            Some(_) => Ok(DownloadProgress::Next),
            None => Err(TransferFault::TooLong {
                max: self.size.body_bytes_max(),
            }),
        }
    }

    /// Returns how many bytes of memory the received blocks occupy.
    pub(super) fn memory(&self) -> usize {
        self.body.memory()
    }

    /// Makes the request for the next block.
    pub(super) fn request_of(&self, request: Message) -> Message {
        let number = self.size.number_at(self.body.len()).unwrap_or_default();
        request.with_block2(Block::new(number, More::No, self.size))
    }
}

fn add(
    body: &mut Body,
    block: Block,
    response: &Message,
    bytes_max: usize,
) -> Result<BlockSize, TransferFault> {
    let too_long = TransferFault::TooLong { max: bytes_max };
    let announced = response
        .size2()
        .and_then(|bytes| usize::try_from(bytes).ok());
    if announced.is_some_and(|bytes| bytes > bytes_max) {
        return Err(too_long);
    }
    let size = block.size_when_filled(response.payload.len())?;
    body.append(&response.payload, bytes_max)
        .map_err(|TooLong| too_long)?;
    Ok(size)
}

fn head_of(response: &Message) -> Message {
    let mut head = response.clone();
    head.payload = Vec::new();
    head.without_option(option::BLOCK2)
        .without_option(option::SIZE2)
}
