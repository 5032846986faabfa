//! The shell of one device: performs what its cell decides, in order.
//!
//! While the cell waits for a receipt or an answer of the store, the actor handles no other
//! message; other devices do not wait.

use std::rc::Rc;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message,
    WrapFuture as _,
};
use engine::arbiter::cell::{CellEffect, CommitFailure, DeviceCell, StepContext};
use engine::arbiter::input::ActorExit;
use engine::arbiter::input::DeviceInput;
use engine::bootstrap::BootstrapOrder;
use engine::change::Batch;
use engine::device::Device;
use engine::effect::SendOutcome;
use engine::firmware::{ImageRange, ImageUnreadable};
use engine::ids::{ActionId, DeviceKey};
use engine::supervision::{ActorFailure, Generation};
use store::{CommitError, Unavailable};
use tracing::{Span, debug, warn};

use crate::meters::census::CountedAs;
use crate::policy::PolicyHandle;
use crate::registry::bootstrap;
use crate::registry::context::ArbiterContext;
use crate::registry::{DeviceEnded, ImpostorSent};
use crate::reply::ReplyTo;
use crate::step_events;

/// One device.
pub(crate) struct DeviceActor {
    cell: DeviceCell<ReplyTo>,
    /// The current policy of its customer.
    policy: Rc<PolicyHandle>,
    context: Rc<ArbiterContext>,
    counted: CountedAs,
    /// Whether it failed; the arbiter is informed once the actor is gone.
    has_failed: bool,
}

type Out = Vec<CellEffect<ReplyTo>>;

/// What is the next input of a cell, because performing an effect gave it at once.
enum NextInput {
    /// The outcome of sending the bare datagram of a request.
    Sent(ActionId, SendOutcome),
    /// A part of the image that the device is sent.
    Image(Vec<u8>),
}

impl DeviceActor {
    pub(crate) fn new(
        mut device: Device,
        generation: Generation,
        contract: Rc<PolicyHandle>,
        home: Rc<ArbiterContext>,
    ) -> Self {
        device.share_objects(&mut home.object_lists.borrow_mut());
        Self {
            cell: DeviceCell::new(device, generation),
            policy: contract,
            context: home,
            counted: CountedAs::default(),
            has_failed: false,
        }
    }

    fn key(&self) -> DeviceKey {
        self.cell.device().key()
    }

    /// Gives the cell an input and performs what it decides.
    fn decide(
        &mut self,
        span: &Span,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut DeviceCell<ReplyTo>, &mut StepContext<'_>, &mut Out),
    ) {
        let mut out = self.context.effects_buffer.take();
        {
            let mut context = StepContext {
                moment: self.context.clock.moment(),
                policy: &self.policy.current(),
                epoch: self.context.epoch,
            };
            input(&mut self.cell, &mut context, &mut out);
        }
        self.settle(out, span, ctx);
    }

