//! How does a device stand, as far as it is counted? Cheap enough to be asked after every step.

use crate::action::Status;
use crate::device::Device;
use crate::ids::TraceId;
use crate::moment::Timestamp;

/// How a device stands after a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// How long it listens.
    pub listens: Listens,
    /// Its requests that wait for it to be heard.
    pub scheduled: u32,
    /// Its requests that are being sent, or wait for their next attempt.
    pub in_progress: u32,
    /// Whether an exchange with it is in flight.
    pub exchange: InFlight,
}

/// How long a device listens if nothing happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Listens {
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

impl Device {
    /// How the device stands.
    pub fn standing(&self) -> Standing {
        let (mut scheduled, mut in_progress) = (0, 0);
        for pending in self.pending() {
            match pending.action.status {
                Status::Scheduled => scheduled += 1,
                Status::InProgress | Status::Succeeded | Status::Failed | Status::Cancelled => {
                    in_progress += 1;
                }
            }
        }
        Standing {
            listens: self.listens(),
            scheduled,
            in_progress,
            exchange: match self.attempt() {
                Some(attempt) if !attempt.is_departing() => InFlight::Yes,
                Some(_) | None => InFlight::No,
            },
        }
    }

    /// The call behind what is in flight, if one is.
    pub fn trace_in_flight(&self) -> Option<TraceId> {
        self.attempt()?.trace()
    }

    fn listens(&self) -> Listens {
        match &self.record.registration {
            None => Listens::Unregistered,
            Some(r) if r.binding.queue_mode() => Listens::Until(self.awake_until()),
            Some(_) => Listens::Always,
        }
    }
}
