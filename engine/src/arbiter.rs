//! What does an arbiter do about what it hears, is asked and is told? Which device a datagram is
//! for, which devices are in memory, which are restored, let go or parked.
//!
//! [`Arbiter`] is the only decider of an arbiter. It is given inputs with the [`Conditions`] they
//! meet, and leaves [`ArbiterEffect`]s, which a shell performs in order; what the shell learns by
//! performing them comes back as a further input. `next_timeout` says when `handle_timeout` is due.
//! The step of a single device is [`cell::DeviceCell`]'s.
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

pub mod cell;
mod deadlines;
pub mod effect;
pub mod input;
mod pending_lookups;
mod startup;
mod table;

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use crate::admin_log::entry::{DeviceSighting, Entry};
use crate::datagram::Inbound;
use crate::device::identity::Identity;
use crate::device::record::RestoredDevice;
use crate::dispatch::address_queues::{self, Enqueued, together};
use crate::dispatch::peer_table::PeerBinding;
use crate::dispatch::router::{ForwardedDatagram, RouteDecision, RouteHint, Router};
use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::dispatch::{self, Classified, DevicesAtAddress, DropReason};
use crate::event::Event;
use crate::ids::DeviceKey;
use crate::limits::{INPUTS_MAX, LOOKUPS_MAX, STORE_RETRY_MS};
use crate::moment::{Moment, Timestamp};
use crate::peer::{Peer, PeerIdentity};
use crate::profile::Profile;
use crate::supervision::{ActorFailure, Child, Generation, Supervisor, Unserved, Verdict};

use deadlines::Deadlines;
use effect::{ArbiterEffect, LookupId, StartupProgress, StoreLookup};
use input::{
    ActorExit, Conditions, DeviceCommand, DeviceInput, DeviceReply, Origin, PendingCommand,
    Received, StartupPage, StoreUnavailable,
};
use pending_lookups::PendingLookups;
use startup::Startup;
use table::{DeviceTable, Mailbox};

/// Devices that are woken in one turn; then datagrams and questions get theirs.
const WAKES_PER_TURN: usize = 256;

/// How soon a device whose mailbox was full when it was due is tried again.
const CROWDED_RETRY_MS: i64 = 100;

/// How long what came behind a question about an identity waits for the next one, so that it is
/// handed over together: about as long as a commit takes.
const IDENTITY_PAUSE_MS: i64 = 4;

/// How long after the last page every device that was on it has said where it is: an actor says so
/// when it starts, which is its arbiter's next turn.
const SETTLED_AFTER_MS: i64 = 1_000;

/// Everything an arbiter decides. `H` reaches the actor of a device, `R` is how a question is
/// answered.
#[derive(Debug)]
pub struct Arbiter<H, R> {
    keys: RangeInclusive<DeviceKey>,
    limits: ArbiterLimits,
    router: Router,
    devices: DeviceTable<H, R>,
    supervisor: Supervisor<DeviceKey>,
    pending_lookups: PendingLookups,
    deadlines: Deadlines,
    timers: BTreeSet<(Timestamp, Timer)>,
    /// Until every device is restored.
    startup: Option<Startup>,
    /// A stop began: no device is woken, and none restored unasked.
    is_quiet: bool,
}

/// How much an arbiter holds for others.
#[derive(Clone, Copy, Debug)]
pub struct ArbiterLimits {
    /// Datagrams whose device is being looked up; more are answered 5.03.
    pub lookups_max: usize,
    /// Inputs that wait for a device that is restored; more are refused.
    pub inputs_max: usize,
    /// What waits for an identity.
    pub address_queues: address_queues::AddressQueueLimits,
}

impl Default for ArbiterLimits {
    fn default() -> Self {
        Self {
            lookups_max: LOOKUPS_MAX,
            inputs_max: INPUTS_MAX,
            address_queues: address_queues::AddressQueueLimits::default(),
        }
    }
}

/// What an arbiter comes back to after a while.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Timer {
    /// Ask again whose an identity is.
    Identity(PeerIdentity),
    /// Restore a device.
    Device(DeviceKey),
    /// Read a page of a start again.
    Page(DeviceKey),
    /// Devices that were restored said where they are.
    Settled,
}

