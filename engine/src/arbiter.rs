//! What does an arbiter do about its inputs? It decides which device a datagram is for, and which
//! devices are in memory, restored, unloaded or parked.
//!
//! [`Arbiter`] decides everything for one arbiter. It is given inputs together with the
//! [`Conditions`] at that time, and leaves [`ArbiterEffect`]s, which a shell performs in order. The
//! result of performing an effect comes back as a further input. `next_timeout` says when
//! `handle_timeout` is due. The step of a single device is up to [`cell::DeviceCell`].
//!
//! ```text
//!                     restore                spawn
//!  (not in memory) -----------> Restoring -----------> Running -- idle, removed -> (not in memory)
//!        ^                          | ^                   |
//!        |     the store fails      | |     panicked      |
//!        +--------------------------+ +-------------------+---> panicked too often: Parked
//!        |          a step was not saved                  |
//!        +------------------------------------------------+   restored a little later
//! ```

pub mod admission;
pub mod cell;
mod deadlines;
pub mod effect;
pub mod input;
mod pending_lookups;
mod startup;
mod table;
mod unfinished_bodies;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::admin_log::entry::{DeviceSighting, Entry};
use crate::datagram::{Inbound, Restoration};
use crate::device::identity::Identity;
use crate::device::record::RestoredDevice;
use crate::dispatch::address_queues::{self, Enqueued, together};
use crate::dispatch::peer_table::PeerBinding;
use crate::dispatch::router::{ForwardedDatagram, RouteDecision, RouteHint, Router};
use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::dispatch::{self, Classified, DevicesAtAddress, DropReason, RateScope};
use crate::event::Event;
use crate::firmware::download::{ImageBlock, ImageRequest};
use crate::ids::DeviceKey;
use crate::known_devices::{DeviceMark, KnownDevices};
use crate::limits::{DOWNLOADS_MAX, INPUTS_MAX, LOOKUPS_MAX, STORE_RETRY_MS, UNFINISHED_BYTES_MAX};
use crate::moment::{Moment, Timestamp};
use crate::peer::{AssociationId, Peer, Transport};
use crate::profile::Profile;
use crate::strangers::{Stranger, StrangerReport, Strangers};
use crate::supervision::{ActorFailure, Child, Generation, Supervisor, Unserved, Verdict};

use admission::{Admission, CustomerSlot, RateLimits, StrangerHandling};
use deadlines::Deadlines;
use effect::{ArbiterEffect, LookupId, StoreLookup};
use input::{
    ActorExit, Conditions, DeviceCommand, DeviceInput, DeviceReply, Origin, PendingCommand,
    Received, StartupPage, StoreUnavailable,
};
use pending_lookups::PendingLookups;
use startup::Startup;
use table::{DeviceTable, Mailbox};
use unfinished_bodies::UnfinishedBodies;

/// Devices that are woken in one turn; after that, datagrams and commands get their turn.
const WAKES_PER_TURN: usize = 256;

/// When a device is due and its mailbox is full, the timeout is delivered again after this time.
const CROWDED_RETRY_MS: i64 = 100;

/// How long data from an address waits after a look-up of that address, so that the next look-up
/// covers all of it: about as long as a commit takes.
const ADDRESS_PAUSE_MS: i64 = 4;

/// How long after the last page all its devices have announced their peers: an actor does so when
/// it starts, in the next turn of its arbiter.
const SETTLED_AFTER_MS: i64 = 1_000;

/// The machine of an arbiter. `H` is the handle of a device's actor, `R` where a command is
/// answered.
#[derive(Debug)]
pub struct Arbiter<H, R> {
    keys: RangeInclusive<DeviceKey>,
    limits: ArbiterLimits,
    router: Router,
    admission: Admission,
    known_devices: Arc<KnownDevices>,
    devices: DeviceTable<H, R>,
    supervisor: Supervisor<DeviceKey>,
    pending_lookups: PendingLookups,
    strangers: Strangers,
    unfinished_bodies: UnfinishedBodies,
    /// Blocks of images that are being read.
    downloads: usize,
    deadlines: Deadlines,
    timers: BTreeSet<(Timestamp, Timer)>,
    /// The start, until every device is restored.
    startup: Option<Startup>,
    /// Devices that the start has left to a restoration on demand, or whose actors failed: they may
    /// not be restored, and their peers not be known.
    left_out: HashSet<DeviceKey>,
    /// A stop began: no device is woken, and none is restored except on demand.
    is_quiet: bool,
}

/// How much may wait in an arbiter.
#[derive(Clone, Copy, Debug)]
pub struct ArbiterLimits {
    /// Datagrams that wait for a look-up of their device; more are answered 5.03.
    pub lookups_max: usize,
    /// Inputs that wait for a device that is being restored; more are refused.
    pub inputs_max: usize,
    /// The bytes of all bodies received in part; beyond it the oldest is dropped.
    pub unfinished_bytes_max: usize,
    /// Data that waits for a look-up of an address.
    pub address_queues: address_queues::AddressQueueLimits,
    /// What a sender may send.
    pub rates: RateLimits,
}

