//! The shell of one device: performs what its cell decides, in order.
//!
//! While the cell waits for a receipt or an answer of the store, the actor takes no other message;
//! other devices do not wait.

use std::rc::Rc;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message,
    WrapFuture as _,
};
use engine::arbiter::cell::{CellEffect, DeviceCell, NotSaved, StepContext};
use engine::arbiter::input::Ending;
use engine::arbiter::input::Input;
use engine::change::Batch;
use engine::device::Device;
use engine::effect::Departure;
use engine::ids::{ActionId, DeviceKey};
use engine::supervision::{Failure, Generation};
use store::{CommitError, Unavailable};
use tracing::{Span, debug, warn};

use crate::meters::census::Counted;
use crate::registry::Ended;
use crate::registry::home::Home;
use crate::reply::ReplyTo;
use crate::terms::Contract;
use crate::told;

/// One device.
pub(crate) struct DeviceActor {
    cell: DeviceCell<ReplyTo>,
    /// The terms its customer chose last.
    contract: Rc<Contract>,
    home: Rc<Home>,
    counted: Counted,
    /// It failed; the arbiter hears of it when the actor is gone.
    has_failed: bool,
}

type Out = Vec<CellEffect<ReplyTo>>;

impl DeviceActor {
    pub(crate) fn new(
        mut device: Device,
        generation: Generation,
        contract: Rc<Contract>,
        home: Rc<Home>,
    ) -> Self {
        device.share_objects(&mut home.object_lists.borrow_mut());
        Self {
            cell: DeviceCell::new(device, generation),
            contract,
            home,
            counted: Counted::default(),
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
        let mut out = self.home.spare.take();
        {
            let mut context = StepContext {
                moment: self.home.clock.moment(),
                terms: &self.contract.current(),
                epoch: self.home.epoch,
            };
            input(&mut self.cell, &mut context, &mut out);
        }
        self.settle(out, span, ctx);
    }

    /// The same with an answer that a step waits for.
    fn go_on(
        &mut self,
        span: &Span,
        ctx: &mut Context<Self>,
        input: impl FnOnce(&mut DeviceCell<ReplyTo>, &mut Out),
    ) {
        let mut out = self.home.spare.take();
        input(&mut self.cell, &mut out);
        self.settle(out, span, ctx);
    }

    /// Performs what the cell decided. What became of a bare datagram is its next input: a socket
    /// without a record layer knows it at once.
    fn settle(&mut self, mut out: Out, span: &Span, ctx: &mut Context<Self>) {
        let mut objects = self.home.object_lists.borrow_mut();
        self.cell.device_mut().share_objects(&mut objects);
        drop(objects);
        let departed = span.in_scope(|| self.perform_all(&mut out, span, ctx));
        self.home.spare.replace(out);
        match departed {
            Some(departed) => self.decide(span, ctx, |cell, context, out| {
                cell.handle_departure(context, departed, out);
            }),
            None if self.cell.is_waiting() => {}
            None => self.recount(),
        }
    }

    /// Does everything in order; says what became of a bare datagram among it, of which a step has
    /// one at most: that is an attempt.
    fn perform_all(
        &mut self,
        out: &mut Out,
        span: &Span,
        ctx: &mut Context<Self>,
    ) -> Option<(ActionId, Departure)> {
        let mut departed = None;
        for effect in out.drain(..) {
            match effect {
                CellEffect::Heard(heard, datagrams) => {
                    for _ in 0..datagrams {
                        self.home.meters.heard(heard);
                    }
                }
                CellEffect::Commit(batch, trace) => {
                    let span = match (span.is_disabled(), trace) {
                        (true, Some(trace)) => told::span_of(trace),
                        (true, None) | (false, _) => span.clone(),
                    };
                    self.commit(batch, span, ctx);
                }
                CellEffect::ReadProfile => self.read_profile(span.clone(), ctx),
                CellEffect::Rebind(from, to) => {
                    let (key, said) = (self.key(), self.cell.said_mut());
                    self.home.arbiter.borrow_mut().rebind(key, (from, to), said);
                }
                CellEffect::Send(to, datagram) => self.home.send(to, datagram),
                CellEffect::SendBare(to, bytes, action) => {
                    let socket = self.home.sockets.of(to.transport);
                    departed = Some((action, socket.send_now(to, bytes)));
                }
                CellEffect::Report(report) => {
                    told::tell(&report, self.key(), &self.home.meters);
                }
                CellEffect::Reply(reply, answer) => reply.give(answer),
                CellEffect::Arm(at) => self.home.arm(at, self.key()),
                CellEffect::Disarm(at) => {
                    self.home.arbiter.borrow_mut().disarm(at, self.key());
                }
                CellEffect::End(ending) => self.end(ending, ctx),
            }
        }
        departed
    }

    fn commit(&mut self, batch: Batch, span: Span, ctx: &mut Context<Self>) {
        let receipt = span.in_scope(|| self.home.commits.commit(batch));
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
        let profile = self.home.store.profile(self.key()).into_actor(self);
        ctx.wait(profile.map(move |profile, actor, ctx| {
            if let Err(Unavailable) = profile {
                let device = actor.key();
                span.in_scope(|| warn!(%device, "the profile of a device could not be read"));
            }
            let profile = profile.map_err(|Unavailable| NotSaved::Failed);
            let profile = profile.as_ref().map(Option::as_ref).map_err(|why| *why);
            actor.go_on(&span, ctx, |cell, out| cell.handle_profile(profile, out));
        }));
    }

    fn end(&mut self, ending: Ending, ctx: &mut Context<Self>) {
        match ending {
            // If the registry's mailbox is full, it stays a little longer.
            Ending::Idle { .. } => {
                if self.home.registry.try_send(self.ended(ending)).is_err() {
                    debug!(device = %self.key(), "the registry is busy");
                }
            }
            Ending::Retired => self.home.registry.do_send(self.ended(ending)),
            Ending::Failed(_) => {
                self.has_failed = true;
                ctx.stop();
            }
        }
    }

    fn ended(&self, ending: Ending) -> Ended {
        Ended {
            key: self.key(),
            generation: self.cell.generation(),
            ending,
            span: Span::none(),
        }
    }

    /// Counts the device as it stands now.
    fn recount(&mut self) {
        let standing = self.cell.device().standing();
        self.counted = self.home.meters.census.recount(self.counted, &standing);
    }

    /// The span of what the device was at when it panicked.
    fn panicked_in(&self) -> Span {
        let deciding = self.home.deciding.take();
        let trace = self.cell.device().trace_in_flight();
        deciding.unwrap_or_else(|| trace.map_or_else(Span::none, told::span_of))
    }
}

fn not_saved(error: CommitError) -> NotSaved {
    match error {
        CommitError::Conflict => NotSaved::Conflict,
        CommitError::Full => NotSaved::Full,
        CommitError::Fenced | CommitError::Unavailable => NotSaved::Failed,
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
pub(crate) struct Handle(pub(crate) Input<ReplyTo>);

impl Handler<Handle> for DeviceActor {
    type Result = ();

    fn handle(&mut self, Handle(input): Handle, ctx: &mut Context<Self>) {
        let span = match &input {
            Input::Asked(asked) => asked.reply.span.clone(),
            Input::Datagram(_) | Input::Timeout => Span::none(),
        };
        self.home
            .deciding
            .set(Some(span.clone()).filter(|span| !span.is_disabled()));
        self.decide(&span, ctx, |cell, context, out| {
            cell.handle(context, input, out)
        });
        self.home.deciding.set(None);
    }
}

impl Drop for DeviceActor {
    fn drop(&mut self) {
        self.home.meters.census.leave(self.counted);
        let key = self.key();
        self.home
            .arbiter
            .borrow_mut()
            .abandon(key, self.cell.said_mut());
        let ended = if self.has_failed {
            self.ended(Ending::Failed(Failure::Unsaved))
        } else if std::thread::panicking() {
            Ended {
                span: self.panicked_in(),
                ..self.ended(Ending::Failed(Failure::Panicked))
            }
        } else {
            // The arbiter let it go, or knows already.
            return;
        };
        self.home.registry.do_send(ended);
    }
}