/// What the shell is to perform, in order.
pub type ArbiterEffects<H, R> = VecDeque<ArbiterEffect<H, R>>;

impl<H, R> Arbiter<H, R> {
    /// The arbiter with this number, without devices.
    pub fn new(here: ArbiterId, shard_map: ShardMap, bounds: ArbiterLimits) -> Self {
        Self {
            keys: shard_map.keys(here),
            limits: bounds,
            router: Router::new(here, shard_map),
            devices: DeviceTable::default(),
            supervisor: Supervisor::default(),
            pending_lookups: PendingLookups::within(bounds.address_queues),
            deadlines: Deadlines::default(),
            timers: BTreeSet::new(),
            startup: None,
            is_quiet: false,
        }
    }

    /// Begins to restore, page by page, every device that has a registration or something to do.
    pub fn start(&mut self, now: Timestamp, out: &mut ArbiterEffects<H, R>) {
        self.startup = Some(Startup::begun_at(now));
        self.read_page(*self.keys.start(), out);
    }

    /// Wakes no device any more and restores none unasked; questions are still answered.
    pub fn quiesce(&mut self) {
        self.is_quiet = true;
        self.startup = None;
        self.deadlines.clear();
    }

    /// Takes a datagram from a socket.
    pub fn handle_datagram(
        &mut self,
        at: &Conditions,
        received: Received,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Received { origin, classified } = received;
        self.dispatch(at, origin, classified, out);
    }

    /// Takes a datagram that another arbiter heard.
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

    /// Learns where the device behind a peer belongs.
    pub fn learn(&mut self, hint: RouteHint) {
        self.router.note_hint(hint);
    }

    /// Puts a question to a device.
    pub fn ask(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        asked: Box<PendingCommand<R>>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        self.hand(now, key, DeviceInput::Command(asked), out);
    }

    /// Takes which device has an endpoint name, or a key that begins as a location says.
    pub fn handle_found(
        &mut self,
        at: &Conditions,
        look_up: LookupId,
        found: Result<Option<DeviceKey>, StoreUnavailable>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let Some((datagram, unknown)) = self.pending_lookups.take(look_up) else {
            return;
        };
        match found {
            Ok(Some(key)) => self.route_to(at, key, Inbound::Message(datagram), out),
            Ok(None) => self.dispatch(at, Origin::of_datagram(&datagram), unknown(&datagram), out),
            Err(StoreUnavailable) => {
                let put_off = dispatch::overloaded(&datagram);
                self.dispatch(at, Origin::of_datagram(&datagram), put_off, out);
            }
        }
    }

    /// Takes which devices have the identity of whoever sends data.
    pub fn handle_identity(
        &mut self,
        at: &Conditions,
        identity: PeerIdentity,
        behind: Result<DevicesAtAddress, StoreUnavailable>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let taken = self.pending_lookups.address_queues.take_asked(identity);
        match behind {
            Ok(DevicesAtAddress::One(key)) => {
                for arrival in together(taken) {
                    self.route_to(at, key, arrival, out);
                }
            }
            Ok(DevicesAtAddress::Several(key)) => {
                for arrival in taken {
                    let origin = Origin::of(&arrival);
                    match dispatch::ambiguous(arrival) {
                        Ok(arrival) => self.route_to(at, key, arrival, out),
                        Err(reason) => self.dispatch(at, origin, Classified::Ignored(reason), out),
                    }
                }
            }
            Ok(DevicesAtAddress::Nobody) => {
                for arrival in taken {
                    let unknown = dispatch::unknown_address(&arrival);
                    self.dispatch(at, Origin::of(&arrival), unknown, out);
                }
            }
            Err(StoreUnavailable) => {
                for arrival in taken {
                    let origin = Origin::of(&arrival);
                    self.dispatch(at, origin, Classified::ToIdentity(arrival).defer(), out);
                }
            }
        }
        if self.pending_lookups.address_queues.has(identity) {
            self.set_timer(at.now, IDENTITY_PAUSE_MS, Timer::Identity(identity));
        }
    }

