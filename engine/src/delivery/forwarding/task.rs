//! What a step of a destination wants done: its changes as one batch, then errands.

use crate::change::{Batch, Change};
use crate::delivery::backlog::{QueuedEvent, Sequence};
use crate::ids::Shard;

/// What is to be done for a destination once what it decided is durable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForwarderTask {
    /// Read what waits in a shard.
    Read {
        /// The shard.
        shard: Shard,
        /// Behind which number.
        after: Sequence,
        /// How much at most.
        max: u32,
    },
    /// Read its dead letters.
    ReadDeadLetters {
        /// Behind which number, or from the first.
        after: Option<Sequence>,
        /// How many at most.
        max: u32,
    },
    /// Deliver an event.
    Deliver(QueuedEvent),
}

/// What came of a delivery.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DeliveryOutcome {
    /// The destination has it.
    Delivered,
    /// The event is not kept any more, so nobody will have it.
    Gone,
    /// The destination does not have it, as far as is known.
    Failed {
        /// Why, in words for its customer.
        why: Box<str>,
    },
}

/// What a step wants done.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::delivery) struct ForwarderOutput {
    changes: Vec<Change>,
    tasks: Vec<ForwarderTask>,
}

impl ForwarderOutput {
    /// Nothing yet.
    pub(in crate::delivery) fn new() -> Self {
        Self::default()
    }

    /// What must be durable first, and what is done afterwards, in order.
    pub(in crate::delivery) fn settle(self) -> (Batch, Vec<ForwarderTask>) {
        let batch = Batch {
            changes: self.changes,
            ..Batch::default()
        };
        (batch, self.tasks)
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub(super) fn task(&mut self, task: ForwarderTask) {
        self.tasks.push(task);
    }
}
