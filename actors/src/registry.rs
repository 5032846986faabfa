//! The shell of an arbiter: performs what its machine decides. It hears the sockets, asks the store
//! and starts the actors of devices.

mod alarm;
mod device;
pub mod home;
mod neighbours;

use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, Arbiter as Thread, AsyncContext as _,
    Context, Handler, Message, MessageResult, StreamHandler, WrapFuture as _,
};
use engine::arbiter::effect::{ArbiterEffect, LookUp, Progress};
use engine::arbiter::input::{Asked, Conditions, Ending, Input, Page, Received, StoreUnavailable};
use engine::arbiter::{Arbiter, ArbiterEffects};
use engine::change::Name;
use engine::device::Device;
use engine::device::record::Restored;
use engine::ids::DeviceKey;
use engine::limits::INPUTS_MAX;
use engine::moment::Timestamp;
use engine::peer::{PeerIdentity, Transport};
use engine::registry::form::Form;
use engine::registry::{Behind, Fate, Sorted};
use engine::supervision::{Failure, Generation, Verdict};
use store::{Answer, Pressure, RestoredPage, Unavailable};
use tracing::{Span, debug, error, info, trace, warn};

use crate::logging::{Logging, Record};
use crate::meters::waiting::Waiting;
use crate::meters::{Meters, PUBLISH_EVERY, Reading};
use crate::reply::ReplyTo;
use crate::socket::{self, Arrived, Inbox, Open, Socket};
use crate::tally::Tally;
use crate::terms::NewTerms;

use alarm::{Alarm, Rang};
use device::{DeviceActor, Handle};
use home::{Home, HomeParts, Place};
use neighbours::{Neighbours, Post};

/// Questions that may wait for the registry; more are refused as too busy.
const QUESTIONS_MAX: usize = 4_096;

/// How often the operator is told of datagrams that reached no device.
const TELL_EVERY: Duration = Duration::from_secs(600);

/// How often the operator is told how far the start has come.
const PROGRESS_EVERY_MS: i64 = 2_000;

/// The machine of an arbiter whose devices are actors.
pub(crate) type Machine = Arbiter<Addr<DeviceActor>, ReplyTo>;

type Out = ArbiterEffects<Addr<DeviceActor>, ReplyTo>;

/// What the store answers.
type Found<T> = Result<T, StoreUnavailable>;

/// The registry of an arbiter.
pub struct Registry {
    home: Rc<Home>,
    neighbours: Neighbours,
    logging: Addr<Logging>,
    tally: Tally,
    inbox: Inbox,
    /// How many datagrams were received.
    received: u64,
    /// What is in the batch under way; kept for its memory, as are the effects of a turn.
    batch: Vec<Received>,
    out: Out,
    /// Its sockets, which a stop closes its ears to.
    heeded: Vec<actix::SpawnHandle>,
    /// When the operator was told last how far the start has come.
    told_at: Timestamp,
}

impl Registry {
    /// Starts a registry on an arbiter, with the sockets its devices send to.
    pub(crate) fn start_on(
        thread: &Thread,
        place: Place,
        parts: HomeParts,
        open: Open,
        logging: Addr<Logging>,
    ) -> Addr<Self> {
        Self::start_in_arbiter(&thread.handle(), move |ctx| {
            ctx.set_mailbox_capacity(QUESTIONS_MAX);
            let meters = Rc::new(Meters::of(place.here));
            let sockets = socket::adopt(open, &meters);
            let sockets = sockets.expect("the arbiter's runtime takes open sockets");
            Self {
                home: Home::new(parts, place, (sockets, meters), ctx.address()),
                neighbours: Neighbours::default(),
                logging,
                tally: Tally::default(),
                inbox: Inbox::new(),
                received: 0,
                batch: Vec::new(),
                out: Out::new(),
                heeded: Vec::new(),
                told_at: Timestamp::default(),
            }
        })
    }

    /// Takes a batch from a socket: first all of it is decoded and its devices are looked for, then
    /// each message is handled.
    fn receive(&mut self, transport: Transport, ctx: &mut Context<Self>) {
        let mut batch = std::mem::take(&mut self.batch);
        let Self {
            home,
            inbox,
            received,
            ..
        } = self;
        let taken = home.sockets.of(transport).receive(inbox, |peer, bytes| {
            *received += 1;
            let number = *received;
            trace!(%peer, number, length = bytes.len(), "datagram");
            let received = Received::decode(number, peer, bytes);
            let form = match transport {
                Transport::Coap => Form::heard(bytes, &received.sorted),
                Transport::Udp => Form::BARE,
            };
            home.meters.received.one(form);
            batch.push(received);
        });
        if let Err(error) = taken {
            // An ICMP error of an earlier send comes up here; it concerns one peer.
            debug!(%error, "the socket reported an error");
        }
        self.bring_near(&batch);
        let at = self.conditions();
        for received in batch.drain(..) {
            self.decide_at(&at, ctx, |arbiter, out| {
                arbiter.handle_datagram(&at, received, out);
            });
        }
        self.batch = batch;
    }

