//! Did the device receive this message before? RFC 7252 section 4.2: a duplicate is acted upon
//! once, and answered as the first time.

use std::collections::VecDeque;

use protocol::coap::message::{Message, MessageId, MessageKind};

/// The number of messages that a device remembers; beyond it the oldest is forgotten. A server has
/// one request in progress per device, so this is minutes of its fastest traffic, and longer than a
/// network keeps a copy (MAX_LATENCY, 100 seconds).
const RECEIVED_MAX: usize = 256;

/// EXCHANGE_LIFETIME of RFC 7252 section 4.8.2.
const CONFIRMABLE_LIFETIME_MS: i64 = 247_000;

/// NON_LIFETIME of RFC 7252 section 4.8.2.
const NON_CONFIRMABLE_LIFETIME_MS: i64 = 145_000;

/// The received messages that a device remembers.
#[derive(Clone, Debug, Default)]
pub(super) struct DedupCache {
    // Oldest first.
    entries: VecDeque<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    expires_at_ms: i64,
    message_id: MessageId,
    digest: u64,
    reply: Box<[u8]>,
}

impl DedupCache {
    /// Remembers a datagram and its answer, which may be empty.
    pub(super) fn remember(&mut self, now_ms: i64, message: &Message, bytes: &[u8], reply: &[u8]) {
        let is_over = |oldest: &Entry| oldest.expires_at_ms <= now_ms;
        while self.entries.len() >= RECEIVED_MAX || self.entries.front().is_some_and(is_over) {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry {
            expires_at_ms: now_ms.saturating_add(lifetime_ms(message.kind)),
            message_id: message.message_id,
            digest: digest(bytes),
            reply: reply.into(),
        });
    }

    /// The answer to an earlier copy of the datagram.
    ///
    /// The whole datagram is compared, not only its message id: a server that restarts may reuse an
    /// id for another message.
    pub(super) fn find(&self, now_ms: i64, message: &Message, bytes: &[u8]) -> Option<&[u8]> {
        let has_id = |entry: &&Entry| entry.message_id == message.message_id;
        let mut same_id = self.entries.iter().rev().filter(has_id).peekable();
        same_id.peek()?;
        let digest = digest(bytes);
        let found = same_id.find(|entry| entry.digest == digest && now_ms < entry.expires_at_ms)?;
        Some(&found.reply)
    }
}

const fn lifetime_ms(kind: MessageKind) -> i64 {
    match kind {
        MessageKind::Confirmable => CONFIRMABLE_LIFETIME_MS,
        MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => {
            NON_CONFIRMABLE_LIFETIME_MS
        }
    }
}

// FNV-1a: nobody attacks a simulated device.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::{CONFIRMABLE_LIFETIME_MS, DedupCache, RECEIVED_MAX};
    use protocol::coap::code::Code;
    use protocol::coap::message::{Message, MessageId, MessageKind};
    use protocol::coap::token::Token;

    #[test]
    fn a_datagram_is_remembered_until_its_lifetime_ends() {
        let (message, bytes) = execute(7, 1);
        let mut cache = DedupCache::default();
        assert_eq!(cache.find(0, &message, &bytes), None);
        cache.remember(0, &message, &bytes, b"reply");
        let last_ms = CONFIRMABLE_LIFETIME_MS - 1;
        assert_eq!(
            cache.find(last_ms, &message, &bytes),
            Some(b"reply".as_slice())
        );
        assert_eq!(cache.find(last_ms + 1, &message, &bytes), None);
    }

    #[test]
    fn the_same_id_with_other_content_is_another_message() {
        let (message, bytes) = execute(7, 1);
        let (other, other_bytes) = execute(7, 2);
        let mut cache = DedupCache::default();
        cache.remember(0, &message, &bytes, b"reply");
        assert_eq!(cache.find(0, &other, &other_bytes), None);
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut cache = DedupCache::default();
        let count = u16::try_from(RECEIVED_MAX).unwrap() + 1;
        for id in 0..count {
            let (message, bytes) = execute(id, 1);
            cache.remember(0, &message, &bytes, b"");
        }
        let is_known = |id| {
            let (message, bytes) = execute(id, 1);
            cache.find(0, &message, &bytes).is_some()
        };
        assert!(!is_known(0));
        assert!((1..count).all(is_known));
    }

    fn execute(id: u16, token: u64) -> (Message, Vec<u8>) {
        let token = Token::from_u64(token);
        let message = Message::request(MessageKind::Confirmable, Code::POST, MessageId(id), token);
        let bytes = message.encode();
        (message, bytes)
    }
}
