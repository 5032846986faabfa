//! The shell of an arbiter: performs what its machine decides. It takes what the sockets receive,
//! queries the store and starts the actors of devices.

mod alarm;
mod bootstrap;
pub mod context;
mod device;
mod downloads;
pub(crate) mod forward_batch;
mod peer_arbiters;

use std::cell::RefMut;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler,
    Message, MessageResult, StreamHandler, WrapFuture as _,
};
use engine::arbiter::effect::{ArbiterEffect, StartupProgress, StoreLookup};
use engine::arbiter::input::{
    ActorExit, Conditions, DeviceInput, PendingCommand, Received, StartupPage, StoreUnavailable,
};
use engine::arbiter::{Arbiter, ArbiterEffects};
use engine::associations::server_key::ServerKey;
use engine::associations::{
    AssociationEffect, AssociationSnapshot, Associations, ClaimId, ClaimedIdentity,
    KnownCredentials, OpenPsk, SecureMoment,
};
use engine::change::{Batch, UniqueName};
use engine::credentials::Psk;
use engine::device::Device;
use engine::device::record::RestoredDevice;
use engine::dispatch::datagram_form::DatagramForm;
use engine::dispatch::{Classified, DropReason};
use engine::firmware::download::ImageRequest;
use engine::ids::{CustomerId, DeviceKey};
use engine::limits::INPUTS_MAX;
use engine::moment::Timestamp;
use engine::peer::{Peer, Transport};
use engine::profile::Profile;
use engine::sealing::SecretOwner;
use engine::strangers::{Stranger, StrangerReport};
use engine::supervision::{ActorFailure, Generation, Verdict};
use store::{Pressure, ReadAnswer, RestoredPage, Unavailable};
use tracing::{Span, debug, error, info, trace, warn};

use crate::arbiters::datagrams::Datagrams;
use crate::drop_tally::DropTally;
use crate::lease;
use crate::logging::{Logging, WriteEntry};
use crate::meters::pending::PendingQuestion;
use crate::meters::{ArbiterReading, PUBLISH_EVERY};
use crate::policy::PolicyChanged;
use crate::relay::links::NodeLinks;
use crate::reply::ReplyTo;
use crate::socket::Sockets;

use alarm::{Alarm, AlarmFired};
use context::{ArbiterContext, ArbiterParts, ArbiterPlacement};
use device::{DeviceActor, HandleInput};
use forward_batch::ForwardBatch;
use peer_arbiters::PeerArbiters;

/// Commands that may wait for the registry; more are refused as too busy.
const QUESTIONS_MAX: usize = 4_096;

/// How often datagrams that reached no device are logged.
const LOG_DROPS_EVERY: Duration = Duration::from_secs(600);

/// How often senders that are no known device are logged.
const LOG_STRANGERS_EVERY: Duration = Duration::from_secs(60);

/// How often the progress of the start is logged.
const PROGRESS_EVERY_MS: i64 = 2_000;

/// The machine of an arbiter whose devices are actors.
pub(crate) type Machine = Arbiter<Addr<DeviceActor>, ReplyTo>;

type Out = ArbiterEffects<Addr<DeviceActor>, ReplyTo>;

/// An answer of the store.
type Found<T> = Result<T, StoreUnavailable>;

/// The registry of an arbiter.
pub struct Registry {
    context: Rc<ArbiterContext>,
    logging: Addr<Logging>,
    dropped: DropTally,
    /// How many datagrams were received and decoded.
    received: u64,
    /// The batch in progress; kept for its memory, like the effects of a turn.
    batch: Vec<Received>,
    out: Out,
    secured: Vec<AssociationEffect>,
    /// Whether a stop began: no datagram is taken any more.
    is_quiet: bool,
    /// When the progress of the start was last logged.
    published_at: Timestamp,
}

impl Registry {
    /// Starts a registry on the thread of these sockets; it begins once it is told to.
    pub(crate) fn start_on_thread(
        place: ArbiterPlacement,
        parts: ArbiterParts,
        thread: (Rc<Sockets>, Rc<NodeLinks>),
        logging: Addr<Logging>,
    ) -> Addr<Self> {
        Self::create(move |ctx| {
            ctx.set_mailbox_capacity(QUESTIONS_MAX);
            Self {
                context: ArbiterContext::new(parts, place, thread, ctx.address()),
                logging,
                dropped: DropTally::default(),
                received: 0,
                batch: Vec::new(),
                out: Out::new(),
                secured: Vec::new(),
                is_quiet: false,
                published_at: Timestamp::default(),
            }
        })
    }