impl ArbiterLimits {
    /// The part of each of several arbiters, of what all of them hold together.
    pub fn shared_among(self, arbiters: usize) -> Self {
        Self {
            unfinished_bytes_max: self.unfinished_bytes_max / arbiters.max(1),
            ..self
        }
    }
}

impl Default for ArbiterLimits {
    fn default() -> Self {
        Self {
            lookups_max: LOOKUPS_MAX,
            inputs_max: INPUTS_MAX,
            unfinished_bytes_max: UNFINISHED_BYTES_MAX,
            address_queues: address_queues::AddressQueueLimits::default(),
            rates: RateLimits::default(),
        }
    }
}

/// What an arbiter does after a delay.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Timer {
    /// Look up again which device has an address.
    Address(IpAddr),
    /// Drop the oldest unfinished bodies.
    Unfinished,
    /// Restore a device.
    Device(DeviceKey),
    /// Read a page of the start again.
    Page(DeviceKey),
    /// The restored devices have announced their peers, unless some are still being restored.
    Settled,
}

/// The effects for the shell, in order.
pub type ArbiterEffects<H, R> = VecDeque<ArbiterEffect<H, R>>;

impl<H, R> Arbiter<H, R> {
    /// An arbiter with this id, without devices.
    pub fn new(
        here: ArbiterId,
        shard_map: ShardMap,
        bounds: ArbiterLimits,
        known_devices: Arc<KnownDevices>,
    ) -> Self {
        Self {
            keys: shard_map.keys(here),
            limits: bounds,
            router: Router::new(here, shard_map),
            admission: Admission::within(bounds.rates, Arc::clone(&known_devices)),
            known_devices,
            devices: DeviceTable::default(),
            supervisor: Supervisor::default(),
            pending_lookups: PendingLookups::within(bounds.address_queues),
            strangers: Strangers::default(),
            unfinished_bodies: UnfinishedBodies::within(bounds.unfinished_bytes_max),
            downloads: 0,
            deadlines: Deadlines::default(),
            timers: BTreeSet::new(),
            startup: None,
            left_out: HashSet::new(),
            is_quiet: false,
        }
    }

    /// Begins to restore, page by page, every device that has a registration or pending work.
    pub fn start(&mut self, now: Timestamp, out: &mut ArbiterEffects<H, R>) {
        self.startup = Some(Startup::begun_at(now));
        self.read_page(*self.keys.start(), out);
    }

    /// Wakes no more devices, and restores none except on demand; commands are still answered. A
    /// device that is not known here may be restored at another node from now on.
    pub fn quiesce(&mut self) {
        self.is_quiet = true;
        self.startup = None;
        self.router.note_restoration(Restoration::UnderWay);
        self.deadlines.clear();
    }

    /// Removes all devices from memory, for whoever owns them next. What waits for one is refused.
    pub fn unload_all(&mut self, out: &mut ArbiterEffects<H, R>) {
        let keys: Vec<DeviceKey> = self.devices.iter().map(|(key, _)| key).collect();
        for key in keys {
            match self.devices.remove(key) {
                Some(Child::Restoring(waiting)) => refuse_all(waiting, Unserved::Busy, out),
                before => release(key, before, out),
            }
        }
    }

    /// Whether a datagram from a socket is to be decoded and handled. If not, it is dropped: its
    /// sender sends too much.
    pub fn admit(&mut self, now: Timestamp, peer: Peer) -> Result<(), DropReason> {
        let router = &self.router;
        let admitted = self.admission.admit(now, peer, || router.knows(peer));
        admitted.map_err(DropReason::OverRate)
    }

    /// Handles a datagram from a socket.
    pub fn handle_datagram(
        &mut self,
        at: &Conditions,
        received: Received,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Received { origin, classified } = received;
        self.dispatch(at, origin, classified, out);
    }

    /// Handles a datagram that another arbiter received.
    pub fn handle_forwarded(
        &mut self,
        at: &Conditions,
        forwarded: ForwardedDatagram,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let (route, hint) = self.router.route_forwarded(forwarded);
        self.follow(at, route, out);
        out.extend(hint.map(ArbiterEffect::SendRouteHint));
    }

    /// Takes a route hint: which arbiter owns the device at a peer.
    pub fn learn(&mut self, hint: RouteHint) {
        self.router.note_hint(hint);
    }

    /// Takes the report of a device's actor that a datagram came from somebody else, who claimed to
    /// be the device.
    pub fn handle_impostor(
        &mut self,
        now: Timestamp,
        (number, peer): (u64, Peer),
        out: &mut ArbiterEffects<H, R>,
    ) {
        self.count_stranger(now, Origin::of_stranger(number, peer), out);
    }

    /// Takes from another arbiter that the sender of a datagram that came here is no known device.
    pub fn note_stranger(&mut self, now: Timestamp, peer: Peer) {
        self.admission.note_stranger(now, peer);
    }

