//! The supervisor of the runner of jobs: starts it, hands commands to it, and restores it from the
//! store after a panic.

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, WrapFuture as _,
};
use engine::change::Batch;
use engine::limits::STORE_RETRY_MS;
use engine::supervision::{ActorFailure, Child, Supervisor, Verdict};
use store::Unavailable;
use tracing::{error, warn};

use super::JobParts;
use super::messages::{JobCommand, RunnerPanicked, StoredJobs};
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
    /// What the first runner continues.
    first: Option<StoredJobs>,
}

impl JobSupervisor {
    pub(super) fn new(parts: JobParts, first: StoredJobs) -> Self {
        Self {
            parts: Rc::new(parts),
            meters: JobMeters::new(),
            runner: Child::Restoring(()),
            supervisor: Supervisor::default(),
            first: Some(first),
        }
    }

    fn spawn(&mut self, stored: StoredJobs, ctx: &Context<Self>) {
        let generation = self.supervisor.next_generation();
        let runner = RunnerActor::new(
            Rc::clone(&self.parts),
            stored,
            self.meters.clone(),
            (ctx.address().recipient(), generation),
        );
        self.runner = Child::Running {
            handle: runner.start(),
            generation,
        };
    }

    /// Reads the running jobs and the schedules, and starts a runner; again after a pause if they
    /// cannot be read.
    fn restore(&mut self, ctx: &mut Context<Self>) {
        let store = Arc::clone(&self.parts.selection.store);
        // Batches are committed in order: after this one, those of the runner that panicked are.
        let settled = self.parts.commits.commit(Batch::default());
        let stored = async move {
            settled.await.map_err(|_| Unavailable)?;
            let schedules = store.schedules().await?;
            let running = store.running_jobs().await?;
            Ok::<_, Unavailable>(StoredJobs { running, schedules })
        };
        ctx.spawn(
            stored
                .into_actor(self)
                .map(|stored, supervisor, ctx| match stored {
                    Ok(stored) => supervisor.spawn(stored, ctx),
                    Err(error) => {
                        warn!(%error, "running jobs and schedules could not be read");
                        supervisor.restore_later(ctx);
                    }
                }),
        );
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
        if let Some(first) = self.first.take() {
            self.spawn(first, ctx);
        }
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
