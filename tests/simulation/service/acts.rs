//! How does the service act on the world, and what becomes of the datagrams it receives?

use std::net::SocketAddr;

use engine::arbiter::effect::StoreLookup;
use engine::arbiter::input::ActorExit;
use engine::bootstrap::BootstrapOrder;
use engine::change::Batch;
use engine::device::record::RestoredDevice;
use engine::dispatch::DropReason;
use engine::dispatch::shard_map::ArbiterId;
use engine::effect::{Outbound, SendOutcome};
use engine::firmware::ImageRange;
use engine::ids::ActionId;
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::step_event::{self, NotificationOutcome, StepEvent, StepEventKind, UplinkKind};
use engine::supervision::Generation;

use super::{ForwardBatch, Reply};
use crate::wire::{self, AnsweredBy, SentRequest};

/// An act of an arbiter.
#[derive(Debug)]
pub(crate) enum ArbiterAct {
    /// A datagram was classified.
    Sorted {
        number: u64,
        whose: DatagramOwner,
    },
    /// A datagram is forwarded to another arbiter.
    Forwarded {
        number: u64,
        to: ArbiterId,
    },
    /// A datagram has ended.
    Ended {
        number: u64,
        end: DatagramEnd,
    },
    /// All datagrams for another arbiter are sent to it.
    Post {
        to: ArbiterId,
        post: ForwardBatch,
    },
    /// Looks something up on the disk.
    LookUp(StoreLookup),
    /// The datagrams of one peer are for a device from now on, and those of another no longer.
    Rebound {
        who: usize,
        from: Option<Peer>,
        to: Option<Peer>,
    },
    /// A machine took a step that sends these requests.
    Decided {
        who: usize,
        took: StepInput,
        step: u64,
        saves: Saves,
        sends: Vec<SentRequest>,
        throws: Option<ActionId>,
    },
    Commit {
        who: usize,
        step: u64,
        batch: Batch,
    },
    Send {
        step: Option<u64>,
        who: Option<usize>,
        to: Peer,
        datagram: Vec<u8>,
    },
    /// Answers over the session of the arbiter that a message of a device came over.
    SealAnswer {
        who: usize,
        address: SocketAddr,
        message: Vec<u8>,
    },
    /// Sends a bare datagram, or fails to.
    Throw {
        step: u64,
        who: usize,
        to: Peer,
        bytes: Vec<u8>,
        action: ActionId,
        outcome: SendOutcome,
    },
    Reply {
        call: u64,
        step: Option<u64>,
        reply: Reply,
    },
    /// Prepares the bootstrap of a device.
    PrepareBootstrap {
        who: usize,
        step: u64,
        order: Box<BootstrapOrder>,
    },
    /// Reads a part of an image that a device is sent.
    ReadImage {
        who: usize,
        step: u64,
        range: ImageRange,
    },
    /// Reads the profile of a device from the disk.
    ReadNames {
        who: usize,
        step: u64,
    },
    /// All devices of the arbiter are restored.
    Started,
    WakeArbiter {
        at: Timestamp,
    },
    /// An actor reports that it is idle.
    Idle {
        who: usize,
        report: (Generation, ActorExit),
    },
    /// A device is restored from this data.
    Restored {
        who: usize,
        restored: Box<RestoredDevice>,
    },
    /// The machine of a device with this registration is gone.
    MovedOut {
        who: usize,
        registered: Option<Peer>,
    },
    Fell {
        who: usize,
        parked: bool,
    },
}

/// The device a datagram is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DatagramOwner {
    /// The device with a name or a location, if there is one.
    Named(Option<usize>),
    /// The device at the peer.
    Behind(Peer),
    /// The device with the address, if there is exactly one.
    Addressed(Peer),
    /// None.
    Nobodys,
}

/// How a datagram ends.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum DatagramEnd {
    /// The machine of a device handled it.
    Handled { who: usize },
    /// It was dropped for this reason, and its sender may have been answered.
    Turned(DropReason),
    /// It was for a device that could not handle it.
    Lost { who: usize, how: LossReason },
}

/// Why a device could not handle a datagram.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum LossReason {
    /// Its actor ended before it handled everything.
    Abandoned,
    /// The device was removed.
    Unknown,
}

/// What caused a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StepTrigger {
    /// The device registered, updated, notified or sent data, or the rest of a notification
    /// arrived.
    Uplink,
    /// Another datagram of the device, or in its name.
    Heard,
    /// A timeout or a command.
    Other,
}

impl StepTrigger {
    /// The cause of a step, from its input and its results.
    ///
    /// A refused or repeated message is no uplink. A response with the last block of a notification
    /// counts as the notification.
    pub(super) fn of(took: &StepInput, outbound: &[Outbound], events: &[StepEvent]) -> Self {
        let Some(meaning) = took.meaning.filter(|_| !took.is_ambiguous) else {
            return Self::Other;
        };
        let is_uplink = match meaning {
            UplinkKind::Notification
            | UplinkKind::Send
            | UplinkKind::CoapData
            | UplinkKind::UdpData => true,
            UplinkKind::Register | UplinkKind::Update => wire::is_accepted(outbound),
            UplinkKind::Answer => is_fetched(events),
            UplinkKind::BlockPart
            | UplinkKind::Bootstrap
            | UplinkKind::Deregister
            | UplinkKind::Unsolicited
            | UplinkKind::Ping
            | UplinkKind::Unsupported
            | UplinkKind::Repeated => false,
        };
        match is_uplink {
            true => Self::Uplink,
            false => Self::Heard,
        }
    }
}

/// Whether the rest of a notification arrived before a newer one.
fn is_fetched(events: &[StepEvent]) -> bool {
    let did = |is_it: fn(&StepEventKind) -> bool| events.iter().any(|it| is_it(&it.kind));
    did(|what| {
        matches!(
            what,
            StepEventKind::Ended(step_event::ExchangeOutcome::Success)
        )
    }) && did(|what| {
        let StepEventKind::Notified(outcome) = what else {
            return false;
        };
        *outcome != NotificationOutcome::Stale
    })
}

/// The input of a step.
#[derive(Clone, Debug)]
pub(crate) struct StepInput {
    pub(crate) on: StepTrigger,
    /// The meaning of the datagram.
    pub(crate) meaning: Option<UplinkKind>,
    /// The request that a message may answer.
    pub(crate) meets: Option<AnsweredBy>,
    /// The message id that an empty acknowledgement names.
    pub(crate) acknowledges: Option<u16>,
    /// The sender of the datagram.
    pub(crate) from: Option<Peer>,
    /// The contents of bare datagrams.
    pub(crate) bare: Vec<Vec<u8>>,
    /// Whether it came from an address of several devices.
    pub(crate) is_ambiguous: bool,
    /// Whether the device is to be bootstrapped.
    pub(crate) is_bootstrap: bool,
}

impl StepInput {
    /// No datagram.
    pub(super) const NOTHING: Self = Self {
        on: StepTrigger::Other,
        meaning: None,
        meets: None,
        acknowledges: None,
        from: None,
        bare: Vec::new(),
        is_ambiguous: false,
        is_bootstrap: false,
    };
}

/// Whether a step has changes to save.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Saves {
    Something,
    Nothing,
}