    /// Fetches what delivering to these devices will look at. In a large fleet none of it is in the
    /// processor's cache, and fetches that do not wait for each other overlap.
    fn bring_near(&self, batch: &[Received]) {
        let arbiter = self.home.arbiter.borrow();
        let actors = || {
            batch.iter().filter_map(|received| match &received.sorted {
                Sorted::ToLocation(location, _) => arbiter.handle_at(location.device),
                Sorted::ToEndpoint(..)
                | Sorted::ToPeer(_)
                | Sorted::ToIdentity(_)
                | Sorted::Answered { .. }
                | Sorted::Ignored(_) => None,
            })
        };
        let found = actors().count();
        let connected = actors().filter(|actor| actor.connected()).count();
        std::hint::black_box((found, connected));
    }

    /// Gives the machine an input and performs what it decides.
    fn decide(
        &mut self,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Machine, &Conditions, &mut Out),
    ) {
        let at = self.conditions();
        self.decide_at(&at, ctx, |arbiter, out| input(arbiter, &at, out));
    }

    /// The same for one of several inputs of a turn.
    fn decide_at(
        &mut self,
        at: &Conditions,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Machine, &mut Out),
    ) {
        let mut out = std::mem::take(&mut self.out);
        input(&mut self.home.arbiter.borrow_mut(), &mut out);
        while let Some(effect) = out.pop_front() {
            self.perform(effect, at.now, &mut out, ctx);
        }
        self.out = out;
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            now: self.home.clock.now(),
            is_store_full: self.home.commits.pressure() == Pressure::Full,
            restoration: self.home.muster.of_devices(),
        }
    }

    fn perform(
        &mut self,
        effect: ArbiterEffect<Addr<DeviceActor>, ReplyTo>,
        now: Timestamp,
        out: &mut Out,
        ctx: &mut Context<Self>,
    ) {
        match effect {
            ArbiterEffect::Deliver(key, input) => self.deliver(key, input, now, out),
            ArbiterEffect::Forward(to, parcel) => {
                self.home.meters.forwarded.one();
                self.neighbours.forward(to, parcel);
            }
            ArbiterEffect::Teach(hint) => self.neighbours.tell(hint),
            ArbiterEffect::Send(to, datagram) => self.home.send(to, datagram),
            ArbiterEffect::Drop(number, fate) => {
                trace!(number, ?fate, "a datagram was dropped");
                self.tally.note(fate);
            }
            ArbiterEffect::LookUp(look_up) => self.look_up(look_up, ctx),
            ArbiterEffect::Spawn {
                key,
                generation,
                restored,
            } => {
                let actor = self.spawn(*restored, generation);
                let mut arbiter = self.home.arbiter.borrow_mut();
                arbiter.handle_spawned(key, generation, actor, out);
            }
            // Its actor ends when nobody can reach it any more.
            ArbiterEffect::Release(_, actor) => drop(actor),
            ArbiterEffect::Reply(reply, answer) => reply.give(answer),
            ArbiterEffect::Failed(key, failure, verdict) => tell_failure(key, failure, verdict),
            ArbiterEffect::Log(entry, told) => {
                if self.logging.try_send(Record { entry, told }).is_err() {
                    warn!("the logging actor is busy; a log entry was dropped");
                }
            }
            ArbiterEffect::Progress(progress) => self.tell_progress(progress, now),
        }
    }

    fn deliver(&self, key: DeviceKey, input: Input<ReplyTo>, now: Timestamp, out: &mut Out) {
        let mut arbiter = self.home.arbiter.borrow_mut();
        let undelivered = match arbiter.handle_of(key) {
            Some(actor) => actor
                .try_send(Handle(input))
                .map_err(|full| full.into_inner().0)
                .err(),
            None => Some(input),
        };
        if let Some(input) = undelivered {
            arbiter.handle_undelivered(now, key, input, out);
        }
    }

    fn spawn(&self, restored: Restored, generation: Generation) -> Addr<DeviceActor> {
        let contract = self.home.contracts.of(restored.profile.customer.clone());
        let mut m = self.home.clock.moment();
        let device = Device::restore(&mut m, contract.terms(), restored);
        let home = Rc::clone(&self.home);
        DeviceActor::create(|ctx| {
            // Before it has its first turn: what waited for it is delivered at once.
            ctx.set_mailbox_capacity(INPUTS_MAX);
            DeviceActor::new(device, generation, contract, home)
        })
    }

    fn look_up(&self, look_up: LookUp, ctx: &mut Context<Self>) {
        let store = &self.home.store;
        match look_up {
            LookUp::Endpoint(id, endpoint) => {
                let bearer = store.bearer(Name::Endpoint(endpoint.clone()));
                self.ask_store(bearer, ctx, move |arbiter, at, found, out| {
                    if let Ok(None) = found {
                        debug!(%endpoint, "registration with an unknown endpoint name");
                    }
                    arbiter.handle_found(at, id, found, out);
                });
            }
            LookUp::Location(id, prefix) => {
                let device = store.device_at(prefix);
                self.ask_store(device, ctx, move |arbiter, at, found, out| {
                    arbiter.handle_found(at, id, found, out);
                });
            }
            LookUp::Identity(identity) => {
                let behind = match identity {
                    PeerIdentity::Address(address) => store.at_address(address),
                    // No record layer here makes associations.
                    PeerIdentity::Association(_) => Box::pin(ready(Ok(Behind::Nobody))),
                };
                self.ask_store(behind, ctx, move |arbiter, at, behind, out| {
                    arbiter.handle_identity(at, identity, behind, out);
                });
            }
            LookUp::Device(key) => {
                let restored = store.restored(key);
                self.ask_store(restored, ctx, move |arbiter, at, found, out| {
                    if let Err(StoreUnavailable) = found {
                        warn!(device = %key, "a device could not be restored from the store");
                    }
                    arbiter.handle_restored(at.now, key, found, out);
                });
            }
            LookUp::Page(keys, max) => {
                let first = *keys.start();
                let page = store.restored_page(keys, max);
                self.ask_store(page, ctx, move |arbiter, at, page, out| {
                    let page = page.map(|RestoredPage { devices, next }| Page { devices, next });
                    arbiter.handle_page(at.now, first, page, out);
                });
            }
            LookUp::Parked(key) => {
                let mut m = self.home.clock.moment();
                let profile = store.profile(key);
                self.ask_store(profile, ctx, move |arbiter, _, profile, out| {
                    if let Ok(Some(profile)) = profile {
                        arbiter.handle_parked(&mut m, &profile, out);
                    }
                });
            }
        }
    }

    fn ask_store<T: 'static>(
        &self,
        answer: Answer<T>,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Machine, &Conditions, Found<T>, &mut Out) + 'static,
    ) {
        ctx.spawn(answer.into_actor(self).map(move |answer, registry, ctx| {
            let answer = answer.map_err(|Unavailable| StoreUnavailable);
            registry.decide(ctx, |arbiter, at, out| input(arbiter, at, answer, out));
            registry.end_turn();
        }));
    }

    /// Ends a turn: what was heard for neighbours leaves, and the alarm is set.
    fn end_turn(&mut self) {
        if let Some(next) = self.home.arbiter.borrow().next_timeout() {
            self.home.bell.note(next);
        }
        for _ in 0..self.neighbours.flush() {
            self.tally.note(Fate::Crowded);
        }
    }

    /// Says how much there was to do.
    fn publish(&self) {
        self.home.meters.publish(&Reading {
            now: self.home.clock.now(),
            turned_away: &self.tally,
            lookups: self.home.arbiter.borrow().looked_up(),
        });
    }

    /// Tells the operator how far the start has come, the steps of it now and then.
    fn tell_progress(&mut self, progress: Progress, now: Timestamp) {
        let arbiter = self.home.here.index();
        match progress {
            Progress::Underway { restored, part } => {
                self.home.meters.publish_progress(restored, part);
                if now.since_ms(self.told_at) >= PROGRESS_EVERY_MS {
                    self.told_at = now;
                    let percent = (100.0 * part) as u64;
                    info!(arbiter, restored, percent, "devices are being restored");
                }
            }
            Progress::Restored { restored, took_ms } => {
                self.home.meters.publish_progress(restored, 1.0);
                info!(arbiter, restored, took_ms, "all devices are restored");
            }
            Progress::Settled => self.home.muster.note_complete(),
        }
    }
}

