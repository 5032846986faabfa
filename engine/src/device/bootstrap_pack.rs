//! The Bootstrap-Pack that a device was sent last (LwM2M Core 1.2 section 6.1.7.7): kept for its
//! further blocks and for a repeated request, which must not lead to another key.

use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId};
use protocol::coap::serving;

use crate::bootstrap::{BootstrapRecord, BootstrapState};
use crate::datagram::Datagram;
use crate::limits::DATA_REMEMBERED_MS;
use crate::moment::Timestamp;
use crate::peer::Peer;

/// A pack.
pub(super) struct ServedPack {
    request: Datagram,
    format: ContentFormat,
    body: Vec<u8>,
    record: BootstrapRecord,
    /// The state in which the record was saved last.
    saved: Option<BootstrapState>,
    forgotten_at: Timestamp,
}

impl ServedPack {
    /// A pack in answer to its first request.
    pub(super) fn new(
        request: &Datagram,
        (format, body): (ContentFormat, Vec<u8>),
        record: BootstrapRecord,
        now: Timestamp,
    ) -> Self {
        Self {
            request: request.clone(),
            format,
            body,
            record,
            saved: None,
            forgotten_at: now.plus_ms(DATA_REMEMBERED_MS),
        }
    }

    /// Whether a request is the first one, repeated, or one for a further block.
    pub(super) fn is_for(&self, datagram: &Datagram) -> bool {
        let (first, message) = (&self.request.message, &datagram.message);
        let is_repeated = message.message_id == first.message_id && message.token == first.token;
        self.request.peer == datagram.peer && (is_repeated || is_for_further_block(message))
    }

    /// The response to such a request. With the last block the bootstrap succeeds.
    pub(super) fn response_to(
        &mut self,
        request: &Message,
        id: MessageId,
        now: Timestamp,
    ) -> Message {
        let response = Message::response_to(request, Code::CONTENT, id);
        let response = response.with_content_format(self.format);
        let response = serving::cut_from(response, &self.body, request, BlockSize::MAX);
        let has_more = response.block2().is_some_and(|block| block.has_more());
        if response.code.is_success() && !has_more && self.is_unfinished() {
            self.record.end(now, BootstrapState::Succeeded, None);
        }
        response
    }

    /// The bootstrap of a pack that the device has not requested as a whole.
    pub(super) fn unfinished(&self) -> Option<&BootstrapRecord> {
        self.is_unfinished().then_some(&self.record)
    }

    /// How the bootstrap is going, if its state was not saved.
    pub(super) fn take_unsaved(&mut self) -> Option<BootstrapRecord> {
        let state = Some(self.record.state);
        let is_unsaved = std::mem::replace(&mut self.saved, state) != state;
        is_unsaved.then(|| self.record.clone())
    }

    /// The peer that it is for.
    pub(super) fn peer(&self) -> Peer {
        self.request.peer
    }

    /// When it is not repeated any more.
    pub(super) fn forgotten_at(&self) -> Timestamp {
        self.forgotten_at
    }

    fn is_unfinished(&self) -> bool {
        self.record.state == BootstrapState::Running
    }
}

/// Whether a request is for another block than the first.
pub(super) fn is_for_further_block(request: &Message) -> bool {
    request.block2().is_some_and(|block| block.number() > 0)
}
