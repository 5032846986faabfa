//! Which commands does a destination accept, and with which replies?

use crate::delivery::backlog::Sequence;
use crate::delivery::destination::{Destination, DestinationAmendment};
use crate::delivery::forwarding::ReplayUnderWay;

/// A caller's command to a destination.
#[derive(Clone, Debug)]
pub enum DestinationCommand {
    /// Apply the changes of its customer.
    Amend(Box<DestinationAmendment>),
    /// Resume deliveries after a failure.
    Restart,
    /// Deliver its dead letters again.
    Replay,
    /// Delete these dead letters.
    Discard(Box<[Sequence]>),
    /// Send a test event.
    Test,
    /// Remove it with all that is queued for it.
    Remove,
}

/// The reply to the caller, sent once the changes are durable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DestinationReply {
    /// The destination in its current state.
    Destination(Box<Destination>),
    /// Its dead letters will be delivered again.
    Replayed,
    /// Whether the dead letters are deleted.
    Discarded(Result<(), ReplayUnderWay>),
    /// The result of a test.
    Tested(TestOutcome),
    /// It is removed.
    Removed,
}

/// The result of a test.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TestOutcome {
    /// Whether the destination accepted it.
    pub accepted: bool,
    /// The status it answered with, if it answered.
    pub status: Option<u16>,
    /// The result, in words.
    pub message: String,
}