    /// Gives a command to a device.
    pub fn ask(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        pending: Box<PendingCommand<R>>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        self.hand(now, key, DeviceInput::Command(pending), out);
    }

    /// Takes the result of a look-up by endpoint name or location.
    pub fn handle_found(
        &mut self,
        at: &Conditions,
        look_up: LookupId,
        found: Result<Option<DeviceKey>, StoreUnavailable>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Some(datagram) = self.pending_lookups.take(look_up) else {
            return;
        };
        match found {
            Ok(Some(key)) => self.route_to(at, key, Inbound::Message(datagram), out),
            Ok(None) => {
                let origin = Origin::of_datagram(&datagram);
                self.dispatch(at, origin, dispatch::unknown_name(datagram), out);
            }
            Err(StoreUnavailable) => {
                let put_off = dispatch::overloaded(&datagram);
                self.dispatch(at, Origin::of_datagram(&datagram), put_off, out);
            }
        }
    }

    /// Takes the result of a look-up by address: which devices have the address of a sender of
    /// data.
    pub fn handle_address(
        &mut self,
        at: &Conditions,
        address: IpAddr,
        found: Result<DevicesAtAddress, StoreUnavailable>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let waiting = self.pending_lookups.address_queues.take_asked(address);
        match found {
            Ok(DevicesAtAddress::One(key)) => {
                for arrival in together(waiting) {
                    self.route_to(at, key, arrival, out);
                }
            }
            Ok(DevicesAtAddress::Several(key)) => {
                for arrival in waiting {
                    let (origin, sender) =
                        (Origin::of(&arrival), Stranger::of(&arrival, None, at.now));
                    match dispatch::ambiguous(arrival) {
                        Ok(arrival) => self.route_to(at, key, arrival, out),
                        Err(reason) => {
                            self.strangers.note(sender);
                            self.dispatch(at, origin, Classified::Ignored(reason), out);
                        }
                    }
                }
            }
            Ok(DevicesAtAddress::Nobody) => {
                for arrival in waiting {
                    self.refuse_stranger(at, arrival, out);
                }
            }
            Err(StoreUnavailable) => {
                for arrival in waiting {
                    let origin = Origin::of(&arrival);
                    self.dispatch(at, origin, Classified::ToAddress(arrival).defer(), out);
                }
            }
        }
        if self.pending_lookups.address_queues.has(address) {
            self.set_timer(at.now, ADDRESS_PAUSE_MS, Timer::Address(address));
        }
    }

    /// Takes the block of an image that a device downloads; none if the image is not offered to it.
    pub fn handle_image_read(
        &mut self,
        at: &Conditions,
        request: &ImageRequest,
        found: Result<Option<ImageBlock>, StoreUnavailable>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        self.downloads = self.downloads.saturating_sub(1);
        let origin = Origin::of_image_request(request);
        match found {
            Ok(Some(block)) => {
                let response = request.response(&block);
                out.extend(response.map(|response| sending(origin, response.encode())));
            }
            Ok(None) => self.dispatch(at, origin, dispatch::unknown_image(request), out),
            Err(StoreUnavailable) => {
                self.dispatch(at, origin, dispatch::overloaded(&request.datagram), out);
            }
        }
    }

    /// Takes the stored state of a device that is being restored.
    pub fn handle_restored(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        found: Result<Option<RestoredDevice>, StoreUnavailable>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Some(Child::Restoring(waiting)) = self.devices.slot(key) else {
            return;
        };
        match found {
            Ok(Some(restored)) => self.spawn(key, restored, out),
            Ok(None) => {
                let waiting = std::mem::take(waiting);
                self.unload(key, out);
                refuse_all(waiting, Unserved::Unknown, out);
            }
            Err(StoreUnavailable) => {
                let waiting = std::mem::take(waiting);
                self.restore_later(now, key, out);
                refuse_all(waiting, Unserved::Failed, out);
            }
        }
    }

    /// Takes the page of the start that begins with this device.
    pub fn handle_page(
        &mut self,
        now: Timestamp,
        first: DeviceKey,
        page: Result<StartupPage, StoreUnavailable>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Ok(page) = page else {
            return self.set_timer(now, STORE_RETRY_MS, Timer::Page(first));
        };
        for (key, restored) in page.devices {
            let Some(startup) = &mut self.startup else {
                return;
            };
            // The state of a device that was loaded since the page was requested is newer than the
            // page.
            if startup.counts(key) && self.devices.get(key).is_none() {
                self.load(key, out);
                self.spawn(key, restored, out);
            } else if self.is_read(key) || self.has_timer(Timer::Device(key)) {
                self.left_out.insert(key);
            }
        }
        self.go_on_starting(now, page.next, out);
    }

    /// Takes the handle of a new actor, and delivers the inputs that wait for it.
    pub fn handle_spawned(
        &mut self,
        key: DeviceKey,
        (generation, customer): (Generation, CustomerSlot),
        handle: H,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let handle = Mailbox {
            handle,
            customer,
            delivered: 0,
        };
        let running = Child::Running { handle, generation };
        if let Some(Child::Restoring(waiting)) = self.devices.put(key, running) {
            for input in waiting {
                self.deliver(key, input, out);
            }
        }
    }