fn tell_failure(device: DeviceKey, failure: Failure, verdict: Verdict) {
    match (failure, verdict) {
        (Failure::Panicked, Verdict::Restore) => {
            error!(%device, "the actor of a device panicked and is restored");
        }
        (Failure::Panicked, Verdict::Park) => {
            error!(%device, "the actor of a device keeps panicking and is parked");
        }
        // It was told when it happened.
        (Failure::Unsaved, Verdict::Restore | Verdict::Park) => {}
    }
}

impl Actor for Registry {
    type Context = Context<Self>;
}

/// All registries of the process exist: each may hear datagrams that are another's.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Meet(pub(crate) Arc<[Addr<Registry>]>);

impl Handler<Meet> for Registry {
    type Result = ();

    fn handle(&mut self, Meet(registries): Meet, ctx: &mut Context<Self>) {
        self.neighbours = Neighbours::new(registries);
        let sockets = self.home.sockets.iter();
        self.heeded = sockets.map(|it| ctx.add_stream(it.arrivals())).collect();
        ctx.add_stream(Alarm::new(Rc::clone(&self.home)));
        ctx.run_interval(TELL_EVERY, |registry, _| registry.tally.tell());
        ctx.run_interval(PUBLISH_EVERY, |registry, _| registry.publish());
        self.told_at = self.home.clock.now();
        self.decide(ctx, |arbiter, at, out| arbiter.start(at.now, out));
        self.end_turn();
    }
}

