//! What an arbiter wants done: the closed list, in the order it was decided.

use std::ops::RangeInclusive;

use crate::admin_log::entry::Entry;
use crate::arbiter::input::{DeviceInput, DeviceReply};
use crate::device::record::RestoredDevice;
use crate::dispatch::DropReason;
use crate::dispatch::router::{ForwardedDatagram, RouteHint};
use crate::dispatch::shard_map::ArbiterId;
use crate::event::Event;
use crate::ids::{DeviceKey, Endpoint};
use crate::peer::{Peer, PeerIdentity};
use crate::supervision::Unserved;
use crate::supervision::{ActorFailure, Generation, Verdict};

/// What the shell of an arbiter performs. `H` reaches an actor, `R` is how a question is answered.
#[derive(Debug)]
pub enum ArbiterEffect<H, R> {
    /// Ask the store, and give its answer to the call named with each question.
    Lookup(StoreLookup),
    /// Start the actor of a device, then call `handle_spawned`.
    Spawn {
        /// The device.
        key: DeviceKey,
        /// The number of this actor.
        generation: Generation,
        /// What the store has of the device.
        restored: Box<RestoredDevice>,
    },
    /// Put an input into the mailbox of a device's actor. One that does not take it goes to
    /// `handle_undelivered`.
    Deliver(DeviceKey, DeviceInput<R>),
    /// Let go of a device's actor; what is in its mailbox it still handles.
    Release(DeviceKey, H),
    /// Hand a datagram to the arbiter that its device belongs to.
    Forward(ArbiterId, ForwardedDatagram),
    /// Tell another arbiter where the device behind a peer belongs.
    SendRouteHint(RouteHint),
    /// Send a datagram.
    Send(Peer, Vec<u8>),
    /// Nothing more becomes of a datagram, which had this number.
    Drop(u64, DropReason),
    /// Answer a question that no device was given.
    Reply(R, Result<DeviceReply, Unserved>),
    /// Tell the operator of an actor that failed.
    Failed(DeviceKey, ActorFailure, Verdict),
    /// Add an entry to the administration log.
    Log(Box<Entry>, Option<Box<Event>>),
    /// Say how far the start has come.
    Progress(StartupProgress),
}

/// A question to the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreLookup {
    /// Which device has an endpoint name? For `handle_found`.
    Endpoint(LookupId, Endpoint),
    /// Which device has a key that begins so? For `handle_found`.
    Location(LookupId, [u8; 8]),
    /// Which devices have this identity? For `handle_identity`.
    Identity(PeerIdentity),
    /// What is needed to restore a device? For `handle_restored`.
    Device(DeviceKey),
    /// What is needed to restore so many devices of these keys? For `handle_page`.
    Page(RangeInclusive<DeviceKey>, u32),
    /// Who is a device that is parked? For `handle_parked`.
    Parked(DeviceKey),
}

/// Names a question to the store whose datagram waits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LookupId(pub(super) u64);

/// How far an arbiter has come with restoring its devices at a start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartupProgress {
    /// Page by page.
    Underway {
        /// So many devices were restored.
        restored: u64,
        /// Which part of the keys was read, from 0 to 1.
        part: f64,
    },
    /// Every device was restored.
    Restored {
        /// So many devices were.
        restored: u64,
        /// It took so long.
        took_ms: i64,
    },
    /// Every restored device said where it is: a peer that is unknown now is nobody's.
    Settled,
}
