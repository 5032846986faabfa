//! The events of a customer as deliveries see them, and the progress of each destination.
//!
//! The stored events are the queue of all destinations: each destination has its own cursor in each
//! partition, its retries, and its dead letters.
//!
//! ```text
//!   (queued) --read--> open --accepted--> (passed)
//!                       |  ^
//!        not accepted  v  | due
//!                    retrying --tries used up--> dead letter --replay--> retrying
//! ```

use crate::event::{Event, EventType, Lifecycle};
use crate::ids::{CustomerId, DestinationId, DeviceKey, EventId, Partition};
use crate::moment::Timestamp;

/// The number of an event among those of its partition: later events have greater numbers; some
/// numbers are not used.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Sequence(pub u64);

/// An event as it is queued: all but its content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueuedEvent {
    /// Its number.
    pub sequence: Sequence,
    /// Its device, whose events are delivered in order.
    pub device: DeviceKey,
    /// The event.
    pub event: EventId,
    /// Its type: a destination that does not want the type need not read the event.
    pub event_type: EventType,
    /// Its kind, if it is a lifecycle event; none of one that was stored before kinds were.
    pub lifecycle: Option<Lifecycle>,
}

impl QueuedEvent {
    /// An event under its number.
    pub fn of(sequence: Sequence, event: &Event) -> Self {
        Self {
            sequence,
            device: event.device,
            event: event.id,
            event_type: event.content.event_type(),
            lifecycle: event.content.lifecycle(),
        }
    }

    /// The partition it is in.
    pub fn partition(&self) -> Partition {
        self.device.partition()
    }
}

/// An event that a destination did not accept, or that waits behind one, and is retried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PendingRetry {
    /// The event.
    pub queued: QueuedEvent,
    /// How many tries were made.
    pub tries: u8,
    /// When it is retried.
    pub due_at: Timestamp,
}

/// An event whose delivery to a destination was given up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeadLetter {
    /// The event.
    pub queued: QueuedEvent,
    /// How many tries were made.
    pub tries: u8,
    /// When it became a dead letter.
    pub at: Timestamp,
    /// Why.
    pub why: Box<str>,
}

/// The progress of a destination since it was last saved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProgressUpdate {
    /// The destination.
    pub destination: DestinationId,
    /// Its customer.
    pub customer: CustomerId,
    /// New cursors: up to this number, a partition is done, retries apart.
    pub reached: Vec<(Partition, Sequence)>,
    /// Retries to put.
    pub retrying: Vec<PendingRetry>,
    /// Retries to remove.
    pub released: Vec<Sequence>,
    /// Dead letters to put.
    pub dead_lettered: Vec<DeadLetter>,
    /// Dead letters to remove.
    pub requeued: Vec<Sequence>,
}

impl ProgressUpdate {
    /// No progress.
    pub fn none(customer: CustomerId, destination: DestinationId) -> Self {
        Self {
            destination,
            customer,
            reached: Vec::new(),
            retrying: Vec::new(),
            released: Vec::new(),
            dead_lettered: Vec::new(),
            requeued: Vec::new(),
        }
    }

    /// Whether it has no changes.
    pub fn is_empty(&self) -> bool {
        self.reached.is_empty()
            && self.retrying.is_empty()
            && self.released.is_empty()
            && self.dead_lettered.is_empty()
            && self.requeued.is_empty()
    }
}

/// The stored progress of a destination.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DestinationProgress {
    /// The last number given before the destination was created; events up to it are not delivered.
    pub since: Sequence,
    /// The cursor of each partition: up to this number it is done, retries apart. A partition
    /// without a cursor has not begun.
    pub reached: Vec<(Partition, Sequence)>,
    /// The retries, by number.
    pub retrying: Vec<PendingRetry>,
}

/// The size of the backlog of a destination.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Backlog {
    /// Events that are not done.
    pub waiting: u64,
    /// Its dead letters.
    pub dead: u64,
}
