//! What does the service do to the world around it, and what becomes of what it hears?

use engine::arbiter::effect::StoreLookup;
use engine::arbiter::input::ActorExit;
use engine::change::Batch;
use engine::device::record::RestoredDevice;
use engine::dispatch::DropReason;
use engine::dispatch::shard_map::ArbiterId;
use engine::effect::{Outbound, SendOutcome};
use engine::ids::ActionId;
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::step_event::{self, NotificationOutcome, StepEvent, StepEventKind, UplinkKind};
use engine::supervision::Generation;

use super::{ForwardBatch, Reply};
use crate::wire::{self, AnsweredBy, SentRequest};

/// What an arbiter does.
#[derive(Debug)]
pub(crate) enum ArbiterAct {
    /// A datagram was looked at.
    Sorted {
        number: u64,
        whose: DatagramOwner,
    },
    /// A datagram goes on to another arbiter.
    Forwarded {
        number: u64,
        to: ArbiterId,
    },
    /// Nothing more becomes of a datagram.
    Ended {
        number: u64,
        end: DatagramEnd,
    },
    /// Everything that is for another arbiter leaves.
    Post {
        to: ArbiterId,
        post: ForwardBatch,
    },
    /// Ask the disk.
    LookUp(StoreLookup),
    /// The datagrams of one peer are to reach a device from now on, those of another no longer.
    Rebound {
        who: usize,
        from: Option<Peer>,
        to: Option<Peer>,
    },
    /// A machine took a step, in which it sends these requests.
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
    /// Bare bytes leave, or do not.
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
    /// Ask the disk who a device is.
    ReadNames {
        who: usize,
        step: u64,
    },
    /// Everybody at home here is back.
    Started,
    WakeArbiter {
        at: Timestamp,
    },
    /// An actor has nothing to do, and says so.
    Idle {
        who: usize,
        report: (Generation, ActorExit),
    },
    /// A device is brought back from this.
    Restored {
        who: usize,
        restored: Box<RestoredDevice>,
    },
    /// The machine of a device is no more, which was registered there.
    MovedOut {
        who: usize,
        registered: Option<Peer>,
    },
    Fell {
        who: usize,
        parked: bool,
    },
}

/// Whose a datagram is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DatagramOwner {
    /// A device's by name or by location, if there is one.
    Named(Option<usize>),
    /// The device's behind the peer.
    Behind(Peer),
    /// The device's that has the address, if it is exactly one's.
    Addressed(Peer),
    /// It says nothing that anybody is to hear.
    Nobodys,
}

/// What becomes of a datagram in the end.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum DatagramEnd {
    /// The machine of a device took it.
    Handled { who: usize },
    /// Nobody's machine did, for this reason, and its sender may have been told.
    Turned(DropReason),
    /// It was for a device, which could not take it.
    Lost { who: usize, how: LossReason },
}

/// Why a device could not take what was for it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum LossReason {
    /// Its actor ended before it took everything.
    Abandoned,
    /// It was removed.
    Unknown,
}

/// What a step is the answer to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StepTrigger {
    /// The device registered, updated, notified or sent, or the rest of a notification came.
    Uplink,
    /// It, or somebody in its name, said something else.
    Heard,
    /// Time or a caller.
    Other,
}

impl StepTrigger {
    /// What a step is the answer to that a machine took for this, in which this happened.
    ///
    /// Who is refused, or repeats itself, is not heard anew. An answer that brings the rest of a
    /// notification counts as if that had come whole.
    pub(super) fn of(took: &StepInput, outbound: &[Outbound], events: &[StepEvent]) -> Self {
        let Some(heard) = took.heard.filter(|_| !took.is_ambiguous) else {
            return Self::Other;
        };
        let is_uplink = match heard {
            UplinkKind::Notification
            | UplinkKind::Send
            | UplinkKind::CoapData
            | UplinkKind::UdpData => true,
            UplinkKind::Register | UplinkKind::Update => wire::is_accepted(outbound),
            UplinkKind::Answer => is_fetched(events),
            UplinkKind::BlockPart
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

/// Whether the rest of a notification came.
fn is_fetched(events: &[StepEvent]) -> bool {
    let did = |is_it: fn(&StepEventKind) -> bool| events.iter().any(|it| is_it(&it.kind));
    did(|what| {
        matches!(
            what,
            StepEventKind::Ended(step_event::ExchangeOutcome::Success)
        )
    }) && did(|what| {
        let StepEventKind::Notified(news) = what else {
            return false;
        };
        *news != NotificationOutcome::Excessive
    })
}

/// What a machine took before a step.
#[derive(Clone, Debug)]
pub(crate) struct StepInput {
    pub(crate) on: StepTrigger,
    /// What it took a datagram for.
    pub(crate) heard: Option<UplinkKind>,
    /// What a message may be the answer to.
    pub(crate) meets: Option<AnsweredBy>,
    /// Where a datagram came from.
    pub(crate) from: Option<Peer>,
    /// Bare bytes, in so many datagrams.
    pub(crate) bare: Vec<Vec<u8>>,
    /// Whether it came from an address of several devices.
    pub(crate) is_ambiguous: bool,
}

impl StepInput {
    /// Nothing was heard.
    pub(super) const NOTHING: Self = Self {
        on: StepTrigger::Other,
        heard: None,
        meets: None,
        from: None,
        bare: Vec::new(),
        is_ambiguous: false,
    };
}

/// Whether a step changes something for good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Saves {
    Something,
    Nothing,
}
