//! The shell of one destination: performs what its machine decides, in the order of the law.
//!
//! A step that changes something for good waits for its receipt, and the destination's next input
//! with it. If the receipt is not Ok, the actor ends; the post office brings the destination back
//! from the store, and what was under way is delivered again under the same id.

mod under_way;
mod webhook;

pub use webhook::{header_context, secret_context};

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler,
    Message, SpawnHandle, WrapFuture as _,
};
use engine::change::{Batch, Change};
use engine::delivery::destination::{Destination, DestinationState};
use engine::delivery::forwarding::{
    Delivered, Errand, Errands, Forwarding, NotActive, ReplayUnderWay,
};
use engine::delivery::letter::{Sequence, Waiting};
use engine::ids::{DestinationId, EventId, Shard};
use engine::moment::{Moment, Timestamp};
use store::{Board, CommitError};
use tracing::{Span, debug, info, warn};

use crate::http::Posted;
use crate::post::meters::Meters;
use crate::post::supervisor::{Ended, PostOffice, Why};
use crate::post::{Amended, PostParts};
use crate::reply::{Afterwards, Reply, reply_with};
use engine::arbiter::input::Unserved;

use under_way::{Came, Comings, UnderWay, answered};
use webhook::Courier;

/// Inputs that may wait for a destination: what its own deliveries bring, and what few callers ask.
const INPUTS_MAX: usize = 1_024;

/// How often it is looked at how much waits.
const BACKLOG_EVERY: Duration = Duration::from_secs(10);

/// How soon a failing store is asked again.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// One destination.
pub(crate) struct Forwarder {
    parts: Rc<PostParts>,
    forwarding: Forwarding,
    courier: Rc<Courier>,
    under_way: UnderWay,
    board: Arc<Board>,
    office: Addr<PostOffice>,
    meters: Rc<Meters>,
    generation: u32,
    /// The wake-up that was asked for.
    armed: Option<(Timestamp, SpawnHandle)>,
    why: Why,
    /// The state the operator was told of.
    told: Option<DestinationState>,
}

impl Forwarder {
    pub(crate) fn new(
        parts: Rc<PostParts>,
        forwarding: Forwarding,
        board: Arc<Board>,
        office: Addr<PostOffice>,
        (meters, generation): (Rc<Meters>, u32),
    ) -> Self {
        let courier = Rc::new(courier_of(&parts, forwarding.destination()));
        Self {
            parts,
            forwarding,
            courier,
            under_way: UnderWay::default(),
            board,
            office,
            meters,
            generation,
            armed: None,
            why: Why::Unannounced,
            told: None,
        }
    }

    /// Tells the operator in which state the destination is, if that is news.
    fn tell_state(&mut self) {
        let (id, state) = (self.id(), self.forwarding.destination().state);
        let before = self.told.replace(state);
        if before == Some(state) {
            return;
        }
        self.meters.state(id, state);
        match state {
            DestinationState::Failed => {
                warn!(destination = %id, "a destination is in failure: its events are set aside");
            }
            DestinationState::Active if before == Some(DestinationState::Failed) => {
                info!(destination = %id, "a destination was restarted");
            }
            DestinationState::Active | DestinationState::RolledOut => {}
        }
    }

    fn id(&self) -> DestinationId {
        self.forwarding.destination().id
    }

    /// One step of the machine, and what it wants done.
    fn step(
        &mut self,
        input: impl FnOnce(&mut Forwarding, &mut Moment, &mut Errands),
        ctx: &mut Context<Self>,
    ) {
        let ((), out) = self.decide(input);
        self.settle(out, None, ctx);
    }