    /// Takes a batch of messages: decodes all of it and looks for its devices, then handles each
    /// message.
    fn receive(&mut self, datagrams: &Datagrams, ctx: &mut Context<Self>) {
        let mut batch = std::mem::take(&mut self.batch);
        let Self {
            context,
            received,
            dropped,
            ..
        } = self;
        let (now, mut arbiter) = (context.clock.now(), context.arbiter.borrow_mut());
        for (peer, bytes) in datagrams.iter() {
            if let Err(reason) = arbiter.admit(now, peer) {
                context.meters.received.one(DatagramForm::UNREAD);
                dropped.note(reason);
                continue;
            }
            *received += 1;
            let number = context.arbiter_id.datagram_number(*received);
            trace!(%peer, number, length = bytes.len(), "datagram");
            let received = Received::decode(number, peer, bytes);
            let form = match peer.transport {
                Transport::Udp => DatagramForm::BARE,
                Transport::Coap | Transport::Coaps => {
                    DatagramForm::received(bytes, &received.classified)
                }
            };
            context.meters.received.one(form);
            batch.push(received);
        }
        drop(arbiter);
        self.handle_batch(batch, ctx);
    }

    /// Takes a batch of records.
    fn receive_records(&mut self, records: &Datagrams, ctx: &mut Context<Self>) {
        let mut effects = std::mem::take(&mut self.secured);
        let Self {
            context, dropped, ..
        } = self;
        let (now, mut arbiter) = (context.clock.now(), context.arbiter.borrow_mut());
        let mut associations = context.associations.borrow_mut();
        for (peer, bytes) in records.iter() {
            context.meters.received.one(DatagramForm::DTLS);
            if let Err(reason) = arbiter.admit(now, peer) {
                dropped.note(reason);
                continue;
            }
            context.at_secure_moment(|m| {
                associations.handle_datagram(m, peer, bytes, &mut effects);
            });
        }
        drop((arbiter, associations));
        self.perform_secured(effects, ctx);
    }

    /// Gives the associations an input and performs what they decide.
    fn decide_secured(
        &mut self,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Associations, &mut SecureMoment<'_>, &mut Vec<AssociationEffect>),
    ) {
        let mut effects = std::mem::take(&mut self.secured);
        {
            let mut associations = self.context.associations.borrow_mut();
            let context = &self.context;
            context.at_secure_moment(|m| input(&mut associations, m, &mut effects));
        }
        self.perform_secured(effects, ctx);
    }

    /// Performs what the associations decided; what devices have sent is handled as a batch.
    fn perform_secured(&mut self, mut effects: Vec<AssociationEffect>, ctx: &mut Context<Self>) {
        let mut batch = std::mem::take(&mut self.batch);
        for effect in effects.drain(..) {
            match effect {
                AssociationEffect::Send(to, record) => self.context.send(to, record),
                AssociationEffect::Forward(to, peer, record) => {
                    self.context.meters.forwarded.one();
                    let mut others = self.context.peer_arbiters.borrow_mut();
                    others.forward_record(to, peer, record);
                }
                AssociationEffect::LookUp(claim, identity) => {
                    self.look_up_credentials(claim, identity, ctx);
                }
                AssociationEffect::Receive(device, peer, content) => {
                    let number = self.next_number();
                    trace!(%peer, number, length = content.len(), "message over DTLS");
                    batch.push(Received::decode_secured(number, device, peer, &content));
                }
                AssociationEffect::ReceiveForBootstrap(device, peer, content) => {
                    let number = self.next_number();
                    trace!(%peer, number, length = content.len(), "message over DTLS");
                    batch.push(Received::decode_for_bootstrap(
                        number, device, peer, &content,
                    ));
                }
                AssociationEffect::Commit(batch) => self.commit_key_use(*batch, ctx),
                AssociationEffect::Cache(record) => self.context.cache_session(record),
                AssociationEffect::Refuse(device, peer, fault) => {
                    debug!(%device, %peer, ?fault, "a DTLS handshake was refused");
                    let number = self.next_number();
                    batch.push(Received::refused_handshake(number, device, peer, fault));
                }
            }
        }
        self.secured = effects;
        self.handle_batch(batch, ctx);
    }

