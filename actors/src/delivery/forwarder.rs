//! The shell of one forwarder: performs what its machine decides, in the required order.
//!
//! A step that saves waits for its receipt, and so does the destination's next input. If the
//! receipt is not Ok, the actor ends; the supervisor restores the forwarder from the store, and
//! deliveries that were in flight are repeated under the same event id.

mod broker_link;
mod event_sender;
mod running_tasks;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, Handler, Recipient,
    WrapFuture as _,
};
use engine::change::{Batch, Owner};
use engine::delivery::command::DestinationReply;
use engine::delivery::destination::{Destination, DestinationState};
use engine::delivery::forwarder::{self, ForwarderEffect};
use engine::delivery::forwarders::ForwarderExit;
use engine::delivery::forwarding::{DeliveryOutcome, ForwarderTask, Forwarding};
use engine::ids::{DestinationId, EventId};
use engine::moment::Timestamp;
use engine::supervision::{ActorFailure, Generation};
use store::PartitionNotifier;
use tracing::{debug, info, warn};

use crate::deadline_timer::DeadlineTimer;
use crate::delivery::DeliveryParts;
use crate::delivery::messages::{ForwarderCommand, ForwarderEnded, Reply, StopForwarder};
use crate::delivery::meters::DeliveryMeters;
use crate::reply::{answer, refusal};

use event_sender::EventSender;
use running_tasks::{Completions, RunningTasks};

/// Inputs that may wait for a destination: the results of its own deliveries, and the commands of
/// few callers.
const INPUTS_MAX: usize = 1_024;

/// How often the backlog is read for the metrics.
const BACKLOG_EVERY: Duration = Duration::from_secs(10);

type Input = forwarder::ForwarderInput<Reply<DestinationReply>>;

type Effects = Vec<ForwarderEffect<Reply<DestinationReply>>>;

/// One destination.
pub(super) struct ForwarderActor {
    parts: Rc<DeliveryParts>,
    machine: forwarder::Forwarder<Reply<DestinationReply>>,
    sender: Rc<EventSender>,
    tasks: RunningTasks,
    notifier: Arc<PartitionNotifier>,
    supervisor: Recipient<ForwarderEnded>,
    meters: Rc<DeliveryMeters>,
    generation: Generation,
    timer: DeadlineTimer,
    /// Under which lease it saves its steps.
    owner: Owner,
    /// Why it ended, unless it panics or the arbiter ends.
    end: Option<ForwarderExit>,
}

impl ForwarderActor {
    pub(super) fn new(
        parts: Rc<DeliveryParts>,
        forwarding: Forwarding,
        notifier: Arc<PartitionNotifier>,
        supervisor: Recipient<ForwarderEnded>,
        (meters, generation, owner): (Rc<DeliveryMeters>, Generation, Owner),
    ) -> Self {
        Self {
            sender: Rc::new(EventSender::new(&parts, forwarding.destination())),
            parts,
            machine: forwarder::Forwarder::new(forwarding),
            tasks: RunningTasks::default(),
            notifier,
            supervisor,
            meters,
            generation,
            timer: DeadlineTimer::default(),
            owner,
            end: None,
        }
    }

    fn destination(&self) -> &Destination {
        self.machine.forwarding().destination()
    }

    fn id(&self) -> DestinationId {
        self.destination().id
    }

    /// Has the machine take a step, and performs its effects.
    fn take(&mut self, input: Input, ctx: &mut Context<Self>) {
        if let Input::Delivered(_, DeliveryOutcome::Failed(failure)) = &input {
            debug!(destination = %self.id(), why = %failure.why, "a delivery attempt failed");
        }
        let mut out = Vec::new();
        self.machine
            .handle(&mut self.parts.clock.moment(), input, &mut out);
        self.perform(out, ctx);
    }

    fn perform(&mut self, effects: Effects, ctx: &mut Context<Self>) {
        for effect in effects {
            match effect {
                ForwarderEffect::Commit(batch) => self.commit(batch, ctx),
                ForwarderEffect::Retarget(destination) => {
                    if !self.sender.is_for(&destination) {
                        self.sender.close(&destination);
                        self.sender = Rc::new(EventSender::new(&self.parts, &destination));
                    }
                }
                ForwarderEffect::Begin(task) => self.begin(task),
                ForwarderEffect::Test { event, at, reply } => self.test(event, at, reply, ctx),
                ForwarderEffect::ShowState { before, state } => self.show_state(before, state),
                ForwarderEffect::Answer(reply, answered) => answer(reply, answered),
                ForwarderEffect::End(end) => {
                    if end == ForwarderExit::Removed {
                        self.sender.retire();
                    }
                    self.end = Some(end);
                    ctx.stop();
                }
            }
        }
        self.arm(ctx);
    }

