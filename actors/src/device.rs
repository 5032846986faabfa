//! The shell of one device: performs what its machine decides, in the order of the law.
//!
//! A step that changes something for good waits for its receipt before anything else happens; the
//! device's next input waits with it, other devices do not. If the receipt is not Ok, the actor
//! says nothing and ends; the registry brings the device back from the store.

use std::iter;
use std::rc::Rc;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message,
    WrapFuture as _,
};
use engine::action::NewAction;
use engine::datagram::Arrival;
use engine::device::Device;
use engine::device::queue::{Accepted, CancelRefusal, Cancelled, SubmitRefusal};
use engine::device::snapshot::Snapshot;
use engine::effect::{Departure, Effects, Speech};
use engine::ids::ActionId;
use engine::moment::Timestamp;
use engine::registry::peers::Said;
use store::{CommitError, Unavailable};
use tracing::{Span, debug, warn};

use crate::devices::Unserved;
use crate::home::Home;
use crate::meters::census::Counted;
use crate::registry::{Ended, Ending};
use crate::reply::{Afterwards, Reply, reply_with};
use crate::terms::Contract;
use crate::told::{self, Told};

/// Inputs that may wait for a device, also while it is brought back: as many callers as a
/// customer's programs are likely to have ask for one device at once. More are refused as too
/// busy; the network repeats a datagram.
pub(crate) const INPUTS_MAX: usize = 64;

/// What a device is told or asked.
#[derive(Debug)]
pub(crate) enum Input {
    /// It, or somebody in its name, sent something.
    Heard(Box<Arrival>),
    /// A deadline of it may have come.
    Due,
    /// Somebody asks something of it.
    Asked(Box<Asked>),
    /// Its customer said anew who it is, and that is durable.
    Renamed(Box<Renamed>),
}

impl Message for Input {
    type Result = ();
}

impl Input {
    /// The span it is told of in, if it has one.
    pub(crate) fn span(&self) -> Option<&Span> {
        match self {
            Self::Asked(asked) => Some(&asked.span),
            Self::Renamed(renamed) => Some(&renamed.span),
            Self::Heard(_) | Self::Due => None,
        }
    }
}

/// A question, and the span of the call that asks it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) span: Span,
}

/// Word that its customer said anew who a device is, and the span of the call that says so.
#[derive(Debug)]
pub(crate) struct Renamed {
    pub(crate) reply: Reply<()>,
    pub(crate) span: Span,
}

impl Renamed {
    /// Answers that the device could not be told.
    pub(crate) fn refuse(self, why: Unserved) {
        // A caller who went away does not miss the answer.
        let _ = self.reply.send(Err(why)).is_ok();
    }
}

/// What may be asked of a device.
#[derive(Debug)]
pub(crate) enum Question {
    Submit(NewAction, Reply<Result<Accepted, SubmitRefusal>>),
    Cancel(ActionId, Reply<Result<Cancelled, CancelRefusal>>),
    CancelAll(Reply<Vec<Cancelled>>),
    Retire(Reply<()>),
    Inspect(Reply<Box<Snapshot>>),
}

impl Question {
    /// Answers that the question could not be put to the device.
    pub(crate) fn refuse(self, why: Unserved) {
        // A caller who went away does not miss the answer.
        let _ = match self {
            Self::Submit(_, reply) => reply.send(Err(why)).is_ok(),
            Self::Cancel(_, reply) => reply.send(Err(why)).is_ok(),
            Self::CancelAll(reply) => reply.send(Err(why)).is_ok(),
            Self::Retire(reply) => reply.send(Err(why)).is_ok(),
            Self::Inspect(reply) => reply.send(Err(why)).is_ok(),
        };
    }
}

/// One device.
pub(crate) struct DeviceActor {
    device: Device,
    /// The terms its customer chose last.
    contract: Rc<Contract>,
    home: Rc<Home>,
    generation: u32,
    armed_at: Option<Timestamp>,
    said: Said,
    handled: u64,
    leaving: Leaving,
    counted: Counted,
}

/// Why the actor ends, if it ends now.
#[derive(Clone, Copy)]
enum Leaving {
    /// Nobody said why: it panics, or the arbiter ends.
    Unannounced,
    /// Its step was not saved, or the store did not say who it is.
    Unsaved,
    /// The device was removed.
    Retired,
}

impl DeviceActor {
    pub(crate) fn new(
        mut device: Device,
        contract: Rc<Contract>,
        home: Rc<Home>,
        generation: u32,
    ) -> Self {
        device.share_objects(&mut home.object_lists.borrow_mut());
        Self {
            device,
            contract,
            home,
            generation,
            armed_at: None,
            said: Said::default(),
            handled: 0,
            leaving: Leaving::Unannounced,
            counted: Counted::default(),
        }
    }