    /// Does the same with an answer that a step waits for.
    fn go_on(
        &mut self,
        span: &Span,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut DeviceCell<ReplyTo>, &mut Out),
    ) {
        let mut out = self.context.effects_buffer.take();
        input(&mut self.cell, &mut out);
        self.settle(out, span, ctx);
    }

    /// Performs what the cell decided. The outcome of a bare datagram is its next input: a socket
    /// without a record layer knows it at once. So is a part of an image that is in memory.
    fn settle(&mut self, mut out: Out, span: &Span, ctx: &mut Context<Self>) {
        let mut objects = self.context.object_lists.borrow_mut();
        self.cell.device_mut().share_objects(&mut objects);
        drop(objects);
        let next = span.in_scope(|| self.perform_all(&mut out, span, ctx));
        self.context.effects_buffer.replace(out);
        match next {
            Some(NextInput::Sent(action, outcome)) => {
                self.decide(span, ctx, |cell, context, out| {
                    cell.handle_send_outcome(context, (action, outcome), out);
                })
            }
            Some(NextInput::Image(block)) => self.decide(span, ctx, |cell, context, out| {
                cell.handle_image(context, Ok(block), out);
            }),
            None if self.cell.is_waiting() => {}
            None => self.recount(),
        }
    }

    /// Performs everything in order; returns the next input, if it is there already. A step leads
    /// to one at most: what it is about is the attempt in flight.
    fn perform_all(
        &mut self,
        out: &mut Out,
        span: &Span,
        ctx: &mut Context<Self>,
    ) -> Option<NextInput> {
        let mut next = None;
        for effect in out.drain(..) {
            match effect {
                CellEffect::CountUplink(kind, datagrams) => {
                    for _ in 0..datagrams {
                        self.context.meters.uplink(kind);
                    }
                }
                CellEffect::ReportImpostor(number, peer) => {
                    let sent = ImpostorSent { number, peer };
                    if self.context.actor.try_send(sent).is_err() {
                        debug!(%peer, "the registry is busy");
                    }
                }
                CellEffect::Commit(batch, trace) => {
                    let span = match (span.is_disabled(), trace) {
                        (true, Some(trace)) => step_events::span_of(trace),
                        (true, None) | (false, _) => span.clone(),
                    };
                    self.commit(batch, span, ctx);
                }
                CellEffect::ReadProfile => self.read_profile(span.clone(), ctx),
                CellEffect::NoteTransferred(campaign, place, bytes) => {
                    self.context.images.progress().note(campaign, place, bytes);
                }
                CellEffect::ReadImage(range) => {
                    let ImageRange { image, from, bytes } = range;
                    match self.context.images.find(image, from, bytes) {
                        Some(block) => next = Some(NextInput::Image(block)),
                        None => self.read_image(range, ctx),
                    }
                }
                CellEffect::PrepareBootstrap(order) => self.prepare_bootstrap(*order, ctx),
                CellEffect::Rebind(from, to) => {
                    let (key, binding) = (self.key(), self.cell.binding_mut());
                    self.context
                        .arbiter
                        .borrow_mut()
                        .rebind(key, (from, to), binding);
                }
                CellEffect::Send(to, datagram) => self.context.send_to(self.key(), to, datagram),
                CellEffect::SendUdp(to, bytes, action) => {
                    let socket = self.context.sockets.of(to.transport);
                    next = Some(NextInput::Sent(action, socket.send_now(to, &bytes)));
                }
                CellEffect::NoteUnfinished(bytes) => {
                    self.context.note_unfinished(self.key(), bytes);
                }
                CellEffect::Report(report) => {
                    step_events::trace_events(&report, self.key(), &self.context.meters);
                }
                CellEffect::Reply(reply, answer) => reply.give(answer),
                CellEffect::Arm(at) => self.context.arm(at, self.key()),
                CellEffect::Disarm(at) => {
                    self.context.arbiter.borrow_mut().disarm(at, self.key());
                }
                CellEffect::End(ending) => self.end(ending, ctx),
            }
        }
        next
    }

    fn commit(&mut self, batch: Batch, span: Span, ctx: &mut Context<Self>) {
        let receipt = span.in_scope(|| self.context.commits.commit(batch));
        let receipt = receipt.into_actor(self);
        ctx.wait(receipt.map(move |receipt, actor, ctx| {
            if let Err(error) = receipt {
                let device = actor.key();
                span.in_scope(|| warn!(%device, %error, "a step was not saved"));
            }
            let receipt = receipt.map_err(not_saved);
            actor.go_on(&span, ctx, |cell, out| cell.handle_receipt(receipt, out));
        }));
    }

    fn read_profile(&mut self, span: Span, ctx: &mut Context<Self>) {
        let profile = self.context.store.profile(self.key()).into_actor(self);
        ctx.wait(profile.map(move |profile, actor, ctx| {
            if let Err(Unavailable) = profile {
                let device = actor.key();
                span.in_scope(|| warn!(%device, "the profile of a device could not be read"));
            }
            let profile = profile.map_err(|Unavailable| CommitFailure::Failed);
            let profile = profile.as_ref().map(Option::as_ref).map_err(|why| *why);
            actor.go_on(&span, ctx, |cell, out| cell.handle_profile(profile, out));
        }));
    }

    fn prepare_bootstrap(&self, order: BootstrapOrder, ctx: &mut Context<Self>) {
        let uris = self.policy.current().rules.uris.clone();
        let prepared = bootstrap::prepared(Rc::clone(&self.context), self.key(), order, uris);
        ctx.wait(prepared.into_actor(self).map(|prepared, actor, ctx| {
            actor.decide(&Span::none(), ctx, |cell, context, out| {
                cell.handle_bootstrap(context, prepared, out);
            });
        }));
    }

    fn read_image(&self, range: ImageRange, ctx: &mut Context<Self>) {
        let files = self.context.images.clone();
        let ImageRange { image, from, bytes } = range;
        let read = async move { files.read(image, from, bytes).await };
        ctx.wait(read.into_actor(self).map(move |read, actor, ctx| {
            let read = read.map_err(|error| {
                warn!(%image, %error, "an image could not be read");
                ImageUnreadable
            });
            actor.decide(&Span::none(), ctx, |cell, context, out| {
                cell.handle_image(context, read, out);
            });
        }));
    }

    fn end(&mut self, ending: ActorExit, ctx: &mut Context<Self>) {
        match ending {
            // If the registry's mailbox is full, it stays a little longer.
            ActorExit::Idle { .. } => {
                if self.context.actor.try_send(self.ended(ending)).is_err() {
                    debug!(device = %self.key(), "the registry is busy");
                }
            }
            ActorExit::Retired => self.context.actor.do_send(self.ended(ending)),
            ActorExit::Failed(_) => {
                self.has_failed = true;
                ctx.stop();
            }
        }
    }

    fn ended(&self, ending: ActorExit) -> DeviceEnded {
        DeviceEnded {
            key: self.key(),
            generation: self.cell.generation(),
            ending,
            span: Span::none(),
        }
    }

    /// Updates the census with the device's present activity.
    fn recount(&mut self) {
        let activity = self.cell.device().activity();
        self.counted = self.context.meters.census.recount(self.counted, &activity);
    }

    /// The span of the input over which the device panicked.
    fn panicked_in(&self) -> Span {
        let deciding = self.context.deciding.take();
        let trace = self.cell.device().trace_in_flight();
        deciding.unwrap_or_else(|| trace.map_or_else(Span::none, step_events::span_of))
    }
}

