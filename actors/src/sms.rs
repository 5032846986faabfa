//! Who settles SMS whose validity is over? One actor, which looks for them now and then.

pub(crate) mod ids;
pub mod network;

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _};
use engine::directory::sms::lapse;
use engine::limits::SMS_LAPSED_AT_ONCE;
use store::{Commit, CommitError, Reads, Unavailable};
use tracing::warn;

use crate::clock::Clock;

/// How often SMS are looked for: their validity is given in seconds.
const EVERY: Duration = Duration::from_secs(1);

/// Settles SMS whose validity is over.
pub struct SmsValidity {
    clock: Clock,
    commits: Arc<dyn Commit>,
    store: Arc<dyn Reads>,
    /// Whether the store did not answer when SMS were last looked for.
    is_waiting: bool,
}

impl SmsValidity {
    /// Creates the actor with its store.
    pub fn new(clock: Clock, commits: Arc<dyn Commit>, store: Arc<dyn Reads>) -> Self {
        Self {
            clock,
            commits,
            store,
            is_waiting: false,
        }
    }

    fn settle(&mut self, ctx: &mut Context<Self>) {
        let (clock, commits, store) = (
            self.clock.clone(),
            Arc::clone(&self.commits),
            Arc::clone(&self.store),
        );
        let settled = async move { settle_due(&clock, &*commits, &*store).await };
        ctx.spawn(settled.into_actor(self).map(|settled, it, ctx| {
            let is_waiting = settled.is_err();
            if is_waiting && !it.is_waiting {
                warn!("SMS whose validity is over are settled once the store answers");
            }
            it.is_waiting = is_waiting;
            ctx.run_later(EVERY, Self::settle);
        }));
    }
}

/// Settles some of the SMS that are due. One that changes meanwhile is looked at again later.
async fn settle_due(
    clock: &Clock,
    commits: &dyn Commit,
    store: &dyn Reads,
) -> Result<(), Unavailable> {
    for sms in store.sms_due(clock.now(), SMS_LAPSED_AT_ONCE).await? {
        let Some(device) = store.profile(sms.device).await? else {
            continue;
        };
        let lapsed = lapse(&mut clock.moment(), &device, sms);
        match commits.commit(lapsed.batch).await {
            Ok(()) | Err(CommitError::Conflict) => {}
            Err(CommitError::Fenced | CommitError::Full | CommitError::Unavailable) => {
                return Err(Unavailable);
            }
        }
    }
    Ok(())
}

impl Actor for SmsValidity {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.settle(ctx);
    }
}
