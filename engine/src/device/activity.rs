//! How does a device stand, as far as it is counted? Cheap enough to be asked after every step.

use crate::moment::Timestamp;

/// How a device stands after a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeviceActivity {
    /// How long it listens.
    pub listens: ListenWindow,
    /// Its requests that wait for it to be heard.
    pub scheduled: u32,
    /// Its requests that are being sent, or wait for their next attempt.
    pub in_progress: u32,
    /// Whether an exchange with it is in flight.
    pub exchange: InFlight,
}

/// How long a device listens if nothing happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListenWindow {
    /// Not at all: it has no registration.
    Unregistered,
    /// As long as its registration lasts.
    Always,
    /// Until it falls asleep.
    Until(Timestamp),
}

/// Whether something is in flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InFlight {
    /// Nothing is.
    No,
    /// Something is.
    Yes,
}
