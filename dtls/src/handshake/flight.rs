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
        let mut start = out.bytes().len();
        for part in &self.parts {
            let (content_type, message) = match part {
                FlightPart::Plain(message) => (ContentType::Handshake, Some(message)),
                FlightPart::ChangeCipherSpec => (ContentType::ChangeCipherSpec, None),
                FlightPart::Protected(message) => (ContentType::Handshake, Some(message)),
            };
            let Some(message) = message else {
                start = make_room(HEADER_LENGTH + 1, limits, start, peer, out);
                record::encode_plaintext(content_type, self.plain_sequence, &[1], out.bytes());
                self.plain_sequence += 1;
                continue;
            };
            let mut session = match part {
                FlightPart::Protected(_) => session.as_deref_mut(),
                FlightPart::Plain(_) | FlightPart::ChangeCipherSpec => None,
            };
            let (overhead, content_max) = match session.as_deref() {
                Some(session) => (session.overhead(), session.content_max()),
                None => (HEADER_LENGTH, limits.plaintext_max),
            };
            let overhead = overhead + message::HEADER_LENGTH;
            let content_max = content_max.saturating_sub(message::HEADER_LENGTH).max(1);
            let mut sent = 0;
            loop {
                let rest = message.body.len() - sent;
                // A message that fits in a datagram is not cut.
                let wanted = rest.min(content_max);
                start = make_room(overhead + wanted, limits, start, peer, out);
                let room = limits.datagram_max.saturating_sub(overhead).max(1);
                let length = wanted.min(room);
                let whole = message.as_fragment();
                let fragment = Fragment {
                    offset: sent as u32,
                    bytes: &message.body[sent..sent + length],
                    ..whole
                };
                let mut plaintext = Vec::with_capacity(message::HEADER_LENGTH + length);
                fragment.encode(&mut plaintext);
                match session.as_deref_mut() {
                    Some(session) => {
                        // Numbers suffice for more records than a handshake has.
                        let _ = session.seal(content_type, &plaintext, out.bytes());
                    }
                    None => {
                        let sequence = self.plain_sequence;
                        record::encode_plaintext(content_type, sequence, &plaintext, out.bytes());
                        self.plain_sequence += 1;
                    }
                }
                sent += length;
                if sent == message.body.len() {
                    break;
                }
            }
        }
        out.transmit(peer, start);
    }
}

/// Ends the datagram that begins at `start` if so many bytes more are too many; returns the start
/// of the one to be continued.
fn make_room(
    length: usize,
    limits: SizeLimits,
    start: usize,
    peer: SocketAddr,
    out: &mut Effects,
) -> usize {
    let written = out.bytes().len() - start;
    if written == 0 || written + length <= limits.datagram_max {
        return start;
    }
    out.transmit(peer, start);
    out.bytes().len()
}