impl Handler<Post> for Registry {
    type Result = ();

    fn handle(&mut self, post: Post, ctx: &mut Context<Self>) {
        for hint in post.hints {
            self.home.arbiter.borrow_mut().learn(hint);
        }
        for parcel in post.parcels {
            self.decide(ctx, |arbiter, at, out| {
                arbiter.handle_forwarded(at, parcel, out);
            });
        }
        self.end_turn();
    }
}

impl StreamHandler<Arrived> for Registry {
    fn handle(&mut self, Arrived(transport): Arrived, ctx: &mut Context<Self>) {
        self.receive(transport, ctx);
        self.end_turn();
    }

    fn finished(&mut self, _: &mut Context<Self>) {
        error!("a socket was closed");
    }
}

impl StreamHandler<Rang> for Registry {
    fn handle(&mut self, _: Rang, ctx: &mut Context<Self>) {
        self.decide(ctx, |arbiter, at, out| arbiter.handle_timeout(at.now, out));
        self.end_turn();
    }
}

/// A question for a device of this arbiter.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ask {
    pub(crate) key: DeviceKey,
    pub(crate) asked: Box<Asked<ReplyTo>>,
    /// Until the registry has its turn.
    pub(crate) waiting: Waiting,
}

impl Handler<Ask> for Registry {
    type Result = ();

    fn handle(&mut self, ask: Ask, ctx: &mut Context<Self>) {
        let Ask {
            key,
            asked,
            waiting,
        } = ask;
        drop(waiting);
        self.decide(ctx, |arbiter, at, out| {
            arbiter.ask(at.now, key, asked, out);
        });
        self.end_turn();
    }
}

impl Handler<NewTerms> for Registry {
    type Result = ();

    fn handle(&mut self, new: NewTerms, _: &mut Context<Self>) {
        self.home.contracts.of(new.customer).replace(new.terms);
    }
}

/// A device's actor ended, or could.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ended {
    pub(crate) key: DeviceKey,
    pub(crate) generation: Generation,
    pub(crate) ending: Ending,
    /// The span of what it was at, where that matters.
    pub(crate) span: Span,
}

impl Handler<Ended> for Registry {
    type Result = ();

    fn handle(&mut self, ended: Ended, ctx: &mut Context<Self>) {
        let Ended {
            key,
            generation,
            ending,
            span,
        } = ended;
        span.in_scope(|| {
            self.decide(ctx, |arbiter, at, out| {
                arbiter.handle_ended(at.now, key, (generation, ending), out);
            });
        });
        self.end_turn();
    }
}

/// Hears no datagram and wakes no device any more, and restores none unasked; questions are still
/// answered.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Deafen;

impl Handler<Deafen> for Registry {
    type Result = MessageResult<Deafen>;

    fn handle(&mut self, _: Deafen, ctx: &mut Context<Self>) -> MessageResult<Deafen> {
        for stream in self.heeded.drain(..) {
            ctx.cancel_future(stream);
        }
        self.home.arbiter.borrow_mut().quiesce();
        self.tally.tell();
        MessageResult(())
    }
}

/// Lets everything leave that devices have said.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Finish;

impl Handler<Finish> for Registry {
    type Result = MessageResult<Finish>;

    fn handle(&mut self, _: Finish, _: &mut Context<Self>) -> MessageResult<Finish> {
        self.home.sockets.iter().for_each(Socket::flush);
        MessageResult(())
    }
}

/// Ends the registry and its devices.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Leave;

impl Handler<Leave> for Registry {
    type Result = MessageResult<Leave>;

    fn handle(&mut self, _: Leave, ctx: &mut Context<Self>) -> MessageResult<Leave> {
        ctx.stop();
        MessageResult(())
    }
}