    /// Takes back an input that did not fit into the mailbox of an actor.
    pub fn handle_undelivered(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        input: DeviceInput<R>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        if let Some(Child::Running { handle, .. }) = self.devices.slot(key) {
            handle.delivered = handle.delivered.wrapping_sub(1);
        }
        self.refuse(now, key, input, out);
    }

    /// Takes the report of an actor that ends, or could.
    pub fn handle_ended(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        (generation, ending): (Generation, ActorExit),
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Some(loaded) = self
            .devices
            .get(key)
            .filter(|it| it.is_running_as(generation))
        else {
            return;
        };
        match (ending, loaded) {
            // It is not idle if an input is on its way to it.
            (ActorExit::Idle { handled }, Child::Running { handle, .. })
                if handle.delivered != handled => {}
            (ActorExit::Idle { .. }, _) => self.unload(key, out),
            (ActorExit::Retired, _) => {
                self.router.forget_association(key);
                self.unload(key, out);
            }
            (ActorExit::Failed(failure), _) => {
                let verdict = self.supervisor.judge(now, key, failure);
                out.push_back(ArbiterEffect::Failed(key, failure, verdict));
                match (verdict, failure) {
                    (Verdict::Restore, ActorFailure::Panicked) => self.restore(key, out),
                    (Verdict::Restore, ActorFailure::Unsaved) => self.restore_later(now, key, out),
                    (Verdict::Park, _) => self.park(key, out),
                }
                if verdict == Verdict::Restore {
                    self.leave_out(now, key);
                }
            }
        }
    }

    /// Takes the profile of a parked device, to log that the device is parked.
    pub fn handle_parked(
        &mut self,
        m: &mut Moment,
        profile: &Profile,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let (key, identity) = (profile.key(), &Identity::of(profile));
        let sighting = DeviceSighting {
            key,
            identity,
            at: None,
        };
        let entry = Entry::device_parked(m, sighting);
        let event = Event::of_entry(m, &entry, identity).map(Box::new);
        out.push_back(ArbiterEffect::Log(Box::new(entry), event));
    }

    /// Does what is due, but only a bounded part at a time.
    pub fn handle_timeout(&mut self, now: Timestamp, out: &mut ArbiterEffects<H, R>) {
        while let Some((at, timer)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            match timer {
                Timer::Address(address) => self.query_address(address, out),
                Timer::Device(key) if self.devices.get(key).is_none() => self.restore(key, out),
                Timer::Device(_) => {}
                Timer::Unfinished => self.drop_unfinished(out),
                Timer::Page(first) => self.read_page(first, out),
                Timer::Settled => self.settle(now),
            }
        }
        for _ in 0..WAKES_PER_TURN {
            match self.deadlines.take_due(now) {
                Some(key) => self.deliver(key, DeviceInput::Timeout, out),
                None => return,
            }
        }
    }

    /// When `handle_timeout` is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(at, _)| *at);
        [timer, self.deadlines.next()].into_iter().flatten().min()
    }
}

/// What the actors of devices call while they handle inputs.
impl<H, R> Arbiter<H, R> {
    /// The handle of a device's actor, if it runs.
    pub fn handle_of(&self, key: DeviceKey) -> Option<&H> {
        match self.devices.get(key)? {
            Child::Running { handle, .. } => Some(&handle.handle),
            Child::Restoring(_) | Child::Parked => None,
        }
    }

    /// The arbiter over whose session a device was last heard, if it was heard over one.
    pub fn association_home(&self, key: DeviceKey) -> Option<ArbiterId> {
        self.router.association_home(key)
    }

    /// The handle of the actor of the device with this key prefix, if it runs.
    pub fn handle_at(&self, prefix: [u8; 8]) -> Option<&H> {
        match self.devices.at(prefix)? {
            (_, Child::Running { handle, .. }) => Some(&handle.handle),
            (_, Child::Restoring(_) | Child::Parked) => None,
        }
    }

    /// Takes a change of the peer that a device's datagrams come from.
    pub fn rebind(
        &mut self,
        key: DeviceKey,
        (from, to): (Option<Peer>, Option<Peer>),
        binding: &mut PeerBinding,
    ) {
        self.router.rebind(key, from, to, binding);
    }

    /// Removes the exchange and the unfinished bodies of a device whose actor ends during them.
    pub fn abandon(&mut self, key: DeviceKey, binding: &mut PeerBinding) {
        self.router.abandon(key, binding);
        self.unfinished_bodies.note(key, 0);
    }

    /// Takes how many bytes the bodies received in part from a device occupy now. If those of all
    /// devices are too many, the oldest are dropped at the next timeout, which is due at once.
    pub fn note_unfinished(&mut self, now: Timestamp, key: DeviceKey, bytes: usize) {
        self.unfinished_bodies.note(key, bytes);
        if self.unfinished_bodies.are_too_many() {
            self.set_timer(now, 0, Timer::Unfinished);
        }
    }