    /// Arms the timer for the machine's deadline.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(at) = self.machine.next_timeout() else {
            return;
        };
        let (clock, timer) = (&self.parts.clock, &mut self.timer);
        timer.arm(ctx, clock, at, |actor, ctx| {
            actor.timer.note_fired();
            actor.take(Input::Timeout, ctx);
        });
    }

    /// The actor handles nothing else until the receipt is there.
    fn commit(&self, batch: Batch, ctx: &mut Context<Self>) {
        let owner = self.owner;
        let receipt = self.parts.commits.commit(Batch { owner, ..batch });
        let receipt = receipt.into_actor(self);
        ctx.wait(receipt.map(|receipt, actor, ctx| {
            if let Err(error) = &receipt {
                warn!(destination = %actor.id(), %error, "a step of a destination was not saved");
            }
            let mut out = Vec::new();
            let receipt = receipt.map_err(refusal);
            actor.machine.handle_receipt(receipt, &mut out);
            actor.perform(out, ctx);
        }));
    }

    fn begin(&mut self, task: ForwarderTask) {
        let store = Arc::clone(&self.parts.store);
        match task {
            ForwarderTask::Read {
                partition,
                after,
                max,
            } => {
                let customer = self.destination().customer.clone();
                self.tasks.begin(task, async move {
                    let rows = store.waiting(customer, partition, after, max).await?;
                    Ok(Input::EventsRead(partition, rows))
                });
            }
            ForwarderTask::ReadDeadLetters { after, max } => {
                let id = self.id();
                self.tasks.begin(task, async move {
                    Ok(Input::DeadLettersRead(
                        store.dead_letters(id, after, max).await?,
                    ))
                });
            }
            ForwarderTask::Deliver(ref events) => {
                let (sender, meters) = (Rc::clone(&self.sender), Rc::clone(&self.meters));
                let Some(first) = events.first().map(|event| event.sequence) else {
                    return;
                };
                let events = events.clone();
                self.tasks.begin(task, async move {
                    let begun = meters.begin();
                    let delivered = sender.deliver(events).await?;
                    meters.end(begun, &delivered);
                    Ok(Input::Delivered(first, delivered))
                });
            }
        }
    }

    fn test(
        &self,
        event: EventId,
        at: Timestamp,
        reply: Reply<DestinationReply>,
        ctx: &mut Context<Self>,
    ) {
        let sender = Rc::clone(&self.sender);
        let tested = async move {
            let tested = sender.test(event, at).await;
            answer(reply, Ok(DestinationReply::Tested(tested)));
        };
        ctx.spawn(tested.into_actor(self));
    }

    fn show_state(&self, before: Option<DestinationState>, state: DestinationState) {
        let id = self.id();
        self.meters.state(id, state);
        match state {
            DestinationState::Failed => {
                warn!(destination = %id, "a destination has failed; events become dead letters");
            }
            DestinationState::Active if before == Some(DestinationState::Failed) => {
                info!(destination = %id, "a destination was restarted");
            }
            DestinationState::Active | DestinationState::RolledOut => {}
        }
    }

    /// Reads the partition notifier for as long as the actor lives.
    fn subscribe(&self, ctx: &mut Context<Self>) {
        let notifier = Arc::clone(&self.notifier);
        let news = async move { notifier.read().await };
        ctx.spawn(news.into_actor(self).map(|partitions, actor, ctx| {
            actor.take(Input::PartitionsReady(partitions), ctx);
            actor.subscribe(ctx);
        }));
    }

    fn read_backlog(&mut self, ctx: &mut Context<Self>) {
        let backlog = self.parts.store.backlog(self.id()).into_actor(self);
        ctx.spawn(backlog.map(|backlog, actor, ctx| {
            if let Ok(backlog) = backlog {
                actor.meters.waiting(actor.id(), backlog);
                actor.take(Input::Backlog(backlog.waiting), ctx);
            }
        }));
    }
}

impl Actor for ForwarderActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(INPUTS_MAX);
        ctx.spawn(Completions);
        self.subscribe(ctx);
        self.take(Input::Timeout, ctx);
        self.read_backlog(ctx);
        ctx.run_interval(BACKLOG_EVERY, Self::read_backlog);
    }
}

impl Drop for ForwarderActor {
    fn drop(&mut self) {
        self.meters.leave(self.id());
        let end = match self.end {
            Some(end) => end,
            None if std::thread::panicking() => ForwarderExit::Failed(ActorFailure::Panicked),
            // The arbiter ends.
            None => return,
        };
        self.supervisor.do_send(ForwarderEnded {
            id: self.id(),
            generation: self.generation,
            end,
        });
    }
}

impl Handler<ForwarderCommand> for ForwarderActor {
    type Result = ();

    fn handle(&mut self, request: ForwarderCommand, ctx: &mut Context<Self>) {
        let ForwarderCommand {
            command: question,
            reply,
            span,
        } = request;
        span.in_scope(|| self.take(Input::Command(question, reply), ctx));
    }
}

impl Handler<StopForwarder> for ForwarderActor {
    type Result = ();

    fn handle(&mut self, _: StopForwarder, ctx: &mut Context<Self>) {
        self.take(Input::Stop, ctx);
    }
}
