//! Laws about DTLS: what a device is told reaches the holder of its key only, and what is heard of
//! a device was said by it; each of both once.

use std::collections::{HashMap, HashSet};

use protocol::coap::message::Message;
use protocol::coap::token::Token;

use super::{Verdict, hold};

/// The messages that were sealed and did not arrive, and how often each, by device.
pub(crate) struct SealedMessages {
    told: Vec<HashMap<Vec<u8>, u32>>,
    said: Vec<HashMap<Vec<u8>, u32>>,
}

impl SealedMessages {
    pub(super) fn of(devices: usize) -> Self {
        Self {
            told: (0..devices).map(|_| HashMap::new()).collect(),
            said: (0..devices).map(|_| HashMap::new()).collect(),
        }
    }

    /// The service seals a message to a device.
    pub(crate) fn told(&mut self, who: usize, message: &[u8]) {
        *self.told[who].entry(message.to_vec()).or_default() += 1;
    }

    /// A device opens a message of the service.
    pub(crate) fn reached(&mut self, who: usize, message: &[u8]) -> Verdict {
        let is_own = take(&mut self.told[who], message);
        hold(
            "what_a_device_is_told_reaches_the_holder_of_its_key_only",
            is_own,
            || format!("device {who} opens {message:02x?}, which is not for it, or not again"),
        )
    }

    /// A device seals a message to the service.
    pub(crate) fn said(&mut self, who: usize, message: &[u8]) {
        *self.said[who].entry(message.to_vec()).or_default() += 1;
    }

    /// The service opens a message of a device.
    pub(crate) fn heard(&mut self, who: usize, message: &[u8]) -> Verdict {
        let is_own = take(&mut self.said[who], message);
        hold("what_is_heard_of_a_device_was_said_by_it", is_own, || {
            format!("device {who} has not said {message:02x?}, or not again")
        })
    }
}

/// A session over which a device has requested images alone carries nothing else: requests go to
/// the session of its registration.
pub(crate) fn a_session_for_downloads_does_not_move_a_device(
    who: usize,
    asked: &HashSet<Token>,
    message: &[u8],
) -> Verdict {
    let decoded = Message::decode(message).ok();
    let is_answer = |it: &Message| !it.code.is_request() && asked.contains(&it.token);
    hold(
        "a_session_for_downloads_does_not_move_a_device",
        decoded.as_ref().is_some_and(is_answer),
        || format!("device {who} is told {message:02x?} where it downloads"),
    )
}

/// Who has a key of a device that has ended, or a ticket of it, is told nothing.
pub(crate) fn an_ended_key_hears_nothing(who: usize, message: &[u8]) -> Verdict {
    hold(
        "what_a_device_is_told_reaches_the_holder_of_its_key_only",
        false,
        || format!("{message:02x?} is told to who has a former key of device {who}"),
    )
}

/// Takes one of the messages away, if it is there.
fn take(messages: &mut HashMap<Vec<u8>, u32>, message: &[u8]) -> bool {
    let count = messages.get_mut(message).filter(|count| **count > 0);
    count.map(|count| *count -= 1).is_some()
}