    fn hear(&mut self, arrival: &Arrival, out: &mut Effects) {
        let mut m = self.home.clock.moment();
        let heard = match arrival {
            Arrival::Message(datagram) => self.device.handle_datagram(&mut m, datagram, out),
            Arrival::Ambiguous(datagram) => self.device.handle_ambiguous(&mut m, datagram, out),
            Arrival::Bare(bare) => self.device.handle_bare(&mut m, bare, out),
            Arrival::Burst(first, more) => {
                let burst = iter::once(first).chain(more);
                self.device.handle_burst(&mut m, burst, out)
            }
        };
        for _ in 0..arrival.datagrams() {
            self.home.meters.heard(heard);
        }
    }

    fn ask(&mut self, asked: Asked, out: &mut Effects) -> (Afterwards, Span) {
        let Asked { question, span } = asked;
        self.home.deciding.set(Some(span.clone()));
        (self.answer(question, out), span)
    }

    fn answer(&mut self, question: Question, out: &mut Effects) -> Afterwards {
        let mut m = self.home.clock.moment();
        match question {
            Question::Submit(new, reply) => {
                let answer = self.device.submit(&mut m, new, out);
                reply_with(answer, reply)
            }
            Question::Cancel(id, reply) => {
                let answer = self.device.cancel(&mut m, id, out);
                reply_with(answer, reply)
            }
            Question::CancelAll(reply) => {
                let answer = self.device.cancel_all(&mut m, out);
                reply_with(answer, reply)
            }
            Question::Retire(reply) => {
                self.device.retire(out);
                self.leaving = Leaving::Retired;
                reply_with((), reply)
            }
            Question::Inspect(reply) => {
                let answer = Box::new(self.device.snapshot(m.now()));
                reply_with(answer, reply)
            }
        }
    }

    /// Reads again who it is. It is the device's turn meanwhile, so that of several changes the
    /// last one holds.
    fn take_new_names(&mut self, renamed: Renamed, ctx: &mut Context<Self>) {
        let profile = self.home.store.profile(self.device.key());
        ctx.wait(profile.into_actor(self).map(move |found, actor, ctx| {
            let Renamed { reply, span } = renamed;
            let answer = match found {
                Ok(Some(profile)) => {
                    actor.device.adopt(&profile);
                    actor.say_where_it_is();
                    actor.rest(None);
                    Ok(())
                }
                Ok(None) => Err(Unserved::Unknown),
                Err(Unavailable) => {
                    let device = actor.device.key();
                    span.in_scope(|| warn!(%device, "the store did not say who a device is"));
                    actor.leaving = Leaving::Unsaved;
                    ctx.stop();
                    Err(Unserved::Failed)
                }
            };
            // A caller who went away does not miss the answer.
            let _ = reply.send(answer).is_ok();
        }));
    }

    /// Says where the device is found by now, if it is found by where it is registered.
    fn say_where_it_is(&mut self) {
        if let Some(peer) = self.device.bound_peer() {
            let key = self.device.key();
            let to = self.device.found_at();
            self.home.rebind(key, Some(peer), to, &mut self.said);
        }
    }

    fn share_objects(&mut self) {
        let mut lists = self.home.object_lists.borrow_mut();
        self.device.share_objects(&mut lists);
    }

    /// Performs the effects of a step: what is saved first, then the rest. Who asked for it is
    /// answered, and what is told of it is told in the span of the call.
    fn settle(
        &mut self,
        mut out: Effects,
        asked: Option<(Afterwards, Span)>,
        ctx: &mut Context<Self>,
    ) {
        let key = self.device.key();
        let told = Told::of(&mut out);
        let (afterwards, span) = asked.unzip();
        let span = span.unwrap_or_else(|| told.span());
        let (batch, speeches) = out.settle(self.home.owner(key.shard()));
        if batch.is_empty() {
            return span.in_scope(|| self.perform(speeches, &told, afterwards, ctx));
        }
        let receipt = span.in_scope(|| self.home.commits.commit(batch));
        let receipt = receipt.into_actor(self);
        ctx.wait(receipt.map(move |result, actor, ctx| match result {
            Ok(()) => span.in_scope(|| actor.perform(speeches, &told, afterwards, ctx)),
            Err(error) => span.in_scope(|| actor.give_up(error, afterwards, ctx)),
        }));
    }

    /// Does what is left to do of a step that is durable.
    fn perform(
        &mut self,
        speeches: Vec<Speech>,
        told: &Told,
        afterwards: Option<Afterwards>,
        ctx: &mut Context<Self>,
    ) {
        let key = self.device.key();
        let departure = self.home.perform(key, speeches, &mut self.said);
        told.tell(key, &self.home.meters);
        let Some(departure) = departure else {
            return self.rest(afterwards);
        };
        // Whoever asked was promised an attempt, and not that it succeeds.
        if let Some(afterwards) = afterwards {
            afterwards(Ok(()));
        }
        self.take_departure(departure, ctx);
    }

    /// Tells the device what became of its bare datagram: a step of its own, of which nothing else
    /// that is for the device comes in between.
    fn take_departure(&mut self, departure: Departure, ctx: &mut Context<Self>) {
        self.contract.bind(&mut self.device);
        let mut out = Effects::new();
        let mut m = self.home.clock.moment();
        self.device.handle_departure(&mut m, departure, &mut out);
        self.settle(out, None, ctx);
    }

