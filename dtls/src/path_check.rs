//! Is a peer at the address that its records come from? The return routability check of RFC 9853.
//!
//! ```text
//! type 1 | cookie 8
//! ```
//!
//! A new address is used at once, because a NAT may have taken the old one away. Until the peer has
//! echoed the cookie from there, it gets at most three times what came from it; further messages
//! wait. If no echo comes, the peer is where it was before.

use std::net::SocketAddr;

use crate::moment::Timestamp;
use crate::presentation::{Malformed, Reader};

/// The anti-amplification limit of RFC 9853.
const SENT_PER_RECEIVED: usize = 3;

/// How often a cookie is sent; the wait for its echo doubles each time.
const CHALLENGES_MAX: u32 = 3;

/// How many messages wait for the echo. CoAP has one exchange at a time; acknowledgements and
/// answers come beside it.
const WAITING_MAX: usize = 4;

const CHALLENGE: u8 = 0;
const RESPONSE: u8 = 1;
const DROP: u8 = 2;

/// What the peer has to echo.
pub(crate) type Cookie = [u8; 8];

/// A message of the check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PathMessage {
    Challenge(Cookie),
    Response(Cookie),
    /// An answer to a challenge at an earlier address, which is never sent one here.
    Drop(Cookie),
}

impl PathMessage {
    pub(crate) fn decode(content: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(content);
        let message_type = reader.u8()?;
        let cookie = reader.array()?;
        reader.end()?;
        match message_type {
            CHALLENGE => Ok(Self::Challenge(cookie)),
            RESPONSE => Ok(Self::Response(cookie)),
            DROP => Ok(Self::Drop(cookie)),
            _ => Err(Malformed),
        }
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        let (message_type, cookie) = match self {
            Self::Challenge(cookie) => (CHALLENGE, cookie),
            Self::Response(cookie) => (RESPONSE, cookie),
            Self::Drop(cookie) => (DROP, cookie),
        };
        [&[message_type], &cookie[..]].concat()
    }
}

/// The check of one address.
#[derive(Debug)]
pub(crate) struct PathCheck {
    /// The last address that was checked, or that the handshake came from.
    pub(crate) previous: SocketAddr,
    pub(crate) cookie: Cookie,
    pub(crate) deadline: Timestamp,
    /// Bytes from the address under check, and to it.
    received: usize,
    sent: usize,
    challenges: u32,
    waiting: Vec<Box<[u8]>>,
}

impl PathCheck {
    pub(crate) fn new(previous: SocketAddr, cookie: Cookie) -> Self {
        Self {
            previous,
            cookie,
            deadline: Timestamp::default(),
            received: 0,
            sent: 0,
            challenges: 0,
            waiting: Vec::new(),
        }
    }

    pub(crate) fn note_received(&mut self, length: usize) {
        self.received = self.received.saturating_add(length);
    }

    pub(crate) fn note_sent(&mut self, length: usize) {
        self.sent = self.sent.saturating_add(length);
    }

    /// Whether so many bytes more may go to the address.
    pub(crate) fn admits(&self, length: usize) -> bool {
        self.sent.saturating_add(length) <= SENT_PER_RECEIVED.saturating_mul(self.received)
    }

    /// Counts a challenge, and says when the next one is due; whether there is one left.
    pub(crate) fn next_challenge(&mut self, now: Timestamp, first_wait_ms: u64) -> bool {
        if self.challenges == CHALLENGES_MAX {
            return false;
        }
        self.deadline = now.plus_ms(first_wait_ms << self.challenges);
        self.challenges += 1;
        true
    }

    /// Keeps a message until the address is checked. Returns whether there was room.
    pub(crate) fn keep(&mut self, content: &[u8]) -> bool {
        let has_room = self.waiting.len() < WAITING_MAX;
        if has_room {
            self.waiting.push(content.into());
        }
        has_room
    }

    pub(crate) fn into_waiting(self) -> Vec<Box<[u8]>> {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_they_were_written() {
        let cookie = *b"a cookie";
        for message in [
            PathMessage::Challenge(cookie),
            PathMessage::Response(cookie),
            PathMessage::Drop(cookie),
        ] {
            assert_eq!(PathMessage::decode(&message.encode()), Ok(message));
        }
        for bytes in [
            &b""[..],
            b"\x00",
            b"\x00a cooki",
            b"\x00a cookie.",
            b"\x03a cookie",
        ] {
            assert_eq!(PathMessage::decode(bytes), Err(Malformed));
        }
    }
}
