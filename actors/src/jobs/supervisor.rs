//! The supervisor of the runner of jobs: starts it, hands commands to it, and restores it from the
//! store after a panic.

use std::rc::Rc;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, WrapFuture as _,
};
use engine::job::Job;
use engine::limits::STORE_RETRY_MS;
use engine::supervision::{ActorFailure, Child, Supervisor, Verdict};
use tracing::{error, warn};

use super::JobParts;
use super::messages::{JobCommand, RunnerPanicked};
use super::meters::JobMeters;
use super::runner::RunnerActor;

/// Commands that may wait for the supervisor; more are refused as too busy.
const COMMANDS_MAX: usize = 1_024;

/// The supervisor of the one runner.
pub(super) struct JobSupervisor {
    parts: Rc<JobParts>,
    meters: JobMeters,
    runner: Child<Addr<RunnerActor>, ()>,
    supervisor: Supervisor<()>,
    /// The jobs that run at the start.
    first: Vec<Job>,
}

impl JobSupervisor {
    pub(super) fn new(parts: JobParts, first: Vec<Job>) -> Self {
        Self {
            parts: Rc::new(parts),
            meters: JobMeters::new(),
            runner: Child::Restoring(()),
            supervisor: Supervisor::default(),
            first,
        }
    }

    fn spawn(&mut self, running: Vec<Job>, ctx: &Context<Self>) {
        let generation = self.supervisor.next_generation();
        let runner = RunnerActor::new(
            Rc::clone(&self.parts),
            running,
            self.meters.clone(),
            (ctx.address().recipient(), generation),
        );
        self.runner = Child::Running {
            handle: runner.start(),
            generation,
        };
    }

    /// Reads the running jobs and starts a runner; again after a pause if they cannot be read.
    fn restore(&mut self, ctx: &mut Context<Self>) {
        let running = self.parts.store.running_jobs().into_actor(self);
        ctx.spawn(running.map(|running, supervisor, ctx| match running {
            Ok(running) => supervisor.spawn(running, ctx),
            Err(error) => {
                warn!(%error, "running jobs could not be read");
                supervisor.restore_later(ctx);
            }
        }));
    }

    fn restore_later(&self, ctx: &mut Context<Self>) {
        let at = self.parts.clock.now().plus_ms(STORE_RETRY_MS);
        ctx.run_later(self.parts.clock.until(at), Self::restore);
    }
}

impl Actor for JobSupervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(COMMANDS_MAX);
        let first = std::mem::take(&mut self.first);
        self.spawn(first, ctx);
    }
}

impl Handler<JobCommand> for JobSupervisor {
    type Result = ();

    fn handle(&mut self, command: JobCommand, _: &mut Context<Self>) {
        // The caller of a command that is dropped gets an error.
        if let Child::Running { handle, .. } = &self.runner
            && handle.try_send(command).is_err()
        {
            warn!("the runner of jobs is busy; a command was dropped");
        }
    }
}

impl Handler<RunnerPanicked> for JobSupervisor {
    type Result = ();

    fn handle(&mut self, RunnerPanicked(generation): RunnerPanicked, ctx: &mut Context<Self>) {
        if !self.runner.is_running_as(generation) {
            return;
        }
        let now = self.parts.clock.now();
        match self.supervisor.judge(now, (), ActorFailure::Panicked) {
            Verdict::Restore => {
                error!("the runner of jobs panicked and is restored");
                self.runner = Child::Restoring(());
                self.restore_later(ctx);
            }
            Verdict::Park => {
                error!("the runner of jobs keeps panicking; jobs wait until the next start");
                self.runner = Child::Parked;
            }
        }
    }
}
