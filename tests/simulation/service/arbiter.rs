//! The shell of an arbiter in the simulation: performs the effects of its machine one after the
//! other, and runs the actors of its devices.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use engine::arbiter::admission::{CustomerSlot, RateLimits};
use engine::arbiter::cell::{CommitFailure, StepContext};
use engine::arbiter::effect::{ArbiterEffect, LookupId, StartupProgress};
use engine::arbiter::input::{
    ActorExit, Conditions, DeviceCommand, DeviceInput, Received, StartupPage, StoreUnavailable,
};
use engine::arbiter::{ArbiterEffects, ArbiterLimits};
use engine::bootstrap::{BootstrapFault, BootstrapPlan};
use engine::device::Device;
use engine::device::record::RestoredDevice;
use engine::dispatch::DevicesAtAddress;
use engine::dispatch::address_queues;
use engine::dispatch::router::{ForwardedDatagram, RouteHint};
use engine::dispatch::shard_map::{ArbiterId, ShardMap};
use engine::effect::SendOutcome;
use engine::firmware::ImageUnreadable;
use engine::ids::{ActionId, DeviceKey};
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::policy::CustomerPolicy;
use engine::profile::Profile;
use engine::supervision::{ActorFailure, Generation, Verdict};

use super::actor::{Actor, DecidedStep, Performed};
use super::{
    ArbiterAct, ArbiterRun, DatagramEnd, Directory, InjectedPanic, LossReason, ServiceTurn,
    numbers_of,
};

/// Small limits, so that they are reached.
const BOUNDS: ArbiterLimits = ArbiterLimits {
    lookups_max: 4,
    inputs_max: 16,
    unfinished_bytes_max: 4_096,
    address_queues: address_queues::AddressQueueLimits {
        queue_max: 3,
        bytes_max: 4_096,
    },
    // Time passes by hours here, and a rate is for a second.
    rates: RateLimits::NONE,
};

/// The machine of an arbiter, with actors identified by generation and callers by the number of the
/// call.
type Machine = engine::arbiter::Arbiter<Generation, u64>;

type Out = ArbiterEffects<Generation, u64>;

/// An arbiter and the actors of its devices.
pub(crate) struct Arbiter {
    run: ArbiterRun,
    machine: Machine,
    policy: Arc<CustomerPolicy>,
    directory: Arc<Directory>,
    /// One place for every device, in case a device is restored at the wrong arbiter.
    actors: Vec<Option<Box<Actor>>>,
    /// The actor that panics at its next opportunity, and how often again.
    pub(super) injected_panic: Option<(usize, InjectedPanic, u32)>,
    /// Whether its node gives its partition up, and whether its devices are in memory no more.
    is_leaving: bool,
    is_unloaded: bool,
    outgoing: BTreeMap<ArbiterId, ForwardBatch>,
    /// How often the unfinished bodies of a device had to give way.
    bodies_dropped: u64,
    parked: BTreeSet<usize>,
    armed_at: Option<Timestamp>,
}

/// Datagrams that one arbiter forwards to another.
#[derive(Debug, Default)]
pub(crate) struct ForwardBatch {
    pub(crate) parcels: Vec<ForwardedDatagram>,
    pub(crate) route_hints: Vec<RouteHint>,
}

impl ForwardBatch {
    /// How many datagrams it has.
    pub(crate) fn datagrams(&self) -> usize {
        let numbers = self.parcels.iter().map(ForwardedDatagram::numbers);
        numbers.map(|numbers| numbers.len()).sum()
    }
}

impl Arbiter {
    pub(super) fn new(
        run: ArbiterRun,
        shard_map: ShardMap,
        policy: Arc<CustomerPolicy>,
        directory: Arc<Directory>,
    ) -> Self {
        Self {
            run,
            machine: Machine::new(run.id, shard_map, BOUNDS, Arc::clone(&directory.known)),
            policy,
            actors: directory.keys.iter().map(|_| None).collect(),
            injected_panic: None,
            is_leaving: false,
            is_unloaded: false,
            outgoing: BTreeMap::new(),
            bodies_dropped: 0,
            parked: BTreeSet::new(),
            armed_at: None,
            directory,
        }
    }

