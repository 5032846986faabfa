//! What does the process that owns the shards do besides commits? It takes them over at the start
//! and removes what is too old.

use std::fmt;

use engine::moment::Timestamp;
use engine::sealed::Sealed;

use crate::ReadAnswer;

/// Keeps a store in order.
pub trait Maintenance: Send + Sync {
    /// Begins a new epoch for the shards of this process and returns it once it is durable. From
    /// then on, batches of owners of earlier epochs are refused.
    fn take_over(&self) -> ReadAnswer<u64>;

    /// Takes the store over in the epoch of a lease, which fences off earlier ones already.
    fn take_over_by_lease(&self, epoch: u64) -> ReadAnswer<u64> {
        Box::pin(std::future::ready(Ok(epoch)))
    }

    /// The private key of the service, sealed. If there is none yet, it is `new` from then on. It
    /// is durable when it is returned.
    fn server_key(&self, new: Sealed) -> ReadAnswer<Sealed>;

    /// Removes what is too old, and what is left of removed customers and devices: at most `max`
    /// things, and at most as many as an engine can remove without delaying commits.
    fn sweep(&self, retention: Retention, max: u32) -> ReadAnswer<SweepReport>;
}

/// How much a sweep removed, and whether it stopped at its bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SweepReport {
    /// Requests, entries, blocks of events, tokens, idempotency records, dead letters, jobs,
    /// parts of their devices, and SMS removed.
    pub removed: u64,
    /// Whether there is more to remove.
    pub more: bool,
}

/// What is missing from the end of a store although it was durable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Loss {
    /// How many groups of commits.
    pub groups: u64,
    /// When the last group that is left was written.
    pub from: Timestamp,
    /// When the last group that is lost was written.
    pub until: Timestamp,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = (self.from.iso(), self.until.iso());
        let groups = match self.groups {
            1 => "1 group".to_owned(),
            many => format!("{many} groups"),
        };
        write!(f, "{groups} of commits from {from} to {until}")
    }
}

/// The span of time whose action requests and log entries are removed together, in milliseconds.
pub const SWEPT_MS: i64 = 5_000;

/// Up to which age each kind is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// Final action requests created before this are removed, [`SWEPT_MS`] at a time: those of a
    /// span of time that has not ended before this stay.
    pub actions_before: Timestamp,
    /// Jobs created before this are removed.
    pub jobs_before: Timestamp,
    /// Administration log entries written before this are removed, [`SWEPT_MS`] at a time as well.
    pub entries_before: Timestamp,
    /// Events before this are removed.
    pub events_before: Timestamp,
    /// Access tokens that expired before this are removed.
    pub tokens_before: Timestamp,
    /// Idempotency records made before this are removed.
    pub idempotency_before: Timestamp,
    /// Dead letters of before this are removed.
    pub dead_letters_before: Timestamp,
    /// SMS of before this are removed.
    pub sms_before: Timestamp,
}

impl Retention {
    /// Nothing is too old.
    pub const NOTHING: Self = Self {
        actions_before: BEGINNING,
        jobs_before: BEGINNING,
        entries_before: BEGINNING,
        events_before: BEGINNING,
        tokens_before: BEGINNING,
        idempotency_before: BEGINNING,
        dead_letters_before: BEGINNING,
        sms_before: BEGINNING,
    };
}

/// Before everything.
const BEGINNING: Timestamp = Timestamp::from_ms(i64::MIN);