fn not_saved(error: CommitError) -> CommitFailure {
    match error {
        CommitError::Conflict => CommitFailure::Conflict,
        CommitError::Full => CommitFailure::Full,
        CommitError::Fenced | CommitError::Unavailable => CommitFailure::Failed,
    }
}

impl Actor for DeviceActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.go_on(&Span::none(), ctx, DeviceCell::start);
    }
}

/// An input of a device.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct HandleInput(pub(crate) DeviceInput<ReplyTo>);

impl Handler<HandleInput> for DeviceActor {
    type Result = ();

    fn handle(&mut self, HandleInput(input): HandleInput, ctx: &mut Context<Self>) {
        let span = match &input {
            DeviceInput::Command(pending) => pending.reply.span.clone(),
            DeviceInput::Datagram(_) | DeviceInput::Timeout | DeviceInput::DropUnfinished => {
                Span::none()
            }
        };
        self.context
            .deciding
            .set(Some(span.clone()).filter(|span| !span.is_disabled()));
        self.decide(&span, ctx, |cell, context, out| {
            cell.handle(context, input, out)
        });
        self.context.deciding.set(None);
    }
}

impl Drop for DeviceActor {
    fn drop(&mut self) {
        self.context.meters.census.leave(self.counted);
        let key = self.key();
        self.context
            .arbiter
            .borrow_mut()
            .abandon(key, self.cell.binding_mut());
        let ended = if self.has_failed {
            self.ended(ActorExit::Failed(ActorFailure::Unsaved))
        } else if std::thread::panicking() {
            DeviceEnded {
                span: self.panicked_in(),
                ..self.ended(ActorExit::Failed(ActorFailure::Panicked))
            }
        } else {
            // The arbiter released it, or knows already.
            return;
        };
        self.context.actor.do_send(ended);
    }
}
