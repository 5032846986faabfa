//! Who maintains the administration log? This actor writes the entries that belong to no device's
//! step, and removes what is too old.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{
    Actor, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message, WrapFuture as _,
};
use engine::admin_log::entry::Entry;
use engine::change::{Batch, Change};
use engine::event::Event;
use engine::moment::Timestamp;
use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};
use store::{Commit, Maintenance, Retention, Unavailable};
use tracing::{debug, warn};

use crate::clock::Clock;
use crate::step_events::span_of;

/// How often the sweep runs.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Things removed in one sweep. The store has a bound of its own, in rows, so that a sweep never
/// delays a device's commit for long; this one is beyond it.
const REMOVED_PER_SWEEP: u32 = 10_000;

/// The longest pause between two sweeps. A sweep that took longer waited behind many commits: in a
/// longer pause more of them would arrive than the next sweep makes up for.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Entries that may wait for the store; beyond it the oldest is dropped and the operator is warned.
const WAITING_MAX: usize = 1_024;

/// The pause before a failing store is tried again.
const STORE_RETRY: Duration = Duration::from_secs(1);

const WAITING: &str = "signalbox_log_entries_waiting";
const LOST: &str = "signalbox_log_entries_lost_total";

/// How long data is kept.
#[derive(Clone, Copy, Debug)]
pub struct RetentionPeriods {
    /// Final action requests, from their creation, in milliseconds.
    pub actions_ms: i64,
    /// Jobs, from their creation, in milliseconds.
    pub jobs_ms: i64,
    /// Administration log entries, in milliseconds.
    pub entries_ms: i64,
    /// Events of devices, in milliseconds.
    pub events_ms: i64,
    /// Dead letters, in milliseconds.
    pub dead_letters_ms: i64,
    /// SMS, in milliseconds.
    pub sms_ms: i64,
    /// Answers to calls with an `Idempotency-Key`, in milliseconds.
    pub answers_ms: i64,
}

/// The actor that maintains the log.
pub struct Logging {
    clock: Clock,
    commits: Arc<dyn Commit>,
    store: Arc<dyn Maintenance>,
    /// How long data is kept; none, while another process removes it.
    kept_for: Option<RetentionPeriods>,
    waiting: VecDeque<WriteEntry>,
    /// Whether a sweep is running: there is never a second one at the same time.
    sweeping: bool,
    meters: LogMeters,
}

impl Logging {
    /// Creates the actor with its store. It removes nothing until it is told to: of several nodes,
    /// the active one does.
    pub fn new(clock: Clock, commits: Arc<dyn Commit>, store: Arc<dyn Maintenance>) -> Self {
        Self {
            clock,
            commits,
            store,
            kept_for: None,
            waiting: VecDeque::new(),
            sweeping: false,
            meters: LogMeters::new(),
        }
    }

    fn write(&mut self, ctx: &mut Context<Self>) {
        let Some(WriteEntry { entry, event }) = self.waiting.front().cloned() else {
            return;
        };
        let entry = Change::AppendEntry(entry);
        let changes = [entry].into_iter();
        let changes = changes.chain(event.map(Change::AppendEvent)).collect();
        let receipt = self.commits.commit(Batch {
            changes,
            ..Batch::default()
        });
        ctx.wait(
            receipt
                .into_actor(self)
                .map(|result, logging, ctx| match result {
                    Ok(()) => {
                        logging.waiting.pop_front();
                        logging.meters.show(&logging.waiting);
                        logging.write(ctx);
                    }
                    Err(error) => {
                        logging.warn("a log entry waits for the store", &error);
                        ctx.run_later(STORE_RETRY, Self::write);
                    }
                }),
        );
    }

    /// Logs a warning about the oldest entry that waits.
    fn warn(&self, what: &str, why: &dyn std::fmt::Display) {
        if let Some(WriteEntry { entry, .. }) = self.waiting.front() {
            span_of(entry.trace).in_scope(|| warn!(%why, "{what}"));
        }
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        if self.kept_for.is_some() && !std::mem::replace(&mut self.sweeping, true) {
            self.sweep_on(ctx);
        }
    }

    /// Removes what is too old in small steps. Between two sweeps the store has some time for
    /// commits alone: expired data may wait, and there may be much of it.
    fn sweep_on(&mut self, ctx: &mut Context<Self>) {
        let Some(kept_for) = &self.kept_for else {
            return;
        };
        let begun_at = Instant::now();
        let retention = retention(kept_for, self.clock.now());
        let swept = self.store.sweep(retention, REMOVED_PER_SWEEP);
        ctx.spawn(swept.into_actor(self).map(move |swept, logging, ctx| {
            logging.sweeping = false;
            match swept {
                Ok(swept) => {
                    debug!(removed = swept.removed, "expired data was deleted");
                    if swept.more {
                        logging.sweeping = true;
                        ctx.run_later(pause_behind(begun_at.elapsed()), Self::sweep_on);
                    }
                }
                Err(Unavailable) => warn!("expired data could not be deleted"),
            }
        }));
    }
}

