//! The output of a step of a destination: its changes as one batch, then tasks.

use crate::admin_log::entry::AboutDevice;
use crate::change::{Batch, Change};
use crate::delivery::backlog::{QueuedEvent, Sequence};
use crate::ids::Partition;

/// A task of a destination, begun once the changes of its step are durable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ForwarderTask {
    /// Read the queued events of a partition.
    Read {
        /// The partition.
        partition: Partition,
        /// After which number.
        after: Sequence,
        /// How many at most.
        max: u32,
    },
    /// Read its dead letters.
    ReadDeadLetters {
        /// After which number, or from the first.
        after: Option<Sequence>,
        /// How many at most.
        max: u32,
    },
    /// Deliver these events in one request, those of a device in order. There is one, unless the
    /// destination has [`EventBatching`](crate::delivery::destination::EventBatching).
    Deliver(Vec<QueuedEvent>),
}

/// The outcome of a delivery.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DeliveryOutcome {
    /// The destination accepted the events.
    Delivered,
    /// The events are no longer stored and cannot be delivered.
    Gone,
    /// The destination did not accept the events, as far as is known.
    Failed(FailedDelivery),
}

/// Why a delivery failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FailedDelivery {
    /// The reason, in words for the customer.
    pub why: Box<str>,
    /// How long the destination asked not to be tried; 0 if it did not.
    pub pause_ms: i64,
    /// The device of the first event, as a log entry names it.
    pub about: Option<Box<AboutDevice>>,
}

/// The output of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::delivery) struct ForwarderOutput {
    changes: Vec<Change>,
    tasks: Vec<ForwarderTask>,
}

impl ForwarderOutput {
    /// No output yet.
    pub(in crate::delivery) fn new() -> Self {
        Self::default()
    }

    /// The batch that must be durable first, and the tasks that follow, in order.
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
