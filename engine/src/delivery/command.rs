//! What may be asked of a destination, and what its caller is told?

use crate::delivery::backlog::Sequence;
use crate::delivery::destination::{Destination, DestinationAmendment};
use crate::delivery::forwarding::{NotActive, ReplayUnderWay};

/// What a caller asks of a destination.
#[derive(Clone, Debug)]
pub enum DestinationCommand {
    /// Become what its customer makes of it.
    Amend(Box<DestinationAmendment>),
    /// Take up deliveries again after a failure.
    Restart,
    /// Deliver its dead letters again.
    Replay,
    /// Give up these dead letters for good.
    Discard(Box<[Sequence]>),
    /// Send one event that says no more than that the destination is reached.
    Test,
    /// Be removed with all that waits for it.
    Remove,
}

/// What the caller is told once that is durable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DestinationReply {
    /// The destination, as it stands.
    Destination(Box<Destination>),
    /// Whether a replay began.
    Replayed(Result<(), NotActive>),
    /// Whether the dead letters are given up.
    Discarded(Result<(), ReplayUnderWay>),
    /// What came of a test.
    Tested(TestOutcome),
    /// It is removed.
    Removed,
}

/// What came of a test.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TestOutcome {
    /// Whether the destination has it.
    pub accepted: bool,
    /// The status it answered with, if it answered.
    pub status: Option<u16>,
    /// What came of it, in words.
    pub message: String,
}