    /// One step that a caller asks for, who hears what came of it once it is durable.
    fn step_for<T: 'static>(
        &mut self,
        reply: Reply<T>,
        input: impl FnOnce(&mut Forwarding, &mut Moment, &mut Errands) -> T,
        ctx: &mut Context<Self>,
    ) {
        let (answer, out) = self.decide(input);
        self.settle(out, Some(reply_with(answer, reply)), ctx);
    }

    fn decide<T>(
        &mut self,
        input: impl FnOnce(&mut Forwarding, &mut Moment, &mut Errands) -> T,
    ) -> (T, Errands) {
        let mut m = self.parts.clock.moment();
        let mut out = Errands::new();
        let answer = input(&mut self.forwarding, &mut m, &mut out);
        (answer, out)
    }

    fn settle(&mut self, out: Errands, afterwards: Option<Afterwards>, ctx: &mut Context<Self>) {
        let (batch, errands) = out.settle();
        if batch.is_empty() {
            return self.perform(errands, afterwards, ctx);
        }
        let receipt = self.parts.commits.commit(batch).into_actor(self);
        ctx.wait(receipt.map(move |result, actor, ctx| match result {
            Ok(()) => actor.perform(errands, afterwards, ctx),
            Err(error) => actor.give_up(error, afterwards, ctx),
        }));
    }

    fn perform(
        &mut self,
        errands: Vec<Errand>,
        afterwards: Option<Afterwards>,
        ctx: &mut Context<Self>,
    ) {
        for errand in errands {
            match errand {
                Errand::Read { shard, after, max } => self.read(shard, after, max),
                Errand::ReadDead { after, max } => self.read_dead(after, max),
                Errand::Deliver(waiting) => self.deliver(waiting),
            }
        }
        self.tell_state();
        if let Some(afterwards) = afterwards {
            afterwards(Ok(()));
        }
        self.arm(ctx);
    }

    /// Nothing of the step was saved, so nothing of it happened.
    fn give_up(
        &mut self,
        error: CommitError,
        afterwards: Option<Afterwards>,
        ctx: &mut Context<Self>,
    ) {
        warn!(destination = %self.id(), %error, "a step of a destination was not saved");
        if let Some(afterwards) = afterwards {
            afterwards(Err(match error {
                CommitError::Full => Unserved::Busy,
                CommitError::Conflict | CommitError::Fenced | CommitError::Unavailable => {
                    Unserved::Failed
                }
            }));
        }
        self.end(Why::Unsaved, ctx);
    }

    fn end(&mut self, why: Why, ctx: &mut Context<Self>) {
        self.why = why;
        ctx.stop();
    }

    fn read(&mut self, shard: Shard, after: Sequence, max: u32) {
        let customer = self.forwarding.destination().customer.clone();
        let store = Arc::clone(&self.parts.store);
        self.under_way.begin(async move {
            let rows = answered(|| store.waiting(customer.clone(), shard, after, max)).await;
            Came::Rows(shard, rows)
        });
    }

    fn read_dead(&mut self, after: Option<Sequence>, max: u32) {
        let (store, id) = (Arc::clone(&self.parts.store), self.id());
        self.under_way.begin(async move {
            let letters = answered(|| store.dead_letters(id, after, max)).await;
            Came::Dead(letters)
        });
    }

    fn deliver(&mut self, waiting: Waiting) {
        let (courier, meters) = (Rc::clone(&self.courier), Rc::clone(&self.meters));
        self.under_way.begin(async move {
            let begun = meters.begin();
            let delivered = courier.deliver(waiting).await;
            meters.end(begun, &delivered);
            Came::Back(waiting.sequence, delivered)
        });
    }

    /// Takes what came of an errand.
    fn take(&mut self, came: Came, ctx: &mut Context<Self>) {
        match came {
            Came::Rows(shard, rows) => {
                self.step(|it, m, out| it.handle_rows(m, shard, rows, out), ctx);
            }
            Came::Dead(letters) => {
                self.step(|it, m, out| it.handle_dead(m, letters, out), ctx);
            }
            Came::Back(sequence, delivered) => self.landed(sequence, delivered, ctx),
        }
    }

    fn landed(&mut self, sequence: Sequence, delivered: Delivered, ctx: &mut Context<Self>) {
        if let Delivered::NotTaken { why } = &delivered {
            debug!(destination = %self.id(), %why, "an event was not taken");
        }
        self.step(
            |it, m, out| it.handle_delivered(m, sequence, delivered, out),
            ctx,
        );
    }

    /// Reads the board for as long as the actor lives.
    fn attend(&self, ctx: &mut Context<Self>) {
        let board = Arc::clone(&self.board);
        let news = async move { board.read().await };
        ctx.spawn(news.into_actor(self).map(|shards, actor, ctx| {
            actor.step(|it, m, out| it.note_news(m, shards, out), ctx);
            actor.attend(ctx);
        }));
    }

    fn look_at_backlog(&mut self, ctx: &mut Context<Self>) {
        let backlog = self.parts.store.backlog(self.id()).into_actor(self);
        ctx.spawn(backlog.map(|backlog, actor, ctx| {
            let Ok(backlog) = backlog else {
                return;
            };
            actor.meters.waiting(actor.id(), backlog);
            actor.step(|it, m, out| it.note_backlog(m, backlog.waiting, out), ctx);
        }));
    }

    /// Asks to be woken at the machine's deadline; an earlier wake-up does instead.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(at) = self.forwarding.next_timeout() else {
            return;
        };
        if self.armed.is_some_and(|(armed_at, _)| armed_at <= at) {
            return;
        }
        if let Some((_, handle)) = self.armed.take() {
            ctx.cancel_future(handle);
        }
        let wait_ms = at.since_ms(self.parts.clock.now()).max(0);
        let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or_default());
        let handle = ctx.run_later(wait, |actor, ctx| {
            actor.armed = None;
            actor.step(|it, m, out| it.handle_timeout(m, out), ctx);
        });
        self.armed = Some((at, handle));
    }

    fn amend(&mut self, amended: Amended, reply: Reply<Destination>, ctx: &mut Context<Self>) {
        let destination = amended.apply_to(self.forwarding.destination());
        self.courier = Rc::new(courier_of(&self.parts, &destination));
        self.step_for(
            reply,
            |it, m, out| {
                it.amend(m, destination, out);
                it.destination().clone()
            },
            ctx,
        );
    }

    fn restart(&mut self, reply: Reply<Destination>, ctx: &mut Context<Self>) {
        self.step_for(
            reply,
            |it, m, out| {
                it.restart(m, out);
                it.destination().clone()
            },
            ctx,
        );
    }

    fn test(&self, reply: Reply<Tested>, ctx: &mut Context<Self>) {
        let courier = Rc::clone(&self.courier);
        let mut m = self.parts.clock.moment();
        let (id, now) = (EventId::new(m.uuid()), m.now());
        let tested = async move {
            let tested = match courier.test(id, now).await {
                Ok(posted) => Tested::of(&posted),
                Err(unusable) => Tested {
                    accepted: false,
                    status: None,
                    message: unusable.to_string(),
                },
            };
            // A caller who went away does not miss the answer.
            let _ = reply.send(Ok(tested)).is_ok();
        };
        ctx.spawn(tested.into_actor(self));
    }

    fn remove(&mut self, reply: Reply<()>, ctx: &mut Context<Self>) {
        let destination = self.forwarding.destination();
        let remove = Change::RemoveDestination {
            customer: destination.customer.clone(),
            destination: destination.id,
        };
        let batch = Batch {
            changes: vec![remove],
            ..Batch::default()
        };
        let receipt = self.parts.commits.commit(batch).into_actor(self);
        ctx.wait(receipt.map(move |result, actor, ctx| match result {
            Ok(()) => {
                // A caller who went away does not miss the answer.
                let _ = reply.send(Ok(())).is_ok();
                actor.end(Why::Removed, ctx);
            }
            Err(error) => actor.give_up(error, Some(reply_with((), reply)), ctx),
        }));
    }
}