    fn commit_key_use(&self, batch: Batch, ctx: &mut Context<Self>) {
        let receipt = self.context.commits.commit(batch).into_actor(self);
        ctx.spawn(receipt.map(|receipt, _, _| {
            if let Err(error) = receipt {
                debug!(%error, "the use of a new key was not saved");
            }
        }));
    }

    fn next_number(&mut self) -> u64 {
        self.received += 1;
        self.context.arbiter_id.datagram_number(self.received)
    }

    /// Looks up which device has an identity, and opens its keys.
    fn look_up_credentials(
        &self,
        claim: ClaimId,
        identity: ClaimedIdentity,
        ctx: &mut Context<Self>,
    ) {
        let (store, name) = (Arc::clone(&self.context.store), identity.name());
        let is_certificate = matches!(identity, ClaimedIdentity::Certificate { .. });
        let found = async move {
            let Some(profile) = store.profile_by_name(name).await? else {
                return Ok(None);
            };
            let authorities = match is_certificate {
                true => {
                    let customer = profile.customer.clone();
                    store.certificate_authorities(customer).await?
                }
                false => None,
            };
            Ok(Some((profile, authorities)))
        };
        ctx.spawn(found.into_actor(self).map(move |found, registry, ctx| {
            let found = found.map_err(|Unavailable| StoreUnavailable);
            let found = found.map(|it| {
                it.map(|(profile, authorities)| KnownCredentials {
                    authorities,
                    ..registry.open_keys(profile, &identity)
                })
            });
            registry.decide_secured(ctx, |associations, m, out| {
                associations.handle_credentials(m, claim, found, out);
            });
            registry.end_turn();
        }));
    }

    fn open_keys(&self, profile: Profile, identity: &ClaimedIdentity) -> KnownCredentials {
        let key = profile.key();
        let context = SecretOwner::Device(key).context();
        let open = |psk: &Psk| {
            let opened = self.context.master_key.open(&psk.key, &context);
            opened.inspect_err(|error| warn!(device = %key, %error, "a pre-shared key is unusable"))
        };
        let psks = identity.psks_of(&profile).into_iter();
        let psks = psks.filter_map(|psk| Some(OpenPsk::new(psk, open(psk).ok()?)));
        let psks = psks.collect();
        KnownCredentials {
            profile: Box::new(profile),
            psks,
            authorities: None,
        }
    }

    /// Looks for the devices of a batch, then handles each message.
    fn handle_batch(&mut self, mut batch: Vec<Received>, ctx: &mut Context<Self>) {
        self.prefetch(&batch);
        let at = self.conditions();
        for received in batch.drain(..) {
            self.decide_at(&at, ctx, |arbiter, out| {
                arbiter.handle_datagram(&at, received, out);
            });
        }
        self.batch = batch;
    }