    /// Takes what the store has of a device that is to be restored.
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

    /// Takes a page of the start that begins with this device.
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
            // A device that was in memory since the page was asked for knows more than the page.
            if startup.counts(key) && self.devices.get(key).is_none() {
                self.load(key, out);
                self.spawn(key, restored, out);
            }
        }
        self.go_on_starting(now, page.next, out);
    }

    /// Takes how the actor of a device is reached; what waited for it is delivered.
    pub fn handle_spawned(
        &mut self,
        key: DeviceKey,
        generation: Generation,
        handle: H,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let handle = Mailbox {
            handle,
            delivered: 0,
        };
        let running = Child::Running { handle, generation };
        if let Some(Child::Restoring(waiting)) = self.devices.put(key, running) {
            for input in waiting {
                self.deliver(key, input, out);
            }
        }
    }

    /// Takes back an input that found no place in the mailbox of an actor.
    pub fn handle_undelivered(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        input: DeviceInput<R>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        if let Some(Child::Running { handle, .. }) = self.devices.slot(key) {
            handle.delivered -= 1;
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
            // With an input on its way, it is not idle.
            (ActorExit::Idle { handled }, Child::Running { handle, .. })
                if handle.delivered != handled => {}
            (ActorExit::Idle { .. } | ActorExit::Retired, _) => self.unload(key, out),
            (ActorExit::Failed(failure), _) => {
                let verdict = self.supervisor.judge(now, key, failure);
                out.push_back(ArbiterEffect::Failed(key, failure, verdict));
                match (verdict, failure) {
                    (Verdict::Restore, ActorFailure::Panicked) => self.restore(key, out),
                    (Verdict::Restore, ActorFailure::Unsaved) => self.restore_later(now, key, out),
                    (Verdict::Park, _) => self.park(key, out),
                }
            }
        }
    }

    /// Takes who a parked device is: its customer is told.
    pub fn handle_parked(
        &mut self,
        m: &mut Moment,
        profile: &Profile,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let (key, identity) = (profile.key(), &Identity::of(profile));
        let seen = DeviceSighting {
            key,
            identity,
            at: None,
        };
        let entry = Entry::device_parked(m, seen);
        let event = Event::of_entry(m, &entry, identity).map(Box::new);
        out.push_back(ArbiterEffect::Log(Box::new(entry), event));
    }

    /// Does what is due; some of it, if it is much.
    pub fn handle_timeout(&mut self, now: Timestamp, out: &mut ArbiterEffects<H, R>) {
        while let Some((at, timer)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            match timer {
                Timer::Identity(identity) => self.ask_identity(identity, out),
                Timer::Device(key) if self.devices.get(key).is_none() => self.restore(key, out),
                Timer::Device(_) => {}
                Timer::Page(first) => self.read_page(first, out),
                Timer::Settled => out.push_back(ArbiterEffect::Progress(StartupProgress::Settled)),
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

/// What devices do while their actors handle inputs.
impl<H, R> Arbiter<H, R> {
    /// The actor of a device, if it runs.
    pub fn handle_of(&self, key: DeviceKey) -> Option<&H> {
        match self.devices.get(key)? {
            Child::Running { handle, .. } => Some(&handle.handle),
            Child::Restoring(_) | Child::Parked => None,
        }
    }

    /// The actor of the device whose key begins so, if it runs.
    pub fn handle_at(&self, prefix: [u8; 8]) -> Option<&H> {
        match self.devices.at(prefix)? {
            (_, Child::Running { handle, .. }) => Some(&handle.handle),
            (_, Child::Restoring(_) | Child::Parked) => None,
        }
    }

    /// Takes what a device says of where its datagrams come from.
    pub fn rebind(
        &mut self,
        key: DeviceKey,
        (from, to): (Option<Peer>, Option<Peer>),
        binding: &mut PeerBinding,
    ) {
        self.router.rebind(key, from, to, binding);
    }

    /// Forgets the exchange of a device whose actor ends in the middle of it.
    pub fn abandon(&mut self, key: DeviceKey, binding: &mut PeerBinding) {
        self.router.abandon(key, binding);
    }

    /// Notes when a device is due.
    pub fn arm(&mut self, at: Timestamp, key: DeviceKey) {
        if !self.is_quiet {
            self.deadlines.arm(at, key);
        }
    }

    /// Forgets when a device is due.
    pub fn disarm(&mut self, at: Timestamp, key: DeviceKey) {
        self.deadlines.disarm(at, key);
    }

    /// Whether devices are still being restored since the start.
    pub fn is_starting(&self) -> bool {
        self.startup.is_some()
    }

    /// Whether a device is in memory, or will be without anybody's doing.
    pub fn owns(&self, key: DeviceKey) -> bool {
        let mut timers = self.timers.iter();
        self.devices.get(key).is_some() || timers.any(|(_, timer)| *timer == Timer::Device(key))
    }

    /// Datagrams that wait for an answer of the store.
    pub fn looked_up(&self) -> usize {
        self.pending_lookups.waiting()
    }

    /// Datagrams that wait here for anything.
    pub fn datagrams_held(&self) -> usize {
        let waiting = self.devices.iter().filter_map(|(_, loaded)| match loaded {
            Child::Restoring(waiting) => Some(waiting),
            Child::Running { .. } | Child::Parked => None,
        });
        let datagrams = waiting.flatten().map(|input| match input {
            DeviceInput::Datagram(arrival) => arrival.datagrams(),
            DeviceInput::Timeout | DeviceInput::Command(_) => 0,
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
            Classified::ToEndpoint(endpoint, datagram) => {
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
            Classified::ToIdentity(arrival) => self.look_up_identity(at, arrival, out),
            Classified::Answered { datagram, reason } => {
                out.push_back(ArbiterEffect::Drop(origin.number, reason));
                out.push_back(ArbiterEffect::Send(origin.peer, datagram));
            }
            Classified::Ignored(reason) => {
                out.push_back(ArbiterEffect::Drop(origin.number, reason))
            }
        }
    }

    fn is_overloaded(&self, at: &Conditions) -> bool {
        at.is_store_full || self.looked_up() >= self.limits.lookups_max
    }

    fn follow(&mut self, at: &Conditions, route: RouteDecision, out: &mut ArbiterEffects<H, R>) {
        match route {
            RouteDecision::Device(key, arrival) => {
                self.hand(at.now, key, DeviceInput::Datagram(Box::new(arrival)), out);
            }
            RouteDecision::Location(location, datagram) => match self.devices.at(location.device) {
                Some((key, _)) => {
                    let arrival = Box::new(Inbound::Message(datagram));
                    self.hand(at.now, *key, DeviceInput::Datagram(arrival), out);
                }
                None => {
                    let look_up = self.pending_lookups.location(location, datagram);
                    out.push_back(ArbiterEffect::Lookup(look_up));
                }
            },
            RouteDecision::Forward(to, forwarded) => {
                out.push_back(ArbiterEffect::Forward(to, forwarded))
            }
            RouteDecision::Unknown(datagram) => {
                let origin = Origin::of_datagram(&datagram);
                let unknown = dispatch::unknown_peer(datagram, at.restoration);
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

    fn look_up_identity(
        &mut self,
        at: &Conditions,
        arrival: Inbound,
        out: &mut ArbiterEffects<H, R>,
    ) {
        let origin = Origin::of(&arrival);
        match self.pending_lookups.address_queues.enqueue(arrival) {
            Enqueued::First => self.ask_identity(origin.peer.identity(), out),
            Enqueued::Queued => {}
            Enqueued::Full(arrival) => {
                self.dispatch(at, origin, Classified::ToIdentity(arrival).defer(), out);
            }
        }
    }

    fn ask_identity(&mut self, identity: PeerIdentity, out: &mut ArbiterEffects<H, R>) {
        self.pending_lookups.address_queues.ask(identity);
        out.push_back(ArbiterEffect::Lookup(StoreLookup::Identity(identity)));
    }

    /// Gives an input to a device, restoring it first if need be.
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
            Some(Child::Running { .. }) => self.deliver(key, input, out),
            Some(Child::Restoring(_) | Child::Parked) | None => self.refuse(now, key, input, out),
        }
    }

    /// Gives an input to a device that is there; a device that is not has no deadlines.
    fn deliver(&mut self, key: DeviceKey, input: DeviceInput<R>, out: &mut ArbiterEffects<H, R>) {
        if let Some(Child::Running { handle, .. }) = self.devices.slot(key) {
            handle.delivered += 1;
            out.push_back(ArbiterEffect::Deliver(key, input));
        }
    }

    /// What finds no place: the network repeats a datagram, a deadline is tried again, a caller
    /// is told.
    fn refuse(
        &mut self,
        now: Timestamp,
        key: DeviceKey,
        input: DeviceInput<R>,
        out: &mut ArbiterEffects<H, R>,
    ) {
        match input {
            DeviceInput::Timeout => self.arm(now.plus_ms(CROWDED_RETRY_MS), key),
            DeviceInput::Command(asked) if self.is_answered_while_parked(key, &asked.command) => {
                out.push_back(ArbiterEffect::Reply(
                    asked.reply,
                    Ok(DeviceReply::ProfileRead),
                ));
            }
            DeviceInput::Datagram(_) | DeviceInput::Command(_) => {
                refuse_all(vec![input], Unserved::Busy, out)
            }
        }
    }

    /// Who a parked device is by then is read when it is restored.
    fn is_answered_while_parked(&self, key: DeviceKey, question: &DeviceCommand) -> bool {
        let is_parked = matches!(self.devices.get(key), Some(Child::Parked));
        is_parked && matches!(question, DeviceCommand::ReadProfile)
    }

    /// Restores a device from the store; its inputs wait meanwhile.
    fn restore(&mut self, key: DeviceKey, out: &mut ArbiterEffects<H, R>) {
        if self.load(key, out) {
            out.push_back(ArbiterEffect::Lookup(StoreLookup::Device(key)));
        }
    }

    /// Notes that a device is being restored; whether there is room for it.
    fn load(&mut self, key: DeviceKey, out: &mut ArbiterEffects<H, R>) -> bool {
        let before = self.devices.put(key, Child::Restoring(Vec::new()));
        let is_loaded = before.is_some();
        release(key, before, out);
        is_loaded
    }

    fn spawn(&mut self, key: DeviceKey, restored: RestoredDevice, out: &mut ArbiterEffects<H, R>) {
        out.push_back(ArbiterEffect::Spawn {
            key,
            generation: self.supervisor.next_generation(),
            restored: Box::new(restored),
        });
    }

    /// Lets a device leave the memory.
    fn unload(&mut self, key: DeviceKey, out: &mut ArbiterEffects<H, R>) {
        let before = self.devices.remove(key);
        release(key, before, out);
        if let Some(startup) = &mut self.startup {
            startup.note_left(key);
        }
    }

    /// Restores a device once the store had time to recover.
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
            out.push_back(ArbiterEffect::Lookup(startup.ask_page(keys)));
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
            0 => out.push_back(ArbiterEffect::Progress(StartupProgress::Settled)),
            // The last of them have yet to say where they are.
            1.. => self.set_timer(now, SETTLED_AFTER_MS, Timer::Settled),
        }
        self.startup = None;
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

fn refuse_all<H, R>(inputs: Vec<DeviceInput<R>>, why: Unserved, out: &mut ArbiterEffects<H, R>) {
    let reason = match why {
        Unserved::Unknown => DropReason::UnknownLocation,
        Unserved::Busy | Unserved::Failed => DropReason::MailboxFull,
    };
    for input in inputs {
        match input {
            DeviceInput::Command(asked) => {
                out.push_back(ArbiterEffect::Reply(asked.reply, Err(why)))
            }
            DeviceInput::Datagram(arrival) => {
                let dropped = |number| ArbiterEffect::Drop(number, reason);
                out.extend(arrival.numbers().map(dropped));
            }
            DeviceInput::Timeout => {}
        }
    }
}

#[cfg(test)]
mod tests;
