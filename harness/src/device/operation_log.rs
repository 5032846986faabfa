//! What has the device really done? A log for whoever checks that nothing was done twice.

use std::collections::VecDeque;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::MessageId;
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

use super::event::Operation;

/// How many operations a device remembers; the oldest gives way. A checker that comes by in time
/// misses none, and a device that runs for months does not grow.
pub const PERFORMED_MAX: usize = 1_024;

/// One operation of LwM2M that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerformedOperation {
    /// Its place among all operations of this device, from 0.
    pub number: u64,
    /// What it was done to.
    pub path: Path,
    /// What was done.
    pub operation: Operation,
    /// The message that asked for it.
    pub message_id: MessageId,
    /// The request that asked for it.
    pub token: Token,
    /// The format of that, where it is said.
    pub format: Option<ContentFormat>,
    /// What was read, written, or given to execute.
    pub payload: Vec<u8>,
}

/// One plain request that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerformedRequest {
    /// Its place among all plain requests of this device, from 0.
    pub number: u64,
    /// What it was about.
    pub path: String,
    /// What was to be done.
    pub method: Code,
    /// The message that asked for it.
    pub message_id: MessageId,
    /// The request that asked for it.
    pub token: Token,
    /// What it carried.
    pub given: Vec<u8>,
    /// What it was answered.
    pub answered: Vec<u8>,
}

/// What a device has carried out, in its order.
#[derive(Clone, Debug)]
pub(super) struct PerformedLog<T> {
    entries: VecDeque<T>,
    count: u64,
}

impl<T> Default for PerformedLog<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            count: 0,
        }
    }
}

impl<T> PerformedLog<T> {
    pub(super) fn add(&mut self, entry: T) {
        if self.entries.len() >= PERFORMED_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.count += 1;
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.entries.iter()
    }

    /// Tells how many were added, the forgotten ones included.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
