//! What waits to be delivered, and how far a destination has come with it.
//!
//! An event waits once, whoever is to be told of it: each destination has its own place in each
//! virtual shard, and its exceptions: what it did not take yet, and what was set aside for it.
//!
//! ```text
//!   (waiting) --read--> open --taken--> (passed)
//!                        |  ^
//!            not taken   v  | due
//!                       held --tries used up--> dead --replay--> held
//! ```

use crate::event::EventType;
use crate::ids::{CustomerId, DestinationId, DeviceKey, EventId, Shard};
use crate::moment::Timestamp;

/// The number of an event among those of its virtual shard: later ones have greater numbers, and
/// some numbers are nobody's.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Sequence(pub u64);

/// An event that waits to be delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueuedEvent {
    /// Its number.
    pub sequence: Sequence,
    /// The device it is of, whose events are delivered in order.
    pub device: DeviceKey,
    /// The event.
    pub event: EventId,
    /// Of which type it is: a destination that does not want it need not read it.
    pub event_type: EventType,
}

impl QueuedEvent {
    /// The virtual shard it is in.
    pub fn shard(&self) -> Shard {
        self.device.shard()
    }
}

/// An event that a destination did not take yet, and has to be tried again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PendingRetry {
    /// The event.
    pub queued: QueuedEvent,
    /// How often it was tried.
    pub tries: u8,
    /// When it is tried again.
    pub due_at: Timestamp,
}

/// An event that was set aside because its destination did not take it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeadLetter {
    /// The event.
    pub queued: QueuedEvent,
    /// How often it was tried.
    pub tries: u8,
    /// When it was set aside.
    pub at: Timestamp,
    /// Why.
    pub why: Box<str>,
}

/// How far a destination has come since it was last said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProgressUpdate {
    /// Which destination.
    pub destination: DestinationId,
    /// Whose it is.
    pub customer: CustomerId,
    /// Up to which number it is done with a shard, exceptions apart.
    pub reached: Vec<(Shard, Sequence)>,
    /// What is to be tried again, put.
    pub retrying: Vec<PendingRetry>,
    /// What is not to be tried again any more, removed.
    pub released: Vec<Sequence>,
    /// What is set aside, put.
    pub dead_lettered: Vec<DeadLetter>,
    /// What is not set aside any more, removed.
    pub requeued: Vec<Sequence>,
    /// Events it is done with, one way or another, that it was not done with before; less those
    /// that it is to take after all.
    pub passed: i64,
}

impl ProgressUpdate {
    /// No step of a destination.
    pub fn none(customer: CustomerId, destination: DestinationId) -> Self {
        Self {
            destination,
            customer,
            reached: Vec::new(),
            retrying: Vec::new(),
            released: Vec::new(),
            dead_lettered: Vec::new(),
            requeued: Vec::new(),
            passed: 0,
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.passed == 0
            && self.reached.is_empty()
            && self.retrying.is_empty()
            && self.released.is_empty()
            && self.dead_lettered.is_empty()
            && self.requeued.is_empty()
    }
}

/// All that is kept of how far a destination has come.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DestinationProgress {
    /// The last number given before the destination was made: it is done with all up to it.
    pub since: Sequence,
    /// Up to which number it is done with each shard, exceptions apart; with a shard that is not
    /// here it has not begun.
    pub reached: Vec<(Shard, Sequence)>,
    /// What is to be tried again, by number.
    pub retrying: Vec<PendingRetry>,
}

/// What waits for a destination, in numbers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Backlog {
    /// Events it is not done with.
    pub waiting: u64,
    /// Its dead letters.
    pub dead: u64,
}
