//! Who keeps the administration log: writes the entries no device's step carries, and removes
//! what is too old.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message, WrapFuture as _,
};
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Change};
use engine::moment::Timestamp;
use store::{Retention, Store, Unavailable};
use tracing::{debug, warn};

use crate::clock::Clock;

/// How often what is too old is looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Rows removed in one go, so that a sweep never keeps a device's commit waiting for long.
const ROWS_PER_SWEEP: u32 = 1_000;

/// Entries that may wait for the store; beyond it the oldest is lost and the operator told.
const WAITING_MAX: usize = 1_024;

/// How soon a failing store is asked again.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// How long things are kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptFor {
    /// Final action requests, from their creation, in milliseconds.
    pub actions_ms: i64,
    /// Administration log entries, in milliseconds.
    pub entries_ms: i64,
}

/// The keeper of the log.
pub struct Logging {
    clock: Clock,
    store: Arc<dyn Store>,
    kept_for: KeptFor,
    waiting: VecDeque<Box<Entry>>,
}

impl Logging {
    /// A keeper that writes to the store.
    pub fn new(clock: Clock, store: Arc<dyn Store>, kept_for: KeptFor) -> Self {
        Self {
            clock,
            store,
            kept_for,
            waiting: VecDeque::new(),
        }
    }

    fn write(&mut self, ctx: &mut Context<Self>) {
        let Some(entry) = self.waiting.front() else {
            return;
        };
        let changes = vec![Change::AppendEntry(entry.clone())];
        let receipt = self.store.commit(Batch {
            changes,
            ..Batch::default()
        });
        ctx.wait(
            receipt
                .into_actor(self)
                .map(|result, logging, ctx| match result {
                    Ok(()) => {
                        logging.waiting.pop_front();
                        logging.write(ctx);
                    }
                    Err(error) => {
                        warn!(%error, "a log entry waits for the store");
                        ctx.run_later(STORE_RETRY, Self::write);
                    }
                }),
        );
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let retention = self.retention(self.clock.now());
        let swept = self.store.sweep(retention, ROWS_PER_SWEEP).into_actor(self);
        ctx.spawn(swept.map(|swept, logging, ctx| match swept {
            Ok(swept) => {
                debug!(removed = swept.removed, "swept");
                if swept.more {
                    logging.sweep(ctx);
                }
            }
            Err(Unavailable) => warn!("the store could not be swept"),
        }));
    }

    fn retention(&self, now: Timestamp) -> Retention {
        Retention {
            actions_before: now.plus_ms(-self.kept_for.actions_ms),
            entries_before: now.plus_ms(-self.kept_for.entries_ms),
            tokens_before: now,
        }
    }
}

impl Actor for Logging {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

/// An entry to be written.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Record(pub Box<Entry>);

impl Handler<Record> for Logging {
    type Result = ();

    fn handle(&mut self, record: Record, ctx: &mut Context<Self>) {
        if self.waiting.len() >= WAITING_MAX {
            warn!("too many log entries wait for the store; the oldest is lost");
            self.waiting.pop_front();
        }
        self.waiting.push_back(record.0);
        if self.waiting.len() == 1 {
            self.write(ctx);
        }
    }
}