    /// Sets the deadline of a device.
    pub fn arm(&mut self, at: Timestamp, key: DeviceKey) {
        if !self.is_quiet {
            self.deadlines.arm(at, key);
        }
    }

    /// Removes the deadline of a device.
    pub fn disarm(&mut self, at: Timestamp, key: DeviceKey) {
        self.deadlines.disarm(at, key);
    }

    /// The senders that are no known device, the latest first.
    pub fn strangers(&self) -> Vec<Stranger> {
        self.strangers.list()
    }

    /// Takes what was not reported yet of senders that are no known device.
    pub fn take_stranger_report(&mut self) -> Option<StrangerReport> {
        self.strangers.take_report()
    }

    /// Whether devices are still being restored since the start.
    pub fn is_starting(&self) -> bool {
        self.startup.is_some()
    }

    /// Whether a device is in memory, or will be restored by a timer.
    pub fn owns(&self, key: DeviceKey) -> bool {
        self.devices.get(key).is_some() || self.has_timer(Timer::Device(key))
    }

    /// The number of datagrams that wait for a look-up.
    pub fn looked_up(&self) -> usize {
        self.pending_lookups.waiting()
    }

    /// The number of datagrams that wait here for anything.
    pub fn datagrams_held(&self) -> usize {
        let waiting = self.devices.iter().filter_map(|(_, loaded)| match loaded {
            Child::Restoring(waiting) => Some(waiting),
            Child::Running { .. } | Child::Parked => None,
        });
        let datagrams = waiting.flatten().map(|input| match input {
            DeviceInput::Datagram(arrival) => arrival.numbers().count(),
            DeviceInput::Timeout | DeviceInput::DropUnfinished | DeviceInput::Command(_) => 0,
        });
        self.looked_up() + datagrams.sum::<usize>()
    }
}

impl<H, R> Arbiter<H, R> {
    fn dispatch(
        &mut self,
        at: &Conditions,
        origin: Origin,
        classified: Classified,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let classified = match self.is_overloaded(at) {
            true => classified.defer(),
            false => classified,
        };
        match classified {
            Classified::ToEndpoint(endpoint, datagram)
                if !self.is_known(DeviceMark::Endpoint(endpoint.as_str())) =>
            {
                self.look_up_address(at, Inbound::Message(datagram), out);
            }
            Classified::ToLocation(location, datagram)
                if !self.is_known(DeviceMark::Key(location.device)) =>
            {
                self.look_up_address(at, Inbound::Message(datagram), out);
            }
            Classified::ToEndpoint(endpoint, datagram) => {
                if let Err(scope) = self.admit_handling(StrangerHandling::LookUp, at, datagram.peer)
                {
                    return out.push_back(over_rate(origin.number, scope));
                }
                let look_up = self.pending_lookups.endpoint(endpoint, datagram);
                out.push_back(ArbiterEffect::Lookup(look_up));
            }
            Classified::ToLocation(location, datagram) => {
                let route = self.router.to_location(location, datagram);
                self.follow(at, route, out);
            }
            Classified::ToPeer(datagram) => {
                let route = self.router.to_peer(datagram);
                self.follow(at, route, out);
            }
            Classified::ToAddress(arrival) => self.look_up_address(at, arrival, out),
            Classified::ToImage(request) => self.read_image(at, request, out),
            Classified::ToDevice(key, arrival) => self.route_to(at, key, arrival, out),
            Classified::Answered { datagram, reason } => {
                if reason.is_of_stranger()
                    && origin.device.is_none()
                    && let Err(scope) =
                        self.admit_handling(StrangerHandling::Answer, at, origin.peer)
                {
                    return out.push_back(over_rate(origin.number, scope));
                }
                self.answer(at, origin, (datagram, reason), out);
            }
            Classified::Ignored(reason) => {
                self.note_if_stranger(at, origin, reason, out);
                out.push_back(ArbiterEffect::Drop(origin.number, reason))
            }
        }
    }

    /// Has the block of an image read. What a sender at an address without a device asks for is
    /// looked up within the rate of all of them.
    fn read_image(
        &mut self,
        at: &Conditions,
        request: Box<ImageRequest>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let origin = Origin::of_image_request(&request);
        if self.downloads >= DOWNLOADS_MAX {
            return self.dispatch(at, origin, dispatch::overloaded(&request.datagram), out);
        }
        if origin.device.is_none()
            && let Err(scope) = self.admit_handling(StrangerHandling::LookUp, at, origin.peer)
        {
            return out.push_back(over_rate(origin.number, scope));
        }
        self.downloads += 1;
        out.push_back(ArbiterEffect::ReadImage(request));
    }

    fn is_known(&self, mark: DeviceMark<'_>) -> bool {
        self.known_devices.may_have(mark)
    }

