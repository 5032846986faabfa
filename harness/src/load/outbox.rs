//! Which datagrams leave, and from which device? Those of one turn, one behind the other.

use std::ops::Range;

/// Datagrams that wait to be sent.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    datagrams: Vec<(u32, Range<usize>)>,
    answering: Vec<u32>,
    forgetting: Vec<u32>,
}

impl Outbox {
    /// Adds a datagram of a device.
    pub fn put(&mut self, member: u32, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        write(&mut self.bytes);
        self.datagrams.push((member, begin..self.bytes.len()));
    }

    /// Makes a device forget its DTLS session, if it has one, before its datagrams leave.
    pub(super) fn forget_session(&mut self, member: u32) {
        self.forgetting.push(member);
    }

    /// Marks a device that answers a request of the server.
    pub(super) fn note_answering(&mut self, member: u32) {
        self.answering.push(member);
    }

    /// The datagrams, in order.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let shown = |(member, place): &(u32, Range<usize>)| {
            let bytes = self.bytes.get(place.clone());
            (*member, bytes.unwrap_or_default())
        };
        self.datagrams.iter().map(shown)
    }

    /// The devices that answer a request of the server with one of the datagrams.
    pub(super) fn answering(&self) -> &[u32] {
        &self.answering
    }

    /// The devices that forget their DTLS sessions.
    pub(super) fn forgetting(&self) -> &[u32] {
        &self.forgetting
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Removes everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
        self.answering.clear();
        self.forgetting.clear();
    }
}
