//! The effects of an arbiter: a closed list, in the order of the decisions.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use crate::admin_log::entry::Entry;
use crate::arbiter::admission::CustomerSlot;
use crate::arbiter::input::{DeviceInput, DeviceReply};
use crate::device::record::RestoredDevice;
use crate::dispatch::DropReason;
use crate::dispatch::router::{ForwardedDatagram, RouteHint};
use crate::dispatch::shard_map::ArbiterId;
use crate::event::Event;
use crate::firmware::download::ImageRequest;
use crate::ids::{DeviceKey, Endpoint};
use crate::peer::Peer;
use crate::supervision::Unserved;
use crate::supervision::{ActorFailure, Generation, Verdict};

/// An effect for the shell of an arbiter. `H` is the handle of an actor, `R` where a command is
/// answered.
#[derive(Debug)]
pub enum ArbiterEffect<H, R> {
    /// Query the store, and give the result to the call named with each look-up.
    Lookup(StoreLookup),
    /// Start the actor of a device, then call `handle_spawned`.
    Spawn {
        /// The device.
        key: DeviceKey,
        /// The number of the actor.
        generation: Generation,
        /// The customer of the device, for `handle_spawned`.
        customer: CustomerSlot,
        /// The stored state of the device.
        restored: Box<RestoredDevice>,
    },
    /// Put an input into the mailbox of a device's actor. An input that does not fit goes to
    /// `handle_undelivered`.
    Deliver(DeviceKey, DeviceInput<R>),
    /// Drop the handle of a device's actor, which still handles what is in its mailbox.
    Release(DeviceKey, H),
    /// Forward a datagram to the arbiter that owns its device.
    Forward(ArbiterId, ForwardedDatagram),
    /// Tell another arbiter which arbiter owns the device at a peer.
    SendRouteHint(RouteHint),
    /// Tell the arbiter that received a datagram that its sender is no known device, for
    /// `note_stranger`.
    TellOfStranger(ArbiterId, Peer),
    /// Read the block of an image that a device downloads, for `handle_image_read`.
    ReadImage(Box<ImageRequest>),
    /// Send a datagram.
    Send(Peer, Vec<u8>),
    /// Answer a message that a device sent from this address over a security association that this
    /// arbiter has.
    SendSecured(DeviceKey, SocketAddr, Vec<u8>),
    /// The datagram with this number is dropped.
    Drop(u64, DropReason),
    /// Answer a command that was given to no device.
    Reply(R, Result<DeviceReply, Unserved>),
    /// Report a failed actor to the operator.
    Failed(DeviceKey, ActorFailure, Verdict),
    /// Add an entry to the administration log.
    Log(Box<Entry>, Option<Box<Event>>),
    /// Report the progress of the start.
    Progress(StartupProgress),
}

/// A query to the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StoreLookup {
    /// Which device has an endpoint name? For `handle_found`.
    Endpoint(LookupId, Endpoint),
    /// Which device has a key with this prefix? For `handle_found`.
    Location(LookupId, [u8; 8]),
    /// Which devices have this address? For `handle_address`.
    Address(IpAddr),
    /// What is a device restored from? For `handle_restored`.
    Device(DeviceKey),
    /// What are the next devices of this key range restored from, this many at most? For
    /// `handle_page`.
    Page(RangeInclusive<DeviceKey>, u32),
    /// What is the profile of a parked device? For `handle_parked`.
    Parked(DeviceKey),
}

/// The id of a look-up for which a datagram waits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LookupId(pub(super) u64);

/// The progress of an arbiter in restoring its devices at a start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartupProgress {
    /// Page by page.
    Underway {
        /// Devices restored so far.
        restored: u64,
        /// The part of the key range that was read, from 0 to 1.
        part: f64,
    },
    /// Every device was restored.
    Restored {
        /// Devices restored.
        restored: u64,
        /// How long it took.
        took_ms: i64,
    },
}