    /// Prefetches what delivery to these devices will access. In a large fleet none of it is in the
    /// processor's cache, and fetches that do not wait for each other overlap.
    fn prefetch(&self, batch: &[Received]) {
        let arbiter = self.context.arbiter.borrow();
        let actors = || {
            batch
                .iter()
                .filter_map(|received| match &received.classified {
                    Classified::ToLocation(location, _) => arbiter.handle_at(location.device),
                    Classified::ToDevice(key, _) => arbiter.handle_of(*key),
                    Classified::ToEndpoint(..)
                    | Classified::ToPeer(_)
                    | Classified::ToAddress(_)
                    | Classified::ToImage(_)
                    | Classified::Answered { .. }
                    | Classified::Ignored(_) => None,
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

    /// Does the same for one of several inputs of a turn.
    fn decide_at(
        &mut self,
        at: &Conditions,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Machine, &mut Out),
    ) {
        let mut out = std::mem::take(&mut self.out);
        input(&mut self.context.arbiter.borrow_mut(), &mut out);
        while let Some(effect) = out.pop_front() {
            self.perform(effect, at.now, &mut out, ctx);
        }
        self.out = out;
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            now: self.context.clock.now(),
            is_store_full: self.context.commits.pressure() != Pressure::Open,
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
            ArbiterEffect::Forward(to, forwarded) => {
                self.context.meters.forwarded.one();
                self.others().forward(to, forwarded);
            }
            ArbiterEffect::SendRouteHint(hint) => self.others().send_hint(hint),
            ArbiterEffect::TellOfStranger(to, peer) => self.others().send_stranger(to, peer),
            ArbiterEffect::ReadImage(request) => self.read_image(request, ctx),
            ArbiterEffect::Send(to, datagram) => self.context.send(to, datagram),
            ArbiterEffect::SendSecured(device, address, message) => {
                self.context.seal_answer((device, address), &message);
            }
            ArbiterEffect::Drop(number, reason) => {
                trace!(number, ?reason, "a datagram was dropped");
                self.dropped.note(reason);
            }
            ArbiterEffect::Lookup(look_up) => self.lookup(look_up, ctx),
            ArbiterEffect::Spawn {
                key,
                generation,
                customer,
                restored,
            } => {
                let actor = self.spawn(*restored, generation);
                let mut arbiter = self.context.arbiter.borrow_mut();
                arbiter.handle_spawned(key, (generation, customer), actor, out);
            }
            // Its actor ends when no address of it is left.
            ArbiterEffect::Release(_, actor) => drop(actor),
            ArbiterEffect::Reply(reply, answer) => reply.give(answer),
            ArbiterEffect::Failed(key, failure, verdict) => log_failure(key, failure, verdict),
            ArbiterEffect::Log(entry, event) => {
                if self.logging.try_send(WriteEntry { entry, event }).is_err() {
                    warn!("the logging actor is busy; a log entry was dropped");
                }
            }
            ArbiterEffect::Progress(progress) => self.log_progress(progress, now),
        }
    }

    fn deliver(&self, key: DeviceKey, input: DeviceInput<ReplyTo>, now: Timestamp, out: &mut Out) {
        let mut arbiter = self.context.arbiter.borrow_mut();
        let undelivered = match arbiter.handle_of(key) {
            Some(actor) => actor
                .try_send(HandleInput(input))
                .map_err(|full| full.into_inner().0)
                .err(),
            None => Some(input),
        };
        if let Some(input) = undelivered {
            arbiter.handle_undelivered(now, key, input, out);
        }
    }

    fn spawn(&self, restored: RestoredDevice, generation: Generation) -> Addr<DeviceActor> {
        let policy = self.context.policies.of(restored.profile.customer.clone());
        let mut m = self.context.clock.moment();
        let device = Device::restore(&mut m, policy.policy(), restored);
        let context = Rc::clone(&self.context);
        DeviceActor::create(|ctx| {
            // Done before its first turn: the inputs that waited for it are delivered at once.
            ctx.set_mailbox_capacity(INPUTS_MAX);
            DeviceActor::new(device, generation, policy, context)
        })
    }

    fn lookup(&self, look_up: StoreLookup, ctx: &mut Context<Self>) {
        let store = &self.context.store;
        match look_up {
            StoreLookup::Endpoint(id, endpoint) => {
                let bearer = store.device_by_name(UniqueName::Endpoint(endpoint.clone()));
                self.ask_store(bearer, ctx, move |arbiter, at, found, out| {
                    if let Ok(None) = found {
                        debug!(%endpoint, "registration with an unknown endpoint name");
                    }
                    arbiter.handle_found(at, id, found, out);
                });
            }
            StoreLookup::Location(id, prefix) => {
                let device = store.device_at(prefix);
                self.ask_store(device, ctx, move |arbiter, at, found, out| {
                    arbiter.handle_found(at, id, found, out);
                });
            }
            StoreLookup::Address(address) => {
                let behind = store.devices_at_address(address);
                self.ask_store(behind, ctx, move |arbiter, at, behind, out| {
                    arbiter.handle_address(at, address, behind, out);
                });
            }
            StoreLookup::Device(key) => {
                let restored = store.restored(key);
                self.ask_store(restored, ctx, move |arbiter, at, found, out| {
                    if let Err(StoreUnavailable) = found {
                        warn!(device = %key, "a device could not be restored from the store");
                    }
                    arbiter.handle_restored(at.now, key, found, out);
                });
            }
            StoreLookup::Page(keys, max) => {
                let first = *keys.start();
                let page = store.restored_page(keys, max);
                self.ask_store(page, ctx, move |arbiter, at, page, out| {
                    let page =
                        page.map(|RestoredPage { devices, next }| StartupPage { devices, next });
                    arbiter.handle_page(at.now, first, page, out);
                });
            }
            StoreLookup::Parked(key) => {
                let mut m = self.context.clock.moment();
                let profile = store.profile(key);
                self.ask_store(profile, ctx, move |arbiter, _, profile, out| {
                    if let Ok(Some(profile)) = profile {
                        arbiter.handle_parked(&mut m, &profile, out);
                    }
                });
            }
        }
    }

    fn read_image(&self, request: Box<ImageRequest>, ctx: &mut Context<Self>) {
        let context = Rc::clone(&self.context);
        let read = async move {
            let found = downloads::block_of(context, &request).await;
            (request, found)
        };
        ctx.spawn(
            read.into_actor(self)
                .map(|(request, found), registry, ctx| {
                    registry.decide(ctx, |arbiter, at, out| {
                        arbiter.handle_image_read(at, &request, found, out);
                    });
                    registry.end_turn();
                }),
        );
    }

    fn ask_store<T: 'static>(
        &self,
        answer: ReadAnswer<T>,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut Machine, &Conditions, Found<T>, &mut Out) + 'static,
    ) {
        ctx.spawn(answer.into_actor(self).map(move |answer, registry, ctx| {
            let answer = answer.map_err(|Unavailable| StoreUnavailable);
            registry.decide(ctx, |arbiter, at, out| input(arbiter, at, answer, out));
            registry.end_turn();
        }));
    }