impl Actor for Forwarder {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(INPUTS_MAX);
        ctx.spawn(Comings);
        self.attend(ctx);
        self.step(|it, m, out| it.handle_timeout(m, out), ctx);
        self.look_at_backlog(ctx);
        ctx.run_interval(BACKLOG_EVERY, Self::look_at_backlog);
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.meters.leave(self.id());
        let why = match self.why {
            Why::Unannounced if std::thread::panicking() => Why::Panicked,
            // The office let it go.
            Why::Unannounced => return,
            Why::Unsaved | Why::Removed | Why::Panicked => self.why,
        };
        self.office.do_send(Ended {
            id: self.id(),
            generation: self.generation,
            why,
            retry_in: STORE_RETRY,
        });
    }
}

/// What came of a test.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tested {
    /// Whether the destination has it.
    pub accepted: bool,
    /// The status it answered with, if it answered.
    pub status: Option<u16>,
    /// What came of it, in words.
    pub message: String,
}

impl Tested {
    fn of(posted: &Posted) -> Self {
        let (accepted, status) = match posted {
            Posted::Accepted(status) => (true, Some(*status)),
            Posted::Refused(status) => (false, Some(*status)),
            Posted::Unreachable(_) => (false, None),
        };
        Self {
            accepted,
            status,
            message: posted.to_string(),
        }
    }
}

/// What may be asked of a destination.
pub(crate) enum Question {
    Amend(Box<Amended>, Reply<Destination>),
    Restart(Reply<Destination>),
    Replay(Reply<Result<(), NotActive>>),
    Discard(Box<[Sequence]>, Reply<Result<(), ReplayUnderWay>>),
    Test(Reply<Tested>),
    Remove(Reply<()>),
}

impl Question {
    /// Answers that the question could not be put to the destination.
    pub(crate) fn refuse(self, why: Unserved) {
        // A caller who went away does not miss the answer.
        let _ = match self {
            Self::Amend(_, reply) | Self::Restart(reply) => reply.send(Err(why)).is_ok(),
            Self::Replay(reply) => reply.send(Err(why)).is_ok(),
            Self::Discard(_, reply) => reply.send(Err(why)).is_ok(),
            Self::Test(reply) => reply.send(Err(why)).is_ok(),
            Self::Remove(reply) => reply.send(Err(why)).is_ok(),
        };
    }
}

/// A question, and the span of the call that asks it.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) span: Span,
}

impl Handler<Asked> for Forwarder {
    type Result = ();

    fn handle(&mut self, asked: Asked, ctx: &mut Context<Self>) {
        let Asked { question, span } = asked;
        span.in_scope(|| match question {
            Question::Amend(amended, reply) => self.amend(*amended, reply, ctx),
            Question::Restart(reply) => self.restart(reply, ctx),
            Question::Replay(reply) => self.step_for(reply, Forwarding::replay, ctx),
            Question::Discard(letters, reply) => {
                self.step_for(reply, |it, m, out| it.discard(m, &letters, out), ctx);
            }
            Question::Test(reply) => self.test(reply, ctx),
            Question::Remove(reply) => self.remove(reply, ctx),
        });
    }
}

/// Its customer goes, with all that is kept of it.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Forget;

impl Handler<Forget> for Forwarder {
    type Result = ();

    fn handle(&mut self, _: Forget, ctx: &mut Context<Self>) {
        self.end(Why::Removed, ctx);
    }
}

fn courier_of(parts: &PostParts, destination: &Destination) -> Courier {
    Courier::new(
        Arc::clone(&parts.store),
        parts.http.clone(),
        parts.clock.clone(),
        (&parts.master_key, parts.policy),
        destination,
    )
}
