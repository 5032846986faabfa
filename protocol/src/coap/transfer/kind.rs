//! What is the state of a request that needs more than one exchange?

use std::ops::Range;

use super::TransferRules;
use super::download::{self, Download, RestartPolicy};
use super::fault::TransferFault;
use super::upload::{self, Upload, UploadPosition};
use crate::coap::code::Code;
use crate::coap::message::{Message, MessageId};
use crate::coap::option;
use crate::coap::token::Token;

/// A request in blocks, its response in blocks, or one after the other.
#[derive(Clone, Debug)]
pub(super) struct TransferKind {
    /// What all its messages have in common.
    request: Message,
    /// The token of the first message.
    pub(super) token: Token,
    stage: Stage,
    /// When it ends unless a block is transferred, `i64::MAX` once it is over; nothing before the
    /// first block was transferred.
    pub(super) ends_at_ms: Option<i64>,
}

#[derive(Clone, Debug)]
enum Stage {
    Upload(Upload),
    Download(Download),
}

/// The result of a response for the whole request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum TransferStep {
    /// Send another message.
    Next,
    /// The response is the answer itself.
    Answered,
    /// The answer was assembled from blocks.
    Whole(Box<Message>),
}

impl TransferKind {
    /// Starts with a request whose body does not fit one message.
    pub(super) fn with_long_body(rules: &TransferRules<'_>, mut request: Message) -> TransferKind {
        let body = std::mem::take(&mut request.payload);
        let upload = Upload::begin(body, rules.block);
        TransferKind::begin(request, Stage::Upload(upload))
    }

    /// Starts with a request whose body the caller supplies block by block.
    pub(super) fn with_streamed_body(
        request: Message,
        (length, from): (usize, UploadPosition),
    ) -> TransferKind {
        TransferKind::begin(request, Stage::Upload(Upload::streamed(length, from)))
    }

    /// Continues after the response to a request in one message, if that response requires another
    /// message.
    pub(super) fn after(
        rules: &TransferRules<'_>,
        datagram: &[u8],
        response: &Message,
    ) -> Result<Option<TransferKind>, TransferFault> {
        let is_refused = response.code == Code::REQUEST_ENTITY_TOO_LARGE;
        if !is_refused && response.block2().is_none() {
            return Ok(None);
        }
        // A request with a Block option of its own gets the block it asks for.
        let is_whole = |request: &Message| {
            let number = request.block2().map_or(0, |block| block.number());
            request.code.is_request() && request.block1().is_none() && number == 0
        };
        let Some(request) = Message::decode(datagram).ok().filter(is_whole) else {
            return Ok(None);
        };
        if is_refused {
            return Ok(TransferKind::with_smaller_blocks(request, response));
        }
        let answer_bytes_max = rules.answer_bytes_max;
        let download = Download::begin(response, beginnings_of(&request), answer_bytes_max)?;
        Ok(download.map(|download| {
            let mut request = for_further_blocks(request);
            if request.code != Code::FETCH {
                request.payload = Vec::new();
            }
            TransferKind::begin(request, Stage::Download(download))
        }))
    }

    /// Continues a body whose first block was received in a notification.
    pub(super) fn with_first_block(
        rules: &TransferRules<'_>,
        request: Message,
        notification: &Message,
    ) -> Result<TransferKind, TransferFault> {
        let restart = beginnings_of(&request);
        let download = Download::begin(notification, restart, rules.answer_bytes_max)?;
        let download = download.ok_or(TransferFault::BlockMissing)?;
        Ok(TransferKind::begin(request, Stage::Download(download)))
    }

    fn with_smaller_blocks(mut request: Message, refusal: &Message) -> Option<TransferKind> {
        let body = std::mem::take(&mut request.payload);
        let upload = Upload::begin_smaller(body, refusal)?;
        Some(TransferKind::begin(request, Stage::Upload(upload)))
    }

    fn begin(request: Message, stage: Stage) -> TransferKind {
        TransferKind {
            token: request.token,
            request,
            stage,
            ends_at_ms: None,
        }
    }

    /// Handles the response to the message in flight.
    pub(super) fn handle(
        &mut self,
        rules: &TransferRules<'_>,
        response: &Message,
    ) -> Result<TransferStep, TransferFault> {
        match &mut self.stage {
            Stage::Upload(upload) => match upload.handle(response)? {
                upload::UploadProgress::Next => Ok(TransferStep::Next),
                upload::UploadProgress::Answered => self.handle_answer(rules, response),
            },
            Stage::Download(download) => {
                match download.handle(response, rules.answer_bytes_max)? {
                    download::DownloadProgress::Next => Ok(TransferStep::Next),
                    download::DownloadProgress::Answered => Ok(TransferStep::Answered),
                    download::DownloadProgress::Whole(whole) => Ok(TransferStep::Whole(whole)),
                }
            }
        }
    }

    // The response to the last block of the request may be the first block of the answer. A request
    // cannot be repeated for further blocks without its body.
    fn handle_answer(
        &mut self,
        rules: &TransferRules<'_>,
        response: &Message,
    ) -> Result<TransferStep, TransferFault> {
        match Download::begin(response, RestartPolicy::NoMore, rules.answer_bytes_max)? {
            None => Ok(TransferStep::Answered),
            Some(download) => {
                self.request = for_further_blocks(self.request.clone());
                self.stage = Stage::Download(download);
                Ok(TransferStep::Next)
            }
        }
    }

    /// Returns how many bytes of memory the received blocks of the response occupy.
    pub(super) fn memory(&self) -> usize {
        match &self.stage {
            Stage::Upload(_) => 0,
            Stage::Download(download) => download.memory(),
        }
    }

    /// Returns how far the peer has a body that the caller supplies.
    pub(super) fn position(&self) -> Option<UploadPosition> {
        match &self.stage {
            Stage::Upload(upload) => upload.position(),
            Stage::Download(_) => None,
        }
    }

    /// Returns the part of the body that the caller supplies for the next message.
    pub(super) fn wanted(&self) -> Option<Range<usize>> {
        match &self.stage {
            Stage::Upload(upload) => upload.wanted(),
            Stage::Download(_) => None,
        }
    }

    /// Makes the first message, under the request's own id and token.
    pub(super) fn first(&self) -> Message {
        self.message((self.request.message_id, self.token), &[])
    }

    /// Makes the message to send now; a body that the caller supplies has this block.
    pub(super) fn message(&self, ids: (MessageId, Token), supplied: &[u8]) -> Message {
        let (message_id, token) = ids;
        let mut request = self.request.clone();
        request.message_id = message_id;
        request.token = token;
        match &self.stage {
            Stage::Upload(upload) => upload.block_of(request, supplied),
            Stage::Download(download) => download.request_of(request),
        }
    }
}

fn beginnings_of(request: &Message) -> RestartPolicy {
    if [Code::GET, Code::FETCH].contains(&request.code) {
        RestartPolicy::OneMore
    } else {
        RestartPolicy::NoMore
    }
}

// Only the first request asks for an observation (RFC 7959 section 2.6), and has the ETags of known
// bodies: they identify whole bodies, not blocks.
fn for_further_blocks(request: Message) -> Message {
    request
        .without_option(option::OBSERVE)
        .without_option(option::ETAG)
}
