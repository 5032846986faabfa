//! What does the service do to the world around it, and what becomes of what it hears?

use engine::arbiter::effect::LookUp;
use engine::arbiter::input::Ending;
use engine::change::Batch;
use engine::device::record::Restored;
use engine::effect::{Departure, Speech};
use engine::ids::ActionId;
use engine::moment::Timestamp;
use engine::occurrence::{self, Heard, News, Occurrence, What};
use engine::peer::Peer;
use engine::registry::Fate;
use engine::registry::homes::ArbiterId;
use engine::supervision::Generation;

use super::{Post, Reply};
use crate::wire::{self, Met, Sent};

/// What an arbiter does.
#[derive(Debug)]
pub(crate) enum Act {
    /// A datagram was looked at.
    Sorted {
        number: u64,
        whose: Whose,
    },
    /// A datagram goes on to another arbiter.
    Forwarded {
        number: u64,
        to: ArbiterId,
    },
    /// Nothing more becomes of a datagram.
    Ended {
        number: u64,
        end: End,
    },
    /// Everything that is for another arbiter leaves.
    Post {
        to: ArbiterId,
        post: Post,
    },
    /// Ask the disk.
    LookUp(LookUp),
    /// The datagrams of one peer are to reach a device from now on, those of another no longer.
    Rebound {
        who: usize,
        from: Option<Peer>,
        to: Option<Peer>,
    },
    /// A machine took a step, in which it sends these requests.
    Decided {
        who: usize,
        took: Took,
        step: u64,
        saves: Saves,
        sends: Vec<Sent>,
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
        departure: Departure,
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
        report: (Generation, Ending),
    },
    /// A device is brought back from this.
    Restored {
        who: usize,
        restored: Box<Restored>,
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
pub(crate) enum Whose {
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
pub(crate) enum End {
    /// The machine of a device took it.
    Handled { who: usize },
    /// Nobody's machine did, for this reason, and its sender may have been told.
    Turned(Fate),
    /// It was for a device, which could not take it.
    Lost { who: usize, how: Loss },
}

/// Why a device could not take what was for it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Loss {
    /// Its actor ended before it took everything.
    Abandoned,
    /// It was removed.
    Unknown,
}

/// What a step is the answer to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Occasion {
    /// The device registered, updated, notified or sent, or the rest of a notification came.
    Uplink,
    /// It, or somebody in its name, said something else.
    Heard,
    /// Time or a caller.
    Other,
}

impl Occasion {
    /// What a step is the answer to that a machine took for this, in which this happened.
    ///
    /// Who is refused, or repeats itself, is not heard anew. An answer that brings the rest of a
    /// notification counts as if that had come whole.
    pub(super) fn of(took: &Took, speeches: &[Speech], occurred: &[Occurrence]) -> Self {
        let Some(heard) = took.heard.filter(|_| !took.is_ambiguous) else {
            return Self::Other;
        };
        let is_uplink = match heard {
            Heard::Notification | Heard::Send | Heard::CoapData | Heard::UdpData => true,
            Heard::Register | Heard::Update => wire::is_accepted(speeches),
            Heard::Answer => is_fetched(occurred),
            Heard::Part
            | Heard::Deregister
            | Heard::Unasked
            | Heard::Ping
            | Heard::Unsupported
            | Heard::Repeated => false,
        };
        match is_uplink {
            true => Self::Uplink,
            false => Self::Heard,
        }
    }
}

/// Whether the rest of a notification came.
fn is_fetched(occurred: &[Occurrence]) -> bool {
    let did = |is_it: fn(&What) -> bool| occurred.iter().any(|it| is_it(&it.what));
    did(|what| matches!(what, What::Ended(occurrence::Ending::Success)))
        && did(|what| matches!(what, What::Notified(news) if *news != News::Excessive))
}

/// What a machine took before a step.
#[derive(Clone, Debug)]
pub(crate) struct Took {
    pub(crate) on: Occasion,
    /// What it took a datagram for.
    pub(crate) heard: Option<Heard>,
    /// What a message may be the answer to.
    pub(crate) meets: Option<Met>,
    /// Where a datagram came from.
    pub(crate) from: Option<Peer>,
    /// Bare bytes, in so many datagrams.
    pub(crate) bare: Vec<Vec<u8>>,
    /// Whether it came from an address of several devices.
    pub(crate) is_ambiguous: bool,
}

impl Took {
    /// Nothing was heard.
    pub(super) const NOTHING: Self = Self {
        on: Occasion::Other,
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