    fn admit_handling(
        &mut self,
        handling: StrangerHandling,
        at: &Conditions,
        peer: Peer,
    ) -> Result<(), RateScope> {
        let router = &self.router;
        self.admission
            .admit_handling(handling, at.now, peer, || router.knows(peer))
    }

    fn answer(
        &mut self,
        at: &Conditions,
        origin: Origin,
        (datagram, reason): (Vec<u8>, DropReason),
        out: &mut ArbiterEffects<H, R>,
    ) {
        self.note_if_stranger(at, origin, reason, out);
        out.push_back(ArbiterEffect::Drop(origin.number, reason));
        out.push_back(sending(origin, datagram));
    }

    /// Counts a refusal against its sender, if that is no known device.
    fn note_if_stranger(
        &mut self,
        at: &Conditions,
        origin: Origin,
        reason: DropReason,
        out: &mut ArbiterEffects<H, R>,
    ) {
        if reason.is_of_stranger() && origin.device.is_none() {
            self.count_stranger(at.now, origin, out);
        }
    }

    /// Counts a refusal where the datagram was received.
    fn count_stranger(&mut self, now: Timestamp, origin: Origin, out: &mut ArbiterEffects<H, R>) {
        let Origin { number, peer, .. } = origin;
        match ArbiterId::receiver_of(number) {
            received_by if received_by == self.router.arbiter() => self.note_stranger(now, peer),
            received_by => out.push_back(ArbiterEffect::TellOfStranger(received_by, peer)),
        }
    }

    /// Refuses a message for which there is no device, unless it may be of one that is not restored
    /// yet.
    fn refuse_stranger(
        &mut self,
        at: &Conditions,
        arrival: Inbound,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let origin = Origin::of(&arrival);
        if let Err(scope) = self.admit_handling(StrangerHandling::Answer, at, origin.peer) {
            return out.push_back(over_rate(origin.number, scope));
        }
        let refusal = dispatch::unknown_address(&arrival);
        if !matches!(refusal, Classified::Ignored(DropReason::NotRestored)) {
            let answer = refusal.answer();
            self.strangers.note(Stranger::of(&arrival, answer, at.now));
        }
        if let Classified::Answered { datagram, reason } = refusal {
            self.answer(at, origin, (datagram, reason), out);
        } else {
            self.dispatch(at, origin, refusal, out);
        }
    }

    fn is_overloaded(&self, at: &Conditions) -> bool {
        at.is_store_full || self.looked_up() >= self.limits.lookups_max
    }

    fn follow(&mut self, at: &Conditions, route: RouteDecision, out: &mut ArbiterEffects<H, R>) {
        match route {
            RouteDecision::Device(key, arrival) => {
                self.router.note_association(key, &arrival);
                self.hand(at.now, key, DeviceInput::Datagram(Box::new(arrival)), out);
            }
            RouteDecision::Location(location, datagram) => match self.devices.at(location.device) {
                Some((key, _)) => {
                    let arrival = Box::new(Inbound::Message(datagram));
                    self.hand(at.now, key, DeviceInput::Datagram(arrival), out);
                }
                None => {
                    if let Err(scope) =
                        self.admit_handling(StrangerHandling::LookUp, at, datagram.peer)
                    {
                        return out.push_back(over_rate(datagram.number, scope));
                    }
                    let look_up = self.pending_lookups.location(location, datagram);
                    out.push_back(ArbiterEffect::Lookup(look_up));
                }
            },
            RouteDecision::Forward(to, forwarded) => {
                out.push_back(ArbiterEffect::Forward(to, forwarded))
            }
            RouteDecision::Unknown(datagram) => {
                let origin = Origin::of_datagram(&datagram);
                let unknown = dispatch::unknown_peer(datagram);
                self.dispatch(at, origin, unknown, out);
            }
        }
    }

    fn route_to(
        &mut self,
        at: &Conditions,
        key: DeviceKey,
        arrival: Inbound,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let route = self.router.to_device(key, arrival);
        self.follow(at, route, out);
    }

    fn look_up_address(
        &mut self,
        at: &Conditions,
        arrival: Inbound,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let origin = Origin::of(&arrival);
        let address = origin.peer.ip();
        if !self.is_known(DeviceMark::Address(address)) {
            return self.refuse_stranger(at, arrival, out);
        }
        match self.pending_lookups.address_queues.enqueue(arrival) {
            Enqueued::First => self.query_address(address, out),
            Enqueued::Queued => {}
            Enqueued::Full(arrival) => {
                self.dispatch(at, origin, Classified::ToAddress(arrival).defer(), out);
            }
        }
    }

    fn query_address(&mut self, address: IpAddr, out: &mut ArbiterEffects<H, R>) {
        self.pending_lookups.address_queues.ask(address);
        out.push_back(ArbiterEffect::Lookup(StoreLookup::Address(address)));
    }

