//! Was this message received before? The server's side of RFC 7252 section 4.2: a duplicate gets
//! the same answer as the first message, and is processed once.
//!
//! A million peers leave no room for 247 s of answers each, so a peer keeps its last few message
//! ids and the codes of their answers. The caller has to build the rest of a repeated answer again;
//! section 4.5 allows that for idempotent requests.

use super::code::Code;
use super::message::{Message, MessageId, MessageKind};

/// How many messages of one peer are remembered. A device has one request outstanding (NSTART is
/// 1), so eight cover its last eight requests; at the bound the oldest is dropped.
pub const RECENT_MAX: usize = 8;

/// EXCHANGE_LIFETIME of RFC 7252 section 4.8.2.
const CONFIRMABLE_LIFETIME_MS: u32 = 247_000;

/// NON_LIFETIME of RFC 7252 section 4.8.2.
const NON_CONFIRMABLE_LIFETIME_MS: u32 = 145_000;

/// How long after it was stored a message is recognised in a restored window: longer than a sender
/// with the parameters of RFC 7252 waits for its answer (MAX_TRANSMIT_WAIT, 93 s), and as short as
/// the shortest time in which it may not use a message id again (NON_LIFETIME).
pub const RESTORED_LIFETIME_MS: u32 = NON_CONFIRMABLE_LIFETIME_MS;

/// The last messages of one peer and how they were answered.
///
/// They are stored inline and not on the heap, although most peers were silent lately: a fleet that
/// sends often must not need more memory than a silent one.
#[derive(Clone, Debug, Default)]
pub struct DedupWindow {
    /// When the latest was remembered; the times of entries are relative to this.
    as_of_ms: i64,
    /// Oldest first, the free places last.
    entries: [Option<Entry>; RECENT_MAX],
}

/// What a message is recognised by if it is repeated to a window that was restored: short enough to
/// be stored in the id of what the message caused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageMark {
    message_id: MessageId,
    digest: u32,
}

impl MessageMark {
    /// The mark of a message from an endpoint, whose bytes tell it from others: message ids belong
    /// to an endpoint (RFC 7252 section 4.4).
    pub fn of(message: &Message, endpoint: &[u8]) -> Self {
        let mut digest = Digest::default();
        digest.fold(endpoint);
        digest.fold_message(message);
        Self {
            message_id: message.message_id,
            digest: digest.finish(),
        }
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 6] {
        let [a, b] = self.message_id.0.to_be_bytes();
        let [c, d, e, f] = self.digest.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// The mark with these bytes.
    pub fn from_bytes([a, b, c, d, e, f]: [u8; 6]) -> Self {
        Self {
            message_id: MessageId(u16::from_be_bytes([a, b])),
            digest: u32::from_be_bytes([c, d, e, f]),
        }
    }
}

/// How a message was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Duplicate {
    /// With a response of this code.
    Answered(Code),
    /// With an Empty Acknowledgement.
    Acknowledged,
    /// With a Reset.
    Rejected,
}

impl DedupWindow {
    /// Remembers how a message was answered; of a duplicate, the latest answer counts.
    pub fn remember(&mut self, now_ms: i64, message: &Message, what: Duplicate) {
        let digest = digest_of(message);
        let mut now = Self {
            as_of_ms: now_ms,
            ..Self::default()
        };
        for entry in self.entries() {
            if let Some(lives_for_ms) = self.lives_for_ms(now_ms, entry)
                && !entry.is_of(message, digest)
            {
                now.push(Entry {
                    lives_for_ms,
                    ..*entry
                });
            }
        }
        now.push(Entry {
            lives_for_ms: lifetime_ms(message.kind),
            digest,
            message_id: message.message_id,
            what: Remembered::Answered(what),
        });
        *self = now;
    }

    /// Remembers a message by its mark: what it reported was stored at a time, before the window
    /// was restored. It is not found as a duplicate, because how it was answered is not known.
    pub fn restore(&mut self, now_ms: i64, stored_at_ms: i64, mark: MessageMark) {
        let age_ms = u32::try_from(now_ms.saturating_sub(stored_at_ms).max(0));
        let lives_for_ms = RESTORED_LIFETIME_MS.saturating_sub(age_ms.unwrap_or(u32::MAX));
        let entry = Entry {
            lives_for_ms,
            digest: mark.digest,
            message_id: mark.message_id,
            what: Remembered::Stored,
        };
        self.as_of_ms = now_ms;
        // One message may have reported several events.
        let is_last =
            |last: &Entry| last.message_id == mark.message_id && last.digest == mark.digest;
        if !self.entries().last().is_some_and(is_last) {
            self.push(entry);
        }
    }

