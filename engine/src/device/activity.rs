//! What is counted about a device? Cheap enough to compute after every step.

use crate::moment::Timestamp;

/// What is counted about a device after a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeviceActivity {
    /// How long it listens.
    pub listens: ListenWindow,
    /// Its requests of which no attempt was made.
    pub scheduled: u32,
    /// Its requests of which an attempt was made: it is in flight, or they wait for the next one.
    pub in_progress: u32,
    /// Whether an exchange with it is in flight.
    pub exchange: InFlight,
}

/// How long a device listens if nothing happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListenWindow {
    /// It does not: it has no registration.
    Unregistered,
    /// As long as its registration lasts.
    Always,
    /// Until it falls asleep.
    Until(Timestamp),
}

/// Whether an exchange is in flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InFlight {
    /// None is.
    No,
    /// One is.
    Yes,
}
