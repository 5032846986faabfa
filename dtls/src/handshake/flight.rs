//! Which messages go together? A flight is sent as a whole and repeated as a whole, in new records
//! (RFC 6347 section 4.2.4).

use std::net::SocketAddr;

use crate::effect::Effects;
use crate::record::{self, ContentType, HEADER_LENGTH};
use crate::session::Session;

use super::message::{self, Fragment, Message};

/// How often a flight is repeated because the peer repeats its own; then only timers repeat it.
const ANSWERS_MAX: u8 = 10;

/// The messages that were sent last.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    parts: Vec<FlightPart>,
    /// The record number of the next record without protection.
    plain_sequence: u64,
    answers: u8,
}

/// One part of a flight.
#[derive(Debug)]
enum FlightPart {
    Plain(Message),
    ChangeCipherSpec,
    Protected(Message),
}

/// How large our datagrams and records may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimits {
    pub(crate) datagram_max: usize,
    /// The plaintext of a record without protection.
    pub(crate) plaintext_max: usize,
}

/// The flight at the end of a handshake, which the peer may miss.
#[derive(Debug)]
pub(crate) struct LastFlight {
    pub(crate) flight: Flight,
    pub(crate) limits: SizeLimits,
}

impl Flight {
    /// A flight whose first record has this number (RFC 6347 section 4.2.1).
    pub(crate) fn numbered_from(plain_sequence: u64) -> Self {
        Self {
            parts: Vec::new(),
            plain_sequence,
            answers: 0,
        }
    }

    /// Begins the next flight: the peer has answered this one.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.answers = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn push_plain(&mut self, message: Message) {
        self.parts.push(FlightPart::Plain(message));
    }

    /// Appends a change of the keys and the message behind it.
    pub(crate) fn push_protected(&mut self, message: Message) {
        self.parts.push(FlightPart::ChangeCipherSpec);
        self.parts.push(FlightPart::Protected(message));
    }

    /// The record number of an alert beside the flight.
    pub(crate) fn next_plain_sequence(&mut self) -> u64 {
        let sequence = self.plain_sequence;
        self.plain_sequence += 1;
        sequence
    }

    /// Whether the flight may be repeated because the peer repeats its own.
    pub(crate) fn may_answer(&mut self) -> bool {
        let may = !self.is_empty() && self.answers < ANSWERS_MAX;
        self.answers += u8::from(may);
        may
    }

    /// Sends it all, each datagram as full as possible.
    pub(crate) fn transmit(
        &mut self,
        limits: SizeLimits,
        mut session: Option<&mut Session>,
        peer: SocketAddr,
        out: &mut Effects,
    ) {
        let start = out.bytes().len();
        let mut datagrams = Datagrams {
            limits,
            plain_sequence: &mut self.plain_sequence,
            peer,
            start,
            out,
        };
        for part in &self.parts {
            match part {
                FlightPart::Plain(message) => datagrams.put_message(message, None),
                FlightPart::ChangeCipherSpec => {
                    datagrams.make_room(HEADER_LENGTH + 1);
                    datagrams.put_plain(ContentType::ChangeCipherSpec, &[1]);
                }
                FlightPart::Protected(message) => {
                    datagrams.put_message(message, session.as_deref_mut());
                }
            }
        }
        datagrams.end();
    }
}

/// The datagrams of a flight while they are written.
struct Datagrams<'f> {
    limits: SizeLimits,
    plain_sequence: &'f mut u64,
    peer: SocketAddr,
    /// Where the current one begins.
    start: usize,
    out: &'f mut Effects,
}

impl Datagrams<'_> {
    /// Writes a message in as few fragments as possible. One that fits in a datagram is not cut.
    fn put_message(&mut self, message: &Message, mut session: Option<&mut Session>) {
        let (overhead, content_max) = match session.as_deref() {
            Some(session) => (session.overhead_max(), session.content_max()),
            None => (HEADER_LENGTH, self.limits.plaintext_max),
        };
        let overhead = overhead + message::HEADER_LENGTH;
        let content_max = content_max.saturating_sub(message::HEADER_LENGTH).max(1);
        let room = self.limits.datagram_max.saturating_sub(overhead).max(1);
        let mut sent = 0;
        loop {
            let wanted = (message.body.len() - sent).min(content_max);
            self.make_room(overhead + wanted);
            let end = sent + wanted.min(room);
            let fragment = Fragment {
                offset: sent as u32,
                bytes: &message.body[sent..end],
                ..message.as_fragment()
            };
            let mut content = Vec::with_capacity(message::HEADER_LENGTH + fragment.bytes.len());
            fragment.encode(&mut content);
            match session.as_deref_mut() {
                // A handshake does not use up the record numbers of its session.
                Some(session) => {
                    let _ = session.seal(ContentType::Handshake, &content, self.out.bytes());
                }
                None => self.put_plain(ContentType::Handshake, &content),
            }
            sent = end;
            if sent == message.body.len() {
                return;
            }
        }
    }

    fn put_plain(&mut self, content_type: ContentType, content: &[u8]) {
        let sequence = *self.plain_sequence;
        record::encode_plaintext(content_type, sequence, content, self.out.bytes());
        *self.plain_sequence += 1;
    }

    /// Ends the current datagram if so many bytes more are too many for it.
    fn make_room(&mut self, length: usize) {
        let written = self.out.bytes().len() - self.start;
        if written > 0 && written + length > self.limits.datagram_max {
            self.end();
        }
    }

    fn end(&mut self) {
        self.out.transmit(self.peer, self.start);
        self.start = self.out.bytes().len();
    }
}