    /// Whether what a message from an endpoint reports was stored before the window was restored.
    pub fn was_stored(&self, now_ms: i64, message: &Message, endpoint: &[u8]) -> bool {
        let is_candidate = |entry: &&Entry| {
            entry.what == Remembered::Stored && entry.message_id == message.message_id
        };
        let mut candidates = self.entries().filter(is_candidate).peekable();
        if candidates.peek().is_none() {
            return false;
        }
        let MessageMark { digest, .. } = MessageMark::of(message, endpoint);
        candidates.any(|it| it.digest == digest && self.lives_for_ms(now_ms, it).is_some())
    }

    /// Remembers the messages that another window has by their marks, too.
    pub fn adopt_stored(&mut self, now_ms: i64, other: &Self) {
        let is_stored = |entry: &&Entry| entry.what == Remembered::Stored;
        if other.entries().find(is_stored).is_none() {
            return;
        }
        let mut both = Self {
            as_of_ms: now_ms,
            ..Self::default()
        };
        let of_other = other.entries().filter(is_stored).map(|it| (other, it));
        for (window, entry) in of_other.chain(self.entries().map(|it| (&*self, it))) {
            if let Some(lives_for_ms) = window.lives_for_ms(now_ms, entry) {
                both.push(Entry {
                    lives_for_ms,
                    ..*entry
                });
            }
        }
        *self = both;
    }

    /// Forgets all messages of the peer, for a peer that started again.
    pub fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// Returns how the message was answered when it was received before.
    ///
    /// Message id and content both have to match: a device that restarts on the same port may use
    /// an id again for another message.
    pub fn find(&self, now_ms: i64, message: &Message) -> Option<Duplicate> {
        let is_known = |entry: &&Entry| entry.message_id == message.message_id;
        self.entries().find(is_known)?;
        let digest = digest_of(message);
        let found = self.entries().find(|entry| entry.is_of(message, digest))?;
        match found.what {
            Remembered::Answered(what) => self.lives_for_ms(now_ms, found).map(|_| what),
            // The digest of a mark is another one; two that are equal are no duplicates.
            Remembered::Stored => None,
        }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    /// How long an entry remains valid, if it still is.
    fn lives_for_ms(&self, now_ms: i64, entry: &Entry) -> Option<u32> {
        let passed_ms = now_ms.saturating_sub(self.as_of_ms);
        let left_ms = i64::from(entry.lives_for_ms).saturating_sub(passed_ms);
        // The clock never runs backwards here, so that no entry is valid for longer than before.
        (left_ms > 0).then(|| u32::try_from(left_ms).unwrap_or(u32::MAX))
    }

    fn push(&mut self, entry: Entry) {
        let place = self.entries.iter().position(Option::is_none);
        let place = place.unwrap_or_else(|| {
            self.entries.rotate_left(1);
            RECENT_MAX - 1
        });
        if let Some(place) = self.entries.get_mut(place) {
            *place = Some(entry);
        }
    }
}

/// 12 bytes, of which each of a million devices has eight.
#[derive(Clone, Copy, Debug)]
struct Entry {
    digest: u32,
    lives_for_ms: u32,
    message_id: MessageId,
    what: Remembered,
}

/// What is known of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Remembered {
    Answered(Duplicate),
    /// What it reported was stored.
    Stored,
}

const _: () = assert!(size_of::<Option<Entry>>() == 12);

impl Entry {
    fn is_of(&self, message: &Message, digest: u32) -> bool {
        self.message_id == message.message_id && self.digest == digest
    }
}

fn lifetime_ms(kind: MessageKind) -> u32 {
    match kind {
        MessageKind::Confirmable => CONFIRMABLE_LIFETIME_MS,
        MessageKind::NonConfirmable | MessageKind::Acknowledgement | MessageKind::Reset => {
            NON_CONFIRMABLE_LIFETIME_MS
        }
    }
}

fn digest_of(message: &Message) -> u32 {
    let mut digest = Digest::default();
    digest.fold_message(message);
    digest.finish()
}

/// Multiplies and rotates, a word at a time. A sender that makes two of its own messages collide
/// loses its own answer and nothing else, so nothing stronger is needed, and every request pays for
/// it.
#[derive(Default)]
struct Digest(u64);

impl Digest {
    /// The golden ratio in 64 bits, odd: multiplying by it spreads every bit upwards.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    fn fold_message(&mut self, message: &Message) {
        self.fold(&[message.code.as_byte(), message.kind as u8]);
        self.fold(message.token.as_bytes());
        for (number, value) in message.options() {
            self.fold(&number.to_be_bytes());
            self.fold(value);
        }
        self.fold(&message.payload);
    }

    fn finish(self) -> u32 {
        u32::try_from(self.0 >> 32).expect("32 bits are left")
    }

    fn fold(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold_word(u64::from_le_bytes(*word));
        }
        // The length is in the top byte; the remaining bytes are seven at most.
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX) << 56;
        let rest = rest
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.fold_word(length | rest);
    }

    fn fold_word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(Self::FACTOR);
    }
}