    /// Ends a turn: flushes the batches for other arbiters, and sets the alarm.
    fn end_turn(&mut self) {
        if let Some(next) = self.context.next_timeout() {
            self.context.alarm_waker.note(next);
        }
        let lost = self.others().flush();
        for _ in 0..lost {
            self.dropped.note(DropReason::ArbiterBusy);
        }
    }

    fn others(&self) -> RefMut<'_, PeerArbiters> {
        self.context.peer_arbiters.borrow_mut()
    }

    /// Publishes the metrics.
    fn publish(&self) {
        self.context.meters.publish(&ArbiterReading {
            now: self.context.clock.now(),
            dropped: &self.dropped,
            lookups: self.context.arbiter.borrow().looked_up(),
            associations: self.context.associations.borrow().counts(),
        });
    }

    /// Logs that senders which are no known device were refused, with the last one as an example.
    fn log_strangers(&self) {
        let Some(report) = self.context.arbiter.borrow_mut().take_stranger_report() else {
            return;
        };
        let StrangerReport { count, example } = report;
        let (endpoint, address) = (example.endpoint.as_deref(), example.address);
        let operation = example.operation;
        info!(
            count,
            endpoint,
            %address,
            ?operation,
            "messages of unknown senders were refused; this is the last one"
        );
    }

    /// Logs the progress of the start, at intervals.
    fn log_progress(&mut self, progress: StartupProgress, now: Timestamp) {
        let arbiter = self.context.arbiter_id.index();
        match progress {
            StartupProgress::Underway { restored, part } => {
                self.context.meters.publish_progress(restored, part);
                if now.since_ms(self.published_at) >= PROGRESS_EVERY_MS {
                    self.published_at = now;
                    let percent = (100.0 * part) as u64;
                    info!(arbiter, restored, percent, "devices are being restored");
                }
            }
            StartupProgress::Restored { restored, took_ms } => {
                self.context.meters.publish_progress(restored, 1.0);
                info!(arbiter, restored, took_ms, "all devices are restored");
            }
        }
    }
}

fn log_failure(device: DeviceKey, failure: ActorFailure, verdict: Verdict) {
    match (failure, verdict) {
        (ActorFailure::Panicked, Verdict::Restore) => {
            error!(%device, "the actor of a device panicked and is restored");
        }
        (ActorFailure::Panicked, Verdict::Park) => {
            error!(%device, "the actor of a device keeps panicking and is parked");
        }
        // It was logged when it happened.
        (ActorFailure::Unsaved, Verdict::Restore | Verdict::Park) => {}
    }
}

impl Actor for Registry {
    type Context = Context<Self>;
}

/// Restores the devices, and serves them from now on.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StartArbiter;

impl Handler<StartArbiter> for Registry {
    type Result = ();

