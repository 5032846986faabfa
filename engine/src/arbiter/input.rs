//! The inputs of an arbiter, the inputs that reach a device through it, and the replies to callers.

use crate::action::NewAction;
use crate::associations::handshake::HandshakeFault;
use crate::datagram::{Datagram, Inbound, RefusedHandshake};
use crate::device::queue::{Accepted, CancelRefusal, Cancelled};
use crate::device::record::RestoredDevice;
use crate::device::refusal::SubmitRefusal;
use crate::device::snapshot::Snapshot;
use crate::device::update::UpdateEnd;
use crate::directory::sms::waking::WakingAction;
use crate::dispatch::{self, Classified};
use crate::firmware::campaign::NewUpdate;
use crate::firmware::download::ImageRequest;
use crate::ids::{ActionId, CampaignId, DeviceKey};
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::supervision::ActorFailure;

/// What holds for the whole process while an input is handled.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The current time.
    pub now: Timestamp,
    /// Whether the store takes no new work.
    pub is_store_full: bool,
}

/// A datagram as it was received, decoded.
#[derive(Debug)]
pub struct Received {
    pub(super) origin: Origin,
    /// Where it belongs.
    pub classified: Classified,
}

impl Received {
    /// Decodes the datagram of this number from a peer.
    pub fn decode(number: u64, peer: Peer, bytes: &[u8]) -> Self {
        Self {
            origin: Origin::of_stranger(number, peer),
            classified: dispatch::classify(number, peer, bytes),
        }
    }

    /// Decodes the content of a record of this number, over the security association with a device.
    pub fn decode_secured(number: u64, device: DeviceKey, peer: Peer, bytes: &[u8]) -> Self {
        Self {
            origin: Origin::of_device(number, device, peer),
            classified: dispatch::classify_secured((number, peer), device, bytes),
        }
    }

    /// Decodes the content of a record of this number, over a session with a device whose key is
    /// valid for its bootstrap alone.
    pub fn decode_for_bootstrap(number: u64, device: DeviceKey, peer: Peer, bytes: &[u8]) -> Self {
        Self {
            origin: Origin::of_device(number, device, peer),
            classified: dispatch::classify_for_bootstrap((number, peer), device, bytes),
        }
    }

    /// A handshake of this number was refused to a peer that claims to be a device.
    pub fn refused_handshake(
        number: u64,
        device: DeviceKey,
        peer: Peer,
        why: HandshakeFault,
    ) -> Self {
        let refused = RefusedHandshake { number, peer, why };
        Self {
            origin: Origin::of_stranger(number, peer),
            classified: Classified::ToDevice(device, Inbound::RefusedHandshake(refused)),
        }
    }
}

/// Which datagram it was, and where it came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) number: u64,
    pub(super) peer: Peer,
    /// The device that proved its keys.
    pub(super) device: Option<DeviceKey>,
}

impl Origin {
    /// A datagram that proves nothing about its sender but the address.
    pub(super) fn of_stranger(number: u64, peer: Peer) -> Self {
        Self {
            number,
            peer,
            device: None,
        }
    }

    /// A datagram of the device that proved its keys.
    fn of_device(number: u64, device: DeviceKey, peer: Peer) -> Self {
        Self {
            number,
            peer,
            device: Some(device),
        }
    }

    pub(super) fn of_image_request(request: &ImageRequest) -> Self {
        Self {
            device: request.device,
            ..Self::of_datagram(&request.datagram)
        }
    }

    pub(super) fn of(arrival: &Inbound) -> Self {
        Self::of_stranger(arrival.number(), arrival.peer())
    }

    pub(super) fn of_datagram(datagram: &Datagram) -> Self {
        Self::of_stranger(datagram.number, datagram.peer)
    }
}

/// The store did not answer.
#[derive(Clone, Copy, Debug)]
pub struct StoreUnavailable;

/// One page of devices restored at a start.
#[derive(Clone, Debug, Default)]
pub struct StartupPage {
    /// The devices.
    pub devices: Vec<(DeviceKey, RestoredDevice)>,
    /// The first device of the next page; none if this is the last.
    pub next: Option<DeviceKey>,
}

/// Why a device's actor ends, or could.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ActorExit {
    /// It has no work that is not in the store.
    Idle {
        /// How many inputs it handled.
        handled: u32,
    },
    /// The device was removed.
    Retired,
    /// It failed.
    Failed(ActorFailure),
}

/// An input of a device; `R` is where a command is answered.
#[derive(Debug)]
pub enum DeviceInput<R> {
    /// A datagram from the device, or from a sender that claims to be the device.
    Datagram(Box<Inbound>),
    /// A deadline of the device may have come.
    Timeout,
    /// Drop the bodies received in part: those of all devices need too much memory.
    DropUnfinished,
    /// A command of a caller.
    Command(Box<PendingCommand<R>>),
}

/// A command and where it is answered.
#[derive(Debug)]
pub struct PendingCommand<R> {
    /// The command.
    pub command: DeviceCommand,
    /// Where it is answered.
    pub reply: R,
}

/// A command to a device.
#[derive(Clone, Debug)]
pub enum DeviceCommand {
    /// Create an action request.
    Submit(NewAction),
    /// Create an action request, and wake the device for it if it sleeps.
    SubmitWaking(Box<WakingAction>),
    /// Cancel a request that was not sent.
    Cancel(ActionId),
    /// Cancel every request that was not sent.
    CancelAll,
    /// Begin the firmware update of a campaign.
    BeginUpdate(Box<NewUpdate>),
    /// End the firmware update of a campaign.
    EndUpdate(CampaignId, UpdateEnd),
    /// Remove the device and everything that belongs to it.
    Retire,
    /// Describe the present state of the device.
    Inspect,
    /// Read the profile again: its customer changed it, and the change is durable.
    ReadProfile,
}

/// The reply to a command.
#[derive(Debug)]
pub enum DeviceReply {
    /// To [`DeviceCommand::Submit`] and [`DeviceCommand::SubmitWaking`].
    Submitted(Result<Accepted, SubmitRefusal>),
    /// To [`DeviceCommand::Cancel`].
    Cancelled(Result<Cancelled, CancelRefusal>),
    /// To [`DeviceCommand::CancelAll`].
    CancelledAll(Vec<Cancelled>),
    /// To [`DeviceCommand::BeginUpdate`] and [`DeviceCommand::EndUpdate`].
    UpdateTaken,
    /// To [`DeviceCommand::Retire`].
    Retired,
    /// To [`DeviceCommand::Inspect`].
    Inspected(Box<Snapshot>),
    /// To [`DeviceCommand::ReadProfile`].
    ProfileRead,
}