    pub(super) fn apply_policy(&mut self, policy: Arc<CustomerPolicy>) {
        self.policy = policy;
    }

    /// Restores, page by page, every live device that this arbiter owns.
    pub(crate) fn start(&mut self, turn: &mut ServiceTurn<'_>) {
        self.decide(turn, |machine, at, out| machine.start(at.now, out));
    }

    /// Handles a datagram from the socket, or a message over DTLS.
    pub(crate) fn handle_received(
        &mut self,
        (number, from): (u64, Peer),
        received: Received,
        turn: &mut ServiceTurn<'_>,
    ) {
        let whose = self.directory.whose(from, &received.classified);
        turn.acts.push(ArbiterAct::Sorted { number, whose });
        self.decide(turn, |machine, at, out| {
            machine.handle_datagram(at, received, out);
        });
    }

    /// Handles a batch from another arbiter.
    pub(crate) fn take_in(&mut self, post: ForwardBatch, turn: &mut ServiceTurn<'_>) {
        for hint in post.route_hints {
            self.machine.learn(hint);
        }
        for parcel in post.parcels {
            self.decide(turn, |machine, at, out| {
                machine.handle_forwarded(at, parcel, out);
            });
        }
        self.end_turn(turn);
    }

    /// Ends a turn: datagrams for other arbiters are sent to them.
    pub(crate) fn end_turn(&mut self, turn: &mut ServiceTurn<'_>) {
        for (to, post) in std::mem::take(&mut self.outgoing) {
            turn.acts.push(ArbiterAct::Post { to, post });
        }
    }

    /// Sends a command to a device.
    pub(crate) fn ask(
        &mut self,
        who: usize,
        call: u64,
        question: DeviceCommand,
        turn: &mut ServiceTurn<'_>,
    ) {
        let key = self.directory.keys[who];
        let command = Box::new(engine::arbiter::input::PendingCommand {
            command: question,
            reply: call,
        });
        self.decide(turn, |machine, at, out| {
            machine.ask(at.now, key, command, out)
        });
    }