    fn handle(&mut self, _: StartArbiter, ctx: &mut Context<Self>) {
        ctx.add_stream(Alarm::new(Rc::clone(&self.context)));
        ctx.run_interval(LOG_DROPS_EVERY, |registry, _| registry.dropped.log());
        ctx.run_interval(LOG_STRANGERS_EVERY, |registry, _| registry.log_strangers());
        ctx.run_interval(PUBLISH_EVERY, |registry, _| registry.publish());
        self.published_at = self.context.clock.now();
        self.decide(ctx, |arbiter, at, out| arbiter.start(at.now, out));
        self.end_turn();
    }
}

impl Handler<ForwardBatch> for Registry {
    type Result = ();

    fn handle(&mut self, post: ForwardBatch, ctx: &mut Context<Self>) {
        let now = self.context.clock.now();
        for hint in post.route_hints {
            self.context.arbiter.borrow_mut().learn(hint);
        }
        for peer in post.strangers {
            self.context.arbiter.borrow_mut().note_stranger(now, peer);
        }
        for (peer, record) in post.records {
            self.decide_secured(ctx, |associations, m, out| {
                associations.handle_forwarded(m, peer, &record, out);
            });
        }
        for record in post.cached_sessions {
            // It may be of another node.
            if let Some(kept) = &self.context.kept_sessions {
                kept.cache(&record);
            }
            self.context.associations.borrow_mut().cache(&record);
        }
        for (device, message) in post.secured {
            self.context.seal(device, &message);
        }
        for forwarded in post.datagrams {
            self.decide(ctx, |arbiter, at, out| {
                arbiter.handle_forwarded(at, forwarded, out);
            });
        }
        self.end_turn();
    }
}

/// Datagrams that a socket has received, of this node or of another one.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ReceivedDatagrams(pub(crate) Datagrams);

impl Handler<ReceivedDatagrams> for Registry {
    type Result = ();

    fn handle(&mut self, ReceivedDatagrams(datagrams): ReceivedDatagrams, ctx: &mut Context<Self>) {
        // Without the lease they are for another node, which their senders reach when they repeat
        // them.
        if self.is_quiet || !lease::is_held() {
            return;
        }
        match datagrams.are_records() {
            true => self.receive_records(&datagrams, ctx),
            false => self.receive(&datagrams, ctx),
        }
        self.end_turn();
    }
}

impl StreamHandler<AlarmFired> for Registry {
    fn handle(&mut self, _: AlarmFired, ctx: &mut Context<Self>) {
        self.decide(ctx, |arbiter, at, out| arbiter.handle_timeout(at.now, out));
        self.decide_secured(ctx, Associations::handle_timeout);
        self.end_turn();
    }
}

/// A command for a device of this arbiter.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct AskDevice {
    pub(crate) key: DeviceKey,
    pub(crate) pending: Box<PendingCommand<ReplyTo>>,
    /// Counts as waiting until the registry handles it.
    pub(crate) waiting: PendingQuestion,
}

impl Handler<AskDevice> for Registry {
    type Result = ();

    fn handle(&mut self, ask: AskDevice, ctx: &mut Context<Self>) {
        let AskDevice {
            key,
            pending,
            waiting,
        } = ask;
        drop(waiting);
        self.decide(ctx, |arbiter, at, out| {
            arbiter.ask(at.now, key, pending, out);
        });
        self.end_turn();
    }
}

impl Handler<PolicyChanged> for Registry {
    type Result = ();

    fn handle(&mut self, new: PolicyChanged, _: &mut Context<Self>) {
        self.context.policies.of(new.customer).replace(new.policy);
    }
}

/// A device's actor ended, or could end.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct DeviceEnded {
    pub(crate) key: DeviceKey,
    pub(crate) generation: Generation,
    pub(crate) ending: ActorExit,
    /// The span of the input in which it failed, where that matters.
    pub(crate) span: Span,
}

impl Handler<DeviceEnded> for Registry {
    type Result = ();

