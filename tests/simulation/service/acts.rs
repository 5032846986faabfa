//! What does the service do to the world around it, and what becomes of what it hears?

use std::ops::RangeInclusive;

use engine::change::Batch;
use engine::device::record::Restored;
use engine::ids::DeviceKey;
use engine::moment::Timestamp;
use engine::occurrence::Heard;
use engine::peer::Peer;
use engine::registry::Fate;
use engine::registry::homes::ArbiterId;
use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::{Post, Reply};
use crate::wire::{AttemptKey, Met, Purpose};

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
    /// Ask the disk whose a datagram is.
    LookUp {
        lookup: u64,
    },
    /// The datagrams of a peer, and of no other, are to reach a device from now on.
    Rebound {
        who: usize,
        to: Option<Peer>,
    },
    /// A machine took a step, in which it sends these requests.
    Decided {
        who: usize,
        on: Occasion,
        meets: Option<Met>,
        step: u64,
        saves: Saves,
        sends: Vec<(AttemptKey, Purpose)>,
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
    Reply {
        call: u64,
        step: Option<u64>,
        reply: Reply,
    },
    /// Ask the disk what it kept of a device.
    Fetch {
        who: usize,
        fetch: u64,
    },
    RestoreSoon {
        who: usize,
    },
    /// Ask the disk who a device is.
    ReadNames {
        who: usize,
        step: u64,
    },
    /// Ask the disk for live devices among these keys.
    AskPage {
        keys: RangeInclusive<DeviceKey>,
    },
    /// The same, a little later.
    AskPageSoon {
        first: DeviceKey,
    },
    /// What a page says of a device is not used.
    PassedOver {
        who: usize,
        why: PassedOver,
    },
    /// Everybody at home here is back.
    Started,
    Wake {
        who: usize,
        at: Timestamp,
    },
    /// A device is brought back from this.
    Restored {
        who: usize,
        restored: Box<Restored>,
    },
    /// The machine of a device is no more.
    MovedOut {
        who: usize,
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
    /// Too much waits for it, or it is parked.
    NoPlace,
    /// Its actor ended before it took everything, or the disk did not give it back.
    Abandoned,
    /// It was removed.
    Unknown,
}

/// Why what a page says of a device is not used.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum PassedOver {
    /// The device is here.
    Here,
    /// It was here while the page was read.
    Left,
}

/// What a step is the answer to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Occasion {
    /// The device registered, updated, notified or sent.
    Uplink,
    /// It, or somebody in its name, said something else.
    Heard,
    /// Time or a caller.
    Other,
}

impl Occasion {
    /// What a datagram was that a machine took for this.
    pub(super) fn of(message: &Message, heard: Heard) -> Self {
        let is_about_registration = message.uri_path().next() == Some("rd");
        let tells_values = [Heard::Notification, Heard::Send].contains(&heard);
        match tells_values || (message.code == Code::POST && is_about_registration) {
            true => Self::Uplink,
            false => Self::Heard,
        }
    }
}

/// Whether a step changes something for good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Saves {
    Something,
    Nothing,
}