    /// The step is done: answers who asked, and says when the device is due next.
    ///
    /// Of a removed device the registry hears before whoever asked does: who asks next is told
    /// that there is no such device. The actor ends with its last address.
    fn rest(&mut self, afterwards: Option<Afterwards>) {
        match self.leaving {
            Leaving::Retired => self.home.registry.do_send(self.ended(Ending::Retired)),
            Leaving::Unannounced | Leaving::Unsaved => self.arm(),
        }
        self.recount();
        if let Some(afterwards) = afterwards {
            afterwards(Ok(()));
        }
    }

    /// Nothing of the step was saved, so nothing of it happened.
    fn give_up(
        &mut self,
        error: CommitError,
        afterwards: Option<Afterwards>,
        ctx: &mut Context<Self>,
    ) {
        warn!(device = %self.device.key(), %error, "a step was not saved");
        if let Some(afterwards) = afterwards {
            afterwards(Err(match (error, self.leaving) {
                (CommitError::Full, _) => Unserved::Busy,
                // It was removed already: nothing else is expected of a device to remove it.
                (CommitError::Conflict, Leaving::Retired) => Unserved::Unknown,
                (CommitError::Conflict, Leaving::Unannounced | Leaving::Unsaved)
                | (CommitError::Fenced | CommitError::Unavailable, _) => Unserved::Failed,
            }));
        }
        self.leaving = Leaving::Unsaved;
        ctx.stop();
    }

    /// Counts the device as it stands now.
    fn recount(&mut self) {
        let standing = self.device.standing();
        self.counted = self.home.meters.census.recount(self.counted, &standing);
    }

    /// Asks to be woken at the machine's deadline; an earlier wake-up does instead.
    fn arm(&mut self) {
        let next = self.device.next_timeout();
        if let Some(at) = next
            && self.armed_at.is_none_or(|armed_at| at < armed_at)
        {
            self.disarm();
            self.armed_at = Some(at);
            self.home.deadlines.arm(at, self.device.key());
        }
        if self.device.is_idle() {
            self.offer_to_leave();
        }
    }

    fn disarm(&mut self) {
        if let Some(armed_at) = self.armed_at.take() {
            self.home.deadlines.disarm(armed_at, self.device.key());
        }
    }

    /// Tells the registry that it is not needed; if the registry's mailbox is full, it stays a
    /// little longer.
    fn offer_to_leave(&self) {
        let handled = self.handled;
        let ended = self.ended(Ending::Idle { handled });
        if self.home.registry.try_send(ended).is_err() {
            debug!(device = %self.device.key(), "the registry is busy");
        }
    }

    fn ended(&self, ending: Ending) -> Ended {
        Ended {
            key: self.device.key(),
            generation: self.generation,
            ending,
            span: Span::none(),
        }
    }

    /// The span of what the device was at when it fell over.
    fn fallen_in(&self) -> Span {
        let deciding = self.home.deciding.take();
        let trace = self.device.trace_in_flight();
        deciding.unwrap_or_else(|| trace.map_or_else(Span::none, told::span_of))
    }
}

impl Actor for DeviceActor {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.say_where_it_is();
        self.arm();
        self.recount();
    }
}

impl Handler<Input> for DeviceActor {
    type Result = ();

    fn handle(&mut self, input: Input, ctx: &mut Context<Self>) {
        self.handled += 1;
        if let Leaving::Retired = self.leaving {
            return refuse(input);
        }
        self.contract.bind(&mut self.device);
        let mut out = Effects::new();
        let asked = match input {
            Input::Heard(arrival) => {
                self.hear(&arrival, &mut out);
                None
            }
            Input::Due => {
                self.disarm();
                let mut m = self.home.clock.moment();
                self.device.handle_timeout(&mut m, &mut out);
                None
            }
            Input::Asked(asked) => Some(self.ask(*asked, &mut out)),
            Input::Renamed(renamed) => return self.take_new_names(*renamed, ctx),
        };
        self.share_objects();
        self.settle(out, asked, ctx);
        self.home.deciding.set(None);
    }
}

impl Drop for DeviceActor {
    fn drop(&mut self) {
        self.home.meters.census.leave(self.counted);
        self.home.abandon(&self.device, &mut self.said);
        let ended = match self.leaving {
            Leaving::Unannounced if std::thread::panicking() => Ended {
                span: self.fallen_in(),
                ..self.ended(Ending::Panicked)
            },
            Leaving::Unsaved => self.ended(Ending::Unsaved),
            // The registry let it go, or knows already.
            Leaving::Unannounced | Leaving::Retired => return,
        };
        self.home.registry.do_send(ended);
    }
}

/// What reaches a device that was removed meanwhile.
fn refuse(input: Input) {
    match input {
        Input::Asked(asked) => asked.question.refuse(Unserved::Unknown),
        Input::Renamed(renamed) => renamed.refuse(Unserved::Unknown),
        Input::Heard(_) | Input::Due => {}
    }
}
