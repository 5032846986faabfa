//! What is asked of a device and waits its turn: submitting, cancelling, order and expiry.

use crate::action::Status;
use crate::ids::ActionId;

/// A request was accepted: once its step is durable it is a promise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepted {
    /// The id to follow it by.
    pub id: ActionId,
    /// The status it begins with.
    pub status: Status,
}

/// A well-formed request that this device cannot take now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SubmitRefusal {
    /// It is to be sent now over LwM2M, and the device has no registration.
    #[error("the device is not registered")]
    NotRegistered,
    /// As many requests of its kind wait for the device as may.
    #[error("{max} requests already wait for the device")]
    QueueFull {
        /// How many may wait.
        max: u32,
    },
}

/// A request was taken back: it is never sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cancelled {
    /// Which.
    pub id: ActionId,
}

/// A request that cannot be taken back.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CancelRefusal {
    /// The device has no such request waiting.
    #[error("the request is not waiting for the device")]
    NotPending,
    /// It is already being sent.
    #[error("the request is already being sent")]
    NotScheduled,
}
