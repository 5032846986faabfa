//! What is an arbiter given, what reaches a device through it, and what is answered to callers?

use crate::action::NewAction;
use crate::datagram::{Datagram, Inbound};
use crate::device::queue::{Accepted, CancelRefusal, Cancelled, SubmitRefusal};
use crate::device::record::RestoredDevice;
use crate::device::snapshot::Snapshot;
use crate::dispatch::{self, Classified, Restoration};
use crate::ids::{ActionId, DeviceKey};
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::supervision::ActorFailure;

/// What holds for the whole process while an input is handled.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// When it is.
    pub now: Timestamp,
    /// Whether the store takes no new work.
    pub is_store_full: bool,
    /// Whether every arbiter has restored its devices since the start.
    pub restoration: Restoration,
}

/// A datagram as it was received, decoded.
#[derive(Debug)]
pub struct Received {
    pub(super) origin: Origin,
    /// What it is.
    pub classified: Classified,
}

impl Received {
    /// Decodes the datagram of this number from a peer.
    pub fn decode(number: u64, peer: Peer, bytes: &[u8]) -> Self {
        Self {
            origin: Origin { number, peer },
            classified: dispatch::classify(number, peer, bytes),
        }
    }
}

/// Which datagram it was, and where it came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) number: u64,
    pub(super) peer: Peer,
}

impl Origin {
    pub(super) fn of(arrival: &Inbound) -> Self {
        Self {
            number: arrival.number(),
            peer: arrival.peer(),
        }
    }

    pub(super) fn of_datagram(datagram: &Datagram) -> Self {
        Self {
            number: datagram.number,
            peer: datagram.peer,
        }
    }
}

/// The store did not answer.
#[derive(Clone, Copy, Debug)]
pub struct StoreUnavailable;

/// Devices as a start reads them, and where the next page begins.
#[derive(Clone, Debug, Default)]
pub struct StartupPage {
    /// The devices.
    pub devices: Vec<(DeviceKey, RestoredDevice)>,
    /// The first device of the next page; nothing if this is the last.
    pub next: Option<DeviceKey>,
}

/// Why a device's actor ends, or could.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ActorExit {
    /// It has nothing to do that the store does not know; it handled so many inputs.
    Idle {
        /// How many inputs it handled.
        handled: u64,
    },
    /// The device was removed.
    Retired,
    /// It failed.
    Failed(ActorFailure),
}

/// What a device is given to handle; `R` is how whoever asks is answered.
#[derive(Debug)]
pub enum DeviceInput<R> {
    /// It, or somebody in its name, sent something.
    Datagram(Box<Inbound>),
    /// A deadline of it may have come.
    Timeout,
    /// Somebody asks something of it.
    Command(Box<PendingCommand<R>>),
}

/// A question and how it is answered.
#[derive(Debug)]
pub struct PendingCommand<R> {
    /// What is asked.
    pub command: DeviceCommand,
    /// How it is answered.
    pub reply: R,
}

/// What may be asked of a device.
#[derive(Clone, Debug)]
pub enum DeviceCommand {
    /// Create an action request.
    Submit(NewAction),
    /// Cancel a request that was not sent.
    Cancel(ActionId),
    /// Cancel every request that was not sent.
    CancelAll,
    /// Remove the device and all that belongs to it.
    Retire,
    /// Describe the device as it is now.
    Inspect,
    /// Read again who the device is: its customer changed that, which is durable.
    ReadProfile,
}

/// What a device answers.
#[derive(Debug)]
pub enum DeviceReply {
    /// To [`DeviceCommand::Submit`].
    Submitted(Result<Accepted, SubmitRefusal>),
    /// To [`DeviceCommand::Cancel`].
    Cancelled(Result<Cancelled, CancelRefusal>),
    /// To [`DeviceCommand::CancelAll`].
    CancelledAll(Vec<Cancelled>),
    /// To [`DeviceCommand::Retire`].
    Retired,
    /// To [`DeviceCommand::Inspect`].
    Inspected(Box<Snapshot>),
    /// To [`DeviceCommand::ReadProfile`].
    ProfileRead,
}
