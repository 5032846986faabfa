//! What have the runners of jobs and of campaigns in common? A runner is one actor with the machine
//! of all of them. Its supervisor starts it, hands commands to it, and restores it from the store
//! after a panic.

use std::rc::Rc;
use std::thread;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Message, Recipient,
    WrapFuture as _,
};
use engine::change::Batch;
use engine::limits::STORE_RETRY_MS;
use engine::supervision::{ActorFailure, Child, Generation, Supervisor, Unserved, Verdict};
use store::{Commit, Unavailable};
use tokio::sync::oneshot;
use tracing::{error, warn};

use crate::clock::Clock;

/// Commands that may wait for the supervisor; more are refused as too busy.
const COMMANDS_MAX: usize = 1_024;

/// The actor of a runner.
pub(crate) trait Runner: Actor<Context = Context<Self>> + Handler<Self::Command> {
    /// What it runs, for the log of the operator.
    const WHAT: &'static str;

    /// What callers may want of it.
    type Command: Message<Result = ()> + Send + 'static;

    /// What it needs.
    type Parts: RunnerParts + 'static;

    /// What it continues when it starts.
    type Stored: Unpin + 'static;

    /// The actor, which is not started yet.
    fn new(parts: Rc<Self::Parts>, stored: Self::Stored, report: PanicReport) -> Self;

    /// Reads what it continues.
    fn read(
        parts: Rc<Self::Parts>,
    ) -> impl Future<Output = Result<Self::Stored, Unavailable>> + 'static;
}

/// What the supervisor of a runner needs.
pub(crate) trait RunnerParts {
    fn clock(&self) -> &Clock;

    fn commits(&self) -> &dyn Commit;
}

/// Tells the supervisor if the runner that has it panics.
pub(crate) struct PanicReport {
    supervisor: Recipient<RunnerPanicked>,
    generation: Generation,
}

impl Drop for PanicReport {
    fn drop(&mut self) {
        if thread::panicking() {
            self.supervisor.do_send(RunnerPanicked(self.generation));
        }
    }
}

/// To the supervisor: the runner panicked.
#[derive(Message)]
#[rtype(result = "()")]
struct RunnerPanicked(Generation);

/// To the supervisor: a command for the runner.
struct RunnerCommand<R: Runner>(R::Command);

impl<R: Runner> Message for RunnerCommand<R> {
    type Result = ();
}

/// The handle to a runner.
pub(crate) struct RunnerHandle<R: Runner>(Addr<RunnerSupervisor<R>>);

impl<R: Runner> Clone for RunnerHandle<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Runner> RunnerHandle<R> {
    /// Starts the supervisor, whose first runner continues this.
    pub(crate) fn start(parts: R::Parts, first: R::Stored) -> Self {
        let supervisor = RunnerSupervisor {
            parts: Rc::new(parts),
            runner: Child::Restoring(()),
            supervisor: Supervisor::default(),
            first: Some(first),
        };
        Self(supervisor.start())
    }

    /// Hands a command to the runner, and waits for the answer.
    pub(crate) async fn ask<T, E: From<Unserved>>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, E>>) -> R::Command,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        let sent = self.0.try_send(RunnerCommand(command(reply)));
        sent.map_err(|_| E::from(Unserved::Busy))?;
        answer
            .await
            .unwrap_or_else(|_| Err(Unserved::Failed.into()))
    }
}

/// The supervisor of the one runner.
struct RunnerSupervisor<R: Runner> {
    parts: Rc<R::Parts>,
    runner: Child<Addr<R>, ()>,
    supervisor: Supervisor<()>,
    /// What the first runner continues.
    first: Option<R::Stored>,
}

impl<R: Runner> RunnerSupervisor<R> {
    fn spawn(&mut self, stored: R::Stored, ctx: &Context<Self>) {
        let generation = self.supervisor.next_generation();
        let report = PanicReport {
            supervisor: ctx.address().recipient(),
            generation,
        };
        self.runner = Child::Running {
            handle: R::new(Rc::clone(&self.parts), stored, report).start(),
            generation,
        };
    }

    /// Reads what a runner continues, and starts it; again after a pause if that cannot be read.
    fn restore(&mut self, ctx: &mut Context<Self>) {
        // Batches are committed in order: after this one, those of the runner that panicked are.
        let settled = self.parts.commits().commit(Batch::default());
        let parts = Rc::clone(&self.parts);
        let stored = async move {
            settled.await.map_err(|_| Unavailable)?;
            R::read(parts).await
        };
        ctx.spawn(
            stored
                .into_actor(self)
                .map(|stored, supervisor, ctx| match stored {
                    Ok(stored) => supervisor.spawn(stored, ctx),
                    Err(error) => {
                        warn!(%error, "what the runner of {} continues could not be read", R::WHAT);
                        supervisor.restore_later(ctx);
                    }
                }),
        );
    }

    fn restore_later(&self, ctx: &mut Context<Self>) {
        let clock = self.parts.clock();
        let at = clock.now().plus_ms(STORE_RETRY_MS);
        ctx.run_later(clock.until(at), Self::restore);
    }
}

impl<R: Runner> Actor for RunnerSupervisor<R> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(COMMANDS_MAX);
        if let Some(first) = self.first.take() {
            self.spawn(first, ctx);
        }
    }
}

impl<R: Runner> Handler<RunnerCommand<R>> for RunnerSupervisor<R> {
    type Result = ();

    fn handle(&mut self, RunnerCommand(command): RunnerCommand<R>, _: &mut Context<Self>) {
        // The caller of a command that is dropped gets an error.
        if let Child::Running { handle, .. } = &self.runner
            && handle.try_send(command).is_err()
        {
            warn!("the runner of {} is busy; a command was dropped", R::WHAT);
        }
    }
}

impl<R: Runner> Handler<RunnerPanicked> for RunnerSupervisor<R> {
    type Result = ();

    fn handle(&mut self, RunnerPanicked(generation): RunnerPanicked, ctx: &mut Context<Self>) {
        if !self.runner.is_running_as(generation) {
            return;
        }
        let now = self.parts.clock().now();
        match self.supervisor.judge(now, (), ActorFailure::Panicked) {
            Verdict::Restore => {
                error!("the runner of {} panicked and is restored", R::WHAT);
                self.runner = Child::Restoring(());
                self.restore_later(ctx);
            }
            Verdict::Park => {
                let what = R::WHAT;
                error!("the runner of {what} keeps panicking; {what} wait until the next start");
                self.runner = Child::Parked;
            }
        }
    }
}