    /// Gives an input to a device, which is restored first if necessary.
    fn hand(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        input: DeviceInput<R>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        if self.devices.get(key).is_none() {
            self.restore(key, out);
        }
        match self.devices.slot(key) {
            Some(Child::Restoring(waiting)) if waiting.len() < self.limits.inputs_max => {
                waiting.push(input);
            }
            Some(Child::Running { handle, .. }) => {
                let customer = handle.customer;
                match self.admit_input(now, customer, &input) {
                    Ok(()) => self.deliver(key, input, out),
                    Err(scope) => drop_over_rate(input, scope, out),
                }
            }
            Some(Child::Restoring(_) | Child::Parked) | None => self.refuse(now, key, input, out),
        }
    }

    /// Whether the customer of a device may have an input handled. Answers are those to requests of
    /// the customer, which are counted elsewhere.
    fn admit_input(
        &mut self,
        now: Timestamp,
        customer: CustomerSlot,
        input: &DeviceInput<R>,
    ) -> Result<(), RateScope> {
        match input {
            DeviceInput::Datagram(arrival) if arrival.is_uplink() => {
                self.admission
                    .admit_of(customer, arrival.has_payload(), now)
            }
            DeviceInput::Datagram(_)
            | DeviceInput::Timeout
            | DeviceInput::DropUnfinished
            | DeviceInput::Command(_) => Ok(()),
        }
    }

    /// Has the oldest unfinished bodies dropped until the others are within the bound.
    fn drop_unfinished(&mut self, out: &mut ArbiterEffects<H, R>) {
        while let Some(key) = self.unfinished_bodies.give_up_oldest() {
            self.deliver(key, DeviceInput::DropUnfinished, out);
        }
    }

    /// Gives an input to a device that is running; only a running device has deadlines.
    fn deliver(&mut self, key: DeviceKey, input: DeviceInput<R>, out: &mut ArbiterEffects<H, R>) {
        if let Some(Child::Running { handle, .. }) = self.devices.slot(key) {
            handle.delivered = handle.delivered.wrapping_add(1);
            out.push_back(ArbiterEffect::Deliver(key, input));
        }
    }

    /// Refuses an input: the network repeats a datagram, a timeout is delivered again later, and a
    /// caller gets an error.
    fn refuse(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        input: DeviceInput<R>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        match input {
            DeviceInput::Timeout => self.arm(now.plus_ms(CROWDED_RETRY_MS), key),
            DeviceInput::DropUnfinished => {
                self.unfinished_bodies.keep(key);
                self.set_timer(now, CROWDED_RETRY_MS, Timer::Unfinished);
            }
            DeviceInput::Command(pending)
                if self.is_answered_while_parked(key, &pending.command) =>
            {
                out.push_back(ArbiterEffect::Reply(
                    pending.reply,
                    Ok(DeviceReply::ProfileRead),
                ));
            }
            DeviceInput::Datagram(_) | DeviceInput::Command(_) => {
                refuse_all(vec![input], Unserved::Busy, out)
            }
        }
    }

    /// A parked device reads its profile when it is restored.
    fn is_answered_while_parked(&self, key: DeviceKey, command: &DeviceCommand) -> bool {
        let is_parked = matches!(self.devices.get(key), Some(Child::Parked));
        is_parked && matches!(command, DeviceCommand::ReadProfile)
    }

    /// Restores a device from the store; its inputs wait until then.
    fn restore(&mut self, key: DeviceKey, out: &mut ArbiterEffects<H, R>) {
        if self.load(key, out) {
            out.push_back(ArbiterEffect::Lookup(StoreLookup::Device(key)));
        }
    }

    /// Marks a device as being restored. Returns whether there is room for it.
    fn load(&mut self, key: DeviceKey, out: &mut ArbiterEffects<H, R>) -> bool {
        let before = self.devices.put(key, Child::Restoring(Vec::new()));
        let is_loaded = before.is_some();
        release(key, before, out);
        is_loaded
    }

    fn spawn(
        &mut self,
        key: DeviceKey,
        mut restored: RestoredDevice,
        out: &mut ArbiterEffects<H, R>,
    ) {
        // Of an association the store knows the address. Its sessions end with the process.
        if let Some(peer) = &mut restored.record.peer
            && peer.transport == Transport::Coaps
        {
            let is_alive = self.router.association_home(key).is_some();
            peer.association = is_alive.then(|| AssociationId::of(key));
        }
        out.push_back(ArbiterEffect::Spawn {
            key,
            generation: self.supervisor.next_generation(),
            customer: self.admission.slot_of(&restored.profile.customer),
            restored: Box::new(restored),
        });
    }

    /// Removes a device from memory.
    fn unload(&mut self, key: DeviceKey, out: &mut ArbiterEffects<H, R>) {
        let before = self.devices.remove(key);
        release(key, before, out);
        if let Some(startup) = &mut self.startup {
            startup.note_left(key);
        }
    }

    /// Restores a device after a delay, in which the store may recover.
    fn restore_later(&mut self, now: Timestamp, key: DeviceKey, out: &mut ArbiterEffects<H, R>) {
        self.unload(key, out);
        self.set_timer(now, STORE_RETRY_MS, Timer::Device(key));
    }

