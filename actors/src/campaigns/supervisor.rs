//! The supervisor of the runner of campaigns: starts it, hands commands to it, and restores it from
//! the store after a panic.

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, WrapFuture as _,
};
use engine::change::Batch;
use engine::firmware::campaign::Campaign;
use engine::limits::STORE_RETRY_MS;
use engine::supervision::{ActorFailure, Child, Supervisor, Verdict};
use store::Unavailable;
use tracing::{error, warn};

use super::CampaignParts;
use super::messages::{CampaignMessage, CampaignsPanicked};
use super::runner::CampaignActor;

/// Commands that may wait for the supervisor; more are refused as too busy.
const COMMANDS_MAX: usize = 1_024;

/// The supervisor of the one runner.
pub(super) struct CampaignSupervisor {
    parts: Rc<CampaignParts>,
    runner: Child<Addr<CampaignActor>, ()>,
    supervisor: Supervisor<()>,
    /// What the first runner continues.
    first: Option<Vec<Campaign>>,
}

impl CampaignSupervisor {
    pub(super) fn new(parts: CampaignParts, first: Vec<Campaign>) -> Self {
        Self {
            parts: Rc::new(parts),
            runner: Child::Restoring(()),
            supervisor: Supervisor::default(),
            first: Some(first),
        }
    }

    fn spawn(&mut self, open: Vec<Campaign>, ctx: &Context<Self>) {
        let generation = self.supervisor.next_generation();
        let runner = CampaignActor::new(
            Rc::clone(&self.parts),
            open,
            (ctx.address().recipient(), generation),
        );
        self.runner = Child::Running {
            handle: runner.start(),
            generation,
        };
    }

    /// Reads the campaigns that have not ended, and starts a runner; again after a pause if they
    /// cannot be read.
    fn restore(&mut self, ctx: &mut Context<Self>) {
        let store = Arc::clone(&self.parts.store);
        // Batches are committed in order: after this one, those of the runner that panicked are.
        let settled = self.parts.commits.commit(Batch::default());
        let open = async move {
            settled.await.map_err(|_| Unavailable)?;
            store.open_campaigns().await
        };
        ctx.spawn(
            open.into_actor(self)
                .map(|open, supervisor, ctx| match open {
                    Ok(open) => supervisor.spawn(open, ctx),
                    Err(error) => {
                        warn!(%error, "running campaigns could not be read");
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

impl Actor for CampaignSupervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(COMMANDS_MAX);
        if let Some(first) = self.first.take() {
            self.spawn(first, ctx);
        }
    }
}

impl Handler<CampaignMessage> for CampaignSupervisor {
    type Result = ();

    fn handle(&mut self, message: CampaignMessage, _: &mut Context<Self>) {
        // The caller of a command that is dropped gets an error.
        if let Child::Running { handle, .. } = &self.runner
            && handle.try_send(message).is_err()
        {
            warn!("the runner of campaigns is busy; a command was dropped");
        }
    }
}

impl Handler<CampaignsPanicked> for CampaignSupervisor {
    type Result = ();

    fn handle(
        &mut self,
        CampaignsPanicked(generation): CampaignsPanicked,
        ctx: &mut Context<Self>,
    ) {
        if !self.runner.is_running_as(generation) {
            return;
        }
        let now = self.parts.clock.now();
        match self.supervisor.judge(now, (), ActorFailure::Panicked) {
            Verdict::Restore => {
                error!("the runner of campaigns panicked and is restored");
                self.runner = Child::Restoring(());
                self.restore_later(ctx);
            }
            Verdict::Park => {
                error!("the runner of campaigns keeps panicking; they wait until the next start");
                self.runner = Child::Parked;
            }
        }
    }
}