    fn handle(&mut self, ended: DeviceEnded, ctx: &mut Context<Self>) {
        let DeviceEnded {
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

/// A datagram for a device came from somebody else.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ImpostorSent {
    pub(crate) number: u64,
    pub(crate) peer: Peer,
}

impl Handler<ImpostorSent> for Registry {
    type Result = ();

    fn handle(&mut self, sent: ImpostorSent, ctx: &mut Context<Self>) {
        let ImpostorSent { number, peer } = sent;
        self.decide(ctx, |arbiter, at, out| {
            arbiter.handle_impostor(at.now, (number, peer), out);
        });
        self.end_turn();
    }
}

/// Lists the senders that are no known device.
#[derive(Message)]
#[rtype(result = "Vec<Stranger>")]
pub(crate) struct ListStrangers;

impl Handler<ListStrangers> for Registry {
    type Result = MessageResult<ListStrangers>;

    fn handle(&mut self, _: ListStrangers, _: &mut Context<Self>) -> MessageResult<ListStrangers> {
        MessageResult(self.context.arbiter.borrow().strangers())
    }
}

/// Describes the DTLS session that this arbiter has with a device.
#[derive(Message)]
#[rtype(result = "Option<AssociationSnapshot>")]
pub(crate) struct DescribeAssociation(pub(crate) DeviceKey);

impl Handler<DescribeAssociation> for Registry {
    type Result = MessageResult<DescribeAssociation>;

    fn handle(&mut self, ask: DescribeAssociation, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.context.associations.borrow().snapshot(ask.0))
    }
}

/// Ends the DTLS session that this arbiter has with a device whose keys have changed.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct EndSession(pub(crate) DeviceKey);

impl Handler<EndSession> for Registry {
    type Result = ();

    fn handle(&mut self, EndSession(device): EndSession, ctx: &mut Context<Self>) {
        self.decide_secured(ctx, |associations, m, out| associations.end(m, device, out));
        self.end_turn();
    }
}

/// Ends the DTLS sessions of a customer's devices that began with a certificate, because its
/// authorities have changed.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct EndCertified(pub(crate) CustomerId);

impl Handler<EndCertified> for Registry {
    type Result = ();

    fn handle(&mut self, EndCertified(customer): EndCertified, ctx: &mut Context<Self>) {
        self.decide_secured(ctx, |associations, m, out| {
            associations.end_certified(m, &customer, out);
        });
        self.end_turn();
    }
}

/// Shows another key of the service from the next DTLS handshake on.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ShowServerKey(pub(crate) ServerKey);

impl Handler<ShowServerKey> for Registry {
    type Result = ();

    fn handle(&mut self, ShowServerKey(key): ShowServerKey, _: &mut Context<Self>) {
        self.context.associations.borrow_mut().show_key(&key);
    }
}

/// Receives no datagram, wakes no device and begins no restore any more; commands are still
/// answered.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Quiesce;

impl Handler<Quiesce> for Registry {
    type Result = MessageResult<Quiesce>;

    fn handle(&mut self, _: Quiesce, _: &mut Context<Self>) -> MessageResult<Quiesce> {
        self.is_quiet = true;
        self.context.arbiter.borrow_mut().quiesce();
        self.dropped.log();
        self.log_strangers();
        MessageResult(())
    }
}

/// Ends the DTLS sessions of this arbiter and keeps them for the next process.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct KeepSessions;

impl Handler<KeepSessions> for Registry {
    type Result = MessageResult<KeepSessions>;

    fn handle(&mut self, _: KeepSessions, _: &mut Context<Self>) -> MessageResult<KeepSessions> {
        if let Some(kept) = &self.context.kept_sessions {
            let mut associations = self.context.associations.borrow_mut();
            let arbiter = (self.context.arbiter_id.number(), self.context.epoch);
            kept.keep(arbiter, |record| {
                associations.export(record);
            });
        }
        MessageResult(())
    }
}

/// Removes all devices from memory, once they have done what they were given before.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct UnloadDevices;

impl Handler<UnloadDevices> for Registry {
    type Result = MessageResult<UnloadDevices>;

    fn handle(
        &mut self,
        _: UnloadDevices,
        ctx: &mut Context<Self>,
    ) -> MessageResult<UnloadDevices> {
        self.decide(ctx, |arbiter, _, out| arbiter.unload_all(out));
        MessageResult(())
    }
}

/// Ends the registry.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StopArbiter;

impl Handler<StopArbiter> for Registry {
    type Result = MessageResult<StopArbiter>;

    fn handle(&mut self, _: StopArbiter, ctx: &mut Context<Self>) -> MessageResult<StopArbiter> {
        // One may have been restored meanwhile.
        self.decide(ctx, |arbiter, _, out| arbiter.unload_all(out));
        self.publish();
        self.context.meters.end();
        ctx.stop();
        MessageResult(())
    }
}