    fn park(&mut self, key: DeviceKey, out: &mut ArbiterEffects<H, R>) {
        let before = self.devices.put(key, Child::Parked);
        release(key, before, out);
        out.push_back(ArbiterEffect::Lookup(StoreLookup::Parked(key)));
    }

    fn read_page(&mut self, first: DeviceKey, out: &mut ArbiterEffects<H, R>) {
        if let Some(startup) = &mut self.startup {
            let keys = first..=*self.keys.end();
            out.push_back(ArbiterEffect::Lookup(startup.query_page(keys)));
        }
    }

    fn go_on_starting(
        &mut self,
        now: Timestamp,
        next: Option<DeviceKey>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Some(startup) = &mut self.startup else {
            return;
        };
        if let Some(next) = next {
            let progress = startup.progress(next, &self.keys);
            out.push_back(ArbiterEffect::Progress(progress));
            return self.read_page(next, out);
        }
        out.push_back(ArbiterEffect::Progress(startup.restored_all(now)));
        match startup.restored() {
            0 => self.settle(now),
            // The last of them have yet to announce their peers.
            1.. => self.set_timer(now, SETTLED_AFTER_MS, Timer::Settled),
        }
        self.startup = None;
    }

    /// The actor of a device has failed: what it decided last may be stored, and its peer with it.
    fn leave_out(&mut self, now: Timestamp, key: DeviceKey) {
        self.left_out.insert(key);
        if self.router.restoration() == Restoration::Complete {
            self.router.note_restoration(Restoration::UnderWay);
            self.set_timer(now, SETTLED_AFTER_MS, Timer::Settled);
        }
    }

    /// Ends the restoration once all devices have had the time to announce their peers.
    fn settle(&mut self, now: Timestamp) {
        if self.is_quiet {
            return;
        }
        if self.left_out.is_empty() {
            return self.router.note_restoration(Restoration::Complete);
        }
        let mut left_out = std::mem::take(&mut self.left_out);
        let due = self.timers.iter().filter_map(|(_, timer)| match timer {
            Timer::Device(key) => Some(*key),
            Timer::Address(_) | Timer::Unfinished | Timer::Page(_) | Timer::Settled => None,
        });
        let due: HashSet<DeviceKey> = due.collect();
        left_out.retain(|key| due.contains(key) || self.is_read(*key));
        self.left_out = left_out;
        self.set_timer(now, SETTLED_AFTER_MS, Timer::Settled);
    }

    /// Whether a device is read from the store.
    fn is_read(&self, key: DeviceKey) -> bool {
        matches!(self.devices.get(key), Some(Child::Restoring(_)))
    }

    fn has_timer(&self, timer: Timer) -> bool {
        self.timers.iter().any(|(_, it)| *it == timer)
    }

    fn set_timer(&mut self, now: Timestamp, ms: i64, timer: Timer) {
        self.timers.insert((now.plus_ms(ms), timer));
    }
}

fn release<H, R>(
    key: DeviceKey,
    before: Option<table::Loaded<H, R>>,
    out: &mut ArbiterEffects<H, R>,
) {
    match before {
        Some(Child::Running { handle, .. }) => {
            out.push_back(ArbiterEffect::Release(key, handle.handle));
        }
        Some(Child::Restoring(_) | Child::Parked) | None => {}
    }
}

fn sending<H, R>(origin: Origin, datagram: Vec<u8>) -> ArbiterEffect<H, R> {
    match origin.device {
        Some(device) => ArbiterEffect::SendSecured(device, origin.peer.address, datagram),
        None => ArbiterEffect::Send(origin.peer, datagram),
    }
}

fn over_rate<H, R>(number: u64, scope: RateScope) -> ArbiterEffect<H, R> {
    ArbiterEffect::Drop(number, DropReason::OverRate(scope))
}

/// Drops a datagram whose sender sends too much.
fn drop_over_rate<H, R>(input: DeviceInput<R>, scope: RateScope, out: &mut ArbiterEffects<H, R>) {
    if let DeviceInput::Datagram(arrival) = input {
        out.extend(arrival.numbers().map(|number| over_rate(number, scope)));
    }
}

fn refuse_all<H, R>(inputs: Vec<DeviceInput<R>>, why: Unserved, out: &mut ArbiterEffects<H, R>) {
    let reason = match why {
        Unserved::Unknown => DropReason::UnknownLocation,
        Unserved::Busy | Unserved::Failed => DropReason::MailboxFull,
    };
    for input in inputs {
        match input {
            DeviceInput::Command(pending) => {
                out.push_back(ArbiterEffect::Reply(pending.reply, Err(why)))
            }
            DeviceInput::Datagram(arrival) => {
                let dropped = |number| ArbiterEffect::Drop(number, reason);
                out.extend(arrival.numbers().map(dropped));
            }
            DeviceInput::Timeout | DeviceInput::DropUnfinished => {}
        }
    }
}

#[cfg(test)]
mod tests;
