//! Which operations has the device performed? A log for tests that check that nothing was performed
//! twice.

use std::collections::VecDeque;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId};
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;

use super::event::Operation;

/// The number of operations that a device remembers; beyond it the oldest is forgotten. A test that
/// reads the log in time misses none, and the memory of a device that runs for months does not
/// grow.
pub const PERFORMED_MAX: usize = 1_024;

/// An LwM2M operation that was performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerformedOperation {
    /// Its position among all operations of this device, from 0.
    pub number: u64,
    /// Its path.
    pub path: Path,
    /// The operation.
    pub operation: Operation,
    /// The message id of the request.
    pub message_id: MessageId,
    /// The token of the request.
    pub token: Token,
    /// The format of the payload, if there is one.
    pub format: Option<ContentFormat>,
    /// The value that was read or written, or the arguments of an execute.
    pub payload: Vec<u8>,
}

/// A plain CoAP request that was performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerformedRequest {
    /// Its position among all plain requests of this device, from 0.
    pub number: u64,
    /// Its path.
    pub path: String,
    /// Its method.
    pub method: Code,
    /// The message id of the request.
    pub message_id: MessageId,
    /// The token of the request.
    pub token: Token,
    /// The payload of the request.
    pub given: Vec<u8>,
    /// The payload of the response.
    pub answered: Vec<u8>,
}

/// The performed operations in their order.
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

impl PerformedLog<PerformedOperation> {
    /// Adds an operation with its payload: that of the request, or of the response to a read.
    pub(super) fn add_operation(
        &mut self,
        request: &Message,
        (path, operation): (Path, Operation),
        (format, payload): (Option<ContentFormat>, &[u8]),
    ) {
        self.add(PerformedOperation {
            number: self.count,
            path,
            operation,
            message_id: request.message_id,
            token: request.token,
            format,
            payload: payload.to_vec(),
        });
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

    /// The number of all entries, including forgotten ones.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