/// The metrics of the log.
struct LogMeters {
    waiting: Gauge,
    lost: Counter,
}

impl LogMeters {
    fn new() -> Self {
        describe_gauge!(
            WAITING,
            "Administration log entries waiting to be written, apart from those written with a \
             device."
        );
        describe_counter!(
            LOST,
            "Administration log entries dropped because too many were waiting."
        );
        let meters = Self {
            waiting: gauge!(WAITING),
            lost: counter!(LOST),
        };
        meters.show(&VecDeque::new());
        meters
    }

    fn show(&self, waiting: &VecDeque<WriteEntry>) {
        self.waiting.set(waiting.len() as f64);
    }
}

impl Actor for Logging {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

/// Removes from now on what is older than this.
#[derive(Message)]
#[rtype(result = "()")]
pub struct RemoveOld(pub RetentionPeriods);

impl Handler<RemoveOld> for Logging {
    type Result = ();

    fn handle(&mut self, RemoveOld(periods): RemoveOld, _: &mut Context<Self>) {
        self.kept_for = Some(periods);
    }
}

/// An entry to be written.
#[derive(Clone, Message)]
#[rtype(result = "()")]
pub struct WriteEntry {
    /// The entry.
    pub entry: Box<Entry>,
    /// The event about it.
    pub event: Option<Box<Event>>,
}

impl Handler<WriteEntry> for Logging {
    type Result = ();

    fn handle(&mut self, record: WriteEntry, ctx: &mut Context<Self>) {
        if self.waiting.len() >= WAITING_MAX {
            self.warn(
                "a log entry was dropped",
                &"too many entries wait for the store",
            );
            self.waiting.pop_front();
            self.meters.lost.increment(1);
        }
        let entry = &record.entry;
        span_of(entry.trace)
            .in_scope(|| debug!(entry = %entry.message, "an entry for the administration log"));
        self.waiting.push_back(record);
        self.meters.show(&self.waiting);
        if self.waiting.len() == 1 {
            self.write(ctx);
        }
    }
}

/// How long the store is left to commits after a sweep of this duration: as long again.
fn pause_behind(sweep: Duration) -> Duration {
    sweep.min(PAUSE_MAX)
}

/// What is too old at an instant.
fn retention(kept_for: &RetentionPeriods, now: Timestamp) -> Retention {
    Retention {
        actions_before: now.plus_ms(-kept_for.actions_ms),
        jobs_before: now.plus_ms(-kept_for.jobs_ms),
        entries_before: now.plus_ms(-kept_for.entries_ms),
        events_before: now.plus_ms(-kept_for.events_ms),
        tokens_before: now,
        idempotency_before: now.plus_ms(-kept_for.answers_ms),
        dead_letters_before: now.plus_ms(-kept_for.dead_letters_ms),
        sms_before: now.plus_ms(-kept_for.sms_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_get_a_pause_as_long_as_the_sweep_up_to_a_bound() {
        let ms = Duration::from_millis;
        for (sweep, pause) in [(0, 0), (7, 7), (50, 50), (51, 50), (900, 50)] {
            assert_eq!(pause_behind(ms(sweep)), ms(pause), "{sweep}");
        }
    }

    #[test]
    fn each_kind_of_data_expires_after_its_retention() {
        let kept_for = RetentionPeriods {
            actions_ms: 1,
            entries_ms: 20,
            events_ms: 300,
            dead_letters_ms: 4_000,
            answers_ms: 50_000,
            jobs_ms: 600_000,
            sms_ms: 7_000_000,
        };
        let now = Timestamp::from_ms(1 << 40);
        let retention = retention(&kept_for, now);
        assert_eq!(retention.actions_before, now.plus_ms(-1));
        assert_eq!(retention.entries_before, now.plus_ms(-20));
        assert_eq!(retention.events_before, now.plus_ms(-300));
        assert_eq!(retention.dead_letters_before, now.plus_ms(-4_000));
        assert_eq!(retention.jobs_before, now.plus_ms(-600_000));
        assert_eq!(retention.sms_before, now.plus_ms(-7_000_000));
        assert_eq!(retention.tokens_before, now);
        assert_eq!(retention.idempotency_before, now.plus_ms(-50_000));
    }
}