    /// Gives the partition up: what devices have begun goes on, and nothing else begins.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        self.machine.quiesce();
    }

    /// Removes all devices from memory.
    pub(crate) fn unload(&mut self, turn: &mut ServiceTurn<'_>) {
        self.is_unloaded = true;
        self.decide(turn, |machine, _, out| machine.unload_all(out));
        self.end_turn(turn);
    }

    /// Wakes the machine, which may have a timeout due.
    pub(crate) fn wake(&mut self, turn: &mut ServiceTurn<'_>) {
        self.armed_at.take_if(|armed_at| *armed_at <= turn.now);
        self.decide(turn, |machine, at, out| machine.handle_timeout(at.now, out));
        self.end_turn(turn);
    }

    /// Handles the device that the disk found.
    pub(crate) fn found(
        &mut self,
        id: LookupId,
        found: Result<Option<DeviceKey>, StoreUnavailable>,
        turn: &mut ServiceTurn<'_>,
    ) {
        self.decide(turn, |machine, at, out| {
            machine.handle_found(at, id, found, out);
        });
        self.end_turn(turn);
    }

    /// Handles the devices that the disk found for the address of a peer.
    pub(crate) fn found_by_address(
        &mut self,
        address: IpAddr,
        behind: Result<DevicesAtAddress, StoreUnavailable>,
        turn: &mut ServiceTurn<'_>,
    ) {
        self.decide(turn, |machine, at, out| {
            machine.handle_address(at, address, behind, out);
        });
        self.end_turn(turn);
    }

    /// Handles the data of a device to be restored.
    pub(crate) fn restored(
        &mut self,
        who: usize,
        found: Result<Option<RestoredDevice>, StoreUnavailable>,
        turn: &mut ServiceTurn<'_>,
    ) {
        let key = self.directory.keys[who];
        self.decide(turn, |machine, at, out| {
            machine.handle_restored(at.now, key, found, out);
        });
    }

    /// Handles a page of devices that were live when it was read.
    pub(crate) fn paged(
        &mut self,
        first: DeviceKey,
        page: Result<StartupPage, StoreUnavailable>,
        turn: &mut ServiceTurn<'_>,
    ) {
        self.decide(turn, |machine, at, out| {
            machine.handle_page(at.now, first, page, out);
        });
    }

    /// Handles the receipt of a device's open step.
    pub(crate) fn receive(
        &mut self,
        who: usize,
        step: u64,
        receipt: Result<(), CommitFailure>,
        turn: &mut ServiceTurn<'_>,
    ) {
        let actor = self.actors[who].as_ref();
        let open = actor.expect("a device waits for its receipt").step;
        assert_eq!(open, step, "receipts come in the order of their steps");
        if receipt.is_ok() && self.is_struck(who, InjectedPanic::Speaking) {
            return self.panic(who, turn);
        }
        self.conduct(who, turn, |actor, _, out| {
            actor.cell.handle_receipt(receipt, out);
        });
    }

    /// Handles the outcome of a bare datagram; the actor may be another one now, or busy.
    pub(crate) fn departed(
        &mut self,
        who: usize,
        departed: (ActionId, SendOutcome),
        turn: &mut ServiceTurn<'_>,
    ) {
        if let Some(actor) = &mut self.actors[who] {
            actor.take_departed(departed);
            self.go_on(who, turn);
        }
    }

    /// Handles the profile of a device, if its actor still waits for it.
    pub(crate) fn take_names(
        &mut self,
        who: usize,
        step: u64,
        names: &Profile,
        turn: &mut ServiceTurn<'_>,
    ) {
        if self.actors[who].as_ref().is_some_and(|it| it.step == step) {
            self.conduct(who, turn, |actor, _, out| {
                actor.cell.handle_profile(Ok(Some(names)), out);
            });
        }
    }

    /// Handles what a device is written in its bootstrap, if its actor still waits for it.
    pub(crate) fn bootstrap_prepared(
        &mut self,
        who: usize,
        step: u64,
        prepared: Result<BootstrapPlan, BootstrapFault>,
        turn: &mut ServiceTurn<'_>,
    ) {
        if self.actors[who].as_ref().is_some_and(|it| it.step == step) {
            self.conduct(who, turn, |actor, context, out| {
                actor.took = DecidedStep::NOTHING;
                actor.cell.handle_bootstrap(context, prepared, out);
            });
        }
    }

    /// Handles a part of the image that a device is sent, if its actor still waits for it.
    pub(crate) fn image_read(
        &mut self,
        (who, step): (usize, u64),
        read: Result<Vec<u8>, ImageUnreadable>,
        turn: &mut ServiceTurn<'_>,
    ) {
        if self.actors[who].as_ref().is_some_and(|it| it.step == step) {
            self.conduct(who, turn, |actor, context, out| {
                actor.took = DecidedStep::NOTHING;
                actor.cell.handle_image(context, read, out);
            });
        }
    }

    /// Handles the report of an actor that could end; there may be new input for it.
    pub(crate) fn ended(
        &mut self,
        who: usize,
        report: (Generation, ActorExit),
        turn: &mut ServiceTurn<'_>,
    ) {
        let key = self.directory.keys[who];
        self.decide(turn, |machine, at, out| {
            machine.handle_ended(at.now, key, report, out);
        });
    }

    fn decide(
        &mut self,
        turn: &mut ServiceTurn<'_>,
        input: impl FnOnce(&mut Machine, &Conditions, &mut Out),
    ) {
        let mut out = Out::new();
        input(&mut self.machine, &turn.conditions(), &mut out);
        while let Some(effect) = out.pop_front() {
            self.perform(effect, turn, &mut out);
        }
        self.set_alarm(turn);
    }

    fn set_alarm(&mut self, turn: &mut ServiceTurn<'_>) {
        if let Some(at) = self.machine.next_timeout()
            && self.armed_at.is_none_or(|armed_at| at < armed_at)
        {
            self.armed_at = Some(at);
            turn.acts.push(ArbiterAct::WakeArbiter { at });
        }
    }

    fn perform(
        &mut self,
        effect: ArbiterEffect<Generation, u64>,
        turn: &mut ServiceTurn<'_>,
        out: &mut Out,
    ) {
        match effect {
            ArbiterEffect::Lookup(look_up) => turn.acts.push(ArbiterAct::LookUp(look_up)),
            ArbiterEffect::Spawn {
                key,
                generation,
                customer,
                restored,
            } => self.spawn(key, (generation, customer), restored, turn, out),
            ArbiterEffect::Deliver(key, input) => self.deliver(key, input, turn, out),
            ArbiterEffect::Release(key, generation) => self.release(key, generation, turn),
            ArbiterEffect::Forward(to, parcel) => {
                let forwarded = |number| ArbiterAct::Forwarded { number, to };
                turn.acts
                    .extend(parcel.numbers().into_iter().map(forwarded));
                self.outgoing.entry(to).or_default().parcels.push(parcel);
            }
            ArbiterEffect::SendRouteHint(hint) => {
                self.outgoing
                    .entry(hint.to)
                    .or_default()
                    .route_hints
                    .push(hint);
            }
            // Without rates it changes nothing.
            ArbiterEffect::TellOfStranger(..) => {}
            ArbiterEffect::Send(to, datagram) => turn.acts.push(ArbiterAct::Send {
                step: None,
                who: None,
                to,
                datagram,
            }),
            // Images are downloaded over HTTP here; over CoAP devices request those of nobody.
            ArbiterEffect::ReadImage(request) => {
                let at = turn.conditions();
                self.machine.handle_image_read(&at, &request, Ok(None), out);
            }
            ArbiterEffect::SendSecured(device, address, message) => {
                turn.acts.push(ArbiterAct::SealAnswer {
                    who: self.directory.who(device),
                    address,
                    message,
                });
            }
            ArbiterEffect::Drop(number, reason) => {
                let end = DatagramEnd::Turned(reason);
                turn.acts.push(ArbiterAct::Ended { number, end });
            }
            ArbiterEffect::Reply(call, reply) => turn.acts.push(ArbiterAct::Reply {
                call,
                step: None,
                reply,
            }),
            ArbiterEffect::Failed(key, failure, verdict) => {
                if failure == ActorFailure::Panicked {
                    let who = self.directory.who(key);
                    let parked = verdict == Verdict::Park;
                    self.parked.extend(parked.then_some(who));
                    turn.acts.push(ArbiterAct::Fell { who, parked });
                }
            }
            // The simulation has no log of the arbiter's own entries.
            ArbiterEffect::Log(..) => {}
            ArbiterEffect::Progress(progress) => match progress {
                StartupProgress::Underway { .. } => {}
                StartupProgress::Restored { .. } => turn.acts.push(ArbiterAct::Started),
            },
        }
    }

    fn spawn(
        &mut self,
        key: DeviceKey,
        (generation, customer): (Generation, CustomerSlot),
        restored: Box<RestoredDevice>,
        turn: &mut ServiceTurn<'_>,
        out: &mut Out,
    ) {
        let who = self.directory.who(key);
        let restored_from = restored.clone();
        turn.acts.push(ArbiterAct::Restored {
            who,
            restored: restored_from,
        });
        let device = Device::restore(&mut turn.moment(), Arc::clone(&self.policy), *restored);
        let actor = Box::new(Actor::new(who, device, generation));
        assert!(self.actors[who].is_none(), "device {who} has an actor");
        self.actors[who] = Some(actor);
        self.machine
            .handle_spawned(key, (generation, customer), generation, out);
        self.conduct(who, turn, |actor, _, out| actor.cell.start(out));
    }

    fn deliver(
        &mut self,
        key: DeviceKey,
        input: DeviceInput<u64>,
        turn: &mut ServiceTurn<'_>,
        out: &mut Out,
    ) {
        let who = self.directory.who(key);
        self.bodies_dropped += u64::from(matches!(input, DeviceInput::DropUnfinished));
        let undelivered = match &mut self.actors[who] {
            Some(actor) => actor.take(input).err(),
            None => Some(input),
        };
        match undelivered {
            Some(input) => self.machine.handle_undelivered(turn.now, key, input, out),
            None => self.go_on(who, turn),
        }
    }

    /// Lets an actor handle its inputs, up to the next step that has to be saved.
    fn go_on(&mut self, who: usize, turn: &mut ServiceTurn<'_>) {
        if let Some(actor) = &mut self.actors[who]
            && let Some(departed) = actor.next_departed()
        {
            return self.conduct(who, turn, |actor, context, out| {
                actor.took = DecidedStep::NOTHING;
                actor.cell.handle_send_outcome(context, departed, out);
            });
        }
        while let Some(actor) = &mut self.actors[who]
            && let Some(input) = actor.next()
        {
            if actor.cell.is_retired() {
                lose(who, vec![input].into(), LossReason::Unknown, turn);
                continue;
            }
            for number in numbers_of(&input) {
                let end = DatagramEnd::Handled { who };
                turn.acts.push(ArbiterAct::Ended { number, end });
            }
            actor.note_taken(&input);
            self.conduct(who, turn, |actor, context, out| {
                actor.cell.handle(context, input, out);
            });
        }
    }

    /// Lets the cell of an actor decide, and performs its effects.
    fn conduct(
        &mut self,
        who: usize,
        turn: &mut ServiceTurn<'_>,
        input: impl FnOnce(
            &mut Actor,
            &mut StepContext<'_>,
            &mut Vec<engine::arbiter::cell::CellEffect<u64>>,
        ),
    ) {
        let mut actor = self.actors[who].take().expect("only an actor decides");
        let mut out = Vec::new();
        let mut context = StepContext {
            moment: turn.moment(),
            policy: &self.policy,
            epoch: self.run.epoch,
        };
        input(&mut actor, &mut context, &mut out);
        let is_decision = actor.is_deciding();
        self.actors[who] = Some(actor);
        if is_decision && self.is_struck(who, InjectedPanic::Deciding) {
            return self.panic(who, turn);
        }
        let actor = self.actors[who].as_mut().expect("it was put back");
        let key = self.directory.keys[who];
        let mut reports = Vec::new();
        actor.see(&out, turn);
        for effect in out {
            match actor.perform(effect, (key, &mut self.machine), turn) {
                Performed::Done => {}
                Performed::Ended(report) => reports.push(report),
            }
        }
        self.set_alarm(turn);
        for ending in reports {
            self.report(who, ending, turn);
        }
        self.go_on(who, turn);
    }

    /// An actor ends or could end. A report of being idle arrives later.
    fn report(&mut self, who: usize, ending: ActorExit, turn: &mut ServiceTurn<'_>) {
        let actor = self.actors[who].as_ref();
        let report = (actor.expect("it reports").cell.generation(), ending);
        match ending {
            ActorExit::Idle { .. } => turn.acts.push(ArbiterAct::Idle { who, report }),
            ActorExit::Retired => self.ended(who, report, turn),
            ActorExit::Failed(_) => {
                self.drop_actor(who, turn);
                self.ended(who, report, turn);
            }
        }
    }

    /// The actor of a device panics: its buffer of effects, its machine and its mailbox are lost.
    fn panic(&mut self, who: usize, turn: &mut ServiceTurn<'_>) {
        let actor = self.actors[who].as_ref().expect("only an actor panics");
        let ending = ActorExit::Failed(ActorFailure::Panicked);
        let report = (actor.cell.generation(), ending);
        self.drop_actor(who, turn);
        self.ended(who, report, turn);
    }

    fn drop_actor(&mut self, who: usize, turn: &mut ServiceTurn<'_>) {
        let Some(mut actor) = self.actors[who].take() else {
            return;
        };
        let key = self.directory.keys[who];
        self.machine.abandon(key, actor.cell.binding_mut());
        let registered = actor.cell.device().bound_peer();
        turn.acts.push(ArbiterAct::MovedOut { who, registered });
        turn.hang_up(actor.take_call());
        lose(who, actor.mailbox, LossReason::Abandoned, turn);
    }

    /// An actor is unreachable from now on: it handles its inputs and ends.
    fn release(&mut self, key: DeviceKey, generation: Generation, turn: &mut ServiceTurn<'_>) {
        let who = self.directory.who(key);
        let is_it = |actor: &Actor| actor.cell.generation() == generation;
        if self.actors[who].as_deref().is_some_and(is_it) {
            self.go_on(who, turn);
            self.drop_actor(who, turn);
        }
    }

    fn is_struck(&mut self, who: usize, at: InjectedPanic) -> bool {
        let Some((cursed, injected_panic, again)) = &mut self.injected_panic else {
            return false;
        };
        if (*cursed, *injected_panic) != (who, at) {
            return false;
        }
        match again {
            0 => self.injected_panic = None,
            1.. => *again -= 1,
        }
        true
    }

    /// How many datagrams wait at this arbiter.
    pub(super) fn datagrams_held(&self) -> usize {
        let outgoing: usize = self.outgoing.values().map(ForwardBatch::datagrams).sum();
        let mailboxes = self.actors.iter().flatten().map(|actor| &actor.mailbox);
        let waiting: usize = mailboxes
            .flatten()
            .map(|input| numbers_of(input).len())
            .sum();
        self.machine.datagrams_held() + outgoing + waiting
    }

    /// The arbiter that has the session with a device.
    pub(crate) fn association_home(&self, key: DeviceKey) -> Option<ArbiterId> {
        self.machine.association_home(key)
    }

    pub(crate) fn here(&self) -> ArbiterId {
        self.run.id
    }

    pub(crate) fn run(&self) -> ArbiterRun {
        self.run
    }

    pub(crate) fn is_unloaded(&self) -> bool {
        self.is_unloaded
    }

    /// Whether its node gives its partition up: it takes nothing more from outside.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    pub(crate) fn is_starting(&self) -> bool {
        self.machine.is_starting()
    }

    /// Whether a device is loaded here, or will be without further input.
    pub(crate) fn looks_after(&self, who: usize) -> bool {
        self.machine.owns(self.directory.keys[who])
    }

    /// The bytes of unfinished bodies beyond the bound, apart from those that are about to be
    /// dropped.
    pub(crate) fn unfinished_beyond(&self, now: Timestamp) -> usize {
        if self.machine.next_timeout().is_some_and(|at| at <= now) {
            return 0;
        }
        let actors = self.actors.iter().flatten();
        let kept = actors.filter(|actor| !actor.is_to_drop());
        let bytes: usize = kept.map(|it| it.cell.device().unfinished_bytes()).sum();
        bytes.saturating_sub(BOUNDS.unfinished_bytes_max)
    }

    /// Whether a device has panicked too often to be restored here.
    pub(crate) fn is_parked(&self, who: usize) -> bool {
        self.parked.contains(&who)
    }

    /// How often the unfinished bodies of a device had to give way.
    pub(crate) fn bodies_dropped(&self) -> u64 {
        self.bodies_dropped
    }

    /// The machine of a loaded device.
    pub(crate) fn machine(&self, who: usize) -> Option<&Device> {
        self.actors[who].as_ref().map(|actor| actor.cell.device())
    }

    /// Whether a device has nothing in progress.
    pub(super) fn is_at_rest(&self, who: usize) -> bool {
        match &self.actors[who] {
            Some(actor) => !actor.cell.is_waiting() && actor.mailbox.is_empty(),
            None => !self.is_starting() && !self.looks_after(who),
        }
    }
}

/// Drops an input that reaches no device; a caller gets an error.
fn lose(
    who: usize,
    inputs: VecDeque<DeviceInput<u64>>,
    how: LossReason,
    turn: &mut ServiceTurn<'_>,
) {
    for input in inputs {
        for number in numbers_of(&input) {
            let end = DatagramEnd::Lost { who, how };
            turn.acts.push(ArbiterAct::Ended { number, end });
        }
        match (input, how) {
            (DeviceInput::Command(command), LossReason::Unknown) => turn.refuse(command.reply),
            (DeviceInput::Command(command), LossReason::Abandoned) => {
                turn.hang_up(Some(command.reply));
            }
            (DeviceInput::Datagram(_) | DeviceInput::Timeout | DeviceInput::DropUnfinished, _) => {}
        }
    }
}
